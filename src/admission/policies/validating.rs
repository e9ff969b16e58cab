//! Asks validating policies, and does about their refusals what their bindings say.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go`, release 1.37.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Hook, Round, Seen, Source, ValidatingPolicies};
use crate::admission::{Attributes, Figures, denied_name};
use crate::crd::ServedVersion;
use crate::meta::{Cause, Status};
use crate::policy::binding::{Action, Binding};
use crate::policy::validating::{Annotated, Decision, Verdict};
use crate::policy::{Head, Validating};
use crate::value::{Map, Value, json};

/// The annotation of the audit log that holds refusals.
const VALIDATION_FAILURE: &str = "validation.policy.admission.k8s.io/validation_failure";
/// How many refusals it holds.
const FAILURES_MAX: usize = 50;
/// The longest value of another annotation, in bytes.
const ANNOTATION_BYTES_MAX: usize = 10 * 1024;
/// The reason of a refusal that names none.
const INVALID: &str = "Invalid";

/// What has been said so far of a request.
#[derive(Default)]
struct Said {
    /// The first refusal that counts.
    denial: Option<Denial>,
    /// For the audit log.
    failures: Vec<Value>,
}

struct Denial {
    message: String,
    reason: String,
}

impl<S: Source<Validating>> ValidatingPolicies<S> {
    /// Asks all that are concerned, also after a refusal: what they have to say beside it counts.
    pub(super) async fn ask(
        &self,
        hooks: &[Hook<Validating>],
        attributes: &Attributes<'_>,
        object: &Value,
    ) -> Result<(), Status> {
        let round = Round::new(attributes, &self.source, &self.authorizer);
        let mut said = Said::default();
        let mut forms: Vec<Seen<'_>> = Vec::new();
        for hook in hooks {
            let head = &hook.policy.head;
            let version = match round.version(&head.criteria, object).await {
                Ok(None) => continue,
                Ok(Some(version)) => version,
                Err(why) => {
                    said.misconfigured(head, None, &why);
                    continue;
                }
            };
            match round.param_version(head).await {
                Ok(param_version) => {
                    let versions = (version, param_version.as_ref());
                    let seen = (object, &*self.figures);
                    ask_bound(&round, hook, versions, seen, &mut forms, &mut said).await?;
                }
                Err(why) => said.misconfigured(head, None, &why),
            }
        }
        said.tell(attributes, object)
    }
}

/// Asks one policy, as each of its bindings has it.
async fn ask_bound<'o>(
    round: &Round<'o>,
    hook: &Hook<Validating>,
    (version, param_version): (Arc<ServedVersion>, Option<&Arc<ServedVersion>>),
    (object, figures): (&'o Value, &Figures),
    forms: &mut Vec<Seen<'o>>,
    said: &mut Said,
) -> Result<(), Status> {
    let head = &hook.policy.head;
    let mut annotations: BTreeMap<String, Vec<String>> = BTreeMap::new();
    for binding in &hook.bindings {
        if let Some(criteria) = &binding.criteria {
            match round.version(criteria, object).await {
                Ok(None) => continue,
                Ok(Some(_)) => {}
                Err(why) => {
                    said.misconfigured(head, Some(binding), &why);
                    continue;
                }
            }
        }
        let params = match round.params(param_version, binding.params.as_ref()).await {
            Ok(params) => params,
            Err(why) => {
                said.misconfigured(head, Some(binding), &why);
                continue;
            }
        };
        if !params.is_empty() && !forms.iter().any(|seen| Arc::ptr_eq(&seen.version, &version)) {
            match round.seen(Arc::clone(&version), object).await {
                Ok(seen) => forms.push(seen),
                Err(why) => {
                    let why = format!("failed to convert object version: {why}");
                    said.misconfigured(head, Some(binding), &why);
                    continue;
                }
            }
        }
        let namespace = round.namespace_object().await?;
        let Some(seen) = forms.iter().find(|seen| Arc::ptr_eq(&seen.version, &version)) else { continue };
        for param in &params {
            let began = Instant::now();
            let verdict = hook.policy.evaluate(&round.input(seen, &namespace, param));
            count(figures, head, binding, &verdict, began.elapsed());
            said.take_in(round.attributes, head, binding, verdict, &mut annotations);
        }
    }
    for (key, values) in annotations {
        round.attributes.told.annotate(format!("{}/{key}", head.name), &values.join(", "));
    }
    Ok(())
}

impl Said {
    /// What is wrong with a policy or a binding.
    fn misconfigured(&mut self, head: &Head, binding: Option<&Binding>, why: &str) {
        if head.ignores_failures {
            return;
        }
        let what = if binding.is_some() { "binding" } else { "policy" };
        self.deny(head, binding, &format!("failed to configure {what}: {why}"), INVALID);
    }

    fn deny(&mut self, head: &Head, binding: Option<&Binding>, why: &str, reason: &str) {
        let bound = binding.map(|binding| format!(" with binding '{}'", binding.name)).unwrap_or_default();
        self.denial.get_or_insert_with(|| Denial {
            message: format!("ValidatingAdmissionPolicy '{}'{bound} denied request: {why}", head.name),
            reason: reason.to_owned(),
        });
    }

    fn take_in(
        &mut self,
        attributes: &Attributes<'_>,
        head: &Head,
        binding: &Binding,
        verdict: Verdict,
        annotations: &mut BTreeMap<String, Vec<String>>,
    ) {
        for (at, decision) in verdict.decisions.into_iter().enumerate() {
            let (message, reason) = match decision {
                Decision::Admitted | Decision::Failed { denies: false, .. } => continue,
                Decision::Denied { message, reason } => (message, reason),
                Decision::Failed { message, denies: true } => (message, INVALID.to_owned()),
            };
            for action in &binding.actions {
                match action {
                    Action::Deny => self.deny(head, Some(binding), &message, &reason),
                    Action::Warn => attributes.told.warn(&format!(
                        "Validation failed for ValidatingAdmissionPolicy '{}' with binding '{}': {message}",
                        head.name, binding.name
                    )),
                    Action::Audit => self.failures.push(failure(at, &message, binding)),
                }
            }
        }
        for annotated in verdict.annotations {
            match annotated {
                Annotated::Value { key, value } => {
                    let value = cut(value, ANNOTATION_BYTES_MAX);
                    let values = annotations.entry(key).or_default();
                    if !values.contains(&value) {
                        values.push(value);
                    }
                }
                Annotated::Failed { message } => self.deny(head, Some(binding), &message, INVALID),
            }
        }
    }

    fn tell(mut self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        if !self.failures.is_empty() {
            self.failures.truncate(FAILURES_MAX);
            let failures = json::encode_as(&Value::Array(self.failures), FAILURE);
            attributes.told.annotate(VALIDATION_FAILURE.to_owned(), &String::from_utf8_lossy(&failures));
        }
        let Some(Denial { message, reason }) = self.denial else { return Ok(()) };
        let version = attributes.version;
        let name = denied_name(attributes, object);
        let mut status = Status::forbidden(&version.group, &version.names.plural, name, &message);
        status.code = code_of(&reason);
        status.reason = reason;
        let causes = &mut status.details.get_or_insert_default().causes;
        causes.push(Cause { message, ..Cause::default() });
        Err(status)
    }
}

/// Counts what did not simply pass; the time of a policy is shared by its validations.
fn count(figures: &Figures, head: &Head, binding: &Binding, verdict: &Verdict, took: Duration) {
    let took = took / u32::try_from(verdict.decisions.len()).unwrap_or(u32::MAX).max(1);
    let counted = |action, message: &str| figures.checked(&head.name, &binding.name, action, message, took);
    for decision in &verdict.decisions {
        match decision {
            Decision::Admitted => {}
            Decision::Failed { message, denies: false } => counted("allow", message),
            Decision::Denied { message, .. } | Decision::Failed { message, denies: true } => {
                binding.actions.iter().for_each(|action| counted(action.enforced(), message));
            }
        }
    }
    for annotated in &verdict.annotations {
        if let Annotated::Failed { message } = annotated {
            counted("deny", message);
        }
    }
}

/// The fields of a refusal in the order in which Go writes them.
const FAILURE: json::Layout = json::Layout::Struct(&[
    ("message", &json::Layout::Sorted),
    ("policy", &json::Layout::Sorted),
    ("binding", &json::Layout::Sorted),
    ("expressionIndex", &json::Layout::Sorted),
    ("validationActions", &json::Layout::Sorted),
]);

fn failure(at: usize, message: &str, binding: &Binding) -> Value {
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

/// The beginning of `text` that has no more than `bytes_max`.
fn cut(mut text: String, bytes_max: usize) -> String {
    text.truncate(text.floor_char_boundary(bytes_max));
    text
}
