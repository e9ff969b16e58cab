//! Policies of admission: what they match, and what their expressions say of a request.
//!
//! In: policies and bindings as they are stored, and a request with its objects, its parameters, its namespace and who may
//! do what. Out: decisions. Nothing here does I/O: who knows parameters and namespaces brings them, and offline tools ask
//! the same as a server.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy` and `plugin/cel`, release 1.37.

pub mod rule;
pub mod matching;
pub mod request;
pub mod environment;
pub mod expression;
pub mod evaluation;
pub mod conditions;
pub mod head;
pub mod binding;
pub mod validating;

pub use binding::{Binding, ParamRef};
pub use evaluation::Input;
pub use head::{Head, ParamKind};
pub use matching::Criteria;
pub use rule::Operation;
pub use validating::Validating;

use crate::value::Value;

/// A kind of policies: what is stored of one, made ready to be asked.
pub trait Policy: Sized + Send + Sync + 'static {
    /// The resource of the policies.
    const POLICIES: &'static str;
    /// The resource of their bindings.
    const BINDINGS: &'static str;

    /// Reads a policy that has been validated. What does not compile says so when it is asked.
    fn decode(policy: &Value) -> Self;

    fn head(&self) -> &Head;
}

#[cfg(test)]
mod tests;
