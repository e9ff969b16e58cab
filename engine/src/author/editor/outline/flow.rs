//! Reads collections in braces or brackets, part by part.
//!
//! Input: a text, and where a collection begins. Output: its parts, in order. A collection without an end ends with the
//! text.

use std::ops::Range;

/// How deep collections may be nested; deeper ones are read as scalars.
const FLOW_DEPTH_MAX: usize = 64;

/// A name in a collection, and its range.
pub(in crate::author::editor) type CollectionName = (String, Range<usize>);

/// The next part of a collection.
pub(in crate::author::editor) enum CollectionPart {
    /// A nested collection begins at `at`.
    Open { key: Option<CollectionName>, at: usize, is_map: bool },
    /// The innermost collection ends before this byte.
    Close(usize),
    /// A scalar.
    Entry { key: Option<CollectionName>, value: Range<usize>, is_map: bool },
}

/// Reads a collection in braces or brackets.
pub(in crate::author::editor) struct Flow<'t> {
    text: &'t str,
    pub begin: usize,
    at: usize,
    limit: usize,
    /// For each open collection, whether it is a map.
    open: Vec<bool>,
    key: Option<CollectionName>,
    start: usize,
    is_over: bool,
    /// A part to return before reading on.
    held: Option<CollectionPart>,
}

impl<'t> Flow<'t> {
    pub fn new(text: &'t str, begin: usize, limit: usize) -> Self {
        Flow { text, begin, at: begin, limit, open: Vec::new(), key: None, start: begin, is_over: false, held: None }
    }

    /// The byte where reading ended.
    pub fn end(&self) -> usize {
        self.at.min(self.limit)
    }

    /// The name that was read last, and the byte where the text after it begins: for an unfinished part.
    pub fn rest(self) -> (Option<CollectionName>, usize) {
        (self.key, self.start)
    }

    /// Returns the next part; `None` at the end of the collection or of the text.
    pub fn next(&mut self) -> Option<CollectionPart> {
        if let Some(held) = self.held.take() {
            return Some(held);
        }
        let bytes = self.text.as_bytes();
        while !self.is_over && self.at < self.limit {
            let at = self.at;
            self.at += 1;
            match bytes[at] {
                sign @ (b'{' | b'[')
                    if self.open.len() < FLOW_DEPTH_MAX && self.text[self.start..at].trim().is_empty()
                        || at == self.begin =>
                {
                    self.open.push(sign == b'{');
                    let key = self.key.take();
                    self.start = at + 1;
                    return Some(CollectionPart::Open { key, at, is_map: sign == b'{' });
                }
                b'}' | b']' => {
                    let entry = self.entry(at);
                    self.open.pop();
                    self.is_over = self.open.is_empty();
                    let close = CollectionPart::Close(at + 1);
                    match entry {
                        Some(entry) => {
                            self.held = Some(close);
                            return Some(entry);
                        }
                        None => return Some(close),
                    }
                }
                b',' => {
                    if let Some(entry) = self.entry(at) {
                        return Some(entry);
                    }
                }
                b':' if self.key.is_none()
                    && matches!(bytes.get(at + 1), None | Some(b' ' | b'\n' | b'\r' | b',' | b'}'))
                    || bytes[at] == b':'
                        && self.key.is_none()
                        && self.text[self.start..at].trim_start().starts_with('"') =>
                {
                    let range = trimmed(self.text, self.start..at);
                    let name = self.text[range.clone()].trim_matches(['"', '\'']).to_owned();
                    self.key = Some((name, range));
                    self.start = at + 1;
                }
                quote @ (b'"' | b'\'') if self.text[self.start..at].trim().is_empty() => self.skip_quoted(quote),
                _ => {}
            }
        }
        None
    }

    /// Returns the last part of a collection that the end of the text cuts off.
    pub fn finish(&mut self) -> Option<CollectionPart> {
        let is_over = std::mem::replace(&mut self.is_over, true);
        if is_over { None } else { self.entry(self.limit) }
    }

    fn skip_quoted(&mut self, quote: u8) {
        let bytes = self.text.as_bytes();
        let begin = self.at;
        while self.at < self.limit {
            let sign = bytes[self.at];
            self.at += if sign == b'\\' && quote == b'"' { 2 } else { 1 };
            if sign == quote {
                return;
            }
        }
        // It is unterminated: the rest is read as if the quote were an ordinary character.
        self.at = begin;
    }

    fn entry(&mut self, end: usize) -> Option<CollectionPart> {
        let value = trimmed(self.text, self.start.min(end)..end);
        self.start = end + 1;
        let key = self.key.take();
        let is_map = self.open.last() == Some(&true);
        (key.is_some() || !value.is_empty()).then_some(CollectionPart::Entry { key, value, is_map })
    }
}

/// Shrinks a range by the white space at its ends.
fn trimmed(text: &str, range: Range<usize>) -> Range<usize> {
    let whole = &text[range.clone()];
    let start = range.start + whole.len() - whole.trim_start().len();
    start..start + whole.trim().len()
}
