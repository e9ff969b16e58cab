//! The outer form of answers: bodies and watch events made of objects that are already encoded.

use std::io::Write;

use flate2::Compression;
use flate2::write::GzEncoder;

use crate::registry::EventType;

/// Bodies of more bytes are compressed for clients that accept it.
pub const GZIP_THRESHOLD_BYTES: usize = 128 * 1024;

/// Appends one line of a JSON watch: `{"type":"ADDED","object":…}` and a line break.
///
/// `write_object` appends the object as compact JSON, `size_bytes_max` bytes at most.
pub fn write_event(
    event: EventType,
    size_bytes_max: usize,
    out: &mut Vec<u8>,
    write_object: impl FnOnce(&mut Vec<u8>),
) {
    out.reserve(size_bytes_max + 40);
    out.extend_from_slice(br#"{"type":""#);
    out.extend_from_slice(event.as_str().as_bytes());
    out.extend_from_slice(br#"","object":"#);
    write_object(out);
    out.extend_from_slice(b"}\n");
}

/// Compresses `bytes` at level 1, which costs the least time.
pub fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// Compresses a part of a stream, to be read at once: everything is there before the end of the member begins.
///
/// Go's reader gives the last bytes of a member only with the next one, which may be long in coming, unless a flush
/// separates them from the end.
pub fn gzip_part(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes)?;
    encoder.flush()?;
    encoder.finish()
}

#[cfg(test)]
mod tests {
    use std::io::Read;

    use super::*;

    #[test]
    fn an_event_is_a_line() {
        let mut out = Vec::new();
        write_event(EventType::Bookmark, 7, &mut out, |out| out.extend_from_slice(br#"{"a":1}"#));
        assert_eq!(out, b"{\"type\":\"BOOKMARK\",\"object\":{\"a\":1}}\n");
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
