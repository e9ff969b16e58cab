//! The output formats of findings: lines, JSON, SARIF and GitHub annotations.

use std::collections::BTreeMap;

use super::found::{FileFindings, Located, about, each};
use crate::author::lint::{Finding, LINTS, Lint as Looked, Severity};
use crate::cli::annotate::{Annotation, AnnotationLevel, Described};
use crate::object;
use crate::value::{Value, json};

pub(super) fn explain(lint: &Looked) -> String {
    let Looked { id, severity, finds, reason, remedy, is_fixed } = lint;
    let fixed = if *is_fixed { "\n--fix makes the edit." } else { "" };
    format!("{id} ({})\n\n{finds}\nWhy: {reason}.\nRemedy: {remedy}.{fixed}\n", severity.word())
}

/// The findings in a file.
pub(super) fn show_found(found: &FileFindings) -> String {
    let mut out = String::new();
    for (file, located) in each(std::slice::from_ref(found)) {
        let at = located.place.map_or(String::new(), |place| format!(":{}:{}", place.line, place.column));
        let Finding { lint, message, fix, .. } = &located.finding;
        let about = about(located);
        out.push_str(&format!("{file}{at}: {} {}: {about}: {message}\n  fix: {fix}\n", lint.severity.word(), lint.id));
    }
    out
}

/// The summary after all findings.
pub(super) fn show_end(found: &[FileFindings], fixes: bool) -> String {
    let mut out = summary(found, fixes);
    out.push('\n');
    let hidden: usize = found.iter().map(|found| found.hidden).sum();
    if hidden > 0 {
        out.push_str(&format!("{hidden} more with --severity advice\n"));
    }
    if each(found).next().is_some() {
        out.push_str("why: skiff lint --explain ID\n");
    }
    out
}

/// The number of findings for each id, the most frequent first.
fn summary(found: &[FileFindings], fixes: bool) -> String {
    let mut by_id: BTreeMap<&str, usize> = BTreeMap::new();
    each(found).for_each(|(_, found)| *by_id.entry(found.finding.lint.id).or_default() += 1);
    let mut by_id: Vec<_> = by_id.into_iter().collect();
    by_id.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
    let ids: Vec<String> = by_id.iter().map(|(id, count)| format!("{id} {count}")).collect();
    let definitions: usize = found.iter().map(|found| found.definitions).sum();
    let policies: usize = found.iter().map(|found| found.policies).sum();
    let counted = |count: usize, thing: &str| format!("{count} {thing}{}", if count == 1 { "" } else { "s" });
    let places = match (definitions, policies) {
        (_, 0) => counted(definitions, "definition"),
        (0, 1) => "1 policy or binding".to_owned(),
        (0, _) => format!("{policies} policies and bindings"),
        (_, 1) => format!("{} and 1 policy or binding", counted(definitions, "definition")),
        _ => format!("{}, {policies} policies and bindings", counted(definitions, "definition")),
    };
    let fixed: usize = found.iter().map(|found| found.fixed).sum();
    let fixed = if fixes { format!(", {fixed} fixed") } else { String::new() };
    let text = format!("{} in {places}{fixed}", counted(each(found).count(), "finding"));
    if ids.is_empty() { text } else { format!("{text}: {}", ids.join(", ")) }
}

pub(super) fn show_json(found: &[FileFindings]) -> String {
    let found: Vec<Value> = each(found)
        .map(|(file, Located { about, name, place, finding, .. })| {
            let versions: Vec<Value> = finding.versions.iter().map(|version| Value::from(version.as_str())).collect();
            object! {
                "file" => file,
                "line" => place.map_or(Value::Null, |place| Value::Int(place.line as i64)),
                "column" => place.map_or(Value::Null, |place| Value::Int(place.column as i64)),
                *about => name.as_str(),
                "versions" => versions,
                "path" => finding.path.as_str(),
                "id" => finding.lint.id,
                "severity" => finding.lint.severity.word(),
                "message" => finding.message.as_str(),
                "reason" => finding.lint.reason,
                "fix" => finding.fix.as_str(),
            }
        })
        .collect();
    json::encode_to_string(&Value::Array(found))
}

pub(super) fn annotations(found: &[FileFindings]) -> Vec<Annotation> {
    let annotation = |(file, located): (&str, &Located)| Annotation {
        file: file.to_owned(),
        place: located.place,
        level: match located.finding.lint.severity {
            Severity::Error => AnnotationLevel::Error,
            Severity::Warning => AnnotationLevel::Warning,
            Severity::Advice => AnnotationLevel::Note,
        },
        id: located.finding.lint.id.to_owned(),
        message: format!("{}: {} (fix: {})", about(located), located.finding.message, located.finding.fix),
    };
    each(found).map(annotation).collect()
}

/// The descriptions of the lints for SARIF.
pub(super) fn described() -> Vec<Described> {
    let help = |lint: &Looked| format!("Why: {}. Remedy: {}.", lint.reason, lint.remedy);
    LINTS.map(|lint| Described { id: lint.id, summary: lint.finds, help: help(lint) }).into()
}
