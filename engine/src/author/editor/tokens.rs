//! Semantic tokens: the tokens of a text's expressions, for highlighting.
//!
//! Input: a text. Output: tokens in text order, each on one line.

use super::documents::{Head, parts};
use super::expression::expressions;
use super::outline::outline;
use super::text::{Text, TextRange};
use crate::cel::lexer::{Token as Lexeme, TokenKind, tokenize};

/// The kind of a token.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordKind {
    /// A variable.
    Variable,
    /// A field.
    Property,
    /// A function or a macro.
    Function,
    /// `in`, `true`, `false`, `null`.
    Keyword,
    /// A text.
    String,
    /// A number.
    Number,
    /// An operator.
    Operator,
}

/// A token of an expression.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ExpressionToken {
    /// Its range, on one line.
    pub range: TextRange,
    /// Its kind.
    pub kind: WordKind,
}

/// The tokens of all expressions in the text of a file.
pub fn tokens(name: &str, text: &Text) -> Vec<ExpressionToken> {
    let mut found = Vec::new();
    for part in parts(text.as_str()) {
        let own = &text.as_str()[part.range.clone()];
        let outline = outline(own);
        let sort = Head::of(own, &outline).sort(name);
        for expression in expressions(own, &outline, sort) {
            let lexemes = tokenize(&expression.text).tokens;
            for (at, lexeme) in lexemes.iter().enumerate() {
                let Some(kind) = kind(&lexemes, at) else { continue };
                let bytes = expression.bytes(lexeme.range.start as usize..lexeme.range.end as usize);
                // In a quoted scalar, the range of a token may include the white space up to the next character.
                let written = own[bytes.clone()].trim_end().len();
                let range = text.range(&(part.range.start + bytes.start..part.range.start + bytes.start + written));
                if range.start.line == range.end.line {
                    found.push(ExpressionToken { range, kind });
                }
            }
        }
    }
    found
}

fn kind(lexemes: &[Lexeme], at: usize) -> Option<WordKind> {
    let next = lexemes.get(at + 1).map(|lexeme| lexeme.kind);
    let before = at.checked_sub(1).map(|before| lexemes[before].kind);
    Some(match lexemes[at].kind {
        TokenKind::Identifier if next == Some(TokenKind::LeftParenthesis) => WordKind::Function,
        TokenKind::Identifier | TokenKind::EscapedIdentifier if before == Some(TokenKind::Dot) => WordKind::Property,
        TokenKind::Identifier | TokenKind::EscapedIdentifier => WordKind::Variable,
        TokenKind::In | TokenKind::True | TokenKind::False | TokenKind::Null => WordKind::Keyword,
        TokenKind::String | TokenKind::Bytes => WordKind::String,
        TokenKind::Int | TokenKind::Uint | TokenKind::Float => WordKind::Number,
        TokenKind::EndOfInput
        | TokenKind::Dot
        | TokenKind::Comma
        | TokenKind::LeftBracket
        | TokenKind::RightBracket
        | TokenKind::LeftBrace
        | TokenKind::RightBrace
        | TokenKind::LeftParenthesis
        | TokenKind::RightParenthesis => return None,
        _ => WordKind::Operator,
    })
}
