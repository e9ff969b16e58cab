//! Functions of lists, as in version 3 of cel-go's extension.

use super::arguments::{int, list};
use super::comparison::{compare, is_ordered};
use super::since;
use super::sort::sort_indices;
use crate::cel::cost::formula::{Wants, allocate_list};
use crate::cel::cost::{Called, Cost, Estimate, Range, Sizes, actual, model};
use crate::cel::eval::list::{List, SUM_ITEMS_MAX, too_many_items};
use crate::cel::eval::show::show;
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Calling, Function, Mismatch, Overload, Trait};
use crate::cel::types::Type::{self, Bool, Bytes, Double, Duration, Dyn, Int, Timestamp, Uint};
use crate::work;

/// The longest list that `lists.range` makes.
const RANGE_MAX: i64 = 1_000_000;

/// A list of the slice's length is created.
const SLICE: Cost = Cost::of_overload(
    |sizes| {
        let (start, end) = (sizes.unsigned(1, 0), sizes.unsigned(2, sizes.size(0).max));
        allocate_list(1.0, Range::fixed(end.wrapping_sub(start)))
    },
    |called| actual::allocate_list(1.0, called.result.size()),
);

/// A list of the length that the argument gives is created.
const RANGE: Cost = Cost::of_overload(
    |sizes| allocate_list(1.0, Range::fixed(sizes.unsigned(0, u64::MAX))),
    |called| actual::allocate_list(1.0, called.result.size()),
);

/// A list of the same length is created.
const REVERSE: Cost = Cost::of_overload(
    |sizes| allocate_list(1.0, sizes.size(0)),
    |called| actual::allocate_list(1.0, called.result.size()),
);

/// A list is created, and the first one traversed.
const FLATTEN: Cost =
    Cost::of_overload(|sizes| allocate_list(1.0, sizes.size(0)), |called| actual::allocate_list(1.0, called.size(0)));

/// A list is created, and the first one traversed once per level of the given depth.
const FLATTEN_DEEP: Cost = Cost::of_overload(
    |sizes| allocate_list(sizes.unsigned(1, u64::MAX) as f64, sizes.size(0)),
    |called| {
        let depth = called.arguments.get(1).map_or(1.0, |depth| depth.as_int().unwrap_or(1) as f64);
        actual::allocate_list(if depth < 0.0 { 1.0 } else { depth }, called.size(0))
    },
)
.wanting(Wants::Int(1));

/// The same before 1.37: a negative depth is subtracted from the cost, which wraps around.
const FLATTEN_DEEP_BEFORE: Cost = Cost::of_overload(
    |sizes| allocate_list(sizes.unsigned(1, u64::MAX) as f64, sizes.size(0)),
    |called| {
        let depth = called.arguments.get(1).map_or(1.0, |depth| depth.as_int().unwrap_or(1) as f64);
        let copied = called.size(0) as f64 * depth;
        let copied = if depth < 0.0 { (copied as i64).cast_unsigned() } else { copied as u64 };
        copied.wrapping_add(model::CALL + model::MAKE_LIST)
    },
)
.wanting(Wants::Int(1));

/// A list is created, and each element compared with each other.
const DISTINCT: Cost = Cost::of_overload(|sizes| compare_all(sizes, 0, 0.0), |called| compare_pairs(called, 0))
    .wanting(Wants::List(0))
    .comparing_pairs();

/// A sorted list is created, and each element compared with each other; for texts the cost is higher.
const SORT: Cost = Cost::of_overload(|sizes| compare_all(sizes, 0, 0.0), |called| compare_pairs(called, 0))
    .wanting(Wants::List(0))
    .comparing_pairs();
const SORT_TEXTS: Cost =
    Cost::of_overload(|sizes| compare_all(sizes, 0, model::TRAVERSAL), |called| compare_pairs(called, 0))
        .wanting(Wants::List(0))
        .comparing_pairs();

/// A sorted list is created, and each key compared with each other; for texts the cost is higher.
const SORT_BY: Cost = Cost::of_overload(|sizes| compare_all(sizes, 1, 0.0), |called| compare_pairs(called, 1))
    .wanting(Wants::List(1))
    .comparing_pairs();
const SORT_BY_TEXTS: Cost =
    Cost::of_overload(|sizes| compare_all(sizes, 1, model::TRAVERSAL), |called| compare_pairs(called, 1))
        .wanting(Wants::List(1))
        .comparing_pairs();

pub(super) fn functions() -> Vec<Function> {
    let items = || Type::list(Type::param("T"));
    let of_lists = Calling::by_trait(Trait::List);
    let functions =
        vec![
            Function::new(
                "@sortByAssociatedKeys",
                [
                    sort_by_keys("list_int_sortByAssociatedKeys", Int, SORT_BY),
                    sort_by_keys("list_uint_sortByAssociatedKeys", Uint, SORT_BY),
                    sort_by_keys("list_double_sortByAssociatedKeys", Double, SORT_BY),
                    sort_by_keys("list_bool_sortByAssociatedKeys", Bool, SORT_BY),
                    sort_by_keys("list_google.protobuf.Duration_sortByAssociatedKeys", Duration, SORT_BY),
                    sort_by_keys("list_google.protobuf.Timestamp_sortByAssociatedKeys", Timestamp, SORT_BY),
                    sort_by_keys("list_string_sortByAssociatedKeys", Type::String, SORT_BY_TEXTS),
                    sort_by_keys("list_bytes_sortByAssociatedKeys", Bytes, SORT_BY_TEXTS),
                ],
            )
            .calling(of_lists),
            Function::new(
                "distinct",
                [Overload::member("list_distinct", [items()], items(), DISTINCT, |_, arguments| {
                    distinct(list(arguments, 0)?)
                })],
            ),
            Function::new(
                "flatten",
                [
                    Overload::member("list_flatten", [Type::list(items())], items(), FLATTEN, |_, arguments| {
                        match arguments {
                            [Value::List(list)] => flatten(list, 1),
                            _ => Err(cannot_flatten(arguments)),
                        }
                    }),
                    Overload::member(
                        "list_flatten_int",
                        [Type::list(Dyn), Int],
                        Type::list(Dyn),
                        FLATTEN_DEEP,
                        |_, arguments| match arguments {
                            [Value::List(list), Value::Int(depth)] => flatten(list, *depth),
                            _ => Err(cannot_flatten(arguments)),
                        },
                    )
                    .before(37, FLATTEN_DEEP_BEFORE),
                ],
            )
            .calling(Calling { mismatch: Mismatch::Unguarded, ..Calling::USUAL }),
            Function::new(
                "lists.range",
                [Overload::global("lists_range", [Int], Type::list(Int), RANGE, |_, arguments| {
                    range(int(arguments, 0)?)
                })
                .formerly(37, |_, arguments| range(int(arguments, 0)?.max(0)))],
            ),
            Function::new(
                "reverse",
                [Overload::member("list_reverse", [items()], items(), REVERSE, |_, arguments| {
                    let mut items: Vec<_> = list(arguments, 0)?.values().collect();
                    items.reverse();
                    Ok(Value::list(items))
                })],
            ),
            Function::new(
                "slice",
                [Overload::member("list_slice", [items(), Int, Int], items(), SLICE, |_, arguments| {
                    slice(list(arguments, 0)?, int(arguments, 1)?, int(arguments, 2)?)
                })],
            ),
            Function::new(
                "sort",
                [
                    sort("list_int_sort", Int, SORT),
                    sort("list_uint_sort", Uint, SORT),
                    sort("list_double_sort", Double, SORT),
                    sort("list_bool_sort", Bool, SORT),
                    sort("list_google.protobuf.Duration_sort", Duration, SORT),
                    sort("list_google.protobuf.Timestamp_sort", Timestamp, SORT),
                    sort("list_string_sort", Type::String, SORT_TEXTS),
                    sort("list_bytes_sort", Bytes, SORT_TEXTS),
                ],
            )
            .calling(of_lists),
        ];
    since(34, functions)
}

fn sort(id: &'static str, of: Type, cost: Cost) -> Overload {
    Overload::member(id, [Type::list(of.clone())], Type::list(of), cost, |_, arguments| {
        let list = list(arguments, 0)?;
        sort_by(list, list)
    })
}

fn sort_by_keys(id: &'static str, of: Type, cost: Cost) -> Overload {
    let items = || Type::list(Type::param("T"));
    Overload::member(id, [items(), Type::list(of)], items(), cost, |_, arguments| {
        sort_by(list(arguments, 0)?, list(arguments, 1)?)
    })
}

/// Estimates the cost of comparing each pair of elements of the argument at `at`, and of creating the resulting list.
fn compare_all(sizes: &Sizes<'_, '_>, at: usize, text_factor: f64) -> Estimate {
    let size = sizes.size(at);
    allocate_list(model::COMPARE_PAIR + text_factor, size.times(size))
}

fn compare_pairs(called: &Called<'_, '_>, at: usize) -> u64 {
    let list = called.arguments.get(at).unwrap_or_else(|| called.first());
    let begins_with_text = match list {
        Value::List(list) => matches!(list.get(0), Some(Ok(Value::String(_) | Value::Bytes(_)))),
        _ => false,
    };
    let text_factor = if begins_with_text { model::TRAVERSAL } else { 0.0 };
    let size = list.size();
    actual::allocate_list(model::COMPARE_PAIR + text_factor, size.saturating_mul(size))
}

fn slice<'a>(list: &List<'a>, start: i64, end: i64) -> Result<Value<'a>, EvalError> {
    let refused = |why: &str| Err(EvalError::new(format!("cannot slice({start}, {end}), {why}")));
    let (Ok(first), Ok(last)) = (usize::try_from(start), usize::try_from(end)) else {
        return refused("negative indexes not supported");
    };
    if start > end {
        return refused("start index must be less than or equal to end index");
    }
    if list.len() < last {
        return refused(&format!("list is length {}", list.len()));
    }
    Ok(Value::list((first..last).filter_map(|at| list.get(at)).map(Value::kept).collect()))
}

fn cannot_flatten(arguments: &[Value<'_>]) -> EvalError {
    let types: Vec<String> = arguments.iter().map(|argument| show(&Value::ty(argument.type_of()))).collect();
    let (target, depth) =
        types.split_first().map_or(("", ""), |(target, depth)| (target, depth.first().map_or("", String::as_str)));
    EvalError::no_overload_of(format!("{target}.flatten({depth})"))
}

fn flatten<'a>(list: &List<'a>, depth: i64) -> Result<Value<'a>, EvalError> {
    if depth < 0 {
        return Err(EvalError::new("level must be non-negative"));
    }
    let mut items = Vec::with_capacity(list.len());
    collect_flat(list, depth, &mut items)?;
    Ok(Value::list(items))
}

/// Errors: there are more than [`SUM_ITEMS_MAX`]. The cost is that of the outermost list, whose items may share their
/// parts.
fn collect_flat<'a>(list: &List<'a>, depth: i64, items: &mut Vec<Value<'a>>) -> Result<(), EvalError> {
    for item in list.values() {
        work::step();
        match item {
            Value::List(inner) if depth > 0 => collect_flat(&inner, depth - 1, items)?,
            _ if items.len() == SUM_ITEMS_MAX => return Err(too_many_items()),
            item => items.push(item),
        }
    }
    Ok(())
}

fn range<'a>(count: i64) -> Result<Value<'a>, EvalError> {
    if count < 0 {
        return Err(EvalError::new(format!("lists.range: size must be non-negative, got {count}")));
    }
    if count > RANGE_MAX {
        return Err(EvalError::new(format!("lists.range: size {count} exceeds maximum allowed ({RANGE_MAX})")));
    }
    Ok(Value::list((0..count).map(Value::Int).collect()))
}

fn distinct<'a>(list: &List<'a>) -> Result<Value<'a>, EvalError> {
    if list.is_empty() {
        return Ok(Value::List(list.clone()));
    }
    let mut unique: Vec<Value<'a>> = Vec::new();
    for item in list.values() {
        if !unique.iter().any(|known| item.is(known) == Ok(true)) {
            unique.push(item);
        }
    }
    Ok(Value::list(unique))
}

/// Sorts `list` by `keys`; items with equal keys are in the order in which Go's sort leaves them.
fn sort_by<'a>(list: &List<'a>, keys: &List<'a>) -> Result<Value<'a>, EvalError> {
    if list.len() != keys.len() {
        return Err(EvalError::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    // For an empty list, the reference returns the list of keys.
    let nothing = keys;
    let keys: Vec<_> = keys.values().collect();
    let Some(first) = keys.first() else { return Ok(Value::List(nothing.clone())) };
    if !is_ordered(first) {
        return Err(EvalError::new("list elements must be comparable"));
    }
    let kind = std::mem::discriminant(first);
    if keys.len() > 1 && keys.iter().any(|key| std::mem::discriminant(key) != kind) {
        return Err(EvalError::new("list elements must have the same type"));
    }
    let indices = sort_indices(keys.len(), |left, right| {
        let order = keys.get(left).zip(keys.get(right)).and_then(|(left, right)| compare(left, right).ok());
        order.is_some_and(std::cmp::Ordering::is_lt)
    });
    Ok(Value::list(indices.into_iter().filter_map(|at| list.get(at)).map(Value::kept).collect()))
}
