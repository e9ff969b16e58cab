//! Regular expressions.

use std::sync::Arc;

use super::arguments::{int, part_of, text};
use crate::cel::eval::value::{Scope, Text};
use crate::cel::eval::{EvalError, Function, Value};
use crate::meta::pattern::Pattern;

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "matches" | "matches_string" => |scope, arguments| {
            let pattern = scope.pattern(text(arguments, 1)?).map_err(|error| EvalError::new(error.to_string()))?;
            Ok(Value::Bool(pattern.is_match(text(arguments, 0)?)))
        },
        "string_find_string" => |scope, arguments| {
            let text = text(arguments, 0)?;
            let found = pattern(scope, arguments)?.find(text.as_str());
            Ok(part_of(text, found.unwrap_or(0..0)))
        },
        "string_find_all_string" => |scope, arguments| find_all(pattern(scope, arguments)?, text(arguments, 0)?, -1),
        "string_find_all_string_int" => {
            |scope, arguments| find_all(pattern(scope, arguments)?, text(arguments, 0)?, int(arguments, 2)?)
        }
        _ => return None,
    })
}

fn pattern(scope: &mut Scope<'_>, arguments: &[Value<'_>]) -> Result<Arc<Pattern>, EvalError> {
    let source = text(arguments, 1)?;
    scope.pattern(source).map_err(|error| EvalError::new(format!("Illegal regex: {error}")))
}

/// At most `count` matches that don't overlap; all if the count is negative.
fn find_all<'a>(pattern: Arc<Pattern>, text: &Text<'a>, count: i64) -> Result<Value<'a>, EvalError> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let found = pattern.find_iter(text.as_str()).take(count);
    Ok(Value::list(found.map(|found| part_of(text, found)).collect()))
}
