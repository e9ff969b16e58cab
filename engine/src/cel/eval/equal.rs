//! Equality of values.

use super::error::EvalError;
use super::list::List;
use super::map::Map;
use super::value::{Value, type_name};
use crate::work;

impl<'a> Value<'a> {
    /// Evaluates `self == other`. Values of different types differ; only comparing the host's lists and maps with
    /// anything else is an error.
    ///
    /// # Errors
    /// The host's values do not fit their schema or cannot be compared.
    pub fn is(&self, other: &Value<'a>) -> Result<bool, EvalError> {
        match (self, other) {
            (Value::Null, Value::Null) => Ok(true),
            (Value::Null, _) | (_, Value::Null) => Ok(false),
            _ => self.equals(other),
        }
    }

    /// Equality within lists and maps, where null is an ordinary value.
    pub(super) fn equals(&self, other: &Value<'a>) -> Result<bool, EvalError> {
        work::step();
        Ok(match (self, other) {
            (Value::Null, Value::Null) => true,
            (Value::Bool(left), Value::Bool(right)) => left == right,
            (Value::Int(left), Value::Int(right)) => left == right,
            (Value::Int(left), Value::Uint(right)) => u64::try_from(*left) == Ok(*right),
            (Value::Uint(left), Value::Int(right)) => Ok(*left) == u64::try_from(*right),
            (Value::Uint(left), Value::Uint(right)) => left == right,
            (Value::Int(int), Value::Double(double)) | (Value::Double(double), Value::Int(int)) => {
                compares_to_int(*double, *int)
            }
            (Value::Uint(uint), Value::Double(double)) | (Value::Double(double), Value::Uint(uint)) => {
                compares_to_uint(*double, *uint)
            }
            (Value::Double(left), Value::Double(right)) => left == right,
            (Value::String(left), Value::String(right)) => left.as_str() == right.as_str(),
            (Value::Bytes(left), Value::Bytes(right)) => left == right,
            (Value::Duration(left), Value::Duration(right)) => left == right,
            (Value::Timestamp(left), Value::Timestamp(right)) => left == right,
            (Value::List(left), Value::List(right)) => return left.equals(right),
            (Value::List(List::Host { .. }), _) => return Err(EvalError::no_such_overload()),
            (Value::Map(left), Value::Map(right)) => return left.equals(right),
            (Value::Map(Map::Host { .. }), _) => return Err(EvalError::no_such_overload()),
            (Value::Type(left), Value::Type(right)) => type_name(left) == type_name(right),
            (Value::Optional(left), Value::Optional(right)) => match (left, right) {
                (Some(left), Some(right)) => return left.equals(right),
                (left, right) => left.is_none() && right.is_none(),
            },
            (Value::Struct(left), Value::Struct(right)) => return left.equals(right),
            (Value::Opaque(left), Value::Opaque(right)) if left.is_message() => {
                left.equals(right.as_ref()).unwrap_or(false)
            }
            (Value::Opaque(left), Value::Opaque(right)) => {
                return left.equals(right.as_ref()).ok_or_else(EvalError::no_such_overload);
            }
            (Value::Opaque(left), _) if left.is_message() => false,
            (Value::Opaque(_), _) => return Err(EvalError::no_such_overload()),
            (Value::Preserved(left), Value::Preserved(right)) => left == right,
            (Value::Unfit(error), _) => return Err((**error).clone()),
            _ => false,
        })
    }
}

/// Equality as in cel-go: the integer is rounded to a double.
fn compares_to_int(double: f64, int: i64) -> bool {
    double >= i64::MIN as f64 && double <= i64::MAX as f64 && double == int as f64
}

fn compares_to_uint(double: f64, uint: u64) -> bool {
    double >= 0.0 && double <= u64::MAX as f64 && double == uint as f64
}
