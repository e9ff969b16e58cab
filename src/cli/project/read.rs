//! Parses the text of `skiff.toml`.
//!
//! Input: a text. Output: the project, with its paths as they are written, or every fault with its place.
//! Unknown keys are faults.

use std::path::PathBuf;

use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::{Lints, Project};
use crate::author::lint::{LINTS, Severity};
use crate::meta::minor::Minor;
use crate::value::yaml::TextPosition;

/// A fault and its place.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SettingError {
    /// The line and the column.
    pub place: TextPosition,
    /// What is wrong.
    pub text: String,
}

/// The text, and the faults that were found.
struct SettingsReader<'t> {
    text: &'t str,
    faults: Vec<SettingError>,
}

/// Parses a project; its paths are as they are written.
///
/// # Errors
///
/// All faults, in the order of the text.
pub fn parse(text: &str) -> Result<Project, Vec<SettingError>> {
    let mut reader = SettingsReader { text, faults: Vec::new() };
    let mut project = Project::default();
    match DeTable::parse(text) {
        Ok(table) => reader.project(table.get_ref(), &mut project),
        Err(error) => {
            let at = error.span().map_or(text.len(), |span| span.start);
            reader.fault(at, error.message().trim().to_owned());
        }
    }
    reader.faults.sort_by_key(|fault| fault.place);
    if reader.faults.is_empty() { Ok(project) } else { Err(reader.faults) }
}

/// A key of the file.
pub struct SettingKey {
    /// The key as it is written.
    pub name: &'static str,
    /// The meaning of its value.
    pub about: &'static str,
    /// What follows the name of a new key; empty for a table.
    empty: &'static str,
}

impl SettingKey {
    const fn list(name: &'static str, about: &'static str) -> Self {
        SettingKey { name, about, empty: " = []" }
    }

    /// The key with an empty value.
    pub fn written(&self) -> String {
        if self.empty.is_empty() { format!("[{}]", self.name) } else { format!("{}{}", self.name, self.empty) }
    }
}

/// The keys of the file.
pub const KEYS: [SettingKey; 6] = [
    SettingKey::list("definitions", "Files, folders or patterns with definitions, as seen from this file."),
    SettingKey::list("suites", "Suites, or folders with suites."),
    SettingKey::list("policies", "Files or folders with policies, and what they look up."),
    SettingKey::list("objects", "Files, folders or patterns with objects."),
    SettingKey::list("kubernetes-versions", "The minors of Kubernetes that all of it is for: single ones and ranges."),
    SettingKey { name: "lint", about: "Which lints are reported.", empty: "" },
];
/// The keys of its table `lint`.
pub const LINT_KEYS: [SettingKey; 3] = [
    SettingKey { name: "severity", about: "The least that is reported: error, warning or advice.", empty: " = \"\"" },
    SettingKey::list("on", "Lints that are reported whatever their severity."),
    SettingKey::list("off", "Lints that are not reported."),
];

impl SettingsReader<'_> {
    fn project(&mut self, table: &DeTable<'_>, project: &mut Project) {
        for (key, value) in table.iter() {
            match key.get_ref().as_ref() {
                "definitions" => project.definitions = self.paths(key.get_ref(), value),
                "suites" => project.suites = self.paths(key.get_ref(), value),
                "policies" => project.policies = self.paths(key.get_ref(), value),
                "objects" => project.objects = self.paths(key.get_ref(), value),
                "kubernetes-versions" => project.minors = self.minors(key.get_ref(), value),
                "lint" => match value.get_ref() {
                    DeValue::Table(lints) => self.lints(lints, &mut project.lints),
                    _ => self.fault(value.span().start, "`lint` is a table".to_owned()),
                },
                unknown => self.unknown(key.span().start, unknown, "", &KEYS),
            }
        }
    }

    fn lints(&mut self, table: &DeTable<'_>, lints: &mut Lints) {
        for (key, value) in table.iter() {
            match key.get_ref().as_ref() {
                "severity" => lints.severity = self.severity(value),
                "on" => lints.on = self.ids("lint.on", value),
                "off" => lints.off = self.ids("lint.off", value),
                unknown => self.unknown(key.span().start, unknown, "lint.", &LINT_KEYS),
            }
        }
    }

    fn severity(&mut self, value: &Spanned<DeValue<'_>>) -> Option<Severity> {
        let named = value.get_ref().as_str();
        let found = Severity::ALL.into_iter().find(|severity| named == Some(severity.word()));
        if found.is_none() {
            let text = "`lint.severity` is \"error\", \"warning\" or \"advice\"".to_owned();
            self.fault(value.span().start, text);
        }
        found
    }

    fn paths(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Vec<PathBuf> {
        let found = self.texts(key, value);
        for (path, at) in &found {
            if path.is_empty() {
                self.fault(*at, format!("a path of `{key}` is empty"));
            }
        }
        found.into_iter().map(|(path, _)| path.into()).collect()
    }

    fn minors(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Vec<Minor> {
        let mut minors = Vec::new();
        for (text, at) in self.texts(key, value) {
            match Minor::parse_list(&text) {
                Ok(found) => minors.extend(found),
                Err(fault) => self.fault(at, format!("`{key}`: {fault}")),
            }
        }
        minors.sort_unstable();
        minors.dedup();
        minors
    }

    fn ids(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Vec<String> {
        let found = self.texts(key, value);
        for (id, at) in &found {
            if !LINTS.iter().any(|lint| lint.id == id) {
                let near = nearest(id, LINTS.iter().map(|lint| lint.id));
                self.fault(*at, format!("no lint is called `{id}`{near}"));
            }
        }
        found.into_iter().map(|(id, _)| id).collect()
    }

    /// The texts of a list, each with its byte offset.
    fn texts(&mut self, key: &str, value: &Spanned<DeValue<'_>>) -> Vec<(String, usize)> {
        let DeValue::Array(items) = value.get_ref() else {
            self.fault(value.span().start, format!("`{key}` is a list of texts"));
            return Vec::new();
        };
        self.texts_of(key, items)
    }

    fn texts_of(&mut self, key: &str, items: &DeArray<'_>) -> Vec<(String, usize)> {
        let mut texts = Vec::new();
        for item in items.iter() {
            match item.get_ref().as_str() {
                Some(text) => texts.push((text.to_owned(), item.span().start)),
                None => self.fault(item.span().start, format!("`{key}` is a list of texts")),
            }
        }
        texts
    }

    fn unknown(&mut self, at: usize, key: &str, table: &str, known: &[SettingKey]) {
        let known: Vec<&'static str> = known.iter().map(|known| known.name).collect();
        let near = nearest(key, known.iter().copied());
        self.fault(at, format!("unknown key `{table}{key}`{near}; known are {}", known.join(", ")));
    }

    fn fault(&mut self, at: usize, text: String) {
        let before = self.text.get(..at).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |end| end + 1);
        let place =
            TextPosition { line: before.matches('\n').count() + 1, column: before[line_start..].chars().count() + 1 };
        self.faults.push(SettingError { place, text });
    }
}

/// A hint to the most similar known word, if there is one.
fn nearest(written: &str, known: impl Iterator<Item = &'static str>) -> String {
    const LIKENESS_MIN: f64 = 0.8;
    let likeness = |word: &str| strsim::jaro_winkler(written, word);
    let best = known.max_by(|one, other| likeness(one).total_cmp(&likeness(other)));
    best.filter(|word| likeness(word) >= LIKENESS_MIN)
        .map_or(String::new(), |word| format!(" (did you mean `{word}`?)"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_project_names_folders_and_lints() {
        let text = "definitions = [\"crds\"]\nobjects = ['a', \"b/*.yaml\"]\nkubernetes-versions = [\"1.33-1.34\", \"1.31\"]\n[lint]\nseverity = \"advice\"\noff = [\"boolean\"]\n";
        let project = parse(text).expect("the test is a project");
        assert_eq!(project.definitions, [PathBuf::from("crds")]);
        assert_eq!(project.objects, [PathBuf::from("a"), PathBuf::from("b/*.yaml")]);
        assert_eq!(project.minors, [31, 33, 34].map(Minor::of));
        assert_eq!(project.lints.severity, Some(Severity::Advice));
        assert_eq!(project.lints.off, ["boolean"]);
        assert_eq!(parse(""), Ok(Project::default()));
    }

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let faults = parse(text).expect_err("a mistake");
        let told = |SettingError { place, text }: &SettingError| format!("{}:{}: {text}", place.line, place.column);
        assert_eq!(faults.iter().map(told).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn each_mistake_is_told_with_its_place() {
        check(
            "definition = []\nsuites = 'a'\n[lint]\non = [\"conditons\", 1]\nseverity = 'all'\nof = []\n",
            &[
                "1:1: unknown key `definition` (did you mean `definitions`?); known are definitions, suites, policies, objects, kubernetes-versions, lint",
                "2:10: `suites` is a list of texts",
                "4:7: no lint is called `conditons` (did you mean `conditions`?)",
                "4:20: `lint.on` is a list of texts",
                "5:12: `lint.severity` is \"error\", \"warning\" or \"advice\"",
                "6:1: unknown key `lint.of` (did you mean `off`?); known are severity, on, off",
            ],
        );
        check(
            "kubernetes-versions = ['1.31', '1.38', '1.34-1.32', 1.33]\n",
            &[
                "1:32: `kubernetes-versions`: `1.38` is not a minor version of Kubernetes from 1.29 to 1.37",
                "1:40: `kubernetes-versions`: `1.34-1.32` ends before it begins",
                "1:53: `kubernetes-versions` is a list of texts",
            ],
        );
        check("lint = 3\nobjects = ['']\n", &["1:8: `lint` is a table", "2:12: a path of `objects` is empty"]);
    }

    #[test]
    fn what_is_not_toml_is_told_where_it_ends() {
        let faults = parse("a = \"ä\nb").expect_err("a mistake");
        assert_eq!((faults[0].place.line, faults[0].text.as_str()), (2, "key with no value, expected `=`"));
    }
}
