//! Tests of policies, from their text to their decisions.

use std::sync::Arc;

use super::validating::{Annotated, PolicyVerdict, ValidationDecision};
use super::{Policy as _, PolicyInput, Validating};
use crate::cel::library::authorizer::{AuthorizerAnswer as Asked, AuthorizerCheck, CheckedResource, RuleAuthorizer};
use crate::meta::minor::Minor;
use crate::value::{Value, yaml};
use crate::work::counted;

/// Allows everyone to read.
#[derive(Debug)]
struct OnlyReading;

impl RuleAuthorizer for OnlyReading {
    fn decide(&self, check: &AuthorizerCheck) -> Asked {
        let (AuthorizerCheck::Path { verb, .. } | AuthorizerCheck::Resource { verb, .. }) = check;
        Asked { allowed: verb == "get", ..Asked::default() }
    }

    fn service_account(&self, _: &str, _: &str) -> Arc<dyn RuleAuthorizer> {
        Arc::new(OnlyReading)
    }
}

fn read(text: &str) -> Value {
    yaml::decode(text.as_bytes()).expect("the test is YAML")
}

/// The verdict of a policy with this spec on a small object.
fn evaluate(spec: &str) -> PolicyVerdict {
    let mut policy = read("{metadata: {name: p}}");
    policy.make_object().insert("spec", read(spec));
    let (object, params) = (read("{metadata: {name: a}, spec: {size: 3, words: [x, z]}}"), read("{data: {max: '5'}}"));
    let namespace = read("{metadata: {name: default, labels: {env: test}}}");
    let input = PolicyInput {
        object: &object,
        old_object: &Value::Null,
        request: &read(
            "{operation: CREATE, name: a, namespace: default, kind: {version: v1}, resource: {version: v1}, \
             requestKind: {version: v2}, requestResource: {version: v2}}",
        ),
        namespace: &namespace,
        params: &params,
        authorizer: Some(Arc::new(OnlyReading)),
        request_resource: &CheckedResource::default(),
    };
    Validating::decode(&policy, Minor::NEWEST).evaluate(&input)
}

fn denied(message: &str) -> ValidationDecision {
    ValidationDecision::Denied { message: message.to_owned(), reason: "Invalid".to_owned() }
}

fn failed(message: &str) -> ValidationDecision {
    ValidationDecision::Failed { message: message.to_owned(), denies: true }
}

#[track_caller]
fn check(spec: &str, expected: &[ValidationDecision]) {
    assert_eq!(evaluate(spec).decisions, expected, "{spec}");
}

#[test]
fn a_validation_that_is_false_denies_with_its_message() {
    check("{validations: [{expression: object.spec.size < 5}]}", &[ValidationDecision::Admitted]);
    check(
        "{validations: [{expression: ' object.spec.size > 5 '}]}",
        &[denied("failed expression: object.spec.size > 5")],
    );
    check(
        "{validations: [{expression: 'false', message: ' no '}, {expression: 'true'}]}",
        &[denied("no"), ValidationDecision::Admitted],
    );
    let reason = ValidationDecision::Denied { message: "never".to_owned(), reason: "Forbidden".to_owned() };
    check("{validations: [{expression: 'false', message: never, reason: Forbidden}]}", &[reason]);
}

#[test]
fn a_message_expression_goes_before_the_message_where_it_says_something() {
    let told = |expression: &str| {
        format!("{{validations: [{{expression: 'false', message: plain, messageExpression: \"{expression}\"}}]}}")
    };
    check(&told("'size ' + string(object.spec.size) + ' '"), &[denied("size 3")]);
    check(&told("object.spec.missing"), &[denied("plain")]);
    check(&told("'  '"), &[denied("plain")]);
    check(&told(r"'a\\nb'"), &[denied("plain")]);
    check(&told("namespaceObject.metadata.labels.env"), &[denied("test")]);
    // It has no authorizer.
    check(&told("string(authorizer.path('/x').check('get').allowed())"), &[denied("plain")]);
}

/// Variables, each of which adds one to the one before it.
fn chain(length: usize) -> String {
    let mut variables = "{name: v0, expression: '0'}".to_owned();
    for at in 1..length {
        variables.push_str(&format!(", {{name: v{at}, expression: 'variables.v{} + 1'}}", at - 1));
    }
    let last = length - 1;
    format!("{{variables: [{variables}], validations: [{{expression: variables.v{last} == {last}}}]}}")
}

#[test]
fn variables_wait_for_many_others_but_not_for_more_than_the_stack_holds() {
    crate::value::with_a_deep_stack(|| {
        check(&chain(200), &[ValidationDecision::Admitted]);
        let decisions = evaluate(&chain(1_000)).decisions;
        let [ValidationDecision::Failed { message, .. }] = decisions.as_slice() else {
            panic!("it is too long: {decisions:?}")
        };
        assert!(message.contains("needs too many others"), "{}", &message[..200]);
    });
}

#[test]
fn variables_are_evaluated_when_they_are_asked_for() {
    let with = |variables: &str, expression: &str| {
        format!("{{variables: [{variables}], validations: [{{expression: \"{expression}\"}}]}}")
    };
    let variables = "{name: size, expression: object.spec.size}, {name: bad, expression: object.missing}, \
                     {name: m, expression: 'variables.size + 1'}";
    check(&with(variables, "variables.m == 4 && has(variables.size)"), &[ValidationDecision::Admitted]);
    check(
        &with(variables, "variables.bad == 1"),
        &[failed(
            "expression 'variables.bad == 1' resulted in error: composited variable \"bad\" fails to evaluate: no such key: \
             missing",
        )],
    );
    check(
        &with("{name: a, expression: '1 +'}", "variables.a == 1"),
        &[failed(
            "expression 'variables.a == 1' resulted in error: composited variable \"a\" fails to compile: compilation \
             failed: ERROR: <input>:1:4: Syntax error: mismatched input '<EOF>' expecting {'[', '{', '(', '.', '-', '!', \
             'true', 'false', 'null', NUM_FLOAT, NUM_INT, NUM_UINT, STRING, BYTES, IDENTIFIER}\n | 1 +\n | ...^",
        )],
    );
    // A variable that is declared twice and uses the other one would never end in the reference.
    let again = "{name: a, expression: '1'}, {name: a, expression: 'variables.a + 1'}";
    assert!(matches!(evaluate(&with(again, "variables.a == 2")).decisions[0], ValidationDecision::Failed { .. }));
}

#[test]
fn parameters_and_the_authorizer_are_seen() {
    let kind = "paramKind: {apiVersion: v1, kind: ConfigMap}";
    let spec = |expression: &str| format!("{{{kind}, validations: [{{expression: \"{expression}\"}}]}}");
    check(&spec("object.spec.size < int(params.data.max)"), &[ValidationDecision::Admitted]);
    check(&spec("authorizer.requestResource.check('get').allowed()"), &[ValidationDecision::Admitted]);
    check(
        "{validations: [{expression: params == null}]}",
        &[failed(
            "compilation error: compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container \
             '')\n | params == null\n | ^",
        )],
    );
}

#[test]
fn a_failure_is_the_failure_policys_to_judge() {
    let ignored = |message: &str| ValidationDecision::Failed { message: message.to_owned(), denies: false };
    let why = "expression 'object.x == 1' resulted in error: no such key: x";
    check(
        "{validations: [{expression: object.x == 1}, {expression: 'false'}]}",
        &[failed(why), denied("failed expression: false")],
    );
    check(
        "{failurePolicy: Ignore, validations: [{expression: object.x == 1}, {expression: 'false'}]}",
        &[ignored(why), denied("failed expression: false")],
    );
}

#[test]
fn match_conditions_decide_whether_a_policy_is_asked() {
    let spec = |expression: &str| {
        format!(
            "{{matchConditions: [{{name: c, expression: \"{expression}\"}}], validations: [{{expression: 'false'}}]}}"
        )
    };
    check(&spec("object.spec.size == 3 && namespaceObject == null"), &[denied("failed expression: false")]);
    check(&spec("object.spec.size == 4"), &[]);
    check(&spec("object.x == 1"), &[failed("expression 'object.x == 1' resulted in error: no such key: x")]);
}

#[test]
fn match_conditions_see_the_resource_that_the_request_named() {
    let versions = |resource: &str| format!("request.kind.version == 'v1' && request.resource.version == '{resource}'");
    check(
        &format!(
            "{{matchConditions: [{{name: c, expression: \"{}\"}}], validations: [{{expression: \"{}\"}}]}}",
            versions("v2"),
            versions("v1")
        ),
        &[ValidationDecision::Admitted],
    );
}

#[test]
fn what_costs_too_much_denies() {
    const OUT: &str = "validation failed due to running out of cost budget, no further validation rules will be run";
    // Each check costs 350,000: two are within the limit of a call, and all calls share the budget.
    let asks = "{expression: \"authorizer.path('/a').check('get').allowed() && authorizer.path('/b').check('get').allowed()\"}";
    let calls = |count: usize| vec![asks; count].join(", ");
    check(&format!("{{validations: [{}]}}", calls(14)), &vec![ValidationDecision::Admitted; 14]);
    check(&format!("{{validations: [{}]}}", calls(15)), &[failed(OUT)]);
    let thrice = "[1, 2, 3].all(x, authorizer.path('/a').check('get').allowed())";
    check(
        &format!("{{validations: [{{expression: \"{thrice}\"}}]}}"),
        &[failed(&format!("expression '{thrice}' resulted in error: operation cancelled: actual cost limit exceeded"))],
    );
    // A variable costs at its first use.
    let variables: Vec<String> = (0..15)
        .map(|at| {
            format!(
                "{{name: v{at}, expression: \"authorizer.path('/a').check('get').allowed() && \
                            authorizer.path('/b').check('get').allowed()\"}}"
            )
        })
        .collect();
    let asked: Vec<String> = (0..15).map(|at| format!("variables.v{at}")).collect();
    let spec =
        format!("{{variables: [{}], validations: [{{expression: {}}}]}}", variables.join(", "), asked.join(" && "));
    check(&spec, &[failed(OUT)]);
}

#[test]
fn audit_annotations_are_values_or_nothing() {
    let annotated = |rest: &str, expression: &str| {
        let annotation = format!("{{key: k, valueExpression: \"{expression}\"}}");
        evaluate(&format!("{{{rest} validations: [{{expression: 'true'}}], auditAnnotations: [{annotation}]}}"))
            .annotations
    };
    let value = |value: &str| vec![Annotated::Value { key: "k".to_owned(), value: value.to_owned() }];
    assert_eq!(annotated("", "' ' + object.metadata.name"), value("a"));
    assert_eq!(annotated("", "null"), []);
    assert_eq!(annotated("", "'  '"), []);
    let message = "expression 'string(object.x)' resulted in error: no such key: x".to_owned();
    assert_eq!(annotated("", "string(object.x)"), [Annotated::Failed { message }]);
    assert_eq!(annotated("failurePolicy: Ignore,", "string(object.x)"), []);
}

#[test]
fn variables_that_double_a_list_end_at_a_bound() {
    let doubled = (1..60).map(|at| format!("{{name: v{at}, expression: variables.v{0} + variables.v{0}}}", at - 1));
    let variables = doubled.collect::<Vec<_>>().join(", ");
    let spec = format!(
        "{{variables: [{{name: v0, expression: '[1]'}}, {variables}], validations: [{{expression: variables.v59.size() > 0}}]}}"
    );
    let (verdict, steps) = counted(|| evaluate(&spec));
    let [ValidationDecision::Failed { message, .. }] = &verdict.decisions[..] else { panic!("{verdict:?}") };
    assert!(message.contains("list of more than 2097152 items"), "{message}");
    // Copies up to that point are counted.
    assert!((2_000_000..20_000_000).contains(&steps), "{steps} steps");
}

#[test]
fn types_of_variables_that_nest_grow_no_further_than_they_are_known() {
    let spec = |count: usize| {
        let nested = (1..count).map(|at| format!("{{name: v{at}, expression: '[variables.v{}]'}}", at - 1));
        let nested = nested.collect::<Vec<_>>().join(", ");
        let policy = "{metadata: {name: p}, spec: {variables: [{name: v0, expression: '1'}, NESTED]}}";
        read(&policy.replace("NESTED", &nested))
    };
    let steps = |policy: &Value| counted(|| Validating::decode(policy, Minor::NEWEST)).1;
    let (few, many) = (steps(&spec(200)), steps(&spec(2_000)));
    assert!(many < 15 * few, "{few} and {many} steps");
}
