//! The primitives of the wire format: varints, lengths, fields to skip.
//!
//! A [`WireReader`] accepts what Go's generated decoders accept, and fails in the same order, because clients see their
//! errors; no published library does. A [`WireWriter`] writes backwards, so that a length is known when it is written.

use super::ProtobufError;
use crate::work;

/// The wire types.
pub const VARINT: u8 = 0;
pub const FIXED64: u8 = 1;
pub const LENGTH_DELIMITED: u8 = 2;
const START_GROUP: u8 = 3;
pub const END_GROUP: u8 = 4;
const FIXED32: u8 = 5;

/// Reads from the start of `bytes`.
#[derive(Clone)]
pub struct WireReader<'b> {
    pub bytes: &'b [u8],
    pub at: usize,
}

impl<'b> WireReader<'b> {
    pub fn new(bytes: &'b [u8]) -> Self {
        WireReader { bytes, at: 0 }
    }

    pub fn is_at_end(&self) -> bool {
        self.at >= self.bytes.len()
    }

    /// Reads a number in groups of seven bits, the lowest first. Bits beyond the 64th are dropped.
    ///
    /// # Errors
    ///
    /// The bytes end, or the number has more than 64 bits.
    pub fn varint(&mut self) -> Result<u64, ProtobufError> {
        work::step();
        let mut number = 0;
        for shift in (0..64).step_by(7) {
            let byte = *self.bytes.get(self.at).ok_or(ProtobufError::UnexpectedEnd)?;
            self.at += 1;
            number |= u64::from(byte & 0x7f) << shift;
            if byte < 0x80 {
                return Ok(number);
            }
        }
        Err(ProtobufError::IntegerOverflow)
    }

    /// Reads a double.
    ///
    /// # Errors
    ///
    /// The bytes end.
    pub fn fixed64(&mut self) -> Result<f64, ProtobufError> {
        let (bytes, _) = self.bytes[self.at..].split_first_chunk().ok_or(ProtobufError::UnexpectedEnd)?;
        self.at += bytes.len();
        Ok(f64::from_le_bytes(*bytes))
    }

    /// Reads a length and the bytes after it.
    ///
    /// # Errors
    ///
    /// The bytes end, or the length is negative.
    pub fn length_delimited(&mut self) -> Result<&'b [u8], ProtobufError> {
        let end = self.length_end()?;
        let bytes = self.bytes.get(self.at..end).ok_or(ProtobufError::UnexpectedEnd)?;
        self.at = end;
        Ok(bytes)
    }

    /// Reads a length and returns the end of the bytes that it measures, which may be beyond the input's end.
    fn length_end(&mut self) -> Result<usize, ProtobufError> {
        let length = i64::try_from(self.varint()?).map_err(|_| ProtobufError::NegativeLength)?;
        let end =
            i64::try_from(self.at).ok().and_then(|at| at.checked_add(length)).ok_or(ProtobufError::NegativeLength)?;
        Ok(usize::try_from(end).unwrap_or(usize::MAX))
    }

    /// Skips a field, including its tag; a group includes all up to its end.
    ///
    /// # Errors
    ///
    /// The bytes end, or are not a field.
    pub fn skip(&mut self) -> Result<(), ProtobufError> {
        let mut depth = 0_usize;
        while !self.is_at_end() {
            let wire_type = (self.varint()? & 7) as u8;
            match wire_type {
                VARINT => _ = self.varint()?,
                FIXED64 => self.at += 8,
                LENGTH_DELIMITED => self.at = self.length_end()?,
                START_GROUP => depth += 1,
                END_GROUP => depth = depth.checked_sub(1).ok_or(ProtobufError::UnexpectedEndGroup)?,
                FIXED32 => self.at += 4,
                _ => return Err(ProtobufError::IllegalWireType(wire_type)),
            }
            if depth == 0 {
                return if self.at > self.bytes.len() { Err(ProtobufError::UnexpectedEnd) } else { Ok(()) };
            }
        }
        Err(ProtobufError::UnexpectedEnd)
    }
}

/// Writes a message from its end to its start.
#[derive(Default)]
pub struct WireWriter {
    /// Free bytes, then those written.
    buffer: Vec<u8>,
    /// How many bytes are free.
    free: usize,
}

impl WireWriter {
    /// A writer with room for so many bytes.
    pub fn with_capacity(bytes: usize) -> Self {
        WireWriter { buffer: vec![0; bytes], free: bytes }
    }

    /// The number of bytes written.
    pub fn len(&self) -> usize {
        self.buffer.len() - self.free
    }

    pub fn varint(&mut self, mut number: u64) {
        const BYTES_MAX: usize = 10;
        let mut bytes = [0; BYTES_MAX];
        let mut count = 0;
        while number >= 0x80 {
            bytes[count] = number as u8 | 0x80;
            number >>= 7;
            count += 1;
        }
        bytes[count] = number as u8;
        self.put(&bytes[..=count]);
    }

    pub fn fixed64(&mut self, number: f64) {
        self.put(&number.to_le_bytes());
    }

    pub fn bytes(&mut self, bytes: &[u8]) {
        work::bytes(bytes.len());
        self.put(bytes);
    }

    fn put(&mut self, bytes: &[u8]) {
        if self.free < bytes.len() {
            self.grow(bytes.len());
        }
        let end = self.free;
        self.free -= bytes.len();
        self.buffer[self.free..end].copy_from_slice(bytes);
    }

    /// Makes room for so many more bytes.
    #[cold]
    fn grow(&mut self, more: usize) {
        const BYTES_MIN: usize = 256;
        let written = self.len();
        let size = (2 * self.buffer.len()).max(written + more).max(BYTES_MIN);
        let mut buffer = vec![0; size];
        buffer[size - written..].copy_from_slice(&self.buffer[self.free..]);
        (self.buffer, self.free) = (buffer, size - written);
    }

    pub fn tag(&mut self, number: u32, wire_type: u8) {
        self.varint(u64::from(number) << 3 | u64::from(wire_type));
    }

    /// Writes the tag and the length before what was written since the length was `end`.
    pub fn close(&mut self, number: u32, end: usize) {
        self.varint((self.len() - end) as u64);
        self.tag(number, LENGTH_DELIMITED);
    }

    /// The bytes in reading order.
    pub fn finish(mut self) -> Vec<u8> {
        self.buffer.drain(..self.free);
        if self.buffer.capacity() / 2 > self.buffer.len() {
            self.buffer.shrink_to_fit();
        }
        self.buffer
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_read() {
        for number in [0, 1, 127, 128, 300, u64::from(u32::MAX), u64::MAX] {
            let mut writer = WireWriter::default();
            writer.varint(number);
            assert_eq!(WireReader::new(&writer.finish()).varint(), Ok(number));
        }
        let mut writer = WireWriter::default();
        let end = writer.len();
        writer.bytes(b"abc");
        writer.close(5, end);
        writer.fixed64(-0.5);
        let bytes = writer.finish();
        let mut reader = WireReader::new(&bytes);
        assert_eq!(reader.fixed64(), Ok(-0.5));
        assert_eq!(reader.varint(), Ok(5 << 3 | 2));
        assert_eq!(reader.length_delimited(), Ok(&b"abc"[..]));
        assert!(reader.is_at_end());
    }

    #[test]
    fn numbers_end_after_ten_bytes() {
        assert_eq!(WireReader::new(&[0xff; 11]).varint(), Err(ProtobufError::IntegerOverflow));
        assert_eq!(WireReader::new(&[0x80; 3]).varint(), Err(ProtobufError::UnexpectedEnd));
        let mut nine = [0xff; 10];
        nine[9] = 0x7f;
        assert_eq!(WireReader::new(&nine).varint(), Ok(u64::MAX));
    }

    #[test]
    fn lengths_stay_within_the_bytes() {
        assert_eq!(WireReader::new(&[4, 1, 2, 3]).length_delimited(), Err(ProtobufError::UnexpectedEnd));
        let mut negative = [0xff; 10];
        negative[9] = 1;
        assert_eq!(WireReader::new(&negative).length_delimited(), Err(ProtobufError::NegativeLength));
        negative[9] = 0;
        assert_eq!(
            WireReader::new(&negative).length_delimited(),
            Err(ProtobufError::NegativeLength),
            "the end overflows"
        );
    }

    #[test]
    fn groups_are_skipped_without_recursion() {
        let mut groups = vec![0x0b; 1 << 20];
        assert_eq!(WireReader::new(&groups).skip(), Err(ProtobufError::UnexpectedEnd));
        groups.resize(2 << 20, 0x0c);
        let mut reader = WireReader::new(&groups);
        assert_eq!(reader.skip(), Ok(()));
        assert!(reader.is_at_end());
        assert_eq!(WireReader::new(&[0x0c]).skip(), Err(ProtobufError::UnexpectedEndGroup));
        assert_eq!(WireReader::new(&[0x0e]).skip(), Err(ProtobufError::IllegalWireType(6)));
    }
}
