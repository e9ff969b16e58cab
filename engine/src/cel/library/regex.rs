//! Searches by regular expression: `find` and `findAll`.

use std::sync::Arc;

use super::arguments::{int, part_of, text};
use crate::cel::cost::formula::match_regex;
use crate::cel::cost::{Cost, Estimate, Range, actual};
use crate::cel::eval::value::{CallScope, TextValue};
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Calling, Function, Overload};
use crate::cel::types::Type::{self, Int, String};
use crate::meta::pattern::Pattern;

/// The length of the text times that of the expression; a match is no longer than the text.
const FIND: Cost = Cost::of_name(
    |sizes| {
        let text = sizes.size(0);
        Estimate::of(match_regex(text, sizes.size(1))).with_result(Range::new(0, text.max))
    },
    |called| actual::match_regex(called.size(0), called.size(1)),
);

pub(super) fn functions() -> Vec<Function> {
    let calling = Calling { has_pattern: true, ..Calling::USUAL };
    vec![
        Function::new(
            "find",
            [Overload::member("string_find_string", [String, String], String, FIND, |scope, arguments| {
                let text = text(arguments, 0)?;
                let found = pattern(scope, arguments)?.find(text.as_str());
                Ok(part_of(text, found.unwrap_or(0..0)))
            })],
        )
        .calling(calling),
        Function::new(
            "findAll",
            [
                Overload::member(
                    "string_find_all_string",
                    [String, String],
                    Type::list(String),
                    FIND,
                    |scope, arguments| find_all(pattern(scope, arguments)?, text(arguments, 0)?, -1),
                ),
                Overload::member(
                    "string_find_all_string_int",
                    [String, String, Int],
                    Type::list(String),
                    FIND,
                    |scope, arguments| find_all(pattern(scope, arguments)?, text(arguments, 0)?, int(arguments, 2)?),
                ),
            ],
        )
        .calling(calling),
    ]
}

fn pattern(scope: &mut CallScope<'_>, arguments: &[Value<'_>]) -> Result<Arc<Pattern>, EvalError> {
    let source = text(arguments, 1)?;
    scope.pattern(source).map_err(|error| EvalError::new(format!("Illegal regex: {error}")))
}

/// Finds at most `count` matches that do not overlap; all if the count is negative.
fn find_all<'a>(pattern: Arc<Pattern>, text: &TextValue<'a>, count: i64) -> Result<Value<'a>, EvalError> {
    let count = usize::try_from(count).unwrap_or(usize::MAX);
    let found = pattern.find_iter(text.as_str()).take(count);
    Ok(Value::texts(found.map(|found| part_of(text, found)).collect()))
}
