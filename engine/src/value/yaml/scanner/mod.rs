//! Characters to tokens.
//!
//! This is the hard part of YAML: a text is a key only once the colon after it is found, so tokens wait in a queue
//! until none of them can still become a key.

mod properties;
mod scalars;

use std::collections::{HashMap, VecDeque};

use super::source::{CharSource, Mark};
use crate::work;

/// The maximum depth of nested flow collections, and of indentation.
const DEPTH_MAX: usize = 10_000;
/// The maximum distance from the start of a key to its colon, in characters.
const KEY_LENGTH_MAX: usize = 1024;

#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::value::yaml) enum YamlTokenKind {
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
    /// `plain` if it has no quotes and is not a block scalar.
    Scalar {
        text: String,
        plain: bool,
    },
}

#[derive(Clone, Debug)]
pub(in crate::value::yaml) struct YamlToken {
    pub kind: YamlTokenKind,
    /// The line at which it starts, from 0.
    pub line: usize,
    /// The column at which it starts, from 0 in characters.
    pub column: usize,
}

/// An error, with lines from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::value::yaml) struct ScanError {
    pub problem: String,
    pub line: usize,
    /// The line at which the erroneous part began.
    pub context_line: usize,
    /// Go's library counts lines from 1 in the scanner's errors, and from 0 in the parser's.
    pub from_scanner: bool,
}

/// A possible start of a key whose colon has not been found.
#[derive(Clone, Copy, Debug, Default)]
struct KeyStart {
    possible: bool,
    /// Only a key is possible here.
    required: bool,
    token: usize,
    mark: Mark,
}

pub(in crate::value::yaml) struct YamlScanner {
    source: CharSource,
    tokens: VecDeque<YamlToken>,
    /// The number of tokens taken.
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
    /// `line` is the number of the first line.
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

    /// The next token; the end of the stream is never consumed.
    pub fn peek(&mut self) -> Scanned<&YamlToken> {
        if let Err(fault) = self.fill() {
            return Err(self.unless_unreadable(fault));
        }
        if let Some(problem) = self.source.fault() {
            return Err(ScanError { problem: problem.to_owned(), ..ScanError::default() });
        }
        Ok(self.tokens.front().expect("the queue was filled"))
    }

    /// Takes the token that was peeked at.
    pub fn take(&mut self) -> YamlTokenKind {
        if self.tokens.len() == 1 && self.ended {
            return YamlTokenKind::StreamEnd;
        }
        self.taken += 1;
        self.tokens.pop_front().map_or(YamlTokenKind::StreamEnd, |token| token.kind)
    }

    /// A character that is not allowed takes precedence over an error after it.
    fn unless_unreadable(&self, fault: ScanError) -> ScanError {
        match self.source.fault() {
            Some(problem) => ScanError { problem: problem.to_owned(), ..ScanError::default() },
            None => fault,
        }
    }

    /// Fetches tokens until the first one can't be preceded by an inserted token.
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

    /// Skips spaces, comments and line breaks.
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

    /// Opens a block at `column`; its token is inserted before the token numbered `before`, or at the end.
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

    /// Inserts a token before the one numbered `before`, or at the end if there is none or it has been taken.
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

    /// Records that a key may begin with the next token.
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

    /// The possible key that began here is not a key.
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

    /// Whether the key of `level` can still find its colon.
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
}
