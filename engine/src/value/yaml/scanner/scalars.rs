//! Scalars: blocks of lines, in quotes, and plain.

use super::{Scanned, YamlScanner, YamlTokenKind};
use crate::value::yaml::source::Mark;

impl YamlScanner {
    /// `|` or `>`, hints, and indented lines.
    pub(super) fn block_scalar(&mut self, literal: bool) -> Scanned {
        self.drop_key()?;
        self.key_allowed = true;
        let start = self.source.at;
        self.source.skip(1);
        let mut chomping = self.chomping();
        let mut increment = 0;
        if let Some(digit) = self.source.peek(0).to_digit(10) {
            if digit == 0 {
                return self.fault(start, "found an indentation indicator equal to 0");
            }
            increment = digit as usize;
            self.source.skip(1);
            chomping = chomping.or_else(|| self.chomping());
        }
        self.end_line(start)?;

        let parent = usize::try_from(self.indent).unwrap_or(0);
        let mut indent = if increment > 0 { parent + increment } else { 0 };
        let mut text = String::new();
        let mut line_break = None;
        let mut empty_lines = self.empty_lines(&mut indent, start)?;
        let mut after_blank = false;
        while self.source.at.column == indent && !self.source.is_end() {
            let before_blank = self.source.is_blank(0);
            match line_break {
                // Lines are joined by a space, and paragraphs by the empty lines between them.
                Some('\n') if !literal && !after_blank && !before_blank => {
                    text.extend(empty_lines.is_empty().then_some(' '));
                }
                Some(line_break) => text.push(line_break),
                None => {}
            }
            text.push_str(&empty_lines);
            after_blank = before_blank;
            while !self.source.is_break_or_end(0) {
                text.push(self.source.take());
            }
            line_break = self.source.take_break();
            empty_lines = self.empty_lines(&mut indent, start)?;
        }
        if chomping != Some('-') {
            text.extend(line_break);
        }
        if chomping == Some('+') {
            text.push_str(&empty_lines);
        }
        self.push(start, YamlTokenKind::Scalar { text, plain: false });
        Ok(())
    }

    fn chomping(&mut self) -> Option<char> {
        match self.source.peek(0) {
            '+' | '-' => Some(self.source.take()),
            _ => None,
        }
    }

    /// Moves to the first line with text, and to `indent` there. An `indent` of 0 is set to that of the line.
    fn empty_lines(&mut self, indent: &mut usize, context: Mark) -> Scanned<String> {
        let mut breaks = String::new();
        let mut column_max = 0;
        loop {
            while (*indent == 0 || self.source.at.column < *indent) && self.source.peek(0) == ' ' {
                self.source.skip(1);
            }
            column_max = column_max.max(self.source.at.column);
            if (*indent == 0 || self.source.at.column < *indent) && self.source.peek(0) == '\t' {
                return self.fault(context, "found a tab character where an indentation space is expected");
            }
            match self.source.take_break() {
                Some(line_break) => breaks.push(line_break),
                None => break,
            }
        }
        if *indent == 0 {
            *indent = column_max.max(usize::try_from(self.indent + 1).unwrap_or(0)).max(1);
        }
        Ok(breaks)
    }

    pub(super) fn quoted_scalar(&mut self, single: bool) -> Scanned {
        self.start_key()?;
        self.key_allowed = false;
        let start = self.source.at;
        let quote = self.source.take();
        let mut text = String::new();
        loop {
            if self.source.is_document_mark('-') || self.source.is_document_mark('.') {
                return self.fault(start, "found unexpected document indicator");
            }
            if self.source.is_end() {
                return self.fault(start, "found unexpected end of stream");
            }
            let mut escaped_break = false;
            while !self.source.is_blank_or_end(0) {
                match self.source.peek(0) {
                    '\'' if single && self.source.peek(1) == '\'' => {
                        self.source.skip(2);
                        text.push('\'');
                    }
                    sign if sign == quote => break,
                    '\\' if !single && self.source.is_break(1) => {
                        self.source.skip(1);
                        self.source.take_break();
                        escaped_break = true;
                        break;
                    }
                    '\\' if !single => text.push(self.escape(start)?),
                    _ => text.push(self.source.take()),
                }
            }
            if self.source.peek(0) == quote {
                break;
            }
            self.fold_space(&mut text, escaped_break);
        }
        self.source.skip(1);
        self.push(start, YamlTokenKind::Scalar { text, plain: false });
        Ok(())
    }

    /// Reads blanks and line breaks between the words of a quoted text. One break becomes a space; several become one
    /// break fewer.
    fn fold_space(&mut self, text: &mut String, mut at_line_start: bool) {
        let mut blanks = String::new();
        let mut first_break = None;
        let mut more_breaks = String::new();
        let mut folds = at_line_start;
        loop {
            if self.source.is_blank(0) {
                let blank = self.source.take();
                if !at_line_start {
                    blanks.push(blank);
                }
            } else if let Some(line_break) = self.source.take_break() {
                if !at_line_start {
                    first_break = Some(line_break)
                } else {
                    more_breaks.push(line_break)
                }
                at_line_start = true;
                folds = true;
            } else {
                break;
            }
        }
        if folds { push_folded(text, first_break, &more_breaks) } else { text.push_str(&blanks) }
    }

    /// An escape of a double-quoted text.
    fn escape(&mut self, context: Mark) -> Scanned<char> {
        let digits = match self.source.peek(1) {
            'x' => 2,
            'u' => 4,
            'U' => 8,
            sign => {
                let character = match sign {
                    '0' => '\0',
                    'a' => '\x07',
                    'b' => '\x08',
                    't' | '\t' => '\t',
                    'n' => '\n',
                    'v' => '\x0b',
                    'f' => '\x0c',
                    'r' => '\r',
                    'e' => '\x1b',
                    ' ' | '"' | '\'' | '\\' => sign,
                    'N' => '\u{85}',
                    '_' => '\u{a0}',
                    'L' => '\u{2028}',
                    'P' => '\u{2029}',
                    _ => return self.fault(context, "found unknown escape character"),
                };
                self.source.skip(2);
                return Ok(character);
            }
        };
        self.source.skip(2);
        let mut code = 0_u32;
        for ahead in 0..digits {
            let Some(digit) = self.source.peek(ahead).to_digit(16) else {
                return self.fault(context, "did not find expected hexdecimal number");
            };
            code = (code << 4) + digit;
        }
        let Some(character) = char::from_u32(code) else {
            return self.fault(context, "found invalid Unicode character escape code");
        };
        self.source.skip(digits);
        Ok(character)
    }

    /// A text without quotes, of one line or several.
    pub(super) fn plain_scalar(&mut self) -> Scanned {
        self.start_key()?;
        self.key_allowed = false;
        let start = self.source.at;
        let indent = self.indent + 1;
        let in_flow = self.flow_level > 0;
        let mut text = String::new();
        let mut space = ScalarSpace::default();
        loop {
            if self.source.is_document_mark('-') || self.source.is_document_mark('.') || self.source.peek(0) == '#' {
                break;
            }
            self.plain_words(in_flow, &mut text, &mut space);
            if !self.source.is_blank(0) && !self.source.is_break(0) {
                break;
            }
            self.plain_space(start, indent, &mut space)?;
            if !in_flow && self.source.at.column.cast_signed() < indent {
                break;
            }
        }
        if space.first_break.is_some() {
            self.key_allowed = true;
        }
        self.push(start, YamlTokenKind::Scalar { text, plain: true });
        Ok(())
    }

    /// Appends words, each with the whitespace before it.
    fn plain_words(&mut self, in_flow: bool, text: &mut String, space: &mut ScalarSpace) {
        while !self.source.is_blank_or_end(0) {
            match self.source.peek(0) {
                ':' if self.source.is_blank_or_end(1) => break,
                ',' | '?' | '[' | ']' | '{' | '}' if in_flow => break,
                _ => {}
            }
            if space.first_break.is_some() {
                push_folded(text, space.first_break.take(), &space.more_breaks);
                space.more_breaks.clear();
            } else {
                text.push_str(&space.blanks);
            }
            space.blanks.clear();
            text.push(self.source.take());
        }
    }

    fn plain_space(&mut self, start: Mark, indent: isize, space: &mut ScalarSpace) -> Scanned {
        loop {
            if self.source.is_blank(0) {
                let is_indentation = space.first_break.is_some();
                let too_early = self.source.at.column.cast_signed() < indent;
                if is_indentation && too_early && self.source.peek(0) == '\t' {
                    return self.fault(start, "found a tab character that violates indentation");
                }
                let blank = self.source.take();
                if !is_indentation {
                    space.blanks.push(blank);
                }
            } else if let Some(line_break) = self.source.take_break() {
                match space.first_break {
                    None => space.first_break = Some(line_break),
                    Some(_) => space.more_breaks.push(line_break),
                }
            } else {
                return Ok(());
            }
        }
    }
}

/// The whitespace between the words of a text without quotes.
#[derive(Default)]
struct ScalarSpace {
    blanks: String,
    first_break: Option<char>,
    more_breaks: String,
}

/// Appends the folded form of line breaks between words.
fn push_folded(text: &mut String, first_break: Option<char>, more_breaks: &str) {
    match first_break {
        Some('\n') if more_breaks.is_empty() => text.push(' '),
        Some('\n') | None => {}
        Some(separator) => text.push(separator),
    }
    text.push_str(more_breaks);
}
