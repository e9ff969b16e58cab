//! The strict decoding errors of a typed kind, in the order of the text.
//!
//! Input: the text, and the findings of decoding it, which are unordered. Output: Go's strict errors, in the order of
//! its decoder.
//!
//! Source: `sigs.k8s.io/json`; answers recorded from apiextensions-apiserver 1.37.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use std::ops::Range;

use crate::meta::unmarshal::UnmarshalError;
use crate::types::decoder::{FieldDecodeError, Findings};
use crate::value::json::{self, RepeatedField};
use crate::value::{Value, go_quote};
use crate::work;

/// The most strict errors that are reported.
const ERRORS_MAX: usize = 100;

/// Gives `unknown field "spec.x"` for the fields of `findings`, and `duplicate field "spec.y"` for `duplicates`, in the
/// order of `text`, which is well-formed JSON.
///
/// Fields given twice don't count where Go does not look: inside unknown fields and inside values that it keeps raw.
pub fn in_document_order(text: &[u8], duplicates: Vec<RepeatedField>, findings: &Findings) -> Vec<String> {
    let mut wanted: BTreeMap<String, StrictFinding> = BTreeMap::new();
    for path in &findings.unknown {
        wanted.entry(path.clone()).or_default().unknown = true;
    }
    let unknown: BTreeSet<&str> = findings.unknown.iter().map(String::as_str).collect();
    let opaque: BTreeSet<&str> = findings.opaque.iter().map(String::as_str).collect();
    for RepeatedField { path } in duplicates {
        let is_hidden = unknown.contains(path.as_str()) || is_within(&path, &unknown) || is_within(&path, &opaque);
        if !is_hidden {
            wanted.entry(path).or_default().duplicate = true;
        }
    }
    if wanted.is_empty() {
        return Vec::new();
    }
    let mut walk = StrictWalk { wanted, ..StrictWalk::of(text) };
    walk.value();
    walk.errors.truncate(ERRORS_MAX);
    walk.errors
}

/// The error that Go reports of `faults`: the first in `text` that makes it stop reading, else the first of all. A
/// number is quoted as `text` writes it.
pub fn first_in_document_order(text: &[u8], faults: Vec<FieldDecodeError>) -> Option<UnmarshalError> {
    let mut wanted: BTreeMap<String, StrictFinding> = BTreeMap::new();
    for fault in &faults {
        wanted.entry(fault.path.clone()).or_default().unknown = true;
        // Metadata is decoded separately: its faults are reported at `metadata`, and name the field.
        wanted.entry(fault.error.fields().to_owned()).or_default();
    }
    let mut walk = StrictWalk { wanted, ..StrictWalk::of(text) };
    walk.value();
    let told = walk.errors.iter().enumerate();
    let ranks: BTreeMap<&str, usize> = told.map(|(rank, error)| (error.as_str(), rank)).collect();
    let rank = |fault: &FieldDecodeError| {
        let rank = ranks.get(unknown_field(&fault.path).as_str()).copied();
        (!fault.stops, rank.unwrap_or(usize::MAX))
    };
    let FieldDecodeError { path, error, .. } = faults.into_iter().min_by_key(rank)?;
    let number = walk.numbers.get(&path).or_else(|| walk.numbers.get(error.fields()));
    Some(match number.and_then(|number| std::str::from_utf8(&text[number.clone()]).ok()) {
        Some(number) => error.of_number(number),
        None => error,
    })
}

fn unknown_field(path: &str) -> String {
    format!("unknown field {}", go_quote(path))
}

/// What to report of a path.
#[derive(Default)]
struct StrictFinding {
    unknown: bool,
    duplicate: bool,
    is_seen: bool,
}

/// Whether `path` lies below one of `outer`.
fn is_within(path: &str, outer: &BTreeSet<&str>) -> bool {
    work::bytes(path.len());
    path.match_indices(['.', '[']).any(|(at, _)| outer.contains(&path[..at]))
}

/// Walks a well-formed text; in any other, the walk ends early, which only loses errors.
struct StrictWalk<'t> {
    text: &'t [u8],
    at: usize,
    path: String,
    wanted: BTreeMap<String, StrictFinding>,
    errors: Vec<String>,
    /// The positions of the numbers that may be quoted.
    numbers: BTreeMap<String, Range<usize>>,
}

impl<'t> StrictWalk<'t> {
    fn of(text: &'t [u8]) -> Self {
        let (path, wanted, errors, numbers) = Default::default();
        StrictWalk { text, at: 0, path, wanted, errors, numbers }
    }

    fn value(&mut self) {
        match self.next() {
            Some(b'{') => self.object(),
            Some(b'[') => self.array(),
            Some(b'"') => self.skip_string(),
            first => {
                let rest = self.text.get(self.at..).unwrap_or_default();
                let ends = |byte: &u8| matches!(byte, b',' | b']' | b'}') || byte.is_ascii_whitespace();
                let length = rest.iter().position(ends).unwrap_or(rest.len());
                let is_number = first.is_some_and(|first| first == b'-' || first.is_ascii_digit());
                if is_number && self.wanted.contains_key(&self.path) {
                    self.numbers.insert(self.path.clone(), self.at..self.at + length);
                }
                self.at += length;
            }
        }
    }

    fn object(&mut self) {
        let length = self.path.len();
        self.at += 1;
        while self.next() == Some(b'"') {
            let start = self.at;
            self.skip_string();
            if let Ok(Value::String(name)) = json::decode(&self.text[start..self.at]) {
                if !self.path.is_empty() {
                    self.path.push('.');
                }
                self.path.push_str(&name);
            }
            self.meet();
            if self.next() == Some(b':') {
                self.at += 1;
            }
            self.value();
            self.path.truncate(length);
            if self.next() == Some(b',') {
                self.at += 1;
            }
        }
        self.at += 1;
    }

    fn array(&mut self) {
        let length = self.path.len();
        self.at += 1;
        let mut index = 0;
        while self.next().is_some_and(|byte| byte != b']') {
            // Writing to a String can't fail.
            let _ = write!(self.path, "[{index}]");
            self.meet();
            self.value();
            self.path.truncate(length);
            index += 1;
            if self.next() == Some(b',') {
                self.at += 1;
            } else {
                break;
            }
        }
        self.at += 1;
    }

    /// Reports what is wanted of the current field.
    fn meet(&mut self) {
        work::bytes(self.path.len());
        let Some(wanted) = self.wanted.get_mut(&self.path) else { return };
        if std::mem::take(&mut wanted.unknown) {
            self.errors.push(unknown_field(&self.path));
        }
        if std::mem::replace(&mut wanted.is_seen, true) && std::mem::take(&mut wanted.duplicate) {
            self.errors.push(RepeatedField { path: self.path.clone() }.to_string());
        }
    }

    /// The next byte that is not white space.
    fn next(&mut self) -> Option<u8> {
        while let Some(byte) = self.text.get(self.at) {
            if !byte.is_ascii_whitespace() {
                return Some(*byte);
            }
            self.at += 1;
        }
        None
    }

    fn skip_string(&mut self) {
        self.at += 1;
        while let Some(byte) = self.text.get(self.at) {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => return,
                _ => {}
            }
        }
        self.at = self.text.len();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, unknown: &[&str], opaque: &[&str], expected: &[&str]) {
        let (_, duplicates) = json::decode_strict(text.as_bytes()).expect("the text is JSON");
        let owned = |paths: &[&str]| paths.iter().map(|path| (*path).to_owned()).collect();
        let findings = Findings { unknown: owned(unknown), opaque: owned(opaque), ..Findings::default() };
        assert_eq!(in_document_order(text.as_bytes(), duplicates, &findings), expected);
    }

    #[test]
    fn errors_come_in_the_order_of_the_text() {
        check(
            r#"{"z": [{"b": 1, "x": 2}], "a": 1, "c": 1, "c": "}", "a": 3}"#,
            &["a", "z[0].x"],
            &[],
            &[r#"unknown field "z[0].x""#, r#"unknown field "a""#, r#"duplicate field "c""#],
        );
    }

    #[test]
    fn the_first_error_in_the_text_is_told_unless_another_stops() {
        let fault = |path: &str, stops| {
            let error = UnmarshalError::Other(path.to_uppercase());
            FieldDecodeError { path: path.to_owned(), error, stops }
        };
        let text = br#"{"type": true, "data": {"a": 1, "b": [2, 3]}}"#;
        let told =
            |faults: &[FieldDecodeError]| first_in_document_order(text, faults.to_vec()).map(|error| error.to_string());
        assert_eq!(told(&[fault("data.a", false), fault("type", false)]), Some("TYPE".to_owned()));
        assert_eq!(told(&[fault("data.b[1]", true), fault("type", false)]), Some("DATA.B[1]".to_owned()));
        assert_eq!(told(&[fault("data.b[1]", true), fault("data.b[0]", true)]), Some("DATA.B[0]".to_owned()));
        assert_eq!(told(&[]), None);
    }

    #[test]
    fn a_number_that_does_not_fit_is_told_as_it_is_written() {
        let text = br#"{"a": {"b": [1, 1e3 ]}, "c": -9223372036854775809, "d": "x"}"#;
        let told = |path: &str, found: &str| {
            let error = UnmarshalError::of_type(found, "int64");
            let fault = FieldDecodeError { path: path.to_owned(), error, stops: false };
            first_in_document_order(text, vec![fault]).map(|error| error.to_string()).unwrap_or_default()
        };
        let cannot = |found: &str| format!("json: cannot unmarshal {found} into Go value of type int64");
        assert_eq!(told("a.b[1]", "number 1000"), cannot("number 1e3"));
        assert_eq!(told("c", "number -9223372036854776000"), cannot("number -9223372036854775809"));
        assert_eq!(told("a.b[0]", "number"), cannot("number"));
        assert_eq!(told("d", "string"), cannot("string"));
    }

    #[test]
    fn what_go_keeps_raw_may_repeat_fields() {
        check(
            r#"{"default": {"a": 1, "a": 2}, "default": 1, "unknown": {"b": 1, "b": 2}}"#,
            &["unknown"],
            &["default"],
            &[r#"duplicate field "default""#, r#"unknown field "unknown""#],
        );
    }

    #[test]
    fn an_unfinished_text_ends_the_walk() {
        for text in ["{", "[", "{\"a", "{\"a\"", "{\"a\":", "[1", "\"\\", "{\"a\" 1", "[}", "]"] {
            let findings = Findings::default();
            assert!(in_document_order(text.as_bytes(), Vec::new(), &findings).is_empty());
        }
    }
}
