//! Resource quantities: `quantity(…)`, `isQuantity(…)`, their order and arithmetic.

use std::cmp::Ordering;
use std::sync::OnceLock;

use super::arguments::{int, opaque, text};
use super::network::downcast;
use super::since;
use crate::cel::cost::Cost;
use crate::cel::cost::formula::PARSE;
use crate::cel::eval::value::{Opaque, pointer_syntax};
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Function, Overload};
use crate::cel::types::Type::{self, Bool, Double, Int};
use crate::meta::quantity::{Quantity, QuantityError};

pub(super) fn functions() -> Vec<Function> {
    let quantities = || [quantity_type(), quantity_type()];
    let functions = vec![
        Function::new(
            "add",
            [
                Overload::member("quantity_add", quantities(), quantity_type(), Cost::One, |_, arguments| {
                    sum(quantity(arguments, 0)?.add(quantity(arguments, 1)?))
                }),
                Overload::member(
                    "quantity_add_int",
                    [quantity_type(), Int],
                    quantity_type(),
                    Cost::One,
                    |_, arguments| sum(quantity(arguments, 0)?.add(&Quantity::from_i64(int(arguments, 1)?))),
                ),
            ],
        ),
        Function::new(
            "asApproximateFloat",
            [Overload::member("quantity_get_float", [quantity_type()], Double, Cost::One, |_, arguments| {
                Ok(Value::Double(quantity(arguments, 0)?.as_approximate_f64()))
            })],
        ),
        Function::new(
            "asInteger",
            [Overload::member("quantity_get_int", [quantity_type()], Int, Cost::One, |_, arguments| {
                let number = quantity(arguments, 0)?.as_i64();
                number.map(Value::Int).ok_or_else(|| EvalError::new("cannot convert value to integer"))
            })],
        ),
        Function::new(
            "compareTo",
            [Overload::member("quantity_compare_to", quantities(), Int, Cost::One, |_, arguments| {
                Ok(Value::Int(order(arguments)? as i64))
            })],
        ),
        Function::new(
            "isGreaterThan",
            [Overload::member("quantity_is_greater_than", quantities(), Bool, Cost::One, |_, arguments| {
                Ok(Value::Bool(order(arguments)?.is_gt()))
            })],
        ),
        Function::new(
            "isInteger",
            [Overload::member("quantity_is_integer", [quantity_type()], Bool, Cost::One, |_, arguments| {
                Ok(Value::Bool(quantity(arguments, 0)?.as_i64().is_some()))
            })],
        ),
        Function::new(
            "isLessThan",
            [Overload::member("quantity_is_less_than", quantities(), Bool, Cost::One, |_, arguments| {
                Ok(Value::Bool(order(arguments)?.is_lt()))
            })],
        ),
        Function::new(
            "isQuantity",
            [Overload::global("is_quantity_string", [Type::String], Bool, PARSE, |_, arguments| {
                Ok(Value::Bool(Quantity::parse(text(arguments, 0)?).is_ok()))
            })
            .before(30, Cost::One)],
        ),
        Function::new(
            "quantity",
            [Overload::global("string_to_quantity", [Type::String], quantity_type(), PARSE, |_, arguments| {
                let parsed = Quantity::parse(text(arguments, 0)?);
                let quantity = parsed.map_err(|error| EvalError::new(error.to_string()))?;
                Ok(Value::opaque(QuantityValue::new(quantity, false)))
            })
            .before(30, Cost::One)],
        ),
        Function::new(
            "sign",
            [Overload::global("quantity_sign", [quantity_type()], Int, Cost::One, |_, arguments| {
                Ok(Value::Int(quantity(arguments, 0)?.signum()))
            })],
        ),
        Function::new(
            "sub",
            [
                Overload::member("quantity_sub", quantities(), quantity_type(), Cost::One, |_, arguments| {
                    sum(quantity(arguments, 0)?.sub(quantity(arguments, 1)?))
                }),
                Overload::member(
                    "quantity_sub_int",
                    [quantity_type(), Int],
                    quantity_type(),
                    Cost::One,
                    |_, arguments| sum(quantity(arguments, 0)?.sub(&Quantity::from_i64(int(arguments, 1)?))),
                ),
            ],
        ),
    ];
    since(28, functions)
}

fn quantity_type() -> Type {
    Type::object("kubernetes.Quantity")
}

/// `kubernetes.Quantity`
#[derive(Debug)]
struct QuantityValue {
    quantity: Quantity,
    /// Whether it is the result of a sum. In the reference, `==` fails if the right operand is a sum, but not if only
    /// the left one is.
    is_sum: bool,
    /// The value after a comparison with a decimal: the reference converts the quantity in place, which later uses can
    /// see.
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
        quantity_type()
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let other: &QuantityValue = downcast(other)?;
        (!other.is_sum).then(|| self.quantity() == other.quantity())
    }

    fn go_type(&self) -> &'static str {
        if self.is_sum { "*cel.Quantity" } else { "cel.Quantity" }
    }

    fn native(&self) -> (&'static str, String) {
        const NATIVE: &str = "*resource.Quantity";
        (NATIVE, pointer_syntax(NATIVE))
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

fn sum<'a>(sum: Result<Quantity, QuantityError>) -> Result<Value<'a>, EvalError> {
    let quantity = sum.map_err(|error| EvalError::new(error.to_string()))?;
    Ok(Value::opaque(QuantityValue::new(quantity, true)))
}
