//! The characters of a YAML stream, read one by one.

use std::cell::Cell;

use crate::work;

/// How many bytes Go's library decodes at a time. A character that is not allowed is only detected with its part, and
/// so only takes precedence over a syntax error before it in the same part.
const PART_BYTES: usize = 512;

/// A position in the stream; all counts start at 0, in characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Mark {
    pub index: usize,
    pub line: usize,
    pub column: usize,
}

/// The characters of a stream and the next position to read. After the end come NULs, which a stream can't contain.
pub(super) struct CharSource {
    characters: Vec<char>,
    pub at: Mark,
    /// The position up to which characters have been examined.
    seen: Cell<usize>,
    fault: Option<(usize, &'static str)>,
}

impl CharSource {
    /// `line` is the number of the first line.
    pub fn new(bytes: &[u8], line: usize) -> Self {
        work::bytes(bytes.len());
        let mut characters = Vec::with_capacity(bytes.len());
        let fault = match bytes {
            [0xff, 0xfe, rest @ ..] => decode_utf16(rest, u16::from_le_bytes, &mut characters),
            [0xfe, 0xff, rest @ ..] => decode_utf16(rest, u16::from_be_bytes, &mut characters),
            [0xef, 0xbb, 0xbf, rest @ ..] => decode_utf8(rest, &mut characters),
            _ => decode_utf8(bytes, &mut characters),
        };
        CharSource { characters, at: Mark { line, ..Mark::default() }, seen: Cell::new(0), fault }
    }

    /// The error in the characters examined so far, if there is one.
    pub fn fault(&self) -> Option<&'static str> {
        self.fault.filter(|(part_start, _)| self.seen.get() > *part_start).map(|(_, problem)| problem)
    }

    /// The character `ahead` of the next one; NUL after the end.
    pub fn peek(&self, ahead: usize) -> char {
        let index = self.at.index + ahead;
        if index >= self.seen.get() {
            self.seen.set(index + 1);
        }
        self.characters.get(index).copied().unwrap_or('\0')
    }

    pub fn is_end(&self) -> bool {
        self.peek(0) == '\0'
    }

    /// A space or a tab.
    pub fn is_blank(&self, ahead: usize) -> bool {
        matches!(self.peek(ahead), ' ' | '\t')
    }

    pub fn is_break(&self, ahead: usize) -> bool {
        is_break(self.peek(ahead))
    }

    pub fn is_break_or_end(&self, ahead: usize) -> bool {
        let character = self.peek(ahead);
        is_break(character) || character == '\0'
    }

    pub fn is_blank_or_end(&self, ahead: usize) -> bool {
        self.is_blank(ahead) || self.is_break_or_end(ahead)
    }

    /// `---` or `...`, alone at the start of a line.
    pub fn is_document_mark(&self, sign: char) -> bool {
        self.at.column == 0 && (0..3).all(|ahead| self.peek(ahead) == sign) && self.is_blank_or_end(3)
    }

    /// Reads a character that is not a line break.
    pub fn take(&mut self) -> char {
        let character = self.peek(0);
        self.at.index += 1;
        self.at.column += 1;
        character
    }

    pub fn skip(&mut self, count: usize) {
        self.at.index += count;
        self.at.column += count;
    }

    pub fn skip_blanks(&mut self) {
        while self.is_blank(0) {
            self.skip(1);
        }
    }

    /// Skips a comment, if one begins here, to the end of the line.
    pub fn skip_comment(&mut self) {
        if self.peek(0) == '#' {
            while !self.is_break_or_end(0) {
                self.skip(1);
            }
        }
    }

    /// Reads a line break, if there is one here: as a line feed, except for the separators that only Unicode has.
    pub fn take_break(&mut self) -> Option<char> {
        let character = self.peek(0);
        if !is_break(character) {
            return None;
        }
        self.at.index += if character == '\r' && self.peek(1) == '\n' { 2 } else { 1 };
        self.at.column = 0;
        self.at.line += 1;
        Some(if matches!(character, '\u{2028}' | '\u{2029}') { character } else { '\n' })
    }
}

/// Line feed, carriage return, next line, and the line and paragraph separators.
pub(super) fn is_break(character: char) -> bool {
    matches!(character, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}')
}

fn is_allowed(character: char) -> bool {
    matches!(character,
        '\t' | '\n' | '\r' | ' '..='~' | '\u{85}' | '\u{a0}'..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..)
}

/// Appends characters up to the first invalid one; returns the start of its part, and the error.
fn decode_utf8(bytes: &[u8], characters: &mut Vec<char>) -> Option<(usize, &'static str)> {
    let mut part_start = 0;
    let mut part_end = PART_BYTES;
    let mut at = 0;
    while let Some(first) = bytes.get(at) {
        let width = match first {
            0x00..=0x7f => 1,
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            _ => 0,
        };
        if at + width > part_end {
            part_start = characters.len();
            part_end = at + PART_BYTES;
        }
        let fault = |problem| Some((part_start, problem));
        if width == 0 {
            return fault("invalid leading UTF-8 octet");
        }
        let Some(octets) = bytes.get(at..at + width) else {
            return Some((characters.len(), "incomplete UTF-8 octet sequence"));
        };
        if octets[1..].iter().any(|octet| octet & 0xc0 != 0x80) {
            return fault("invalid trailing UTF-8 octet");
        }
        let Some(character) = str::from_utf8(octets).ok().and_then(|text| text.chars().next()) else {
            let is_surrogate = octets.starts_with(&[0xed]);
            let is_too_large = octets[0] > 0xf4 || (octets[0] == 0xf4 && octets[1] > 0x8f);
            let is_unicode = !is_surrogate && !is_too_large;
            return fault(if is_unicode { "invalid length of a UTF-8 sequence" } else { "invalid Unicode character" });
        };
        if !is_allowed(character) {
            return fault("control characters are not allowed");
        }
        characters.push(character);
        at += width;
    }
    None
}

/// As [`decode_utf8`], with two bytes per unit.
fn decode_utf16(
    bytes: &[u8],
    unit: impl Fn([u8; 2]) -> u16,
    characters: &mut Vec<char>,
) -> Option<(usize, &'static str)> {
    let (units, rest) = bytes.as_chunks::<2>();
    for character in char::decode_utf16(units.iter().map(|bytes| unit(*bytes))) {
        match character {
            Ok(character) if is_allowed(character) => characters.push(character),
            Ok(_) => return Some((characters.len(), "control characters are not allowed")),
            Err(error) if error.unpaired_surrogate() >= 0xdc00 => {
                return Some((characters.len(), "unexpected low surrogate area"));
            }
            Err(_) => return Some((characters.len(), "expected low surrogate area")),
        }
    }
    (!rest.is_empty()).then_some((characters.len(), "incomplete UTF-16 character"))
}
