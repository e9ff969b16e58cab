//! Single characters of a pattern, as they are or escaped, and the counts of repetitions.

use super::messages::{BAD_ESCAPE, NO_BRACKET, TRAILING_BACKSLASH, error};
use crate::meta::pattern::PatternError;

/// A character within `[…]`; `whole` is the text from the bracket on.
pub(super) fn class_char<'s>(text: &'s str, whole: &str) -> Result<(u32, &'s str), PatternError> {
    match text.as_bytes().first() {
        None => Err(error(NO_BRACKET, whole)),
        Some(b'\\') => escape(text),
        Some(_) => Ok(next_char(text)),
    }
}

/// The code point of the escape `\…` at the start of `text`; it may be a surrogate.
pub(super) fn escape(text: &str) -> Result<(u32, &str), PatternError> {
    let rest = &text[1..];
    if rest.is_empty() {
        return Err(error(TRAILING_BACKSLASH, ""));
    }
    let (letter, mut rest) = next_char(rest);
    let octal = |text: &str| text.bytes().next().filter(|byte| (b'0'..=b'7').contains(byte)).map(|byte| byte - b'0');
    let is_backreference = octal(rest).is_none();
    let code_point = match char::from_u32(letter).unwrap_or_default() {
        'a' => 0x07,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        'x' => return hexadecimal(text, rest),
        '1'..='7' if is_backreference => return Err(error(BAD_ESCAPE, up_to(text, rest))),
        '0'..='7' => {
            let mut code_point = letter - '0' as u32;
            for _ in 0..2 {
                let Some(digit) = octal(rest) else { break };
                code_point = code_point * 8 + u32::from(digit);
                rest = &rest[1..];
            }
            code_point
        }
        char if char.is_ascii() && !char.is_ascii_alphanumeric() => letter,
        _ => return Err(error(BAD_ESCAPE, up_to(text, rest))),
    };
    Ok((code_point, rest))
}

/// The two digits or the braces after `\x`; `text` is everything from the backslash on.
fn hexadecimal<'s>(text: &str, rest: &'s str) -> Result<(u32, &'s str), PatternError> {
    let digit = |char: u32| char::from_u32(char).and_then(|char| char.to_digit(16));
    let (first, mut rest) = next_char(rest);
    if first != '{' as u32 {
        let (second, rest) = next_char(rest);
        return match (digit(first), digit(second)) {
            (Some(high), Some(low)) => Ok((high * 16 + low, rest)),
            _ => Err(error(BAD_ESCAPE, up_to(text, rest))),
        };
    }
    let mut code_point: Option<u32> = None;
    while !rest.is_empty() {
        let (char, after) = next_char(rest);
        rest = after;
        if let ('}', Some(code_point)) = (char::from_u32(char).unwrap_or_default(), code_point) {
            return Ok((code_point, rest));
        }
        let Some(digit) = digit(char) else { break };
        let number = code_point.unwrap_or(0) * 16 + digit;
        if number > char::MAX as u32 {
            break;
        }
        code_point = Some(number);
    }
    Err(error(BAD_ESCAPE, up_to(text, rest)))
}

/// The first character; at the end of the text U+FFFD, as in Go.
pub(super) fn next_char(text: &str) -> (u32, &str) {
    let mut chars = text.chars();
    let char = chars.next().unwrap_or(char::REPLACEMENT_CHARACTER);
    (char as u32, chars.as_str())
}

/// `text` without its suffix `rest`.
pub(super) fn up_to<'t>(text: &'t str, rest: &str) -> &'t str {
    &text[..text.len() - rest.len()]
}

/// `min` and `max` of a repetition; no `max` is unbounded.
pub(super) type RepeatCounts = (u32, Option<u32>);

/// `{2}`, `{2,}` or `{2,5}` and the text after it; `None` if it is something else, and no counts if they are out of
/// bounds.
pub(super) fn parse_counts(text: &str) -> Option<(Option<RepeatCounts>, &str)> {
    let (min, mut rest) = parse_count(text.strip_prefix('{')?)?;
    let mut max = Some(min);
    if let Some(after) = rest.strip_prefix(',') {
        rest = after;
        max = None;
        if !rest.starts_with('}') {
            let (number, after) = parse_count(rest)?;
            (max, rest) = (Some(number), after);
        }
    }
    let rest = rest.strip_prefix('}')?;
    let fine = min <= 1000 && max.is_none_or(|max| max <= 1000 && min <= max);
    Some((fine.then_some((min, max)), rest))
}

/// Digits without a leading zero; a number that is too large saturates.
fn parse_count(text: &str) -> Option<(u32, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}
