//! Optional values: `optional.of`, `.value()`, `?.` and the other functions and operators on them.

use super::arguments::{list, value};
use super::since;
use crate::cel::ast::operators;
use crate::cel::cost::Cost;
use crate::cel::eval::list::List;
use crate::cel::eval::map::Map;
use crate::cel::eval::show::show;
use crate::cel::eval::value::Timestamp;
use crate::cel::eval::{CallScope, EvalError, Value};
use crate::cel::function::{Function, Overload};
use crate::cel::types::Type::{self, Bool, Dyn, Int, String};

pub(super) fn functions() -> Vec<Function> {
    let functions = vec![
        Function::new(
            operators::OPTIONAL_SELECT,
            [Overload::evaluated("select_optional_field", [Dyn, String], optional(v()), Cost::One)],
        ),
        Function::new(
            operators::OPTIONAL_INDEX,
            [
                Overload::evaluated("list_optindex_optional_int", [Type::list(v()), Int], optional(v()), Cost::One),
                Overload::evaluated(
                    "optional_list_optindex_optional_int",
                    [optional(Type::list(v())), Int],
                    optional(v()),
                    Cost::One,
                ),
                Overload::evaluated("map_optindex_optional_value", [map(), k()], optional(v()), Cost::One),
                Overload::evaluated(
                    "optional_map_optindex_optional_value",
                    [optional(map()), k()],
                    optional(v()),
                    Cost::One,
                ),
            ],
        ),
        Function::new(
            operators::INDEX,
            [
                Overload::evaluated(
                    "optional_list_index_int",
                    [optional(Type::list(v())), Int],
                    optional(v()),
                    Cost::One,
                ),
                Overload::evaluated("optional_map_index_value", [optional(map()), k()], optional(v()), Cost::One),
            ],
        ),
        Function::new(
            "first",
            [Overload::member("list_first", [Type::list(v())], optional(v()), Cost::One, |_, arguments| {
                Ok(item(list(arguments, 0)?, Some(0)))
            })
            .built(33)],
        ),
        Function::new(
            "hasValue",
            [Overload::member("optional_hasValue", [optional(v())], Bool, Cost::One, |_, arguments| {
                match value(arguments, 0)? {
                    Value::Optional(optional) => Ok(Value::Bool(optional.is_some())),
                    _ => Err(EvalError::no_such_overload()),
                }
            })],
        ),
        Function::new(
            "last",
            [Overload::member("list_last", [Type::list(v())], optional(v()), Cost::One, |_, arguments| {
                let list = list(arguments, 0)?;
                Ok(item(list, list.len().checked_sub(1)))
            })
            .built(33)],
        ),
        Function::new(
            "optional.none",
            [Overload::global("optional_none", [], optional(v()), Cost::One, |_, _| Ok(Value::OPTIONAL_NONE))],
        ),
        Function::new(
            "optional.of",
            [Overload::global("optional_of", [v()], optional(v()), Cost::One, |_, arguments| {
                Ok(Value::optional_of(value(arguments, 0)?.clone()))
            })],
        ),
        Function::new(
            "optional.ofNonZeroValue",
            [Overload::global("optional_ofNonZeroValue", [v()], optional(v()), Cost::One, |_, arguments| {
                let value = value(arguments, 0)?;
                Ok(if is_zero(value) { Value::OPTIONAL_NONE } else { Value::optional_of(value.clone()) })
            })],
        ),
        Function::new(
            "optional.unwrap",
            [Overload::global("optional_unwrap", [optionals()], Type::list(v()), Cost::One, unwrap).built(33)],
        ),
        Function::new(
            "or",
            [Overload::evaluated_member(
                "optional_or_optional",
                [optional(v()), optional(v())],
                optional(v()),
                Cost::One,
            )],
        ),
        Function::new(
            "orValue",
            [Overload::evaluated_member("optional_orValue_value", [optional(v()), v()], v(), Cost::One)],
        ),
        Function::new(
            "unwrapOpt",
            [Overload::member("optional_unwrapOpt", [optionals()], Type::list(v()), Cost::One, unwrap).built(33)],
        ),
        Function::new(
            "value",
            [Overload::member("optional_value", [optional(v())], v(), Cost::One, |_, arguments| {
                match value(arguments, 0)? {
                    Value::Optional(Some(value)) => Value::clone(value).read(),
                    Value::Optional(None) => Err(EvalError::new("optional.none() dereference")),
                    _ => Err(EvalError::no_such_overload()),
                }
            })],
        ),
    ];
    since(28, functions)
}

fn k() -> Type {
    Type::param("K")
}

fn v() -> Type {
    Type::param("V")
}

fn map() -> Type {
    Type::map(k(), v())
}

fn optional(of: Type) -> Type {
    Type::optional(of)
}

fn optionals() -> Type {
    Type::list(optional(v()))
}

fn item<'a>(list: &List<'a>, at: Option<usize>) -> Value<'a> {
    let item = at.and_then(|at| list.get(at)).map(Value::kept);
    item.map_or(Value::OPTIONAL_NONE, Value::optional_of)
}

fn unwrap<'a>(_: &mut CallScope<'_>, arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    let mut values = Vec::new();
    for item in list(arguments, 0)?.iter() {
        match item? {
            Value::Optional(optional) => values.extend(optional.map(|value| Value::clone(&value))),
            other => return Err(EvalError::new(format!("value {} is not optional", show(&other)))),
        }
    }
    Ok(Value::list(values))
}

/// Whether a value is the zero value of its type. Lists and maps of the host never are.
fn is_zero(value: &Value<'_>) -> bool {
    /// The start of the year 1.
    const NO_TIME: Timestamp = Timestamp { seconds: -62_135_596_800, nanos: 0, offset_seconds: 0 };
    match value {
        Value::Null => true,
        Value::Bool(truth) => !truth,
        Value::Int(number) => *number == 0,
        Value::Uint(number) => *number == 0,
        Value::Double(number) => *number == 0.0,
        Value::String(text) => text.is_empty(),
        Value::Bytes(bytes) => bytes.is_empty(),
        Value::Duration(length) => length.0 == 0,
        Value::Timestamp(timestamp) => *timestamp == NO_TIME,
        Value::List(List::Host { .. }) | Value::Map(Map::Host { .. }) => false,
        Value::List(list) => list.is_empty(),
        Value::Map(map) => map.is_empty(),
        Value::Struct(value) => !value.is_json_patch() && value.is_empty(),
        Value::Opaque(value) => value.is_message(),
        Value::Type(_) | Value::Optional(_) | Value::Preserved(_) | Value::Unfit(_) => false,
    }
}
