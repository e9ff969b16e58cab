//! Functions of maps: membership, and what comprehensions that make maps call.

use super::arguments::{map, value};
use crate::cel::eval::map::Map;
use crate::cel::eval::show::show;
use crate::cel::eval::{EvalError, Function, Value};

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "in_map" => |_, arguments| map(arguments, 1)?.contains(value(arguments, 0)?).map(Value::Bool),
        "@mapInsert_map_key_value" => |_, arguments| {
            let inserted = insert(map(arguments, 0)?.clone(), value(arguments, 1)?, value(arguments, 2)?);
            inserted.map(Value::Map)
        },
        "@mapInsert_map_map" => |_, arguments| {
            let added = map(arguments, 1)?;
            let mut all = map(arguments, 0)?.clone();
            for (key, value) in added.entries() {
                all = insert(all, &key, &value?)?;
            }
            Ok(Value::Map(all))
        },
        _ => return None,
    })
}

/// The map with one more entry.
///
/// # Errors
/// If it has that key.
pub fn insert<'a>(map: Map<'a>, key: &Value<'a>, value: &Value<'a>) -> Result<Map<'a>, EvalError> {
    if map.find(key)?.is_some() {
        return Err(EvalError::new(format!("insert failed: key {} already exists", show(key))));
    }
    map.insert(key.clone(), value.clone())
}
