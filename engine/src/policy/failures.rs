//! Failures of mutating policies that refuse a request.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go`, release 1.37.

use std::fmt;

use super::{Head, PolicyBinding, misconfigured};
use crate::meta::{Cause, Status};
use crate::value::go_quote;

/// The failures of a request, in order.
#[derive(Debug, Default)]
pub struct Failures(Vec<PolicyFailure>);

#[derive(Debug)]
struct PolicyFailure {
    message: String,
    /// The reason in the response; `None` for that of a forbidden request.
    reason: Option<&'static str>,
}

impl Failures {
    /// Adds a policy, or a binding of it, that cannot be evaluated.
    pub fn misconfigured(&mut self, head: &Head, binding: Option<&PolicyBinding>, why: &dyn fmt::Display) {
        self.push(head, binding, &misconfigured(binding, why), None);
    }

    /// Adds a policy that failed.
    pub fn failed(&mut self, head: &Head, binding: &PolicyBinding, why: &str) {
        self.push(head, Some(binding), why, Some("Invalid"));
    }

    fn push(&mut self, head: &Head, binding: Option<&PolicyBinding>, why: &str, reason: Option<&'static str>) {
        if head.ignores_failures {
            return;
        }
        let message = match binding {
            Some(binding) => format!("policy '{}' with binding '{}' denied request: {why}", head.name, binding.name),
            None => format!("policy {} denied request: {why}", go_quote(&head.name)),
        };
        self.0.push(PolicyFailure { message, reason });
    }

    /// Makes the response to the client: the first failure determines it, and all are its causes. Returns `None` if
    /// nothing failed.
    pub fn into_status(self, group: &str, plural: &str, name: &str) -> Option<Status> {
        let first = self.0.first()?;
        let mut status = Status::forbidden(group, plural, name, "");
        status.message.clone_from(&first.message);
        if let Some(reason) = first.reason {
            reason.clone_into(&mut status.reason);
        }
        let causes = self.0.into_iter().map(|failure| Cause { message: failure.message, ..Cause::default() });
        status.details.get_or_insert_default().causes.extend(causes);
        Some(status)
    }
}
