//! A text that is being edited, and positions in it.
//!
//! Input: edits as editors send them. Output: the text, and offsets for positions. A position counts lines, and UTF-16
//! code units within its line, both from 0: a character outside the basic plane counts as two. A position after the end
//! of a line means the line's end, and one within a character its beginning.

use std::ops;

use crate::value::yaml::TextPosition;
use crate::work;

/// A position in a text, as the Language Server Protocol counts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Position {
    /// The line, from 0.
    pub line: u32,
    /// The number of UTF-16 code units from the beginning of the line.
    pub character: u32,
}

/// The text from one position up to another.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TextRange {
    /// The first position.
    pub start: Position,
    /// The position after the last one.
    pub end: Position,
}

/// The replacement of a range.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Edit {
    /// The range that is replaced.
    pub range: TextRange,
    /// The new text.
    pub text: String,
}

/// A text and its lines, which end with `\n`, `\r\n` or `\r`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Text {
    text: String,
    /// The first byte of each line; there is at least one.
    starts: Vec<usize>,
}

impl<T: Into<String>> From<T> for Text {
    fn from(text: T) -> Self {
        let text = text.into();
        let mut starts = vec![0];
        note_starts(&text, 0, &mut starts);
        Text { text, starts }
    }
}

/// Adds the beginnings of the lines after `from`, which must not be within a line break.
fn note_starts(text: &str, from: usize, starts: &mut Vec<usize>) {
    let bytes = text.as_bytes();
    work::bytes(bytes.len() - from);
    for at in from..bytes.len() {
        let is_break = bytes[at] == b'\n' || (bytes[at] == b'\r' && bytes.get(at + 1) != Some(&b'\n'));
        if is_break {
            starts.push(at + 1);
        }
    }
}

impl Text {
    /// The whole text.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// The number of lines; the last one may be empty.
    pub fn line_count(&self) -> usize {
        self.starts.len()
    }

    /// The byte where a line begins, by its number from 0; the end of the text for lines after the last.
    pub fn line_start(&self, line: usize) -> usize {
        self.starts.get(line).copied().unwrap_or(self.text.len())
    }

    /// A line without its line break, by its number from 0; empty after the last line.
    pub fn line(&self, line: usize) -> &str {
        let whole = &self.text[self.line_start(line)..self.line_start(line + 1)];
        whole
            .strip_suffix('\n')
            .map_or_else(|| whole.strip_suffix('\r').unwrap_or(whole), |rest| rest.strip_suffix('\r').unwrap_or(rest))
    }

    /// The number of the line that contains a byte.
    pub fn line_of(&self, offset: usize) -> usize {
        self.starts.partition_point(|start| *start <= offset) - 1
    }

    /// The byte at a position.
    pub fn offset(&self, position: Position) -> usize {
        let line = position.line as usize;
        let text = self.line(line);
        let mut units = 0;
        for (at, sign) in text.char_indices() {
            units += sign.len_utf16();
            if units > position.character as usize {
                return self.line_start(line) + at;
            }
        }
        self.line_start(line) + text.len()
    }

    /// The position of a byte; within a character, that of its beginning.
    pub fn position(&self, offset: usize) -> Position {
        let mut offset = offset.min(self.text.len());
        while !self.text.is_char_boundary(offset) {
            offset -= 1;
        }
        let line = self.line_of(offset);
        let before = &self.text[self.line_start(line)..offset];
        Position { line: number(line), character: number(before.encode_utf16().count()) }
    }

    /// The positions of a range of bytes.
    pub fn range(&self, bytes: &ops::Range<usize>) -> TextRange {
        TextRange { start: self.position(bytes.start), end: self.position(bytes.end) }
    }

    /// The byte at a parser's position, which counts lines and characters from 1.
    pub fn offset_of(&self, place: TextPosition) -> usize {
        let line = place.line.saturating_sub(1);
        let text = self.line(line);
        let within = text.char_indices().nth(place.column.saturating_sub(1)).map_or(text.len(), |(at, _)| at);
        self.line_start(line) + within
    }

    /// Replaces `range` by `with`; its ends may be in the wrong order. Without a range, replaces the whole text.
    pub fn edit(&mut self, range: Option<TextRange>, with: &str) {
        let Some(range) = range else {
            *self = Text::from(with);
            return;
        };
        let (one, other) = (self.offset(range.start), self.offset(range.end));
        let (start, end) = (one.min(other), one.max(other));
        self.text.replace_range(start..end, with);
        // The new text may join a line break to the line before, so that line is scanned again.
        let line = self.line_of_start(start);
        self.starts.truncate(line + 1);
        let from = self.starts[line];
        note_starts(&self.text, from, &mut self.starts);
    }

    /// The line before the one that contains a byte, or the first one.
    fn line_of_start(&self, offset: usize) -> usize {
        self.line_of(offset).saturating_sub(1)
    }
}

fn number(count: usize) -> u32 {
    u32::try_from(count).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, character: u32) -> Position {
        Position { line, character }
    }

    #[test]
    fn positions_count_utf_16_units() {
        let text = Text::from("aä𝄞b\n𝄞\n");
        for (position, offset) in
            [(at(0, 0), 0), (at(0, 1), 1), (at(0, 2), 3), (at(0, 4), 7), (at(0, 5), 8), (at(1, 2), 13)]
        {
            assert_eq!((text.offset(position), text.position(offset)), (offset, position));
        }
        // Within a pair of surrogates, after the end of a line, after the last line.
        assert_eq!([at(0, 3), at(0, 99), at(9, 9)].map(|position| text.offset(position)), [3, 8, 14]);
    }

    #[test]
    fn lines_end_in_any_way() {
        let text = Text::from("a\r\nb\rc\n");
        assert_eq!([0, 1, 2, 3, 4].map(|line| text.line(line)), ["a", "b", "c", "", ""]);
        assert_eq!(text.line_count(), 4);
        assert_eq!(text.position(2), at(0, 2));
    }

    #[test]
    fn places_count_characters() {
        let text = Text::from("ä: 𝄞x\n");
        assert_eq!(text.position(text.offset_of(TextPosition { line: 1, column: 5 })), at(0, 5));
    }

    #[test]
    fn an_edit_is_what_a_fresh_text_would_be() {
        let mut text = Text::from("a: 1\r\nb: 2\n");
        let edits = [
            (Some(TextRange { start: at(0, 4), end: at(1, 0) }), "\r"),
            (Some(TextRange { start: at(1, 0), end: at(1, 0) }), "\n"),
            (Some(TextRange { start: at(1, 4), end: at(0, 1) }), "𝄞\nx"),
            (Some(TextRange { start: at(0, 2), end: at(0, 2) }), "y"),
            (None, "z\n"),
            (Some(TextRange { start: at(9, 0), end: at(9, 9) }), "end"),
        ];
        for (range, with) in edits {
            text.edit(range, with);
            assert_eq!(text, Text::from(text.as_str()));
        }
        assert_eq!(text.as_str(), "z\nend");
    }
}
