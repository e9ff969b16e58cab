//! Diagnostics of a text, document by document.
//!
//! Input: a text, and the results of its previous check. Output: diagnostics with their positions. A document is
//! checked again if its text changed, or the definitions it depends on; a document that cannot be parsed does not hide
//! the others' diagnostics. Only the changed schemas of a definition are compiled again ([`CheckCounts`] has their
//! number).

mod definition;
mod object;
pub(super) mod suite;

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::ops;
use std::sync::Arc;

use super::documents::{Head, Sort, parts};
use super::outline::{Outline, ValueStyle, outline};
use super::text::{Text, TextRange};
use super::workspace::{FilePart, Workspace};
use crate::author::lint::{Finding, Lint, Severity as Weight};
use crate::author::policies::lint as policy_lint;
use crate::value::Value;
use crate::value::yaml::{Broken, Located, TextPosition, decode_each_located};
use crate::work;

/// The most diagnostics per document.
const FOUND_MAX: usize = 1000;

/// The severity of a diagnostic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The server refuses it.
    Error,
    /// The server accepts it, but it does not do what it seems to.
    Warning,
    /// It is only a hint.
    Information,
}

/// A diagnostic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// The range of the text that it is about.
    pub range: TextRange,
    /// Its severity.
    pub severity: Severity,
    /// A code for programs: the id of a lint, or the reason of an error.
    pub code: String,
    /// The message.
    pub message: String,
}

/// A diagnostic whose range is in bytes of its document.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ByteDiagnostic {
    range: ops::Range<usize>,
    severity: Severity,
    code: String,
    message: String,
}

/// The results of checking the documents of a text, kept for the next check.
#[derive(Default)]
pub struct Checks {
    /// The documents, by the hashes of their texts.
    known: HashMap<u64, CheckedDocument>,
    judged: definition::Judged,
    counts: CheckCounts,
}

/// A document and its diagnostics.
struct CheckedDocument {
    head: Head,
    sort: Sort,
    /// A hash of the definitions and policies that it was checked against.
    stamp: u64,
    found: Arc<Vec<ByteDiagnostic>>,
}

/// How much of a text was actually checked in its last check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// The number of documents that were parsed.
    pub documents: usize,
    /// The number of definitions that have changed.
    pub definitions: usize,
    /// The number of schemas that were compiled.
    pub schemas: usize,
}

impl Checks {
    /// How much was actually checked in the last check.
    pub fn counts(&self) -> CheckCounts {
        self.counts
    }

    /// Splits a text into its documents. The head of a known document is not read again.
    fn read(&self, name: &str, text: &str) -> Vec<FilePart> {
        let read = |part: super::documents::TextPart| match self.known.get(&part.hash) {
            Some(CheckedDocument { head, sort, .. }) => {
                FilePart { part, head: head.clone(), sort: *sort, outline: None }
            }
            None => FilePart::new(name, text, part),
        };
        parts(text).into_iter().map(read).collect()
    }
}

/// A document that is being checked, with its outline.
pub(super) struct LocatedDocument<'t> {
    text: &'t str,
    lines: Cow<'t, Text>,
    outline: Outline,
    found: Vec<ByteDiagnostic>,
}

/// A manifest in a document: the document's only one, or an item of a List.
struct Manifest<'d> {
    value: &'d Value,
    located: &'d Located,
    within: String,
}

impl Workspace {
    /// Checks the text of an open file. Its definitions replace those that it had before.
    pub fn check(&mut self, name: &str, text: &Text, checks: &mut Checks) -> Vec<Diagnostic> {
        let mut read = checks.read(name, text.as_str());
        let mut counts = CheckCounts::default();
        let (mut definitions, mut made, mut judged) = (HashMap::new(), Vec::new(), definition::Judged::new());
        for read in read.iter_mut().filter(|read| read.sort == Sort::Definition) {
            let hash = read.part.hash;
            if checks.known.contains_key(&hash) || definitions.contains_key(&hash) {
                continue;
            }
            counts.documents += 1;
            let document = LocatedDocument::new(text, read);
            let outcome = definition::check(self, document, hash, &checks.judged, &mut counts);
            made.extend(outcome.made.into_iter().map(|made| (hash, made)));
            judged.extend(outcome.judged);
            definitions.insert(hash, Arc::new(outcome.found));
        }
        // This must not be interrupted: a partial update would be worse than none.
        work::essential(|| {
            self.take(name, text, &read, made);
            checks.judge(&read, judged);
        });
        let mut known = HashMap::new();
        for read in &mut read {
            let (hash, stamp) = (read.part.hash, self.stamp(&read.head, read.sort));
            let before = checks.known.get(&hash).filter(|known| known.stamp == stamp).map(|known| &known.found);
            let found = match definitions.get(&hash).or(before) {
                Some(found) => Arc::clone(found),
                None => {
                    counts.documents += 1;
                    Arc::new(self.look(name, LocatedDocument::new(text, read), read.sort))
                }
            };
            known.insert(hash, CheckedDocument { head: read.head.clone(), sort: read.sort, stamp, found });
        }
        // Documents that no longer exist are forgotten.
        (checks.known, checks.counts) = (known, counts);
        let shifted = |read: &FilePart| {
            let start = read.part.range.start;
            let found = checks.known.get(&read.part.hash).map(|known| Arc::clone(&known.found)).unwrap_or_default();
            found.iter().map(|found| told(text, start, found)).collect::<Vec<_>>()
        };
        read.iter().flat_map(shifted).collect()
    }

    /// The stamp of everything that a document is checked against.
    fn stamp(&self, head: &Head, sort: Sort) -> u64 {
        match sort {
            Sort::Definition | Sort::Request | Sort::Other => 0,
            // The suggestion for an unknown kind depends on all kinds.
            Sort::Object if self.stamp_of(head) == 0 => self.stamp_of_all(),
            Sort::Object => self.stamp_of(head) ^ self.policies_stamp,
            Sort::Policy | Sort::Suite => self.stamp_of_all(),
        }
    }

    fn look(&self, name: &str, mut document: LocatedDocument<'_>, sort: Sort) -> Vec<ByteDiagnostic> {
        for read in decode_each_located(document.text.as_bytes()) {
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

    fn policy(&self, document: &mut LocatedDocument<'_>, located: &Located) {
        let manifest = Manifest { value: &located.value, located, within: String::new() };
        if let Some(checked) = object::check_built_in(self.minor(), &located.value) {
            document.checked(&manifest, &checked);
        }
        let own = self.policy_findings(&located.value).into_iter();
        // What the server refuses is reported with the server's messages.
        let own: Vec<Finding> = own.filter(|finding| finding.lint.id != "policy-refused").collect();
        document.findings(&self.lints, located, &own);
    }

    /// The findings of lints in a policy or a binding, among all known policies.
    pub(super) fn policy_findings(&self, policy: &Value) -> Vec<Finding> {
        // The known version of it may be older than the text being edited.
        let name = |value: &Value| (value.str_at(&["kind"]).to_owned(), value.str_at(&["metadata", "name"]).to_owned());
        let mut values: Vec<&Value> = self.policy_values().filter(|value| name(value) != name(policy)).collect();
        values.insert(0, policy);
        let findings = policy_lint::lint_among(&self.catalog, &values);
        findings.into_iter().filter(|(index, _)| *index == 0).map(|(_, finding)| finding).collect()
    }
}

impl Checks {
    /// Stores the compiled definitions; those whose names no longer exist are forgotten.
    fn judge(&mut self, read: &[FilePart], judged: definition::Judged) {
        self.judged.extend(judged);
        let names: HashSet<&str> = read.iter().map(|read| read.head.name.as_str()).collect();
        self.judged.retain(|name, _| names.contains(name.as_str()));
    }
}

fn told(text: &Text, start: usize, found: &ByteDiagnostic) -> Diagnostic {
    Diagnostic {
        range: text.range(&(start + found.range.start..start + found.range.end)),
        severity: found.severity,
        code: found.code.clone(),
        message: found.message.clone(),
    }
}

impl<'t> LocatedDocument<'t> {
    /// Makes a document from a part of a text; takes the part's outline if it has already been made.
    fn new(text: &'t Text, read: &mut FilePart) -> Self {
        let own = &text.as_str()[read.part.range.clone()];
        let is_whole = own.len() == text.as_str().len();
        let lines = if is_whole { Cow::Borrowed(text) } else { Cow::Owned(Text::from(own)) };
        let outline = read.outline.take().unwrap_or_else(|| outline(own));
        LocatedDocument { text: own, lines, outline, found: Vec::new() }
    }

    fn tell(&mut self, range: ops::Range<usize>, severity: Severity, code: &str, message: impl Into<String>) {
        let found = ByteDiagnostic { range, severity, code: code.to_owned(), message: message.into() };
        if self.found.len() < FOUND_MAX && !self.found.contains(&found) {
            self.found.push(found);
        }
    }

    /// The bytes of what is at a position: a name, a value on its first line, or the rest of the line.
    fn range(&self, place: TextPosition) -> ops::Range<usize> {
        let start = self.lines.offset_of(place);
        let line = self.lines.line_of(start);
        let line_end = self.lines.line_start(line) + self.lines.line(line).len();
        let end = match self.outline.at(start).map(|node| &self.outline.nodes[node]) {
            Some(node) if node.key.contains(&start) => node.key.end,
            Some(node) if node.value.contains(&start) && node.form != ValueStyle::Block => node.value.end.min(line_end),
            _ => line_end,
        };
        start..end.max(start)
    }

    fn broken(&mut self, broken: &Broken) {
        // Templates only become YAML when they are rendered.
        if self.text.contains("{{") {
            return;
        }
        let line = broken.place.line.saturating_sub(1);
        // The parser may notice only at the end of the text that something is missing.
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

    /// Adds the server's errors and warnings about a manifest.
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

    /// Adds the findings of lints that are enabled.
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
    /// Whether the findings of a lint are reported.
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
