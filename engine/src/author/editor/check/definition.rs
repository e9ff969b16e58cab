//! Definitions: what the server has against one, and what lints find.

use super::super::documents::Sort;
use super::super::expression::expressions;
use super::super::outline::{Step, shown};
use super::super::workspace::Workspace;
use super::{Document, Found, Manifest, Severity};
use crate::author::lint::{Finding, lint_kind, older};
use crate::author::{Checked, DefinedKind, Priced, written_field};
use crate::meta::field::{Error, Subject};
use crate::value::yaml::{Located, decode_each_located};

/// Lints that say what the server says, which is told in its own words.
const OF_THE_SERVER: [&str; 2] = ["refused", "not-structural"];

/// The kinds that a text defines, and what is wrong with it.
pub fn check(workspace: &Workspace, text: &str) -> (Vec<DefinedKind>, Vec<Found>) {
    let mut document = Document::new(text);
    let mut kinds = Vec::new();
    for read in decode_each_located(text.as_bytes()) {
        match read {
            Err(broken) => document.broken(&broken),
            Ok(located) => {
                document.repeated(&located);
                match DefinedKind::priced(workspace.minor(), &located.value) {
                    Ok(priced) => {
                        look(&mut document, workspace, &located, &priced);
                        kinds.push(priced.kind);
                    }
                    Err(error) => {
                        let manifest = Manifest { value: &located.value, located: &located, within: String::new() };
                        document.checked(&manifest, &Checked::refuse(located.value.clone(), &error.into()));
                    }
                }
            }
        }
    }
    (kinds, document.found)
}

fn look(document: &mut Document<'_>, workspace: &Workspace, located: &Located, priced: &Priced) {
    let manifest = Manifest { value: &located.value, located, within: String::new() };
    let checked = Checked { unknown: priced.unknown.clone(), ..Checked::default() };
    document.checked(&manifest, &checked);
    for error in &priced.kind.errors {
        if !expression_error(document, error) {
            let range = document.range(located.place(&written_field(&error.field, 0)));
            document.tell(range, Severity::Error, error.kind.reason(), error.to_string());
        }
    }
    let findings = lint_kind(&priced.kind, &priced.costs, &located.value, &|lint| workspace.lints.wants(lint));
    // The definition was read once already.
    let of_older = older(&workspace.older, workspace.minor(), &located.value).unwrap_or_default();
    let findings = findings.into_iter().chain(of_older);
    let own: Vec<Finding> = findings.filter(|finding| !OF_THE_SERVER.contains(&finding.lint.id)).collect();
    document.findings(&workspace.lints, located, &own);
}

/// Tells what is wrong with an expression where it stands in it. False for what is wrong with something else.
fn expression_error(document: &mut Document<'_>, error: &Error) -> bool {
    let Subject::Expression(faults) = &error.subject else { return false };
    let field = written_field(&error.field, 0);
    let all = expressions(document.text, &document.outline, Sort::Definition);
    let Some(found) = all.iter().find(|found| is_at(&document.outline.path(found.node), &field)) else { return false };
    for fault in faults.iter().filter(|fault| fault.line > 0) {
        let message = fault.message.lines().next().unwrap_or_default().trim().to_owned();
        document.tell(found.place(fault.line, fault.column), Severity::Error, "expression", message);
    }
    true
}

/// Whether a path is that of a field as errors name it: `spec.versions[0].schema.openAPIV3Schema.properties[spec].…`.
fn is_at(path: &[Step], field: &str) -> bool {
    let plain = |text: &str| {
        text.replace(['[', ']'], ".").split('.').filter(|step| !step.is_empty()).collect::<Vec<_>>().join(".")
    };
    plain(&shown(path)) == plain(field)
}
