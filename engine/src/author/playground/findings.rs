//! The findings of lints in definitions and policies, with the available fixes.

use super::inputs::{Inputs, Marker, Pane, is_definition};
use super::shown::{SHOWN_MAX, line, number, shortened};
use crate::author::fix;
use crate::author::lint::{Finding, Severity, lint_in};
use crate::author::policies::lint as policy_lint;
use crate::author::{check, written_field};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::Value;
use crate::value::yaml::TextPosition;

/// A finding and the index of its document.
struct DocumentFinding {
    document: usize,
    finding: Finding,
}

/// The findings, errors first; advice has no markers.
pub fn find(inputs: &Inputs, minor: Minor, markers: &mut Vec<Marker>) -> Value {
    let documents = inputs.documents(Pane::Definition);
    let mut shown: Vec<Value> = Vec::new();
    for document in documents.iter().filter(|document| is_definition(&document.value)) {
        let unknown = check::define_in(minor, &document.value, None).map(|checked| checked.unknown).unwrap_or_default();
        for path in unknown.iter().take(SHOWN_MAX) {
            let place = document.key_place(path);
            markers.push(Marker::warning(Pane::Definition, Some(place), format!("unknown field \"{path}\"")));
        }
    }
    for (at, found) in all(inputs, minor).iter().enumerate() {
        let place = place(inputs, found);
        let Finding { lint, message, .. } = &found.finding;
        match lint.severity {
            Severity::Error => markers.push(Marker::error(Pane::Definition, place, message.as_str())),
            Severity::Warning => markers.push(Marker::warning(Pane::Definition, place, message.as_str())),
            Severity::Advice => {}
        }
        if at < SHOWN_MAX {
            shown.push(show(at, found, place));
        }
    }
    Value::Array(shown)
}

fn show(at: usize, DocumentFinding { finding, .. }: &DocumentFinding, place: Option<TextPosition>) -> Value {
    let Finding { lint, path, message, fix, .. } = finding;
    object! {
        "number" => number(at as u64),
        "id" => lint.id,
        "severity" => lint.severity.word(),
        "field" => path.as_str(),
        "line" => line(place),
        "message" => shortened(message),
        "reason" => lint.reason,
        "remedy" => shortened(fix),
        "isFixed" => fix::is_fixable(finding),
    }
}

/// Returns the definitions with the fix of the finding of that number applied; `None` if there is no fix that can be
/// verified.
pub fn fix(inputs: &Inputs, number: usize) -> Option<String> {
    let found = all(inputs, inputs.minor()).into_iter().nth(number)?;
    let document = inputs.index_in_text(found.document);
    let fixed = fix::fix(inputs.text(Pane::Definition), &[(document, &found.finding)]);
    fixed.is_fixed.first().copied().unwrap_or_default().then_some(fixed.text)
}

fn all(inputs: &Inputs, minor: Minor) -> Vec<DocumentFinding> {
    let mut found = Vec::new();
    for (document, manifest) in inputs.manifests().enumerate().filter(|(_, manifest)| is_definition(manifest)) {
        // An invalid definition is reported elsewhere.
        let findings = lint_in(minor, manifest).unwrap_or_default();
        found.extend(findings.into_iter().map(|finding| DocumentFinding { document, finding }));
    }
    if inputs.has_policies() {
        let manifests: Vec<&Value> = inputs.manifests().collect();
        let of_policies = policy_lint::lint(&manifests).into_iter();
        found.extend(of_policies.map(|(document, finding)| DocumentFinding { document, finding }));
    }
    found.sort_by_key(|found| std::cmp::Reverse(found.finding.lint.severity));
    found
}

fn place(inputs: &Inputs, found: &DocumentFinding) -> Option<TextPosition> {
    let document = inputs.documents(Pane::Definition).get(found.document)?;
    let at = found.finding.places.first().map_or("", String::as_str);
    Some(document.place(&written_field(at, 0)))
}
