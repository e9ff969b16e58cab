//! CEL expressions in a document.
//!
//! Input: a document's outline. Output: each expression as the parser reads it, and the position in the text of each of
//! its characters, whatever quotes or block style it is written in.

use std::ops::Range;

use super::documents::Sort;
use super::outline::{Outline, OutlineNode, OutlineStep, ValueStyle};

/// The fields that hold expressions, in rules and in policies.
const OF_RULES: [&str; 2] = ["rule", "messageExpression"];
const OF_POLICIES: [&str; 3] = ["expression", "messageExpression", "valueExpression"];

/// An expression and its position.
#[derive(Clone, Debug)]
pub struct EditedExpression {
    /// The node whose value it is.
    pub node: usize,
    /// The characters of the expression, unescaped.
    pub text: Vec<char>,
    /// The byte of the text where each character begins, and the end.
    pub offsets: Vec<usize>,
}

/// All expressions of a document.
pub fn expressions(text: &str, outline: &Outline, sort: Sort) -> Vec<EditedExpression> {
    (1..outline.nodes.len())
        .filter(|node| is_expression(outline, *node, sort))
        .map(|node| expression(text, outline, node))
        .collect()
}

/// The expression that contains a byte or ends there.
pub fn expression_at(text: &str, outline: &Outline, sort: Sort, offset: usize) -> Option<EditedExpression> {
    let node = outline.at(offset)?;
    let Range { start, end } = outline.nodes[node].value;
    let is_value = start <= offset && offset <= end && is_expression(outline, node, sort);
    is_value.then(|| expression(text, outline, node))
}

/// Whether the value of a node is an expression.
pub fn is_expression(outline: &Outline, node: usize, sort: Sort) -> bool {
    let OutlineNode { step: OutlineStep::Key(name), parent: Some(parent), form, .. } = &outline.nodes[node] else {
        return false;
    };
    if *form == ValueStyle::Flow {
        return false;
    }
    match sort {
        Sort::Policy => OF_POLICIES.contains(&name.as_str()),
        Sort::Definition => {
            let list = outline.nodes[*parent].parent.map(|list| &outline.nodes[list].step);
            let is_listed = matches!(list, Some(OutlineStep::Key(list)) if list == "x-kubernetes-validations");
            is_listed && OF_RULES.contains(&name.as_str())
        }
        Sort::Object | Sort::Suite | Sort::Request | Sort::Other => false,
    }
}

/// Reads the value of a node as an expression.
pub fn expression(text: &str, outline: &Outline, node: usize) -> EditedExpression {
    let OutlineNode { value, form, .. } = &outline.nodes[node];
    let mut read = EditedExpression { node, text: Vec::new(), offsets: Vec::new() };
    match form {
        ValueStyle::Block => read.block(text, value.clone()),
        ValueStyle::Quoted(quote) => read.quoted(text, value.clone(), *quote),
        ValueStyle::Plain | ValueStyle::Below | ValueStyle::Flow => read.plain(text, value.clone()),
    }
    read
}

impl EditedExpression {
    /// The index of the character at a byte.
    pub fn index(&self, offset: usize) -> usize {
        self.offsets.partition_point(|start| *start < offset).min(self.text.len())
    }

    /// The bytes of a range of characters.
    pub fn bytes(&self, range: Range<usize>) -> Range<usize> {
        let at = |index: usize| self.offsets[index.min(self.text.len())];
        at(range.start)..at(range.end)
    }

    /// The bytes of the token at a line and a column of the expression, both counted from 1.
    pub fn place(&self, line: usize, column: usize) -> Range<usize> {
        let lines = self.text.iter().enumerate().filter(|(_, sign)| **sign == '\n').map(|(at, _)| at + 1);
        let start = [0].into_iter().chain(lines).nth(line.saturating_sub(1)).unwrap_or(0);
        let at = (start + column.saturating_sub(1)).min(self.text.len());
        // The position of a selection is its dot.
        let at = if self.text.get(at) == Some(&'.') { at + 1 } else { at };
        let is_word = |sign: &char| sign.is_alphanumeric() || *sign == '_';
        let length = self.text[at..].iter().take_while(|sign| is_word(sign)).count().max(1);
        self.bytes(at..at + length)
    }

    /// The expression as a string.
    pub fn written(&self) -> String {
        self.text.iter().collect()
    }

    fn push(&mut self, sign: char, at: usize) {
        self.text.push(sign);
        self.offsets.push(at);
    }

    fn plain(&mut self, text: &str, range: Range<usize>) {
        let mut signs = text[range.clone()].char_indices().peekable();
        while let Some((at, sign)) = signs.next() {
            if sign == '\n' {
                while signs.next_if(|(_, next)| next.is_whitespace()).is_some() {}
            }
            self.push(if sign == '\n' { ' ' } else { sign }, range.start + at);
        }
        self.offsets.push(range.end);
    }

    fn quoted(&mut self, text: &str, range: Range<usize>, quote: u8) {
        let quote = char::from(quote);
        let whole = &text[range.clone()];
        let is_closed = whole.len() > 1 && whole.ends_with(quote);
        let inner = &whole[1.min(whole.len())..if is_closed { whole.len() - 1 } else { whole.len() }];
        let begin = range.start + 1.min(whole.len());
        let mut signs = inner.char_indices().peekable();
        while let Some((at, sign)) = signs.next() {
            let read = match sign {
                '\'' if quote == '\'' => {
                    signs.next_if(|(_, next)| *next == '\'');
                    '\''
                }
                '\\' if quote == '"' => escaped(&mut signs),
                '\n' => {
                    while signs.next_if(|(_, next)| next.is_whitespace()).is_some() {}
                    ' '
                }
                sign => sign,
            };
            self.push(read, begin + at);
        }
        self.offsets.push(begin + inner.len());
    }

    fn block(&mut self, text: &str, range: Range<usize>) {
        let whole = &text[range.clone()];
        let is_folded = whole.starts_with('>');
        let head = whole.find('\n').map_or(whole.len(), |end| end + 1);
        let lines = || whole[head..].split_inclusive('\n');
        let indent_of = |line: &str| line.len() - line.trim_start_matches(' ').len();
        let indent = lines().find(|line| !line.trim().is_empty()).map_or(0, indent_of);
        let mut at = range.start + head;
        for line in lines() {
            let skipped = indent.min(indent_of(line));
            for (within, sign) in line.char_indices().skip_while(|(within, _)| *within < skipped) {
                let sign = if sign == '\n' && is_folded { ' ' } else { sign };
                self.push(sign, at + within);
            }
            at += line.len();
        }
        self.offsets.push(range.end);
    }
}

/// Reads an escape sequence after its backslash.
fn escaped(signs: &mut std::iter::Peekable<std::str::CharIndices<'_>>) -> char {
    let Some((_, sign)) = signs.next() else { return '\\' };
    let mut coded = |digits: usize| {
        let digits: String = (0..digits)
            .map_while(|_| signs.next_if(|(_, next)| next.is_ascii_hexdigit()))
            .map(|(_, digit)| digit)
            .collect();
        u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32).unwrap_or('\u{fffd}')
    };
    match sign {
        'n' => '\n',
        't' => '\t',
        'r' => '\r',
        '0' => '\0',
        'x' => coded(2),
        'u' => coded(4),
        'U' => coded(8),
        sign => sign,
    }
}

#[cfg(test)]
mod tests {
    use super::super::outline::outline;
    use super::*;

    #[track_caller]
    fn check(written: &str, reads: &str, place: (usize, usize), token: &str) {
        let text = format!("x-kubernetes-validations:\n- rule: {written}\n  message: m\n");
        let outline = outline(&text);
        let found = expressions(&text, &outline, Sort::Definition);
        assert_eq!(found.len(), 1, "{text}");
        assert_eq!(found[0].written(), reads);
        assert_eq!(&text[found[0].place(place.0, place.1)], token);
        assert_eq!(found[0].offsets.len(), found[0].text.len() + 1);
    }

    #[test]
    fn expressions_read_as_yaml_reads_them() {
        check("self.a == 1", "self.a == 1", (1, 6), "a");
        check("self.a\n    == 1", "self.a == 1", (1, 11), "1");
        check("'self == ''ä'' || x'", "self == 'ä' || x", (1, 16), "x");
        check("\"self == \\\"\\u00e4\\\" || x\"", "self == \"ä\" || x", (1, 16), "x");
        check("|\n    self.a\n      == x\n", "self.a\n  == x", (2, 6), "x");
        check(">-\n    self.a\n    == x", "self.a == x", (1, 11), "x");
    }
}
