//! Sentences about fields, as paragraphs, lists and code.
//!
//! In: a text as authors of definitions write it: a kind of Markdown, often cut off or odd. Out: its blocks, and within them what
//! stands between backticks as code. Nothing else is taken for markup.

/// A part of a text that stands by itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Block {
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
pub fn blocks(text: &str) -> Vec<Block> {
    let mut read = Reader::default();
    text.lines().for_each(|line| read.line(line));
    read.end();
    read.blocks
}

/// A sentence with its code. As in Markdown, as many backticks end it as begin it.
pub fn spans(text: &str) -> Vec<Span> {
    let mut found = Vec::new();
    let (mut rest, mut words) = (text, String::new());
    while let Some(start) = rest.find('`') {
        let length = rest[start..].len() - rest[start..].trim_start_matches('`').len();
        let (fence, behind) = rest[start..].split_at(length);
        words.push_str(&rest[..start]);
        let Some(end) = closing(behind, length) else {
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
enum Item<'l> {
    Bullet(&'l str),
    Number(usize, &'l str),
}

fn item(line: &str) -> Option<Item<'_>> {
    let line = line.trim_start();
    if let Some(rest) = ["- ", "* ", "+ "].iter().find_map(|sign| line.strip_prefix(sign)) {
        return Some(Item::Bullet(rest));
    }
    let digits = line.len() - line.trim_start_matches(|sign: char| sign.is_ascii_digit()).len();
    let rest = [". ", ") "].iter().find_map(|sign| line[digits..].strip_prefix(sign))?;
    Some(Item::Number(line[..digits].parse().ok()?, rest))
}

#[derive(Default)]
struct Reader {
    blocks: Vec<Block>,
    open: Open,
    /// Whether the line before was empty.
    is_apart: bool,
}

/// The block that the next line may belong to.
#[derive(Default)]
enum Open {
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

impl Reader {
    fn line(&mut self, line: &str) {
        if let Open::Fenced(lines) = &mut self.open {
            if line.trim().starts_with("```") {
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
        if line.trim_start().starts_with("```") {
            self.begin(Open::Fenced(Vec::new()));
            return;
        }
        match item(line) {
            Some(Item::Bullet(text)) => self.bullet(text),
            Some(Item::Number(number, text)) => self.numbered(number, text),
            None => self.words(line, is_apart),
        }
    }

    fn bullet(&mut self, text: &str) {
        match &mut self.open {
            Open::Bullets(items) => items.push(text.to_owned()),
            _ => self.begin(Open::Bullets(vec![text.to_owned()])),
        }
    }

    fn numbered(&mut self, number: usize, text: &str) {
        match &mut self.open {
            Open::Numbered(_, items) => items.push(text.to_owned()),
            _ => self.begin(Open::Numbered(number, vec![text.to_owned()])),
        }
    }

    fn words(&mut self, line: &str, is_apart: bool) {
        let is_indented = line.starts_with([' ', '\t']);
        let is_code = line.starts_with('\t') || line.starts_with("    ");
        let joined = |before: &mut String| {
            before.push('\n');
            before.push_str(line.trim());
        };
        match &mut self.open {
            Open::Paragraph(before) if !is_apart => joined(before),
            Open::Bullets(items) | Open::Numbered(_, items) if !is_apart || is_indented => {
                items.last_mut().into_iter().for_each(joined);
            }
            Open::Indented(lines) if is_code => {
                lines.extend(is_apart.then(String::new));
                lines.push(line.to_owned());
            }
            _ if is_code => self.begin(Open::Indented(vec![line.to_owned()])),
            _ => self.begin(Open::Paragraph(line.trim().to_owned())),
        }
    }

    fn begin(&mut self, next: Open) {
        self.end();
        self.open = next;
    }

    fn end(&mut self) {
        let items = |items: Vec<String>| items.iter().map(|item| spans(item)).collect();
        self.blocks.extend(match std::mem::take(&mut self.open) {
            Open::Nothing => None,
            Open::Paragraph(text) => Some(Block::Paragraph(spans(&text))),
            Open::Bullets(texts) => Some(Block::Bullets(items(texts))),
            Open::Numbered(from, texts) => Some(Block::Numbered(from, items(texts))),
            Open::Fenced(lines) | Open::Indented(lines) => Some(Block::Code(outdented(&lines))),
        });
    }
}

/// Lines without the indent that all of them have.
fn outdented(lines: &[String]) -> String {
    let indent = |line: &&String| line.len() - line.trim_start().len();
    let common = lines.iter().filter(|line| !line.trim().is_empty()).map(|line| indent(&line)).min().unwrap_or(0);
    lines.iter().map(|line| line.get(common..).unwrap_or_default().trim_end()).collect::<Vec<_>>().join("\n")
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
                Block::Paragraph(spans) => format!("P {}", said(spans)),
                Block::Bullets(items) => format!("- {}", lists(items)),
                Block::Numbered(from, items) => format!("{from} {}", lists(items)),
                Block::Code(code) => format!("C {}", code.replace('\n', "/")),
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
    fn backticks_hold_code() {
        check("a `b` c ``d`e`` f", &["P a <b> c <d`e> f"]);
        check("an odd ` and `` too", &["P an odd ` and `` too"]);
        check(&format!("is {}", quoted("a ` b")), &["P is <a ` b>"]);
        check(&quoted("^[a-z]$"), &["P <^[a-z]$>"]);
    }
}
