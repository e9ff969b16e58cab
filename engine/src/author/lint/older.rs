//! What older versions of Kubernetes refuse in a definition that the newest one accepts, and what they ignore.

use super::lints::{OLDER_IGNORES, OLDER_REFUSES};
use super::{Finding, Lint, LintFindings, NodeLocation, SHARED, VersionFindings, apply_ignored, schema_place};
use crate::author::DefinedKind;
use crate::cel::library;
use crate::crd::definition;
use crate::meta::field::{Error, ErrorSubject, ExpressionFault};
use crate::meta::format::Format;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::unmarshal::UnmarshalError;
use crate::value::Value;

/// A fault in some minor versions.
pub(super) struct OlderFault {
    lint: &'static Lint,
    at: String,
    message: String,
    fix: String,
    minors: Vec<Minor>,
}

/// Returns what the minor versions `older` refuse or ignore of a definition that `newest` accepts: a finding for each
/// path, with the minor versions concerned.
///
/// # Errors
/// The value does not fit the type of definitions.
pub fn older(older: &[Minor], newest: Minor, definition: &Value) -> Result<Vec<Finding>, UnmarshalError> {
    if older.is_empty() {
        return Ok(Vec::new());
    }
    older_than(older, &DefinedKind::new_in(newest, definition)?, definition)
}

/// Does the same as [`older`] for a definition that the newest minor version compiles to `newest`.
///
/// # Errors
/// The value does not fit the type of definitions.
pub fn older_than(older: &[Minor], newest: &DefinedKind, definition: &Value) -> Result<Vec<Finding>, UnmarshalError> {
    let mut told: Vec<OlderFault> = Vec::new();
    for &minor in older {
        let kind = DefinedKind::new_in(minor, definition)?;
        let is_new = |error: &&Error| !newest.errors.iter().any(|known| known.field == error.field);
        for error in kind.errors.iter().filter(is_new) {
            let at = error.field.replacen(SHARED, &schema_place(0), 1);
            // Consequential faults follow in the detail's other lines.
            let detail = error.detail.lines().next().unwrap_or_default();
            note(&mut told, minor, &OLDER_REFUSES, &at, format!("{}: {detail}", error.field), &remedy(error));
        }
        ignored(&mut told, minor, definition, &kind, newest)?;
    }
    Ok(findings(told, &newest.definition.metadata))
}

/// Turns the faults into findings about an object with this metadata.
pub(super) fn findings(told: Vec<OlderFault>, metadata: &Value) -> Vec<Finding> {
    let mut all = LintFindings::default();
    let mut found = VersionFindings { version: "", is_used: true, wanted: &|_| true, told: &mut all };
    for OlderFault { lint, at, message, fix, minors } in told {
        let verb = if *lint == OLDER_REFUSES { "refused" } else { "ignored" };
        let message = format!("{verb} in Kubernetes {}: {message}", span(&minors));
        found.tell(&NodeLocation { path: "", at: &at }, lint, message, fix);
    }
    let mut findings = all.findings;
    apply_ignored(metadata, &mut findings);
    findings
}

/// Adds what that version ignores silently or with a warning.
fn ignored(
    told: &mut Vec<OlderFault>,
    minor: Minor,
    written: &Value,
    kind: &DefinedKind,
    newest: &DefinedKind,
) -> Result<(), UnmarshalError> {
    let unknown = |minor| Ok::<_, UnmarshalError>(definition::decode_in(minor, written)?.1.unknown);
    let wanted = newest.definition.minor;
    let known = unknown(wanted)?;
    for field in unknown(minor)?.into_iter().filter(|field| !known.contains(field)) {
        let message = format!("the field `{field}` is not known");
        note(told, minor, &OLDER_IGNORES, &field, message, OLDER_IGNORES.remedy);
    }
    let versions = kind.definition.spec.versions.iter().zip(&newest.definition.spec.versions);
    for (index, (version, newest)) in versions.enumerate() {
        if Gate::CustomResourceFieldSelectors.is_known_in(minor)
            && version.selectable_fields != newest.selectable_fields
        {
            let at = format!("spec.versions[{index}].selectableFields");
            let gate = Gate::CustomResourceFieldSelectors.name();
            let message = format!("`{at}` is dropped unless the feature gate {gate} is open");
            note(told, minor, &OLDER_IGNORES, &at, message, OLDER_IGNORES.remedy);
        }
        let Some(schema) = newest.schema.as_ref().and_then(Option::as_ref) else { continue };
        let at = schema_place(index);
        schema.any(&mut |schema| {
            let (type_, format) = (schema.type_.as_str(), schema.format.as_str());
            let is_checked = |minor| !Format::effective_in(minor, type_, format).is_empty();
            if is_checked(wanted) && !is_checked(minor) {
                let message = format!("the format `{format}` is not checked");
                let fix = match type_ {
                    "integer" | "number" => "set minimum and maximum, too",
                    _ => "set a pattern, or write a rule, too",
                };
                note(told, minor, &OLDER_IGNORES, &at, message, fix);
            }
            let is_optional = schema.validations.iter().any(|rule| rule.optional_old_self.is_some());
            if is_optional && !minor.opens(Gate::CrdValidationRatcheting) {
                let message = "`optionalOldSelf` is dropped, so that its rules run on updates alone".to_owned();
                note(told, minor, &OLDER_IGNORES, &at, message, OLDER_IGNORES.remedy);
            }
            false
        });
    }
    Ok(())
}

pub(super) fn note(
    told: &mut Vec<OlderFault>,
    minor: Minor,
    lint: &'static Lint,
    at: &str,
    message: String,
    fix: &str,
) {
    let known = told.iter_mut().find(|known| (known.lint, known.at.as_str()) == (lint, at) && known.fix == fix);
    match known.filter(|known| lint.id == OLDER_REFUSES.id || known.message == message) {
        Some(known) => {
            if known.minors.last() != Some(&minor) {
                known.minors.push(minor);
            }
        }
        None => told.push(OlderFault { lint, at: at.to_owned(), message, fix: fix.to_owned(), minors: vec![minor] }),
    }
}

/// The remedy for an error of an older version.
pub(super) fn remedy(error: &Error) -> String {
    match &error.subject {
        ErrorSubject::EstimatedCost => {
            "set maxItems, maxLength or maxProperties on what the rule goes through, or make it simpler".to_owned()
        }
        ErrorSubject::Expression(faults) => newer_function(faults).unwrap_or_else(|| OLDER_REFUSES.remedy.to_owned()),
        _ => OLDER_REFUSES.remedy.to_owned(),
    }
}

/// The remedy for the use of a function that the older version does not have.
fn newer_function(faults: &[ExpressionFault]) -> Option<String> {
    let (name, since) = faults
        .iter()
        .filter_map(|fault| fault.undeclared.as_ref())
        .find_map(|undeclared| Some((undeclared.name(), library::new_since(undeclared)?)))?;
    Some(format!("do without `{name}`, which new expressions may use since {since}"))
}

/// Formats minor versions as `1.29`, `1.29 to 1.31` or `1.29, 1.31`.
fn span(minors: &[Minor]) -> String {
    match minors {
        [first, .., last] if usize::from(last.number() - first.number()) + 1 == minors.len() => {
            format!("{first} to {last}")
        }
        _ => minors.iter().map(Minor::to_string).collect::<Vec<_>>().join(", "),
    }
}
