//! The values of literals.

use super::ast::Constant;
use super::lexer::TokenKind;
use crate::meta::minor::Minor;

const BAD_ESCAPE: &str = "unable to unescape string";
const BAD_CODE_POINT: &str = "invalid unicode code point";

/// The first version of Kubernetes in which the number of a character must be one that Unicode has; before, surrogates,
/// and numbers beyond 31 bits, became the replacement character.
const CODE_POINTS_SINCE: Minor = Minor::of(33);

/// Decodes the value of a token, negated if `is_negative`, as version `minor` of Kubernetes does.
///
/// # Errors
///
/// The fault of the token.
pub fn decode(minor: Minor, kind: TokenKind, is_negative: bool, text: &str) -> Result<Constant, &'static str> {
    match kind {
        TokenKind::Int => int(is_negative, text).map(Constant::Int).ok_or("invalid int literal"),
        TokenKind::Uint => uint(text).map(Constant::Uint).ok_or("invalid uint literal"),
        TokenKind::Float => float(is_negative, text).map(Constant::Double).ok_or("invalid double literal"),
        TokenKind::String => {
            let bytes = unquote(text, Numbers::CodePoints { minor })?;
            String::from_utf8(bytes).map(Constant::String).map_err(|_| BAD_CODE_POINT)
        }
        TokenKind::Bytes => unquote(&text[1..], Numbers::Bytes).map(Constant::Bytes),
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

/// What numbers in escape sequences mean: code points in strings, bytes in bytes literals.
#[derive(Clone, Copy)]
enum Numbers {
    Bytes,
    CodePoints { minor: Minor },
}

/// Decodes a string with its quotes, and perhaps an `r` before them, to bytes.
fn unquote(text: &str, numbers: Numbers) -> Result<Vec<u8>, &'static str> {
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
        rest = unescape(&rest[at + 1..], numbers, &mut bytes)?;
    }
    bytes.extend_from_slice(rest.as_bytes());
    Ok(bytes)
}

/// Appends the value of the escape sequence after a backslash, and returns the rest of the text.
fn unescape<'a>(sequence: &'a str, numbers: Numbers, bytes: &mut Vec<u8>) -> Result<&'a str, &'static str> {
    let mut characters = sequence.chars();
    let letter = characters.next().ok_or(BAD_ESCAPE)?;
    let rest = characters.as_str();
    let is_text = matches!(numbers, Numbers::CodePoints { .. });
    let simple = match letter {
        'a' => 7,
        'b' => 8,
        'f' => 12,
        'n' => b'\n',
        'r' => b'\r',
        't' => b'\t',
        'v' => 11,
        '\\' | '\'' | '"' | '`' | '?' => letter as u8,
        'x' | 'X' => return numbered(rest, 2, 16, numbers, bytes),
        'u' if is_text => return numbered(rest, 4, 16, numbers, bytes),
        'U' if is_text => return numbered(rest, 8, 16, numbers, bytes),
        '0'..='3' => return numbered(sequence, 3, 8, numbers, bytes),
        _ => return Err(BAD_ESCAPE),
    };
    bytes.push(simple);
    Ok(rest)
}

fn numbered<'a>(
    text: &'a str,
    length: usize,
    base: u32,
    numbers: Numbers,
    bytes: &mut Vec<u8>,
) -> Result<&'a str, &'static str> {
    let digits = text.get(..length).ok_or(BAD_ESCAPE)?;
    let number = u32::from_str_radix(digits, base).map_err(|_| BAD_ESCAPE)?;
    match (numbers, u8::try_from(number)) {
        (Numbers::Bytes, Ok(byte)) => bytes.push(byte),
        (Numbers::Bytes, Err(_)) => return Err(BAD_CODE_POINT),
        (Numbers::CodePoints { minor }, _) => {
            bytes.extend_from_slice(character(minor, number)?.encode_utf8(&mut [0; 4]).as_bytes());
        }
    }
    Ok(&text[length..])
}

/// The character with this number.
fn character(minor: Minor, number: u32) -> Result<char, &'static str> {
    match char::from_u32(number) {
        Some(character) => Ok(character),
        None if minor >= CODE_POINTS_SINCE => Err(BAD_CODE_POINT),
        // Go's runes are signed.
        None if (u32::from(char::MAX) + 1..=i32::MAX as u32).contains(&number) => Err(BAD_ESCAPE),
        None => Ok(char::REPLACEMENT_CHARACTER),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(kind: TokenKind, text: &str, expected: Result<Constant, &'static str>) {
        assert_eq!(decode(Minor::NEWEST, kind, false, text), expected, "{text}");
    }

    #[test]
    fn escapes_are_code_points_in_strings_and_bytes_in_bytes() {
        check(TokenKind::String, r"'\x41\303\u00e9\U0001F600'", Ok(Constant::String("A\u{c3}é😀".to_owned())));
        check(TokenKind::Bytes, r"b'\x41\303é'", Ok(Constant::Bytes(vec![0x41, 0xc3, 0xc3, 0xa9])));
        check(TokenKind::String, "'\\ud800'", Err("invalid unicode code point"));
        check(TokenKind::Bytes, "b'\\u0041'", Err("unable to unescape string"));
    }

    #[test]
    fn older_minors_take_numbers_that_are_not_of_unicode() {
        let read = |minor, text| decode(Minor::of(minor), TokenKind::String, false, text);
        for text in ["'\\ud800'", "'\\UFFFFFFFF'"] {
            assert_eq!(read(32, text), Ok(Constant::String("\u{fffd}".to_owned())), "{text}");
            assert_eq!(read(33, text), Err("invalid unicode code point"), "{text}");
        }
        assert_eq!(read(32, "'\\U00110000'"), Err("unable to unescape string"));
    }

    #[test]
    fn line_ends_are_line_feeds() {
        check(TokenKind::String, "'''a\r\nb\rc'''", Ok(Constant::String("a\nb\nc".to_owned())));
        check(TokenKind::String, r"r'\n'", Ok(Constant::String(r"\n".to_owned())));
    }

    #[test]
    fn numbers_have_bounds() {
        assert_eq!(decode(Minor::NEWEST, TokenKind::Int, true, "9223372036854775808"), Ok(Constant::Int(i64::MIN)));
        check(TokenKind::Int, "9223372036854775808", Err("invalid int literal"));
        check(TokenKind::Uint, "0xFFFFFFFFFFFFFFFFu", Ok(Constant::Uint(u64::MAX)));
        check(TokenKind::Float, "1e999", Err("invalid double literal"));
    }
}
