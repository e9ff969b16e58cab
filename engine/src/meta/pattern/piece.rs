//! What the parser's stack holds: pieces of a pattern with their measures, and marks.

use std::collections::VecDeque;

use regex_syntax::hir::{Capture, Class, ClassUnicode, ClassUnicodeRange, Hir};

use super::unicode::{folded, of_chars, states_of};
use crate::work;

/// The most pieces of a concatenation or an alternation that are merged into the surrounding one.
const MERGED_MAX: usize = 64;
/// How many ranges of a set are copied per step.
const RANGES_PER_STEP: usize = 8;
/// How many ranges of a set may wait to be merged.
const UNMERGED_MAX: usize = 4096;

/// What `(?ims-U)` switches.
#[derive(Clone, Copy, Default)]
pub(super) struct Flags {
    pub(super) fold: bool,
    pub(super) multi_line: bool,
    pub(super) dot_newline: bool,
    pub(super) swap_greed: bool,
}

/// An entry of the parser's stack: a finished piece with its measures, or a mark.
pub(super) struct Piece {
    pub(super) kind: PieceKind,
    pub(super) height: u32,
    pub(super) copies: u64,
    pub(super) size: u64,
    pub(super) states: u64,
}

pub(super) enum PieceKind {
    /// A run of literal characters. Lone surrogates, which no text contains, are `None`.
    Literal {
        chars: VecDeque<Option<char>>,
        fold: bool,
    },
    /// One character out of a set.
    Set(ClassUnicode),
    /// One character out of a set that may still grow.
    Choice(Ranges),
    /// Pieces in a row, already merged.
    Concat(VecDeque<Hir>),
    /// Pieces to choose from, already merged.
    Alternate(VecDeque<Hir>),
    Other(Hir),
    /// An open group, with the flags to return to.
    Paren {
        flags: Flags,
        captures: bool,
    },
    /// The pieces below it are alternatives to the one above.
    Bar,
}

impl Piece {
    pub(super) fn leaf(kind: PieceKind, size: u64, states: u64) -> Self {
        Piece { kind, height: 1, copies: 1, size, states }
    }

    /// Completes a set of characters: only now is its number of states known.
    pub(super) fn settle(&mut self) {
        if let PieceKind::Choice(ranges) = &mut self.kind {
            let set = std::mem::take(ranges).into_set();
            self.states = states_of(&set);
            self.kind = PieceKind::Set(set);
        }
    }

    pub(super) fn is_mark(&self) -> bool {
        matches!(self.kind, PieceKind::Paren { .. } | PieceKind::Bar)
    }

    /// Whether it matches exactly one character.
    pub(super) fn is_set(&self) -> bool {
        match &self.kind {
            PieceKind::Set(_) | PieceKind::Choice(_) => true,
            PieceKind::Literal { chars, .. } => chars.len() == 1,
            _ => false,
        }
    }

    pub(super) fn into_set(self) -> ClassUnicode {
        match self.kind {
            PieceKind::Set(set) => set,
            PieceKind::Choice(ranges) => ranges.into_set(),
            PieceKind::Literal { chars, fold } => {
                let set = of_chars(chars.into_iter().flatten());
                if fold { folded(set) } else { set }
            }
            _ => ClassUnicode::empty(),
        }
    }
}

impl PieceKind {
    pub(super) fn into_hir(self) -> Hir {
        match self {
            PieceKind::Literal { chars, fold } => literal_hir(&chars, fold),
            PieceKind::Set(set) => Hir::class(Class::Unicode(set)),
            PieceKind::Choice(ranges) => Hir::class(Class::Unicode(ranges.into_set())),
            PieceKind::Concat(pieces) => Hir::concat(pieces.into()),
            PieceKind::Alternate(pieces) => Hir::alternation(pieces.into()),
            PieceKind::Other(hir) => hir,
            PieceKind::Paren { .. } | PieceKind::Bar => Hir::empty(),
        }
    }
}

/// A long concatenation or alternation is kept separate, as it would otherwise be copied for each surrounding group.
pub(super) fn as_group(kind: PieceKind) -> Hir {
    let is_long =
        matches!(&kind, PieceKind::Concat(pieces) | PieceKind::Alternate(pieces) if pieces.len() > MERGED_MAX);
    let hir = kind.into_hir();
    if is_long { Hir::capture(Capture { index: 1, name: None, sub: Box::new(hir) }) } else { hir }
}

/// Appends `more` to `pieces`, moving the shorter of the two.
pub(super) fn join<T>(pieces: &mut VecDeque<T>, mut more: VecDeque<T>) {
    work::steps(pieces.len().min(more.len()));
    if pieces.len() >= more.len() {
        pieces.append(&mut more);
    } else {
        pieces.drain(..).rev().for_each(|piece| more.push_front(piece));
        *pieces = more;
    }
}

/// Ranges that are added one by one, and sorted and merged now and then: merging every time would take quadratic time.
#[derive(Default)]
pub(super) struct Ranges {
    pub(super) ranges: Vec<ClassUnicodeRange>,
    /// The number of ranges after the last merge.
    pub(super) merged: usize,
}

impl From<ClassUnicode> for Ranges {
    fn from(set: ClassUnicode) -> Self {
        Ranges { merged: set.ranges().len(), ranges: set.ranges().to_vec() }
    }
}

impl Ranges {
    pub(super) fn add(&mut self, set: &ClassUnicode) {
        work::steps(1 + set.ranges().len() / RANGES_PER_STEP);
        self.ranges.extend(set.ranges());
        if self.ranges.len() > 2 * self.merged + UNMERGED_MAX {
            *self = Ranges::from(std::mem::take(self).into_set());
        }
    }

    pub(super) fn into_set(self) -> ClassUnicode {
        work::steps(self.ranges.len());
        ClassUnicode::new(self.ranges)
    }
}

pub(super) fn literal_hir(chars: &VecDeque<Option<char>>, fold: bool) -> Hir {
    work::steps(chars.len());
    let one = |char: &Option<char>| match char {
        None => Hir::fail(),
        Some(char) => {
            let set = of_chars([*char]);
            Hir::class(Class::Unicode(if fold { folded(set) } else { set }))
        }
    };
    if fold || chars.contains(&None) {
        return Hir::concat(chars.iter().map(one).collect());
    }
    let text: String = chars.iter().flatten().collect();
    Hir::literal(text.into_bytes())
}
