//! Lets mutating policies change an object.
//!
//! One object goes through all of them, in the version of the request: a policy that matched another version gets it
//! converted, and gives it back.

use super::{Note, Policies, PolicyExpression, PolicyOutcome, PolicyRequest, Tell, note_conditions, note_variables};
use crate::kinds::{forget_type_of_parameter, is_exempt_from_policies, layout};
use crate::meta::Status;
use crate::policy::mutating::ObjectForm;
use crate::policy::mutation::Misread;
use crate::policy::{Failures, Mutating, Operation, PolicyBinding, Reinvocation};
use crate::value::Value;

const KIND: &str = "MutatingAdmissionPolicy";

/// A policy that acts, as a binding has it, with one of its parameters.
struct Invocation<'p> {
    policy: &'p Mutating,
    binding: &'p PolicyBinding,
    version: std::sync::Arc<crate::crd::ServedVersion>,
    params: Value,
}

impl Invocation<'_> {
    /// What tells it from others in the second round.
    fn key(&self) -> String {
        let [namespace, name] = ["namespace", "name"].map(|field| self.params.str_at(&["metadata", field]));
        format!("{}/{}/{namespace}/{name}", self.policy.head.name, self.binding.name)
    }
}

impl Policies {
    /// Whether a mutating policy may change objects of the request.
    pub fn may_mutate(&self, asked: &PolicyRequest<'_>, object: &Value) -> bool {
        let is_about = |policy: &Mutating| {
            self.version(&policy.head.criteria, asked, object).map_or(true, |version| version.is_some())
        };
        asked.operation != Operation::Delete && self.mutating.iter().any(|bound| is_about(&bound.policy))
    }

    /// What mutating policies make of `object`, in one round or two.
    ///
    /// # Errors
    /// The refusal of a policy that failed.
    pub fn mutate(&self, asked: &PolicyRequest<'_>, object: Value, tell: Tell<'_>) -> Result<Value, Status> {
        let mut object = object;
        if asked.operation == Operation::Delete || is_exempt_from_policies(&asked.target.version) {
            return Ok(object);
        }
        let again = Reinvocation::default();
        object = self.round(asked, object, &again, tell)?;
        if again.begin() { self.round(asked, object, &again, tell) } else { Ok(object) }
    }

    fn round(
        &self,
        asked: &PolicyRequest<'_>,
        object: Value,
        again: &Reinvocation,
        tell: Tell<'_>,
    ) -> Result<Value, Status> {
        let mut failures = Failures::default();
        let mut object = object;
        let invocations = self.invocations(asked, &object, &mut failures);
        if !invocations.is_empty() && again.is_second() {
            again.policies.require_if_changed(&object);
        }
        let mut has_acted = false;
        for invocation in &invocations {
            has_acted |= self.invoke(asked, invocation, &mut object, again, &mut failures, tell)?;
        }
        if has_acted {
            again.policies.require();
            again.require();
        }
        again.policies.leave(&object);
        let version = &asked.target.version;
        let name = asked.target.name_in(asked.name, &object);
        match failures.into_status(&version.group, &version.names.plural, &name) {
            Some(status) => Err(status),
            None => Ok(object),
        }
    }

    /// Who acts on the request.
    fn invocations(&self, asked: &PolicyRequest<'_>, object: &Value, failures: &mut Failures) -> Vec<Invocation<'_>> {
        let mut invocations = Vec::new();
        for bound in &self.mutating {
            let head = &bound.policy.head;
            let version = match self.version(&head.criteria, asked, object) {
                Ok(None) => continue,
                Ok(Some(version)) => version,
                Err(why) => {
                    failures.misconfigured(head, None, &why);
                    continue;
                }
            };
            let target = match self.param_target(asked, head) {
                Ok(target) => target,
                Err(why) => {
                    failures.misconfigured(head, None, &why);
                    continue;
                }
            };
            for binding in &bound.bindings {
                let is_bound = binding.criteria.as_ref().map_or(Ok(true), |criteria| {
                    self.version(criteria, asked, object).map(|version| version.is_some())
                });
                let params = is_bound.and_then(|is_bound| {
                    if !is_bound {
                        return Ok(Vec::new());
                    }
                    let mut params = self.params(asked, target.as_ref(), binding.params.as_ref())?;
                    if let Some(target) = &target {
                        params.iter_mut().for_each(|params| forget_type_of_parameter(&target.version, params));
                    }
                    Ok(params)
                });
                match params {
                    Ok(params) => invocations.extend(params.into_iter().map(|params| Invocation {
                        policy: &bound.policy,
                        binding,
                        version: version.clone(),
                        params,
                    })),
                    Err(why) => failures.misconfigured(head, Some(binding), &why),
                }
            }
        }
        invocations
    }

    /// Lets one act, and tells whether it did: also where nothing came of it.
    fn invoke(
        &self,
        asked: &PolicyRequest<'_>,
        invocation: &Invocation<'_>,
        object: &mut Value,
        again: &Reinvocation,
        failures: &mut Failures,
        tell: Tell<'_>,
    ) -> Result<bool, Status> {
        let (policy, binding) = (invocation.policy, invocation.binding);
        let head = &policy.head;
        let named = (KIND, head.name.as_str());
        let mut seen = match self.seen(asked, &invocation.version, object) {
            Ok(seen) => seen,
            Err(why) => {
                failures.misconfigured(head, None, &why);
                return Ok(false);
            }
        };
        let input = seen.input(asked, &invocation.params);
        note_conditions(named, head, &input, tell);
        let holds = head.match_conditions(&input).hold.unwrap_or_else(|error| {
            failures.failed(head, binding, &error.to_string());
            false
        });
        let key = invocation.key();
        if !holds || !again.policies.asks(&key, again) {
            return Ok(false);
        }
        let types = asked.target.types(&invocation.version);
        let mut has_acted = false;
        for (at, mutation) in policy.mutations.iter().enumerate().filter(|_| !object.is_null()) {
            let form = ObjectForm { types: types.as_ref(), layout: layout::of(&seen.object) };
            let input = seen.input(asked, &invocation.params);
            let mutated = policy.mutate(mutation, &input, form);
            let mutated =
                mutated.and_then(|mutated| mutated.map(|mutated| asked.target.read(&seen.object, mutated)).transpose());
            let is_changed = |mutated: &Option<Value>| mutated.as_ref().is_some_and(|new| *new != seen.object);
            let outcome = PolicyOutcome::of(mutated.as_ref().map(is_changed));
            tell(Note { policy: named, place: PolicyExpression::Mutation(at), outcome, head, input: &input });
            note_variables(named, head, &input, policy.variables_read(mutation, &input), tell);
            match mutated {
                Ok(mutated) => {
                    has_acted = true;
                    seen.object = mutated.unwrap_or(seen.object);
                }
                Err(Misread::Fault(why)) => failures.failed(head, binding, &why),
                Err(broken) => return Err(broken.into_status()),
            }
        }
        if policy.is_reinvoked {
            again.policies.note(&key);
        }
        let back = asked.target.convert(&seen.object, &asked.target.version);
        *object = back.map_err(|why| Status::internal_error(&format!("failed to convert object: {why}")))?;
        Ok(has_acted)
    }
}
