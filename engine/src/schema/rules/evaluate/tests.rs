//! Rules over objects: what fails, and what is forgiven.

use super::*;
use crate::schema::structural::Structural;
use crate::schema::{convert, json_schema};
use crate::value::{json, yaml};

fn schema(text: &str) -> Structural {
    let schema = yaml::decode(text.as_bytes()).expect("the schema is YAML");
    convert::to_structural(&json_schema::decode(&schema).expect("it decodes").0).expect("it is structural")
}

fn value(text: &str) -> Value {
    json::decode(text.as_bytes()).expect("the object is JSON")
}

/// The texts of the errors, then those of the warnings with a `W` before them.
#[track_caller]
fn check(schema_text: &str, object: &str, old: Option<&str>, expected: &[&str]) {
    let schema = schema(schema_text);
    let (object, old) = (value(object), old.map(value));
    let correlated = old.as_ref().map(|old| Correlated::new(&object, old, &schema));
    let findings = Rules::compile(&schema, false).check(&object, old.as_ref(), correlated.as_ref());
    let errors = findings.errors.iter().map(ToString::to_string);
    let warnings = findings.ratcheted.iter().map(|warning| format!("W {warning}"));
    assert_eq!(errors.chain(warnings).collect::<Vec<_>>(), expected);
}

const BOUNDS: &str = "
type: object
properties:
  replicas: {type: integer}
  maxReplicas: {type: integer}
x-kubernetes-validations:
- rule: self.replicas <= self.maxReplicas
  messageExpression: \"'at most ' + string(self.maxReplicas)\"
  fieldPath: .replicas
- rule: self.replicas >= 0
  message: not less than nothing
  reason: FieldValueForbidden
";

#[test]
fn a_failure_tells_its_message_at_its_field() {
    check(BOUNDS, r#"{"replicas": 3, "maxReplicas": 5}"#, None, &[]);
    check(BOUNDS, r#"{"replicas": 7, "maxReplicas": 5}"#, None, &["replicas: Invalid value: at most 5"]);
    check(BOUNDS, r#"{"replicas": -1, "maxReplicas": 5}"#, None, &["<nil>: Forbidden: not less than nothing"]);
}

#[test]
fn a_rule_that_fails_to_evaluate_says_why() {
    check(
        BOUNDS,
        r#"{"maxReplicas": 5}"#,
        None,
        &[
            "<nil>: Invalid value: \"object\": no such key: replicas evaluating rule: self.replicas <= self.maxReplicas",
            "<nil>: Invalid value: \"object\": no such key: replicas evaluating rule: not less than nothing",
        ],
    );
}

#[test]
fn an_update_that_leaves_a_value_alone_is_only_warned() {
    let unchanged = r#"{"replicas": 7, "maxReplicas": 5}"#;
    check(BOUNDS, unchanged, Some(unchanged), &["W replicas: Invalid value: at most 5"]);
}

#[test]
fn transition_rules_need_an_old_value() {
    let schema = "
type: object
properties:
  name:
    type: string
    x-kubernetes-validations:
    - {rule: self == oldSelf, message: is immutable}
  size:
    type: integer
    x-kubernetes-validations:
    - {rule: '!oldSelf.hasValue() || self >= oldSelf.value()', optionalOldSelf: true, message: may only grow}
";
    check(schema, r#"{"name": "a", "size": 1}"#, None, &[]);
    check(
        schema,
        r#"{"name": "b", "size": 1}"#,
        Some(r#"{"name": "a", "size": 2}"#),
        &["name: Invalid value: \"b\": is immutable", "size: Invalid value: 1: may only grow"],
    );
}

#[test]
fn items_find_their_old_values_by_their_keys() {
    let schema = "
type: object
properties:
  ports:
    type: array
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [name]
    items:
      type: object
      required: [name]
      properties: {name: {type: string}, port: {type: integer}}
      x-kubernetes-validations:
      - {rule: self.port == oldSelf.port, message: is fixed}
";
    let (old, new) = (
        r#"{"ports": [{"name": "a", "port": 1}, {"name": "b", "port": 2}]}"#,
        r#"{"ports": [{"name": "b", "port": 3}, {"name": "c", "port": 4}, {"name": "a", "port": 1}]}"#,
    );
    check(schema, new, Some(old), &["ports[0]: Invalid value: is fixed"]);
}

#[test]
fn nothing_is_evaluated_once_the_budget_is_spent() {
    let schema = schema(BOUNDS);
    let rules = Rules::compile(&schema, false);
    let object = value(r#"{"replicas": 3, "maxReplicas": 5}"#);
    let limits = CostLimits { object: 6, ..CostLimits::default() };
    let mut costs = Vec::new();
    let findings = rules.evaluate(&Path::ROOT, &object, None, None, limits, &mut |run| costs.push(run.cost));
    assert_eq!((costs, findings.left), (vec![5, 3], None));
    let errors: Vec<String> = findings.errors.iter().map(ToString::to_string).collect();
    assert_eq!(errors, [format!("<nil>: Invalid value: \"object\": {OUT_OF_BUDGET}")]);
}

#[test]
fn sums_know_items_by_keys_whose_names_are_escaped() {
    let schema = "
type: object
properties:
  refs:
    type: array
    maxItems: 9
    x-kubernetes-list-type: map
    x-kubernetes-list-map-keys: [namespace, my-key]
    items:
      type: object
      required: [namespace, my-key]
      properties:
        namespace: {type: string}
        my-key: {type: string}
x-kubernetes-validations:
- rule: (self.refs + oldSelf.refs).size() == self.refs.size()
  message: nothing may go
- rule: (self.refs + oldSelf.refs) == (self.refs + self.refs)
  message: nothing may go or come
";
    let refs = |items: &[(&str, &str)]| {
        let items: Vec<String> =
            items.iter().map(|(one, other)| format!(r#"{{"namespace":"{one}","my-key":"{other}"}}"#)).collect();
        format!(r#"{{"refs":[{}]}}"#, items.join(","))
    };
    let old = refs(&[("a", "x"), ("b", "x")]);
    check(schema, &refs(&[("b", "x"), ("a", "x"), ("a", "y")]), Some(&old), &[]);
    check(
        schema,
        &refs(&[("b", "x"), ("a", "y")]),
        Some(&old),
        &["<nil>: Invalid value: nothing may go", "<nil>: Invalid value: nothing may go or come"],
    );
}
