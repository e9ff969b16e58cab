//! The functions that Kubernetes adds to lists: sums, order, positions of elements.

use std::cmp::Ordering;

use super::arguments::{list, value};
use super::arithmetic::add;
use super::comparison::{compare, is_ordered};
use crate::cel::cost::formula::EACH_ELEMENT;
use crate::cel::cost::{Cost, Estimate, actual};
use crate::cel::eval::list::List;
use crate::cel::eval::value::Duration;
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Function, Overload};
use crate::cel::types::Type::{self, Bool, Bytes, Double, Dyn, Int, String, Timestamp, Uint};

/// Every element is traversed once. A value that is not known to be a list is treated as one.
const INCLUDES: Cost = Cost::of_name(
    |sizes| Estimate::of(sizes.each_element().unwrap_or_else(|| sizes.size(0))),
    |called| actual::traverse(called.first()),
);

/// Declares `list(T).isSorted() -> bool` for all types with an order.
macro_rules! is_sorted {
    ($($of:literal: $type:expr),*) => {
        [$(Overload::member(
            concat!("list_", $of, "_is_sorted_bool"),
            [Type::list($type)],
            Bool,
            EACH_ELEMENT,
            |_, arguments| is_sorted(list(arguments, 0)?).map(Value::Bool),
        )),*]
    };
}

/// Declares `list(T).function() -> T`.
macro_rules! of_elements {
    ($name:literal, $run:expr; $($of:literal: $type:expr),*) => {
        Function::new($name, [$(of_elements!($name, $of, $type, $run)),*])
    };
    ($name:literal, $of:literal, $type:expr, $run:expr) => {
        Overload::member(
            concat!("list_", $of, "_", $name, "_", $of),
            [Type::list($type)],
            $type,
            EACH_ELEMENT,
            $run,
        )
    };
}

/// Declares `min` or `max` for all types with an order.
macro_rules! extreme {
    ($name:literal, $worse:expr) => {
        of_elements!(
            $name, |_, arguments| extreme(list(arguments, 0)?, $name, $worse);
            "int": Int, "uint": Uint, "double": Double, "bool": Bool, "duration": Type::Duration,
            "timestamp": Timestamp, "string": String, "bytes": Bytes
        )
    };
}

pub(super) fn functions() -> Vec<Function> {
    let item = || Type::param("A");
    vec![
        Function::new(
            "isSorted",
            is_sorted!(
                "int": Int, "uint": Uint, "double": Double, "bool": Bool, "duration": Type::Duration,
                "timestamp": Timestamp, "string": String, "bytes": Bytes
            ),
        ),
        Function::new(
            "sum",
            [
                of_elements!("sum", "int", Int, |_, arguments| sum(list(arguments, 0)?, Value::Int(0))),
                of_elements!("sum", "uint", Uint, |_, arguments| sum(list(arguments, 0)?, Value::Uint(0))),
                of_elements!("sum", "double", Double, |_, arguments| sum(list(arguments, 0)?, Value::Double(0.0))),
                of_elements!("sum", "duration", Type::Duration, |_, arguments| {
                    sum(list(arguments, 0)?, Value::Duration(Duration(0)))
                }),
            ],
        ),
        extreme!("max", Ordering::Less),
        extreme!("min", Ordering::Greater),
        Function::new(
            "indexOf",
            [Overload::member(
                "list_a_index_of_int",
                [Type::list(item()), item()],
                Int,
                EACH_ELEMENT,
                |_, arguments| {
                    let place = place_of(list(arguments, 0)?, value(arguments, 1)?);
                    Ok(Value::Int(place.map_or(-1, |place| place as i64)))
                },
            )],
        ),
        Function::new(
            "lastIndexOf",
            [Overload::member(
                "list_a_last_index_of_int",
                [Type::list(item()), item()],
                Int,
                EACH_ELEMENT,
                |_, arguments| {
                    let (list, wanted) = (list(arguments, 0)?, value(arguments, 1)?);
                    let place = (0..list.len()).rev().find(|at| equals_at(list, *at, wanted));
                    Ok(Value::Int(place.map_or(-1, |place| place as i64)))
                },
            )],
        ),
        Function::new(
            "includes",
            [Overload::member("list_includes_dyn_dyn", [Dyn, Dyn], Bool, INCLUDES, |_, arguments| {
                let wanted = value(arguments, 1)?;
                Ok(Value::Bool(match value(arguments, 0)? {
                    Value::List(list) => place_of(list, wanted).is_some(),
                    other => other.is(wanted) == Ok(true),
                }))
            })
            .since(37)],
        ),
    ]
}

/// Values that cannot be compared are not equal.
fn equals_at<'a>(list: &List<'a>, at: usize, wanted: &Value<'a>) -> bool {
    list.get(at).is_some_and(|item| item.is_ok_and(|item| item.is(wanted) == Ok(true)))
}

fn place_of<'a>(list: &List<'a>, wanted: &Value<'a>) -> Option<usize> {
    (0..list.len()).find(|at| equals_at(list, *at, wanted))
}

fn is_sorted(list: &List<'_>) -> Result<bool, EvalError> {
    let mut previous: Option<Value<'_>> = None;
    for item in list.iter() {
        let item = item?;
        if !is_ordered(&item) {
            return Err(EvalError::no_such_overload());
        }
        // Values that cannot be compared are not an error.
        if previous.is_some_and(|previous| compare(&previous, &item).is_ok_and(Ordering::is_gt)) {
            return Ok(false);
        }
        previous = Some(item);
    }
    Ok(true)
}

/// The smallest or the largest item, the first of several equal ones. `worse` is the order of an item, compared with a
/// later one, that the later one replaces.
fn extreme<'a>(list: &List<'a>, name: &str, worse: Ordering) -> Result<Value<'a>, EvalError> {
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
