//! The documents of a text.
//!
//! In: a text. Out: its parts that begin with a line `---`, each with where it begins. A part is read by itself: an edit in
//! one changes nothing of the others.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use super::outline::{Outline, outline};
use crate::author::policies::is_policy;
use crate::meta::api_version::group_of;
use crate::value::Value;
use crate::work;

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPart {
    /// Its bytes.
    pub range: Range<usize>,
    /// What its text comes to: the same for the same text.
    pub hash: u64,
}

/// What a document is, by what its first fields say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A CustomResourceDefinition.
    Definition,
    /// A policy of admission, or a binding.
    Policy,
    /// An object of some kind.
    Object,
    /// A suite of tests.
    Suite,
    /// Who asks, and for what: what a case of a suite says beside its objects.
    Request,
    /// Anything else.
    Other,
}

/// The name of a text that is a request. No file is called so: the names of files are whole paths.
pub const REQUEST: &str = "request";

/// The group, version and kind that a document names.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Head {
    /// `GROUP/VERSION`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// `metadata.name`.
    pub name: String,
}

/// The parts of a text; there is at least one.
pub fn parts(text: &str) -> Vec<TextPart> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    // Directives belong to what follows them.
    let mut has_directive = false;
    for line in text.split_inclusive('\n') {
        work::bytes(line.len());
        let is_mark =
            line.strip_prefix("---").is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\n', '\r', '\t']));
        if is_mark && at > start && !has_directive {
            parts.push(part(text, start..at));
            start = at;
        }
        has_directive = line.starts_with('%') || (has_directive && !is_mark);
        at += line.len();
    }
    parts.push(part(text, start..text.len()));
    parts
}

fn part(text: &str, range: Range<usize>) -> TextPart {
    TextPart { hash: hash_of(&text[range.clone()]), range }
}

/// What a text comes to: the same for the same text, in this process.
pub fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The part that a byte is in.
pub fn part_at(text: &str, offset: usize) -> TextPart {
    let mut found = parts(text);
    let at = found.iter().rposition(|part| part.range.start <= offset).unwrap_or_default();
    found.swap_remove(at)
}

/// Whether a file of this name is a suite of tests.
pub fn is_suite(name: &str) -> bool {
    let file = name.rsplit(['/', '\\']).next().unwrap_or(name);
    ["suite.yaml", "suite.yml"].iter().any(|end| file == *end || file.ends_with(&format!(".{end}")))
}

impl Head {
    /// What a document names, valid or not.
    pub fn of(text: &str, outline: &Outline) -> Head {
        let at = |names: &[&str]| outline.scalar_at(text, names).to_owned();
        Head { api_version: at(&["apiVersion"]), kind: at(&["kind"]), name: at(&["metadata", "name"]) }
    }

    /// The same of a text alone.
    pub fn of_text(text: &str) -> Head {
        Head::of(text, &outline(text))
    }

    /// The group; empty for the core group.
    pub fn group(&self) -> &str {
        group_of(&self.api_version)
    }

    /// What such a document is; `file` names the file it stands in.
    pub fn sort(&self, file: &str) -> Sort {
        if is_suite(file) {
            return Sort::Suite;
        }
        if file == REQUEST {
            return Sort::Request;
        }
        if self.kind.is_empty() && self.api_version.is_empty() && self.name.is_empty() {
            return Sort::Other;
        }
        if self.group() == "apiextensions.k8s.io" && self.kind == "CustomResourceDefinition" {
            return Sort::Definition;
        }
        let manifest = crate::object! { "apiVersion" => self.api_version.as_str(), "kind" => self.kind.as_str() };
        if is_policy(&manifest) { Sort::Policy } else { Sort::Object }
    }
}

impl From<&Value> for Head {
    fn from(value: &Value) -> Head {
        let at = |names: &[&str]| value.str_at(names).to_owned();
        Head { api_version: at(&["apiVersion"]), kind: at(&["kind"]), name: at(&["metadata", "name"]) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_begin_with_a_mark() {
        let text = "a: 1\n---\nb: |\n  ---\n--- # c\n%YAML 1.1\n---\nd: 1";
        let found: Vec<&str> = parts(text).iter().map(|part| &text[part.range.clone()]).collect();
        assert_eq!(found, ["a: 1\n", "---\nb: |\n  ---\n", "--- # c\n%YAML 1.1\n---\nd: 1"]);
        assert_eq!(part_at(text, 5).range.start, 5);
        assert_eq!(parts("").len(), 1);
    }

    #[test]
    fn documents_are_told_apart_by_what_they_say() {
        let check = |text: &str, file: &str, expected| assert_eq!(Head::of_text(text).sort(file), expected);
        check(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nspec: {a\n",
            "a.yaml",
            Sort::Definition,
        );
        check(
            "kind: \"ValidatingAdmissionPolicy\"\napiVersion: admissionregistration.k8s.io/v1\n",
            "a.yaml",
            Sort::Policy,
        );
        check("apiVersion: v1\n", "a.yaml", Sort::Object);
        check("a: 1", "x/boats.suite.yaml", Sort::Suite);
        check("a: 1", "x/mysuite.yaml", Sort::Other);
        check("metadata: {name: a}\nspec: {}\n", "a.yaml", Sort::Object);
    }
}
