//! Small things that all answers show alike.

use crate::value::Value;
use crate::value::yaml::TextPosition;

/// How many things of a kind are shown; of the rest it is told how many there are.
pub const SHOWN_MAX: usize = 200;
/// How many characters of a text are shown.
const TEXT_MAX: usize = 2000;

/// A number; one that is too large for JSON's readers is shown as the largest.
pub fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// Texts, as many as are shown.
pub fn texts<'t>(texts: impl IntoIterator<Item = &'t String>) -> Value {
    Value::Array(texts.into_iter().take(SHOWN_MAX).map(|text| Value::from(shortened(text))).collect())
}

/// The line of a place, or null.
pub fn line(place: Option<TextPosition>) -> Value {
    place.map_or(Value::Null, |place| number(place.line as u64))
}

/// A text without what is beyond the bound.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
