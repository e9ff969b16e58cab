//! Policies of admission: what they match, and what their expressions say of a request.
//!
//! In: policies and bindings as they are stored, and a request with its objects, its parameters, its namespace and who may
//! do what. Out: decisions. Nothing here does I/O: who knows parameters and namespaces brings them, and offline tools ask
//! the same as a server.
//!
//! # Where what is done
//!
//! - **What a policy decides is pure** (`policy`): what it matches, its compiled expressions, its variables and
//!   budgets. A server and offline tools bring the objects, the parameters, the namespace and who may do what, and
//!   get decisions. Webhooks share its rules, selectors and match conditions.
//! - **What needs the store stands in `admission::policies`**: a `Round` is one request on its way past all policies,
//!   and finds parameters, the namespace and other versions of the objects once for all of them.
//! - **A mutation is a value first.** What an expression gives (`Object{…}`, `JSONPatch{…}`) is a `cel` value,
//!   `policy::mutation` makes a tree or JSON of it and the object, and the registry reads that as Go would
//!   (`registry::mutated`). What a plugin has to know in the second round stands in `policy::Reinvocation`, which
//!   lives as long as the request.
//! - **Nothing is told of changes.** `registry::StoredPolicies` compares two snapshots by pointer, as roles do; a
//!   policy is compiled once for each version that is written.
//! - **Expressions read JSON in place** (`cel::Value::json`): what has no schema is a list or a map as a literal
//!   would be. `variables` is a marker that the interpreter resolves, so that a value never holds what evaluates it.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy` and `plugin/cel`, release 1.37.

pub(crate) mod rule;
pub mod matching;
pub mod request;
pub mod environment;
pub mod expression;
pub mod evaluation;
pub mod conditions;
pub mod access;
pub(crate) mod head;
pub mod binding;
pub mod validating;
pub mod verdicts;
pub mod type_check;
pub mod mutation;
pub mod mutating;
pub mod failures;
pub mod reinvocation;

pub use binding::{ParamRef, PolicyBinding};
pub use evaluation::PolicyInput;
pub use failures::Failures;
pub use head::{Head, ParamKind, ParamKindError};
pub use matching::Criteria;
pub use mutating::Mutating;
pub use reinvocation::{Invocations, Reinvocation};
pub use rule::Operation;
pub use validating::Validating;
pub use verdicts::{Denial, Verdicts};

use crate::crd::ServedVersion;
use crate::meta::minor::Minor;
use crate::value::Value;

/// The group of the policies.
pub const GROUP: &str = "admissionregistration.k8s.io";

/// How the names of policies and webhooks end that stand in files of the server, and of no others.
pub const STATIC_SUFFIX: &str = ".static.k8s.io";

/// Resources that no policy is asked about: one that refuses everything could not be removed any more.
const EXEMPT: [&str; 4] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// Whether no policy is asked about a resource.
pub fn is_exempt(version: &ServedVersion) -> bool {
    version.group == GROUP && EXEMPT.contains(&version.names.plural.as_str())
}

/// A kind of policies: what is stored of one, made ready to be asked.
pub trait Policy: Sized + Send + Sync + 'static {
    /// The resource of the policies.
    const POLICIES: &'static str;
    /// The resource of their bindings.
    const BINDINGS: &'static str;

    /// Reads a policy that has been validated; its expressions are evaluated as that minor does it. What does not compile says
    /// so when it is asked.
    fn decode(policy: &Value, minor: Minor) -> Self;

    /// What all policies have.
    fn head(&self) -> &Head;
}

/// That a policy, or a binding of it, can't be asked.
fn misconfigured(binding: Option<&PolicyBinding>, why: &dyn std::fmt::Display) -> String {
    let what = if binding.is_some() { "binding" } else { "policy" };
    format!("failed to configure {what}: {why}")
}

#[cfg(test)]
mod tests;
