//! A reference of kinds, to be read: fields, constraints, defaults, rules in words, and examples.
//!
//! Input: kinds, and objects that their authors hold to be valid. Output: Markdown or HTML, as one page or a page a kind. The same
//! input gives the same bytes, so that a page can be checked in. Everything that comes from a definition is a text: of descriptions
//! paragraphs, lists and code are told apart, nothing else is markup, and no page refers to anything outside.

mod html;
mod markdown;

use std::collections::BTreeMap;

use super::DefinedKind;
use super::explain::{Explained, ExplainedRule, explain_node, requires};
use super::prose::quoted;
use crate::crd::ServedVersion;
use crate::schema::structural::{Structural, StructuralOrBool};
use crate::value::{Value, yaml};

/// How pages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageFormat {
    /// Markdown as GitHub reads it.
    Markdown,
    /// Pages without scripts, light or dark as the reader's system is.
    Html,
}

/// A page by the name of its file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page {
    /// `boats.harbour.example.com.md`.
    pub name: String,
    /// What stands in it.
    pub text: String,
}

/// An object that shows a kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Example {
    /// What it is called.
    pub name: String,
    /// The object.
    pub object: Value,
}

/// Examples of a version that are shown.
const EXAMPLES_MAX: usize = 3;

/// Words of a rule that has a message; longer ones are harder to read than the rule.
const WORDS_LENGTH_MAX: usize = 200;

/// A kind in a version.
struct Section<'k> {
    kind: &'k DefinedKind,
    version: &'k ServedVersion,
    fields: Vec<ReferenceField>,
    examples: Vec<(String, String)>,
}

/// A field, with the way to it.
struct ReferenceField {
    /// `spec.ports[].name`; empty for the whole object.
    path: String,
    anchor: String,
    explained: Explained,
}

/// Every kind on a page of its own, and the page that lists them.
pub fn pages(kinds: &[&DefinedKind], examples: &[Example], form: PageFormat) -> Vec<Page> {
    let extension = form.extension();
    let named: BTreeMap<String, Vec<Section<'_>>> =
        kinds.iter().map(|kind| (file_of(kind), sections(kind, examples))).collect();
    let list: Vec<(String, &[Section<'_>])> =
        named.iter().map(|(name, sections)| (format!("{name}.{extension}"), sections.as_slice())).collect();
    let index = match form {
        PageFormat::Markdown => markdown::index(&list),
        PageFormat::Html => html::index(&list),
    };
    let mut pages = vec![Page { name: format!("index.{extension}"), text: index }];
    pages.extend(list.iter().map(|(name, sections)| Page { name: name.clone(), text: page(sections, form) }));
    pages
}

/// All kinds on one page.
pub fn page_of_all(kinds: &[&DefinedKind], examples: &[Example], form: PageFormat) -> String {
    let named: BTreeMap<String, &&DefinedKind> = kinds.iter().map(|kind| (file_of(kind), kind)).collect();
    let all: Vec<Section<'_>> = named.into_values().flat_map(|kind| sections(kind, examples)).collect();
    page(&all, form)
}

fn page(sections: &[Section<'_>], form: PageFormat) -> String {
    match form {
        PageFormat::Markdown => markdown::page(sections),
        PageFormat::Html => html::page(sections),
    }
}

impl PageFormat {
    /// What the names of files end with.
    pub fn extension(self) -> &'static str {
        match self {
            PageFormat::Markdown => "md",
            PageFormat::Html => "html",
        }
    }
}

/// What the file of a kind is called, without its end: its name, of which nothing leads elsewhere.
fn file_of(kind: &DefinedKind) -> String {
    let spec = &kind.definition.spec;
    anchor(&format!("{}.{}", spec.names.plural, spec.group))
}

/// A rule in words, unless its message says more in fewer.
fn words(rule: &ExplainedRule) -> Option<&str> {
    rule.words.as_deref().filter(|words| rule.message.is_none() || words.len() <= WORDS_LENGTH_MAX)
}

/// What a page is called: as its kind, if it has one alone.
fn title(sections: &[Section<'_>]) -> String {
    let mut kinds = sections.iter().map(|section| section.version.names.kind.as_str());
    match kinds.next() {
        Some(first) if kinds.all(|kind| kind == first) => first.to_owned(),
        _ => "Reference".to_owned(),
    }
}

fn sections<'k>(kind: &'k DefinedKind, examples: &[Example]) -> Vec<Section<'k>> {
    let served = kind.versions.iter().filter(|version| version.served);
    let section = |version: &'k ServedVersion| {
        let own = |example: &&Example| {
            example.object.str_at(&["apiVersion"]) == version.api_version()
                && example.object.str_at(&["kind"]) == version.names.kind
        };
        let shown = |example: &Example| (example.name.clone(), yaml::encode(&example.object));
        Section {
            kind,
            version,
            fields: fields(version),
            examples: examples.iter().filter(own).take(EXAMPLES_MAX).map(shown).collect(),
        }
    };
    served.map(|version| section(version)).collect()
}

/// The fields of a version, each behind what it stands in.
fn fields(version: &ServedVersion) -> Vec<ReferenceField> {
    let prefix = anchor_of(version);
    let mut found = Vec::new();
    add(&mut found, &prefix, "", &version.structural, false);
    found
}

fn add(found: &mut Vec<ReferenceField>, prefix: &str, path: &str, node: &Structural, is_required: bool) {
    crate::work::step();
    let explained = Explained { is_required, ..explain_node(node) };
    found.push(ReferenceField { path: path.to_owned(), anchor: format!("{prefix}_{}", anchor(path)), explained });
    let (holder, path) = within(node, path.to_owned());
    for (name, below) in holder.properties.iter() {
        let is_standard = path.is_empty() && ["apiVersion", "kind", "metadata"].contains(&name);
        if !is_standard {
            let join = if path.is_empty() { "" } else { "." };
            add(found, prefix, &format!("{path}{join}{name}"), below, requires(holder, name));
        }
    }
}

/// What a list or map holds, with the way there.
fn within(node: &Structural, path: String) -> (&Structural, String) {
    let values = node.additional_properties.as_ref().and_then(StructuralOrBool::structural);
    match (node.items.as_deref(), values) {
        (Some(items), _) if node.properties.is_empty() => within(items, format!("{path}[]")),
        (None, Some(values)) if node.properties.is_empty() => within(values, format!("{path}{{}}")),
        _ => (node, path),
    }
}

/// The place of a version: no name before a field has a `_`, so no two places are the same.
fn anchor_of(version: &ServedVersion) -> String {
    anchor(&format!("{}.{}_{}", version.names.plural, version.group, version.version))
}

/// The place of something on its page: letters, digits and `.-_`, and any other byte as `~XX`, so that no two are the same.
fn anchor(text: &str) -> String {
    let mut out = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'.' | b'-' | b'_' => out.push(char::from(byte)),
            byte => out.push_str(&format!("~{byte:02x}")),
        }
    }
    out
}

impl Section<'_> {
    /// `Boat harbour.example.com/v1`.
    fn title(&self) -> String {
        format!("{} {}", self.version.names.kind, self.version.api_version())
    }

    fn anchor(&self) -> String {
        anchor_of(self.version)
    }

    /// What is to be known of the kind as a whole, each with what it is, a sentence.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let names = &self.version.names;
        let scope = if self.version.is_namespaced() { "Namespaced" } else { "Cluster" };
        let mut facts = vec![("Plural", quoted(&names.plural)), ("Scope", quoted(scope))];
        let short_names: Vec<String> = names.short_names.iter().map(|name| quoted(name)).collect();
        if !short_names.is_empty() {
            facts.push(("Short names", short_names.join(", ")));
        }
        if self.version.storage && self.kind.versions.len() > 1 {
            facts.push(("Stored", "in this version".to_owned()));
        }
        if let Some(warning) = &self.version.deprecation_warning {
            facts.push(("Deprecated", warning.clone()));
        }
        facts
    }
}
