//! Functions of lists.

use super::arguments::{int, list, value};
use super::arithmetic::add;
use super::comparison::{compare, is_ordered};
use super::order::sort_indices;
use crate::cel::eval::list::List;
use crate::cel::eval::show::show;
use crate::cel::eval::value::Duration;
use crate::cel::eval::{EvalError, Function, Value};

/// The longest list that `lists.range` makes.
const RANGE_MAX: i64 = 1_000_000;

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "in_list" => |_, arguments| list(arguments, 1)?.contains(value(arguments, 0)?).map(Value::Bool),
        "list_includes_dyn_dyn" => |_, arguments| {
            let wanted = value(arguments, 1)?;
            Ok(Value::Bool(match value(arguments, 0)? {
                Value::List(list) => place_of(list, wanted).is_some(),
                other => other.is(wanted) == Ok(true),
            }))
        },
        "list_a_index_of_int" => |_, arguments| {
            let place = place_of(list(arguments, 0)?, value(arguments, 1)?);
            Ok(Value::Int(place.map_or(-1, |place| place as i64)))
        },
        "list_a_last_index_of_int" => |_, arguments| {
            let (list, wanted) = (list(arguments, 0)?, value(arguments, 1)?);
            let place = (0..list.len()).rev().find(|at| equals_at(list, *at, wanted));
            Ok(Value::Int(place.map_or(-1, |place| place as i64)))
        },
        "list_first" => |_, arguments| optional_item(list(arguments, 0)?, Some(0)),
        "list_last" => |_, arguments| {
            let list = list(arguments, 0)?;
            optional_item(list, list.len().checked_sub(1))
        },
        "list_slice" => |_, arguments| slice(list(arguments, 0)?, int(arguments, 1)?, int(arguments, 2)?),
        "list_flatten" => |_, arguments| match arguments {
            [Value::List(list)] => flatten(list, 1),
            _ => Err(cannot_flatten(arguments)),
        },
        "list_flatten_int" => |_, arguments| match arguments {
            [Value::List(list), Value::Int(depth)] => flatten(list, *depth),
            _ => Err(cannot_flatten(arguments)),
        },
        "lists_range" => |_, arguments| range(int(arguments, 0)?),
        "list_reverse" => |_, arguments| {
            let mut items = list(arguments, 0)?.to_vec()?;
            items.reverse();
            Ok(Value::list(items))
        },
        "list_distinct" => |_, arguments| distinct(list(arguments, 0)?),
        _ => return templated(id),
    })
}

/// Overloads that differ only in the type of the items.
fn templated(id: &str) -> Option<Function> {
    let rest = id.strip_prefix("list_")?;
    if let Some(ty) = rest.strip_suffix("_sort") {
        return is_ordered_type(ty).then_some(|_, arguments| {
            let list = list(arguments, 0)?;
            sort_by(list, list)
        });
    }
    if let Some(ty) = rest.strip_suffix("_sortByAssociatedKeys") {
        return is_ordered_type(ty).then_some(|_, arguments| sort_by(list(arguments, 0)?, list(arguments, 1)?));
    }
    let (ty, operation) = rest.split_once('_')?;
    let is_doubled = operation.split_once('_').is_some_and(|(_, again)| again == ty);
    Some(match (operation.split('_').next()?, ty) {
        ("is", "int" | "uint" | "double" | "bool" | "duration" | "timestamp" | "string" | "bytes")
            if operation == "is_sorted_bool" =>
        {
            |_, arguments| is_sorted(list(arguments, 0)?).map(Value::Bool)
        }
        ("max", "int" | "uint" | "double" | "bool" | "duration" | "timestamp" | "string" | "bytes") if is_doubled => {
            |_, arguments| extreme(list(arguments, 0)?, "max", std::cmp::Ordering::Less)
        }
        ("min", "int" | "uint" | "double" | "bool" | "duration" | "timestamp" | "string" | "bytes") if is_doubled => {
            |_, arguments| extreme(list(arguments, 0)?, "min", std::cmp::Ordering::Greater)
        }
        ("sum", "int") if is_doubled => |_, arguments| sum(list(arguments, 0)?, Value::Int(0)),
        ("sum", "uint") if is_doubled => |_, arguments| sum(list(arguments, 0)?, Value::Uint(0)),
        ("sum", "double") if is_doubled => |_, arguments| sum(list(arguments, 0)?, Value::Double(0.0)),
        ("sum", "duration") if is_doubled => |_, arguments| sum(list(arguments, 0)?, Value::Duration(Duration(0))),
        _ => return None,
    })
}

fn is_ordered_type(name: &str) -> bool {
    matches!(
        name,
        "int"
            | "uint"
            | "double"
            | "bool"
            | "google.protobuf.Duration"
            | "google.protobuf.Timestamp"
            | "string"
            | "bytes"
    )
}

/// What can't be compared is not equal.
fn equals_at<'a>(list: &List<'a>, at: usize, wanted: &Value<'a>) -> bool {
    list.get(at).is_some_and(|item| item.is_ok_and(|item| item.is(wanted) == Ok(true)))
}

fn place_of<'a>(list: &List<'a>, wanted: &Value<'a>) -> Option<usize> {
    (0..list.len()).find(|at| equals_at(list, *at, wanted))
}

fn optional_item<'a>(list: &List<'a>, at: Option<usize>) -> Result<Value<'a>, EvalError> {
    let item = at.and_then(|at| list.get(at)).transpose()?;
    Ok(item.map_or(Value::OPTIONAL_NONE, Value::optional_of))
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
    let items: Result<Vec<_>, _> = (first..last).filter_map(|at| list.get(at)).collect();
    items.map(Value::list)
}

fn cannot_flatten(arguments: &[Value<'_>]) -> EvalError {
    let types: Vec<String> = arguments.iter().map(|argument| show(&Value::ty(argument.type_of()))).collect();
    let (target, depth) =
        types.split_first().map_or(("", ""), |(target, depth)| (target, depth.first().map_or("", String::as_str)));
    EvalError::new(format!("no such overload: {target}.flatten({depth})"))
}

fn flatten<'a>(list: &List<'a>, depth: i64) -> Result<Value<'a>, EvalError> {
    if depth < 0 {
        return Err(EvalError::new("level must be non-negative"));
    }
    let mut items = Vec::with_capacity(list.len());
    collect_flat(list, depth, &mut items)?;
    Ok(Value::list(items))
}

fn collect_flat<'a>(list: &List<'a>, depth: i64, items: &mut Vec<Value<'a>>) -> Result<(), EvalError> {
    for item in list.iter() {
        match item? {
            Value::List(inner) if depth > 0 => collect_flat(&inner, depth - 1, items)?,
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
    for item in list.iter() {
        let item = item?;
        if !unique.iter().any(|known| item.is(known) == Ok(true)) {
            unique.push(item);
        }
    }
    Ok(Value::list(unique))
}

/// `list` in the order of `keys`; equal keys come as Go's sort leaves them.
fn sort_by<'a>(list: &List<'a>, keys: &List<'a>) -> Result<Value<'a>, EvalError> {
    if list.len() != keys.len() {
        return Err(EvalError::new(format!(
            "@sortByAssociatedKeys() expected a list of the same size as the associated keys list, but got {} and {} \
             elements respectively",
            list.len(),
            keys.len()
        )));
    }
    // Of nothing, the reference gives the keys back.
    let nothing = keys;
    let keys = keys.to_vec()?;
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
    let items: Result<Vec<_>, _> = indices.into_iter().filter_map(|at| list.get(at)).collect();
    items.map(Value::list)
}

fn is_sorted(list: &List<'_>) -> Result<bool, EvalError> {
    let mut previous: Option<Value<'_>> = None;
    for item in list.iter() {
        let item = item?;
        if !is_ordered(&item) {
            return Err(EvalError::no_such_overload());
        }
        // What can't be compared is no fault.
        if previous.is_some_and(|previous| compare(&previous, &item).is_ok_and(std::cmp::Ordering::is_gt)) {
            return Ok(false);
        }
        previous = Some(item);
    }
    Ok(true)
}

/// The first item that no other is before; `worse` is the order of an item that gives way to the next one.
fn extreme<'a>(list: &List<'a>, name: &str, worse: std::cmp::Ordering) -> Result<Value<'a>, EvalError> {
    let mut found: Option<Value<'a>> = None;
    for item in list.iter() {
        let item = item?;
        if !is_ordered(&item) {
            return Err(EvalError::no_such_overload());
        }
        match &found {
            Some(found) if compare(found, &item) != Ok(worse) => {}
            _ => found = Some(item),
        }
    }
    found.ok_or_else(|| EvalError::new(format!("{name} called on empty list")))
}

fn sum<'a>(list: &List<'a>, zero: Value<'a>) -> Result<Value<'a>, EvalError> {
    list.iter().try_fold(zero, |sum, item| add(&sum, &item?))
}
