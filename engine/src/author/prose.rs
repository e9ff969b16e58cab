//! Sentences about fields, as paragraphs, lists and code.
//!
//! Input: a text as authors of definitions write it: a kind of Markdown, often cut off or odd. Output: its blocks, and within them
//! what stands between backticks as code. Nothing else is taken for markup.

use std::collections::BTreeSet;

use crate::work;

/// The digits of an item's number at most, as in CommonMark; with more it is a word.
const DIGITS_MAX: usize = 9;

/// A part of a text that stands by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TextBlock {
    /// Sentences.
    Paragraph(Vec<Span>),
    /// Items with dots.
    Bullets(Vec<Vec<Span>>),
    /// Items with numbers, which rise from this one.
    Numbered(usize, Vec<Vec<Span>>),
    /// Lines that stay as they are.
    Code(String),
}

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Span {
    /// Words.
    Text(String),
    /// What stands between backticks.
    Code(String),
}

/// The blocks of a text.
pub fn blocks(text: &str) -> Vec<TextBlock> {
    let mut read = ProseReader::default();
    text.lines().for_each(|line| read.line(line));
    read.end();
    read.blocks
}

/// A sentence with its code. As in Markdown, as many backticks end it as begin it.
pub fn spans(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let (mut rest, mut words) = (text, String::new());
    // What has no end has none further on: each length is looked for in vain once.
    let mut endless = BTreeSet::new();
    while let Some(start) = rest.find('`') {
        let length = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        let (fence, behind) = rest[start..].split_at(length);
        words.push_str(&rest[..start]);
        let end = if endless.contains(&length) { None } else { closing(behind, length) };
        let Some(end) = end else {
            endless.insert(length);
            words.push_str(fence);
            rest = behind;
            continue;
        };
        if !words.is_empty() {
            found.push(Span::Text(std::mem::take(&mut words)));
        }
        found.push(Span::Code(inner(&behind[..end]).to_owned()));
        rest = &behind[end + length..];
    }
    words.push_str(rest);
    if !words.is_empty() {
        found.push(Span::Text(words));
    }
    found
}

/// A text between as many backticks as it needs, which [`spans`] reads as code.
pub fn quoted(text: &str) -> String {
    let longest = text.split(|sign| sign != '`').map(str::len).max().unwrap_or_default();
    let (fence, space) = ("`".repeat(longest + 1), if longest > 0 { " " } else { "" });
    format!("{fence}{space}{text}{space}{fence}")
}

/// Where so many backticks stand, and no more.
fn closing(text: &str, length: usize) -> Option<usize> {
    let mut at = 0;
    while let Some(start) = text[at..].find('`') {
        let run = text[at + start..].len() - text[at + start..].trim_start_matches('`').len();
        work::bytes(start + run);
        if run == length {
            return Some(at + start);
        }
        at += start + run;
    }
    None
}

/// Code without the spaces that keep its own backticks away from those around it.
fn inner(code: &str) -> &str {
    let is_spaced = code.starts_with(' ') && code.ends_with(' ') && code.contains('`');
    if is_spaced { &code[1..code.len() - 1] } else { code }
}

/// What a line begins, of which this is the rest.
enum LineItem<'l> {
    Bullet(&'l str),
    Number(usize, &'l str),
}

fn item(line: &str) -> Option<LineItem<'_>> {
    let line = line.trim_start();
    if let Some(rest) = ["- ", "* ", "+ "].iter().find_map(|sign| line.strip_prefix(sign)) {
        return Some(LineItem::Bullet(rest));
    }
    let digits = line.len() - line.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
    let rest =
        [". ", ") "].iter().find_map(|sign| line[digits..].strip_prefix(sign)).filter(|_| digits <= DIGITS_MAX)?;
    Some(LineItem::Number(line[..digits].parse().ok()?, rest))
}

/// Whether a line opens or ends a fence. Of one that opens it, backticks further on make it a sentence with code.
fn is_fence(line: &str) -> bool {
    line.trim_start().strip_prefix("```").is_some_and(|rest| !rest.trim_start_matches('`').contains('`'))
}

/// Whether a line has the indent of code.
fn has_code_indent(line: &str) -> bool {
    line.starts_with('\t') || line.starts_with("    ")
}

#[derive(Default)]
struct ProseReader {
    blocks: Vec<TextBlock>,
    open: OpenBlock,
    /// Whether the line before was empty.
    is_apart: bool,
}

/// The block that the next line may belong to.
#[derive(Default)]
enum OpenBlock {
    #[default]
    Nothing,
    Paragraph(String),
    Bullets(Vec<String>),
    Numbered(usize, Vec<String>),
    /// Between fences.
    Fenced(Vec<String>),
    /// Behind an indent.
    Indented(Vec<String>),
}

impl ProseReader {
    fn line(&mut self, line: &str) {
        if let OpenBlock::Fenced(lines) = &mut self.open {
            if is_fence(line) {
                self.end();
            } else {
                lines.push(line.to_owned());
            }
            return;
        }
        if line.trim().is_empty() {
            self.is_apart = true;
            return;
        }
        let is_apart = std::mem::take(&mut self.is_apart);
        if self.is_code(line, is_apart) {
            self.code(line, is_apart);
            return;
        }
        if is_fence(line) {
            self.begin(OpenBlock::Fenced(Vec::new()));
            return;
        }
        match item(line).filter(|item| self.may_begin(item, is_apart)) {
            Some(LineItem::Bullet(text)) => self.bullet(text),
            Some(LineItem::Number(number, text)) => self.numbered(number, text),
            None => self.words(line, is_apart),
        }
    }

    /// Whether a line is code by its indent, which within a list is that of an item's further lines.
    fn is_code(&self, line: &str, is_apart: bool) -> bool {
        has_code_indent(line)
            && match self.open {
                OpenBlock::Nothing | OpenBlock::Indented(_) => true,
                OpenBlock::Paragraph(_) => is_apart,
                OpenBlock::Bullets(_) | OpenBlock::Numbered(..) | OpenBlock::Fenced(_) => false,
            }
    }

    fn code(&mut self, line: &str, is_apart: bool) {
        match &mut self.open {
            OpenBlock::Indented(lines) => {
                lines.extend(is_apart.then(String::new));
                lines.push(line.to_owned());
            }
            _ => self.begin(OpenBlock::Indented(vec![line.to_owned()])),
        }
    }

    /// Whether an item may begin here: within a paragraph a number other than the first is one of its words.
    fn may_begin(&self, item: &LineItem<'_>, is_apart: bool) -> bool {
        let is_within = matches!(self.open, OpenBlock::Paragraph(_)) && !is_apart;
        !is_within || matches!(item, LineItem::Bullet(_) | LineItem::Number(1, _))
    }

    fn bullet(&mut self, text: &str) {
        match &mut self.open {
            OpenBlock::Bullets(items) => items.push(text.to_owned()),
            _ => self.begin(OpenBlock::Bullets(vec![text.to_owned()])),
        }
    }

    fn numbered(&mut self, number: usize, text: &str) {
        match &mut self.open {
            OpenBlock::Numbered(_, items) => items.push(text.to_owned()),
            _ => self.begin(OpenBlock::Numbered(number, vec![text.to_owned()])),
        }
    }

    fn words(&mut self, line: &str, is_apart: bool) {
        let is_indented = line.starts_with([' ', '\t']);
        let joined = |before: &mut String| {
            before.push('\n');
            before.push_str(line.trim());
        };
        match &mut self.open {
            OpenBlock::Paragraph(before) if !is_apart => joined(before),
            OpenBlock::Bullets(items) | OpenBlock::Numbered(_, items) if !is_apart || is_indented => {
                items.last_mut().into_iter().for_each(joined);
            }
            _ => self.begin(OpenBlock::Paragraph(line.trim().to_owned())),
        }
    }

    fn begin(&mut self, next: OpenBlock) {
        self.end();
        self.open = next;
    }

    fn end(&mut self) {
        let items = |items: Vec<String>| items.iter().map(|item| spans(item)).collect();
        self.blocks.extend(match std::mem::take(&mut self.open) {
            OpenBlock::Nothing => None,
            OpenBlock::Paragraph(text) => Some(TextBlock::Paragraph(spans(&text))),
            OpenBlock::Bullets(texts) => Some(TextBlock::Bullets(items(texts))),
            OpenBlock::Numbered(from, texts) => Some(TextBlock::Numbered(from, items(texts))),
            OpenBlock::Fenced(lines) | OpenBlock::Indented(lines) => Some(TextBlock::Code(outdented(&lines))),
        });
    }
}

/// Lines without the indent that all of them have: spaces and tabs.
fn outdented(lines: &[String]) -> String {
    let indent = |line: &str| line.len() - line.trim_start_matches([' ', '\t']).len();
    let written = lines.iter().filter(|line| !line.trim().is_empty());
    let common = written.map(|line| indent(line)).min().unwrap_or(0);
    // A line without a word may be shorter.
    let shown = lines.iter().map(|line| line[common.min(indent(line))..].trim_end());
    shown.collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Blocks, a line each: `P` paragraphs, `-` bullets, `1` numbers, `C` code; code in sentences stands in `<>`.
    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let said = |spans: &Vec<Span>| -> String {
            let said = spans.iter().map(|span| match span {
                Span::Text(text) => text.replace('\n', "/"),
                Span::Code(code) => format!("<{code}>"),
            });
            said.collect()
        };
        let lists = |items: &[Vec<Span>]| items.iter().map(said).collect::<Vec<_>>().join("|");
        let told: Vec<String> = blocks(text)
            .iter()
            .map(|block| match block {
                TextBlock::Paragraph(spans) => format!("P {}", said(spans)),
                TextBlock::Bullets(items) => format!("- {}", lists(items)),
                TextBlock::Numbered(from, items) => format!("{from} {}", lists(items)),
                TextBlock::Code(code) => format!("C {}", code.replace('\n', "/")),
            })
            .collect();
        assert_eq!(told, expected, "{text}");
    }

    #[test]
    fn texts_have_paragraphs_lists_and_code() {
        check("a\nb\n\nc", &["P a/b", "P c"]);
        check("a:\n\n* b\n  c\n* d\n\n* e\nf\n\ng", &["P a:", "- b/c|d|e/f", "P g"]);
        check("a:\n1. b\n2) c\n\n   d\n- e", &["P a:", "1 b|c/d", "- e"]);
        check("a\n```yaml\nb:\n\n  - c\n```\nd", &["P a", "C b://  - c", "P d"]);
        check("a\n\n\tb\n\n\t  c\nd", &["P a", "C b//  c", "P d"]);
        check("```\nnever closed", &["C never closed"]);
        check("a\n    b", &["P a/b"]);
        check("  \n", &[]);
    }

    #[test]
    fn indented_examples_stay_whole() {
        let list = "Example:\n\n    containers:\n    - name: a\n      image: b\n\n    1. c\n    ```\nd";
        check(list, &["P Example:", "C containers:/- name: a/  image: b//1. c/```", "P d"]);
        check("Example:\n\n    - name: a\n", &["P Example:", "C - name: a"]);
        check("* a\n\n    - b", &["- a|b"]);
    }

    #[test]
    fn numbers_within_a_sentence_are_words() {
        check("It must be at least\n10. Otherwise\n- a", &["P It must be at least/10. Otherwise", "- a"]);
        check("Either\n1. a\n2. b\n\nor\n\n3. c", &["P Either", "1 a|b", "P or", "3 c"]);
        check("18446744073709551615. a\n1. b", &["P 18446744073709551615. a", "1 b"]);
        check("999999999. a\n1. b", &["999999999 a|b"]);
    }

    #[test]
    fn no_text_is_lost() {
        check("a\n```kubectl get x``` shows it\nb", &["P a/<kubectl get x> shows it/b"]);
        check("```\n a\n\u{3000}b\n```", &["C  a/\u{3000}b"]);
        check("```\n  a\n\n \n  b\n```", &["C a///b"]);
        check("```\na\n```b` c\n```", &["C a/```b` c"]);
    }

    #[test]
    fn a_length_without_an_end_is_looked_for_once() {
        let text: String = (1..200).map(|length| format!("{} ", "`".repeat(length % 10 + 1))).collect();
        let many = format!("{} x", (1..400).rev().map(|length| "`".repeat(length) + " ").collect::<String>());
        assert_eq!(spans(&many), [Span::Text(many.clone())]);
        assert!(spans(&text).iter().any(|span| matches!(span, Span::Code(_))));
    }

    #[test]
    fn backticks_hold_code() {
        check("a `b` c ``d`e`` f", &["P a <b> c <d`e> f"]);
        check("an odd ` and `` too", &["P an odd ` and `` too"]);
        check(&format!("is {}", quoted("a ` b")), &["P is <a ` b>"]);
        check(&quoted("^[a-z]$"), &["P <^[a-z]$>"]);
    }
}
