//! Admission policies: which requests they match, and what their expressions decide.
//!
//! Input: policies and bindings as they are stored, and a request with its objects, its parameters, its namespace and
//! an authorizer. Output: decisions. Nothing here does I/O: the caller passes parameters and namespaces in, and offline
//! tools use the same code as a server.
//!
//! # Where what is done
//!
//! - **The decision of a policy is pure** (`policy`): what it matches, its compiled expressions, its variables and
//!   budgets. A server and offline tools pass in the objects, the parameters, the namespace and an authorizer, and get
//!   decisions. Webhooks share its rules, selectors and match conditions.
//! - **Code that needs the store is in `admission::policies`**: a `Round` is one pass of a request through all
//!   policies, and looks up parameters, the namespace and other versions of the objects once for all of them.
//! - **A mutation is a value first.** The result of an expression (`Object{…}`, `JSONPatch{…}`) is a `cel` value,
//!   `policy::mutation` makes a tree or JSON from it and the object, and the registry decodes that as Go would
//!   (`registry::mutated`). The state that a plugin needs in the second round is in `policy::Reinvocation`, which lives
//!   as long as the request.
//! - **There are no change notifications.** `registry::StoredPolicies` compares two snapshots by pointer, as roles do;
//!   a policy is compiled once per write.
//! - **Expressions read JSON in place** (`cel::Value::json`): values without a schema are lists or maps, as literals
//!   would be. `variables` is a marker that the interpreter resolves, so that a value never contains the code that
//!   evaluates it.
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

/// The suffix of the names of policies and webhooks that are defined in files of the server, and of no others.
pub const STATIC_SUFFIX: &str = ".static.k8s.io";

/// The resources that no policy applies to: otherwise a policy that refuses everything could never be removed.
const EXEMPT: [&str; 4] = [
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
];

/// Whether no policy applies to a resource.
pub fn is_exempt(version: &ServedVersion) -> bool {
    version.group == GROUP && EXEMPT.contains(&version.names.plural.as_str())
}

/// A kind of policy: a stored policy, ready to be evaluated.
pub trait Policy: Sized + Send + Sync + 'static {
    /// The resource of the policies.
    const POLICIES: &'static str;
    /// The resource of their bindings.
    const BINDINGS: &'static str;

    /// Decodes a policy that has been validated; its expressions are evaluated as in minor version `minor`. Compile
    /// errors are reported when it is evaluated.
    fn decode(policy: &Value, minor: Minor) -> Self;

    /// The part that all policies have.
    fn head(&self) -> &Head;

    /// About how much memory its expressions take, in bytes.
    fn expression_bytes(&self) -> usize;
}

/// The message if a policy, or a binding of it, cannot be evaluated.
fn misconfigured(binding: Option<&PolicyBinding>, why: &dyn std::fmt::Display) -> String {
    let what = if binding.is_some() { "binding" } else { "policy" };
    format!("failed to configure {what}: {why}")
}

#[cfg(test)]
mod tests;
