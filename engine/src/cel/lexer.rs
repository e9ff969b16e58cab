//! The lexer: splits text into tokens.
//!
//! The longest match wins, as in cel-go's grammar: an unterminated string is read as whatever else its first characters
//! begin (`r"` starts with the name `r`), and only characters that begin no token are an error. White space and
//! comments yield no token.

use super::ast::Range;
use crate::meta::minor::Minor;
use crate::work;

/// The kind of a token. The order is that of lists of expected tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum TokenKind {
    EndOfInput,
    Equals,
    NotEquals,
    In,
    Less,
    LessEquals,
    GreaterEquals,
    Greater,
    LogicalAnd,
    LogicalOr,
    LeftBracket,
    RightBracket,
    LeftBrace,
    RightBrace,
    LeftParenthesis,
    RightParenthesis,
    Dot,
    Comma,
    Minus,
    Exclamation,
    Question,
    Colon,
    Plus,
    Star,
    Slash,
    Percent,
    True,
    False,
    Null,
    Float,
    Int,
    Uint,
    String,
    Bytes,
    Identifier,
    /// A name in backquotes.
    EscapedIdentifier,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Token {
    pub kind: TokenKind,
    pub range: Range,
}

/// The tokens of a text, the end of input last, and the characters that could not be read.
#[derive(Debug, Default)]
pub struct Tokens {
    pub tokens: Vec<Token>,
    pub faults: Vec<LexicalFault>,
    /// Whether names in backquotes are tokens.
    pub quoted_names: bool,
}

/// Characters that begin no token, up to and including the one that shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LexicalFault {
    pub range: Range,
    /// The number of tokens before it.
    pub tokens_before: usize,
}

/// What was read at a position of the text, with the position after it.
enum Lexeme {
    Token(TokenKind, usize),
    Hidden(usize),
    /// Characters that begin no token.
    Fault(usize),
}

/// The first version of Kubernetes that reads names in backquotes.
const QUOTED_TOKENS_SINCE: Minor = Minor::of(33);

/// Reads all of `text`. Never fails: faults are part of the result.
pub fn tokenize(text: &[char]) -> Tokens {
    tokenize_in(Minor::NEWEST, text)
}

/// Does what [`tokenize`] does, as version `minor` of Kubernetes does it.
pub fn tokenize_in(minor: Minor, text: &[char]) -> Tokens {
    let mut found = Tokens {
        tokens: Vec::with_capacity(text.len() / 4 + 1),
        faults: Vec::new(),
        quoted_names: minor >= QUOTED_TOKENS_SINCE,
    };
    let mut at = 0;
    work::steps(text.len() / 4);
    while at < text.len() {
        let start = at;
        match lexeme(text, at, found.quoted_names) {
            Lexeme::Token(kind, end) => {
                found.tokens.push(Token { kind, range: range(start, end) });
                at = end;
            }
            Lexeme::Hidden(end) => at = end,
            Lexeme::Fault(end) => {
                let end = end.min(text.len());
                found.faults.push(LexicalFault { range: range(start, end), tokens_before: found.tokens.len() });
                at = end;
            }
        }
    }
    found.tokens.push(Token { kind: TokenKind::EndOfInput, range: range(text.len(), text.len()) });
    found
}

fn range(start: usize, end: usize) -> Range {
    // A text with more characters than fit is refused before it is read.
    Range { start: start as u32, end: end as u32 }
}

fn lexeme(text: &[char], at: usize, quoted_names: bool) -> Lexeme {
    use TokenKind::{
        Colon, Comma, Dot, Equals, Exclamation, Greater, GreaterEquals, LeftBrace, LeftBracket, LeftParenthesis, Less,
        LessEquals, LogicalAnd, LogicalOr, Minus, NotEquals, Percent, Plus, Question, RightBrace, RightBracket,
        RightParenthesis, Slash, Star,
    };
    let next = text.get(at + 1).copied();
    let one = |kind| Lexeme::Token(kind, at + 1);
    let or_with_equals = |alone, with| if next == Some('=') { Lexeme::Token(with, at + 2) } else { one(alone) };
    let doubled = |character, kind| {
        if next == Some(character) { Lexeme::Token(kind, at + 2) } else { Lexeme::Fault(at + 2) }
    };
    match text[at] {
        '\t' | ' ' | '\r' | '\n' | '\u{c}' => Lexeme::Hidden(at + 1),
        '/' if next == Some('/') => Lexeme::Hidden(
            text[at..].iter().position(|character| *character == '\n').map_or(text.len(), |end| at + end),
        ),
        '(' => one(LeftParenthesis),
        ')' => one(RightParenthesis),
        '[' => one(LeftBracket),
        ']' => one(RightBracket),
        '{' => one(LeftBrace),
        '}' => one(RightBrace),
        ',' => one(Comma),
        '-' => one(Minus),
        '?' => one(Question),
        ':' => one(Colon),
        '+' => one(Plus),
        '*' => one(Star),
        '/' => one(Slash),
        '%' => one(Percent),
        '=' => doubled('=', Equals),
        '&' => doubled('&', LogicalAnd),
        '|' => doubled('|', LogicalOr),
        '!' => or_with_equals(Exclamation, NotEquals),
        '<' => or_with_equals(Less, LessEquals),
        '>' => or_with_equals(Greater, GreaterEquals),
        '.' if next.is_some_and(|digit| digit.is_ascii_digit()) => {
            let fraction = digits(text, at + 1);
            Lexeme::Token(TokenKind::Float, exponent(text, fraction).unwrap_or(fraction))
        }
        '.' => one(Dot),
        '0'..='9' => number(text, at),
        '"' | '\'' => match string(text, at, false) {
            Ok(end) => Lexeme::Token(TokenKind::String, end),
            Err(fault) => Lexeme::Fault(fault + 1),
        },
        '`' if quoted_names => escaped_identifier(text, at),
        character if is_name_start(character) => name(text, at),
        _ => Lexeme::Fault(at + 1),
    }
}

fn is_name_start(character: char) -> bool {
    character.is_ascii_alphabetic() || character == '_'
}

fn is_name_part(character: char) -> bool {
    character.is_ascii_alphanumeric() || character == '_'
}

fn is_quote(character: Option<&char>) -> bool {
    matches!(character, Some('"' | '\''))
}

/// The end of the run of characters that are `wanted`, from `at` on.
fn run(text: &[char], at: usize, wanted: impl Fn(char) -> bool) -> usize {
    text[at..].iter().position(|character| !wanted(*character)).map_or(text.len(), |length| at + length)
}

fn digits(text: &[char], at: usize) -> usize {
    run(text, at, |character| character.is_ascii_digit())
}

/// The end of an exponent that begins at `at`.
fn exponent(text: &[char], at: usize) -> Option<usize> {
    if !matches!(text.get(at), Some('e' | 'E')) {
        return None;
    }
    let start = if matches!(text.get(at + 1), Some('+' | '-')) { at + 2 } else { at + 1 };
    text.get(start).filter(|digit| digit.is_ascii_digit())?;
    Some(digits(text, start))
}

fn number(text: &[char], at: usize) -> Lexeme {
    let is_unsigned = |end: usize| matches!(text.get(end), Some('u' | 'U'));
    if text[at] == '0' && text.get(at + 1) == Some(&'x') && text.get(at + 2).is_some_and(char::is_ascii_hexdigit) {
        let end = run(text, at + 2, |character| character.is_ascii_hexdigit());
        return if is_unsigned(end) {
            Lexeme::Token(TokenKind::Uint, end + 1)
        } else {
            Lexeme::Token(TokenKind::Int, end)
        };
    }
    let whole = digits(text, at);
    if text.get(whole) == Some(&'.') && text.get(whole + 1).is_some_and(char::is_ascii_digit) {
        let fraction = digits(text, whole + 1);
        return Lexeme::Token(TokenKind::Float, exponent(text, fraction).unwrap_or(fraction));
    }
    if let Some(end) = exponent(text, whole) {
        return Lexeme::Token(TokenKind::Float, end);
    }
    if is_unsigned(whole) { Lexeme::Token(TokenKind::Uint, whole + 1) } else { Lexeme::Token(TokenKind::Int, whole) }
}

/// Reads a name, a keyword, or a string with a prefix.
fn name(text: &[char], at: usize) -> Lexeme {
    let (is_bytes, quote) = match text[at] {
        'b' | 'B' => (true, at + 1),
        _ => (false, at),
    };
    let (is_raw, quote) = match text.get(quote) {
        Some('r' | 'R') => (true, quote + 1),
        _ => (false, quote),
    };
    if is_quote(text.get(quote))
        && let Ok(end) = string(text, quote, is_raw)
    {
        return Lexeme::Token(if is_bytes { TokenKind::Bytes } else { TokenKind::String }, end);
    }
    let end = run(text, at, is_name_part);
    let kind = match text[at..end] {
        ['i', 'n'] => TokenKind::In,
        ['t', 'r', 'u', 'e'] => TokenKind::True,
        ['f', 'a', 'l', 's', 'e'] => TokenKind::False,
        ['n', 'u', 'l', 'l'] => TokenKind::Null,
        _ => TokenKind::Identifier,
    };
    Lexeme::Token(kind, end)
}

fn escaped_identifier(text: &[char], at: usize) -> Lexeme {
    let is_part = |character| is_name_part(character) || matches!(character, '.' | '-' | '/' | ' ');
    let end = run(text, at + 1, is_part);
    if end > at + 1 && text.get(end) == Some(&'`') {
        Lexeme::Token(TokenKind::EscapedIdentifier, end + 1)
    } else {
        Lexeme::Fault(end + 1)
    }
}

/// The end of the string whose opening quote is at `at`. The error is the position of the character that cannot be part
/// of it.
fn string(text: &[char], at: usize, is_raw: bool) -> Result<usize, usize> {
    let quote = text[at];
    let is_triple = |from: usize| text.get(from..from + 3).is_some_and(|three| three.iter().all(|one| *one == quote));
    if is_triple(at) {
        let mut inside = at + 3;
        while inside < text.len() {
            if is_triple(inside) {
                return Ok(inside + 3);
            }
            match text[inside] {
                '\\' if !is_raw => match escape(text, inside) {
                    Ok(end) => inside = end,
                    Err(_) => break,
                },
                _ => inside += 1,
            }
        }
        // Unterminated: the first two quotes are an empty string.
        return Ok(at + 2);
    }
    let mut inside = at + 1;
    while let Some(character) = text.get(inside) {
        match character {
            character if *character == quote => return Ok(inside + 1),
            '\n' | '\r' => return Err(inside),
            '\\' if !is_raw => inside = escape(text, inside)?,
            _ => inside += 1,
        }
    }
    Err(text.len())
}

/// The end of the escape sequence at `at`. The error is the position of the character that cannot be part of it.
fn escape(text: &[char], at: usize) -> Result<usize, usize> {
    let tail = |from: usize, length: usize, wanted: fn(&char) -> bool| {
        let wrong = (from..from + length).find(|index| !text.get(*index).is_some_and(wanted));
        wrong.map_or(Ok(from + length), Err)
    };
    match text.get(at + 1) {
        Some('a' | 'b' | 'f' | 'n' | 'r' | 't' | 'v' | '"' | '\'' | '\\' | '?' | '`') => Ok(at + 2),
        Some('x' | 'X') => tail(at + 2, 2, char::is_ascii_hexdigit),
        Some('u') => tail(at + 2, 4, char::is_ascii_hexdigit),
        Some('U') => tail(at + 2, 8, char::is_ascii_hexdigit),
        Some('0'..='3') => tail(at + 2, 2, |digit| matches!(digit, '0'..='7')),
        _ => Err(at + 1),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &[(TokenKind, &str)]) {
        let characters: Vec<char> = text.chars().collect();
        let found = tokenize(&characters);
        assert!(found.faults.is_empty(), "{text}: {:?}", found.faults);
        let shown: Vec<(TokenKind, String)> = found
            .tokens
            .iter()
            .filter(|token| token.kind != TokenKind::EndOfInput)
            .map(|token| {
                (token.kind, characters[token.range.start as usize..token.range.end as usize].iter().collect())
            })
            .collect();
        let expected: Vec<(TokenKind, String)> =
            expected.iter().map(|(kind, text)| (*kind, (*text).to_owned())).collect();
        assert_eq!(shown, expected, "{text}");
    }

    #[test]
    fn the_longest_match_wins() {
        use TokenKind::{Dot, Float, Identifier, Int, Uint};
        check(
            "1.5e3 1e5 .5 1u 0x1F 0x1fU",
            &[(Float, "1.5e3"), (Float, "1e5"), (Float, ".5"), (Uint, "1u"), (Int, "0x1F"), (Uint, "0x1fU")],
        );
        check(
            "1.a 1e+ 0xg",
            &[
                (Int, "1"),
                (Dot, "."),
                (Identifier, "a"),
                (Int, "1"),
                (Identifier, "e"),
                (TokenKind::Plus, "+"),
                (Int, "0"),
                (Identifier, "xg"),
            ],
        );
    }

    #[test]
    fn strings_have_prefixes_and_three_quotes() {
        use TokenKind::{Bytes, Identifier, String};
        check(
            r#"'a\'b' r'\' b"x" bR'y' """a"b""" ''"#,
            &[
                (String, r"'a\'b'"),
                (String, r"r'\'"),
                (Bytes, r#"b"x""#),
                (Bytes, "bR'y'"),
                (String, r#""""a"b""""#),
                (String, "''"),
            ],
        );
        check("r\"\"\"\\\"\"\" rb", &[(String, "r\"\"\"\\\"\"\""), (Identifier, "rb")]);
    }

    #[test]
    fn what_begins_no_token_is_skipped_with_the_character_that_shows_it() {
        let found = tokenize(&"a & b $ 'x".chars().collect::<Vec<_>>());
        let faults: Vec<(u32, u32)> = found.faults.iter().map(|fault| (fault.range.start, fault.range.end)).collect();
        assert_eq!(faults, [(2, 4), (6, 7), (8, 10)]);
    }
}
