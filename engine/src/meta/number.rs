//! Numbers in queries and metadata, with the errors of Go's `strconv`.

use thiserror::Error;

use crate::value::go_quote;

/// Why a text is not a number, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NumberError {
    /// It contains other characters than digits.
    #[error("strconv.{function}: parsing {}: invalid syntax", go_quote(.text))]
    Syntax {
        /// The function of Go that reads such numbers: `ParseUint`.
        function: &'static str,
        /// The text.
        text: String,
    },
    /// The number is too large or too small.
    #[error("strconv.{function}: parsing {}: value out of range", go_quote(.text))]
    Range {
        /// The function of Go that reads such numbers: `ParseInt`.
        function: &'static str,
        /// The text.
        text: String,
    },
}

/// An unsigned decimal number.
///
/// # Errors
///
/// The text is not a number, or a number that is too large.
pub fn parse_uint(text: &str) -> Result<u64, NumberError> {
    read("ParseUint", text, text)
}

/// A decimal number with or without a sign.
///
/// # Errors
///
/// The text is not a number, or a number that is too large or too small.
pub fn parse_int(text: &str) -> Result<i64, NumberError> {
    read("ParseInt", text, text.strip_prefix(['-', '+']).unwrap_or(text))
}

/// [`parse_int`] with the errors of Go's `Atoi`.
///
/// # Errors
///
/// The text is not a number, or a number that is too large or too small.
pub fn atoi(text: &str) -> Result<i64, NumberError> {
    read("Atoi", text, text.strip_prefix(['-', '+']).unwrap_or(text))
}

fn read<T: std::str::FromStr>(function: &'static str, text: &str, digits: &str) -> Result<T, NumberError> {
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(NumberError::Syntax { function, text: text.to_owned() });
    }
    text.parse().map_err(|_| NumberError::Range { function, text: text.to_owned() })
}
