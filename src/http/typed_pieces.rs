//! A list of a built-in kind as JSON, item by item: each is laid out as in Go and sent; the whole list is never in
//! memory.

use axum::body::Bytes;

use super::list_pieces::HeldItems;
use super::pieces::COPIED_BYTES_MAX;
use crate::kinds::layout;
use crate::store::TakenBack;
use crate::value::{Value, json};

/// What follows the items of a list, which are the last field in Go's order.
const END: &[u8] = b"]}";

/// The rest of a list that is being sent.
pub(super) struct TypedPieces {
    items: HeldItems,
    /// The next item.
    at: usize,
    /// The text that is sent before it.
    open: Vec<u8>,
    is_over: bool,
}

impl TypedPieces {
    /// A list with these items; `empty` is the list without items.
    pub fn new(empty: &Value, items: HeldItems) -> Self {
        let mut open = json::encode_as(empty, layout::of(empty));
        debug_assert!(open.ends_with(END));
        open.truncate(open.len() - END.len());
        TypedPieces { items, at: 0, open, is_over: false }
    }

    fn make(&mut self) -> Result<(), TakenBack> {
        let Some((stored, encoded)) = self.items.with(|items| items.get(self.at).cloned())? else {
            self.open.extend_from_slice(END);
            self.open.push(b'\n');
            self.is_over = true;
            return Ok(());
        };
        if self.at > 0 {
            self.open.push(b',');
        }
        self.at += 1;
        // Go's lists hold the type once, for all items.
        if !layout::arrange_into(&encoded.to_bytes(stored.revision), &["apiVersion", "kind"], &mut self.open) {
            self.open.extend_from_slice(b"{}");
        }
        Ok(())
    }
}

impl Iterator for TypedPieces {
    type Item = Result<Bytes, TakenBack>;

    fn next(&mut self) -> Option<Result<Bytes, TakenBack>> {
        while self.open.len() < COPIED_BYTES_MAX && !self.is_over {
            if let Err(taken) = self.make() {
                return Some(Err(taken));
            }
        }
        let piece = std::mem::take(&mut self.open);
        (!piece.is_empty()).then(|| Ok(piece.into()))
    }
}
