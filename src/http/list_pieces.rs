//! A list as JSON, piece by piece: its items are in memory, but never the whole text of the list.

use std::sync::Arc;

use axum::body::Bytes;

use super::pieces::Pieces;
use crate::registry::{ListPage, Target};
use crate::store::{Encoded, Revocable, Stored, TakenBack};
use crate::value::{Value, json};

/// The items of a list.
pub(super) type ListItems = Vec<(Arc<Stored>, Encoded)>;

/// The items of a list that is being sent, until they are taken back from a slow client.
pub(super) type HeldItems = Revocable<ListItems>;

/// The rest of a list that is being sent.
pub(super) struct ListPieces {
    items: HeldItems,
    /// The index of the next item.
    at: usize,
    pieces: Pieces,
    /// What follows the items; empty once it has been handed out as a piece.
    end: Vec<u8>,
    left_bytes: usize,
}

impl ListPieces {
    /// The pieces of a list; `hold` decides what becomes of the items while the client reads.
    pub fn new(target: &Target, metadata: &Value, page: ListPage, hold: impl FnOnce(ListItems) -> HeldItems) -> Self {
        let (mut begin, mut end) = (b"{\"apiVersion\":".to_vec(), b"],\"kind\":".to_vec());
        json::encode_into(&Value::String(target.version.api_version()), &mut begin);
        begin.extend_from_slice(b",\"items\":[");
        json::encode_into(&Value::from(target.version.names.list_kind.as_str()), &mut end);
        end.extend_from_slice(b",\"metadata\":");
        json::encode_into(metadata, &mut end);
        end.push(b'}');
        let items: usize = page.items.iter().map(|(stored, encoded)| encoded.len(stored.revision)).sum();
        let left_bytes = begin.len() + items + page.items.len().saturating_sub(1) + end.len();
        let mut pieces = Pieces::default();
        pieces.share(begin.into());
        ListPieces { items: hold(page.items), at: 0, pieces, end, left_bytes }
    }

    /// How many bytes are left.
    pub fn left_bytes(&self) -> usize {
        self.left_bytes
    }

    /// The whole text.
    pub fn whole(self) -> Result<Vec<u8>, TakenBack> {
        let mut whole = Vec::with_capacity(self.left_bytes + 1);
        for piece in self {
            whole.extend_from_slice(&piece?);
        }
        Ok(whole)
    }

    /// Adds a line break after the list.
    pub fn with_line_break(mut self) -> Self {
        self.end.push(b'\n');
        self.left_bytes += 1;
        self
    }

    fn make(&mut self) -> Result<(), TakenBack> {
        let Some((stored, encoded)) = self.items.with(|items| items.get(self.at).cloned())? else {
            self.pieces.share(std::mem::take(&mut self.end).into());
            return Ok(());
        };
        self.pieces.reserve(self.left_bytes - self.pieces.size_bytes());
        if self.at > 0 {
            self.pieces.copy(b",");
        }
        self.pieces.object(&encoded, stored.revision);
        self.at += 1;
        Ok(())
    }
}

impl Iterator for ListPieces {
    type Item = Result<Bytes, TakenBack>;

    fn next(&mut self) -> Option<Result<Bytes, TakenBack>> {
        while !self.pieces.has_whole() && !self.end.is_empty() {
            if let Err(taken) = self.make() {
                return Some(Err(taken));
            }
        }
        let piece = self.pieces.take()?;
        self.left_bytes -= piece.len();
        Some(Ok(piece))
    }
}
