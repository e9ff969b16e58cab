//! Manifests in, verdicts out.

use std::sync::Arc;

use super::admit::{AdmissionSetup, Admitted, SentRequest};
use super::coverage::Coverage;
use super::{Policies, RequestUser, case};
use crate::author::{BuiltIn, Catalog, CheckOptions, Checked, create, update};
use crate::cel::library::authorizer::{AuthorizerAnswer, AuthorizerCheck, RuleAuthorizer};
use crate::meta::minor::Minor;
use crate::policy::Operation;
use crate::value::{Value, yaml};

const BOATS: &str = "
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: boats.harbour.example.com}
spec:
  group: harbour.example.com
  names: {plural: boats, kind: Boat}
  scope: Namespaced
  versions:
  - &version
    name: v1
    served: true
    storage: true
    subresources:
      status: {}
      scale: {specReplicasPath: .spec.crew, statusReplicasPath: .status.crew}
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            properties:
              length: {type: integer, maximum: 30}
              crew: {type: integer, default: 1}
          status: {type: object, properties: {moored: {type: boolean}}}
  - {<<: *version, name: v2, storage: false}
";

/// Lets everybody read.
#[derive(Debug)]
struct OnlyReading;

impl RuleAuthorizer for OnlyReading {
    fn decide(&self, check: &AuthorizerCheck) -> AuthorizerAnswer {
        let (AuthorizerCheck::Path { verb, .. } | AuthorizerCheck::Resource { verb, .. }) = check;
        AuthorizerAnswer { allowed: verb == "get", ..AuthorizerAnswer::default() }
    }

    fn service_account(&self, _: &str, _: &str) -> Arc<dyn RuleAuthorizer> {
        Arc::new(OnlyReading)
    }
}

fn read(text: &str) -> Value {
    yaml::decode(text.as_bytes()).expect("the test is YAML")
}

/// A policy that boats meet, with a binding; `kind` is `Validating` or `Mutating`.
fn policy(kind: &str, spec: &str, binding: &str) -> [Value; 2] {
    let rules = "matchConstraints: {resourceRules: [{apiGroups: ['*'], apiVersions: ['*'], operations: ['*'], \
                 resources: ['*/*']}]}";
    let with = |kind: &str, spec: &str| {
        read(&format!(
            "{{apiVersion: admissionregistration.k8s.io/v1, kind: {kind}, metadata: {{name: p}}, spec: {{{spec}}}}}"
        ))
    };
    [
        with(&format!("{kind}AdmissionPolicy"), &format!("{rules}, {spec}")),
        with(&format!("{kind}AdmissionPolicyBinding"), &format!("policyName: p, {binding}")),
    ]
}

fn validating(spec: &str) -> [Value; 2] {
    policy("Validating", spec, "validationActions: [Deny]")
}

fn boats() -> Catalog {
    let mut catalog = Catalog::default();
    catalog.add(&read(BOATS)).expect("it is a definition");
    catalog
}

fn boat(rest: &str) -> Value {
    read(&format!("{{apiVersion: harbour.example.com/v1, kind: Boat, metadata: {{name: a}}, {rest}}}"))
}

/// What becomes of a request.
fn admit(manifests: &[Value], sent: SentRequest<'_>, setting: &str, coverage: &mut Coverage) -> Admitted {
    let catalog = boats();
    let setting = case::Setting::decode(&read(setting), None);
    let policies = Policies::read(Minor::NEWEST, manifests);
    assert!(policies.refused().is_empty(), "{:?}", policies.refused());
    let request_user = RequestUser { user: setting.user, authorizer: Arc::new(OnlyReading) };
    let (beside, namespace) = (&setting.beside, &setting.namespace);
    let admission = AdmissionSetup {
        policies: &policies,
        catalog: &catalog,
        request_user: &request_user,
        beside,
        namespace,
        home: "",
    };
    let options = CheckOptions { is_status: sent.subresource == "status", ..CheckOptions::default() };
    let mut check = |object: &Value| -> Checked {
        match (catalog.of(object), sent.old) {
            (Some(kind), None) => create(kind, object, options),
            (Some(kind), Some(old)) => update(kind, object, old, options),
            (None, old) => {
                let kind = BuiltIn::of(object.str_at(&["apiVersion"]), object.str_at(&["kind"])).expect("it is known");
                kind.write(object, old).expect("it can be read")
            }
        }
    };
    coverage.expect(&policies);
    admission.admit(sent, &mut check, &mut |note| coverage.note(note)).expect("the kind is known")
}

fn sent(object: &Value) -> SentRequest<'_> {
    SentRequest { object, old: None, subresource: "", operation: None }
}

/// The denial of a creation.
#[track_caller]
fn check(manifests: &[Value], object: &str, setting: &str, expected: Option<&str>) {
    let object = boat(object);
    let admitted = admit(manifests, sent(&object), setting, &mut Coverage::default());
    assert!(admitted.checked.errors.is_empty(), "{:?}", admitted.checked.errors);
    let prefix = "ValidatingAdmissionPolicy 'p' with binding 'p' denied request: ";
    let whole = "boats.harbour.example.com \"a\" is forbidden: ";
    let expected = expected.map(|why| format!("{whole}{prefix}{why}"));
    assert_eq!(admitted.denial.map(|denial| denial.message), expected);
}

#[test]
fn a_creation_is_denied_with_its_defaults_seen() {
    let rule = validating("validations: [{expression: object.spec.crew > 1, message: too few}]");
    check(&rule, "spec: {crew: 2}", "{}", None);
    check(&rule, "spec: {}", "{}", Some("too few"));
    let [alone, _] = rule;
    check(&[alone], "spec: {}", "{}", None);
}

#[test]
fn policies_see_the_user_and_the_namespace() {
    let rule = validating(
        "validations: [{expression: request.userInfo.username == 'jane' && 'crew' in request.userInfo.groups}, \
         {expression: namespaceObject.metadata.labels.env == 'prod', message: not here}, \
         {expression: \"authorizer.requestResource.check('get').allowed()\"}]",
    );
    let setting = "{user: {name: jane, groups: [crew]}, namespace: {name: harbour, labels: {env: prod}}}";
    check(&rule, "spec: {}", setting, None);
    check(&rule, "spec: {}", &setting.replace("prod", "test"), Some("not here"));
    let nobody = setting.replace("jane", "joe");
    let why = "failed expression: request.userInfo.username == 'jane' && 'crew' in request.userInfo.groups";
    check(&rule, "spec: {}", &nobody, Some(why));
}

#[test]
fn parameters_are_found_among_manifests_and_cases() {
    let spec = "paramKind: {apiVersion: v1, kind: ConfigMap}, validations: [{expression: \
                object.spec.length <= int(params.data.max), messageExpression: \"'at most ' + params.data.max\"}]";
    let binding = "validationActions: [Deny], paramRef: {name: limits, parameterNotFoundAction: Deny}";
    let [rule, bound] = policy("Validating", spec, binding);
    let map =
        |max: u32| format!("{{apiVersion: v1, kind: ConfigMap, metadata: {{name: limits}}, data: {{max: '{max}'}}}}");
    let manifests = [rule, bound, read(&map(5))];
    check(&manifests, "spec: {length: 5}", "{}", None);
    check(&manifests, "spec: {length: 6}", "{}", Some("at most 5"));
    check(&manifests, "spec: {length: 6}", &format!("{{params: [{}]}}", map(6)), None);
    let none = "failed to configure binding: no params found for policy binding with `Deny` parameterNotFoundAction";
    check(&manifests, "spec: {length: 5}", "{namespace: {name: other}}", Some(none));
}

#[test]
fn an_update_a_deletion_and_a_status_are_requests_of_their_own() {
    let rule = validating(
        "validations: [{expression: \"request.operation == 'DELETE' ? object == null && oldObject.spec.crew > 1 : \
         (has(request.subResource) ? object.status.moored == true : object.spec.crew >= oldObject.spec.crew)\"}]",
    );
    let denied = |object: &Value, old: Option<&Value>, subresource: &str, operation: Option<Operation>| {
        let sent = SentRequest { object, old, subresource, operation };
        admit(&rule, sent, "{}", &mut Coverage::default()).denial.is_some()
    };
    let (few, many) = (boat("spec: {}"), boat("spec: {crew: 2}"));
    assert!(denied(&few, Some(&many), "", None));
    assert!(!denied(&many, Some(&few), "", None));
    assert!(denied(&few, None, "", Some(Operation::Delete)));
    assert!(!denied(&many, None, "", Some(Operation::Delete)));
    assert!(!denied(&boat("spec: {}, status: {moored: true}"), Some(&few), "status", None));
    assert!(denied(&boat("spec: {}, status: {moored: false}"), Some(&few), "status", None));
}

/// What becomes of a Scale.
fn scale(manifests: &[Value], object: &Value, old: Option<&Value>) -> Admitted {
    let sent = SentRequest { object, old, subresource: "scale", operation: None };
    admit(manifests, sent, "{}", &mut Coverage::default())
}

#[test]
fn of_a_scale_policies_see_the_scales() {
    let rule = validating(
        "validations: [{expression: \"request.kind.kind == 'Scale' && request.subResource == 'scale' && \
         object.kind == 'Scale' && object.spec.replicas <= oldObject.spec.replicas + 2\", message: too many at once}]",
    );
    let (few, more, many) = (boat("spec: {}"), boat("spec: {crew: 3}"), boat("spec: {crew: 9}"));
    let denied = |object: &Value, old: Option<&Value>| scale(&rule, object, old).denial.map(|denial| denial.message);
    assert_eq!(denied(&more, Some(&few)), None);
    assert_eq!(denied(&many, None), None, "it is scaled to what it has");
    let why = "boats.harbour.example.com \"a\" is forbidden: ValidatingAdmissionPolicy 'p' with binding 'p' denied request: too \
               many at once";
    assert_eq!(denied(&many, Some(&few)).as_deref(), Some(why));
    let deployment = |replicas: i64| {
        read(&format!(
            "{{apiVersion: apps/v1, kind: Deployment, metadata: {{name: a}}, spec: {{replicas: {replicas}, \
             selector: {{matchLabels: {{a: b}}}}, template: {{metadata: {{labels: {{a: b}}}}, \
             spec: {{containers: [{{name: c, image: i}}]}}}}}}}}"
        ))
    };
    assert!(denied(&deployment(4), Some(&deployment(1))).is_some());
    assert!(denied(&deployment(3), Some(&deployment(1))).is_none());
    assert_eq!(
        denied(&read("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}"), None).as_deref(),
        Some("the server could not find the requested resource")
    );
}

#[test]
fn a_scale_is_changed_by_policies_and_held_to_what_its_object_must_be() {
    let text = "[JSONPatch{op: 'replace', path: '/spec/replicas', value: 5}]";
    let five = policy(
        "Mutating",
        &format!(
            "failurePolicy: Fail, reinvocationPolicy: Never, mutations: [{{patchType: JSONPatch, jsonPatch: {{expression: \
             \"{text}\"}}}}]"
        ),
        "matchResources: {}",
    );
    let deployment = read(
        "{apiVersion: apps/v1, kind: Deployment, metadata: {name: a, namespace: prod}, spec: {replicas: 2, selector: {matchLabels: \
         {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: i}]}}}}",
    );
    let admitted = scale(&five, &deployment, None);
    assert_eq!((admitted.denial, admitted.checked.errors.len()), (None, 0));
    assert_eq!(admitted.checked.object.at(&["spec", "replicas"]), Some(&Value::Int(5)));
    assert_eq!(admitted.checked.object.str_at(&["kind"]), "Scale");
    let denial =
        scale(&five, &boat("spec: {crew: 2}"), None).denial.expect("the Scale of a custom resource can't be changed");
    assert!(denial.message.contains("request to convert CR to an invalid group/version"), "{}", denial.message);
    let mut below = deployment.clone();
    below.at_mut(&["spec"]).expect("it is there").make_object().insert("replicas", Value::Int(-1));
    let errors = scale(&[], &below, Some(&deployment)).checked.errors;
    assert_eq!(errors.iter().map(|rejected| rejected.error.field.as_str()).collect::<Vec<_>>(), ["spec.replicas"]);
}

#[test]
fn options_of_a_connection_find_their_part() {
    let rule = validating("validations: [{expression: \"request.subResource == 'exec' && object.command != ['rm']\"}]");
    let options = |command: &str| read(&format!("{{apiVersion: v1, kind: PodExecOptions, command: [{command}]}}"));
    for (command, is_denied) in [("ls", false), ("rm", true)] {
        let options = options(command);
        let admitted = admit(&rule, sent(&options), "{}", &mut Coverage::default());
        assert_eq!(admitted.denial.is_some(), is_denied, "{command}");
    }
}

#[test]
fn warnings_and_annotations_are_told_beside() {
    let spec = "validations: [{expression: 'false', message: careful}], \
                auditAnnotations: [{key: length, valueExpression: string(object.spec.length)}]";
    let manifests = policy("Validating", spec, "validationActions: [Warn, Audit]");
    let admitted = admit(&manifests, sent(&boat("spec: {length: 3}")), "{}", &mut Coverage::default());
    assert_eq!(admitted.denial, None);
    assert_eq!(admitted.warnings, ["Validation failed for ValidatingAdmissionPolicy 'p' with binding 'p': careful"]);
    assert_eq!(admitted.annotations["p/length"], "3");
    assert!(admitted.annotations.contains_key("validation.policy.admission.k8s.io/validation_failure"));
}

#[test]
fn what_a_mutation_makes_is_checked_and_told() {
    let length = |length: u32| {
        let expression = format!("'Object{{spec: Object.spec{{length: {length}}}}}'");
        let spec = format!(
            "failurePolicy: Fail, reinvocationPolicy: Never, mutations: [{{patchType: ApplyConfiguration, \
             applyConfiguration: {{expression: {expression}}}}}]"
        );
        policy("Mutating", &spec, "")
    };
    let object = boat("spec: {crew: 3}");
    let admitted = admit(&length(7), sent(&object), "{}", &mut Coverage::default());
    assert_eq!((admitted.is_mutated, admitted.denial), (true, None));
    assert_eq!(admitted.checked.object.at(&["spec", "length"]), Some(&Value::Int(7)));
    let admitted = admit(&length(31), sent(&object), "{}", &mut Coverage::default());
    let errors: Vec<String> = admitted.checked.errors.iter().map(|rejected| rejected.error.to_string()).collect();
    assert_eq!(errors, ["spec.length: Invalid value: 31: spec.length in body should be less than or equal to 30"]);
}

#[test]
fn a_mutation_that_fails_denies() {
    let spec = "failurePolicy: Fail, reinvocationPolicy: Never, mutations: [{patchType: JSONPatch, jsonPatch: \
                {expression: \"[JSONPatch{op: 'remove', path: '/spec/absent'}]\"}}]";
    let admitted = admit(&policy("Mutating", spec, ""), sent(&boat("spec: {}")), "{}", &mut Coverage::default());
    let denial = admitted.denial.expect("it fails");
    assert_eq!((denial.code, denial.reason.as_str()), (403, "Invalid"));
    assert!(
        denial.message.starts_with("policy 'p' with binding 'p' denied request: JSON Patch: "),
        "{}",
        denial.message
    );
}

#[test]
fn a_policy_that_asks_for_it_acts_twice_and_no_more() {
    let spec = "failurePolicy: Fail, reinvocationPolicy: IfNeeded, mutations: [{patchType: ApplyConfiguration, \
                applyConfiguration: {expression: 'Object{spec: Object.spec{crew: object.spec.crew + 1}}'}}]";
    let admitted = admit(&policy("Mutating", spec, ""), sent(&boat("spec: {}")), "{}", &mut Coverage::default());
    assert_eq!(admitted.checked.object.at(&["spec", "crew"]), Some(&Value::Int(3)));
}

/// What has not been tried of the first policy, by place.
fn gaps(coverage: &Coverage) -> Vec<String> {
    let (_, _, places) = coverage.policies().next().expect("there is a policy");
    let told = |(place, tried): (&super::PolicyExpression, &super::coverage::Tried)| {
        format!("{}: {}", place.shown(), tried.gaps(*place).join(", "))
    };
    places.iter().map(told).collect()
}

#[test]
fn what_nobody_has_tried_is_told() {
    let spec = "matchConditions: [{name: c, expression: object.spec.crew > 1}], \
                validations: [{expression: object.spec.crew < 5}, {expression: object.spec.absent == 1}]";
    let mut coverage = Coverage::default();
    let manifests = validating(spec);
    admit(&manifests, sent(&boat("spec: {crew: 1}")), "{}", &mut coverage);
    let never =
        ["matchConditions[0]: never true", "validations[0]: never evaluated", "validations[1]: never evaluated"];
    assert_eq!(gaps(&coverage), never);
    admit(&manifests, sent(&boat("spec: {crew: 2}")), "{}", &mut coverage);
    assert_eq!(gaps(&coverage), ["matchConditions[0]: ", "validations[0]: never false", "validations[1]: never true"]);
}

#[test]
fn variables_messages_and_annotations_are_tried_when_they_are_of_use() {
    let spec = "variables: [{name: crew, expression: object.spec.crew}, {name: kind, expression: object.kind}], \
                validations: [{expression: variables.crew < 5 || variables.kind == 'Ketch', messageExpression: \"'too ' + \
                (variables.crew > 9 ? 'many' : '')\"}, {expression: 'true', messageExpression: \"'unused'\"}], \
                auditAnnotations: [{key: crew, valueExpression: \"variables.crew == 1 ? '' : string(variables.crew)\"}]";
    let mut coverage = Coverage::default();
    let manifests = validating(spec);
    admit(&manifests, sent(&boat("spec: {crew: 1}")), "{}", &mut coverage);
    assert_eq!(
        gaps(&coverage),
        [
            "variables[0]: ",
            "variables[1]: never evaluated",
            "validations[0]: never false",
            "validations[1]: never false",
            "validations[0].messageExpression: never evaluated",
            "validations[1].messageExpression: never evaluated",
            "auditAnnotations[0]: never made a value",
        ]
    );
    admit(&manifests, sent(&boat("spec: {crew: 10}")), "{}", &mut coverage);
    assert_eq!(
        gaps(&coverage),
        [
            "variables[0]: ",
            "variables[1]: ",
            "validations[0]: ",
            "validations[1]: never false",
            "validations[0].messageExpression: ",
            "validations[1].messageExpression: never evaluated",
            "auditAnnotations[0]: ",
        ]
    );
}

#[test]
fn built_in_kinds_and_definitions_are_asked_about() {
    let rule = validating("validations: [{expression: object.metadata.name != 'a'}]");
    let map = read("{apiVersion: v1, kind: ConfigMap, metadata: {name: a}}");
    assert!(admit(&rule, sent(&map), "{}", &mut Coverage::default()).denial.is_some());
    let rule = validating("validations: [{expression: object.spec.group != 'harbour.example.com'}]");
    assert!(admit(&rule, sent(&read(BOATS)), "{}", &mut Coverage::default()).denial.is_some());
}

#[test]
fn what_a_server_refuses_is_not_asked() {
    let policies = Policies::read(Minor::NEWEST, &validating("validations: [{expression: object.}]"));
    assert!(policies.is_empty());
    assert_eq!(policies.refused()[0].0, "ValidatingAdmissionPolicy p");
}

#[test]
fn what_a_request_says_of_its_user_has_a_price() {
    let cost = |text: &str| {
        let rules = "matchConstraints: {resourceRules: [{apiGroups: [harbour.example.com], apiVersions: [v1], \
                     operations: ['*'], resources: [boats]}]}";
        let policy = read(&format!("spec: {{{rules}, validations: [{{expression: \"{text}\"}}]}}"));
        super::price::price(&policy, &boats()).expressions[0].cost
    };
    assert_eq!(cost("request.namespace == 'a' && request.operation != 'DELETE'"), Some(6));
    let of_groups = cost("'system:nodes' in request.userInfo.groups").expect("the kind is known");
    assert!(of_groups < super::price::LIMIT, "{of_groups}");
}
