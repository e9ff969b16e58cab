//! What literals stand for.

use super::ast::Constant;
use super::lexer::TokenKind;

const BAD_ESCAPE: &str = "unable to unescape string";
const BAD_CODE_POINT: &str = "invalid unicode code point";

/// The value of a token, negated where `is_negative`; else what is wrong with it.
///
/// # Errors
///
/// What is wrong with the token.
pub fn decode(kind: TokenKind, is_negative: bool, text: &str) -> Result<Constant, &'static str> {
    match kind {
        TokenKind::Int => int(is_negative, text).map(Constant::Int).ok_or("invalid int literal"),
        TokenKind::Uint => uint(text).map(Constant::Uint).ok_or("invalid uint literal"),
        TokenKind::Float => float(is_negative, text).map(Constant::Double).ok_or("invalid double literal"),
        TokenKind::String => {
            let bytes = unquote(text, false)?;
            String::from_utf8(bytes).map(Constant::String).map_err(|_| BAD_CODE_POINT)
        }
        TokenKind::Bytes => unquote(&text[1..], true).map(Constant::Bytes),
        TokenKind::True => Ok(Constant::Bool(true)),
        TokenKind::False => Ok(Constant::Bool(false)),
        _ => Ok(Constant::Null),
    }
}

fn digits(text: &str) -> (u32, &str) {
    text.strip_prefix("0x").map_or((10, text), |digits| (16, digits))
}

fn int(is_negative: bool, text: &str) -> Option<i64> {
    let (base, digits) = digits(text);
    let magnitude = i128::from(u64::from_str_radix(digits, base).ok()?);
    i64::try_from(if is_negative { -magnitude } else { magnitude }).ok()
}

fn uint(text: &str) -> Option<u64> {
    let (base, digits) = digits(text.trim_end_matches(['u', 'U']));
    u64::from_str_radix(digits, base).ok()
}

fn float(is_negative: bool, text: &str) -> Option<f64> {
    let magnitude: f64 = text.parse().ok()?;
    magnitude.is_finite().then_some(if is_negative { -magnitude } else { magnitude })
}

/// The bytes that a string with its quotes, and perhaps an `r` before them, stands for.
///
/// In strings, numbers in escape sequences are code points; in bytes they are bytes.
fn unquote(text: &str, is_bytes: bool) -> Result<Vec<u8>, &'static str> {
    let text = text.replace("\r\n", "\n").replace('\r', "\n");
    let (is_raw, quoted) = match text.strip_prefix(['r', 'R']) {
        Some(quoted) => (true, quoted),
        None => (false, text.as_str()),
    };
    let is_triple = quoted.len() >= 6 && (quoted.starts_with("'''") || quoted.starts_with("\"\"\""));
    let width = if is_triple { 3 } else { 1 };
    let content = &quoted[width..quoted.len() - width];
    if is_raw || !content.contains('\\') {
        return Ok(content.as_bytes().to_vec());
    }
    let mut bytes = Vec::with_capacity(content.len());
    let mut rest = content;
    while let Some(at) = rest.find('\\') {
        bytes.extend_from_slice(&rest.as_bytes()[..at]);
        rest = unescape(&rest[at + 1..], is_bytes, &mut bytes)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// Appends what the escape sequence after a backslash stands for, and returns what follows it.
fn unescape<'a>(sequence: &'a str, is_bytes: bool, bytes: &mut Vec<u8>) -> Result<&'a str, &'static str> {
    let mut characters = sequence.chars();
    let letter = characters.next().ok_or(BAD_ESCAPE)?;
    let rest = characters.as_str();
    let simple = match letter {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' | '\'' | '"' | '`' | '?' => letter as u8,
        'x' | 'X' => return numbered(rest, 2, 16, is_bytes, bytes),
        'u' if !is_bytes => return numbered(rest, 4, 16, is_bytes, bytes),
        'U' if !is_bytes => return numbered(rest, 8, 16, is_bytes, bytes),
        '0'..='3' => return numbered(sequence, 3, 8, is_bytes, bytes),
        _ => return Err(BAD_ESCAPE),
    };
    bytes.push(simple);
    Ok(rest)
}

fn numbered<'a>(
    text: &'a str,
    length: usize,
    base: u32,
    is_bytes: bool,
    bytes: &mut Vec<u8>,
) -> Result<&'a str, &'static str> {
    let digits = text.get(..length).ok_or(BAD_ESCAPE)?;
    let number = u32::from_str_radix(digits, base).map_err(|_| BAD_ESCAPE)?;
    match u8::try_from(number) {
        Ok(byte) if is_bytes => bytes.push(byte),
        _ => {
            let character = char::from_u32(number).ok_or(BAD_CODE_POINT)?;
            bytes.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Ok(&text[length..])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: TokenKind, text: &str, expected: Result<Constant, &'static str>) {
        assert_eq!(decode(kind, false, text), expected, "{text}");
    }

    #[test]
    fn escapes_are_code_points_in_strings_and_bytes_in_bytes() {
        check(TokenKind::String, r"'\x41\303\u00e9\U0001F600'", Ok(Constant::String("A\u{c3}é😀".to_owned())));
        check(TokenKind::Bytes, r"b'\x41\303é'", Ok(Constant::Bytes(vec![0x41, 0xc3, 0xc3, 0xa9])));
        check(TokenKind::String, "'\\ud800'", Err("invalid unicode code point"));
        check(TokenKind::Bytes, "b'\\u0041'", Err("unable to unescape string"));
    }

    #[test]
    fn line_ends_are_line_feeds() {
        check(TokenKind::String, "'''a\r\nb\rc'''", Ok(Constant::String("a\nb\nc".to_owned())));
        check(TokenKind::String, r"r'\n'", Ok(Constant::String(r"\n".to_owned())));
    }

    #[test]
    fn numbers_have_bounds() {
        assert_eq!(decode(TokenKind::Int, true, "9223372036854775808"), Ok(Constant::Int(i64::MIN)));
        check(TokenKind::Int, "9223372036854775808", Err("invalid int literal"));
        check(TokenKind::Uint, "0xFFFFFFFFFFFFFFFFu", Ok(Constant::Uint(u64::MAX)));
        check(TokenKind::Float, "1e999", Err("invalid double literal"));
    }
}
