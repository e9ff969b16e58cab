//! Applies the results of mutating policies' expressions to objects.
//!
//! Input: the value of an expression, and the object. Output: the new object, which has not been defaulted or validated
//! yet, or why there is none. An apply configuration is merged by the types of the object's kind; a JSON patch is
//! applied to its JSON. Nothing here knows about policies, requests or storage.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch`, release 1.37; messages recorded from
//! kube-apiserver.

pub mod apply_configuration;
mod error;
mod go_form;
pub(crate) mod json_patch;
mod native;
mod size;

pub use self::error::MutationError;
use super::expression::{CompileError, instantiate};
use crate::cel::env::Env;
use crate::cel::eval::{Program, Value as Cel};
use crate::cel::mutation;
use crate::cel::types::Type;
use crate::meta::{OBJECT_BYTES_MAX, Status};
use crate::value::{Value, json};
use crate::work;

/// The type of a mutation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MutationType {
    /// `ApplyConfiguration`
    ApplyConfiguration,
    /// `JSONPatch`
    JsonPatch,
}

/// An object that a policy has changed.
#[derive(Clone, Debug, PartialEq)]
pub enum Mutated {
    /// The object was merged by its types; a tree.
    Merged(Value),
    /// The object was patched; JSON.
    Patched(Value),
}

/// Why a changed object cannot be decoded.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misread {
    /// The policy decides about the request.
    Fault(String),
    /// The request fails with 500.
    Broken(String),
    /// It contains a number that JSON cannot represent, which the reference only detects when it encodes the response.
    Unwritable(&'static str),
    /// It is too large to be stored. The reference would only detect that after all policies.
    TooLarge,
}

impl Misread {
    /// The message.
    pub fn text(&self) -> &str {
        match self {
            Misread::Fault(text) | Misread::Broken(text) => text,
            Misread::Unwritable(text) => text,
            Misread::TooLarge => "etcdserver: request is too large",
        }
    }

    /// The response to the request, if it fails whatever the policy says.
    pub fn into_status(self) -> Status {
        match self {
            Misread::Fault(why) | Misread::Broken(why) => Status::internal_error(&why),
            Misread::Unwritable(why) => Status::plain(500, why),
            Misread::TooLarge => Status::too_large_to_store(),
        }
    }
}

/// Checks that `value`, from which an object will be made, is not too large to be stored.
///
/// # Errors
/// It is too large.
pub fn check_value(value: &Cel<'_>) -> Result<(), Misread> {
    if size::fits(value, OBJECT_BYTES_MAX) { Ok(()) } else { Err(Misread::TooLarge) }
}

/// Checks that a changed object is not too large to be stored.
///
/// # Errors
/// It is too large.
pub fn check_size(mutated: Mutated) -> Result<Mutated, Misread> {
    let (Mutated::Merged(object) | Mutated::Patched(object)) = &mutated;
    // Most objects are far smaller, and need not be encoded to find out.
    let is_large = object.size_bytes() > OBJECT_BYTES_MAX && json::encode(object).len() > OBJECT_BYTES_MAX;
    if is_large { Err(Misread::TooLarge) } else { Ok(mutated) }
}

/// Checks that an object can be encoded as JSON: expressions can make numbers that JSON cannot represent.
///
/// # Errors
/// It contains such a number.
pub fn check_numbers(object: &Value) -> Result<(), Misread> {
    work::step();
    match object {
        Value::Float(number) if number.is_nan() => Err(Misread::Unwritable("json: unsupported value: NaN")),
        Value::Float(f64::INFINITY) => Err(Misread::Unwritable("json: unsupported value: +Inf")),
        Value::Float(f64::NEG_INFINITY) => Err(Misread::Unwritable("json: unsupported value: -Inf")),
        Value::Array(items) => items.iter().try_for_each(check_numbers),
        Value::Object(fields) => fields.iter().try_for_each(|(_, value)| check_numbers(value)),
        _ => Ok(()),
    }
}

impl MutationType {
    /// The patch type that a policy calls `name`.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "ApplyConfiguration" => Some(MutationType::ApplyConfiguration),
            "JSONPatch" => Some(MutationType::JsonPatch),
            _ => None,
        }
    }

    /// The field of a mutation that holds its expression.
    pub fn field(self) -> &'static str {
        match self {
            MutationType::ApplyConfiguration => "applyConfiguration",
            MutationType::JsonPatch => "jsonPatch",
        }
    }

    /// The type of the expression.
    fn result_type(self) -> Type {
        match self {
            MutationType::ApplyConfiguration => Type::object(mutation::OBJECT),
            MutationType::JsonPatch => Type::list(Type::object(mutation::JSON_PATCH)),
        }
    }

    /// Compiles `expression` in `env`, which must have the types of mutations.
    ///
    /// # Errors
    ///
    /// The errors of the expression.
    pub fn compile(self, expression: &str, env: &Env) -> Result<Program, CompileError> {
        let checked = env.compile(expression)?;
        let (wanted, found) = (self.result_type(), checked.result_type());
        if *found != wanted {
            let (wanted, found) = (wanted.go_name(), found.go_name());
            return Err(CompileError::Invalid(format!("must evaluate to {wanted} but got {found}")));
        }
        if checked.has_type(&Type::opaque("", Vec::new())) {
            let why = "unexpected compilation error: missing type conversion to proto: ";
            return Err(CompileError::Internal(why.to_owned()));
        }
        instantiate(&checked, env)
    }
}

#[cfg(test)]
mod tests;
