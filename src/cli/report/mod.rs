//! Results for manifests, in formats for people and programs.

mod annotated;
mod json;
mod junit;
mod text;

use clap::ValueEnum;

use super::annotate;
use super::documents::{self, ManifestDocument, ManifestText};
use super::text::SharedText;
use crate::author::{Checked, Rejected, RuleRun};
use crate::meta::field::{Error, ErrorType};
use crate::value::Value;
use crate::value::yaml::TextPosition;

pub use junit::{JunitCase, Suite, show as show_junit};

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum ReportFormat {
    Text,
    Json,
    Junit,
    Sarif,
    Github,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DocumentVerdict {
    Valid,
    Invalid,
    /// There is no definition of the kind.
    Unchecked,
    /// It can't be decoded.
    Unreadable,
}

/// The results for a document.
pub struct ReportedDocument {
    pub file: String,
    pub index: usize,
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
    pub verdict: DocumentVerdict,
    pub faults: Vec<ReportedError>,
    pub warnings: Vec<String>,
    pub object: Value,
    pub runs: Vec<RuleRun>,
    pub cost: u64,
    /// The chart template that the document was rendered from.
    pub template: Option<String>,
    /// The text around the faults.
    source: SharedText,
}

/// A fault and its place.
pub struct ReportedError {
    pub rejected: Rejected,
    pub place: Option<TextPosition>,
    /// Whether the text is only the detail, and not the form of a server's error.
    pub is_plain: bool,
}

impl ReportedError {
    /// The text of the fault, in one line.
    pub fn text(&self) -> String {
        if self.is_plain { self.rejected.error.detail.clone() } else { self.rejected.error.to_string() }
    }
}

impl ReportedDocument {
    /// A document without results yet.
    pub fn new(source: &ManifestText, document: &ManifestDocument) -> ReportedDocument {
        let text = |path: &[&str]| document.value.str_at(path).to_owned();
        ReportedDocument {
            index: document.index,
            api_version: text(&["apiVersion"]),
            kind: text(&["kind"]),
            name: text(&["metadata", "name"]),
            namespace: text(&["metadata", "namespace"]),
            ..ReportedDocument::blank(source)
        }
    }

    /// A document that can't be read.
    pub fn unreadable(source: &ManifestText, fault: &documents::DocumentError) -> ReportedDocument {
        let mut item = ReportedDocument {
            index: fault.index,
            verdict: DocumentVerdict::Unreadable,
            ..ReportedDocument::blank(source)
        };
        item.add(ErrorType::TypeInvalid, "", fault.message.clone(), fault.place);
        item
    }

    fn blank(source: &ManifestText) -> ReportedDocument {
        ReportedDocument {
            file: source.name.clone(),
            index: 0,
            api_version: String::new(),
            kind: String::new(),
            name: String::new(),
            namespace: String::new(),
            verdict: DocumentVerdict::Unchecked,
            faults: Vec::new(),
            warnings: Vec::new(),
            object: Value::Null,
            runs: Vec::new(),
            cost: 0,
            template: None,
            source: source.text.clone(),
        }
    }

    /// Adds a fault with a text of our own, in contrast to a server's error.
    pub fn add(&mut self, kind: ErrorType, field: &str, detail: String, place: Option<TextPosition>) {
        let error = Error::at(field, kind, detail);
        self.faults.push(ReportedError {
            rejected: Rejected { error, rule: None, parts: Vec::new() },
            place,
            is_plain: true,
        });
    }

    /// Whether there are no faults.
    pub fn is_fine(&self) -> bool {
        self.faults.is_empty()
    }

    /// Adds the denial by a policy.
    pub fn deny(&mut self, message: String, document: &ManifestDocument) {
        self.add(ErrorType::Forbidden, "", message, document.place(""));
        self.verdict = DocumentVerdict::Invalid;
        self.template = document.template().map(str::to_owned);
    }

    /// Adds the results of a check.
    pub fn take(&mut self, checked: Checked, document: &ManifestDocument) {
        self.cost = checked.cost();
        self.object = checked.object;
        self.warnings.extend(checked.warnings);
        self.warnings.extend(checked.ratcheted.iter().map(ToString::to_string));
        self.runs = checked.runs;
        for rejected in checked.errors {
            let place = document.error_place(&rejected.error.field);
            self.faults.push(ReportedError { rejected, place, is_plain: false });
        }
        self.verdict = if self.faults.is_empty() { DocumentVerdict::Valid } else { DocumentVerdict::Invalid };
        if !self.faults.is_empty() {
            self.template = document.template().map(str::to_owned);
        }
    }

    /// Formats `Kind namespace/name`.
    pub fn title(&self) -> String {
        let kind = if self.kind.is_empty() { "document" } else { &self.kind };
        match (self.namespace.as_str(), self.name.as_str()) {
            (_, "") => kind.to_owned(),
            ("", name) => format!("{kind} {name}"),
            (namespace, name) => format!("{kind} {namespace}/{name}"),
        }
    }
}

/// Formats items one by one.
trait Print {
    fn item(&mut self, out: &mut String, item: &ReportedDocument);

    /// Appends what follows the last item.
    fn end(&mut self, out: &mut String);
}

/// Prints items one by one, in a format.
pub struct Printer(Box<dyn Print>);

impl Printer {
    /// Creates a printer; `is_styled` only affects text, and is for terminals.
    pub fn new(format: ReportFormat, is_styled: bool) -> Self {
        Printer(match format {
            ReportFormat::Text => Box::new(text::TextReport::new(is_styled)),
            ReportFormat::Json => Box::new(json::Json::default()),
            ReportFormat::Junit => Box::new(junit::Junit::default()),
            ReportFormat::Sarif => Box::new(annotated::Annotated::new(|found| annotate::sarif(found, &[]))),
            ReportFormat::Github => Box::new(annotated::Annotated::new(annotate::github)),
        })
    }

    /// The output for these items that can be printed already.
    pub fn show(&mut self, items: &[ReportedDocument]) -> String {
        let mut out = String::new();
        items.iter().for_each(|item| self.0.item(&mut out, item));
        out
    }

    /// The remaining output.
    pub fn end(mut self) -> String {
        let mut out = String::new();
        self.0.end(&mut out);
        out
    }
}
