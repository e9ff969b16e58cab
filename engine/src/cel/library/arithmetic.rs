//! `+`, `-`, `*`, `/`, `%`, negation.

use super::arguments::{INT_OVERFLOW, UINT_OVERFLOW, value};
use super::time;
use crate::cel::ast::operators;
use crate::cel::cost::{Cost, Estimate, actual, model};
use crate::cel::eval::value::Duration;
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Calling, Function, Overload, Trait};
use crate::cel::types::Type::{self, Bytes, Double, Int, String, Timestamp, Uint};

/// Both operands are read and copied.
const CONCATENATE: Cost = Cost::of_overload(
    |sizes| {
        let both = sizes.size(0).plus(sizes.size(1));
        Estimate { entry: sizes.either_entry(0, 1), ..Estimate::of(both.scale(model::TRAVERSAL)).with_result(both) }
    },
    |called| actual::scale(called.content_size(0).saturating_add(called.content_size(1)), model::TRAVERSAL),
);

/// One step, because lists are joined without reading their elements.
const CONCATENATE_LISTS: Cost = Cost::of_overload(
    |sizes| Estimate {
        entry: sizes.either_entry(0, 1),
        ..Estimate::ONE.with_result(sizes.size(0).plus(sizes.size(1)))
    },
    |_| model::CALL,
);

pub(super) fn functions() -> Vec<Function> {
    vec![
        Function::new(
            operators::ADD,
            [
                sum("add_bytes", [Bytes, Bytes], Bytes, CONCATENATE),
                sum("add_double", [Double, Double], Double, Cost::One),
                sum("add_duration_duration", [Type::Duration, Type::Duration], Type::Duration, Cost::One),
                sum("add_duration_timestamp", [Type::Duration, Timestamp], Timestamp, Cost::One),
                sum("add_timestamp_duration", [Timestamp, Type::Duration], Timestamp, Cost::One),
                sum("add_int64", [Int, Int], Int, Cost::One),
                sum("add_list", [list(), list()], list(), CONCATENATE_LISTS),
                sum("add_string", [String, String], String, CONCATENATE),
                sum("add_uint64", [Uint, Uint], Uint, Cost::One),
            ],
        )
        .calling(Calling::by_trait(Trait::Adder)),
        Function::new(
            operators::SUBTRACT,
            [
                difference("subtract_double", [Double, Double], Double),
                difference("subtract_duration_duration", [Type::Duration, Type::Duration], Type::Duration),
                difference("subtract_int64", [Int, Int], Int),
                difference("subtract_timestamp_duration", [Timestamp, Type::Duration], Timestamp),
                difference("subtract_timestamp_timestamp", [Timestamp, Timestamp], Type::Duration),
                difference("subtract_uint64", [Uint, Uint], Uint),
            ],
        )
        .calling(Calling::by_trait(Trait::Subtractor)),
        Function::new(
            operators::MULTIPLY,
            [product("multiply_double", Double), product("multiply_int64", Int), product("multiply_uint64", Uint)],
        )
        .calling(Calling::by_trait(Trait::Multiplier)),
        Function::new(
            operators::DIVIDE,
            [quotient("divide_double", Double), quotient("divide_int64", Int), quotient("divide_uint64", Uint)],
        )
        .calling(Calling::by_trait(Trait::Divider)),
        Function::new(operators::MODULO, [remainder("modulo_int64", Int), remainder("modulo_uint64", Uint)])
            .calling(Calling::by_trait(Trait::Modder)),
        Function::new(operators::NEGATE, [negation("negate_double", Double), negation("negate_int64", Int)])
            .calling(Calling::by_trait(Trait::Negator)),
    ]
}

fn list() -> Type {
    Type::list(Type::param("A"))
}

fn sum(id: &'static str, params: [Type; 2], result: Type, cost: Cost) -> Overload {
    Overload::global(id, params, result, cost, |_, arguments| add(value(arguments, 0)?, value(arguments, 1)?))
}

fn difference(id: &'static str, params: [Type; 2], result: Type) -> Overload {
    Overload::global(id, params, result, Cost::One, |_, arguments| subtract(value(arguments, 0)?, value(arguments, 1)?))
}

fn product(id: &'static str, ty: Type) -> Overload {
    Overload::global(id, [ty.clone(), ty.clone()], ty, Cost::One, |_, arguments| {
        multiply(value(arguments, 0)?, value(arguments, 1)?)
    })
}

fn quotient(id: &'static str, ty: Type) -> Overload {
    Overload::global(id, [ty.clone(), ty.clone()], ty, Cost::One, |_, arguments| {
        divide(value(arguments, 0)?, value(arguments, 1)?)
    })
}

fn remainder(id: &'static str, ty: Type) -> Overload {
    Overload::global(id, [ty.clone(), ty.clone()], ty, Cost::One, |_, arguments| {
        modulo(value(arguments, 0)?, value(arguments, 1)?)
    })
}

fn negation(id: &'static str, ty: Type) -> Overload {
    Overload::global(id, [ty.clone()], ty, Cost::One, |_, arguments| negate(value(arguments, 0)?))
}

fn int<'a>(number: Option<i64>) -> Result<Value<'a>, EvalError> {
    number.map(Value::Int).ok_or(INT_OVERFLOW)
}

fn uint<'a>(number: Option<u64>) -> Result<Value<'a>, EvalError> {
    number.map(Value::Uint).ok_or(UINT_OVERFLOW)
}

fn duration<'a>(nanos: Option<i64>) -> Result<Value<'a>, EvalError> {
    nanos.map(|nanos| Value::Duration(Duration(nanos))).ok_or(INT_OVERFLOW)
}

/// `left + right`.
///
/// # Errors
/// The sum does not fit its type, or the values cannot be added.
pub fn add<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_add(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_add(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left + right)),
        (Value::String(left), Value::String(right)) => Ok(Value::string([left.as_str(), right.as_str()].concat())),
        (Value::Bytes(left), Value::Bytes(right)) => Ok(Value::bytes([left.as_ref(), right.as_ref()].concat())),
        (Value::List(left), Value::List(right)) => left.clone().concat(right).map(Value::List),
        (Value::Duration(left), Value::Duration(right)) => duration(left.0.checked_add(right.0)),
        (Value::Duration(length), Value::Timestamp(start)) | (Value::Timestamp(start), Value::Duration(length)) => {
            time::later(*start, *length).map(Value::Timestamp)
        }
        _ => Err(EvalError::no_such_overload()),
    }
}

fn subtract<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_sub(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_sub(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left - right)),
        (Value::Duration(left), Value::Duration(right)) => duration(left.0.checked_sub(right.0)),
        (Value::Timestamp(end), Value::Duration(length)) => {
            let back = length.0.checked_neg().ok_or(INT_OVERFLOW)?;
            time::later(*end, Duration(back)).map(Value::Timestamp)
        }
        (Value::Timestamp(end), Value::Timestamp(start)) => time::between(*start, *end).map(Value::Duration),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn multiply<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (left, right) {
        (Value::Int(left), Value::Int(right)) => int(left.checked_mul(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_mul(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left * right)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn divide<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(EvalError::new("division by zero")),
        (Value::Int(left), Value::Int(right)) => int(left.checked_div(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_div(*right)),
        (Value::Double(left), Value::Double(right)) => Ok(Value::Double(left / right)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn modulo<'a>(left: &Value<'a>, right: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match (left, right) {
        (Value::Int(_), Value::Int(0)) | (Value::Uint(_), Value::Uint(0)) => Err(EvalError::new("modulus by zero")),
        (Value::Int(left), Value::Int(right)) => int(left.checked_rem(*right)),
        (Value::Uint(left), Value::Uint(right)) => uint(left.checked_rem(*right)),
        _ => Err(EvalError::no_such_overload()),
    }
}

fn negate<'a>(number: &Value<'a>) -> Result<Value<'a>, EvalError> {
    match number {
        Value::Int(number) => int(number.checked_neg()),
        Value::Double(number) => Ok(Value::Double(-number)),
        Value::Duration(length) => duration(length.0.checked_neg()),
        _ => Err(EvalError::no_such_overload()),
    }
}
