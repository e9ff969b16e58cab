//! What the reference says of `fieldsV1` that it can't read: what is wrong, and the text around it.
//!
//! Input: JSON. Output: the first fault, in the words of the reader that structured-merge-diff uses. Slow: it is asked once
//! reading has failed.
//!
//! Source: `readIterV1` of structured-merge-diff v6.4.2, `ReportError` of json-iterator 1.1.12.

use super::path::{PathElement, PathElementError};
use crate::value::json;
use crate::work;

/// How many bytes the reader has before it at a time.
const BUFFER_BYTES: usize = 4096;
/// How many bytes are shown before and after a fault, and in the wider context.
const SHOWN_BYTES: [usize; 2] = [10, 50];

/// The first fault of `fieldsV1` in JSON; `None` if there is none.
pub(super) fn fault(text: &str) -> Option<String> {
    let mut reader = FieldsReader { text, at: 0 };
    reader.map().err().map(|FieldsFault(text)| text)
}

/// A fault, with the text around it.
struct FieldsFault(String);

/// The text, and how far it is read.
struct FieldsReader<'t> {
    text: &'t str,
    at: usize,
}

impl FieldsReader<'_> {
    /// Reads the elements below a field.
    fn map(&mut self) -> Result<(), FieldsFault> {
        match self.next() {
            Some(b'{') => {}
            Some(b'n') => {
                self.at += "ull".len();
                return Ok(());
            }
            other => {
                let found = other.map(char::from).map(String::from).unwrap_or_default();
                return Err(self.report(&format!("ReadMapCB: expect {{ or n, but found {found}")));
            }
        }
        if self.peek() == Some(b'}') {
            self.next();
            return Ok(());
        }
        loop {
            let key = self.string();
            // The colon.
            self.next();
            match PathElement::decode(&key) {
                _ if key == "." => self.skip(),
                Ok(_) => self.map()?,
                Err(PathElementError::UnknownKind) => self.skip(),
                Err(PathElementError::Malformed(reason)) => {
                    return Err(self.report(&format!("parsing key as path element: {reason}")));
                }
            }
            if self.next() != Some(b',') {
                return Ok(());
            }
        }
    }

    /// The next byte that is not a space.
    fn next(&mut self) -> Option<u8> {
        let byte = self.peek();
        self.at += usize::from(byte.is_some());
        byte
    }

    /// The same, which stays the next one.
    fn peek(&mut self) -> Option<u8> {
        let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
        self.at += rest.iter().take_while(|byte| matches!(byte, b' ' | b'\t' | b'\n' | b'\r')).count();
        self.text.as_bytes().get(self.at).copied()
    }

    /// Reads a string.
    fn string(&mut self) -> String {
        let _ = self.peek();
        let start = self.at;
        self.skip_string();
        let literal = self.text.get(start..self.at).unwrap_or_default();
        let decoded = json::decode(literal.as_bytes()).ok();
        decoded.and_then(|text| text.as_str().map(str::to_owned)).unwrap_or_default()
    }

    /// Passes over a string, whose first quote is next.
    fn skip_string(&mut self) {
        let rest = self.text.as_bytes().get(self.at + 1..).unwrap_or_default();
        let mut is_escaped = false;
        let end = rest.iter().position(|byte| {
            let ends = *byte == b'"' && !is_escaped;
            is_escaped = *byte == b'\\' && !is_escaped;
            ends
        });
        let length = end.map_or(rest.len(), |end| end + 1);
        work::bytes(length);
        self.at += 1 + length;
    }

    /// Passes over a value.
    fn skip(&mut self) {
        let mut depth = 0_usize;
        loop {
            work::step();
            match self.peek() {
                None => return,
                Some(b'"') => self.skip_string(),
                Some(b'{' | b'[') => {
                    depth += 1;
                    self.at += 1;
                }
                Some(b'}' | b']') => {
                    depth = depth.saturating_sub(1);
                    self.at += 1;
                }
                Some(b',' | b':') => self.at += 1,
                // A literal.
                Some(_) => {
                    let rest = self.text.as_bytes().get(self.at..).unwrap_or_default();
                    let is_end = |byte: &u8| matches!(byte, b',' | b'}' | b']' | b' ' | b'\t' | b'\n' | b'\r');
                    self.at += rest.iter().position(is_end).unwrap_or(rest.len());
                }
            }
            if depth == 0 {
                return;
            }
        }
    }

    /// The fault, and what is around it.
    fn report(&self, fault: &str) -> FieldsFault {
        let text = self.text.as_bytes();
        let start = self.at.saturating_sub(1) / BUFFER_BYTES * BUFFER_BYTES;
        let end = text.len().min(start + BUFFER_BYTES);
        let around = |bytes: usize| {
            let (from, to) = (self.at.saturating_sub(bytes).max(start), end.min(self.at + bytes));
            (from, String::from_utf8_lossy(text.get(from..to).unwrap_or_default()).into_owned())
        };
        let [(from, near), (_, wide)] = SHOWN_BYTES.map(around);
        let at = self.at - from;
        FieldsFault(format!("{fault}, error found in #{at} byte of ...|{near}|..., bigger context ...|{wide}|..."))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As Go 1.26 answers, with the modules of Kubernetes 1.37.
    #[test]
    fn faults_are_told_with_the_text_around_them() {
        let short = "parsing key as path element: key must be 2 characters long:, error found in #10 byte of";
        for (text, expect) in [
            (r#"{"f:a":{},"k:{\"b\":1}":{".":{},"f:c":null},"x:y":[{"z":{"w":1}}],".":1,"f:b":{}}"#, None),
            (
                r#"{"f:a":{},"x":{}}"#,
                Some(format!(r#"{short} ...|a":{{}},"x":{{}}}}|..., bigger context ...|{{"f:a":{{}},"x":{{}}}}|..."#)),
            ),
            (
                r#"{"f:a" : {}, "x": {}}"#,
                Some(format!(r#"{short} ...|: {{}}, "x": {{}}}}|..., bigger context ...|{{"f:a" : {{}}, "x": {{}}}}|..."#)),
            ),
            (
                r#""abc""#,
                Some(
                    r#"ReadMapCB: expect { or n, but found ", error found in #1 byte of ...|"abc"|..., bigger context ...|"abc"|..."#
                        .to_owned(),
                ),
            ),
            (
                r#"{"f:a":1,"z\u00e9<>":{}}"#,
                Some(
                    r#"ReadMapCB: expect { or n, but found 1, error found in #8 byte of ...|{"f:a":1,"z\u00e9<|..., bigger context ...|{"f:a":1,"z\u00e9<>":{}}|..."#
                        .to_owned(),
                ),
            ),
        ] {
            assert_eq!(fault(text), expect);
        }
    }
}
