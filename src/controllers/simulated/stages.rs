//! Stages that files say: which one an object is in, how long it waits there, and what is done then.
//!
//! In: `Stage` objects of `kwok.x-k8s.io/v1alpha1`. Out: for an object the stage that it is in, and the steps of it. Of several
//! that an object fits, one is chosen by their weights, and an object always has the same choice in the same state.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::time::Duration;

use jiff::Timestamp;

use super::query::{Query, QueryError, text_of};
use super::template::{Template, TemplateContext, TemplateError};
use crate::meta::api_version::group_of;
use crate::meta::duration;
use crate::object;
use crate::registry::{PatchType, Subresource};
use crate::value::{Value, json, yaml};

const API_VERSION: &str = "kwok.x-k8s.io/v1alpha1";
const KIND: &str = "Stage";

/// A stage that is not understood, or can't be carried out.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[error("the stage `{stage}`: {fault}")]
pub struct StageError {
    pub stage: String,
    #[source]
    pub fault: StageFault,
}

/// What is wrong with a stage.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum StageFault {
    #[error(transparent)]
    Query(#[from] QueryError),
    #[error(transparent)]
    Template(#[from] TemplateError),
    #[error("its template makes no YAML: {0}")]
    Yaml(#[from] yaml::YamlError),
    #[error("expressions in CEL are not understood, but those in jq")]
    Cel,
    #[error("the operator `{0}` is none of In, NotIn, Exists and DoesNotExist")]
    Operator(String),
    #[error("a step that applies other objects is not understood")]
    Apply,
    #[error("a patch of the subresource `{0}` is not understood")]
    Subresource(String),
    #[error("`resourceRef` names no kind")]
    Kind,
    #[error("the `apiGroup` of `resourceRef` is to name a version, as `apps/v1` does, and `{0}` names none")]
    Version(String),
    #[error("the type of a patch `{0}` is none of json, merge and strategic")]
    PatchType(String),
}

/// The kind that a stage is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct KindOfStage {
    pub api_version: String,
    pub kind: String,
}

impl KindOfStage {
    pub fn group(&self) -> &str {
        group_of(&self.api_version)
    }

    /// How objects of it are patched where a stage does not say it.
    fn usual_patch(&self) -> PatchType {
        if self.is_core("Pod") || self.is_core("Node") { PatchType::StrategicMerge } else { PatchType::Merge }
    }

    /// Whether it is a kind of the group without a name.
    pub fn is_core(&self, kind: &str) -> bool {
        self.group().is_empty() && self.kind == kind
    }
}

/// A stage of the objects of a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Stage {
    name: String,
    pub(super) of: KindOfStage,
    /// What an object fits; `None` for a stage that none fits.
    selector: Option<Vec<Requirement>>,
    weight: u64,
    weight_from: Option<Query>,
    delay: Length,
    /// Up to how long it may be, where objects differ.
    jitter: Option<Length>,
    steps: Vec<Step>,
}

#[derive(Clone, Debug, Default, PartialEq)]
struct Length {
    fixed: Duration,
    from: Option<Query>,
}

#[derive(Clone, Debug, PartialEq)]
struct Requirement {
    of: Query,
    operator: Operator,
    values: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Operator {
    In,
    NotIn,
    Exists,
    DoesNotExist,
}

#[derive(Clone, Debug, PartialEq)]
enum Step {
    Event(Told),
    Finalizers(FinalizerChange),
    Patch { part: Subresource, root: Option<String>, type_: PatchType, template: Template },
    Delete,
}

/// What becomes of the finalizers of an object.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct FinalizerChange {
    add: Vec<String>,
    remove: Vec<String>,
    empty: bool,
}

impl FinalizerChange {
    /// The finalizers that an object is to have, each once; `None` where it has these.
    pub fn of(&self, object: &Value) -> Option<Vec<Value>> {
        let old: Vec<&str> = object.items_at(&["metadata", "finalizers"]).iter().filter_map(Value::as_str).collect();
        let kept = old.iter().copied().filter(|name| !self.empty && !self.remove.iter().any(|it| it == name));
        let mut seen = HashSet::new();
        let new: Vec<&str> =
            kept.chain(self.add.iter().map(String::as_str)).filter(|name| seen.insert(*name)).collect();
        (new != old).then(|| new.into_iter().map(Value::from).collect())
    }
}

/// An event of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Told {
    pub is_warning: bool,
    pub reason: String,
    pub message: String,
}

/// What is to be done for an object at the end of a stage.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    Tell(Told),
    Finalize(FinalizerChange),
    Patch(Subresource, PatchType, Vec<u8>),
    Delete,
}

impl Stage {
    /// Reads a stage; `None` for an object of another kind.
    ///
    /// # Errors
    ///
    /// What of it is not understood.
    pub fn read(object: &Value) -> Result<Option<Self>, StageError> {
        if object.str_at(&["apiVersion"]) != API_VERSION || object.str_at(&["kind"]) != KIND {
            return Ok(None);
        }
        let name = object.str_at(&["metadata", "name"]);
        let spec = object.get("spec").cloned().unwrap_or_default();
        let stage = read_spec(name, &spec);
        stage.map(Some).map_err(|fault| StageError { stage: name.to_owned(), fault })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Whether an object may be in it.
    pub(super) fn fits(&self, object: &Value) -> bool {
        self.selector.as_ref().is_some_and(|all| all.iter().all(|one| one.holds(object)))
    }

    fn weight(&self, object: &Value) -> u64 {
        let said = self.weight_from.as_ref().and_then(|from| from.texts(object).first()?.parse().ok());
        said.unwrap_or(self.weight)
    }

    /// How long an object stays.
    pub(super) fn delay(&self, object: &Value, now: Timestamp) -> Duration {
        let delay = self.delay.of(object, now);
        let Some(most) = self.jitter.as_ref().map(|jitter| jitter.of(object, now)) else { return delay };
        match most.checked_sub(delay).and_then(|span| u64::try_from(span.as_millis()).ok()) {
            // Less than the delay is the delay.
            None => most,
            Some(0) => delay,
            Some(span) => delay + Duration::from_millis(luck(object, &self.name) % span),
        }
    }

    /// What is done for an object at the end of its stay.
    pub(super) fn deeds(&self, object: &Value, context: &TemplateContext) -> Result<Vec<Deed>, StageError> {
        let told = |fault: StageFault| StageError { stage: self.name.clone(), fault };
        self.steps.iter().map(|step| step.deed(object, context).map_err(told)).collect()
    }
}

/// Whether an object that is in a stage may stay in it: as long as it fits, unless others that it fits have come to outweigh it.
pub(super) fn may_stay(stages: &[Stage], at: usize, object: &Value) -> bool {
    let outweighs = |stage: &Stage| stage.fits(object) && stage.weight(object) > 0;
    stages[at].fits(object) && (stages[at].weight(object) > 0 || !stages.iter().any(outweighs))
}

/// Which of the stages an object is in.
pub(super) fn stage_of(stages: &[Stage], object: &Value) -> Option<usize> {
    let fitting: Vec<(usize, u64)> = stages
        .iter()
        .enumerate()
        .filter(|(_, stage)| stage.fits(object))
        .map(|(at, stage)| (at, stage.weight(object)))
        .collect();
    let sum = fitting.iter().fold(0, |sum: u64, (_, weight)| sum.saturating_add(*weight));
    if sum == 0 {
        return fitting.first().map(|(at, _)| *at);
    }
    let mut left = luck(object, "") % sum;
    let chosen = fitting.iter().find(|(_, weight)| match left.checked_sub(*weight) {
        None => true,
        Some(rest) => {
            left = rest;
            false
        }
    });
    chosen.map(|(at, _)| *at)
}

/// A number that an object has in its present state.
fn luck(object: &Value, salt: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    let field = |name: &str| object.str_at(&["metadata", name]).to_owned();
    (field("uid"), field("resourceVersion"), salt).hash(&mut hasher);
    hasher.finish()
}

impl Length {
    /// What the object says, as a Go duration or a time that it lasts until; else what the stage says.
    fn of(&self, object: &Value, now: Timestamp) -> Duration {
        let said = self.from.as_ref().and_then(|from| from.texts(object).into_iter().next());
        let read = |text: &str| {
            let until = |time: Timestamp| i64::try_from(time.duration_since(now).as_nanos()).unwrap_or(i64::MAX);
            let nanos = text.parse().map(until).ok().or_else(|| duration::parse_go(text).ok())?;
            Some(Duration::from_nanos(u64::try_from(nanos).unwrap_or_default()))
        };
        said.and_then(|text| read(&text)).unwrap_or(self.fixed)
    }
}

impl Requirement {
    fn holds(&self, object: &Value) -> bool {
        let found = self.of.texts(object);
        let is_in = || found.iter().any(|text| self.values.contains(text));
        match self.operator {
            Operator::In => is_in(),
            Operator::NotIn => !is_in(),
            Operator::Exists => !found.is_empty(),
            Operator::DoesNotExist => found.is_empty(),
        }
    }
}

impl Step {
    fn deed(&self, object: &Value, context: &TemplateContext) -> Result<Deed, StageFault> {
        match self {
            Step::Event(told) => Ok(Deed::Tell(told.clone())),
            Step::Delete => Ok(Deed::Delete),
            Step::Finalizers(change) => Ok(Deed::Finalize(change.clone())),
            Step::Patch { part, root, type_, template } => {
                let text = template.render(object, context)?;
                let made = yaml::decode(text.as_bytes())?;
                let patch = match root {
                    Some(root) if *type_ == PatchType::Json => below(root, made),
                    Some(root) => object! { root.as_str() => made },
                    None => made,
                };
                Ok(Deed::Patch(*part, *type_, json::encode(&patch)))
            }
        }
    }
}

/// A patch in JSON whose paths begin at a field.
fn below(root: &str, mut operations: Value) -> Value {
    if let Value::Array(operations) = &mut operations {
        for operation in operations {
            let path = format!("/{root}{}", operation.str_at(&["path"]));
            operation.make_object().insert("path", Value::String(path));
        }
    }
    operations
}

fn read_spec(name: &str, spec: &Value) -> Result<Stage, StageFault> {
    let api_version = match spec.str_at(&["resourceRef", "apiGroup"]) {
        "" => "v1".to_owned(),
        api_version if api_version == "v1" || api_version.contains('/') => api_version.to_owned(),
        group => return Err(StageFault::Version(group.to_owned())),
    };
    let kind = spec.str_at(&["resourceRef", "kind"]).to_owned();
    if kind.is_empty() {
        return Err(StageFault::Kind);
    }
    let selector = match spec.get("selector").filter(|selector| !selector.is_null()) {
        Some(selector) => Some(read_selector(selector)?),
        None => None,
    };
    let of = KindOfStage { api_version, kind };
    let mut steps = Vec::new();
    for next in spec.get("next").into_iter().chain(spec.items_at(&["steps"])) {
        read_steps(next, of.usual_patch(), &mut steps)?;
    }
    let jitter = ["jitterDurationMilliseconds", "jitterDurationFrom"];
    let has_jitter = jitter.iter().any(|field| spec.at(&["delay", field]).is_some());
    Ok(Stage {
        name: name.to_owned(),
        of,
        selector,
        weight: spec.get("weight").and_then(Value::as_i64).and_then(|weight| u64::try_from(weight).ok()).unwrap_or(0),
        weight_from: read_from(spec.get("weightFrom"))?,
        delay: read_length(spec, ["durationMilliseconds", "durationFrom"])?,
        jitter: if has_jitter { Some(read_length(spec, jitter)?) } else { None },
        steps,
    })
}

fn read_length(spec: &Value, [fixed, from]: [&str; 2]) -> Result<Length, StageFault> {
    let millis = spec.at(&["delay", fixed]).and_then(Value::as_i64).and_then(|millis| u64::try_from(millis).ok());
    let from = read_from(spec.at(&["delay", from]))?;
    Ok(Length { fixed: Duration::from_millis(millis.unwrap_or_default()), from })
}

/// `{expressionFrom: QUERY}` or `{jq: {expression: QUERY}}`.
fn read_from(from: Option<&Value>) -> Result<Option<Query>, StageFault> {
    let Some(from) = from.filter(|from| !from.is_null()) else { return Ok(None) };
    expression(from, "expressionFrom").map(Some)
}

fn expression(of: &Value, field: &str) -> Result<Query, StageFault> {
    if of.get("cel").is_some_and(|cel| !cel.is_null()) {
        return Err(StageFault::Cel);
    }
    match (of.str_at(&["jq", "expression"]), of.str_at(&[field])) {
        ("", text) | (text, _) => Ok(Query::parse(text)?),
    }
}

fn read_selector(selector: &Value) -> Result<Vec<Requirement>, StageFault> {
    let mut all = Vec::new();
    for (field, list) in [("matchLabels", "labels"), ("matchAnnotations", "annotations")] {
        for (name, value) in
            selector.get(field).and_then(Value::as_object).into_iter().flat_map(crate::value::Map::iter)
        {
            let of = Query::parse(&format!(".metadata.{list}[{}]", json::encode_to_string(&Value::from(name))))?;
            all.push(Requirement { of, operator: Operator::In, values: vec![text_of(value)] });
        }
    }
    for one in selector.items_at(&["matchExpressions"]) {
        // First: such an expression has no operator.
        let of = expression(one, "key")?;
        let said = one.get("jq").filter(|jq| !jq.is_null()).unwrap_or(one);
        let operator = match said.str_at(&["operator"]) {
            "In" => Operator::In,
            "NotIn" => Operator::NotIn,
            "Exists" => Operator::Exists,
            "DoesNotExist" => Operator::DoesNotExist,
            other => return Err(StageFault::Operator(other.to_owned())),
        };
        let values = said.items_at(&["values"]).iter().map(text_of).collect();
        all.push(Requirement { of, operator, values });
    }
    Ok(all)
}

/// What is done of `next`, or of one of `steps`.
fn read_steps(next: &Value, usual_patch: PatchType, steps: &mut Vec<Step>) -> Result<(), StageFault> {
    let is_there = |field: &str| next.get(field).is_some_and(|value| !value.is_null());
    if is_there("apply") {
        return Err(StageFault::Apply);
    }
    if is_there("event") {
        let text = |field: &str| next.str_at(&["event", field]).to_owned();
        let told = Told { is_warning: text("type") == "Warning", reason: text("reason"), message: text("message") };
        steps.push(Step::Event(told));
    }
    if is_there("finalizers") {
        let names = |field: &str| {
            let items = next.items_at(&["finalizers", field]).iter();
            items.map(|item| item.str_at(&["value"]).to_owned()).collect()
        };
        let empty = next.at(&["finalizers", "empty"]).and_then(Value::as_bool) == Some(true);
        let change = FinalizerChange { add: names("add"), remove: names("remove"), empty };
        steps.push(Step::Finalizers(change));
    }
    if next.get("delete").and_then(Value::as_bool) == Some(true) {
        steps.push(Step::Delete);
    }
    let template = next.str_at(&["statusTemplate"]);
    if !template.is_empty() {
        let (part, type_) = (Subresource::Status, usual_patch);
        steps.push(Step::Patch { part, root: Some("status".to_owned()), type_, template: Template::parse(template)? });
    }
    let one = next.get("patch").filter(|patch| !patch.is_null());
    for patch in next.items_at(&["patches"]).iter().chain(one) {
        steps.push(read_patch(patch, usual_patch)?);
    }
    Ok(())
}

fn read_patch(patch: &Value, usual: PatchType) -> Result<Step, StageFault> {
    let part = match patch.str_at(&["subresource"]) {
        "" => Subresource::Main,
        "status" => Subresource::Status,
        other => return Err(StageFault::Subresource(other.to_owned())),
    };
    let type_ = match patch.str_at(&["type"]) {
        "" => usual,
        "strategic" => PatchType::StrategicMerge,
        "merge" => PatchType::Merge,
        "json" => PatchType::Json,
        other => return Err(StageFault::PatchType(other.to_owned())),
    };
    let root = Some(patch.str_at(&["root"]).to_owned()).filter(|root| !root.is_empty());
    Ok(Step::Patch { part, root, type_, template: Template::parse(patch.str_at(&["template"]))? })
}

#[cfg(test)]
mod tests {
    use super::*;

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
        let check =
            |more: &str, expected: Option<usize>| assert_eq!(stage_of(&stages, &pod(1, more)), expected, "{more}");
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
        let plain =
            "  delay: {durationMilliseconds: 2000, durationFrom: {expressionFrom: '.metadata.annotations[\"d\"]'}";
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
        let deeds = one.deeds(&pod(1, "finalizers: [a/b]"), &context).expect("they are made");
        let told = Told { is_warning: true, reason: "R".to_owned(), message: "m".to_owned() };
        let (main, status) = (Subresource::Main, Subresource::Status);
        let change = |names: [&str; 2]| {
            let [add, remove] = names.map(|name| vec![name.to_owned()]);
            FinalizerChange { add, remove, empty: false }
        };
        let expected = vec![
            Deed::Tell(told),
            Deed::Finalize(change(["x/y", "a/b"])),
            Deed::Patch(
                status,
                PatchType::StrategicMerge,
                br#"{"status":{"phase":"Failed","startTime":"2026-01-01T00:00:00Z"}}"#.to_vec(),
            ),
            Deed::Patch(main, PatchType::Merge, br#"{"metadata":{"annotations":{"k":"v"}}}"#.to_vec()),
            Deed::Delete,
        ];
        assert_eq!(deeds, expected);
    }

    #[test]
    fn how_an_object_is_patched_is_as_its_kind_has_it_unless_the_stage_says_it() {
        let check = |kind: &str, patch: &str, expected: (PatchType, &str)| {
            let text = format!(
                "apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nspec: {{resourceRef: {{kind: {kind}}}, steps: [{{patch: {{{patch}}}}}]}}"
            );
            let one = Stage::read(&read(&text)).expect("it is understood").expect("it is a stage");
            let deeds =
                one.deeds(&pod(1, ""), &TemplateContext { now: at(0), addresses: None }).expect("they are made");
            let (type_, bytes) = expected;
            assert_eq!(deeds, [Deed::Patch(Subresource::Main, type_, bytes.as_bytes().to_vec())], "{kind} {patch}");
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
            let text =
                format!("apiVersion: kwok.x-k8s.io/v1alpha1\nkind: Stage\nspec: {{resourceRef: {{{reference}}}}}");
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
}
