//! The errors of a text, document by document.
//!
//! In: a text, and what was found in it before. Out: diagnostics with their places. A document is checked again if its
//! text changed, or the definitions it depends on; a document that can't be read does not hide the others' diagnostics.
//! Only the changed schemas of a definition are compiled again ([`CheckCounts`] has their number).

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

/// How much a diagnostic weighs.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Severity {
    /// The server refuses it.
    Error,
    /// The server accepts it, but it does not do what it seems to.
    Warning,
    /// What is good to know.
    Information,
}

/// Something wrong, and where.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Diagnostic {
    /// Where it stands.
    pub range: TextRange,
    /// How much it weighs.
    pub severity: Severity,
    /// A word for programs: the id of a lint, or the reason of an error.
    pub code: String,
    /// What is wrong.
    pub message: String,
}

/// A diagnostic by the bytes of its document.
#[derive(Clone, Debug, PartialEq, Eq)]
struct ByteDiagnostic {
    range: ops::Range<usize>,
    severity: Severity,
    code: String,
    message: String,
}

/// What was found in the documents of a text, by what they and their surroundings were.
#[derive(Default)]
pub struct Checks {
    /// The documents by their hashes.
    known: HashMap<u64, CheckedDocument>,
    judged: definition::Judged,
    counts: CheckCounts,
}

/// A document, and what was found in it.
struct CheckedDocument {
    head: Head,
    sort: Sort,
    /// A hash of the definitions and policies that it was checked against.
    stamp: u64,
    found: Arc<Vec<ByteDiagnostic>>,
}

/// How much of a text was examined in its last check.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CheckCounts {
    /// Documents that were read.
    pub documents: usize,
    /// Definitions that are not as they were.
    pub definitions: usize,
    /// Schemas of definitions that were compiled.
    pub schemas: usize,
}

impl Checks {
    /// How much was looked at in the last check.
    pub fn counts(&self) -> CheckCounts {
        self.counts
    }

    /// The documents of a text; those that are known need no second look to be told apart.
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

/// A document that is being looked at, with where its parts stand.
pub(super) struct LocatedDocument<'t> {
    text: &'t str,
    lines: Cow<'t, Text>,
    outline: Outline,
    found: Vec<ByteDiagnostic>,
}

/// A manifest in a document: one of its own, or an item of a List.
struct Manifest<'d> {
    value: &'d Value,
    located: &'d Located,
    within: String,
}

impl Workspace {
    /// The errors of the text of a file that is open. Its definitions replace those that it had before.
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
        // Half of it would be worse than none.
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
        // What is not there any more is forgotten.
        (checks.known, checks.counts) = (known, counts);
        let shifted = |read: &FilePart| {
            let start = read.part.range.start;
            let found = checks.known.get(&read.part.hash).map(|known| Arc::clone(&known.found)).unwrap_or_default();
            found.iter().map(|found| told(text, start, found)).collect::<Vec<_>>()
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

impl Checks {
    /// Keeps definitions as they are now; those whose names are not there any more are forgotten.
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
    /// A part of a text; the outline of the part is taken, where it was made already.
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

    /// The bytes of what stands at a place: a name, a value on its first line, or the rest of the line.
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

    /// The server's verdict on a manifest.
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
