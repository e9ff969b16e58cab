//! Output bytes, in pieces: short ones are copied together, long ones are shared with their other owners.
//!
//! So output that waits for a slow client takes little memory: a large object is in memory only once.

use std::collections::VecDeque;

use axum::body::Bytes;

use crate::meta::Revision;
use crate::store::Encoded;

/// How many bytes are collected in one piece.
pub const COPIED_BYTES_MAX: usize = 8 << 10;
/// From this length on, bytes are shared instead of copied.
const SHARED_BYTES_MIN: usize = 4 << 10;

/// Pieces in their order.
#[derive(Default)]
pub struct Pieces {
    whole: VecDeque<Bytes>,
    /// The piece that is being copied together.
    open: Vec<u8>,
    size_bytes: usize,
}

impl Pieces {
    /// The number of bytes that are left to take.
    pub fn size_bytes(&self) -> usize {
        self.size_bytes
    }

    /// Makes room for so many bytes that are about to be copied.
    pub fn reserve(&mut self, bytes: usize) {
        if self.open.is_empty() {
            self.open.reserve_exact(bytes.min(COPIED_BYTES_MAX + SHARED_BYTES_MIN));
        }
    }

    /// Adds what `write` appends.
    pub fn write(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        let before = self.open.len();
        write(&mut self.open);
        self.size_bytes += self.open.len() - before;
        if self.open.len() >= COPIED_BYTES_MAX {
            self.close();
        }
    }

    /// Adds a copy.
    pub fn copy(&mut self, bytes: &[u8]) {
        self.write(|out| out.extend_from_slice(bytes));
    }

    /// Adds bytes without copying them.
    pub fn share(&mut self, bytes: Bytes) {
        if bytes.len() < SHARED_BYTES_MIN {
            return self.copy(&bytes);
        }
        self.close();
        self.size_bytes += bytes.len();
        self.whole.push_back(bytes);
    }

    /// Adds an object with its resourceVersion.
    pub fn object(&mut self, object: &Encoded, revision: Revision) {
        if object.len_max() < SHARED_BYTES_MIN {
            return self.write(|out| object.write_to(out, revision));
        }
        let [before, version, after] = object.parts(revision);
        self.share(before);
        self.share(version);
        self.share(after);
    }

    /// Whether there is a complete piece, to which nothing more is copied.
    pub fn has_whole(&self) -> bool {
        !self.whole.is_empty()
    }

    /// Takes the first piece; `None` if nothing is left.
    pub fn take(&mut self) -> Option<Bytes> {
        if self.whole.is_empty() {
            self.close();
        }
        let piece = self.whole.pop_front()?;
        self.size_bytes -= piece.len();
        Some(piece)
    }

    /// Takes all of them in one.
    pub fn take_all(&mut self) -> Vec<u8> {
        let mut all = Vec::with_capacity(self.size_bytes);
        while let Some(piece) = self.take() {
            all.extend_from_slice(&piece);
        }
        all
    }

    fn close(&mut self) {
        if self.open.is_empty() {
            return;
        }
        let piece = std::mem::take(&mut self.open);
        // The piece may be kept for long, so it must not waste much capacity.
        let is_fitting = piece.capacity() - piece.len() <= piece.len() / 2;
        self.whole.push_back(if is_fitting { piece.into() } else { Bytes::copy_from_slice(&piece) });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_texts_are_copied_together_and_long_ones_shared() {
        let long = Bytes::from(vec![b'x'; SHARED_BYTES_MIN]);
        let mut pieces = Pieces::default();
        pieces.copy(b"a");
        pieces.share(Bytes::from_static(b"b"));
        pieces.share(long.clone());
        pieces.copy(b"c");
        assert_eq!(pieces.size_bytes(), SHARED_BYTES_MIN + 3);
        assert_eq!(pieces.take().as_deref(), Some(&b"ab"[..]));
        assert_eq!(pieces.take().map(|piece| piece.as_ptr()), Some(long.as_ptr()));
        assert_eq!((pieces.take_all(), pieces.size_bytes()), (b"c".to_vec(), 0));
        assert_eq!(pieces.take(), None);
    }

    #[test]
    fn what_is_copied_together_is_copied_once() {
        const OBJECT_BYTES: usize = 2_000;
        let object = [b'x'; OBJECT_BYTES];
        let taken = allocation_counter::measure(|| {
            let mut pieces = Pieces::default();
            for _ in 0..100 {
                pieces.reserve(usize::MAX);
                pieces.copy(&object);
                while pieces.has_whole() {
                    pieces.take();
                }
            }
        });
        // A piece has five of them, and an allocation for its bytes and one for the count of those that share it.
        assert!(taken.count_total <= 42, "{} allocations", taken.count_total);
        assert!(taken.bytes_total <= 130 * OBJECT_BYTES as u64, "{} bytes", taken.bytes_total);
    }

    #[test]
    fn an_object_has_the_same_text_in_pieces() {
        for length in [1, SHARED_BYTES_MIN] {
            let text =
                format!(r#"{{"kind":"A","metadata":{{"name":"a","uid":"{}"}},"spec":{{}}}}"#, "u".repeat(length));
            let object = Encoded::new(text);
            let (mut whole, mut pieces) = (Vec::new(), Pieces::default());
            object.write_to(&mut whole, Revision::new(7));
            pieces.object(&object, Revision::new(7));
            assert_eq!((pieces.size_bytes(), pieces.take_all()), (whole.len(), whole));
        }
    }
}
