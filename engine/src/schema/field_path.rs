//! Paths into a schema, written as `.spec.list[0]` is for an object: `.spec.ports`, `.spec['a.b']`.
//!
//! Source: answers recorded from apiextensions-apiserver 1.37.

use thiserror::Error;

use crate::schema::structural::{Structural, StructuralOrBool};

/// Why a path leads nowhere, in Kubernetes' words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FieldPathError {
    /// The path ends where a step should follow.
    #[error("unexpected end of JSON path")]
    End,
    /// Steps in brackets are not allowed here.
    #[error("array notation is not allowed")]
    Brackets,
    /// A step does not begin or end as it should.
    #[error("expected {wanted} {found}")]
    Unexpected {
        /// The expected token, and the words that connect it to what was found.
        wanted: &'static str,
        /// What was found.
        found: String,
    },
    /// A backslash stands before a character that can't be escaped.
    #[error("invalid string literal: invalid escape char \\{0}")]
    Escape(char),
    /// The schema has no such field.
    #[error("does not refer to a valid field")]
    Nowhere,
}

impl FieldPathError {
    fn expected(wanted: &'static str, found: &str) -> Self {
        FieldPathError::Unexpected { wanted, found: found.to_owned() }
    }
}

/// A path that leads somewhere.
#[derive(Clone, Debug, PartialEq)]
pub struct Resolved<'s> {
    /// As messages print it: `spec.ports`, `spec.map[key]`.
    pub text: String,
    /// The first step.
    pub root: String,
    /// The schema of the field; `None` below `additionalProperties: true`.
    pub schema: Option<&'s Structural>,
}

/// Whether `['name']` may stand for `.name`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Brackets {
    Allowed,
    Forbidden,
}

/// Follows `path` into `schema`.
///
/// # Errors
///
/// The path is malformed or leads nowhere; the text is Kubernetes'.
pub fn resolve<'s>(path: &str, schema: &'s Structural, brackets: Brackets) -> Result<Resolved<'s>, FieldPathError> {
    let mut resolved = Resolved { text: String::new(), root: String::new(), schema: Some(schema) };
    let mut tokens = PathTokens(path);
    while let Some(token) = tokens.next() {
        match token {
            "." => resolved.step(tokens.next().ok_or(FieldPathError::End)?)?,
            "[" => {
                if brackets == Brackets::Forbidden {
                    return Err(FieldPathError::Brackets);
                }
                let token = tokens.next().ok_or(FieldPathError::End)?;
                let quoted = token.strip_prefix('\'').and_then(|rest| rest.strip_suffix('\''));
                let quoted = quoted.ok_or_else(|| FieldPathError::expected("single quoted string but got", token))?;
                resolved.step(&unescape(quoted)?)?;
                match tokens.next().ok_or(FieldPathError::End)? {
                    "]" => {}
                    other => return Err(FieldPathError::expected("] but got", other)),
                }
            }
            other => return Err(FieldPathError::expected("[ or . but got:", other)),
        }
    }
    Ok(resolved)
}

impl Resolved<'_> {
    fn step(&mut self, name: &str) -> Result<(), FieldPathError> {
        let schema = self.schema.ok_or(FieldPathError::Nowhere)?;
        let text = match &schema.additional_properties {
            _ if !schema.properties.is_empty() => {
                self.schema = Some(schema.properties.get(name).ok_or(FieldPathError::Nowhere)?);
                if self.text.is_empty() { name.to_owned() } else { format!(".{name}") }
            }
            Some(values) => {
                self.schema = StructuralOrBool::structural(values);
                format!("[{name}]")
            }
            None => return Err(FieldPathError::Nowhere),
        };
        if self.text.is_empty() {
            self.root.clone_from(&text);
        }
        self.text.push_str(&text);
        Ok(())
    }
}

/// The tokens of a path: dots, brackets, quoted texts, and the text between these.
struct PathTokens<'t>(&'t str);

impl<'t> Iterator for PathTokens<'t> {
    type Item = &'t str;

    fn next(&mut self) -> Option<&'t str> {
        let text = self.0;
        let first = text.chars().next()?;
        let length = match first {
            '.' | '[' | ']' => 1,
            '\'' => closing_quote(text).map_or(text.len(), |at| at + 1),
            _ => text.find(['.', '[', ']']).unwrap_or(text.len()),
        };
        let (token, rest) = text.split_at(length);
        self.0 = rest;
        Some(token)
    }
}

/// Where the quote that opens `text` is closed.
fn closing_quote(text: &str) -> Option<usize> {
    let bytes = text.as_bytes();
    (1..bytes.len()).find(|&at| bytes[at] == b'\'' && bytes[at - 1] != b'\\')
}

fn unescape(text: &str) -> Result<String, FieldPathError> {
    let mut plain = String::new();
    let mut fault = None;
    let mut chars = text.chars();
    while let Some(char) = chars.next() {
        // A backslash before a line break or at the end stands for itself.
        let escaped = if char == '\\' { chars.clone().next().filter(|next| *next != '\n') } else { None };
        let Some(escaped) = escaped else {
            plain.push(char);
            continue;
        };
        chars.next();
        match escaped {
            'a' => plain.push('\x07'),
            'b' => plain.push('\x08'),
            'f' => plain.push('\x0c'),
            'n' => plain.push('\n'),
            'r' => plain.push('\r'),
            't' => plain.push('\t'),
            'v' => plain.push('\x0b'),
            '\'' | '\\' => plain.push(escaped),
            other => fault = Some(FieldPathError::Escape(other)),
        }
    }
    fault.map_or(Ok(plain), Err)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::convert::to_structural;
    use crate::schema::json_schema;
    use crate::value::json;

    #[track_caller]
    fn check(path: &str, expected: Result<&str, &str>) {
        let schema = br#"{"type":"object","properties":{"a":{"type":"object","properties":{"b.c":{"type":"string"}}},
            "map":{"type":"object","additionalProperties":{"type":"string"}}}}"#;
        let schema = json_schema::decode(&json::decode(schema).expect("the test is JSON")).expect("and a schema").0;
        let schema = to_structural(&schema).expect("and structural");
        let resolved = resolve(path, &schema, Brackets::Allowed);
        let resolved = resolved.map(|resolved| resolved.text).map_err(|error| error.to_string());
        assert_eq!(resolved, expected.map(str::to_owned).map_err(str::to_owned));
    }

    #[test]
    fn fields_and_keys_are_followed() {
        check(".a['b.c']", Ok("a.b.c"));
        check(".map.x", Ok("map[x]"));
        check(".map['\\'']", Ok("map[']"));
    }

    #[test]
    fn a_path_that_leads_nowhere_is_an_error() {
        check("a", Err("expected [ or . but got: a"));
        check(".x", Err("does not refer to a valid field"));
        check(".a.", Err("unexpected end of JSON path"));
        check(".a[b", Err("expected single quoted string but got b"));
        check(".a['b.c'", Err("unexpected end of JSON path"));
    }
}
