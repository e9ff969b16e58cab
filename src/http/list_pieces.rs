//! A list as JSON, piece by piece: its items are in memory, but never the whole text of the list.

use axum::body::Bytes;

use super::pieces::Pieces;
use crate::registry::{ListPage, Target};
use crate::value::{Value, json};

/// The rest of a list that is being sent.
pub(super) struct ListPieces {
    page: ListPage,
    /// The index of the next item.
    at: usize,
    pieces: Pieces,
    /// What follows the items; empty once it has been handed out as a piece.
    end: Vec<u8>,
    left_bytes: usize,
}

impl ListPieces {
    pub fn new(target: &Target, metadata: &Value, page: ListPage) -> Self {
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
        ListPieces { page, at: 0, pieces, end, left_bytes }
    }

    /// How many bytes are left.
    pub fn left_bytes(&self) -> usize {
        self.left_bytes
    }

    /// The whole text.
    pub fn whole(mut self) -> Vec<u8> {
        let mut whole = Vec::with_capacity(self.left_bytes + 1);
        self.by_ref().for_each(|piece| whole.extend_from_slice(&piece));
        whole
    }

    /// Adds a line break after the list.
    pub fn with_line_break(mut self) -> Self {
        self.end.push(b'\n');
        self.left_bytes += 1;
        self
    }

    fn make(&mut self) {
        let Some((stored, encoded)) = self.page.items.get(self.at) else {
            return self.pieces.share(std::mem::take(&mut self.end).into());
        };
        self.pieces.reserve(self.left_bytes - self.pieces.size_bytes());
        if self.at > 0 {
            self.pieces.copy(b",");
        }
        self.pieces.object(encoded, stored.revision);
        self.at += 1;
    }
}

impl Iterator for ListPieces {
    type Item = Bytes;

    fn next(&mut self) -> Option<Bytes> {
        while !self.pieces.has_whole() && !self.end.is_empty() {
            self.make();
        }
        let piece = self.pieces.take()?;
        self.left_bytes -= piece.len();
        Some(piece)
    }
}
