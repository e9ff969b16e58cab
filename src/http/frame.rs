//! The outer form of answers: bodies and watch events made of objects that are already encoded.

use std::error::Error;
use std::io::Write;

use axum::body::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;

use super::pieces::{COPIED_BYTES_MAX, Pieces};
use crate::registry::EventType;
use crate::work;

/// Larger bodies are compressed for clients that accept gzip.
pub const GZIP_THRESHOLD_BYTES: usize = 128 * 1024;

/// How many bytes are compressed at a time.
const GZIP_PIECE_BYTES: usize = 16 << 10;
/// How many bytes are compressed per step of work.
const GZIP_BYTES_PER_STEP: usize = 16;

/// Appends one line of a JSON watch: `{"type":"ADDED","object":…}` and a line break.
///
/// `write_object` appends the object as compact JSON.
pub fn write_event(event: EventType, out: &mut Pieces, write_object: impl FnOnce(&mut Pieces)) {
    out.copy(br#"{"type":""#);
    out.copy(event.as_str().as_bytes());
    out.copy(br#"","object":"#);
    write_object(out);
    out.copy(b"}\n");
}

/// Compresses `bytes` at level 1, which costs the least time.
pub fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    compress(&mut encoder, bytes)?;
    encoder.finish()
}

/// In pieces, so that the request can be ended in between.
fn compress(encoder: &mut GzEncoder<Vec<u8>>, bytes: &[u8]) -> std::io::Result<()> {
    for piece in bytes.chunks(GZIP_PIECE_BYTES) {
        work::steps(GZIP_PIECE_BYTES / GZIP_BYTES_PER_STEP);
        encoder.write_all(piece)?;
    }
    Ok(())
}

/// The parts of a body, compressed as they are asked for.
pub struct Compressed<I> {
    parts: I,
    /// `None` at the end.
    encoder: Option<GzEncoder<Vec<u8>>>,
}

impl<I> Compressed<I> {
    pub fn new(parts: I) -> Self {
        Compressed { parts, encoder: Some(GzEncoder::new(Vec::new(), Compression::fast())) }
    }
}

impl<E, I> Iterator for Compressed<I>
where
    E: Error + Send + Sync + 'static,
    I: Iterator<Item = Result<Bytes, E>>,
{
    type Item = std::io::Result<Bytes>;

    fn next(&mut self) -> Option<std::io::Result<Bytes>> {
        loop {
            let Some(part) = self.parts.next() else {
                return self.encoder.take().map(|encoder| encoder.finish().map(Bytes::from));
            };
            let encoder = self.encoder.as_mut()?;
            let compressed = part.map_err(std::io::Error::other).and_then(|part| compress(encoder, &part));
            if let Err(error) = compressed {
                return Some(Err(error));
            }
            if encoder.get_ref().len() >= COPIED_BYTES_MAX {
                return Some(Ok(std::mem::take(encoder.get_mut()).into()));
            }
        }
    }
}

/// Compresses a part of a stream, to be read at once: everything is there before the end of the member begins.
///
/// Go's reader gives the last bytes of a member only with the next one, which may be long in coming, unless a flush
/// separates them from the end.
pub fn gzip_part(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    compress(&mut encoder, bytes)?;
    encoder.flush()?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn an_event_is_a_line() {
        let mut out = Pieces::default();
        write_event(EventType::Bookmark, &mut out, |out| out.copy(br#"{"a":1}"#));
        assert_eq!(out.take_all(), b"{\"type\":\"BOOKMARK\",\"object\":{\"a\":1}}\n");
    }

    #[test]
    fn compressed_bytes_come_back() {
        let bytes = vec![b'x'; 200_000];
        let mut back = Vec::new();
        let packed = gzip(&bytes).expect("memory does not fail");
        flate2::read::GzDecoder::new(packed.as_slice()).read_to_end(&mut back).expect("it is gzip");
        assert!(packed.len() < 2_000 && back == bytes);
    }

    #[test]
    fn a_part_of_a_stream_is_whole_before_its_end() {
        const FLUSHED: [u8; 4] = [0, 0, 0xff, 0xff];
        let packed = gzip_part(b"an event\n").expect("memory does not fail");
        let flushed = packed.windows(4).position(|window| window == FLUSHED).expect("it is flushed");
        let mut back = [0; 9];
        let mut decoder = flate2::read::GzDecoder::new(&packed[..flushed + FLUSHED.len()]);
        decoder.read_exact(&mut back).expect("the end is not needed");
        assert_eq!(&back, b"an event\n");
    }
}
