//! `&&`, `||`, `!`, `?:`, `==`, `!=`.

use super::arguments::value;
use crate::cel::ast::operators;
use crate::cel::cost::formula::COMPARE;
use crate::cel::cost::{Cost, Estimate, Range, Sizes, actual, model};
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Calling, Function, Mismatch, Overload};
use crate::cel::types::Type::{self, Bool};

/// The length that the estimate assumes for the name of a format.
const FORMAT_SIZE_MAX: u64 = 64;

/// The left operand is evaluated, and the right one where needed.
const JUNCTION: Cost = Cost::of_overload(
    |sizes| {
        let (left, right) = (sizes.cost(0), sizes.cost(1));
        let arguments = Range::new(left.min, left.plus(right).max);
        Estimate { arguments: Some(arguments), ..Estimate::of(Range::fixed(0)) }
    },
    |_| model::CALL,
);

/// The condition and one of the branches are evaluated.
const CONDITIONAL: Cost = Cost::of_overload(
    |sizes| Estimate {
        arguments: Some(sizes.cost(0).plus(sizes.cost(1).union(sizes.cost(2)))),
        entry: sizes.either_entry(1, 2),
        ..Estimate::of(Range::fixed(0)).with_result(sizes.size(1).union(sizes.size(2)))
    },
    |_| model::CALL,
);

/// The shorter operand is traversed; values of the libraries' own types are cheap.
const EQUALS: Cost = Cost::of_overload(
    |sizes| Estimate::of(compare_own_types(sizes).unwrap_or_else(|| sizes.comparison())),
    |called| actual::equality(called.first(), called.content_size(1)),
);

pub(super) fn functions() -> Vec<Function> {
    let not_strictly_false = "__not_strictly_false__";
    let a = || Type::param("A");
    vec![
        Function::new(operators::CONDITIONAL, [Overload::evaluated("conditional", [Bool, a(), a()], a(), CONDITIONAL)]),
        Function::new(operators::LOGICAL_AND, [Overload::evaluated("logical_and", [Bool, Bool], Bool, JUNCTION)]),
        Function::new(operators::LOGICAL_OR, [Overload::evaluated("logical_or", [Bool, Bool], Bool, JUNCTION)]),
        Function::new(
            operators::LOGICAL_NOT,
            [Overload::global("logical_not", [Bool], Bool, Cost::One, |_, arguments| match value(arguments, 0)? {
                Value::Bool(truth) => Ok(Value::Bool(!truth)),
                _ => Err(EvalError::no_such_overload()),
            })],
        )
        .calling(Calling { mismatch: Mismatch::Bare, is_single: true, ..Calling::USUAL }),
        Function::new(
            operators::NOT_STRICTLY_FALSE,
            [Overload::evaluated("not_strictly_false", [Bool], Bool, Cost::One)],
        ),
        Function::new(not_strictly_false, [Overload::evaluated(not_strictly_false, [Bool], Bool, Cost::One)]),
        Function::new(
            operators::EQUALS,
            [Overload::evaluated("equals", [a(), a()], Bool, EQUALS).before(actual::OWN_TYPES_SINCE.number(), COMPARE)],
        ),
        Function::new(operators::NOT_EQUALS, [Overload::evaluated("not_equals", [a(), a()], Bool, COMPARE)]),
    ]
}

/// Estimates `==` for two values of the same library type.
fn compare_own_types(sizes: &Sizes<'_, '_>) -> Option<Range> {
    let ty = sizes.ty(0)?;
    if ty != sizes.ty(1)? {
        return None;
    }
    match ty {
        Type::Opaque(opaque) if matches!(opaque.name.as_str(), "net.IP" | "net.CIDR") => Some(Range::fixed(1)),
        Type::Object(object) => match object.name.as_str() {
            "kubernetes.Quantity" | "kubernetes.Semver" => Some(Range::fixed(1)),
            name if name.starts_with("kubernetes.authorization.") => Some(Range::fixed(1)),
            "kubernetes.NamedFormat" => Some(Range::new(1, FORMAT_SIZE_MAX).scale(model::TRAVERSAL)),
            "kubernetes.URL" => {
                let size_max = sizes.known_size(1).map_or(1, |size| size.max);
                Some(Range::new(1, size_max).scale(model::TRAVERSAL))
            }
            _ => None,
        },
        _ => None,
    }
}
