//! Stages as files say them, and what becomes of objects in them.

use std::time::Duration;

use jiff::Timestamp;

use super::error::StageFault;
use super::step::FinalizerChange;
use super::{Stage, StageAction, StageEvent, stage_of};
use crate::controllers::simulated::template::TemplateContext;
use crate::registry::{PatchType, Subresource};
use crate::value::{Value, yaml};

fn read(text: &str) -> Value {
    yaml::decode(text.as_bytes()).expect("YAML")
}

fn stage(name: &str, spec: &str) -> Stage {
    let text = format!(
        "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {{name: {name}}}\nspec:\n  resourceRef: {{kind: Pod}}\n{spec}"
    );
    Stage::read(&read(&text)).expect("it is understood").expect("it is a stage of pods")
}

fn pod(uid: usize, more: &str) -> Value {
    read(&format!("metadata: {{name: p, uid: u-{uid}, {more}}}\nspec: {{nodeName: n}}\nstatus: {{phase: Running}}"))
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_767_225_600 + second).expect("a time")
}

#[test]
fn a_pod_is_in_the_stage_that_it_fits() {
    let stages = [
        stage(
            "a",
            "  selector: {matchLabels: {l: x}, matchExpressions: [{key: .status.phase, operator: In, values: [Running]}]}",
        ),
        stage(
            "b",
            "  selector: {matchExpressions: [{jq: {expression: .metadata.deletionTimestamp, operator: Exists}}]}",
        ),
        stage("nobody's", ""),
    ];
    let check = |more: &str, expected: Option<usize>| assert_eq!(stage_of(&stages, &pod(1, more)), expected, "{more}");
    check("labels: {l: x}", Some(0));
    check("labels: {l: y}", None);
    check("deletionTimestamp: '2026-01-01T00:00:00Z'", Some(1));
}

#[test]
fn weights_choose_among_stages() {
    let all = "  selector: {}\n  weightFrom: {expressionFrom: '.metadata.annotations.w'}\n";
    let stages = [stage("a", &format!("{all}  weight: 1")), stage("b", "  selector: {}\n  weight: 3")];
    let chosen = |more: &str| (0..400).filter(|uid| stage_of(&stages, &pod(*uid, more)) == Some(1)).count();
    assert!((250..350).contains(&chosen("")), "{}", chosen(""));
    assert_eq!(chosen("annotations: {w: '0'}"), 400);
    assert_eq!(stage_of(&stages, &pod(7, "")), stage_of(&stages, &pod(7, "")));
    // More than the sum of the weights can be.
    assert!(stage_of(&stages, &pod(7, &format!("annotations: {{w: '{}'}}", u64::MAX))).is_some());
}

#[test]
fn a_stage_lasts_as_long_as_it_or_the_pod_says() {
    let plain = "  delay: {durationMilliseconds: 2000, durationFrom: {expressionFrom: '.metadata.annotations[\"d\"]'}";
    let one = stage("a", &format!("{plain}}}"));
    assert_eq!(one.delay(&pod(1, ""), at(0)), Duration::from_secs(2));
    assert_eq!(one.delay(&pod(1, "annotations: {d: 1m}"), at(0)), Duration::from_secs(60));
    assert_eq!(one.delay(&pod(1, "annotations: {d: '2026-01-01T00:00:05Z'}"), at(1)), Duration::from_secs(4));
    let varied = stage("a", &format!("{plain}, jitterDurationMilliseconds: 4000}}"));
    let delays: Vec<Duration> = (0..50).map(|uid| varied.delay(&pod(uid, ""), at(0))).collect();
    assert!(delays.iter().all(|delay| (2000..4000).contains(&delay.as_millis())), "{delays:?}");
    assert!(delays.iter().any(|delay| *delay != delays[0]));
    let less = stage("a", &format!("{plain}, jitterDurationMilliseconds: 500}}"));
    assert_eq!(less.delay(&pod(1, ""), at(0)), Duration::from_millis(500));
}

#[test]
fn a_stage_ends_with_what_it_says() {
    let one = stage(
        "a",
        "  next:\n    event: {type: Warning, reason: R, message: m}\n    finalizers: {add: [{value: x/y}], remove: [{value: a/b}]}\n    \
             statusTemplate: |\n      phase: Failed\n      startTime: {{ Now | Quote }}\n    patches:\n    - {type: merge, template: \
             'metadata: {annotations: {k: v}}'}\n  steps:\n  - delete: true",
    );
    let context = TemplateContext { now: at(0), addresses: None };
    let actions = one.actions(&pod(1, "finalizers: [a/b]"), &context).expect("they are made");
    let event = StageEvent { is_warning: true, reason: "R".to_owned(), message: "m".to_owned() };
    let (main, status) = (Subresource::Main, Subresource::Status);
    let change = |names: [&str; 2]| {
        let [add, remove] = names.map(|name| vec![name.to_owned()]);
        FinalizerChange { add, remove, empty: false }
    };
    let expected = vec![
        StageAction::Event(event),
        StageAction::Finalizers(change(["x/y", "a/b"])),
        StageAction::Patch(
            status,
            PatchType::StrategicMerge,
            br#"{"status":{"phase":"Failed","startTime":"2026-01-01T00:00:00Z"}}"#.to_vec(),
        ),
        StageAction::Patch(main, PatchType::Merge, br#"{"metadata":{"annotations":{"k":"v"}}}"#.to_vec()),
        StageAction::Delete,
    ];
    assert_eq!(actions, expected);
}

#[test]
fn how_an_object_is_patched_is_as_its_kind_has_it_unless_the_stage_says_it() {
    let check = |kind: &str, patch: &str, expected: (PatchType, &str)| {
        let text = format!(
            "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nspec: {{resourceRef: {{kind: {kind}}}, steps: [{{patch: {{{patch}}}}}]}}"
        );
        let one = Stage::read(&read(&text)).expect("it is understood").expect("it is a stage");
        let actions =
            one.actions(&pod(1, ""), &TemplateContext { now: at(0), addresses: None }).expect("they are made");
        let (type_, bytes) = expected;
        assert_eq!(
            actions,
            [StageAction::Patch(Subresource::Main, type_, bytes.as_bytes().to_vec())],
            "{kind} {patch}"
        );
    };
    let template = "root: spec, template: 'a: 1'";
    check("Pod", template, (PatchType::StrategicMerge, r#"{"spec":{"a":1}}"#));
    check("Node", template, (PatchType::StrategicMerge, r#"{"spec":{"a":1}}"#));
    check("ConfigMap", template, (PatchType::Merge, r#"{"spec":{"a":1}}"#));
    let json = "root: spec, type: json, template: '[{op: add, path: /a, value: 1}]'";
    check("Pod", json, (PatchType::Json, r#"[{"op":"add","path":"/spec/a","value":1}]"#));
}

#[test]
fn a_finalizer_is_there_once() {
    let check = |old: &str, add: &[&str], remove: &[&str], empty: bool, expected: Option<&[&str]>| {
        let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        let change = FinalizerChange { add: names(add), remove: names(remove), empty };
        let expected = expected.map(|names| names.iter().map(|name| Value::from(*name)).collect());
        assert_eq!(change.of(&pod(1, &format!("finalizers: [{old}]"))), expected, "{old} {add:?} {remove:?}");
    };
    check("a, b", &["a"], &[], false, None);
    check("a, b", &["c", "c"], &[], false, Some(&["a", "b", "c"]));
    check("a, b", &["c"], &["a"], false, Some(&["b", "c"]));
    check("a, b", &["b"], &[], true, Some(&["b"]));
    check("a", &[], &["z"], false, None);
}

#[test]
fn a_stage_is_for_a_kind() {
    let of = |reference: &str| {
        let text = format!("apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nspec: {{resourceRef: {{{reference}}}}}");
        Stage::read(&read(&text)).map(|stage| stage.expect("it is a stage").of)
    };
    let check = |reference: &str, api_version: &str, group: &str, kind: &str| {
        let of = of(reference).expect("it names a kind");
        assert_eq!((of.api_version.as_str(), of.group(), of.kind.as_str()), (api_version, group, kind));
    };
    check("kind: Node", "v1", "", "Node");
    check("apiGroup: apps/v1, kind: Deployment", "apps/v1", "apps", "Deployment");
    assert_eq!(of("apiGroup: v1").expect_err("it names none").fault, StageFault::Kind);
    let fault = of("apiGroup: apps, kind: Deployment").expect_err("it names no version").fault;
    assert_eq!(fault, StageFault::Version("apps".to_owned()));
}

#[test]
fn what_is_not_understood_is_told() {
    let check = |spec: &str, why: &str| {
        let text = format!(
            "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nmetadata: {{name: s}}\nspec: {{resourceRef: {{kind: Pod}}, {spec}}}"
        );
        let told = Stage::read(&read(&text)).expect_err(spec).to_string();
        assert!(told.starts_with("the stage `s`: ") && told.contains(why), "{told}");
    };
    check("selector: {matchExpressions: [{key: .a, operator: Like}]}", "the operator `Like`");
    check("selector: {matchExpressions: [{cel: {expression: 'true'}}]}", "CEL");
    check("next: {statusTemplate: '{{ if .a }}'}", "without an end");
    check("next: {patches: [{subresource: exec, template: ''}]}", "the subresource `exec`");
    check("steps: [{apply: {template: x}}]", "applies other objects");
    assert_eq!(Stage::read(&read("apiVersion: v1\nkind: ConfigMap")), Ok(None));
}
