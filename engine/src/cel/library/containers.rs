//! Lists and maps: `[…]`, `in`, `size`.

use super::arguments::{list, map, value};
use crate::cel::ast::operators;
use crate::cel::cost::{Cost, Estimate, model};
use crate::cel::eval::{CallScope, EvalError, Value};
use crate::cel::function::{Calling, Function, Mismatch, Overload, Trait};
use crate::cel::types::Type::{self, Bool, Bytes, Int, String};

/// One step; the result has the size of the list's elements.
const ITEM: Cost = Cost::of_overload(|_| Estimate { step: Some("@items"), ..Estimate::ONE }, |_| model::CALL);

/// One step; the result has the size of the map's values.
const ENTRY: Cost = Cost::of_overload(|_| Estimate { step: Some("@values"), ..Estimate::ONE }, |_| model::CALL);

/// Every item is compared.
const IN_LIST: Cost =
    Cost::of_overload(|sizes| Estimate::of(sizes.size(1).scale(1.0)), |called| called.content_size(1));

pub(super) fn functions() -> Vec<Function> {
    vec![
        Function::new(
            operators::INDEX,
            [
                Overload::evaluated("index_list", [list_type(), Int], a(), ITEM),
                Overload::evaluated("index_map", [map_type(), a()], Type::param("B"), ENTRY),
            ],
        ),
        Function::new(operators::IN, is_in()).calling(Calling {
            mismatch: Mismatch::Bare,
            is_single: true,
            ..Calling::USUAL
        }),
        Function::new("_in_", is_in()),
        Function::new("in", is_in()),
        Function::new(
            "size",
            [
                Overload::global("size_bytes", [Bytes], Int, Cost::One, size),
                Overload::member("bytes_size", [Bytes], Int, Cost::One, size),
                Overload::global("size_list", [list_type()], Int, Cost::One, size),
                Overload::member("list_size", [list_type()], Int, Cost::One, size),
                Overload::global("size_map", [map_type()], Int, Cost::One, size),
                Overload::member("map_size", [map_type()], Int, Cost::One, size),
                Overload::global("size_string", [String], Int, Cost::One, size),
                Overload::member("string_size", [String], Int, Cost::One, size),
            ],
        )
        .calling(Calling::by_trait(Trait::Sizer)),
    ]
}

fn a() -> Type {
    Type::param("A")
}

fn list_type() -> Type {
    Type::list(a())
}

fn map_type() -> Type {
    Type::map(a(), Type::param("B"))
}

fn is_in() -> [Overload; 2] {
    [
        Overload::global("in_list", [a(), list_type()], Bool, IN_LIST, |_, arguments| {
            list(arguments, 1)?.contains(value(arguments, 0)?).map(Value::Bool)
        }),
        Overload::global("in_map", [a(), map_type()], Bool, Cost::One, |_, arguments| {
            map(arguments, 1)?.contains(value(arguments, 0)?).map(Value::Bool)
        }),
    ]
}

fn size<'a>(_: &mut CallScope<'_>, arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
    match value(arguments, 0)? {
        sized @ (Value::Bytes(_) | Value::List(_) | Value::Map(_) | Value::String(_)) => {
            Ok(Value::Int(i64::try_from(sized.size()).unwrap_or(i64::MAX)))
        }
        _ => Err(EvalError::no_such_overload()),
    }
}
