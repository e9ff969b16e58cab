//! What an expression can name at a position within it.
//!
//! Input: the environment of the expression, and its text up to a position, which may be incomplete. Output: the
//! variables there, including those of enclosing macros, and the type of the value before a dot.

use crate::cel::env::Env;
use crate::cel::lexer::{Token, TokenKind, tokenize};
use crate::cel::types::Type;

/// The macros with a target, and their parameters.
pub const MACROS: [(&str, &str); 11] = [
    ("all", "x, predicate"),
    ("exists", "x, predicate"),
    ("exists_one", "x, predicate"),
    ("existsOne", "i, x, predicate"),
    ("map", "x, value"),
    ("filter", "x, predicate"),
    ("sortBy", "x, key"),
    ("transformList", "i, x, value"),
    ("transformMap", "k, v, value"),
    ("optMap", "x, value"),
    ("optFlatMap", "x, optional"),
];

/// The macros with one variable; a second name is another argument, as in `map(x, condition, value)`.
const OF_ONE: [&str; 5] = ["map", "filter", "sortBy", "optMap", "optFlatMap"];

/// The number of enclosing calls that are considered; those further out are not.
const DEPTH_MAX: usize = 32;

/// What is being typed in an expression.
pub struct Typed {
    /// The characters of the name that have been typed.
    pub written: std::ops::Range<usize>,
    /// The type of the value before the dot, if there is one; `Dyn` if it is unknown.
    pub receiver: Option<Type>,
    /// The environment with the variables of enclosing macros.
    pub env: Env,
}

/// Describes what is being typed at the end of `text`; `None` within a string or a comment.
pub fn typed(text: &[char], env: &Env) -> Option<Typed> {
    if is_within_quotes(text) {
        return None;
    }
    let mut tokens = tokenize(text).tokens;
    tokens.pop();
    let end = text.len();
    let is_name =
        |token: &Token| text.get(token.range.start as usize).is_some_and(|sign| sign.is_alphabetic() || *sign == '_');
    let written = match tokens.last() {
        Some(token) if token.range.end as usize == end && is_name(token) => {
            let start = token.range.start as usize;
            tokens.pop();
            start..end
        }
        _ => end..end,
    };
    let env = with_macros(text, &tokens, env.clone());
    let has_dot = tokens.last().is_some_and(|token| token.kind == TokenKind::Dot);
    let receiver = has_dot.then(|| type_before(text, &tokens[..tokens.len() - 1], &env));
    Some(Typed { written, receiver, env })
}

/// A name in an expression.
pub struct ExpressionName {
    /// The name.
    pub name: String,
    /// The type of the whole operand up to the name; `Dyn` if it is unknown.
    pub ty: Type,
    /// For a function or macro that is called, the type of its target, if it has one.
    pub call: Option<Option<Type>>,
}

/// A name among the tokens of an expression.
pub(super) struct NameToken {
    /// All tokens, without the end of input.
    pub tokens: Vec<Token>,
    /// The index of the name.
    pub found: usize,
    /// Whether a parenthesis follows.
    pub is_called: bool,
}

/// Finds the name at the character `at`.
pub(super) fn place_of(text: &[char], at: usize) -> Option<NameToken> {
    let mut tokens = tokenize(text).tokens;
    tokens.pop();
    let holds = |token: &Token| token.range.start as usize <= at && at < token.range.end as usize;
    let found = tokens.iter().position(|token| holds(token) && is_name(token))?;
    let is_called = tokens.get(found + 1).is_some_and(|next| next.kind == TokenKind::LeftParenthesis);
    Some(NameToken { tokens, found, is_called })
}

/// Whether a token is a name, with or without backquotes.
pub(super) fn is_name(token: &Token) -> bool {
    matches!(token.kind, TokenKind::Identifier | TokenKind::EscapedIdentifier)
}

/// The text of a token; a name without its backquotes.
pub(super) fn word(text: &[char], token: &Token) -> String {
    let word: String = text[token.range.start as usize..token.range.end as usize].iter().collect();
    word.trim_matches('`').to_owned()
}

/// The tokens of the variables of the macro whose parenthesis is opened at `open`; none if it is not one of these
/// macros, or the variables are not complete. Of two variables, the second is the item.
pub(super) fn variables_of_macro(text: &[char], tokens: &[Token], open: usize) -> Vec<usize> {
    let Some([.., dot, name]) = tokens.get(..open) else { return Vec::new() };
    let name = word(text, name);
    if dot.kind != TokenKind::Dot || !MACROS.iter().any(|(known, _)| *known == name) {
        return Vec::new();
    }
    let may_have = if OF_ONE.contains(&name.as_str()) { 1 } else { 2 };
    let is_variable = |at: &usize| matches!(tokens.get(*at..at + 2), Some([name, comma]) if is_name(name) && comma.kind == TokenKind::Comma);
    [open + 1, open + 3].into_iter().take(may_have).take_while(is_variable).collect()
}

/// Describes the name at the character `at`.
pub fn named_at(text: &[char], at: usize, env: &Env) -> Option<ExpressionName> {
    let NameToken { tokens, found, is_called } = place_of(text, at)?;
    let env = with_macros(text, &tokens[..found], env.clone());
    let name = word(text, &tokens[found]);
    let call = is_called.then(|| {
        let before = tokens[..found].split_last().filter(|(dot, _)| dot.kind == TokenKind::Dot);
        before.map(|(_, before)| type_before(text, before, &env))
    });
    Some(ExpressionName { name, ty: type_before(text, &tokens[..=found], &env), call })
}

fn is_within_quotes(text: &[char]) -> bool {
    let mut quote = None;
    let mut at = 0;
    while at < text.len() {
        match (quote, text[at]) {
            (None, sign @ ('"' | '\'')) => quote = Some(sign),
            (None, '/') if text.get(at + 1) == Some(&'/') => {
                let Some(length) = text[at..].iter().position(|sign| *sign == '\n') else { return true };
                at += length;
            }
            (Some(_), '\\') => at += 1,
            (Some(open), sign) if open == sign => quote = None,
            _ => {}
        }
        at += 1;
    }
    quote.is_some()
}

/// Adds the variables of the macros whose parentheses are still open after the tokens.
fn with_macros(text: &[char], tokens: &[Token], mut env: Env) -> Env {
    let mut open = Vec::new();
    for (at, token) in tokens.iter().enumerate() {
        match token.kind {
            TokenKind::LeftParenthesis => open.push(at),
            TokenKind::RightParenthesis => _ = open.pop(),
            _ => {}
        }
    }
    for at in open.into_iter().take(DEPTH_MAX) {
        let names = variables_of_macro(text, tokens, at);
        if names.is_empty() {
            continue;
        }
        let over = type_before(text, &tokens[..at - 2], &env);
        for (name, ty) in names.iter().zip(variables(&over, names.len())) {
            env = env.with_variable(&word(text, &tokens[*name]), ty);
        }
    }
    env
}

/// The types of a macro's variables, for a target of this type.
fn variables(over: &Type, count: usize) -> Vec<Type> {
    match (over, count) {
        (Type::List(element), 1) => vec![(**element).clone()],
        (Type::List(element), _) => vec![Type::Int, (**element).clone()],
        (Type::Map(of), 1) => vec![of.0.clone()],
        (Type::Map(of), _) => vec![of.0.clone(), of.1.clone()],
        (other, _) => vec![other.optional_content().cloned().unwrap_or(Type::Dyn); count],
    }
}

/// The type of the operand at the end of some tokens: a name with its selections, calls and indices.
fn type_before(text: &[char], tokens: &[Token], env: &Env) -> Type {
    let Some(start) = operand(tokens) else { return Type::Dyn };
    let end = tokens.last().map_or(0, |token| token.range.end as usize);
    let written: String = text[tokens[start].range.start as usize..end].iter().collect();
    env.compile(&written).map_or(Type::Dyn, |checked| checked.result_type().clone())
}

/// The index where the operand at the end of some tokens begins.
fn operand(tokens: &[Token]) -> Option<usize> {
    let mut at = tokens.len();
    loop {
        at = at.checked_sub(1)?;
        match tokens[at].kind {
            TokenKind::RightParenthesis | TokenKind::RightBracket | TokenKind::RightBrace => {
                let is_list = tokens[at].kind == TokenKind::RightBracket;
                at = opening(tokens, at)?;
                let before = at.checked_sub(1).map(|before| tokens[before].kind);
                match before {
                    // A call, or an index.
                    Some(TokenKind::Identifier) => continue,
                    Some(TokenKind::RightParenthesis | TokenKind::RightBracket) if is_list => continue,
                    _ => return Some(at),
                }
            }
            TokenKind::Identifier | TokenKind::EscapedIdentifier => {
                let before = at.checked_sub(1).map(|before| tokens[before].kind);
                if before != Some(TokenKind::Dot) {
                    return Some(at);
                }
                at -= 1;
            }
            TokenKind::String | TokenKind::Bytes | TokenKind::Int | TokenKind::Uint | TokenKind::Float => {
                return Some(at);
            }
            _ => return None,
        }
    }
}

/// The index of the bracket that the token at `close` closes.
pub(super) fn opening(tokens: &[Token], close: usize) -> Option<usize> {
    let mut depth = 0_usize;
    for at in (0..=close).rev() {
        match tokens[at].kind {
            TokenKind::RightParenthesis | TokenKind::RightBracket | TokenKind::RightBrace => depth += 1,
            TokenKind::LeftParenthesis | TokenKind::LeftBracket | TokenKind::LeftBrace => {
                depth = depth.checked_sub(1)?
            }
            _ => {}
        }
        if depth == 0 {
            return Some(at);
        }
    }
    None
}

/// Whether a function with the target type `param` can be called on `receiver`, as far as their outermost types tell.
pub fn fits(param: &Type, receiver: &Type) -> bool {
    match (param, receiver) {
        (Type::Dyn | Type::Param(_), _) | (_, Type::Dyn) => true,
        (Type::Opaque(one), Type::Opaque(other)) => one.name == other.name,
        (Type::Object(one), Type::Object(other)) => one == other,
        (one, other) => std::mem::discriminant(one) == std::mem::discriminant(other),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cel::env::Expressions;

    fn env() -> Env {
        let ports = Type::list(Type::map(Type::String, Type::Int));
        Env::kubernetes(Expressions::Stored).with_variable("self", Type::map(Type::String, ports))
    }

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let text: Vec<char> = text.chars().collect();
        let told = typed(&text, &env()).map(|typed| {
            let written: String = text[typed.written.clone()].iter().collect();
            typed.receiver.map_or(written.clone(), |receiver| format!("{receiver}|{written}"))
        });
        assert_eq!(told.as_deref().unwrap_or("-"), expected);
    }

    #[test]
    fn what_stands_before_a_dot_has_a_type() {
        check("self.a.", "list(map(string, int))|");
        check("size(self.a) > 1 && self.a[0].ab", "map(string, int)|ab");
        check("self.a[0].x == 1 || 'x'.", "string|");
        check("(self.a + self.b).fi", "list(map(string, int))|fi");
        check("has(se", "se");
        check("self == 'a.", "-");
        check("", "");
    }

    #[test]
    fn macros_have_variables() {
        check("self.a.all(p, p.", "map(string, int)|");
        check("self.a.all(p, p.exists(k, k.", "string|");
        check("self.a.all(i, p, p.", "map(string, int)|");
        check("self.a.map(p, q, p.", "map(string, int)|");
        check("self.a.all(p, p.x == 1) && self.", "map(string, list(map(string, int)))|");
    }

    #[test]
    fn macros_are_those_of_the_language() {
        for (name, parameters) in MACROS {
            let told = env()
                .compile(&format!("self.{name}({parameters})"))
                .map_or_else(|issues| issues.to_string(), |_| String::new());
            assert!(!told.contains(&format!("'{name}'")), "{told}");
        }
    }
}
