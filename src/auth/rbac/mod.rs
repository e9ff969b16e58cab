//! Role-based access control: roles and bindings as objects, and what follows from them.
//!
//! In: the objects of `rbac.authorization.k8s.io`, one by one, as they are stored. Out: decisions, the rules that hold for a
//! user, and whether somebody grants more than they have. Nothing here reads the database or waits.
//!
//! - **Roles** are an index in memory (`auth::rbac::Policy`): the bindings of each user and group, by namespace. A
//!   decision looks at those alone and takes some microseconds. Its maps are persistent: changes go to a copy, so
//!   that no lock is held while anybody decides. It is pure, synchronous, and a rule language may ask it, too.
//! - **It is never told of changes.** `registry::StoredPolicy` holds the four snapshots that the index was made of,
//!   and each request first compares them with the present ones: four pointers. Where one differs, the persistent
//!   maps tell which objects do, and only these are read. A write is visible before it is answered, so a role counts
//!   from its answer; and a request polls the log of a shared database before it is authorised, not after.
//! - **Escalation** is checked inside the loop of a write, after mutating admission, on what is to be stored
//!   (`registry::escalation`). Without RBAC nobody lacks a right, and nothing is checked.
//!
//! Source: Kubernetes documentation, "Using RBAC Authorization"; the texts are those of Kubernetes 1.37.

mod rule;
mod cover;
mod policy;
mod escalation;
#[cfg(test)]
mod fixture;

pub use cover::uncovered;
pub use policy::{RbacPolicy, Reference};
pub use rule::PolicyRule;

pub use crate::kinds::RBAC_GROUP as GROUP;

/// Go's `%q` of a list of texts.
pub(super) fn quote_list(texts: &[String]) -> String {
    let quoted: Vec<_> = texts.iter().map(|text| crate::value::go_quote(text)).collect();
    format!("[{}]", quoted.join(" "))
}
