//! Policies in `skiff validate`, `test`, `lint` and `cost`.

use serde_json::{Value, json};

use super::{BOATS, check, folder, skiff, text};

const POLICIES: &str = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: crew}
spec:
  matchConstraints:
    resourceRules:
    - {apiGroups: [harbour.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [boats]}
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConditions:
  - {name: people, expression: \"request.userInfo.username != 'robot'\"}
  validations:
  - expression: object.spec.length <= int(params.data.length)
    messageExpression: \"'no boat is longer than ' + params.data.length\"
  - expression: namespaceObject.metadata.labels.env == 'prod' || object.spec.crew < 3
    message: too many for a test
  auditAnnotations:
  - {key: length, valueExpression: string(object.spec.length)}
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: crew}
spec:
  policyName: crew
  validationActions: [Deny]
  paramRef: {name: limits, namespace: default, parameterNotFoundAction: Deny}
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: rig}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [harbour.example.com], apiVersions: [v1], operations: [CREATE], resources: [boats]}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: \"[JSONPatch{op: 'add', path: '/metadata/labels', value: {'by': request.userInfo.username}}]\"
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: rig}
spec: {policyName: rig}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: limits}
data: {length: '9'}
---
apiVersion: v1
kind: Namespace
metadata: {name: prod, labels: {env: prod}}
---
apiVersion: v1
kind: Namespace
metadata: {name: default, labels: {env: test}}
";

const BOAT: &str = "\
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: daisy}
spec: {length: 8, crew: 3}
";

fn files(test: &str, more: &[(&str, &str)]) -> std::path::PathBuf {
    folder(test, &[&[("crd.yaml", BOATS), ("policies.yaml", POLICIES), ("boat.yaml", BOAT)], more].concat())
}

#[test]
fn validate_runs_policies_over_the_other_manifests() {
    let folder = files("policies-validate", &[]);
    let expected = "\
error: Boat daisy: boats.harbour.example.com \"daisy\" is forbidden: ValidatingAdmissionPolicy 'crew' with binding 'crew' denied request: too many for a test
 --> boat.yaml:1:1
  |
1 | apiVersion: harbour.example.com/v1
  | ^^^^^^^^^^

8 documents: 7 valid, 1 invalid
";
    check(&folder, &["validate", "-f", "crd.yaml", "policies.yaml", "boat.yaml"], 1, expected);
    let prod = ["validate", "-f", "crd.yaml", "-f", "policies.yaml", "-n", "prod", "boat.yaml"];
    check(&folder, &prod, 0, "1 document: 1 valid\n");
    // A binding that names no namespace looks where the object is, and so is a parameter that names none.
    let beside = POLICIES.replace("namespace: default, parameterNotFoundAction", "parameterNotFoundAction");
    std::fs::write(folder.join("beside.yaml"), beside).expect("the folder is writable");
    check(
        &folder,
        &["validate", "-f", "crd.yaml", "-f", "beside.yaml", "-n", "prod", "boat.yaml"],
        0,
        "1 document: 1 valid\n",
    );
    let robot = ["validate", "-f", "crd.yaml", "-f", "policies.yaml", "--as", "robot", "boat.yaml", "-o", "json"];
    let output = skiff(&folder, &robot);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!((output.status.code(), &found[0]["object"]["metadata"]["labels"]), (Some(0), &json!({"by": "robot"})));
}

#[test]
fn an_update_is_asked_about_with_what_was_there() {
    let policy = "\
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: keeps}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [''], apiVersions: [v1], operations: [UPDATE], resources: [configmaps]}]
  validations: [{expression: object.data == oldObject.data, message: data stays}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: keeps}
spec: {policyName: keeps, validationActions: [Deny, Audit]}
";
    let map = |value: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata: {{a: {value}}}\n");
    let (before, after) = (map("b"), map("c"));
    let folder = folder("policies-update", &[("p.yaml", policy), ("before.yaml", &before), ("after.yaml", &after)]);
    let update = |file: &str| {
        let output = skiff(&folder, &["validate", "-f", "p.yaml", "--old", "before.yaml", file, "-o", "json"]);
        let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
        (output.status.code(), found[0]["errors"][0]["detail"].as_str().unwrap_or_default().to_owned())
    };
    let (code, why) = update("after.yaml");
    assert_eq!(code, Some(1));
    assert!(
        why.ends_with("ValidatingAdmissionPolicy 'keeps' with binding 'keeps' denied request: data stays"),
        "{why}"
    );
    assert_eq!(update("before.yaml"), (Some(0), String::new()));
}

const SUITE: &str = "\
crds: [crd.yaml]
policies: [policies.yaml]
base:
  apiVersion: harbour.example.com/v1
  kind: Boat
  metadata: {name: daisy}
  spec: {length: 8}
cases:
- name: a short boat passes and is told of
  namespace: {name: prod}
  expect: {auditAnnotations: {crew/length: '8'}, object: {metadata: {labels: {by: kubernetes-admin}}}}
- name: a long boat
  patch: [{op: replace, path: /spec/length, value: 10}]
  expect: {admitted: false, message: no boat is longer than 9, reason: Invalid}
- name: other limits
  patch: [{op: replace, path: /spec/length, value: 10}]
  params: [{apiVersion: v1, kind: ConfigMap, metadata: {name: limits}, data: {length: '10'}}]
- name: crews
  patch: [{op: add, path: /spec/crew, value: 3}]
  table:
  - name: in production
    namespace: {name: live, labels: {env: prod}}
  - name: in a test
    expect: {message: too many for a test}
  - name: by a robot
    user: {name: robot, groups: [machines]}
- name: nobody asks about deletions
  operation: DELETE
";

#[test]
fn suites_say_who_asks_and_what_policies_answer() {
    let folder = files("policies-suite", &[("a.suite.yaml", SUITE)]);
    let expected = "\
./a.suite.yaml
  ok   a short boat passes and is told of
  ok   a long boat
  ok   other limits
  ok   crews/in production
  ok   crews/in a test
  ok   crews/by a robot
  ok   nobody asks about deletions
";
    let output = skiff(&folder, &["test", "."]);
    let printed = text(&output.stdout);
    assert!(printed.starts_with(expected), "{printed}");
    assert_eq!(output.status.code(), Some(0));
    let covered = "ValidatingAdmissionPolicy crew: 5 of 5 expressions have been tried (100%)\n";
    assert!(printed.contains(covered), "{printed}");
    assert!(printed.contains("MutatingAdmissionPolicy rig: 1 of 1 expressions have been tried (100%)\n"), "{printed}");
}

#[test]
fn a_snapshot_holds_what_policies_said() {
    let cases = SUITE.split("- name: other limits").next().expect("there is a part before");
    let cases = cases.replace("reason: Invalid", "reason: Invalid, snapshot: true");
    let folder = files("policies-snapshot", &[("a.suite.yaml", &cases)]);
    let code = |arguments: &[&str]| skiff(&folder, arguments).status.code();
    _ = std::fs::remove_file(folder.join("a.suite.snap"));
    assert_eq!(code(&["test", "a.suite.yaml"]), Some(1));
    assert_eq!(code(&["test", "--update", "a.suite.yaml"]), Some(0));
    assert_eq!(code(&["test", "a.suite.yaml"]), Some(0));
    let taken = std::fs::read_to_string(folder.join("a.suite.snap")).expect("it was taken");
    assert!(taken.contains("no boat is longer than 9"), "{taken}");
    let other = POLICIES.replace("'no boat is longer than '", "'at least no boat is longer than '");
    std::fs::write(folder.join("policies.yaml"), other).expect("the folder is writable");
    assert_eq!(code(&["test", "a.suite.yaml"]), Some(1));
}

#[test]
fn a_suite_scales() {
    let suite = "\
policies: [scales.yaml]
base:
  apiVersion: apps/v1
  kind: Deployment
  metadata: {name: web}
  spec:
    replicas: 2
    selector: {matchLabels: {app: web}}
    template: {metadata: {labels: {app: web}}, spec: {containers: [{name: web, image: nginx}]}}
cases:
- name: a little more
  subresource: scale
  oldPatch: []
  patch: [{op: replace, path: /spec/replicas, value: 4}]
  expect: {object: {kind: Scale, spec: {replicas: 4}, status: {selector: app=web}}}
- name: too much
  subresource: scale
  oldPatch: []
  patch: [{op: replace, path: /spec/replicas, value: 40}]
  expect: {message: not so fast}
";
    let policies = POLICIES
        .replace(
            "[harbour.example.com], apiVersions: [v1], operations: [CREATE, UPDATE], resources: [boats]",
            "[apps], \
                 apiVersions: [v1], operations: [UPDATE], resources: [deployments/scale]",
        )
        .replace("object.spec.length <= int(params.data.length)", "object.spec.replicas <= 2 * oldObject.spec.replicas")
        .replace("'no boat is longer than ' + params.data.length", "'not so fast'")
        .replace("string(object.spec.length)", "string(object.spec.replicas)")
        .replace("object.spec.crew < 3", "object.spec.replicas < 100");
    let folder = files("policies-scale", &[("a.suite.yaml", suite), ("scales.yaml", &policies)]);
    let output = skiff(&folder, &["test", "a.suite.yaml"]);
    let printed = text(&output.stdout);
    assert!(printed.contains("ok   a little more\n  ok   too much\n"), "{printed}{}", text(&output.stderr));
}

#[test]
fn what_a_suite_has_not_tried_of_policies_is_told() {
    let cases = SUITE.split("- name: a long boat").next().expect("there is a part before");
    let folder = files("policies-coverage", &[("a.suite.yaml", cases)]);
    let printed = text(&skiff(&folder, &["test", "a.suite.yaml"]).stdout);
    assert!(
        printed.contains("ValidatingAdmissionPolicy crew: 1 of 5 expressions have been tried (20%)\n"),
        "{printed}"
    );
    assert!(!printed.contains("never false"), "{printed}");
    let least = skiff(&folder, &["test", "--min-coverage", "40", "a.suite.yaml"]);
    let few = "FAIL ValidatingAdmissionPolicy crew: 1 of 5 expressions are covered, less than 40%\n";
    assert_eq!(least.status.code(), Some(1));
    assert!(text(&least.stdout).contains(few), "{least:?}");
    let printed = text(&skiff(&folder, &["test", "--coverage", "a.suite.yaml"]).stdout);
    let expected = "\
ValidatingAdmissionPolicy crew: 1 of 5 expressions have been tried (20%)
  matchConditions[0]: request.userInfo.username != 'robot'
    never false
  validations[0]: object.spec.length <= int(params.data.length)
    never false
  validations[1]: namespaceObject.metadata.labels.env == 'prod' || object.spec.crew < 3
    never false
  validations[0].messageExpression: 'no boat is longer than ' + params.data.length
    never evaluated
";
    assert!(printed.contains(expected), "{printed}");
    let output = skiff(&folder, &["test", "a.suite.yaml", "-o", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    let expressions = &found["policies"][1]["expressions"];
    assert_eq!((&expressions[1]["held"], &expressions[1]["failed"]), (&json!(1), &json!(0)), "{found}");
}

#[test]
fn what_policies_do_otherwise_than_expected_fails() {
    let suite = SUITE.replace("no boat is longer than 9", "nothing").replace("crew/length: '8'", "crew/length: '9'");
    let folder = files("policies-unexpected", &[("a.suite.yaml", &suite)]);
    let output = skiff(&folder, &["test", "a.suite.yaml"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(1));
    assert!(printed.contains("the audit annotation crew/length is 8, not 9"), "{printed}");
    assert!(printed.contains("expected in the message, but not found: nothing"), "{printed}");
    let refused = POLICIES.replace("< 3", "<");
    let folder = folder_with(&refused);
    let output = skiff(&folder, &["test", "a.suite.yaml"]);
    assert_eq!(output.status.code(), Some(2));
    let printed = text(&output.stdout);
    let place =
        "UNREADABLE policies.yaml:14:17: ValidatingAdmissionPolicy crew: spec.validations[1].expression: Invalid value";
    assert!(printed.contains(place), "{printed}");
}

fn folder_with(policies: &str) -> std::path::PathBuf {
    folder("policies-refused", &[("crd.yaml", BOATS), ("policies.yaml", policies), ("a.suite.yaml", SUITE)])
}

#[test]
fn lint_looks_at_policies_of_all_files_together() {
    let folder = files("policies-lint", &[]);
    let arguments = ["lint", "policies.yaml"];
    check(&folder, &arguments, 0, "0 findings in 4 policies and bindings\n");
    check(
        &folder,
        &["lint", "."],
        0,
        "0 findings in 1 definition, 4 policies and bindings\n1 more with --severity advice\n",
    );
    let alone = POLICIES.split("---\napiVersion: admissionregistration.k8s.io/v1\nkind: ValidatingAdmissionPolicyB");
    let alone = alone
        .into_iter()
        .next()
        .expect("there is a part before")
        .replace("name: crew}", "name: crew, annotations: {}}");
    let ignored = alone.replace("{}", "{skiff.kubeskiff.dev/lint-ignore: policy-without-binding}");
    let folder = super::folder("policies-lint-alone", &[("p.yaml", &alone), ("ignored.yaml", &ignored)]);
    let told = "\
p.yaml:3:18: warning policy-without-binding: crew: no binding uses it
  fix: add a binding
1 finding in 1 policy or binding: policy-without-binding 1
why: skiff lint --explain ID
";
    check(&folder, &["lint", "p.yaml"], 1, told);
    let nothing = "0 findings in 1 policy or binding\n";
    check(&folder, &["lint", "ignored.yaml"], 0, nothing);
    check(&folder, &["lint", "--ignore", "policy-without-binding", "p.yaml"], 0, nothing);
    check(&folder, &["lint", "--only", "policy-types", "p.yaml"], 0, nothing);
    check(&folder, &["lint", "--severity", "error", "p.yaml"], 0, &format!("{nothing}1 more with --severity advice\n"));
    let sarif = text(&skiff(&folder, &["lint", "-o", "sarif", "p.yaml"]).stdout);
    let sarif: Value = serde_json::from_str(&sarif).expect("it is JSON");
    let run = &sarif["runs"][0];
    assert_eq!(
        run["tool"]["driver"]["rules"][0]["shortDescription"]["text"],
        "No binding among the files uses the policy."
    );
    assert_eq!(
        (&run["results"][0]["ruleId"], &run["results"][0]["level"]),
        (&json!("policy-without-binding"), &json!("warning"))
    );
    let explained = text(&skiff(&folder, &["lint", "--explain", "policy-without-binding"]).stdout);
    assert!(explained.starts_with("policy-without-binding (warning)\n"), "{explained}");
}

#[test]
fn cost_prices_policies_for_the_kinds_that_they_match() {
    let folder = files("policies-cost", &[]);
    let output = skiff(&folder, &["cost", "crd.yaml", "policies.yaml"]);
    let printed = text(&output.stdout);
    assert_eq!(output.status.code(), Some(0), "{printed}");
    let expected = "ValidatingAdmissionPolicy crew\n  for the largest harbour.example.com/v1 Boat\n  \
                    spec.matchConditions[0].expression\n    request.userInfo.username != 'robot'\n";
    assert!(printed.contains(expected), "{printed}");
    let output = skiff(&folder, &["cost", "policies.yaml", "-o", "json"]);
    let found: Value = serde_json::from_slice(&output.stdout).expect("it is JSON");
    assert_eq!(found[0]["policy"], json!("crew"), "{found}");
}
