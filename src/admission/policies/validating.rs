//! Evaluates validating policies, and acts on their refusals as their bindings say.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/validating/dispatcher.go`, release 1.37.

use std::sync::Arc;
use std::time::{Duration, Instant};

use super::{Hook, MatchedObjects, PolicyRound, PolicySource, ValidatingPolicies};
use crate::admission::{Attributes, Figures, denied_name};
use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::policy::validating::{Annotated, PolicyVerdict, ValidationDecision};
use crate::policy::{Head, PolicyBinding, Validating, Verdicts};
use crate::value::Value;

impl<S: PolicySource<Validating>> ValidatingPolicies<S> {
    /// Evaluates all policies that apply, even after a refusal, because of their warnings and
    /// annotations.
    pub(super) async fn ask(
        &self,
        hooks: &[Hook<Validating>],
        attributes: &Attributes<'_>,
        object: &Value,
    ) -> Result<(), Status> {
        let round = PolicyRound::new(attributes, &self.source, &self.authorizer);
        let mut said = Verdicts::default();
        let mut forms: Vec<MatchedObjects<'_>> = Vec::new();
        for hook in hooks {
            let head = &hook.policy.head;
            let version = match round.version(&head.criteria, object).await {
                Ok(None) => continue,
                Ok(Some(version)) => version,
                Err(fault) => {
                    said.misconfigured(head, None, &fault.to_string());
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
        tell(said, attributes, object)
    }
}

/// Evaluates one policy for each of its bindings.
async fn ask_bound<'o>(
    round: &PolicyRound<'o>,
    hook: &Hook<Validating>,
    (version, param_version): (Arc<ServedVersion>, Option<&Arc<ServedVersion>>),
    (object, figures): (&'o Value, &Figures),
    forms: &mut Vec<MatchedObjects<'o>>,
    said: &mut Verdicts,
) -> Result<(), Status> {
    let head = &hook.policy.head;
    for binding in &hook.bindings {
        if let Some(criteria) = &binding.criteria {
            match round.version(criteria, object).await {
                Ok(None) => continue,
                Ok(Some(_)) => {}
                Err(fault) => {
                    said.misconfigured(head, Some(binding), &fault.to_string());
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
            let input = round.input(seen, &namespace, param);
            let conditions = round.match_conditions(head, &input, figures);
            // With the failure policy `Ignore`, a failed condition excludes the policy.
            if conditions.is_err() && head.ignores_failures {
                continue;
            }
            let verdict = hook.policy.evaluate_after(conditions, &input);
            count(figures, head, binding, &verdict, began.elapsed());
            said.take_in(head, binding, verdict);
        }
    }
    Ok(())
}

/// Passes warnings on to the client, and annotations to the audit log; returns the refusal.
fn tell(said: Verdicts, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
    for (name, value) in said.annotations(attributes.version.minor) {
        attributes.told.annotate(name, &value);
    }
    said.warnings.iter().for_each(|warning| attributes.told.warn(warning));
    let Some(denial) = said.denial else { return Ok(()) };
    let version = attributes.version;
    Err(denial.into_status(&version.group, &version.names.plural, denied_name(attributes, object)))
}

/// Counts the validations that did not simply pass; the time of a policy is divided among them.
fn count(figures: &Figures, head: &Head, binding: &PolicyBinding, verdict: &PolicyVerdict, took: Duration) {
    let took = took / u32::try_from(verdict.decisions.len()).unwrap_or(u32::MAX).max(1);
    let counted = |action, message: &str| figures.checked(&head.name, &binding.name, action, message, took);
    for decision in &verdict.decisions {
        match decision {
            ValidationDecision::Admitted => {}
            ValidationDecision::Failed { message, denies: false } => counted("allow", message),
            ValidationDecision::Denied { message, .. } | ValidationDecision::Failed { message, denies: true } => {
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
