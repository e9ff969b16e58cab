//! What came of manifests, in the forms that people and programs read.

mod json;
mod junit;
mod sarif;
mod text;

use std::sync::Arc;

use clap::ValueEnum;

use super::documents::{Document, Source};
use crate::author::{Checked, Rejected, RuleRun};
use crate::meta::field::Error;
use crate::value::Value;
use crate::value::yaml::Place;

pub use junit::{Case, Suite, show as show_junit};

/// How to print.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Format {
    Text,
    Json,
    Junit,
    Sarif,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Valid,
    Invalid,
    /// Nothing here defines the kind.
    Unchecked,
}

/// What came of a document.
pub struct Item {
    pub file: String,
    pub index: usize,
    pub api_version: String,
    pub kind: String,
    pub name: String,
    pub namespace: String,
    pub verdict: Verdict,
    pub faults: Vec<Fault>,
    pub warnings: Vec<String>,
    pub object: Value,
    pub runs: Vec<RuleRun>,
    pub cost: u64,
    /// The template of a chart that it comes from.
    pub template: Option<String>,
    /// The text around the faults.
    source: Arc<str>,
}

/// What is wrong, and where.
pub struct Fault {
    pub rejected: Rejected,
    pub place: Option<Place>,
    /// Whether only a strict reader minds it.
    pub is_strict: bool,
}

impl Item {
    /// A document that nothing is known of yet.
    pub fn new(source: &Source, document: &Document) -> Item {
        let text = |path: &[&str]| document.value.str_at(path).to_owned();
        Item {
            file: source.name.clone(),
            index: document.index,
            api_version: text(&["apiVersion"]),
            kind: text(&["kind"]),
            name: text(&["metadata", "name"]),
            namespace: text(&["metadata", "namespace"]),
            verdict: Verdict::Unchecked,
            faults: Vec::new(),
            warnings: Vec::new(),
            object: document.value.clone(),
            runs: Vec::new(),
            cost: 0,
            template: None,
            source: source.text.clone(),
        }
    }

    /// Adds what a strict reader minds.
    pub fn add_strict(&mut self, error: Error, place: Option<Place>) {
        self.faults.push(Fault { rejected: Rejected { error, rule: None, parts: Vec::new() }, place, is_strict: true });
    }

    /// Adds the verdict.
    pub fn take(&mut self, checked: Checked, document: &Document) {
        self.cost = checked.cost();
        self.object = checked.object;
        self.warnings.extend(checked.warnings);
        self.warnings.extend(checked.ratcheted);
        self.runs = checked.runs;
        for rejected in checked.errors {
            let place = document.place(&rejected.error.field);
            self.faults.push(Fault { rejected, place, is_strict: false });
        }
        self.verdict = if self.faults.is_empty() { Verdict::Valid } else { Verdict::Invalid };
        if !self.faults.is_empty() {
            self.template = document.template().map(str::to_owned);
        }
    }

    /// `Kind namespace/name`.
    pub fn title(&self) -> String {
        let kind = if self.kind.is_empty() { "document" } else { &self.kind };
        match (self.namespace.as_str(), self.name.as_str()) {
            (_, "") => kind.to_owned(),
            ("", name) => format!("{kind} {name}"),
            (namespace, name) => format!("{kind} {namespace}/{name}"),
        }
    }
}

/// The items in `format`. `is_styled` is for terminals, and for text only.
pub fn show(items: &[Item], format: Format, is_styled: bool) -> String {
    match format {
        Format::Text => text::show(items, is_styled),
        Format::Json => json::show(items),
        Format::Junit => junit::show(&junit::suites(items)),
        Format::Sarif => sarif::show(items),
    }
}
