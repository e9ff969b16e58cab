//! Decodes a stage from its object.

use std::time::Duration;

use super::error::{StageError, StageFault};
use super::kind::StagedKind;
use super::requirement::{Operator, Requirement};
use super::stage::{Stage, StageDelay};
use super::step::{FinalizerChange, StageEvent, StageStep};
use crate::controllers::simulated::query::{Query, text_of};
use crate::controllers::simulated::template::Template;
use crate::registry::{PatchType, Subresource};
use crate::value::{Value, json};

const API_VERSION: &str = "kwok.x-k8s.io/v1alpha1";
const KIND: &str = "Stage";

impl Stage {
    /// Reads a stage; `None` for an object of another kind.
    ///
    /// # Errors
    ///
    /// The part that is invalid.
    pub fn read(object: &Value) -> Result<Option<Self>, StageError> {
        if object.str_at(&["apiVersion"]) != API_VERSION || object.str_at(&["kind"]) != KIND {
            return Ok(None);
        }
        let name = object.str_at(&["metadata", "name"]);
        let spec = object.get("spec").cloned().unwrap_or_default();
        let stage = read_spec(name, &spec);
        stage.map(Some).map_err(|fault| StageError { stage: name.to_owned(), fault })
    }
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
    let of = StagedKind { api_version, kind };
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
        delay: read_delay(spec, ["durationMilliseconds", "durationFrom"])?,
        jitter: if has_jitter { Some(read_delay(spec, jitter)?) } else { None },
        steps,
    })
}

fn read_delay(spec: &Value, [fixed, from]: [&str; 2]) -> Result<StageDelay, StageFault> {
    let millis = spec.at(&["delay", fixed]).and_then(Value::as_i64).and_then(|millis| u64::try_from(millis).ok());
    let from = read_from(spec.at(&["delay", from]))?;
    Ok(StageDelay { fixed: Duration::from_millis(millis.unwrap_or_default()), from })
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
fn read_steps(next: &Value, usual_patch: PatchType, steps: &mut Vec<StageStep>) -> Result<(), StageFault> {
    let is_there = |field: &str| next.get(field).is_some_and(|value| !value.is_null());
    if is_there("apply") {
        return Err(StageFault::Apply);
    }
    if is_there("event") {
        let text = |field: &str| next.str_at(&["event", field]).to_owned();
        let event =
            StageEvent { is_warning: text("type") == "Warning", reason: text("reason"), message: text("message") };
        steps.push(StageStep::Event(event));
    }
    if is_there("finalizers") {
        let names = |field: &str| {
            let items = next.items_at(&["finalizers", field]).iter();
            items.map(|item| item.str_at(&["value"]).to_owned()).collect()
        };
        let empty = next.at(&["finalizers", "empty"]).and_then(Value::as_bool) == Some(true);
        let change = FinalizerChange { add: names("add"), remove: names("remove"), empty };
        steps.push(StageStep::Finalizers(change));
    }
    if next.get("delete").and_then(Value::as_bool) == Some(true) {
        steps.push(StageStep::Delete);
    }
    let template = next.str_at(&["statusTemplate"]);
    if !template.is_empty() {
        let (part, type_) = (Subresource::Status, usual_patch);
        steps.push(StageStep::Patch {
            part,
            root: Some("status".to_owned()),
            type_,
            template: Template::parse(template)?,
        });
    }
    let one = next.get("patch").filter(|patch| !patch.is_null());
    for patch in next.items_at(&["patches"]).iter().chain(one) {
        steps.push(read_patch(patch, usual_patch)?);
    }
    Ok(())
}

fn read_patch(patch: &Value, usual: PatchType) -> Result<StageStep, StageFault> {
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
    Ok(StageStep::Patch { part, root, type_, template: Template::parse(patch.str_at(&["template"]))? })
}
