//! What is wrong with a text, document by document.
//!
//! In: a text, and what was found in it before. Out: diagnostics with their places. A document is looked at again if its text
//! changed, or what it was checked against; what one of several documents can't be read for hides nothing of the others.

mod definition;
mod object;
pub(super) mod suite;

use std::collections::HashMap;
use std::ops;
use std::sync::Arc;

use super::documents::{Head, Sort};
use super::outline::{Form, Outline, outline};
use super::text::{Range, Text};
use super::workspace::{Read, Workspace, read_parts};
use crate::author::DefinedKind;
use crate::author::lint::{Finding, Lint, Severity as Weight};
use crate::author::policies::lint as policy_lint;
use crate::value::Value;
use crate::value::yaml::{Broken, Located, Place, decode_each_located};
use crate::work;

/// What is told of a document at most.
const FOUND_MAX: usize = 1000;

/// How much a diagnostic weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The server refuses it.
    Error,
    /// The server takes it, and it does not do what it seems to.
    Warning,
    /// What is good to know.
    Information,
}

/// Something wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where it stands.
    pub range: Range,
    /// How much it weighs.
    pub severity: Severity,
    /// A word for programs: the id of a lint, or the reason of an error.
    pub code: String,
    /// What is wrong.
    pub message: String,
}

/// A diagnostic by the bytes of its document.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Found {
    range: ops::Range<usize>,
    severity: Severity,
    code: String,
    message: String,
}

/// What was found in the documents of a text, by what they and their surroundings were.
#[derive(Default)]
pub struct Checks {
    known: HashMap<u64, (u64, Arc<Vec<Found>>)>,
}

/// A document that is being looked at, with where its parts stand.
pub(super) struct Document<'t> {
    text: &'t str,
    lines: Text,
    outline: Outline,
    found: Vec<Found>,
}

/// A manifest in a document: one of its own, or an item of a List.
struct Manifest<'d> {
    value: &'d Value,
    located: &'d Located,
    within: String,
}

impl Workspace {
    /// What is wrong with the text of a file that is open. What it defines is taken, in place of what it defined before.
    pub fn check(&mut self, name: &str, text: &Text, checks: &mut Checks) -> Vec<Diagnostic> {
        let read = read_parts(name, text.as_str());
        let (mut found, mut made) = (HashMap::new(), Vec::new());
        for Read { part, .. } in read.iter().filter(|read| read.sort == Sort::Definition) {
            if checks.known.contains_key(&part.hash) {
                continue;
            }
            let (kinds, what) = definition::check(self, &text.as_str()[part.range.clone()]);
            made.extend(kinds.into_iter().map(|kind: DefinedKind| (part.hash, kind)));
            found.insert(part.hash, (0, Arc::new(what)));
        }
        // Half of it would be worse than none.
        work::essential(|| self.take(name, text.as_str(), &read, made));
        for Read { part, head, sort } in &read {
            let stamp = self.stamp(head, *sort);
            let before = found.get(&part.hash).or_else(|| checks.known.get(&part.hash)).filter(|(of, _)| *of == stamp);
            let now = match before {
                Some((_, what)) => Arc::clone(what),
                None => Arc::new(self.look(name, &text.as_str()[part.range.clone()], *sort)),
            };
            found.insert(part.hash, (stamp, now));
        }
        // What is not there any more is forgotten.
        checks.known = found;
        let shifted = |read: &Read| {
            let start = read.part.range.start;
            let what = checks.known.get(&read.part.hash).map(|(_, what)| Arc::clone(what)).unwrap_or_default();
            what.iter().map(|found| told(text, start, found)).collect::<Vec<_>>()
        };
        read.iter().flat_map(shifted).collect()
    }

    /// What a document was checked against.
    fn stamp(&self, head: &Head, sort: Sort) -> u64 {
        match sort {
            Sort::Definition | Sort::Request | Sort::Other => 0,
            // The guess at what was meant looks at all kinds.
            Sort::Object if self.stamp_of(head) == 0 => self.stamp_of_all(),
            Sort::Object => self.stamp_of(head) ^ self.policies_stamp,
            Sort::Policy | Sort::Suite => self.stamp_of_all(),
        }
    }

    fn look(&self, name: &str, text: &str, sort: Sort) -> Vec<Found> {
        let mut document = Document::new(text);
        for read in decode_each_located(text.as_bytes()) {
            match read {
                Err(broken) => document.broken(&broken),
                Ok(located) => {
                    document.repeated(&located);
                    match sort {
                        Sort::Definition | Sort::Request | Sort::Other => {}
                        Sort::Suite => suite::check(self, name, &mut document, &located),
                        Sort::Object => object::check(self, &mut document, &located),
                        Sort::Policy => self.policy(&mut document, &located),
                    }
                }
            }
        }
        document.found
    }

    fn policy(&self, document: &mut Document<'_>, located: &Located) {
        let manifest = Manifest { value: &located.value, located, within: String::new() };
        if let Some(checked) = object::check_built_in(self.minor(), &located.value) {
            document.checked(&manifest, &checked);
        }
        let own = self.policy_findings(&located.value).into_iter();
        // What the server refuses is told in its own words.
        let own: Vec<Finding> = own.filter(|finding| finding.lint.id != "policy-refused").collect();
        document.findings(&self.lints, located, &own);
    }

    /// What lints find in a policy or a binding, among all that there are.
    pub(super) fn policy_findings(&self, policy: &Value) -> Vec<Finding> {
        // What is known of it may be older than what is typed.
        let name = |value: &Value| (value.str_at(&["kind"]).to_owned(), value.str_at(&["metadata", "name"]).to_owned());
        let mut values: Vec<&Value> = self.policy_values().filter(|value| name(value) != name(policy)).collect();
        values.insert(0, policy);
        let findings = policy_lint::lint_among(&self.catalog, &values);
        findings.into_iter().filter(|(index, _)| *index == 0).map(|(_, finding)| finding).collect()
    }
}

fn told(text: &Text, start: usize, found: &Found) -> Diagnostic {
    Diagnostic {
        range: text.range(&(start + found.range.start..start + found.range.end)),
        severity: found.severity,
        code: found.code.clone(),
        message: found.message.clone(),
    }
}

impl<'t> Document<'t> {
    fn new(text: &'t str) -> Self {
        Document { text, lines: Text::from(text), outline: outline(text), found: Vec::new() }
    }

    fn tell(&mut self, range: ops::Range<usize>, severity: Severity, code: &str, message: impl Into<String>) {
        let found = Found { range, severity, code: code.to_owned(), message: message.into() };
        if self.found.len() < FOUND_MAX && !self.found.contains(&found) {
            self.found.push(found);
        }
    }

    /// The bytes of what stands at a place: a name, a value on its first line, or the rest of the line.
    fn range(&self, place: Place) -> ops::Range<usize> {
        let start = self.lines.offset_of(place);
        let line = self.lines.line_of(start);
        let line_end = self.lines.line_start(line) + self.lines.line(line).len();
        let end = match self.outline.at(start).map(|node| &self.outline.nodes[node]) {
            Some(node) if node.key.contains(&start) => node.key.end,
            Some(node) if node.value.contains(&start) && node.form != Form::Block => node.value.end.min(line_end),
            _ => line_end,
        };
        start..end.max(start)
    }

    fn broken(&mut self, broken: &Broken) {
        // Templates become YAML later.
        if self.text.contains("{{") {
            return;
        }
        let line = broken.place.line.saturating_sub(1);
        // A reader may miss something only at the end of the text.
        let line = (0..=line).rev().find(|line| !self.lines.line(*line).trim().is_empty()).unwrap_or(0);
        let (start, written) = (self.lines.line_start(line), self.lines.line(line));
        let indent = written.len() - written.trim_start().len();
        self.tell(
            start + indent..start + written.trim_end().len().max(indent),
            Severity::Error,
            "yaml",
            broken.problem.clone(),
        );
    }

    fn repeated(&mut self, located: &Located) {
        for repeated in &located.repeated {
            self.tell(self.range(repeated.place), Severity::Error, "duplicate-key", repeated.key.to_string());
        }
    }

    /// What the server says to a manifest.
    fn checked(&mut self, manifest: &Manifest<'_>, checked: &crate::author::Checked) {
        for path in &checked.unknown {
            let range = self.range(manifest.located.key_place(&manifest.path(path)));
            self.tell(range, Severity::Error, "unknown-field", format!("unknown field \"{path}\""));
        }
        for rejected in &checked.errors {
            let range = self.range(manifest.located.place(&manifest.path(&rejected.error.field)));
            self.tell(range, Severity::Error, rejected.error.kind.reason(), rejected.error.to_string());
        }
        for warning in &checked.warnings {
            let range = self.range(manifest.located.place(&manifest.path("kind")));
            self.tell(range, Severity::Warning, "warning", warning.clone());
        }
    }

    /// What lints find, as far as it is wanted.
    fn findings(&mut self, choice: &super::workspace::LintChoice, located: &Located, findings: &[Finding]) {
        for finding in findings.iter().filter(|finding| choice.wants(finding.lint)) {
            let severity = match finding.lint.severity {
                Weight::Error => Severity::Error,
                Weight::Warning => Severity::Warning,
                Weight::Advice => Severity::Information,
            };
            let message = format!("{}; {}", finding.message, finding.fix);
            for at in &finding.places {
                self.tell(self.range(located.place(at)), severity, finding.lint.id, message.clone());
            }
        }
    }
}

impl super::workspace::LintChoice {
    /// Whether findings of a lint are told.
    pub fn wants(&self, lint: &Lint) -> bool {
        let is_among = |ids: &[String]| ids.iter().any(|id| id == lint.id);
        (lint.severity >= self.least || is_among(&self.on)) && !is_among(&self.off)
    }
}

impl Manifest<'_> {
    /// The path of a field from the root of the document.
    fn path(&self, field: &str) -> String {
        let field = if field == "<nil>" { "" } else { field };
        let join = if self.within.is_empty() || field.is_empty() || field.starts_with('[') { "" } else { "." };
        format!("{}{join}{field}", self.within)
    }
}
