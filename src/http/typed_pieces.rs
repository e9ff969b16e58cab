//! A list of a built-in kind as JSON, item by item: each is laid out as in Go and sent; the whole list is never in
//! memory.

use axum::body::Bytes;

use super::pieces::COPIED_BYTES_MAX;
use crate::kinds::layout;
use crate::registry::ListPage;
use crate::value::{Value, json};

/// What follows the items of a list, which are the last field in Go's order.
const END: &[u8] = b"]}";

/// The rest of a list that is being sent.
pub(super) struct TypedPieces {
    page: ListPage,
    /// The next item.
    at: usize,
    /// The text that is sent before it.
    open: Vec<u8>,
    is_over: bool,
}

impl TypedPieces {
    /// A list with the items of `page`; `empty` is the list without items.
    pub fn new(empty: &Value, page: ListPage) -> Self {
        let mut open = json::encode_as(empty, layout::of(empty));
        debug_assert!(open.ends_with(END));
        open.truncate(open.len() - END.len());
        TypedPieces { page, at: 0, open, is_over: false }
    }

    fn make(&mut self) {
        let Some((stored, encoded)) = self.page.items.get(self.at) else {
            self.open.extend_from_slice(END);
            self.open.push(b'\n');
            self.is_over = true;
            return;
        };
        if self.at > 0 {
            self.open.push(b',');
        }
        self.at += 1;
        // Go's lists hold the type once, for all items.
        if !layout::arrange_into(&encoded.to_bytes(stored.revision), &["apiVersion", "kind"], &mut self.open) {
            self.open.extend_from_slice(b"{}");
        }
    }
}

impl Iterator for TypedPieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        while self.open.len() < COPIED_BYTES_MAX && !self.is_over {
            self.make();
        }
        let piece = std::mem::take(&mut self.open);
        (!piece.is_empty()).then(|| piece.into())
    }
}
