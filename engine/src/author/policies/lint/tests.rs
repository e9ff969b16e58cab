//! Policies, and what is found in them.

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
    assert_eq!(ids(&[&refused, &binding(&format!(", {never}"))]), ["policy-refused", "policy-refused", "match-never"]);
}

#[test]
fn a_rule_of_a_binding_that_its_policy_does_not_match_is_told() {
    let fine = policy(&format!("{RULES}, validations: [{{expression: object.spec.length > 2}}]"));
    let bound = |rule: &str| binding(&format!(", matchResources: {{resourceRules: [{{apiVersions: ['*'], {rule}}}]}}"));
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
    check(&apply("Object{dta: {'a': 'b'}}"), &[("policy-types", &format!("{map}: undefined field 'dta' in 'Object'"))]);
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
        &[("variable-unread", "nothing reads the variable `a`"), ("variable-unread", "nothing reads the variable `b`")],
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
    never("apiGroups: [''], apiVersions: [v1], resources: [nodes], scope: Namespaced", "`nodes` is in no namespace");
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
    let alone =
        policy(&format!("{RULES}, variables: [{{name: a, expression: '1'}}], validations: [{{expression: 'true'}}]"));
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
