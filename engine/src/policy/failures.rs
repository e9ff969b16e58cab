//! Failures of mutating policies that refuse a request.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/mutating/dispatcher.go`, release 1.37.

use std::fmt;

use super::{Head, PolicyBinding, misconfigured};
use crate::meta::field::ERRORS_BYTES_MAX;
use crate::meta::{Cause, Status};
use crate::value::go_quote;

/// The failures of a request, in order: the first of them, up to [`ERRORS_BYTES_MAX`] of text. The reference has no such
/// limit, and a policy may fail for each parameter of each binding.
#[derive(Debug, Default)]
pub struct Failures {
    told: Vec<PolicyFailure>,
    bytes: usize,
}

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
        if head.ignores_failures || self.bytes >= ERRORS_BYTES_MAX {
            return;
        }
        let message = match binding {
            Some(binding) => format!("policy '{}' with binding '{}' denied request: {why}", head.name, binding.name),
            None => format!("policy {} denied request: {why}", go_quote(&head.name)),
        };
        self.bytes += message.len();
        self.told.push(PolicyFailure { message, reason });
    }

    /// Makes the response to the client: the first failure determines it, and all are its causes. Returns `None` if
    /// nothing failed.
    pub fn into_status(self, group: &str, plural: &str, name: &str) -> Option<Status> {
        let first = self.told.first()?;
        let mut status = Status::forbidden(group, plural, name, "");
        status.message.clone_from(&first.message);
        if let Some(reason) = first.reason {
            reason.clone_into(&mut status.reason);
        }
        let causes = self.told.into_iter().map(|failure| Cause { message: failure.message, ..Cause::default() });
        status.details.get_or_insert_default().causes.extend(causes);
        Some(status)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::minor::Minor;
    use crate::object;

    #[test]
    fn failures_of_many_parameters_have_a_bound() {
        let head = Head::decode(&object! { "metadata" => object! { "name" => "p" } }, Minor::NEWEST);
        let (binding, mut failures) = (PolicyBinding::decode(&object! {}), Failures::default());
        for at in 0..5_000 {
            failures.failed(&head, &binding, &format!("{at}-{}", "x".repeat(1_000)));
        }
        let status = failures.into_status("", "pods", "p").expect("it fails");
        assert!(status.message.ends_with(&format!("0-{}", "x".repeat(1_000))), "the first one decides");
        let causes = status.details.unwrap_or_default().causes;
        let bytes = causes.iter().map(|cause| cause.message.len()).sum::<usize>();
        assert!((ERRORS_BYTES_MAX..ERRORS_BYTES_MAX + 2_000).contains(&bytes), "{bytes}");
    }
}
