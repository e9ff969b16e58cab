//! Makes a suite's case that expects the current result of the inputs.

use super::inputs::{Inputs, Pane};
use super::{FindUser, catalog};
use crate::author::expected::expected;
use crate::author::policies::Policies;
use crate::author::suite::{self, Coverage, SuiteStage};
use crate::object;
use crate::value::{Value, yaml};

/// The file in which the suite looks for the definitions.
const FILE: &str = "definition.yaml";

/// Returns a suite with one case, as YAML; `None` if there is no verdict.
pub fn case(inputs: &Inputs, policies: &Policies, find_user: FindUser<'_>) -> Option<String> {
    let catalog = catalog(inputs, inputs.minor(), &mut Vec::new());
    let written = inputs.case()?;
    let stage = SuiteStage { catalog: &catalog, policies, find_user };
    let admitted = suite::admit(&written, &stage, &mut Coverage::default().policies)?;
    let ratcheted = suite::ratcheted(catalog.of(&written.object), &written, &admitted.checked);
    let is_fine =
        admitted.denial.is_none() && admitted.checked.errors.is_empty() && admitted.checked.unknown.is_empty();
    let verb = match (written.old.is_some(), is_fine) {
        (false, true) => "can be created",
        (false, false) => "can't be created",
        (true, true) => "can be updated",
        (true, false) => "can't be updated",
    };
    let name = format!("{} {verb}", written.object.str_at(&["kind"]));
    let mut case = object! { "name" => name.trim(), "object" => written.object.clone() };
    let fields = case.make_object();
    if let Some(old) = written.old {
        fields.insert("oldObject", old);
    }
    if let Some(request) = inputs.first(Pane::Request) {
        for field in ["user", "namespace", "params", "operation", "subresource"] {
            request.value.get(field).into_iter().for_each(|value| _ = fields.insert(field, value.clone()));
        }
    }
    fields.insert("expect", expected(&admitted, &ratcheted));
    let mut suite = object! { "crds" => vec![Value::from(FILE)], "cases" => vec![case] };
    if inputs.has_policies() {
        suite.make_object().insert("policies", Value::Array(vec![Value::from(FILE)]));
    }
    Some(format!("# With the definitions beside it in {FILE}: skiff test case.suite.yaml\n{}", yaml::encode(&suite)))
}
