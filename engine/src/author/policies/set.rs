//! The policies among manifests, with what binds them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::PolicyExpression;
use crate::kinds;
use crate::meta::api_version::group_of;
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::minor::Minor;
use crate::policy::{GROUP, Mutating, Policy, PolicyBinding, Validating};
use crate::value::Value;

/// A policy, and what binds it.
pub(super) struct BoundPolicy<P> {
    pub policy: P,
    /// In the order of their names.
    pub bindings: Vec<PolicyBinding>,
}

/// Policies that are ready to be asked, and what they may look up.
#[derive(Default)]
pub struct Policies {
    pub(super) validating: Vec<BoundPolicy<Validating>>,
    pub(super) mutating: Vec<BoundPolicy<Mutating>>,
    /// Manifests that parameters or namespaces may be among.
    pub(super) others: Vec<Value>,
    listed: Vec<Listed>,
    refused: Vec<(String, ErrorList)>,
}

/// The expressions of a policy that is asked.
pub struct Listed {
    /// The kind of the policy.
    pub kind: &'static str,
    /// Its name.
    pub name: String,
    /// What it asks, in the order of its fields.
    pub expressions: Vec<(PolicyExpression, String)>,
}

/// The kinds of policies, each with that of its bindings.
const KINDS: [(&str, &str); 2] = [
    ("ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"),
    ("MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding"),
];

/// Whether a manifest is a policy or a binding of one, in whatever version.
pub fn is_policy(manifest: &Value) -> bool {
    let kind = manifest.str_at(&["kind"]);
    group_of(manifest.str_at(&["apiVersion"])) == GROUP
        && KINDS.iter().any(|(policy, binding)| kind == *policy || kind == *binding)
}

impl Policies {
    /// Takes policies, bindings and what they look up out of manifests; expressions are evaluated as that minor does it. What a
    /// server would refuse is not asked; [`Policies::refused`] tells of it.
    pub fn read<'m>(minor: Minor, manifests: impl IntoIterator<Item = &'m Value>) -> Policies {
        let mut policies = Policies::default();
        let [mut validating, mut mutating] = [BTreeMap::new(), BTreeMap::new()];
        let mut bindings: [BTreeMap<String, Vec<PolicyBinding>>; 2] = Default::default();
        let (written, others): (Vec<&Value>, Vec<&Value>) = manifests.into_iter().partition(|value| is_policy(value));
        for manifest in written {
            let Some(object) = policies.accepted(minor, manifest) else { continue };
            let (kind, name) = (object.str_at(&["kind"]), object.str_at(&["metadata", "name"]).to_owned());
            if kind == KINDS[0].0 {
                validating.insert(name, object);
            } else if kind == KINDS[1].0 {
                mutating.insert(name, object);
            } else {
                let binding = PolicyBinding::decode(&object);
                bindings[usize::from(kind == KINDS[1].1)].entry(binding.policy.clone()).or_default().push(binding);
            }
        }
        let [of_validating, of_mutating] = bindings;
        policies.list(KINDS[0].0, &validating);
        policies.list(KINDS[1].0, &mutating);
        policies.validating = bind(&validating, of_validating, minor);
        policies.mutating = bind(&mutating, of_mutating, minor);
        policies.others = policies.lookups(&others);
        policies
    }

    /// A policy or binding with its defaults, unless that minor does not have its version or would refuse it. Versions that are
    /// served only where `--runtime-config` asks for them are taken.
    fn accepted(&mut self, minor: Minor, manifest: &Value) -> Option<Value> {
        let (api_version, name) = (manifest.str_at(&["apiVersion"]), manifest.str_at(&["kind"]));
        let is_it = |kind: &&kinds::Kind| kind.kind == name && kind.api_version() == api_version && kind.is_in(minor);
        let accepted = match kinds::of_all_minors().find(is_it) {
            Some(kind) => {
                let version = Arc::new(kind.served_version_in(minor));
                let versions = std::slice::from_ref(&version);
                let object = kinds::decode(kind.strategy, &version, manifest.clone(), versions).ok()?.object;
                let errors = kind.strategy.validate_create(&version, &object);
                if errors.is_empty() { Ok(object) } else { Err(errors) }
            }
            None => {
                let detail = format!("Kubernetes {minor} has no {name} in this version");
                Err(Error::invalid(&Path::new("apiVersion"), api_version, detail).into())
            }
        };
        accepted
            .map_err(|why| self.refused.push((format!("{name} {}", manifest.str_at(&["metadata", "name"])), why)))
            .ok()
    }

    fn list(&mut self, kind: &'static str, policies: &BTreeMap<String, Value>) {
        for (name, policy) in policies {
            self.listed.push(Listed { kind, name: name.clone(), expressions: expressions(policy) });
        }
    }

    /// Those of other manifests that a policy may look up.
    fn lookups(&self, others: &[&Value]) -> Vec<Value> {
        let heads = self.validating.iter().map(|bound| &bound.policy.head);
        let heads = heads.chain(self.mutating.iter().map(|bound| &bound.policy.head));
        let params = heads.filter_map(|head| head.param_kind.as_ref()).map(|kind| (kind.group(), kind.kind.as_str()));
        let kinds: BTreeSet<(&str, &str)> = params.chain([("", "Namespace")]).collect();
        let kind_of = |object: &'_ Value| -> (String, String) {
            let group = group_of(object.str_at(&["apiVersion"]));
            (group.to_owned(), object.str_at(&["kind"]).to_owned())
        };
        let is_one = |object: &&&Value| {
            let (group, kind) = kind_of(object);
            kinds.contains(&(group.as_str(), kind.as_str()))
        };
        others.iter().filter(is_one).map(|object| (*object).clone()).collect()
    }

    /// Whether there is nothing that could be asked.
    pub fn is_empty(&self) -> bool {
        self.validating.is_empty() && self.mutating.is_empty()
    }

    /// Policies and bindings that a server would refuse, with the reasons.
    pub fn refused(&self) -> &[(String, ErrorList)] {
        &self.refused
    }

    /// The policies with their expressions, bound or not.
    pub fn listed(&self) -> &[Listed] {
        &self.listed
    }
}

/// Policies that something binds, in the order of their names.
fn bind<P: Policy>(
    policies: &BTreeMap<String, Value>,
    mut bindings: BTreeMap<String, Vec<PolicyBinding>>,
    minor: Minor,
) -> Vec<BoundPolicy<P>> {
    let bound = |(name, policy): (&String, &Value)| {
        let mut bindings = bindings.remove(name)?;
        bindings.sort_by(|one, other| one.name.cmp(&other.name));
        Some(BoundPolicy { policy: P::decode(policy, minor), bindings })
    };
    policies.iter().filter_map(bound).collect()
}

/// What a policy asks, in the order of its fields.
fn expressions(policy: &Value) -> Vec<(PolicyExpression, String)> {
    let spec = policy.get("spec").unwrap_or(&Value::Null);
    let text = |item: &Value, path: &[&str]| item.str_at(path).to_owned();
    let mut found = Vec::new();
    for (at, condition) in spec.items_at(&["matchConditions"]).iter().enumerate() {
        found.push((PolicyExpression::Condition(at), text(condition, &["expression"])));
    }
    for (at, variable) in spec.items_at(&["variables"]).iter().enumerate() {
        found.push((PolicyExpression::Variable(at), text(variable, &["expression"])));
    }
    for (at, validation) in spec.items_at(&["validations"]).iter().enumerate() {
        found.push((PolicyExpression::Validation(at), text(validation, &["expression"])));
        let message = text(validation, &["messageExpression"]);
        if !message.trim().is_empty() {
            found.push((PolicyExpression::Message(at), message));
        }
    }
    for (at, annotation) in spec.items_at(&["auditAnnotations"]).iter().enumerate() {
        found.push((PolicyExpression::Annotation(at), text(annotation, &["valueExpression"])));
    }
    for (at, mutation) in spec.items_at(&["mutations"]).iter().enumerate() {
        let texts = ["applyConfiguration", "jsonPatch"].map(|field| text(mutation, &[field, "expression"]));
        found.push((PolicyExpression::Mutation(at), texts.concat()));
    }
    found
}
