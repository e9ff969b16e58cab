//! Small functions that all results share.

use crate::value::Value;
use crate::value::yaml::TextPosition;

/// The maximum number of items of a list that are shown.
pub const SHOWN_MAX: usize = 200;
/// The maximum number of characters of a text that are shown.
const TEXT_MAX: usize = 2000;

/// A number; one that does not fit an `i64` becomes the largest.
pub fn number(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

/// A list of texts, up to the number that is shown.
pub fn texts<'t>(texts: impl IntoIterator<Item = &'t String>) -> Value {
    Value::Array(texts.into_iter().take(SHOWN_MAX).map(|text| Value::from(shortened(text))).collect())
}

/// The line of a position, or null.
pub fn line(place: Option<TextPosition>) -> Value {
    place.map_or(Value::Null, |place| number(place.line as u64))
}

/// Truncates a text to the number of characters that is shown.
pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}
