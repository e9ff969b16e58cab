//! Creates the nodes of a syntax tree, for the parser and for macros.

use super::ast::{ExprId, Range, SourceInfo};
use super::error::Issue;
use super::language::Library;
use crate::meta::minor::Minor;
use crate::work;

/// How many nodes an expression may have once its macros are expanded.
// DIFFERS: cel-go has no such limit; chains of `optMap` double the tree at each step there.
pub(super) const NODES_MAX: u32 = 200_000;

/// Creates nodes with ids and positions.
#[derive(Debug)]
pub(super) struct Builder<'a> {
    pub(super) source: SourceInfo,
    pub(super) library: &'a Library,
    pub(super) keep_macros: bool,
    pub(super) next: u32,
    pub(super) depth: u32,
    pub(super) issues: Vec<Issue>,
}

impl Builder<'_> {
    /// A new id for a node at `range`.
    pub(super) fn id(&mut self, range: Range) -> ExprId {
        work::steps(2);
        let id = ExprId(self.next);
        self.next += 1;
        self.source.set_range(id, range);
        id
    }

    /// A new id for a node that a macro puts in the place of `id`.
    pub(super) fn id_at(&mut self, id: ExprId) -> ExprId {
        let start = self.source.range(id).unwrap_or_default().start;
        self.id(Range { start, end: start })
    }

    /// The version of Kubernetes that the text is parsed for.
    pub(super) fn minor(&self) -> Minor {
        self.library.minor
    }

    /// Whether the tree has reached the limit of nodes.
    pub(super) fn is_full(&self) -> bool {
        self.next > NODES_MAX
    }

    pub(super) fn range_of(&self, id: ExprId) -> Range {
        self.source.range(id).unwrap_or_default()
    }
}
