//! Characters to tokens.
//!
//! What makes YAML hard stands here: a text is a key only once the colon behind it is found, so tokens wait in a queue
//! until none of them may still become one.

use std::collections::{HashMap, VecDeque};

use super::source::{CharSource, Mark};
use crate::work;

/// Levels of flow collections within each other, and of indentation.
const DEPTH_MAX: usize = 10_000;
/// How far behind its start, in characters, a key may have its colon.
const KEY_LENGTH_MAX: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum YamlTokenKind {
    StreamEnd,
    /// `%YAML 1.1`
    VersionDirective(u8, u8),
    /// `%TAG !handle! prefix`
    TagDirective {
        handle: String,
        prefix: String,
    },
    DocumentStart,
    DocumentEnd,
    BlockSequenceStart,
    BlockMappingStart,
    BlockEnd,
    FlowSequenceStart,
    FlowSequenceEnd,
    FlowMappingStart,
    FlowMappingEnd,
    BlockEntry,
    FlowEntry,
    Key,
    Value,
    Alias(String),
    Anchor(String),
    Tag {
        handle: String,
        suffix: String,
    },
    /// `plain` if without quotes and no block of lines.
    Scalar {
        text: String,
        plain: bool,
    },
}

#[derive(Clone, Debug)]
pub(super) struct YamlToken {
    pub kind: YamlTokenKind,
    /// The line that it starts in, from 0.
    pub line: usize,
    /// The column of its line, from 0 in characters.
    pub column: usize,
}

/// What is wrong, with lines from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct ScanError {
    pub problem: String,
    pub line: usize,
    /// Where what is wrong began.
    pub context_line: usize,
    /// Go's library counts the lines of the scanner's faults from 1, and those of the parser's from 0.
    pub from_scanner: bool,
}

/// Where a key may have begun whose colon has not been found.
#[derive(Clone, Copy, Debug, Default)]
struct KeyStart {
    possible: bool,
    /// Nothing but a key can stand here.
    required: bool,
    token: usize,
    mark: Mark,
}

pub(super) struct YamlScanner {
    source: CharSource,
    tokens: VecDeque<YamlToken>,
    /// How many tokens have been taken.
    taken: usize,
    ended: bool,
    flow_level: usize,
    /// The column of the innermost block, -1 outside all blocks.
    indent: isize,
    indents: Vec<isize>,
    key_allowed: bool,
    /// One for each flow level and one for all blocks.
    keys: Vec<KeyStart>,
    level_by_token: HashMap<usize, usize>,
}

type Scanned<T = ()> = Result<T, ScanError>;

impl YamlScanner {
    /// The first line has the number `line`.
    pub fn new(bytes: &[u8], line: usize) -> Self {
        YamlScanner {
            source: CharSource::new(bytes, line),
            tokens: VecDeque::new(),
            taken: 0,
            ended: false,
            flow_level: 0,
            indent: -1,
            indents: Vec::new(),
            key_allowed: true,
            keys: vec![KeyStart::default()],
            level_by_token: HashMap::new(),
        }
    }

    /// The next token; the stream's end stays there.
    pub fn peek(&mut self) -> Scanned<&YamlToken> {
        if let Err(fault) = self.fill() {
            return Err(self.unless_unreadable(fault));
        }
        if let Some(problem) = self.source.fault() {
            return Err(ScanError { problem: problem.to_owned(), ..ScanError::default() });
        }
        Ok(self.tokens.front().expect("the queue was filled"))
    }

    /// Takes the token that was looked at.
    pub fn take(&mut self) -> YamlTokenKind {
        if self.tokens.len() == 1 && self.ended {
            return YamlTokenKind::StreamEnd;
        }
        self.taken += 1;
        self.tokens.pop_front().map_or(YamlTokenKind::StreamEnd, |token| token.kind)
    }

    /// A character that is not allowed is found before anything that is wrong behind it.
    fn unless_unreadable(&self, fault: ScanError) -> ScanError {
        match self.source.fault() {
            Some(problem) => ScanError { problem: problem.to_owned(), ..ScanError::default() },
            None => fault,
        }
    }

    /// Fetches tokens until the first of them is sure to be the first.
    fn fill(&mut self) -> Scanned {
        loop {
            if !self.tokens.is_empty() {
                match self.level_by_token.get(&self.taken).copied() {
                    Some(level) if self.check_key(level)? && !self.ended => {}
                    _ => return Ok(()),
                }
            }
            let start = self.source.at.index;
            self.fetch()?;
            work::bytes(self.source.at.index - start);
        }
    }

    fn fault<T>(&self, context: Mark, problem: &str) -> Scanned<T> {
        Err(ScanError {
            problem: problem.to_owned(),
            line: self.source.at.line,
            context_line: context.line,
            from_scanner: true,
        })
    }

    fn push(&mut self, start: Mark, kind: YamlTokenKind) {
        self.tokens.push_back(YamlToken { kind, line: start.line, column: start.column });
    }

    /// A token of `length` characters.
    fn push_sign(&mut self, length: usize, kind: YamlTokenKind) {
        self.push(self.source.at, kind);
        self.source.skip(length);
    }

    fn fetch(&mut self) -> Scanned {
        self.skip_to_token();
        self.close_blocks(self.source.at.column.cast_signed());
        let in_flow = self.flow_level > 0;
        let ends_word = self.source.is_blank_or_end(1);
        match self.source.peek(0) {
            '\0' => self.end_stream(),
            '%' if self.source.at.column == 0 => self.directive(),
            '-' if self.source.is_document_mark('-') => self.document_mark(YamlTokenKind::DocumentStart),
            '.' if self.source.is_document_mark('.') => self.document_mark(YamlTokenKind::DocumentEnd),
            '[' => self.open_flow(YamlTokenKind::FlowSequenceStart),
            '{' => self.open_flow(YamlTokenKind::FlowMappingStart),
            ']' => self.close_flow(YamlTokenKind::FlowSequenceEnd),
            '}' => self.close_flow(YamlTokenKind::FlowMappingEnd),
            ',' => self.flow_entry(),
            '-' if ends_word => self.block_entry(),
            '?' if in_flow || ends_word => self.key(),
            ':' if in_flow || ends_word => self.value(),
            '*' => self.anchor(YamlTokenKind::Alias),
            '&' => self.anchor(YamlTokenKind::Anchor),
            '!' => self.tag(),
            '|' if !in_flow => self.block_scalar(true),
            '>' if !in_flow => self.block_scalar(false),
            '\'' => self.quoted_scalar(true),
            '"' => self.quoted_scalar(false),
            '-' | '?' | ':' => self.plain_scalar(),
            '\t' | '#' | '|' | '>' | '%' | '@' | '`' => {
                self.fault(self.source.at, "found character that cannot start any token")
            }
            _ => self.plain_scalar(),
        }
    }

    /// Goes behind spaces, comments and line breaks.
    fn skip_to_token(&mut self) {
        loop {
            let tabs_too = self.flow_level > 0 || !self.key_allowed;
            while self.source.peek(0) == ' ' || (tabs_too && self.source.peek(0) == '\t') {
                self.source.skip(1);
            }
            self.source.skip_comment();
            if self.source.take_break().is_none() {
                return;
            }
            if self.flow_level == 0 {
                self.key_allowed = true;
            }
        }
    }

    /// Opens a block at `column`, whose token stands before the token numbered `before`, or last.
    fn open_block(&mut self, column: usize, before: Option<usize>, kind: YamlTokenKind, start: Mark) -> Scanned {
        if self.flow_level > 0 || self.indent >= column.cast_signed() {
            return Ok(());
        }
        self.indents.push(self.indent);
        self.indent = column.cast_signed();
        if self.indents.len() > DEPTH_MAX {
            let context = self.keys.last().map(|key| key.mark).unwrap_or_default();
            return self.fault(context, &format!("exceeded max depth of {DEPTH_MAX}"));
        }
        self.insert(before, YamlToken { kind, line: start.line, column: start.column });
        Ok(())
    }

    /// Puts a token before the one numbered `before`; last, if there is none or it has been taken.
    fn insert(&mut self, before: Option<usize>, token: YamlToken) {
        let at = before.and_then(|number| number.checked_sub(self.taken)).unwrap_or(self.tokens.len());
        self.tokens.insert(at, token);
    }

    /// Closes the blocks that are indented more than `column`.
    fn close_blocks(&mut self, column: isize) {
        if self.flow_level > 0 {
            return;
        }
        while self.indent > column {
            self.push(self.source.at, YamlTokenKind::BlockEnd);
            self.indent = self.indents.pop().unwrap_or(-1);
        }
    }

    /// Notes that a key may begin with the next token.
    fn start_key(&mut self) -> Scanned {
        if !self.key_allowed {
            return Ok(());
        }
        let mark = self.source.at;
        let required = self.flow_level == 0 && self.indent == mark.column.cast_signed();
        self.drop_key()?;
        let token = self.taken + self.tokens.len();
        self.level_by_token.insert(token, self.keys.len() - 1);
        if let Some(key) = self.keys.last_mut() {
            *key = KeyStart { possible: true, required, token, mark };
        }
        Ok(())
    }

    /// What began here is not a key.
    fn drop_key(&mut self) -> Scanned {
        let Some(key) = self.keys.last_mut().filter(|key| key.possible) else { return Ok(()) };
        key.possible = false;
        let KeyStart { required, token, mark, .. } = *key;
        if required {
            return self.fault(mark, "could not find expected ':'");
        }
        self.level_by_token.remove(&token);
        Ok(())
    }

    /// Whether the key of `level` may still find its colon.
    fn check_key(&mut self, level: usize) -> Scanned<bool> {
        let at = self.source.at;
        let Some(key) = self.keys.get_mut(level).filter(|key| key.possible) else { return Ok(false) };
        if key.mark.line == at.line && at.index <= key.mark.index + KEY_LENGTH_MAX {
            return Ok(true);
        }
        key.possible = false;
        let KeyStart { required, mark, .. } = *key;
        if required { self.fault(mark, "could not find expected ':'") } else { Ok(false) }
    }

    fn end_stream(&mut self) -> Scanned {
        if self.source.at.column > 0 {
            self.source.at.column = 0;
            self.source.at.line += 1;
        }
        self.close_blocks(-1);
        self.drop_key()?;
        self.key_allowed = false;
        self.push(self.source.at, YamlTokenKind::StreamEnd);
        self.ended = true;
        Ok(())
    }

    fn document_mark(&mut self, kind: YamlTokenKind) -> Scanned {
        self.close_blocks(-1);
        self.drop_key()?;
        self.key_allowed = false;
        self.push_sign(3, kind);
        Ok(())
    }

    fn open_flow(&mut self, kind: YamlTokenKind) -> Scanned {
        self.start_key()?;
        let token = self.taken + self.tokens.len();
        self.keys.push(KeyStart { token, mark: self.source.at, ..KeyStart::default() });
        self.flow_level += 1;
        if self.flow_level > DEPTH_MAX {
            return self.fault(self.source.at, &format!("exceeded max depth of {DEPTH_MAX}"));
        }
        self.key_allowed = true;
        self.push_sign(1, kind);
        Ok(())
    }

    fn close_flow(&mut self, kind: YamlTokenKind) -> Scanned {
        self.drop_key()?;
        if self.flow_level > 0 {
            self.flow_level -= 1;
            if let Some(key) = self.keys.pop() {
                self.level_by_token.remove(&key.token);
            }
        }
        self.key_allowed = false;
        self.push_sign(1, kind);
        Ok(())
    }

    fn flow_entry(&mut self) -> Scanned {
        self.drop_key()?;
        self.key_allowed = true;
        self.push_sign(1, YamlTokenKind::FlowEntry);
        Ok(())
    }

    fn block_entry(&mut self) -> Scanned {
        let start = self.source.at;
        if self.flow_level == 0 {
            if !self.key_allowed {
                return self.fault(start, "block sequence entries are not allowed in this context");
            }
            self.open_block(start.column, None, YamlTokenKind::BlockSequenceStart, start)?;
        }
        self.drop_key()?;
        self.key_allowed = true;
        self.push_sign(1, YamlTokenKind::BlockEntry);
        Ok(())
    }

    /// `? key`
    fn key(&mut self) -> Scanned {
        let start = self.source.at;
        if self.flow_level == 0 {
            if !self.key_allowed {
                return self.fault(start, "mapping keys are not allowed in this context");
            }
            self.open_block(start.column, None, YamlTokenKind::BlockMappingStart, start)?;
        }
        self.drop_key()?;
        self.key_allowed = self.flow_level == 0;
        self.push_sign(1, YamlTokenKind::Key);
        Ok(())
    }

    fn value(&mut self) -> Scanned {
        let level = self.keys.len() - 1;
        if self.check_key(level)? {
            let KeyStart { token, mark, .. } = self.keys[level];
            self.insert(Some(token), YamlToken { kind: YamlTokenKind::Key, line: mark.line, column: mark.column });
            self.open_block(mark.column, Some(token), YamlTokenKind::BlockMappingStart, mark)?;
            self.keys[level].possible = false;
            self.level_by_token.remove(&token);
            self.key_allowed = false;
        } else {
            if self.flow_level == 0 {
                let start = self.source.at;
                if !self.key_allowed {
                    return self.fault(start, "mapping values are not allowed in this context");
                }
                self.open_block(start.column, None, YamlTokenKind::BlockMappingStart, start)?;
            }
            self.key_allowed = self.flow_level == 0;
        }
        self.push_sign(1, YamlTokenKind::Value);
        Ok(())
    }

    fn directive(&mut self) -> Scanned {
        self.close_blocks(-1);
        self.drop_key()?;
        self.key_allowed = false;
        let start = self.source.at;
        self.source.skip(1);
        let name = self.word();
        if name.is_empty() {
            return self.fault(start, "could not find expected directive name");
        }
        if !self.source.is_blank_or_end(0) {
            return self.fault(start, "found unexpected non-alphabetical character");
        }
        let kind = match name.as_str() {
            "YAML" => {
                self.source.skip_blanks();
                let major = self.version_number(start)?;
                if self.source.peek(0) != '.' {
                    return self.fault(start, "did not find expected digit or '.' character");
                }
                self.source.skip(1);
                YamlTokenKind::VersionDirective(major, self.version_number(start)?)
            }
            "TAG" => {
                self.source.skip_blanks();
                let handle = self.tag_handle(true, start)?;
                if !self.source.is_blank(0) {
                    return self.fault(start, "did not find expected whitespace");
                }
                self.source.skip_blanks();
                let prefix = self.tag_uri(None, start)?;
                if !self.source.is_blank_or_end(0) {
                    return self.fault(start, "did not find expected whitespace or line break");
                }
                YamlTokenKind::TagDirective { handle, prefix }
            }
            _ => return self.fault(start, "found unknown directive name"),
        };
        self.end_line(start)?;
        self.push(start, kind);
        Ok(())
    }

    /// The rest of a line, which may only be a comment, and its line break.
    fn end_line(&mut self, context: Mark) -> Scanned {
        self.source.skip_blanks();
        self.source.skip_comment();
        if !self.source.is_break_or_end(0) {
            return self.fault(context, "did not find expected comment or line break");
        }
        self.source.take_break();
        Ok(())
    }

    /// A number of one or two digits.
    fn version_number(&mut self, context: Mark) -> Scanned<u8> {
        let mut number = 0;
        let mut digits = 0;
        while let Some(digit) = self.source.peek(0).to_digit(10) {
            digits += 1;
            if digits > 2 {
                return self.fault(context, "found extremely long version number");
            }
            number = number * 10 + digit as u8;
            self.source.skip(1);
        }
        if digits == 0 { self.fault(context, "did not find expected version number") } else { Ok(number) }
    }

    /// ASCII letters, digits, `_` and `-`.
    fn word(&mut self) -> String {
        let mut word = String::new();
        while let 'a'..='z' | 'A'..='Z' | '0'..='9' | '_' | '-' = self.source.peek(0) {
            word.push(self.source.take());
        }
        word
    }

    fn anchor(&mut self, kind: fn(String) -> YamlTokenKind) -> Scanned {
        self.start_key()?;
        self.key_allowed = false;
        let start = self.source.at;
        self.source.skip(1);
        let name = self.word();
        let ends_well = self.source.is_blank_or_end(0)
            || matches!(self.source.peek(0), '?' | ':' | ',' | ']' | '}' | '%' | '@' | '`');
        if name.is_empty() || !ends_well {
            return self.fault(start, "did not find expected alphabetic or numeric character");
        }
        self.push(start, kind(name));
        Ok(())
    }

    /// `!<uri>`, `!handle!suffix`, `!suffix` or `!`.
    fn tag(&mut self) -> Scanned {
        self.start_key()?;
        self.key_allowed = false;
        let start = self.source.at;
        let (handle, suffix) = if self.source.peek(1) == '<' {
            self.source.skip(2);
            let suffix = self.tag_uri(None, start)?;
            if self.source.peek(0) != '>' {
                return self.fault(start, "did not find the expected '>'");
            }
            self.source.skip(1);
            (String::new(), suffix)
        } else {
            let handle = self.tag_handle(false, start)?;
            if handle.len() > 1 && handle.ends_with('!') {
                let suffix = self.tag_uri(None, start)?;
                (handle, suffix)
            } else {
                match self.tag_uri(Some(&handle[1..]), start)? {
                    suffix if suffix.is_empty() => (suffix, "!".to_owned()),
                    suffix => ("!".to_owned(), suffix),
                }
            }
        };
        if !self.source.is_blank_or_end(0) {
            return self.fault(start, "did not find expected whitespace or line break");
        }
        self.push(start, YamlTokenKind::Tag { handle, suffix });
        Ok(())
    }

    /// `!`, `!!`, `!word!`; outside a directive also `!word`, which then is the start of a suffix.
    fn tag_handle(&mut self, in_directive: bool, context: Mark) -> Scanned<String> {
        if self.source.peek(0) != '!' {
            return self.fault(context, "did not find expected '!'");
        }
        self.source.skip(1);
        let mut handle = format!("!{}", self.word());
        if self.source.peek(0) == '!' {
            handle.push(self.source.take());
        } else if in_directive && handle != "!" {
            return self.fault(context, "did not find expected '!'");
        }
        Ok(handle)
    }

    /// A URI; `head` is what has been read of it, and allows it to be empty.
    fn tag_uri(&mut self, head: Option<&str>, context: Mark) -> Scanned<String> {
        let mut uri = head.unwrap_or_default().as_bytes().to_vec();
        let mut is_there = head.is_some();
        loop {
            match self.source.peek(0) {
                '%' => self.uri_escape(context, &mut uri)?,
                sign if sign.is_ascii_alphanumeric() || "_-;/?:@&=+$,.!~*'()[]".contains(sign) => {
                    uri.push(sign as u8);
                    self.source.skip(1);
                }
                _ => break,
            }
            is_there = true;
        }
        if is_there {
            Ok(String::from_utf8_lossy(&uri).into_owned())
        } else {
            self.fault(context, "did not find expected tag URI")
        }
    }

    /// A character as `%C3%A9`.
    fn uri_escape(&mut self, context: Mark, uri: &mut Vec<u8>) -> Scanned {
        let mut width = 0;
        let mut read = 0;
        while read == 0 || read < width {
            let (high, low) = (self.source.peek(1).to_digit(16), self.source.peek(2).to_digit(16));
            let ('%', Some(high), Some(low)) = (self.source.peek(0), high, low) else {
                return self.fault(context, "did not find URI escaped octet");
            };
            let octet = (high * 16 + low) as u8;
            if read > 0 && octet & 0xc0 != 0x80 {
                return self.fault(context, "found an incorrect trailing UTF-8 octet");
            }
            if read == 0 {
                width = match octet {
                    0x00..=0x7f => 1,
                    0xc0..=0xdf => 2,
                    0xe0..=0xef => 3,
                    0xf0..=0xf7 => 4,
                    _ => return self.fault(context, "found an incorrect leading UTF-8 octet"),
                };
            }
            uri.push(octet);
            self.source.skip(3);
            read += 1;
        }
        Ok(())
    }

    /// `|` or `>`, hints, and indented lines.
    fn block_scalar(&mut self, literal: bool) -> Scanned {
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
                // Lines are joined by a space, and paragraphs by what separates them.
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

    /// Goes to the first line with text, and to `indent` there. An `indent` of 0 is set to that of the line.
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

    fn quoted_scalar(&mut self, single: bool) -> Scanned {
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

    /// Reads blanks and line breaks between the words of a quoted text. One break is a space, more are one less.
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
    fn plain_scalar(&mut self) -> Scanned {
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

    /// Appends what is not space, with the space that stands before it.
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

/// What stands between the words of a text without quotes.
#[derive(Default)]
struct ScalarSpace {
    blanks: String,
    first_break: Option<char>,
    more_breaks: String,
}

/// Appends what line breaks between words amount to.
fn push_folded(text: &mut String, first_break: Option<char>, more_breaks: &str) {
    match first_break {
        Some('\n') if more_breaks.is_empty() => text.push(' '),
        Some('\n') | None => {}
        Some(separator) => text.push(separator),
    }
    text.push_str(more_breaks);
}
