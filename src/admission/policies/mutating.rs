//! Mutating policies: they change an object, one after the other.
//!
//! Which of them apply is determined before the first one runs. Each sees the object as the
//! previous ones left it, decoded as if a client had sent it, with the defaults of its version.
//! Policies that match another version of the resource share an object in that version; the version
//! that the last policy ran on counts.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/{generic,mutating}`, release 1.37.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;

use super::params::LookupError;
use super::{Hook, MatchedObjects, PolicyRound, PolicySource, asked_about, count};
use crate::admission::{Admission, Attributes, Figures, FormError, Misread, Operation, denied_name};
use crate::auth::Authorizer;
use crate::crd::ServedVersion;
use crate::kinds::{forget_type_of_parameter, layout};
use crate::meta::Status;
use crate::policy::mutating::{Mutating, Mutation, ObjectForm};
use crate::policy::{Failures, PolicyBinding};
use crate::value::Value;

/// The admission step that runs mutating policies.
pub struct MutatingPolicies<S> {
    pub source: S,
    /// The authorizer behind the variable `authorizer`.
    pub authorizer: Arc<dyn Authorizer>,
    pub figures: Arc<Figures>,
}

#[async_trait]
impl<S: PolicySource<Mutating>> Admission for MutatingPolicies<S> {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        // A deletion has no object to change.
        if attributes.operation == Operation::Delete {
            return Ok(());
        }
        count(&self.source, attributes).await;
        let hooks = asked_about(&self.source, attributes).await?;
        if hooks.is_empty() { Ok(()) } else { self.act(&hooks, attributes, object).await }
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }

    fn takes_connections(&self) -> bool {
        true
    }
}

/// A policy to run for one of its bindings, with one of its parameters.
struct Invocation<'h> {
    policy: &'h Mutating,
    binding: &'h PolicyBinding,
    version: Arc<ServedVersion>,
    /// Null if the policy has no parameters. Bindings that select the same object share it.
    params: Arc<Value>,
}

/// Parameters of a request, by the kind, the namespace and the name of each.
type KnownParams = HashMap<[String; 4], Arc<Value>>;

impl Invocation<'_> {
    /// Identifies the invocation in the second round.
    fn key(&self) -> String {
        let [namespace, name] = ["namespace", "name"].map(|field| self.params.str_at(&["metadata", field]));
        format!("{}/{}/{namespace}/{name}", self.policy.head.name, self.binding.name)
    }
}

/// The parameters of a binding, of which those of built-in kinds do not say what they are.
async fn params(
    round: &PolicyRound<'_>,
    version: Option<&Arc<ServedVersion>>,
    binding: &PolicyBinding,
    known: &mut KnownParams,
) -> Result<Vec<Arc<Value>>, LookupError> {
    let found = round.params(version, binding.params.as_ref()).await?;
    let Some(version) = version else { return Ok(found.into_iter().map(Arc::new).collect()) };
    let share = |mut params: Value| {
        let of = |field| params.str_at(&["metadata", field]).to_owned();
        let key = [version.api_version(), version.names.kind.clone(), of("namespace"), of("name")];
        let known = known.entry(key).or_insert_with(|| {
            forget_type_of_parameter(version, &mut params);
            Arc::new(params)
        });
        Arc::clone(known)
    };
    Ok(found.into_iter().map(share).collect())
}

impl<S: PolicySource<Mutating>> MutatingPolicies<S> {
    async fn act(
        &self,
        hooks: &[Hook<Mutating>],
        attributes: &Attributes<'_>,
        object: &mut Value,
    ) -> Result<(), Status> {
        let round = PolicyRound::new(attributes, &self.source, &self.authorizer);
        let mut failures = Failures::default();
        let mut forms: Vec<MatchedObjects<'static>> = Vec::new();
        let invocations = self.collect(&round, hooks, object, &mut forms, &mut failures).await;
        if !invocations.is_empty() {
            let again = attributes.reinvocation;
            if again.is_second() {
                again.policies.require_if_changed(object);
            }
            let outcome = self.invoke(&round, &invocations, forms, object, &mut failures).await;
            again.policies.leave(object);
            outcome?;
        }
        let version = attributes.version;
        let name = denied_name(attributes, object);
        failures.into_status(&version.group, &version.names.plural, name).map_or(Ok(()), Err)
    }

    /// The policies to run for the request, and the object in the versions that they see.
    async fn collect<'h>(
        &self,
        round: &PolicyRound<'_>,
        hooks: &'h [Hook<Mutating>],
        object: &Value,
        forms: &mut Vec<MatchedObjects<'static>>,
        failures: &mut Failures,
    ) -> Vec<Invocation<'h>> {
        let (mut invocations, mut known) = (Vec::new(), KnownParams::new());
        for hook in hooks {
            let head = &hook.policy.head;
            let version = match round.version(&head.criteria, object).await {
                Ok(None) => continue,
                Ok(Some(version)) => version,
                Err(fault) => {
                    failures.misconfigured(head, None, &fault.to_string());
                    continue;
                }
            };
            let param_version = match round.param_version(head).await {
                Ok(version) => version,
                Err(why) => {
                    failures.misconfigured(head, None, &why);
                    continue;
                }
            };
            for binding in &hook.bindings {
                let bound = match &binding.criteria {
                    None => Ok(true),
                    Some(criteria) => round.version(criteria, object).await.map(|version| version.is_some()),
                };
                match bound {
                    Ok(false) => continue,
                    Ok(true) => {}
                    Err(fault) => {
                        failures.misconfigured(head, Some(binding), &fault.to_string());
                        continue;
                    }
                }
                if let Err(error) = bring(round, &version, object, forms).await {
                    failures.misconfigured(head, None, &error.to_string());
                    continue;
                }
                match params(round, param_version.as_ref(), binding, &mut known).await {
                    Ok(params) => invocations.extend(params.into_iter().map(|params| Invocation {
                        policy: &hook.policy,
                        binding,
                        version: Arc::clone(&version),
                        params,
                    })),
                    Err(why) => failures.misconfigured(head, Some(binding), &why),
                }
            }
        }
        invocations
    }

    /// Runs all invocations; in the second round only those that ask for it.
    async fn invoke(
        &self,
        round: &PolicyRound<'_>,
        invocations: &[Invocation<'_>],
        mut forms: Vec<MatchedObjects<'static>>,
        object: &mut Value,
        failures: &mut Failures,
    ) -> Result<(), Status> {
        let again = round.attributes.reinvocation;
        let namespace = round.namespace_object().await?;
        let mut changed = vec![false; forms.len()];
        let mut last = None;
        for invocation in invocations {
            let place = forms.iter().position(|seen| Arc::ptr_eq(&seen.version, &invocation.version));
            let Some((place, seen)) = place.and_then(|place| Some((place, forms.get_mut(place)?))) else { continue };
            let head = &invocation.policy.head;
            match round.match_conditions(head, &round.input(seen, &namespace, &invocation.params), &self.figures) {
                Ok(true) => {}
                Ok(false) => continue,
                Err(error) => {
                    failures.failed(head, invocation.binding, &error.to_string());
                    continue;
                }
            }
            let key = invocation.key();
            if !again.policies.asks(&key, again) {
                continue;
            }
            last = Some(place);
            for mutation in &invocation.policy.mutations {
                if seen.object.is_null() {
                    continue;
                }
                let began = Instant::now();
                let outcome = mutate(round, invocation, mutation, seen, &namespace);
                let failure = outcome.as_ref().err().map(Misread::text);
                self.figures.mutated(&head.name, &invocation.binding.name, failure, began.elapsed());
                match outcome {
                    Ok(mutated) => {
                        if let Some(mutated) = mutated {
                            seen.object = Cow::Owned(mutated);
                        }
                        // This holds even if nothing was changed.
                        changed[place] = true;
                    }
                    Err(Misread::Fault(why)) => failures.failed(head, invocation.binding, &why),
                    Err(broken) => return Err(broken.into_status()),
                }
            }
            if invocation.policy.is_reinvoked {
                again.policies.note(&key);
            }
        }
        let Some(place) = last.filter(|place| changed[*place]) else { return Ok(()) };
        again.policies.require();
        again.require();
        let settled = settle(round.attributes, forms.swap_remove(place).object.into_owned()).await?;
        round.attributes.told.replace(object, settled);
        Ok(())
    }
}

/// Adds the object in `version` to `forms`, unless it is there.
async fn bring(
    round: &PolicyRound<'_>,
    version: &Arc<ServedVersion>,
    object: &Value,
    forms: &mut Vec<MatchedObjects<'static>>,
) -> Result<(), FormError> {
    if forms.iter().any(|seen| Arc::ptr_eq(&seen.version, version)) {
        return Ok(());
    }
    let seen = round.seen(Arc::clone(version), object).await?;
    forms.push(MatchedObjects {
        version: seen.version,
        object: Cow::Owned(seen.object.into_owned()),
        old: Cow::Owned(seen.old.into_owned()),
        request: seen.request,
    });
    Ok(())
}

/// The object after one mutation; `None` if it is unchanged.
fn mutate(
    round: &PolicyRound<'_>,
    invocation: &Invocation<'_>,
    mutation: &Mutation,
    seen: &MatchedObjects<'_>,
    namespace: &Value,
) -> Result<Option<Value>, Misread> {
    let forms = round.attributes.forms;
    let types = forms.types(&seen.object, &seen.version);
    let form = ObjectForm { types: types.as_deref(), layout: layout::of(&seen.object) };
    let input = round.input(seen, namespace, &invocation.params);
    let mutated = invocation.policy.mutate(mutation, &input, form)?;
    mutated.map(|mutated| forms.read(&seen.object, mutated)).transpose()
}

/// The object that the policies returned, in the version of the request.
async fn settle(attributes: &Attributes<'_>, object: Value) -> Result<Value, Status> {
    let broken = |error: FormError| Status::internal_error(&format!("failed to convert object: {error}"));
    let object = match attributes.subresource {
        "scale" => object,
        _ => attributes.forms.convert(object, attributes.version).await.map_err(broken)?,
    };
    attributes.forms.settle(object).map_err(|error| Status::internal_error(&error.to_string()))
}
