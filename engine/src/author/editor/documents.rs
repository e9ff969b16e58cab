//! The documents of a text.
//!
//! Input: a text. Output: its parts, separated by lines that begin with `---`, each with its range. Each part is parsed
//! separately: an edit in one does not affect the others.

use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::ops::Range;

use super::outline::{Outline, outline};
use crate::author::policies::is_policy;
use crate::meta::api_version::group_of;
use crate::value::Value;
use crate::work;

/// One document of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TextPart {
    /// Its range in bytes.
    pub range: Range<usize>,
    /// The hash of its text.
    pub hash: u64,
}

/// The sort of a document, by its name and its head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sort {
    /// A CustomResourceDefinition.
    Definition,
    /// An admission policy or a binding.
    Policy,
    /// An object of some kind.
    Object,
    /// A suite of tests.
    Suite,
    /// A request: the user and the other fields of a suite's case apart from its objects.
    Request,
    /// Anything else.
    Other,
}

/// The name of a text that is a request. No file has this name: the names of files are complete paths.
pub const REQUEST: &str = "request";

/// The API version, kind and name of a document.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Head {
    /// `GROUP/VERSION`.
    pub api_version: String,
    /// The kind.
    pub kind: String,
    /// `metadata.name`.
    pub name: String,
}

/// Splits a text into its parts; there is at least one.
pub fn parts(text: &str) -> Vec<TextPart> {
    let mut parts = Vec::new();
    let (mut start, mut at) = (0, 0);
    // Directives belong to the document that follows them.
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

/// The hash of a text, stable within this process.
pub fn hash_of(text: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    hasher.finish()
}

/// The part that contains a byte.
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
    /// Reads the head of a document, valid or not.
    pub fn of(text: &str, outline: &Outline) -> Head {
        let at = |names: &[&str]| outline.scalar_at(text, names).to_owned();
        Head { api_version: at(&["apiVersion"]), kind: at(&["kind"]), name: at(&["metadata", "name"]) }
    }

    /// Reads the head of a text.
    pub fn of_text(text: &str) -> Head {
        Head::of(text, &outline(text))
    }

    /// The group; empty for the core group.
    pub fn group(&self) -> &str {
        group_of(&self.api_version)
    }

    /// The sort of such a document in the file called `file`.
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
