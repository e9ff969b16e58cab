//! What is odd about policies and bindings: what does nothing, and what does not fit.
//!
//! Input: manifests, as they lie together. Output: findings, each with the manifest that it is about. A finding is a fact about
//! these manifests; what else a cluster has is not known.

mod dead;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::is_policy;
use super::read::{ExpressionGroup, expressions, served, variables_in};
use crate::author::Catalog;
use crate::author::lint::of_policies::{
    BINDING_PARAMS, BINDING_WITHOUT_POLICY, CONDITION_ALWAYS, MATCH_NEVER, POLICY_REFUSED, POLICY_TYPES,
    POLICY_WITHOUT_BINDING, VALIDATION_NEVER_FAILS, VARIABLE_UNREAD,
};
use crate::author::lint::{Finding, Lint, apply_ignored};
use crate::cel::cost::model::CALL_LIMIT;
use crate::cel::env::{Env, Expressions};
use crate::cel::eval::{Program, Value as Cel};
use crate::crd::ServedVersion;
use crate::kinds;
use crate::meta::minor::Minor;
use crate::policy::environment::Declarations;
use crate::policy::type_check::{self, TypedPolicy};
use crate::schema::of_type::Quantities;
use crate::value::Value;

/// Everything found, by the index of the manifest.
pub fn lint(manifests: &[&Value]) -> Vec<(usize, Finding)> {
    lint_in(Minor::NEWEST, manifests)
}

/// The same by that version of Kubernetes.
pub fn lint_in(minor: Minor, manifests: &[&Value]) -> Vec<(usize, Finding)> {
    let mut catalog = Catalog::of_minor(minor);
    for manifest in manifests.iter().filter(|manifest| manifest.str_at(&["kind"]) == "CustomResourceDefinition") {
        // The errors of definitions is told elsewhere.
        _ = catalog.add(manifest);
    }
    lint_among(&catalog, manifests)
}

/// The same where the kinds of definitions are known.
pub fn lint_among(catalog: &Catalog, manifests: &[&Value]) -> Vec<(usize, Finding)> {
    let mut linter = Linter { served: served(catalog), catalog, found: Vec::new() };
    let mut policy_set = PolicySet::default();
    for (index, manifest) in manifests.iter().enumerate().filter(|(_, manifest)| is_policy(manifest)) {
        match linter.accepted(index, manifest) {
            Some(object) => policy_set.add(index, object),
            None => policy_set.refuse(manifest),
        }
    }
    linter.look_at(&policy_set);
    let mut found: BTreeMap<usize, Vec<Finding>> = BTreeMap::new();
    linter.found.into_iter().for_each(|(index, finding)| found.entry(index).or_default().push(finding));
    for (index, manifest) in manifests.iter().enumerate().filter(|(_, manifest)| is_policy(manifest)) {
        let metadata = manifest.get("metadata").unwrap_or(&Value::Null);
        apply_ignored(metadata, found.entry(index).or_default());
    }
    found.into_iter().flat_map(|(index, found)| found.into_iter().map(move |finding| (index, finding))).collect()
}

/// Policies and bindings with their defaults, each with its index.
#[derive(Default)]
struct PolicySet {
    /// By kind and name.
    policies: BTreeMap<(String, String), (usize, Value)>,
    bindings: Vec<(usize, Value)>,
    /// What the server would refuse, by kind and name.
    refused: BTreeSet<(String, String)>,
    /// The policies that bindings name, also bindings that the server would refuse.
    bound: BTreeSet<(String, String)>,
}

fn name_of(object: &Value) -> (String, String) {
    (object.str_at(&["kind"]).to_owned(), object.str_at(&["metadata", "name"]).to_owned())
}

/// The kind and name of the policy that a binding names.
fn named_by(binding: &Value) -> (String, String) {
    let kind = binding.str_at(&["kind"]).trim_end_matches("Binding").to_owned();
    (kind, binding.str_at(&["spec", "policyName"]).to_owned())
}

impl PolicySet {
    fn add(&mut self, index: usize, object: Value) {
        let name = name_of(&object);
        if name.0.ends_with("Binding") {
            self.bound.insert(named_by(&object));
            self.bindings.push((index, object));
        } else {
            _ = self.policies.insert(name, (index, object));
        }
    }

    fn refuse(&mut self, manifest: &Value) {
        let name = name_of(manifest);
        if name.0.ends_with("Binding") {
            self.bound.insert(named_by(manifest));
        }
        self.refused.insert(name);
    }

    /// The policy that a binding names.
    fn policy_of(&self, binding: &Value) -> Option<&Value> {
        self.policies.get(&named_by(binding)).map(|(_, policy)| policy)
    }
}

struct Linter<'c> {
    catalog: &'c Catalog,
    served: Vec<Arc<ServedVersion>>,
    found: Vec<(usize, Finding)>,
}

impl Linter<'_> {
    fn tell(&mut self, index: usize, lint: &'static Lint, at: &str, message: String) {
        // What is not of the specification concerns the whole.
        let path = if at.starts_with("spec.") { at.to_owned() } else { String::new() };
        let (places, fix) = (vec![at.to_owned()], lint.remedy.to_owned());
        self.found.push((index, Finding { lint, versions: Vec::new(), path, places, message, fix }));
    }

    /// The manifest with its defaults, unless the server would refuse it.
    fn accepted(&mut self, index: usize, manifest: &Value) -> Option<Value> {
        let (api_version, name) = (manifest.str_at(&["apiVersion"]), manifest.str_at(&["kind"]));
        let minor = self.catalog.minor();
        let is_it = |kind: &&kinds::Kind| kind.kind == name && kind.api_version() == api_version && kind.is_in(minor);
        let Some(kind) = kinds::of_all_minors().find(is_it) else {
            self.tell(index, &POLICY_REFUSED, "apiVersion", format!("there is no {name} in {api_version}"));
            return None;
        };
        let decoded = match kind.strategy.decode(manifest.clone(), &[]) {
            Ok(decoded) => decoded.object,
            Err(why) => {
                self.tell(index, &POLICY_REFUSED, "", why.to_string());
                return None;
            }
        };
        let errors = kind.strategy.validate_create(&kind.served_version_in(minor), &decoded);
        for error in errors.iter() {
            self.tell(index, &POLICY_REFUSED, &error.field, error.to_string());
        }
        errors.is_empty().then_some(decoded)
    }

    fn look_at(&mut self, policy_set: &PolicySet) {
        for (index, binding) in &policy_set.bindings {
            // Of a policy or a binding that is refused the refusal is told, and nothing that may follow from it.
            if !policy_set.refused.contains(&named_by(binding)) {
                self.look_at_binding(*index, binding, policy_set.policy_of(binding));
            }
            let mutates = binding.str_at(&["kind"]).starts_with("Mutating");
            self.look_at_match(*index, binding, "matchResources", mutates);
        }
        for (name, (index, policy)) in &policy_set.policies {
            if !policy_set.bound.contains(name) {
                self.tell(*index, &POLICY_WITHOUT_BINDING, "metadata.name", "no binding uses it".to_owned());
            }
            self.look_at_policy(*index, policy);
        }
    }

    fn look_at_binding(&mut self, index: usize, binding: &Value, policy: Option<&Value>) {
        let name = binding.str_at(&["spec", "policyName"]);
        let Some(policy) = policy else {
            let message = format!("there is no policy `{name}`");
            self.tell(index, &BINDING_WITHOUT_POLICY, "spec.policyName", message);
            return;
        };
        let is_set = |object: &Value, field: &str| object.at(&["spec", field]).is_some_and(|value| !value.is_null());
        match (is_set(policy, "paramKind"), is_set(binding, "paramRef")) {
            (true, false) => {
                let message = format!("policy `{name}` takes parameters, and the binding names none");
                self.tell(index, &BINDING_PARAMS, "spec", message);
            }
            (false, true) => {
                let message = format!("policy `{name}` takes no parameters");
                self.tell(index, &BINDING_PARAMS, "spec.paramRef", message);
            }
            _ => {}
        }
        let part = |object: &'_ Value, field: &str| object.at(&["spec", field]).cloned().unwrap_or_default();
        for at in dead::foreign_rules(&part(binding, "matchResources"), &part(policy, "matchConstraints")) {
            let message = format!("policy `{name}` matches nothing of this");
            self.tell(index, &MATCH_NEVER, &format!("spec.matchResources.{at}"), message);
        }
    }

    fn look_at_match(&mut self, index: usize, object: &Value, field: &str, mutates: bool) {
        let Some(resources) = object.at(&["spec", field]).filter(|resources| !resources.is_null()) else { return };
        for (at, why) in dead::dead_parts(resources, &self.served, mutates) {
            self.tell(index, &MATCH_NEVER, &format!("spec.{field}.{at}"), why);
        }
    }

    fn look_at_policy(&mut self, index: usize, policy: &Value) {
        let mutates = policy.str_at(&["kind"]).starts_with("Mutating");
        self.look_at_match(index, policy, "matchConstraints", mutates);
        self.look_at_types(index, policy);
        self.look_at_expressions(index, policy);
        self.look_at_variables(index, policy);
    }

    /// Expressions that don't fit a kind that the policy matches.
    fn look_at_types(&mut self, index: usize, policy: &Value) {
        let typed = TypedPolicy::new(policy, &self.served, Quantities::Shown);
        for written in expressions(policy) {
            for (kind, fault) in typed.faults(written.text, written.purpose()) {
                let fault = fault.lines().next().unwrap_or_default().replace("ERROR: <input>:", "");
                self.tell(index, &POLICY_TYPES, &written.field, format!("{kind}: {fault}"));
            }
        }
    }

    /// Expressions that come to the same for all requests.
    fn look_at_expressions(&mut self, index: usize, policy: &Value) {
        let env = Declarations::default().environment(Expressions::Stored);
        for written in expressions(policy) {
            let text = written.text.split_whitespace().collect::<Vec<_>>().join(" ");
            let is_validation =
                written.group == ExpressionGroup::Validations && written.field.ends_with("].expression");
            let lint = match (constant(&env, written.text), written.group) {
                (Some(true), ExpressionGroup::Conditions) => &CONDITION_ALWAYS,
                (Some(false), ExpressionGroup::Conditions) => &MATCH_NEVER,
                (Some(true), ExpressionGroup::Validations) if is_validation => &VALIDATION_NEVER_FAILS,
                (None, ExpressionGroup::Validations) if is_validation && self.always_holds(policy, written.text) => {
                    &VALIDATION_NEVER_FAILS
                }
                _ => continue,
            };
            let comes_to = if std::ptr::eq(lint, &MATCH_NEVER) { "no request" } else { "all requests" };
            self.tell(index, lint, &written.field, format!("`{text}` holds for {comes_to}"));
        }
    }

    /// Whether a validation holds for every object that the schemas of its kinds let in. That is told of custom kinds alone,
    /// as nothing enforces the published schemas of others, and where there always is an object.
    fn always_holds(&self, policy: &Value, text: &str) -> bool {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let kinds = type_check::matched(spec, &self.served);
        let writes_objects = spec.items_at(&["matchConstraints", "resourceRules"]).iter().all(|rule| {
            let all = |field: &str, is_fit: fn(&str) -> bool| {
                rule.items_at(&[field]).iter().filter_map(Value::as_str).all(is_fit)
            };
            all("operations", |operation| matches!(operation, "CREATE" | "UPDATE"))
                && all("resources", |resource| !resource.contains(['*', '/']))
                && all("apiGroups", |group| group != "*")
                && all("apiVersions", |version| version != "*")
        });
        let is_custom = |kind: &ServedVersion| self.catalog.named(&kind.group, &kind.names.kind).is_some();
        let env = Declarations::default().environment(Expressions::Stored);
        let Ok(checked) = env.compile(text) else { return false };
        let holds = |kind: &ServedVersion| {
            let decision = crate::author::lint::decide_named(&checked.ast.expr, "object", &kind.structural);
            !decision.may_fail && !decision.may_break
        };
        writes_objects && !kinds.is_empty() && kinds.values().all(|kind| is_custom(kind) && holds(kind))
    }

    /// Variables that no expression reads, and those that only such variables read.
    fn look_at_variables(&mut self, index: usize, policy: &Value) {
        let env = Env::kubernetes(Expressions::Stored).with_mutations();
        let reads = |text: &str| env.parse(text).map(|ast| variables_in(&ast.expr)).unwrap_or_default();
        let variables: Vec<(String, BTreeSet<String>)> = policy
            .items_at(&["spec", "variables"])
            .iter()
            .map(|variable| (variable.str_at(&["name"]).to_owned(), reads(variable.str_at(&["expression"]))))
            .collect();
        let mut read: BTreeSet<String> = expressions(policy).iter().flat_map(|written| reads(written.text)).collect();
        // A variable sees those before it: from the last to the first.
        for (name, reads) in variables.iter().rev() {
            if read.contains(name) {
                read.extend(reads.iter().cloned());
            }
        }
        for (at, (name, _)) in variables.iter().enumerate().filter(|(_, (name, _))| !read.contains(name)) {
            let message = format!("nothing reads the variable `{name}`");
            self.tell(index, &VARIABLE_UNREAD, &format!("spec.variables[{at}]"), message);
        }
    }
}

/// What an expression comes to whatever the request; `None` if it may come to several things.
fn constant(env: &Env, text: &str) -> Option<bool> {
    let checked = env.compile(text).ok()?;
    let program = Program::new(&checked, env).ok()?;
    let nothing: Vec<_> = env.variables.iter().map(|_| None).collect();
    match program.evaluate(&nothing, CALL_LIMIT).result {
        Ok(Cel::Bool(truth)) => Some(truth),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
