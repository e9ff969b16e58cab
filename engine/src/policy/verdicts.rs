//! The verdicts of validating policies on a request, with the actions of their bindings.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go`, release 1.37.

use std::collections::{BTreeMap, HashSet};
use std::fmt;
use std::sync::Arc;

use super::binding::{BindingAction, PolicyBinding};
use super::validating::{Annotated, INVALID, PolicyVerdict, ValidationDecision};
use super::{Head, misconfigured};
use crate::meta::field::ERRORS_BYTES_MAX;
use crate::meta::minor::Minor;
use crate::meta::{Cause, Status};
use crate::value::{Map, Value, json};

/// The audit annotation for refusals.
const VALIDATION_FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";
/// The maximum number of refusals in it.
const FAILURES_MAX: usize = 50;
/// Older minors wrote an annotation for each refusal, of which the audit log kept the first.
const LISTS_FAILURES_SINCE: Minor = Minor::of(37);
/// The maximum length of the value of another annotation, in bytes.
const ANNOTATION_BYTES_MAX: usize = 10 * 1024;

/// The verdicts on a request so far.
#[derive(Debug, Default)]
pub struct Verdicts {
    /// The first refusal that counts.
    pub denial: Option<Denial>,
    /// The warnings for the client.
    pub warnings: Vec<String>,
    /// The first refusals for the audit log.
    failures: Vec<Value>,
    /// Other annotations of the audit log: their values, by policy and key.
    annotations: BTreeMap<(String, String), AnnotationValues>,
    /// The length of the warnings and annotations. What is beyond [`ERRORS_BYTES_MAX`] is left out, which the reference
    /// does not do: there may be some for each parameter of each binding.
    bytes: usize,
}

/// Values in the order in which they were first given, each once.
#[derive(Debug, Default)]
struct AnnotationValues {
    in_order: Vec<Arc<str>>,
    known: HashSet<Arc<str>>,
}

/// The refusal of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Denial {
    /// The message for the user.
    pub message: String,
    /// The reason of the status.
    pub reason: String,
}

impl Verdicts {
    /// Adds the error of a policy or a binding.
    pub fn misconfigured(&mut self, head: &Head, binding: Option<&PolicyBinding>, why: &dyn fmt::Display) {
        if !head.ignores_failures {
            self.deny(head, binding, &misconfigured(binding, why), INVALID);
        }
    }

    fn deny(&mut self, head: &Head, binding: Option<&PolicyBinding>, why: &str, reason: &str) {
        let bound = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        self.denial.get_or_insert_with(|| Denial {
            message: format!("ValidatingAdmissionPolicy '{}'{bound} denied request: {why}", head.name),
            reason: reason.to_owned(),
        });
    }

    /// Applies the actions of a binding to a verdict.
    pub fn take_in(&mut self, head: &Head, binding: &PolicyBinding, verdict: PolicyVerdict) {
        for (at, decision) in verdict.decisions.into_iter().enumerate() {
            let (message, reason) = match decision {
                ValidationDecision::Admitted | ValidationDecision::Failed { denies: false, .. } => continue,
                ValidationDecision::Denied { message, reason } => (message, reason),
                ValidationDecision::Failed { message, denies: true } => (message, INVALID.to_owned()),
            };
            for action in &binding.actions {
                match action {
                    BindingAction::Deny => self.deny(head, Some(binding), &message, &reason),
                    BindingAction::Warn => self.warn(format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                        head.name, binding.name
                    )),
                    BindingAction::Audit if self.failures.len() < FAILURES_MAX => {
                        self.failures.push(failure(at, &message, binding));
                    }
                    BindingAction::Audit => {}
                }
            }
        }
        for annotated in verdict.annotations {
            match annotated {
                Annotated::Value { key, value } => {
                    let value: Arc<str> = cut(value, ANNOTATION_BYTES_MAX).into();
                    let values = self.annotations.entry((head.name.clone(), key)).or_default();
                    if self.bytes < ERRORS_BYTES_MAX && values.known.insert(Arc::clone(&value)) {
                        self.bytes += value.len() + 1;
                        values.in_order.push(value);
                    }
                }
                Annotated::Failed { message } => self.deny(head, Some(binding), &message, INVALID),
            }
        }
    }

    fn warn(&mut self, warning: String) {
        if self.bytes < ERRORS_BYTES_MAX {
            self.bytes += warning.len();
            self.warnings.push(warning);
        }
    }

    /// The annotations of the audit log, by their names.
    pub fn annotations(&self, minor: Minor) -> BTreeMap<String, String> {
        let named = |((policy, key), values): (&(String, String), &AnnotationValues)| {
            (format!("{policy}/{key}"), values.in_order.join(", "))
        };
        let mut annotations: BTreeMap<String, String> = self.annotations.iter().map(named).collect();
        if !self.failures.is_empty() {
            let shown = if minor < LISTS_FAILURES_SINCE { 1 } else { self.failures.len() };
            let failures = json::encode_as(&Value::Array(self.failures[..shown].to_vec()), FAILURE);
            annotations.insert(VALIDATION_FAILURE.to_owned(), String::from_utf8_lossy(&failures).into_owned());
        }
        annotations
    }
}

impl Denial {
    /// Makes the response to a request about the object `name`.
    pub fn into_status(self, group: &str, plural: &str, name: &str) -> Status {
        let Denial { message, reason } = self;
        let mut status = Status::forbidden(group, plural, name, &message);
        status.code = code_of(&reason);
        status.reason = reason;
        let causes = &mut status.details.get_or_insert_default().causes;
        causes.push(Cause { message, ..Cause::default() });
        status
    }
}

/// The fields of a refusal, in the order in which Go writes them.
const FAILURE: json::Layout = json::Layout::Struct(&[
    ("message", &json::Layout::Sorted),
    ("policy", &json::Layout::Sorted),
    ("binding", &json::Layout::Sorted),
    ("expressionIndex", &json::Layout::Sorted),
    ("validationActions", &json::Layout::Sorted),
]);

fn failure(at: usize, message: &str, binding: &PolicyBinding) -> Value {
    let actions = binding.actions.iter().map(|action| Value::from(action.as_str()));
    let mut failure = Map::new();
    failure.insert("message", Value::from(message));
    failure.insert("policy", Value::from(binding.policy.as_str()));
    failure.insert("binding", Value::from(binding.name.as_str()));
    failure.insert("expressionIndex", Value::Int(i64::try_from(at).unwrap_or(i64::MAX)));
    failure.insert("validationActions", Value::Array(actions.collect()));
    Value::Object(failure)
}

fn code_of(reason: &str) -> u16 {
    match reason {
        "Forbidden" => 403,
        "Unauthorized" => 401,
        "RequestEntityTooLarge" => 413,
        _ => 422,
    }
}

/// Truncates `text` to at most `bytes_max` bytes.
fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn what_is_said_of_many_parameters_has_a_bound() {
        const TIMES: usize = 3_000;
        let head = Head::decode(&object! { "metadata" => object! { "name" => "p" } }, Minor::NEWEST);
        let actions = object! { "spec" => object! { "validationActions" => vec![Value::from("Warn")] } };
        let (mut said, binding) = (Verdicts::default(), PolicyBinding::decode(&actions));
        for at in 0..TIMES {
            let message = format!("{at}-{}", "x".repeat(1_000));
            let value = Annotated::Value { key: "k".to_owned(), value: message.clone() };
            let decision = ValidationDecision::Denied { message, reason: INVALID.to_owned() };
            said.take_in(&head, &binding, PolicyVerdict { decisions: vec![decision], annotations: vec![value] });
        }
        let bytes = said.warnings.iter().map(String::len).sum::<usize>();
        let annotated = said.annotations(Minor::NEWEST).values().map(String::len).sum::<usize>();
        assert!((ERRORS_BYTES_MAX..ERRORS_BYTES_MAX + 10_000).contains(&(bytes + annotated)), "{bytes}, {annotated}");
    }
}
