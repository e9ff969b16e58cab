//! The functions that the two-variable macros call.

use super::arguments::{map, value};
use super::since;
use crate::cel::cost::Cost;
use crate::cel::eval::map::Map;
use crate::cel::eval::show::show;
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Function, Overload};
use crate::cel::types::Type;

pub(super) fn functions() -> Vec<Function> {
    let (key, value_type) = (|| Type::param("K"), || Type::param("V"));
    let map_type = || Type::map(key(), value_type());
    let insert_entry = Overload::global(
        "@mapInsert_map_key_value",
        [map_type(), key(), value_type()],
        map_type(),
        Cost::One,
        |_, arguments| {
            let inserted = insert(map(arguments, 0)?.clone(), value(arguments, 1)?, value(arguments, 2)?);
            inserted.map(Value::Map)
        },
    );
    let insert_map =
        Overload::global("@mapInsert_map_map", [map_type(), map_type()], map_type(), Cost::One, |_, arguments| {
            let added = map(arguments, 1)?;
            let mut all = map(arguments, 0)?.clone();
            for (key, value) in added.entries() {
                all = insert(all, &key, &value?)?;
            }
            Ok(Value::Map(all))
        });
    since(32, vec![Function::new("cel.@mapInsert", [insert_entry, insert_map])])
}

/// Returns the map with one more entry.
///
/// # Errors
/// The map already has the key.
pub fn insert<'a>(map: Map<'a>, key: &Value<'a>, value: &Value<'a>) -> Result<Map<'a>, EvalError> {
    if map.find(key)?.is_some() {
        return Err(EvalError::new(format!("insert failed: key {} already exists", show(key))));
    }
    map.insert(key.clone(), value.clone())
}
