//! Tests of the playground's results, from texts as they are typed.

use std::sync::Arc;

use super::*;
use crate::author::suite::{Coverage, parse, run};
use crate::cel::library::authorizer::{AuthorizerAnswer, AuthorizerCheck, RuleAuthorizer};
use crate::value::yaml;

const BOAT: &str = "\
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata:
  name: boats.harbour.example.com
spec:
  group: harbour.example.com
  scope: Namespaced
  names: {plural: boats, singular: boat, kind: Boat}
  versions:
  - name: v1
    served: true
    storage: true
    schema:
      openAPIV3Schema:
        type: object
        properties:
          spec:
            type: object
            required: [length]
            properties:
              length:
                type: integer
                maximum: 30
              rig:
                type: string
                enum: [ketch, sloop]
                default: sloop
              crew:
                type: array
                items:
                  type: object
                  properties:
                    name:
                      type: string
            x-kubernetes-validations:
            - rule: self.rig != 'ketch' || self.length >= 9
              message: a ketch is long
            - rule: self.crew.all(a, self.crew.exists_one(b, a.name == b.name))
";

const POLICY: &str = "\
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: short}
spec:
  matchConstraints:
    resourceRules: [{apiGroups: [harbour.example.com], apiVersions: [v1], operations: [CREATE], resources: [boats]}]
  validations:
  - expression: object.spec.length < 20
    message: the harbour is small
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: short}
spec: {policyName: short, validationActions: [Deny]}
";

#[derive(Debug)]
struct Nobody;

impl RuleAuthorizer for Nobody {
    fn decide(&self, _: &AuthorizerCheck) -> AuthorizerAnswer {
        AuthorizerAnswer::default()
    }

    fn service_account(&self, _: &str, _: &str) -> Arc<dyn RuleAuthorizer> {
        Arc::new(Nobody)
    }
}

fn find_user(user: Value) -> RequestUser {
    RequestUser { user, authorizer: Arc::new(Nobody) }
}

fn inputs(definition: &str, object: &str, old: &str) -> Inputs {
    let sent = object! { "definition" => definition, "object" => object, "old" => old };
    Inputs::read(&sent).expect("they are texts")
}

fn evaluated(inputs: &Inputs) -> Value {
    evaluate(inputs, &Policies::read(inputs.minor(), inputs.manifests()), &find_user)
}

fn boat(spec: &str) -> String {
    format!(
        "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {{name: daisy, namespace: default}}\nspec: {spec}\n"
    )
}

#[track_caller]
fn check_outcome(definition: &str, object: &str, expected: &str) -> Value {
    let found = evaluated(&inputs(definition, object, ""));
    assert_eq!(found.str_at(&["verdict", "outcome"]), expected, "{found:?}");
    found
}

#[test]
fn a_verdict_names_the_line_the_rule_and_its_parts() {
    let found = check_outcome(BOAT, &boat("\n  length: 7\n  rig: ketch\n  crew: []"), "refused");
    let error = &found.items_at(&["verdict", "errors"])[0];
    assert_eq!(
        (error.str_at(&["field"]), error.str_at(&["rule"])),
        ("spec", "self.rig != 'ketch' || self.length >= 9")
    );
    let parts = error.items_at(&["parts"]).iter().map(|part| part.str_at(&["text"])).collect::<Vec<_>>();
    assert!(parts.contains(&"self.length >= 9"), "{parts:?}");
    let marker = &found.items_at(&["markers"]).iter().find(|marker| marker.str_at(&["pane"]) == "object");
    assert_eq!(marker.and_then(|marker| marker.get("line")).and_then(Value::as_i64), Some(4));
    check_outcome(BOAT, &boat("{length: 7}"), "refused");
    check_outcome(BOAT, &boat("{length: 7, crew: []}"), "admitted");
    check_outcome(BOAT, &boat("{length: 7, crew: [], sail: 1}"), "unknown-fields");
    check_outcome(BOAT, "", "empty");
    check_outcome(BOAT, "a: [", "unreadable");
    check_outcome("", &boat("{}"), "unknown-kind");
}

#[test]
fn rules_have_costs_and_bounds_that_can_be_added() {
    let inputs = inputs(BOAT, &boat("{length: 7, crew: []}"), "");
    let found = evaluated(&inputs);
    let rules = found.items_at(&["rules"])[0].items_at(&["rules"]);
    assert_eq!(rules.len(), 2);
    let remedy = rules[1].items_at(&["remedies"])[0].clone();
    let wanted = object! { "name" => "boats.harbour.example.com", "version" => "v1", "bounds" => remedy };
    let text = add_bound(&inputs, &wanted).expect("the bounds can be added");
    assert!(text.contains("\n                type: array\n                maxItems: "), "{text}");
    let text = Inputs::read(&object! { "definition" => text }).expect("it is a text");
    let cost =
        |found: &Value| found.items_at(&["rules"])[0].items_at(&["rules"])[1].get("cost").and_then(Value::as_i64);
    assert!(cost(&evaluated(&text)) < cost(&found));
    assert_eq!(add_bound(&inputs, &object! {}), None);
}

#[test]
fn what_is_defaulted_and_forgiven_is_told() {
    let found = evaluated(&inputs(BOAT, &boat("{length: 40, crew: []}"), &boat("{length: 40, crew: []}")));
    assert_eq!(found.str_at(&["verdict", "outcome"]), "admitted");
    assert_eq!(found.items_at(&["verdict", "ratcheted"]).len(), 1);
    let change = &found.items_at(&["object", "changes"])[0];
    assert_eq!((change.str_at(&["change"]), change.str_at(&["field"])), ("added", "spec.rig"));
    let marks: String = found.items_at(&["object", "lines"]).iter().map(|line| line.str_at(&["mark"])).collect();
    assert_eq!(marks.trim(), "+");
}

#[test]
fn policies_are_asked_and_priced() {
    let definition = format!("{BOAT}{POLICY}");
    let found = check_outcome(&definition, &boat("{length: 25, crew: []}"), "refused");
    assert!(found.str_at(&["verdict", "denial", "message"]).contains("the harbour is small"), "{found:?}");
    let policy = &found.items_at(&["policies", "asked"])[0];
    assert_eq!(policy.items_at(&["expressions"])[0].str_at(&["outcome"]), "false");
}

#[test]
fn the_parts_of_policies_have_values() {
    let found = evaluated(&inputs(&format!("{BOAT}{POLICY}"), &boat("{length: 25, crew: []}"), ""));
    let expression = &found.items_at(&["policies", "asked"])[0].items_at(&["expressions"])[0];
    let parts = expression.items_at(&["parts"]).iter();
    let parts: Vec<String> =
        parts.map(|part| format!("{} = {}", part.str_at(&["text"]), part.str_at(&["value"]))).collect();
    assert_eq!(parts, ["object.spec.length < 20 = false", "object.spec.length = 25"]);
}

#[test]
fn minors_are_told_apart() {
    let definition = BOAT
        .replacen("self.rig != 'ketch' || self.length >= 9", "isIP(self.rig) || self.length >= 9", 1)
        .replacen("self.crew.all(a, self.crew.exists_one(b, a.name == b.name))", "self.length > 0", 1);
    let mut sent = object! { "definition" => definition, "object" => boat("{length: 10, crew: []}") };
    sent.make_object().insert("minors", Value::from("1.30-1.32"));
    let found = evaluated(&Inputs::read(&sent).expect("they are texts"));
    let each = found.items_at(&["minors", "each"]);
    assert_eq!(each.iter().map(|minor| minor.str_at(&["minor"])).collect::<Vec<_>>(), ["1.30", "1.31", "1.32"]);
    assert_eq!(found.str_at(&["minors", "fine"]), "fine from 1.31 on");
    let is_told = |row: &Value| {
        row.str_at(&["minors"]) == "1.30" && row.str_at(&["what"]).contains("undeclared reference to 'isIP'")
    };
    assert!(found.items_at(&["minors", "differences"]).iter().any(is_told), "{found:?}");
    assert_eq!(evaluated(&inputs(BOAT, "", "")).get("minors"), Some(&Value::Null));
    assert!(Inputs::read(&object! { "minors" => "1.2" }).is_err());
}

#[test]
fn a_user_is_written_into_the_request() {
    let check = |request: &str, user: Value, expected: Option<&str>| {
        let inputs = Inputs::read(&object! { "request" => request }).expect("it is a text");
        assert_eq!(with_user(&inputs, &user).as_deref(), expected, "{request}");
    };
    let jane = || object! { "name" => "jane", "groups" => vec![Value::from("devs")] };
    check("", jane(), Some("user:\n  groups:\n  - devs\n  name: jane\n"));
    check(
        "user: {name: x, uid: u}\nparams: []\n",
        jane(),
        Some("params: []\nuser:\n  groups:\n  - devs\n  name: jane\n  uid: u\n"),
    );
    check("user: {name: x}\n", object! {}, Some(""));
    check("user: [", jane(), None);
    check("- 1", jane(), None);
}

#[test]
fn findings_have_fixes() {
    let inputs = inputs(BOAT, "", "");
    let found = evaluated(&inputs);
    let findings = found.items_at(&["findings"]);
    let is_it = |finding: &&Value| finding.str_at(&["id"]) == "list-type-missing";
    let finding = findings.iter().find(is_it).expect("a list has no type");
    let number = finding.get("number").and_then(Value::as_i64).and_then(|number| usize::try_from(number).ok());
    let text = fix(&inputs, number.expect("it has a number")).expect("it can be fixed");
    assert!(text.contains("x-kubernetes-list-type: atomic"), "{text}");
    assert_eq!(fix(&inputs, 999), None);
}

/// A generated case passes.
#[test]
fn a_case_of_a_suite_holds_what_it_says() {
    let policies = format!("{BOAT}{POLICY}");
    for (definition, object, old) in [
        (BOAT, boat("{length: 7, crew: []}"), String::new()),
        (BOAT, boat("{length: 7, rig: ketch, sail: 1, crew: []}"), String::new()),
        (BOAT, boat("{length: 40, crew: []}"), boat("{length: 40, crew: []}")),
        (&policies, boat("{length: 25, crew: []}"), String::new()),
    ] {
        let inputs = inputs(definition, &object, &old);
        let set = Policies::read(inputs.minor(), inputs.manifests());
        let text = case(&inputs, &set, &find_user).expect("there is a verdict");
        let suite = parse(&yaml::decode(text.as_bytes()).expect("it is YAML")).unwrap_or_default();
        let catalog = catalog(&inputs, inputs.minor(), &mut Vec::new());
        let stage = SuiteStage { catalog: &catalog, policies: &set, find_user: &find_user };
        let outcome = run(&suite.cases[0], &stage, None, &mut Coverage::default());
        assert_eq!(outcome.failures, Vec::new(), "{text}");
    }
}

/// Checks the completions at the cursor `|`.
#[track_caller]
fn check_choices(pane: &str, text: &str, expected: &[&str]) {
    let at = text.find('|').expect("the test has a cursor");
    let (line, column) = (text[..at].matches('\n').count(), text[..at].rsplit('\n').next().map_or(0, str::len));
    let mut sent = object! { "definition" => BOAT };
    sent.make_object().insert(pane, Value::from(text.replacen('|', "", 1)));
    let inputs = Inputs::read(&sent).expect("they are texts");
    let found = complete(&inputs, Pane::named(pane).expect("there is such a pane"), line, column, Box::new(find_user));
    let labels: Vec<&str> = found.items_at(&["choices"]).iter().map(|choice| choice.str_at(&["label"])).collect();
    assert!(expected.iter().all(|label| labels.contains(label)), "{text}: {labels:?}");
}

#[test]
fn fields_values_and_names_are_completed() {
    check_choices("object", "kind: Boat\nspec:\n  |", &["length", "rig", "crew"]);
    check_choices("object", "kind: Boat\nspec:\n  rig: |", &["ketch", "sloop"]);
    check_choices("object", "kind: Boat\nspec:\n  crew:\n  - n|", &["name"]);
    check_choices("object", "a|", &["apiVersion", "metadata", "spec"]);
    check_choices("request", "us|", &["user", "params"]);
    let rule = |text: &str| BOAT.replacen("self.rig != 'ketch' || self.length >= 9", text, 1);
    check_choices("definition", &rule("self.|"), &["length", "rig", "crew"]);
    check_choices("definition", &rule("self.crew.|"), &["all", "exists", "size"]);
    check_choices("definition", &rule("self.crew.all(m, m.|"), &["name"]);
    check_choices("definition", &rule("ha|"), &["has"]);
    check_choices("definition", &BOAT.replacen("maximum: 30", "ma|", 1), &["maximum", "x-kubernetes-validations"]);
    check_choices("definition", &BOAT.replacen("type: integer", "type: |", 1), &["integer"]);
}

#[test]
fn a_choice_says_what_is_put_there() {
    let check = |object: &str, column: usize, label: &str, replaced: i64, apply: &str| {
        let line = object.matches('\n').count();
        let inputs = Inputs::read(&object! { "definition" => BOAT, "object" => object }).expect("they are texts");
        let found = complete(&inputs, Pane::Object, line, column, Box::new(find_user));
        let choice = found.items_at(&["choices"]).iter().find(|choice| choice.str_at(&["label"]) == label);
        assert_eq!(choice.map(|choice| choice.str_at(&["apply"])), Some(apply), "{object}: {found:?}");
        assert_eq!(found.get("replaced").and_then(Value::as_i64), Some(replaced), "{object}");
    };
    check("kind: Boat\nspec:\n  cr", 4, "crew", 2, "crew:\n  - ");
    check("kind: Boat\nspec:\n  rig: ke", 9, "ketch", 2, "ketch");
    check("kind: Boat\nspec:\n  rig: \"ke", 10, "ketch", 2, "ketch\"");
    check("kind: Boat\nspec:\n  rig: 'ke'", 10, "ketch", 2, "ketch");
}

#[test]
fn any_text_is_answered() {
    for text in [
        "",
        "-",
        "a: [",
        "\u{0}",
        "&a [*a]",
        "---\n---\n",
        "a: b: c",
        "\t",
        "kind: CustomResourceDefinition\napiVersion: apiextensions.k8s.io/v1\n",
    ] {
        for other in ["", "x", text] {
            let inputs = inputs(text, other, other);
            evaluated(&inputs);
            _ = case(&inputs, &Policies::default(), &find_user);
            _ = fix(&inputs, 0);
            for (line, column) in [(0, 0), (0, 99), (3, 1), (usize::MAX, usize::MAX)] {
                for pane in [Pane::Definition, Pane::Object, Pane::Request] {
                    complete(&inputs, pane, line, column, Box::new(find_user));
                }
            }
        }
    }
    assert!(Inputs::read(&object! { "object" => 1 }).is_err());
}

const LIMITED: &str = "\
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata: {name: limited}
spec:
  paramKind: {apiVersion: v1, kind: ConfigMap}
  matchConstraints:
    resourceRules: [{apiGroups: [harbour.example.com], apiVersions: [v1], operations: [CREATE], resources: [boats]}]
  variables:
  - name: longest
    expression: int(params.data['longest'])
  validations:
  - expression: object.spec.length < variables.longest || has(params.metadata.labels.open)
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata: {name: limited}
spec: {policyName: limited, validationActions: [Deny], paramRef: {name: limits, parameterNotFoundAction: Deny}}
";

#[test]
fn what_policies_read_of_their_parameters_has_fields() {
    let definition = format!("{BOAT}{LIMITED}");
    let inputs = |request: &str| {
        let sent = object! {
            "definition" => definition.as_str(),
            "object" => "{apiVersion: harbour.example.com/v1, kind: Boat, metadata: {name: a, namespace: port}, spec: {length: 7}}",
            "request" => request,
        };
        Inputs::read(&sent).expect("these are texts")
    };
    let param = |field: &str, value: &str| {
        let path: Vec<Value> = field.split('.').map(Value::from).collect();
        object! { "apiVersion" => "v1", "kind" => "ConfigMap", "name" => "limits", "path" => path, "value" => value }
    };
    let shown = |inputs: &Inputs| {
        let shown = params::show(inputs, &catalog(inputs, Minor::NEWEST, &mut Vec::new()));
        crate::value::json::encode_to_string(&shown)
    };
    let none = inputs("user: {name: jane}");
    let expected = concat!(
        r#"[{"apiVersion":"v1","fields":[{"options":[],"path":["data","longest"],"type":"string","value":""},"#,
        r#"{"options":[],"path":["metadata","labels","open"],"type":"string","value":""}],"#,
        r#""kind":"ConfigMap","name":"limits","namespace":"port"}]"#,
    );
    assert_eq!(shown(&none), expected);
    let written = with_param(&none, &param("data.longest", "30")).expect("it can be written");
    assert!(written.contains("longest: \"30\"") && written.contains("namespace: port"), "{written}");
    assert!(written.starts_with("params:") && written.ends_with("user:\n  name: jane\n"), "{written}");
    assert!(shown(&inputs(&written)).contains(r#""value":"30""#));
    let empty = with_param(&inputs(&written), &param("data.longest", "")).expect("it can be written");
    assert!(!empty.contains("longest"), "{empty}");
    assert_eq!(with_param(&inputs("params: ["), &param("data.longest", "1")), None);
    assert_eq!(with_param(&none, &param("data.widest", "1")), None, "nothing reads it");
}
