//! Asks validating policies about a request.

use super::lookup::LookupError;
use super::set::BoundPolicy;
use super::{
    MatchedRequest, Note, Policies, PolicyExpression, PolicyOutcome, PolicyRequest, PolicyTarget, Tell,
    note_conditions, note_variables,
};
use crate::kinds::is_exempt_from_policies;
use crate::policy::validating::{PolicyVerdict, ValidationDecision};
use crate::policy::{PolicyBinding, PolicyInput, Validating, Verdicts};
use crate::value::Value;

const KIND: &str = "ValidatingAdmissionPolicy";

impl Policies {
    /// What validating policies say of a request; `object` is null for a deletion. All are asked, also after a refusal.
    pub fn validate(&self, asked: &PolicyRequest<'_>, object: &Value, tell: Tell<'_>) -> Verdicts {
        let mut said = Verdicts::default();
        if is_exempt_from_policies(&asked.target.version) {
            return said;
        }
        for bound in &self.validating {
            let head = &bound.policy.head;
            let seen = match self.version(&head.criteria, asked, object) {
                Ok(None) => continue,
                Ok(Some(version)) => self.seen(asked, &version, object),
                Err(why) => {
                    said.misconfigured(head, None, &why);
                    continue;
                }
            };
            match (seen, self.param_target(asked, head)) {
                (Ok(seen), Ok(params)) => {
                    for binding in &bound.bindings {
                        let outcome =
                            self.ask(asked, bound, binding, (&seen, params.as_ref()), object, &mut said, tell);
                        outcome.unwrap_or_else(|why| said.misconfigured(head, Some(binding), &why));
                    }
                }
                (Err(why), _) | (_, Err(why)) => said.misconfigured(head, None, &why),
            }
        }
        said
    }

    /// Asks one policy as one of its bindings has it.
    #[expect(clippy::too_many_arguments, reason = "a policy, a binding and what each of them sees")]
    fn ask(
        &self,
        asked: &PolicyRequest<'_>,
        bound: &BoundPolicy<Validating>,
        binding: &PolicyBinding,
        (seen, params): (&MatchedRequest, Option<&PolicyTarget>),
        object: &Value,
        said: &mut Verdicts,
        tell: Tell<'_>,
    ) -> Result<(), LookupError> {
        if let Some(criteria) = &binding.criteria
            && self.version(criteria, asked, object)?.is_none()
        {
            return Ok(());
        }
        for param in &self.params(asked, params, binding.params.as_ref())? {
            let input = seen.input(asked, param);
            let head = &bound.policy.head;
            note_conditions((KIND, &head.name), head, &input, tell);
            let verdict = bound.policy.evaluate(&input);
            note(&bound.policy, &input, &verdict, tell);
            said.take_in(head, binding, verdict);
        }
        Ok(())
    }
}

/// Tells what each validation came to, and what else the policy evaluates, where that was evaluated.
fn note(policy: &Validating, input: &PolicyInput<'_>, verdict: &PolicyVerdict, tell: Tell<'_>) {
    let head = &policy.head;
    let named = (KIND, head.name.as_str());
    let is_asked = head.match_conditions(input).hold == Ok(true);
    if !is_asked || verdict.decisions.len() != policy.validations_count() {
        return;
    }
    for (at, decision) in verdict.decisions.iter().enumerate() {
        let outcome = match decision {
            ValidationDecision::Admitted => PolicyOutcome::Held,
            ValidationDecision::Denied { .. } => PolicyOutcome::Failed,
            ValidationDecision::Failed { .. } => PolicyOutcome::Broke,
        };
        tell(Note { policy: named, place: PolicyExpression::Validation(at), outcome, head, input });
    }
    let beside = policy.beside(input);
    for (at, outcome) in beside.messages {
        tell(Note {
            policy: named,
            place: PolicyExpression::Message(at),
            outcome: PolicyOutcome::of(outcome),
            head,
            input,
        });
    }
    for (at, outcome) in beside.annotations.into_iter().enumerate() {
        tell(Note {
            policy: named,
            place: PolicyExpression::Annotation(at),
            outcome: PolicyOutcome::of(outcome),
            head,
            input,
        });
    }
    note_variables(named, head, input, beside.variables, tell);
}
