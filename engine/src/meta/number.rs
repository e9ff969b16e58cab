//! Numbers in queries and metadata, with the errors of Go's `strconv`.

use crate::value::go_quote;

/// An unsigned decimal number.
///
/// # Errors
///
/// Go's text for what is not a number, or too large.
pub fn parse_uint(text: &str) -> Result<u64, String> {
    let fault = |what: &str| format!("strconv.ParseUint: parsing {}: {what}", go_quote(text));
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(fault("invalid syntax"));
    }
    text.parse().map_err(|_| fault("value out of range"))
}
