//! Findings that the author of a definition or a policy has suppressed.

use super::Finding;
use super::entry::Lint;
use super::lints::UNKNOWN_IGNORE;
use crate::value::Value;

/// The annotation that suppresses findings: ids, or `id:path`, separated by commas.
pub const ANNOTATION: &str = "skiff.kubeskiff.dev/lint-ignore";

/// Removes the findings that the annotation in `metadata` suppresses, and adds a finding for each id in it that no lint
/// has.
pub fn apply(metadata: &Value, findings: &mut Vec<Finding>) {
    let ignored = metadata.at(&["annotations", ANNOTATION]).and_then(Value::as_str).unwrap_or_default();
    let entries = ignored.split(',').map(str::trim).filter(|entry| !entry.is_empty());
    let entries: Vec<(&str, Option<&str>)> =
        entries.map(|entry| entry.split_once(':').map_or((entry, None), |(id, path)| (id, Some(path)))).collect();
    let unknown = entries.iter().filter(|(id, _)| Lint::find(id).is_none());
    findings.extend(unknown.map(|(id, _)| Finding {
        lint: &UNKNOWN_IGNORE,
        versions: Vec::new(),
        path: String::new(),
        places: vec![format!("metadata.annotations[{ANNOTATION}]")],
        message: format!("no lint is called `{id}`"),
        fix: UNKNOWN_IGNORE.remedy.to_owned(),
    }));
    findings.retain(|finding| {
        let is_meant =
            |(id, path): &(&str, Option<&str>)| *id == finding.lint.id && path.is_none_or(|path| path == finding.path);
        !entries.iter().any(is_meant)
    });
}
