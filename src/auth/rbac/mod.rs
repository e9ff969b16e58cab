//! Role-based access control: roles and bindings as objects, and the decisions that follow from
//! them.
//!
//! Input: the objects of `rbac.authorization.k8s.io`, one by one, as they are stored. Output: decisions,
//! the rules that hold for a user, and whether somebody grants more than they hold. Nothing here
//! reads the database or waits.
//!
//! - **Roles** are an index in memory (`auth::rbac::RbacPolicy`): the bindings of each user and group,
//!   by namespace. A decision looks at those alone and takes some microseconds. Its maps are
//!   persistent: changes go to a copy, so no lock is held during a decision. It is pure and
//!   synchronous, so expressions may use it, too.
//! - **It is never notified of changes.** `registry::StoredPolicy` holds the four snapshots that
//!   the index was built from, and each request first compares them with the current ones: four
//!   pointers. If one differs, the persistent maps tell which objects differ, and only these are
//!   read; by the write itself, if it is one of this process, so that a large role makes nobody else
//!   wait. A role takes effect with the answer to its write; and a request polls the log of a
//!   shared database before it is authorized, not after.
//! - **Escalation** is checked inside the loop of a write, after mutating admission, on the object
//!   that will be stored (`registry::escalation`). Without RBAC nobody lacks a permission, and
//!   nothing is checked.
//!
//! Source: Kubernetes documentation, "Using RBAC Authorization"; the texts are those of Kubernetes
//! 1.37.

mod rule_texts;
mod rule;
mod cover;
mod policy;
mod escalation;
#[cfg(test)]
mod fixture;

pub use cover::uncovered;
pub use policy::{RbacPolicy, Reference};
pub use rule::{PolicyRule, RuleParts};

pub use crate::kinds::RBAC_GROUP as GROUP;

/// Formats a list of texts like Go's `%q`.
pub(super) fn quote_list<'t>(texts: impl Iterator<Item = &'t str>) -> String {
    let quoted: Vec<_> = texts.map(crate::value::go_quote).collect();
    format!("[{}]", quoted.join(" "))
}
