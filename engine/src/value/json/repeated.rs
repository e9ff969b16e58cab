//! Duplicate fields of objects, which strict clients want refused.

use std::collections::HashSet;
use std::fmt;

use super::decode::{Decoder, JsonError};
use crate::meta::field::ERRORS_BYTES_MAX;
use crate::value::path_text::{self, PathText};
use crate::value::{Key, Value, go_quote};
use crate::work;

/// The most strict errors that are recorded, besides the limit for the length of an answer's errors.
const STRICT_ERRORS_MAX: usize = 100;

/// A duplicate field of an object; shown as `duplicate field "spec.a[0].b"`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RepeatedField {
    /// `spec.a[0].b`.
    pub path: String,
}

impl fmt::Display for RepeatedField {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "duplicate field {}", go_quote(&self.path))
    }
}

/// Reads one JSON value and lists its duplicate fields, which strict clients want refused: each once, in their order,
/// up to 100.
///
/// # Errors
///
/// It is not JSON, too deeply nested, or has a number beyond the range of doubles.
pub fn decode_strict(bytes: &[u8]) -> Result<(Value, Vec<RepeatedField>), JsonError> {
    let decoded = Decoder::new(bytes).decode()?.within_range()?;
    let repeated = if decoded.has_repeated_fields { repeated_fields(bytes)? } else { Vec::new() };
    Ok((decoded.value, repeated))
}

/// An array with the index of its current item, or an object with the names seen in it.
enum LevelKind {
    Array(usize),
    Object(HashSet<Key>),
}

/// An open array or object.
struct Level {
    kind: LevelKind,
    /// The end of its path.
    end: path_text::PathEnd,
}

/// The duplicate fields of a well-formed text, in their order.
fn repeated_fields(bytes: &[u8]) -> Result<Vec<RepeatedField>, JsonError> {
    let mut repeated = RepeatedFields::default();
    let mut levels: Vec<Level> = Vec::new();
    // The path of the next value.
    let mut path = PathText::default();
    let mut decoder = Decoder::new(bytes);
    let mut expects_name = false;
    loop {
        decoder.skip_space();
        work::step();
        match decoder.peek() {
            None => return Ok(repeated.found),
            Some(b'{') => {
                decoder.at += 1;
                levels.push(Level { kind: LevelKind::Object(HashSet::new()), end: path.end() });
                expects_name = true;
            }
            Some(b'[') => {
                decoder.at += 1;
                levels.push(Level { kind: LevelKind::Array(0), end: path.end() });
                path.push_index(0);
                expects_name = false;
            }
            Some(b'}' | b']') => {
                decoder.at += 1;
                levels.pop();
                expects_name = false;
            }
            Some(b',') => {
                decoder.at += 1;
                if let Some(Level { kind: LevelKind::Array(index), end }) = levels.last_mut() {
                    *index += 1;
                    path.truncate(*end);
                    path.push_index(*index);
                } else {
                    expects_name = true;
                }
            }
            Some(b'"') if expects_name => {
                expects_name = false;
                let name = decoder.field_name()?;
                repeated.note_name(&mut levels, &mut path, name);
            }
            Some(b'"') => drop(decoder.string()?),
            Some(_) => decoder.at += 1,
        }
    }
}

/// Duplicate fields, each once.
#[derive(Default)]
struct RepeatedFields {
    found: Vec<RepeatedField>,
    bytes: usize,
    seen: HashSet<u128>,
}

impl RepeatedFields {
    /// Records a name of the innermost object; `path` becomes that of its value.
    fn note_name(&mut self, levels: &mut [Level], path: &mut PathText, name: Key) {
        let is_nested = levels.len() > 1;
        let Some(Level { kind: LevelKind::Object(seen), end }) = levels.last_mut() else { return };
        path.truncate(*end);
        path.push_str(if is_nested { "." } else { "" });
        path.push_str(&name);
        if !seen.insert(name) {
            self.add(path);
        }
    }

    fn add(&mut self, path: &PathText) {
        let is_full = self.found.len() >= STRICT_ERRORS_MAX || self.bytes > ERRORS_BYTES_MAX;
        if !is_full && self.seen.insert(path.hash()) {
            self.bytes += path.as_str().len();
            self.found.push(RepeatedField { path: path.as_str().to_owned() });
        }
    }
}
