//! Quantities of resources: `quantity(…)`, `isQuantity(…)`, their order and sums.

use std::cmp::Ordering;
use std::sync::OnceLock;

use super::arguments::{int, opaque, text};
use super::network::downcast;
use crate::cel::eval::value::Opaque;
use crate::cel::eval::{EvalError, Function, Value};
use crate::cel::types::Type;
use crate::meta::quantity::{Error, Quantity};

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "string_to_quantity" => |_, arguments| {
            let quantity = Quantity::parse(text(arguments, 0)?).map_err(|error| EvalError::new(error.to_string()))?;
            Ok(Value::opaque(QuantityValue::new(quantity, false)))
        },
        "is_quantity_string" => |_, arguments| Ok(Value::Bool(Quantity::parse(text(arguments, 0)?).is_ok())),
        "quantity_sign" => |_, arguments| Ok(Value::Int(quantity(arguments, 0)?.signum())),
        "quantity_is_greater_than" => |_, arguments| Ok(Value::Bool(order(arguments)?.is_gt())),
        "quantity_is_less_than" => |_, arguments| Ok(Value::Bool(order(arguments)?.is_lt())),
        "quantity_compare_to" => |_, arguments| Ok(Value::Int(order(arguments)? as i64)),
        "quantity_get_float" => |_, arguments| Ok(Value::Double(quantity(arguments, 0)?.as_approximate_f64())),
        "quantity_get_int" => |_, arguments| {
            let number = quantity(arguments, 0)?.as_i64();
            number.map(Value::Int).ok_or_else(|| EvalError::new("cannot convert value to integer"))
        },
        "quantity_is_integer" => |_, arguments| Ok(Value::Bool(quantity(arguments, 0)?.as_i64().is_some())),
        "quantity_add" => |_, arguments| sum(quantity(arguments, 0)?.add(quantity(arguments, 1)?)),
        "quantity_add_int" => |_, arguments| sum(quantity(arguments, 0)?.add(&Quantity::from_i64(int(arguments, 1)?))),
        "quantity_sub" => |_, arguments| sum(quantity(arguments, 0)?.sub(quantity(arguments, 1)?)),
        "quantity_sub_int" => |_, arguments| sum(quantity(arguments, 0)?.sub(&Quantity::from_i64(int(arguments, 1)?))),
        _ => return None,
    })
}

/// `kubernetes.Quantity`
#[derive(Debug)]
struct QuantityValue {
    quantity: Quantity,
    /// The reference can't compare anything with a sum by `==`, though it can compare a sum with anything.
    is_sum: bool,
    /// What it became when it was compared with a decimal: the reference converts the quantity itself, for all to see.
    decimal: OnceLock<Quantity>,
}

impl QuantityValue {
    fn new(quantity: Quantity, is_sum: bool) -> Self {
        QuantityValue { quantity, is_sum, decimal: OnceLock::new() }
    }

    fn quantity(&self) -> &Quantity {
        self.decimal.get().unwrap_or(&self.quantity)
    }
}

impl Opaque for QuantityValue {
    fn ty(&self) -> Type {
        Type::object("kubernetes.Quantity")
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let other: &QuantityValue = downcast(other)?;
        (!other.is_sum).then(|| self.quantity() == other.quantity())
    }

    fn go_type(&self) -> &'static str {
        if self.is_sum { "*cel.Quantity" } else { "cel.Quantity" }
    }

    fn shown(&self) -> String {
        self.quantity().to_string()
    }
}

fn quantity<'v>(arguments: &'v [Value<'_>], at: usize) -> Result<&'v Quantity, EvalError> {
    opaque(arguments, at).map(QuantityValue::quantity)
}

fn order(arguments: &[Value<'_>]) -> Result<Ordering, EvalError> {
    let left: &QuantityValue = opaque(arguments, 0)?;
    let right = quantity(arguments, 1)?;
    if right.is_decimal() && !left.quantity().is_decimal() {
        left.decimal.get_or_init(|| left.quantity.to_decimal());
    }
    Ok(left.quantity().cmp(right))
}

fn sum<'a>(sum: Result<Quantity, Error>) -> Result<Value<'a>, EvalError> {
    let quantity = sum.map_err(|error| EvalError::new(error.to_string()))?;
    Ok(Value::opaque(QuantityValue::new(quantity, true)))
}
