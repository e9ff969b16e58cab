//! What is odd about policies and bindings: what does nothing, and what does not fit.
//!
//! In: manifests, as they lie together. Out: findings, each with the manifest that it is about. A finding is a fact about
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
        // What is wrong with definitions is told elsewhere.
        _ = catalog.add(manifest);
    }
    lint_among(&catalog, manifests)
}

/// The same where the kinds of definitions are known.
pub fn lint_among(catalog: &Catalog, manifests: &[&Value]) -> Vec<(usize, Finding)> {
    let mut linter = Linter { served: served(catalog), catalog, found: Vec::new() };
    let mut together = Together::default();
    for (index, manifest) in manifests.iter().enumerate().filter(|(_, manifest)| is_policy(manifest)) {
        match linter.accepted(index, manifest) {
            Some(object) => together.add(index, object),
            None => together.refuse(manifest),
        }
    }
    linter.look_at(&together);
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
struct Together {
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

impl Together {
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

    fn look_at(&mut self, together: &Together) {
        for (index, binding) in &together.bindings {
            // Of a policy or a binding that is refused the refusal is told, and nothing that may follow from it.
            if !together.refused.contains(&named_by(binding)) {
                self.look_at_binding(*index, binding, together.policy_of(binding));
            }
            let mutates = binding.str_at(&["kind"]).starts_with("Mutating");
            self.look_at_match(*index, binding, "matchResources", mutates);
        }
        for (name, (index, policy)) in &together.policies {
            if !together.bound.contains(name) {
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
mod tests {
    use super::*;
    use crate::value::yaml;

    const BOATS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.harbour.example.com}
spec:
  group: harbour.example.com
  names: {plural: boats, kind: Boat}
  scope: Namespaced
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        required: [spec]
        properties:
          spec:
            type: object
            required: [length]
            properties:
              length: {type: integer, minimum: 1, maximum: 30}
";
    const RULES: &str = "matchConstraints: {resourceRules: [{apiGroups: [harbour.example.com], apiVersions: [v1], \
                         operations: [CREATE, UPDATE], resources: [boats]}]}";

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("the test is YAML")
    }

    fn policy(spec: &str) -> Value {
        read(&format!(
            "{{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicy, metadata: {{name: p}}, \
             spec: {{{spec}}}}}"
        ))
    }

    fn binding(spec: &str) -> Value {
        read(&format!(
            "{{apiVersion: admissionregistration.k8s.io/v1, kind: ValidatingAdmissionPolicyBinding, metadata: {{name: \
             b}}, spec: {{policyName: p, validationActions: [Deny]{spec}}}}}"
        ))
    }

    /// The ids and messages of what is found.
    #[track_caller]
    fn check(manifests: &[Value], expected: &[(&str, &str)]) {
        let manifests: Vec<&Value> = manifests.iter().collect();
        let found = lint(&manifests);
        let found: Vec<_> = found.iter().map(|(_, finding)| (finding.lint.id, finding.message.as_str())).collect();
        assert_eq!(found, expected);
    }

    /// The same of a bound policy about boats with this spec.
    #[track_caller]
    fn check_policy(spec: &str, expected: &[(&str, &str)]) {
        check(&[read(BOATS), policy(&format!("{RULES}, {spec}")), binding("")], expected);
    }

    #[test]
    fn policies_and_bindings_belong_together() {
        let fine = policy(&format!("{RULES}, validations: [{{expression: object.spec.length > 2}}]"));
        check(&[fine.clone(), binding("")], &[]);
        check(&[fine], &[("policy-without-binding", "no binding uses it")]);
        check(&[binding("")], &[("binding-without-policy", "there is no policy `p`")]);
        let refused = policy(&format!("{RULES}, validations: []"));
        let refused: Vec<&Value> = vec![&refused];
        let alone: Vec<_> = lint(&refused).into_iter().map(|(_, finding)| finding.lint.id).collect();
        let bound = binding("");
        let both: Vec<_> = lint(&[refused[0], &bound]).into_iter().map(|(_, finding)| finding.lint.id).collect();
        assert!(!alone.is_empty() && alone == both, "{alone:?} {both:?}");
        let params = policy(&format!(
            "{RULES}, paramKind: {{apiVersion: v1, kind: ConfigMap}}, validations: \
                                      [{{expression: params != null}}]"
        ));
        let message = "policy `p` takes parameters, and the binding names none";
        check(&[params, binding("")], &[("binding-params", message)]);
    }

    #[test]
    fn nothing_follows_from_a_refusal() {
        let ids = |manifests: &[&Value]| lint(manifests).iter().map(|(_, found)| found.lint.id).collect::<Vec<_>>();
        let fine = policy(&format!("{RULES}, validations: [{{expression: object.spec.length > 2}}]"));
        let refused = binding(", matchResources: {matchPolicy: Shrug}");
        assert_eq!(ids(&[&fine, &refused]), ["policy-refused"]);
        // What a binding matches is its own.
        let never = "matchResources: {resourceRules: [{operations: [CREATE], apiGroups: [apps], apiVersions: [v1], resources: [pods]}]}";
        let refused = policy(&format!("{RULES}, validations: []"));
        assert_eq!(
            ids(&[&refused, &binding(&format!(", {never}"))]),
            ["policy-refused", "policy-refused", "match-never"]
        );
    }

    #[test]
    fn a_rule_of_a_binding_that_its_policy_does_not_match_is_told() {
        let fine = policy(&format!("{RULES}, validations: [{{expression: object.spec.length > 2}}]"));
        let bound =
            |rule: &str| binding(&format!(", matchResources: {{resourceRules: [{{apiVersions: ['*'], {rule}}}]}}"));
        let told = [("match-never", "policy `p` matches nothing of this")];
        for rule in [
            "operations: [CREATE], apiGroups: [harbour.example.com], resources: [boats/status]",
            "operations: [DELETE], apiGroups: [harbour.example.com], resources: [boats]",
            "operations: ['*'], apiGroups: [apps], resources: [deployments]",
        ] {
            check(&[fine.clone(), bound(rule)], &told);
        }
        for rule in [
            "operations: [CREATE], apiGroups: [harbour.example.com], resources: [boats]",
            "operations: ['*'], apiGroups: ['*'], resources: ['*/*'], scope: Namespaced",
        ] {
            check(&[fine.clone(), bound(rule)], &[]);
        }
    }

    #[test]
    fn a_validation_that_can_never_fail_is_told() {
        let never = |text: &str| format!("`{text}` holds for all requests");
        for text in ["true", "1 < 2", "true || object.spec.length > 2", "object.spec.length < 31", "has(object.spec)"] {
            let spec = format!("validations: [{{expression: '{text}'}}]");
            check_policy(&spec, &[("validation-never-fails", &never(text))]);
        }
        check_policy("validations: [{expression: object.spec.length < 30}]", &[]);
        check_policy(
            "validations: [{expression: oldObject == null || object.spec.length < 31}]",
            &[("validation-never-fails", &never("oldObject == null || object.spec.length < 31"))],
        );
    }

    #[test]
    fn an_expression_that_does_not_fit_its_kind_is_told() {
        let message = "harbour.example.com/v1, Kind=Boat: 1:12: undefined field 'width'";
        check_policy("validations: [{expression: object.spec.width < 3}]", &[("policy-types", message)]);
    }

    #[test]
    fn every_expression_is_held_against_the_kind() {
        let boat = "harbour.example.com/v1, Kind=Boat";
        let spec = "matchConditions: [{name: c, expression: \"object.metadta.name != ''\"}, {name: d, expression: \
                    authorizer.requestResource.check('get').allowed()}], validations: [{expression: object.spec.length < 30, \
                    messageExpression: string(object.spec.nam)}], auditAnnotations: [{key: k, valueExpression: \
                    string(object.spec.widths)}]";
        check_policy(
            spec,
            &[
                ("policy-types", &format!("{boat}: 1:7: undefined field 'metadta'")),
                ("policy-types", &format!("{boat}: 1:19: undefined field 'nam'")),
                ("policy-types", &format!("{boat}: 1:19: undefined field 'widths'")),
            ],
        );
    }

    #[test]
    fn a_mutation_that_sets_what_a_kind_does_not_have_is_told() {
        let mutating = |patch_type: &str, field: &str, expression: &str| {
            let rules = "matchConstraints: {resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [CREATE], \
                         resources: [configmaps]}]}";
            let text = format!(
                "{{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicy, metadata: {{name: p}}, spec: \
                 {{{rules}, reinvocationPolicy: Never, mutations: [{{patchType: {patch_type}, {field}: {{expression: \
                 \"{expression}\"}}}}]}}}}"
            );
            let binding = "{apiVersion: admissionregistration.k8s.io/v1, kind: MutatingAdmissionPolicyBinding, metadata: \
                           {name: b}, spec: {policyName: p}}";
            [read(&text), read(binding)]
        };
        let apply = |expression: &str| mutating("ApplyConfiguration", "applyConfiguration", expression);
        check(&apply("Object{data: {'a': 'b'}, metadata: Object.metadata{labels: {'a': 'b'}}}"), &[]);
        let map = "/v1, Kind=ConfigMap";
        check(
            &apply("Object{dta: {'a': 'b'}}"),
            &[("policy-types", &format!("{map}: undefined field 'dta' in 'Object'"))],
        );
        check(
            &apply("Object{metadata: Object.metadata{label: {'a': 'b'}}}"),
            &[("policy-types", &format!("{map}: undefined field 'label' in 'Object.metadata'"))],
        );
        check(
            &mutating("JSONPatch", "jsonPatch", "[JSONPatch{op: 'add', path: '/a', value: object.dta}]"),
            &[("policy-types", &format!("{map}: 1:48: undefined field 'dta'"))],
        );
    }

    #[test]
    fn variables_that_nobody_reads_are_told() {
        let spec = "variables: [{name: a, expression: object.spec.length}, {name: b, expression: variables.a + 1}, \
                    {name: c, expression: object.spec.length}], validations: [{expression: variables.c > 3}]";
        check_policy(
            spec,
            &[
                ("variable-unread", "nothing reads the variable `a`"),
                ("variable-unread", "nothing reads the variable `b`"),
            ],
        );
    }

    #[test]
    fn conditions_that_let_all_or_nothing_pass_are_told() {
        let rest = "validations: [{expression: object.spec.length > 2}]";
        let condition = |text: &str| format!("matchConditions: [{{name: c, expression: '{text}'}}], {rest}");
        check_policy(&condition("true"), &[("condition-always-holds", "`true` holds for all requests")]);
        check_policy(&condition("1 == 2"), &[("match-never", "`1 == 2` holds for no request")]);
    }

    #[test]
    fn rules_that_can_not_match_are_told() {
        let rules = |rule: &str| {
            let spec = format!(
                "matchConstraints: {{resourceRules: [{{operations: [CREATE], {rule}}}]}}, validations: [{{expression: \
                 request.name != 'a'}}]"
            );
            [policy(&spec), binding("")]
        };
        let never = |rule: &str, why: &str| check(&rules(rule), &[("match-never", why)]);
        never("apiGroups: [apps], apiVersions: [v1], resources: [pods]", "nothing is served as `pods` in `apps`");
        never(
            "apiGroups: [apps], apiVersions: [v1beta1], resources: [deployments]",
            "`deployments` in `apps` is not served in v1beta1",
        );
        never("apiGroups: [''], apiVersions: [v1], resources: [pods/scale]", "`pods` has no subresource `scale`");
        never(
            "apiGroups: [''], apiVersions: [v1], resources: [nodes], scope: Namespaced",
            "`nodes` is in no namespace",
        );
        never(
            "apiGroups: [admissionregistration.k8s.io], apiVersions: [v1], resources: [validatingadmissionpolicies]",
            "no policy is asked about `validatingadmissionpolicies`",
        );
        check(&rules("apiGroups: [apps, ''], apiVersions: [v1], resources: [pods]"), &[]);
        check(&rules("apiGroups: [example.com], apiVersions: [v9], resources: [things]"), &[]);
    }

    #[test]
    fn selectors_that_select_nothing_are_told() {
        let selector = "{matchLabels: {env: prod}, matchExpressions: [{key: env, operator: NotIn, values: [prod]}]}";
        let spec = format!(
            "matchConstraints: {{namespaceSelector: {selector}, resourceRules: [{{operations: [CREATE], apiGroups: \
             [''], apiVersions: [v1], resources: [pods]}}]}}, validations: [{{expression: request.name != 'a'}}]"
        );
        check(&[policy(&spec), binding("")], &[("match-never", "no labels fit all that is asked of `env`")]);
    }

    #[test]
    fn what_the_annotation_names_is_left_out() {
        let alone = policy(&format!(
            "{RULES}, variables: [{{name: a, expression: '1'}}], validations: [{{expression: 'true'}}]"
        ));
        let annotated = |ignored: &str| {
            let mut alone = alone.clone();
            let annotations = read(&format!("{{skiff.kubeskiff.dev/lint-ignore: '{ignored}'}}"));
            alone.make_object().entry("metadata").make_object().insert("annotations", annotations);
            alone
        };
        let never_fails = ("validation-never-fails", "`true` holds for all requests");
        let unread = ("variable-unread", "nothing reads the variable `a`");
        check(&[annotated("policy-without-binding")], &[never_fails, unread]);
        let by_path = "policy-without-binding, variable-unread:spec.variables[0], \
                       validation-never-fails:spec.validations[1].expression";
        check(&[annotated(by_path)], &[never_fails]);
        let ignored = annotated("policy-without-binding,variable-unread,validation-never-fails,policy");
        check(&[ignored], &[("unknown-ignore", "no lint is called `policy`")]);
    }
}
