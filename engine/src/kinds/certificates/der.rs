//! Elements of DER, read one after the other.
//!
//! Written by hand, as the messages about certificates depend on where Go stops reading.
//!
//! Input: bytes. Output: the contents of elements, or `None` where Go does not read on.
//!
//! Source: `golang.org/x/crypto/cryptobyte`, as Go 1.26 has it.

use crate::work;

pub const BOOLEAN: u8 = 0x01;
pub const INTEGER: u8 = 0x02;
pub const BIT_STRING: u8 = 0x03;
pub const OCTET_STRING: u8 = 0x04;
pub const OBJECT_IDENTIFIER: u8 = 0x06;
pub const UTC_TIME: u8 = 0x17;
pub const GENERALIZED_TIME: u8 = 0x18;
pub const SEQUENCE: u8 = 0x30;
pub const SET: u8 = 0x31;
/// The bits of a tag that is longer than a byte.
const LONG_TAG: u8 = 0x1f;
/// The bit of a first byte of a length that says how many bytes of the length follow.
const LONG_LENGTH: u8 = 0x80;
const LENGTH_BYTES_MAX: usize = 4;

/// The tag of a constructed element of its context.
pub const fn context(number: u8) -> u8 {
    0xa0 | number
}

/// Elements that are not read yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Der<'a>(pub &'a [u8]);

/// An element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DerElement<'a> {
    /// What it is.
    pub tag: u8,
    /// With its tag and its length.
    pub whole: &'a [u8],
    /// Without them.
    pub content: &'a [u8],
}

impl<'a> Der<'a> {
    /// Whether all elements are read.
    pub const fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether the next element has this tag.
    pub fn is_next(&self, tag: u8) -> bool {
        self.0.first() == Some(&tag)
    }

    /// The next element, whatever it is.
    pub fn any(&mut self) -> Option<DerElement<'a>> {
        work::step();
        let (&tag, rest) = self.0.split_first()?;
        let (&first, rest) = rest.split_first()?;
        if tag & LONG_TAG == LONG_TAG {
            return None;
        }
        let (length, rest) = if first & LONG_LENGTH == 0 { (usize::from(first), rest) } else { long(first, rest)? };
        let content = rest.get(..length)?;
        let end = self.0.len() - rest.len() + length;
        let (whole, after) = self.0.split_at(end);
        self.0 = after;
        Some(DerElement { tag, whole, content })
    }

    /// The next element, if it has this tag.
    pub fn element(&mut self, tag: u8) -> Option<DerElement<'a>> {
        if self.is_next(tag) { self.any() } else { None }
    }

    /// What is in the next element, if it has this tag.
    pub fn read(&mut self, tag: u8) -> Option<Der<'a>> {
        self.element(tag).map(|element| Der(element.content))
    }

    /// What is in the next element, if that has this tag; the outer `None` is an element that can't be read.
    pub fn optional(&mut self, tag: u8) -> Option<Option<Der<'a>>> {
        if self.is_next(tag) { self.read(tag).map(Some) } else { Some(None) }
    }

    /// A whole number in as few bytes as it takes.
    pub fn integer(&mut self) -> Option<Integer<'a>> {
        let bytes = self.read(INTEGER)?.0;
        let is_shortest = match bytes {
            [] => false,
            [0, second, ..] => second & 0x80 != 0,
            [0xff, second, ..] => second & 0x80 == 0,
            _ => true,
        };
        is_shortest.then_some(Integer(bytes))
    }

    /// The bytes of an object identifier.
    pub fn identifier(&mut self) -> Option<&'a [u8]> {
        let bytes = self.read(OBJECT_IDENTIFIER)?.0;
        bytes.last().is_some_and(|last| last & 0x80 == 0).then_some(bytes)
    }

    /// The bits of a text of bits, as whole bytes.
    pub fn bits(&mut self) -> Option<&'a [u8]> {
        let (&unused, bytes) = self.read(BIT_STRING)?.0.split_first()?;
        let is_zero = match bytes.last() {
            None => unused == 0,
            Some(last) => unused < 8 && last & ((1_u8 << unused) - 1) == 0,
        };
        is_zero.then_some(bytes)
    }
}

/// A length of several bytes, without zeros before it, and what follows it.
fn long(first: u8, rest: &[u8]) -> Option<(usize, &[u8])> {
    let count = usize::from(first & !LONG_LENGTH);
    if !(1..=LENGTH_BYTES_MAX).contains(&count) {
        return None;
    }
    let (bytes, rest) = rest.split_at_checked(count)?;
    let length = bytes.iter().fold(0_u64, |length, byte| length << 8 | u64::from(*byte));
    let is_shortest = length >= 0x80 && bytes.first() != Some(&0);
    Some((usize::try_from(length).ok().filter(|_| is_shortest)?, rest))
}

/// A whole number, as it is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Integer<'a>(&'a [u8]);

impl<'a> Integer<'a> {
    /// Whether it is below zero.
    pub fn is_negative(self) -> bool {
        self.0.first().is_some_and(|first| first & 0x80 != 0)
    }

    /// Whether it is above zero.
    pub fn is_positive(self) -> bool {
        !self.is_negative() && self.0 != [0]
    }

    /// Its bytes, if it is not negative, without zeros before them.
    pub fn magnitude(self) -> &'a [u8] {
        self.0.strip_prefix(&[0]).unwrap_or(self.0)
    }

    /// The number, if it is small.
    pub fn small(self) -> Option<u8> {
        match self.0 {
            [byte] if byte & 0x80 == 0 => Some(*byte),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_are_read_as_go_reads_them() {
        let mut der = Der(&[SEQUENCE, 3, INTEGER, 1, 5, BOOLEAN, 1, 0xff]);
        let mut inner = der.read(SEQUENCE).expect("it is one");
        assert_eq!(inner.integer().and_then(Integer::small), Some(5));
        assert!(inner.is_empty());
        assert_eq!(der.read(SEQUENCE), None);
        assert_eq!(der.any().map(|element| element.whole), Some(&[BOOLEAN, 1, 0xff][..]));
        let is_read = |bytes: &[u8]| Der(bytes).any().is_some();
        let long = [&[SEQUENCE, 0x81, 0x80][..], &[0; 0x80]].concat();
        assert!(is_read(&long));
        // Longer than it has to be, of no length, cut off, with a long tag.
        for bytes in [&[4, 0x81, 1, 0][..], &[4, 0x80, 0, 0], &[4, 2, 0], &[4], &[], &[0x1f, 1, 0]] {
            assert!(!is_read(bytes), "{bytes:?}");
        }
    }

    #[test]
    fn numbers_and_bits_have_one_form() {
        let integer = |bytes: &[u8]| Der(bytes).integer().is_some();
        assert!(integer(&[INTEGER, 2, 0, 0x80]));
        for bytes in [&[INTEGER, 0][..], &[INTEGER, 2, 0, 1], &[INTEGER, 2, 0xff, 0x80]] {
            assert!(!integer(bytes), "{bytes:?}");
        }
        assert_eq!(Der(&[BIT_STRING, 2, 1, 2]).bits(), Some(&[2][..]));
        assert_eq!(Der(&[BIT_STRING, 2, 1, 1]).bits(), None);
        assert_eq!(Der(&[BIT_STRING, 1, 1]).bits(), None);
    }
}
