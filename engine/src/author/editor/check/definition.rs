//! Checks of definitions: the server's errors, and the findings of lints.
//!
//! A verdict refers to fields, not to positions: if only positions have changed, as by a comment, it remains valid. If
//! one schema has changed, the others are not compiled again.

use std::collections::HashMap;
use std::sync::Arc;

use super::super::documents::Sort;
use super::super::expression::expressions;
use super::super::outline::{OutlineStep, shown};
use super::super::workspace::{KindName, ManifestKind, Workspace};
use super::{ByteDiagnostic, CheckCounts, LocatedDocument, Manifest, Severity};
use crate::author::lint::{Finding, lint_kind, older_than};
use crate::author::{Checked, DefinedKind, PricedKind, written_field};
use crate::crd::validate::validated::Validated;
use crate::meta::field::{Error, ErrorList, ErrorSubject};
use crate::value::Value;
use crate::value::yaml::{Located, decode_each_located};

/// The lints that repeat errors of the server, which are reported with the server's messages.
const OF_THE_SERVER: [&str; 2] = ["refused", "not-structural"];

/// The definitions as they were last compiled, by their names.
pub type Judged = HashMap<String, CompiledDefinition>;

/// A definition as it was last compiled.
#[derive(Clone)]
pub struct CompiledDefinition {
    value: Arc<Value>,
    kind: KindName,
    /// The hash of the text from which it was compiled.
    hash: u64,
    schemas: Arc<Validated>,
    verdict: Arc<DefinitionErrors>,
}

/// The errors and findings of a definition, by its fields.
struct DefinitionErrors {
    unknown: Vec<String>,
    errors: ErrorList,
    findings: Vec<Finding>,
}

/// The result of checking a text with definitions.
#[derive(Default)]
pub struct CheckedDefinitions {
    /// The kinds that the text defines.
    pub made: Vec<ManifestKind>,
    /// The diagnostics.
    pub found: Vec<ByteDiagnostic>,
    /// The compiled definitions, for the next check.
    pub judged: Judged,
}

/// Checks a text with the hash `hash`: returns the kinds that it defines, and its diagnostics. Definitions that are the
/// same as `before` are not compiled again; the others are counted in `counts`.
pub fn check(
    workspace: &Workspace,
    mut document: LocatedDocument<'_>,
    hash: u64,
    before: &Judged,
    counts: &mut CheckCounts,
) -> CheckedDefinitions {
    let mut outcome = CheckedDefinitions::default();
    for read in decode_each_located(document.text.as_bytes()) {
        match read {
            Err(broken) => document.broken(&broken),
            Ok(located) => {
                document.repeated(&located);
                judge(workspace, &mut document, located, hash, before, &mut outcome, counts);
            }
        }
    }
    outcome.found = document.found;
    outcome
}

fn judge(
    workspace: &Workspace,
    document: &mut LocatedDocument<'_>,
    located: Located,
    hash: u64,
    before: &Judged,
    outcome: &mut CheckedDefinitions,
    counts: &mut CheckCounts,
) {
    let name = located.value.str_at(&["metadata", "name"]).to_owned();
    let before = before.get(&name);
    // Another file may have defined the kind since then.
    let is_current = |before: &&CompiledDefinition| workspace.stamp_of_kind(&before.kind) == before.hash;
    if let Some(same) = before.filter(|before| *before.value == located.value).filter(is_current) {
        same.verdict.tell(document, workspace, &located);
        outcome.made.push(ManifestKind::Same(same.kind.clone()));
        outcome.judged.insert(name, same.clone());
        return;
    }
    counts.definitions += 1;
    let schemas = before.map(|before| Arc::clone(&before.schemas)).unwrap_or_default();
    match DefinedKind::priced_after(workspace.minor(), &located.value, &schemas) {
        Ok(priced) => {
            counts.schemas += priced.schemas.made();
            let verdict = DefinitionErrors::of(workspace, &located.value, &priced);
            verdict.tell(document, workspace, &located);
            let PricedKind { kind, schemas, .. } = priced;
            let definition = CompiledDefinition {
                value: Arc::new(located.value),
                kind: kind.key(),
                hash,
                schemas: Arc::new(schemas),
                verdict: Arc::new(verdict),
            };
            outcome.made.push(ManifestKind::New(Box::new(kind)));
            outcome.judged.insert(name, definition);
        }
        Err(error) => {
            let manifest = Manifest { value: &located.value, located: &located, within: String::new() };
            document.checked(&manifest, &Checked::refuse(located.value.clone(), &error.into()));
        }
    }
}

impl DefinitionErrors {
    fn of(workspace: &Workspace, value: &Value, priced: &PricedKind) -> DefinitionErrors {
        let findings = lint_kind(&priced.kind, &priced.schemas, value, &|lint| workspace.lints.wants(lint));
        // The definition has already been read successfully.
        let of_older = older_than(&workspace.older, &priced.kind, value).unwrap_or_default();
        let findings = findings.into_iter().chain(of_older);
        let findings = findings.filter(|finding| !OF_THE_SERVER.contains(&finding.lint.id)).collect();
        DefinitionErrors { unknown: priced.unknown.clone(), errors: priced.kind.errors.clone(), findings }
    }

    fn tell(&self, document: &mut LocatedDocument<'_>, workspace: &Workspace, located: &Located) {
        let manifest = Manifest { value: &located.value, located, within: String::new() };
        let checked = Checked { unknown: self.unknown.clone(), ..Checked::default() };
        document.checked(&manifest, &checked);
        for error in &self.errors {
            if !expression_error(document, error) {
                let range = document.range(located.place(&written_field(&error.field, 0)));
                document.tell(range, Severity::Error, error.kind.reason(), error.to_string());
            }
        }
        document.findings(&workspace.lints, located, &self.findings);
    }
}

/// Reports the faults of an expression at their positions in it. Returns false if the error is not about an expression.
fn expression_error(document: &mut LocatedDocument<'_>, error: &Error) -> bool {
    let ErrorSubject::Expression(faults) = &error.subject else { return false };
    let field = written_field(&error.field, 0);
    let all = expressions(document.text, &document.outline, Sort::Definition);
    let Some(found) = all.iter().find(|found| is_at(&document.outline.path(found.node), &field)) else { return false };
    for fault in faults.iter().filter(|fault| fault.line > 0) {
        let message = fault.message.lines().next().unwrap_or_default().trim().to_owned();
        document.tell(found.place(fault.line, fault.column), Severity::Error, "expression", message);
    }
    true
}

/// Whether a path is the field's, as errors name it: `spec.versions[0].schema.openAPIV3Schema.properties[spec].…`.
fn is_at(path: &[OutlineStep], field: &str) -> bool {
    let plain = |text: &str| {
        text.replace(['[', ']'], ".").split('.').filter(|step| !step.is_empty()).collect::<Vec<_>>().join(".")
    };
    plain(&shown(path)) == plain(field)
}
