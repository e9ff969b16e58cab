//! Completion and hover in a `skiff.toml`.
//!
//! Input: the text as it is edited, and a position in it. Output: the keys of the table at the position,
//! or the values of the key before it; for a hover, the meaning of the word there. The text is read
//! line by line, as it may not be valid TOML yet.

use std::ops::Range;

use super::super::project::{KEYS, LINT_KEYS, SettingKey};
use crate::author::editor::complete::{CompletionItem, Sign};
use crate::author::editor::hover::Hover;
use crate::author::editor::{Edit, Text};
use crate::author::lint::{LINTS, Lint, Severity};
use crate::meta::minor::Minor;

/// A position in the file.
struct SettingPosition<'t> {
    /// The name of the table; empty at the root.
    table: &'t str,
    /// The key whose value the position is in; `None` where a key may be written.
    key: Option<&'t str>,
    /// The part of the word before the position, without a quote.
    word: Range<usize>,
    is_quoted: bool,
}

/// The completions at a byte offset.
pub fn complete(text: &Text, at: usize) -> Vec<CompletionItem> {
    let Some(place) = SettingPosition::of(text, at) else { return Vec::new() };
    let offer = |label: &str, sign: Sign, about: String, written: String| CompletionItem {
        label: label.to_owned(),
        sign,
        detail: String::new(),
        documentation: about,
        is_required: false,
        edit: Edit { range: text.range(&place.word), text: written },
    };
    let value = |label: &str, about: String| {
        let written = if place.is_quoted { label.to_owned() } else { format!("\"{label}\"") };
        offer(label, Sign::Value, about, written)
    };
    match (place.table, place.key) {
        (table, None) => {
            let keys = keys_of(table).iter();
            keys.map(|key| offer(key.name, Sign::Field, key.about.to_owned(), key.written())).collect()
        }
        ("lint", Some("on" | "off")) => LINTS.iter().map(|lint| value(lint.id, about(lint))).collect(),
        ("lint", Some("severity")) => Severity::ALL.map(|severity| value(severity.word(), String::new())).into(),
        ("", Some("kubernetes-versions")) => {
            Minor::all().rev().map(|minor| value(&minor.to_string(), String::new())).collect()
        }
        _ => Vec::new(),
    }
}

/// The meaning of the key or the lint at a byte offset.
pub fn hover(text: &Text, at: usize) -> Option<Hover> {
    let line = text.line_of(at);
    let (start, written) = (text.line_start(line), text.line(line));
    let before = written.get(..at - start)?;
    let begin = word_begin(before);
    let length = written[begin..].find(|sign| !is_of_word(sign)).unwrap_or(written.len() - begin);
    let word = &written[begin..begin + length];
    let meaning = |key: &SettingKey| format!("`{}`: {}", key.name, key.about);
    let is_key = written[begin + length..].trim_start().starts_with('=') && written[..begin].trim().is_empty();
    let is_table = written.trim_start().starts_with('[') && !before.contains(['"', '\'']);
    let told = if is_key || is_table {
        let table = if is_table { "" } else { table_at(text, line) };
        keys_of(table).iter().find(|key| key.name == word).map(meaning)
    } else {
        LINTS.iter().find(|lint| lint.id == word).map(|lint| about(lint))
    };
    told.map(|told| Hover { text: told, range: text.range(&(start + begin..start + begin + length)) })
}

fn about(lint: &Lint) -> String {
    format!("{} ({})", lint.finds, lint.severity.word())
}

fn keys_of(table: &str) -> &'static [SettingKey] {
    match table {
        "" => &KEYS,
        "lint" => &LINT_KEYS,
        _ => &[],
    }
}

impl<'t> SettingPosition<'t> {
    /// `None` in a comment, and in the header of a table.
    fn of(text: &'t Text, at: usize) -> Option<Self> {
        let line = text.line_of(at);
        let start = text.line_start(line);
        let before = text.line(line).get(..at - start)?;
        let quotes = before.matches(['"', '\'']).count();
        let is_quoted = quotes % 2 == 1;
        if (before.contains('#') && !is_quoted) || is_header(before) {
            return None;
        }
        let begin = word_begin(before);
        let key = key_at(text, line, before);
        Some(SettingPosition { table: table_at(text, line), key, word: start + begin..at, is_quoted })
    }
}

/// The key that a position belongs to: the one of its line, or of a line above whose list is still
/// open.
fn key_at<'t>(text: &'t Text, line: usize, before: &'t str) -> Option<&'t str> {
    if let Some((key, _)) = before.split_once('=') {
        return Some(key.trim());
    }
    let above = (0..line).rev().map(|line| text.line(line));
    let (key, value) = above.take_while(|line| !is_header(line)).find_map(|line| line.split_once('='))?;
    let written = &text.as_str()[offset_in(text, value)..text.line_start(line) + before.len()];
    (written.matches('[').count() > written.matches(']').count()).then_some(key.trim())
}

/// The byte offset of a part of the text.
fn offset_in(text: &Text, part: &str) -> usize {
    part.as_ptr().addr() - text.as_str().as_ptr().addr()
}

/// The table that a line belongs to; empty at the root.
fn table_at(text: &Text, line: usize) -> &str {
    let headers = (0..line).rev().map(|line| text.line(line)).filter(|line| is_header(line));
    headers.map(|line| line.trim().trim_matches(['[', ']'])).next().unwrap_or_default()
}

/// Whether a line is a table header such as `[lint]`. A line may also begin with a list's item, but
/// these are quoted.
fn is_header(line: &str) -> bool {
    line.trim_start().strip_prefix('[').is_some_and(|rest| !rest.contains(['"', '\'', '=']))
}

/// The start of the word at the end of a text.
fn word_begin(before: &str) -> usize {
    before.trim_end_matches(is_of_word).len()
}

fn is_of_word(sign: char) -> bool {
    sign.is_ascii_alphanumeric() || matches!(sign, '-' | '.' | '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The text without `|`, and the offset where it was.
    fn cursor(text: &str) -> (Text, usize) {
        (Text::from(text.replace('|', "")), text.find('|').expect("the test has a cursor"))
    }

    #[track_caller]
    fn check(text: &str, first: &str, written: &str) {
        let (text, at) = cursor(text);
        let offered = complete(&text, at);
        let found = offered.first().map(|offered| (offered.label.as_str(), offered.edit.text.as_str()));
        assert_eq!(found, (!first.is_empty()).then_some((first, written)));
    }

    #[test]
    fn keys_and_values_are_offered() {
        check("|", "definitions", "definitions = []");
        check("definitions = [\"a\"]\nsu|", "definitions", "definitions = []");
        check("[lint]\n|", "severity", "severity = \"\"");
        check("[lint]\nseverity = |", "error", "\"error\"");
        check("[lint]\nseverity = \"w|\"", "error", "error");
        check("[lint]\noff = [\"a\", \"|\"]", LINTS[0].id, LINTS[0].id);
        check("[lint]\noff = [\n  |", LINTS[0].id, &format!("\"{}\"", LINTS[0].id));
        check("[lint]\noff = [\n  \"a\",\n]\n|", "severity", "severity = \"\"");
        check("kubernetes-versions = ['|']", "1.37", "1.37");
        check("definitions = [\"|\"]", "", "");
        check("# |", "", "");
        check("[|", "", "");
        check("[other]\n|", "", "");
    }

    #[test]
    fn what_is_written_takes_the_place_of_the_word_before() {
        let (text, at) = cursor("[lint]\non = [\"enum-|\"]");
        let range = complete(&text, at).remove(0).edit.range;
        assert_eq!((range.start.character, range.end.character), (7, 12));
        let (text, at) = cursor("[lint]\non = [\"éa|\"]");
        let range = complete(&text, at).remove(0).edit.range;
        assert_eq!((range.start.character, range.end.character), (8, 9));
    }

    #[test]
    fn keys_and_lints_are_explained() {
        let check = |text: &str, expected: Option<&str>| {
            let (text, at) = cursor(text);
            let told = hover(&text, at).map(|told| told.text);
            let is_it =
                expected.map_or(told.is_none(), |begin| told.as_ref().is_some_and(|told| told.starts_with(begin)));
            assert!(is_it, "{told:?}");
        };
        check("defin|itions = []", Some("`definitions`: Files"));
        check("[li|nt]", Some("`lint`: "));
        check("[lint]\no|n = []", Some("`on`: "));
        check("o|n = []", None);
        check(
            "[lint]\non = [\"enum-camel|-case\"]",
            Some(LINTS.iter().find(|lint| lint.id == "enum-camel-case").map_or("?", |lint| lint.finds)),
        );
        check("definitions = [\"cr|ds\"]", None);
        check("# é|", None);
        check("# é|é", None);
        check("[lint]\non = [\"é\", \"é|enum\"]", None);
        check("|", None);
    }
}
