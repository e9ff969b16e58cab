//! The path of fields that a name in an expression refers to.
//!
//! Input: an expression and a position. Output: the variable that the operand there begins with, and the steps from it:
//! for `p.name` in `self.ports.all(p, p.name != '')` they are `self` and `ports[0].name`.

use super::outline::OutlineStep;
use super::types::{NameToken, opening, place_of, variables_of_macro, word};
use crate::cel::escape::unescape;
use crate::cel::lexer::{Token, TokenKind};

/// The number of nested macros that are followed; those further out are not.
const DEPTH_MAX: usize = 32;

/// A variable, and the fields below it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VariableFields {
    /// `self`, `object`, …
    pub root: String,
    /// The steps below it; the first item of a list stands for all.
    pub steps: Vec<OutlineStep>,
}

/// The path that the name at a position refers to; `None` if there is no name, or it is the result of a function.
pub fn way_at(text: &[char], at: usize) -> Option<VariableFields> {
    let NameToken { tokens, found, is_called } = place_of(text, at)?;
    (!is_called).then(|| Finder { text, tokens: &tokens }.operand(found, DEPTH_MAX))?
}

struct Finder<'t> {
    text: &'t [char],
    tokens: &'t [Token],
}

impl Finder<'_> {
    fn word(&self, at: usize) -> String {
        word(self.text, &self.tokens[at])
    }

    fn kind(&self, at: usize) -> TokenKind {
        self.tokens[at].kind
    }

    /// The path of the operand with this last token.
    fn operand(&self, last: usize, depth: usize) -> Option<VariableFields> {
        // The chain is read from its end to its beginning.
        let (mut at, mut steps) = (last, Vec::new());
        let root = loop {
            match self.kind(at) {
                TokenKind::Identifier | TokenKind::EscapedIdentifier => {
                    let word = self.word(at);
                    let is_selected = at > 1 && self.kind(at - 1) == TokenKind::Dot;
                    if !is_selected {
                        break word;
                    }
                    let name = unescape(&word).map(|name| name.to_string());
                    steps.push(OutlineStep::Key(name.unwrap_or(word)));
                    at -= 2;
                }
                TokenKind::RightBracket => {
                    let open = opening(self.tokens, at).filter(|open| *open > 0)?;
                    let is_key = at == open + 2 && self.kind(open + 1) == TokenKind::String;
                    steps.push(if is_key { OutlineStep::Key(self.unquoted(open + 1)) } else { OutlineStep::Item(0) });
                    at = open - 1;
                }
                _ => return None,
            }
        };
        steps.reverse();
        match self.range_of(&root, at) {
            None => Some(VariableFields { root, steps }),
            Some(range) => {
                let way = self.operand(range, depth.checked_sub(1)?)?;
                let item = std::iter::once(OutlineStep::Item(0));
                Some(VariableFields { root: way.root, steps: way.steps.into_iter().chain(item).chain(steps).collect() })
            }
        }
    }

    fn unquoted(&self, at: usize) -> String {
        self.word(at).trim_matches(['\'', '"']).to_owned()
    }

    /// The last token of the target of the innermost macro around `at` that binds this variable.
    fn range_of(&self, variable: &str, at: usize) -> Option<usize> {
        let mut closed = 0_usize;
        for open in (0..at).rev() {
            match self.kind(open) {
                TokenKind::RightParenthesis => closed += 1,
                TokenKind::LeftParenthesis if closed > 0 => closed -= 1,
                TokenKind::LeftParenthesis if self.binds(open, variable) => return open.checked_sub(3),
                _ => {}
            }
        }
        None
    }

    /// Whether the parenthesis opened here belongs to a macro whose item variable is this one.
    fn binds(&self, open: usize, variable: &str) -> bool {
        let item = variables_of_macro(self.text, self.tokens, open).pop();
        item.is_some_and(|item| self.word(item) == variable)
    }
}

#[cfg(test)]
mod tests {
    use super::super::outline::shown;
    use super::*;

    /// `‸` marks the position.
    #[track_caller]
    fn check(text: &str, expected: &str) {
        let at = text.chars().position(|sign| sign == '‸').expect("the test has a place");
        let text: Vec<char> = text.chars().filter(|sign| *sign != '‸').collect();
        let told = way_at(&text, at).map(|VariableFields { root, steps }| format!("{root} {}", shown(&steps)));
        assert_eq!(told.as_deref().unwrap_or("-"), expected);
    }

    #[test]
    fn a_name_stands_for_fields() {
        check("self.‸a == 1", "self a");
        check("self.a.‸b.c == 1", "self a.b");
        check("self.a[0].‸b == 1", "self a[0].b");
        check("object.labels['x'].‸y", "object labels.x.y");
        check("self.__namespace__‸ == ''", "-");
        check("self.‸__namespace__ == ''", "self namespace");
        check("‸self == oldSelf", "self ");
        check("self.‸size() > 1", "-");
        check("f(self.a).‸b", "-");
    }

    #[test]
    fn variables_of_macros_are_items() {
        check("self.a.all(x, x.‸b == 1)", "self a[0].b");
        check("self.all(x, self.exists_one(y, x.a == y.‸b))", "self [0].b");
        check("self.a.all(x, x.b.exists(x, x.‸c))", "self a[0].b[0].c");
        check("self.a.all(i, x, x.‸b == i)", "self a[0].b");
        check("self.a.map(x, y, x.‸b)", "self a[0].b");
        check("self.a.map(x, y, y.‸b)", "y b");
        check("self.a.all(x, true) && x.‸b", "x b");
        check("self.a.filter(x, x.b).all(y, y.‸c)", "-");
    }
}
