//! Dispatch: selects the overload for the arguments of a call at run time.

use super::error::EvalError;
use super::node::{CallNode, Candidate, Shortcut};
use super::value::{CallScope, Value, type_name};
use crate::cel::ast::operators;
use crate::cel::function::{Mismatch, Trait};
use crate::cel::types::Type;

impl CallNode {
    /// Calls the first overload that accepts `arguments`. With a constant regular expression, optionals are first
    /// replaced by their contents, and types by their names.
    pub(super) fn invoke<'a>(
        &'a self,
        scope: &mut CallScope<'_>,
        arguments: &[Value<'a>],
    ) -> Result<Value<'a>, EvalError> {
        let is_wrapped = |argument: &Value<'_>| matches!(argument, Value::Optional(Some(_)) | Value::Type(_));
        if self.pattern.is_some() && arguments.iter().any(is_wrapped) {
            let arguments: Vec<Value<'a>> = arguments.iter().map(content).collect();
            return self.dispatch(scope, &arguments);
        }
        self.dispatch(scope, arguments)
    }

    fn dispatch<'a>(&'a self, scope: &mut CallScope<'_>, arguments: &[Value<'a>]) -> Result<Value<'a>, EvalError> {
        let overload = self.overloads.iter().find(|overload| overload.takes(arguments)).or_else(|| {
            // A single implementation for all types checks its arguments itself.
            self.overloads.first().filter(|_| self.is_for_any(arguments))
        });
        let overload = overload.or_else(|| self.unguarded(arguments));
        match overload {
            Some(overload) => (overload.implementation)(scope, arguments),
            None => Err(self.mismatch(arguments)),
        }
    }

    /// Whether the first of `arguments` has the trait that all overloads of the function require.
    fn is_for_any(&self, arguments: &[Value<'_>]) -> bool {
        match (self.mismatch, arguments.first()) {
            (Mismatch::Trait(operation), Some(first)) => has_trait(first, operation),
            _ => false,
        }
    }

    /// The overload for this number of arguments, if the function reports mismatches itself.
    fn unguarded(&self, arguments: &[Value<'_>]) -> Option<&Candidate> {
        let takes = |overload: &&Candidate| overload.declaration.params.len() == arguments.len();
        self.overloads.iter().filter(|_| self.mismatch == Mismatch::Unguarded).find(takes)
    }

    fn mismatch(&self, arguments: &[Value<'_>]) -> EvalError {
        let function = &self.function;
        match (self.mismatch, arguments.first()) {
            (Mismatch::Types, _) | (_, None) => {
                let types: Vec<String> = arguments.iter().map(Value::type_name).collect();
                EvalError::no_overload_of(format!("{function}({})", types.join(", ")))
            }
            (Mismatch::Trait(operation), Some(first)) if !has_trait(first, operation) && !is_receiver(first) => {
                EvalError::no_overload_of(function.as_str())
            }
            (Mismatch::Bare | Mismatch::Trait(_) | Mismatch::Unguarded, Some(_)) => EvalError::no_such_overload(),
        }
    }
}

impl Shortcut {
    /// The shortcut of `function`, if it has one.
    pub(super) fn of(function: &str) -> Option<Shortcut> {
        Some(match function {
            operators::LESS => Shortcut::Less,
            operators::LESS_EQUALS => Shortcut::LessEquals,
            operators::GREATER => Shortcut::Greater,
            operators::GREATER_EQUALS => Shortcut::GreaterEquals,
            operators::LOGICAL_NOT => Shortcut::Not,
            "size" => Shortcut::Size,
            _ => return None,
        })
    }

    /// The result of an operator on integers.
    #[inline]
    pub(super) fn compare(self, left: i64, right: i64) -> Option<bool> {
        Some(match self {
            Shortcut::Less => left < right,
            Shortcut::LessEquals => left <= right,
            Shortcut::Greater => left > right,
            Shortcut::GreaterEquals => left >= right,
            Shortcut::Not | Shortcut::Size => return None,
        })
    }
}

impl Candidate {
    fn takes(&self, arguments: &[Value<'_>]) -> bool {
        let params = &self.declaration.params;
        params.len() == arguments.len() && params.iter().zip(arguments).all(|(param, argument)| fits(param, argument))
    }
}

/// Whether a parameter of the type `ty` accepts `value`. Only the first entry of lists and maps is checked.
fn fits(ty: &Type, value: &Value<'_>) -> bool {
    match (ty, value) {
        (Type::Dyn | Type::Any | Type::Param(_), _) => true,
        (Type::Bool, Value::Bool(_))
        | (Type::Int, Value::Int(_))
        | (Type::Uint, Value::Uint(_))
        | (Type::Double, Value::Double(_))
        | (Type::String, Value::String(_))
        | (Type::Bytes, Value::Bytes(_))
        | (Type::Duration, Value::Duration(_))
        | (Type::Timestamp, Value::Timestamp(_))
        | (Type::Type(_), Value::Type(_))
        | (Type::Null | Type::Wrapper(_), Value::Null) => true,
        (Type::Wrapper(scalar), value) => fits(&scalar.as_type(), value),
        (Type::List(element), Value::List(list)) => {
            holds_anything(element) || list.get(0).is_none_or(|first| first.is_ok_and(|first| fits(element, &first)))
        }
        (Type::Map(entry), Value::Map(map)) => {
            if holds_anything(&entry.0) && holds_anything(&entry.1) {
                return true;
            }
            let Some((key, value)) = map.entries().into_iter().next() else { return true };
            fits(&entry.0, &key) && value.is_ok_and(|value| fits(&entry.1, &value))
        }
        (Type::Opaque(opaque), Value::Optional(_)) => opaque.name == Type::OPTIONAL,
        (Type::Object(_), Value::Struct(value)) => ty == value.ty(),
        (Type::Object(_) | Type::Opaque(_), Value::Opaque(value)) => type_name(ty) == type_name(&value.ty()),
        _ => false,
    }
}

/// The content of an optional; the name of a type; any other value itself.
fn content<'a>(value: &Value<'a>) -> Value<'a> {
    match value {
        Value::Optional(Some(held)) => content(held),
        Value::Type(ty) => Value::string(type_name(ty)),
        other => other.clone(),
    }
}

fn holds_anything(ty: &Type) -> bool {
    matches!(ty, Type::Dyn | Type::Any | Type::Param(_))
}

/// Whether `+` accepts the value as its left operand.
pub(super) fn is_adder(value: &Value<'_>) -> bool {
    has_trait(value, Trait::Adder)
}

fn has_trait(value: &Value<'_>, operation: Trait) -> bool {
    use Value::{Bool, Bytes, Double, Duration, Int, List, Map, String, Timestamp, Uint};
    match operation {
        Trait::Adder => {
            matches!(value, Bytes(_) | Double(_) | Duration(_) | Int(_) | List(_) | String(_) | Timestamp(_) | Uint(_))
        }
        Trait::Comparer => {
            matches!(value, Bool(_) | Bytes(_) | Double(_) | Duration(_) | Int(_) | String(_) | Timestamp(_) | Uint(_))
        }
        Trait::Divider | Trait::Multiplier => matches!(value, Double(_) | Int(_) | Uint(_)),
        Trait::Modder => matches!(value, Int(_) | Uint(_)),
        Trait::Negator => matches!(value, Bool(_) | Double(_) | Duration(_) | Int(_)),
        Trait::Subtractor => matches!(value, Double(_) | Duration(_) | Int(_) | Timestamp(_) | Uint(_)),
        Trait::Sizer => matches!(value, Bytes(_) | List(_) | Map(_) | String(_)),
        Trait::Matcher => matches!(value, String(_)),
        Trait::List => matches!(value, List(_)),
    }
}

/// Whether values of the type handle calls themselves in the reference, and only report that there is no such overload.
fn is_receiver(value: &Value<'_>) -> bool {
    matches!(value, Value::Duration(_) | Value::String(_) | Value::Timestamp(_))
}
