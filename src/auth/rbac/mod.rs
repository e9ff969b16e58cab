//! Role-based access control: roles and bindings as objects, and what follows from them.
//!
//! In: the objects of `rbac.authorization.k8s.io`, one by one, as they are stored. Out: decisions, the rules that hold for a
//! user, and whether somebody grants more than they have. Nothing here reads the database or waits.
//!
//! Source: Kubernetes documentation, "Using RBAC Authorization"; the texts are those of Kubernetes 1.37.

mod rule;
mod cover;
mod policy;
mod escalation;

pub use cover::uncovered;
pub use policy::{Policy, Reference};
pub use rule::PolicyRule;

pub use crate::kinds::RBAC_GROUP as GROUP;

/// Go's `%q` of a list of texts.
pub(super) fn quote_list(texts: &[String]) -> String {
    let quoted: Vec<_> = texts.iter().map(|text| crate::value::go_quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}
