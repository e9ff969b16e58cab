//! Lists as sets.

use super::arguments::list;
use crate::cel::eval::list::List;
use crate::cel::eval::{EvalError, Function, Value};

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "list_sets_contains_list" => |_, arguments| contains(list(arguments, 0)?, list(arguments, 1)?).map(Value::Bool),
        "list_sets_equivalent_list" => |_, arguments| {
            let (left, right) = (list(arguments, 0)?, list(arguments, 1)?);
            Ok(Value::Bool(contains(left, right)? && contains(right, left)?))
        },
        "list_sets_intersects_list" => |_, arguments| {
            let others = list(arguments, 1)?;
            for item in list(arguments, 0)?.iter() {
                // What can't be compared is not there.
                if others.contains(&item?) == Ok(true) {
                    return Ok(Value::Bool(true));
                }
            }
            Ok(Value::Bool(false))
        },
        _ => return None,
    })
}

fn contains<'a>(list: &List<'a>, part: &List<'a>) -> Result<bool, EvalError> {
    for item in part.iter() {
        if !list.contains(&item?)? {
            return Ok(false);
        }
    }
    Ok(true)
}
