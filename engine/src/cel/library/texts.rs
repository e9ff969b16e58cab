//! The string functions of the CEL standard: `contains`, `startsWith`, `endsWith`, `matches`.

use super::arguments::text;
use crate::cel::cost::formula::match_regex;
use crate::cel::cost::{Cost, Estimate, actual, model};
use crate::cel::eval::{CallScope, EvalError, Value};
use crate::cel::function::{Calling, Function, Overload, Trait};
use crate::cel::types::Type::{Bool, String};

/// The argument, the text that is searched for, is traversed.
const AFFIX: Cost = Cost::of_overload(
    |sizes| Estimate::of(sizes.size(1).scale(model::TRAVERSAL)),
    |called| actual::scale(called.content_size(1), model::TRAVERSAL),
);

/// Before 1.37: the actual cost counts the target, the text that is searched.
const WHOLE: Cost = Cost::of_overload(
    |sizes| Estimate::of(sizes.size(1).scale(model::TRAVERSAL)),
    |called| actual::scale(called.content_size(0), model::TRAVERSAL),
);

/// Both texts are traversed.
const CONTAINS: Cost = Cost::of_overload(
    |sizes| Estimate::of(sizes.size(0).scale(model::TRAVERSAL).times(sizes.size(1).scale(model::TRAVERSAL))),
    |called| {
        let costs = [0, 1].map(|at| actual::scale(called.content_size(at), model::TRAVERSAL));
        costs[0].saturating_mul(costs[1])
    },
);

/// The length of the text times that of the regular expression.
const MATCHES: Cost = Cost::of_overload(
    |sizes| Estimate::of(match_regex(sizes.size(0), sizes.size(1))),
    |called| actual::match_regex(called.content_size(0), called.content_size(1)),
);

pub(super) fn functions() -> Vec<Function> {
    vec![
        Function::new(
            "contains",
            [Overload::member("contains_string", [String, String], Bool, CONTAINS, |_, arguments| {
                Ok(Value::Bool(text(arguments, 0)?.contains(text(arguments, 1)?.as_str())))
            })],
        )
        .calling(Calling::BARE),
        Function::new(
            "endsWith",
            [Overload::member("ends_with_string", [String, String], Bool, AFFIX, |_, arguments| {
                Ok(Value::Bool(text(arguments, 0)?.ends_with(text(arguments, 1)?.as_str())))
            })
            .before(37, WHOLE)],
        )
        .calling(Calling::BARE),
        Function::new(
            "startsWith",
            [Overload::member("starts_with_string", [String, String], Bool, AFFIX, |_, arguments| {
                Ok(Value::Bool(text(arguments, 0)?.starts_with(text(arguments, 1)?.as_str())))
            })
            .before(37, WHOLE)],
        )
        .calling(Calling::BARE),
        Function::new(
            "matches",
            [
                Overload::global("matches", [String, String], Bool, MATCHES, matches).before(37, Cost::One),
                Overload::member("matches_string", [String, String], Bool, MATCHES, matches),
            ],
        )
        .calling(Calling { has_pattern: true, ..Calling::by_trait(Trait::Matcher) }),
    ]
}

fn matches<'a>(scope: &mut CallScope<'_>, arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let pattern = scope.pattern(text(arguments, 1)?).map_err(|error| EvalError::new(error.to_string()))?;
    Ok(Value::Bool(pattern.is_match(text(arguments, 0)?)))
}
