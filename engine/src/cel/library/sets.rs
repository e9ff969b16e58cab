//! Functions that treat lists as sets.

use super::arguments::list;
use super::since;
use crate::cel::cost::{Cost, Estimate, Range, actual, model};
use crate::cel::eval::list::List;
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Function, Overload};
use crate::cel::types::Type::{self, Bool};

/// Each element of one list is searched for in the other.
const ONE_WAY: Cost = Cost::of_overload(
    |sizes| Estimate::of(sizes.size(0).times(sizes.size(1)).scale(1.0).plus(Range::fixed(model::CALL))),
    |called| compare_each(called.size(0), called.size(1), 1.0),
)
.comparing_pairs();

/// Each element of either list is searched for in the other.
const BOTH_WAYS: Cost = Cost::of_overload(
    |sizes| Estimate::of(sizes.size(0).times(sizes.size(1)).scale(2.0).plus(Range::fixed(model::CALL))),
    |called| compare_each(called.size(0), called.size(1), 2.0),
)
.comparing_pairs();

pub(super) fn functions() -> Vec<Function> {
    let lists = || [Type::list(Type::param("T")), Type::list(Type::param("T"))];
    let functions = vec![
        Function::new(
            "sets.contains",
            [Overload::global("list_sets_contains_list", lists(), Bool, ONE_WAY, |_, arguments| {
                contains(list(arguments, 0)?, list(arguments, 1)?).map(Value::Bool)
            })],
        ),
        Function::new(
            "sets.equivalent",
            [Overload::global("list_sets_equivalent_list", lists(), Bool, BOTH_WAYS, |_, arguments| {
                let (left, right) = (list(arguments, 0)?, list(arguments, 1)?);
                Ok(Value::Bool(contains(left, right)? && contains(right, left)?))
            })],
        ),
        Function::new(
            "sets.intersects",
            [Overload::global("list_sets_intersects_list", lists(), Bool, ONE_WAY, |_, arguments| {
                let others = list(arguments, 1)?;
                for item in list(arguments, 0)?.values() {
                    // A value that cannot be compared is not an element.
                    if others.contains(&item) == Ok(true) {
                        return Ok(Value::Bool(true));
                    }
                }
                Ok(Value::Bool(false))
            })],
        ),
    ];
    since(29, functions)
}

/// The product wraps around, as it does in the reference.
fn compare_each(left: u64, right: u64, factor: f64) -> u64 {
    actual::scale_down(left.wrapping_mul(right), factor).saturating_add(model::CALL)
}

fn contains<'a>(list: &List<'a>, part: &List<'a>) -> Result<bool, EvalError> {
    for item in part.values() {
        if !list.contains(&item)? {
            return Ok(false);
        }
    }
    Ok(true)
}
