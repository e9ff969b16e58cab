//! Splits a stream into parts, such as the events of a watch, so that each can be masked and
//! forwarded as it was.

use bytes::{Bytes, BytesMut};
use memchr::memchr;

/// The length of the prefix of an event in protobuf.
const LENGTH_BYTES: usize = 4;
/// A longer part is passed on in pieces.
const PART_BYTES_MAX: usize = 32 << 20;

/// How a stream is split.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StreamFraming {
    Lines,
    /// Each part has a length prefix.
    Lengths,
    /// As the bytes arrive.
    Bytes,
}

impl StreamFraming {
    /// How a stream of this media type is split.
    pub fn of(media_type: &str) -> Self {
        if media_type.starts_with("application/json") {
            StreamFraming::Lines
        } else if media_type.contains("protobuf") {
            StreamFraming::Lengths
        } else {
            StreamFraming::Bytes
        }
    }
}

/// Splits a stream.
pub struct Splitter {
    form: StreamFraming,
    rest: BytesMut,
    /// How many bytes at the beginning of the rest have no line break.
    searched: usize,
}

impl Splitter {
    pub fn new(form: StreamFraming) -> Self {
        Splitter { form, rest: BytesMut::new(), searched: 0 }
    }

    pub fn push(&mut self, bytes: &[u8]) {
        self.rest.extend_from_slice(bytes);
    }

    /// The next complete part.
    pub fn next(&mut self) -> Option<Bytes> {
        let length = match self.form {
            StreamFraming::Lines => {
                let found = memchr(b'\n', &self.rest[self.searched..]).map(|end| self.searched + end + 1);
                if found.is_none() {
                    self.searched = self.rest.len();
                }
                found
            }
            StreamFraming::Lengths => self.rest.first_chunk::<LENGTH_BYTES>().map(|length| {
                LENGTH_BYTES.saturating_add(usize::try_from(u32::from_be_bytes(*length)).unwrap_or(usize::MAX))
            }),
            StreamFraming::Bytes => Some(self.rest.len()),
        };
        let whole = length.filter(|length| (1..=self.rest.len()).contains(length));
        let length = whole.or_else(|| (self.rest.len() > PART_BYTES_MAX).then_some(self.rest.len()))?;
        self.searched = 0;
        Some(self.rest.split_to(length).freeze())
    }

    /// The incomplete part at the end; `None` if there is none.
    pub fn rest(&mut self) -> Option<Bytes> {
        self.searched = 0;
        (!self.rest.is_empty()).then(|| self.rest.split().freeze())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn split(form: StreamFraming, pieces: &[&[u8]]) -> (Vec<Bytes>, Option<Bytes>) {
        let mut splitter = Splitter::new(form);
        let mut parts = Vec::new();
        for piece in pieces {
            splitter.push(piece);
            parts.extend(std::iter::from_fn(|| splitter.next()));
        }
        (parts, splitter.rest())
    }

    #[test]
    fn parts_come_whole_wherever_a_stream_is_cut() {
        let (parts, rest) = split(StreamFraming::Lines, &[b"a", b"b\nc\nd"]);
        assert_eq!((parts, rest), (vec!["ab\n".into(), "c\n".into()], Some("d".into())));
        let (parts, rest) = split(StreamFraming::Lengths, &[&[0, 0], &[0, 2, 7], &[8, 0, 0, 0, 0]]);
        let whole: Vec<Bytes> = vec![Bytes::from_static(&[0, 0, 0, 2, 7, 8]), Bytes::from_static(&[0; 4])];
        assert_eq!((parts, rest), (whole, None));
        assert_eq!(split(StreamFraming::Bytes, &[b"a", b"b"]).0, ["a", "b"]);
        assert_eq!(split(StreamFraming::Lengths, &[&[255; 8]]).0.len(), 0);
    }
}
