//! What the expressions of mutating policies make of objects.
//!
//! In: the value of an expression, and the object. Out: the object as it is to be, which nobody has defaulted or validated
//! yet, or why that can't be. An apply configuration is merged by the types of the object's kind, a JSON patch is applied to
//! its JSON. Nothing here knows policies, requests or where objects are stored.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating/patch`, release 1.37; texts recorded from kube-apiserver.

pub mod apply_configuration;
pub(crate) mod json_patch;
mod native;

use super::expression::go_name;
use crate::cel::env::Env;
use crate::cel::eval::Program;
use crate::cel::mutation;
use crate::cel::types::Type;
use crate::value::Value;

/// What an expression gives.
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
    /// Merged by its types, as a tree.
    Merged(Value),
    /// Patched, as JSON.
    Patched(Value),
}

/// Why a changed object can't be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Misread {
    /// What becomes of the request is the policy's to say.
    Fault(String),
    /// The request fails with 500.
    Broken(String),
}

impl Misread {
    /// Why.
    pub fn text(&self) -> &str {
        match self {
            Misread::Fault(text) | Misread::Broken(text) => text,
        }
    }
}

/// Why an expression can't be one of a policy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CompileError {
    /// The author's fault.
    Invalid(String),
    /// What the reference has no better name for.
    Internal(String),
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

    /// Compiles `expression` in `env`, which knows the types of mutations.
    ///
    /// # Errors
    ///
    /// What is wrong with the expression.
    pub fn compile(self, expression: &str, env: &Env) -> Result<Program, CompileError> {
        let invalid = |issues| CompileError::Invalid(format!("compilation failed: {issues}"));
        let checked = env.compile(expression).map_err(invalid)?;
        let (wanted, found) = (self.result_type(), checked.result_type());
        if *found != wanted {
            let (wanted, found) = (go_name(&wanted), go_name(found));
            return Err(CompileError::Invalid(format!("must evaluate to {wanted} but got {found}")));
        }
        if checked.has_type(&Type::opaque("", Vec::new())) {
            let why = "unexpected compilation error: missing type conversion to proto: ";
            return Err(CompileError::Internal(why.to_owned()));
        }
        Program::new(&checked, env)
            .map_err(|error| CompileError::Internal(format!("program instantiation failed: {error}")))
    }
}

impl CompileError {
    /// The text for the status of the policy.
    pub fn text(&self) -> &str {
        match self {
            CompileError::Invalid(text) | CompileError::Internal(text) => text,
        }
    }
}

#[cfg(test)]
mod tests;
