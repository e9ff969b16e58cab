//! Reads a pattern as Go's parser does: on a stack, in one pass, with Go's limits and Go's errors.

mod messages;
mod characters;
mod class;

use std::collections::{HashMap, VecDeque};

use regex_syntax::hir::{ClassUnicode, Hir, Look, Repetition};

use self::characters::{escape, next_char, parse_counts, up_to};
use self::messages::{
    BAD_COUNT, BAD_ESCAPE, BAD_NAME, BAD_PERL, NESTED_REPEAT, NO_PAREN, NOTHING_TO_REPEAT, STRAY_PAREN, TOO_DEEP,
    TOO_LARGE, error,
};
use super::PatternError;
use super::piece::{Flags, Piece, PieceKind, Ranges, as_group, join};
use super::unicode::{has_case, negated, states_of};
use crate::work;

/// How deeply groups and repetitions may nest.
const HEIGHT_MAX: u32 = 1000;
/// How often the innermost piece may be repeated by nested counts; `(x{10}){10}` repeats it 100 times.
const COPIES_MAX: u64 = 1000;
/// Instructions of Go's compiled program: 128 MiB of 40 bytes.
const SIZE_MAX: u64 = (128 << 20) / 40;
/// States of our automaton. DIFFERS: Go has no such limit, as a class of many ranges is one instruction there. This is
/// reached by thousands of copies of a large class such as `\pL`.
const STATES_MAX: u64 = 4_000_000;
/// Ranges in all classes: 128 MiB of two code points with 4 bytes each.
const RANGES_MAX: u64 = (128 << 20) / 8;

/// A parser of one pattern.
pub(in crate::meta::pattern) struct PatternParser<'s> {
    source: &'s str,
    flags: Flags,
    stack: Vec<Piece>,
    /// The current and the maximum number of pieces, marks included: Go only measures sizes once these could matter.
    alive: u64,
    alive_max: u64,
    /// The product of all counts seen.
    repeats: u64,
    measures_size: bool,
    /// The bytes from the last `:]` to the end; the length of the pattern if there is none.
    posix_end: usize,
    /// States and ranges of everything pushed, each counted once.
    states: u64,
    ranges: u64,
    /// The Unicode groups used so far, by canonical name, with and without their folds.
    groups: HashMap<(String, bool), ClassUnicode>,
}

impl<'s> PatternParser<'s> {
    pub(in crate::meta::pattern) fn new(source: &'s str) -> Self {
        PatternParser {
            source,
            flags: Flags::default(),
            stack: Vec::new(),
            alive: 0,
            alive_max: 0,
            repeats: 1,
            measures_size: false,
            posix_end: source.rfind(":]").map_or(usize::MAX, |at| source.len() - at),
            states: 0,
            ranges: 0,
            groups: HashMap::new(),
        }
    }

    /// The pattern, and the approximate number of states of its automaton.
    pub(in crate::meta::pattern) fn parse(mut self) -> Result<(Hir, u64), PatternError> {
        let mut rest = self.source;
        let mut last_repeat = "";
        while let Some(&first) = rest.as_bytes().first() {
            work::step();
            let (after, is_repeat) = self.token(first, rest, last_repeat)?;
            last_repeat = if is_repeat { rest } else { "" };
            rest = after;
        }
        self.end_alternation()?;
        match (self.stack.pop(), self.stack.is_empty()) {
            (Some(piece), true) => Ok((piece.kind.into_hir(), piece.states)),
            _ => Err(error(NO_PAREN, self.source)),
        }
    }

    /// Parses the token at the start of `rest`; returns the text after it, and whether it was a repetition.
    /// `last_repeat` is the start of the repetition directly before it, if there was one.
    fn token(&mut self, first: u8, rest: &'s str, last_repeat: &'s str) -> Result<(&'s str, bool), PatternError> {
        match first {
            b'(' if rest.as_bytes().get(1) == Some(&b'?') => return Ok((self.perl_group(rest)?, false)),
            b'[' => return Ok((self.class(rest)?, false)),
            b'\\' => return Ok((self.backslash(rest)?, false)),
            b'*' => return Ok((self.repeat(0, None, false, rest, &rest[1..], last_repeat)?, true)),
            b'+' => return Ok((self.repeat(1, None, false, rest, &rest[1..], last_repeat)?, true)),
            b'?' => return Ok((self.repeat(0, Some(1), false, rest, &rest[1..], last_repeat)?, true)),
            b'{' if let Some((counts, after)) = parse_counts(rest) => {
                let (min, max) = counts.ok_or_else(|| error(BAD_COUNT, up_to(rest, after)))?;
                return Ok((self.repeat(min, max, true, rest, after, last_repeat)?, true));
            }
            b'(' => self.open_group(true)?,
            b'|' => self.vertical_bar()?,
            b')' => self.close_group()?,
            b'^' => self.look(if self.flags.multi_line { Look::StartLF } else { Look::Start })?,
            b'$' => self.look(if self.flags.multi_line { Look::EndLF } else { Look::End })?,
            b'.' => {
                let newline = if self.flags.dot_newline { None } else { Some('\n') };
                self.set(negated(newline.into_iter().map(|char| (char, char))))?;
            }
            _ => {
                let (char, after) = next_char(rest);
                self.literal(char)?;
                return Ok((after, false));
            }
        }
        Ok((&rest[1..], false))
    }

    // The items on the stack.

    fn count_alive(&mut self, made: u64, merged: u64) {
        self.alive += made;
        self.alive_max = self.alive_max.max(self.alive);
        self.alive = self.alive.saturating_sub(merged);
    }

    /// Pushes a piece on the stack, and joins the two literals below it: no operator can separate them any more.
    fn push(&mut self, piece: Piece) -> Result<(), PatternError> {
        self.join_literals();
        self.check_limits(&piece, None)?;
        self.stack.push(piece);
        Ok(())
    }

    fn join_literals(&mut self) {
        let [.., below, top] = self.stack.as_mut_slice() else { return };
        let (PieceKind::Literal { chars, fold }, PieceKind::Literal { chars: more, fold: more_fold }) =
            (&mut below.kind, &mut top.kind)
        else {
            return;
        };
        if fold != more_fold {
            return;
        }
        join(chars, std::mem::take(more));
        below.size += top.size;
        below.states += top.states;
        self.stack.pop();
        self.count_alive(0, 1);
    }

    /// `count` is the count if `piece` is a counted repetition.
    fn check_limits(&mut self, piece: &Piece, count: Option<u64>) -> Result<(), PatternError> {
        if let Some(count) = count {
            self.repeats = self.repeats.saturating_mul(count.max(1)).min(SIZE_MAX);
        }
        self.measures_size |= self.alive_max >= SIZE_MAX / self.repeats;
        if self.measures_size && piece.size > SIZE_MAX || piece.states > STATES_MAX {
            return Err(error(TOO_LARGE, self.source));
        }
        if piece.height > HEIGHT_MAX {
            return Err(error(TOO_DEEP, self.source));
        }
        Ok(())
    }

    fn literal(&mut self, char: u32) -> Result<(), PatternError> {
        let char = char::from_u32(char);
        let fold = self.flags.fold && char.is_some_and(has_case);
        let states = match char {
            // `k` and `s` have partners outside of ASCII.
            Some('k' | 'K' | 's' | 'S') if fold => 6,
            Some(char) if fold && !char.is_ascii() => 8,
            Some(char) => char.len_utf8() as u64,
            None => 1,
        };
        self.count_alive(1, 0);
        self.count_leaf(states, 1)?;
        self.push(Piece::leaf(PieceKind::Literal { chars: [char].into(), fold }, 1, states))
    }

    fn set(&mut self, set: ClassUnicode) -> Result<(), PatternError> {
        self.count_alive(1, 0);
        let states = states_of(&set);
        self.count_leaf(states, set.ranges().len() as u64)?;
        self.push(Piece::leaf(PieceKind::Set(set), 1, states))
    }

    /// Refuses a piece that is too large before it is built.
    fn count_leaf(&mut self, states: u64, ranges: u64) -> Result<(), PatternError> {
        self.states += states;
        self.ranges += ranges;
        if self.states > STATES_MAX || self.ranges > RANGES_MAX { Err(error(TOO_LARGE, self.source)) } else { Ok(()) }
    }

    fn look(&mut self, look: Look) -> Result<(), PatternError> {
        self.count_alive(1, 0);
        self.push(Piece::leaf(PieceKind::Other(Hir::look(look)), 1, 1))
    }

    fn open_group(&mut self, captures: bool) -> Result<(), PatternError> {
        self.count_alive(1, 0);
        self.push(Piece::leaf(PieceKind::Paren { flags: self.flags, captures }, 1, 1))
    }

    /// `before` starts at the operator, `after` follows it, `last_repeat` starts at the operator just before, if any.
    fn repeat(
        &mut self,
        min: u32,
        max: Option<u32>,
        counted: bool,
        before: &str,
        mut after: &'s str,
        last_repeat: &str,
    ) -> Result<&'s str, PatternError> {
        let mut greedy = !self.flags.swap_greed;
        if let Some(rest) = after.strip_prefix('?') {
            after = rest;
            greedy = !greedy;
        }
        if !last_repeat.is_empty() {
            return Err(error(NESTED_REPEAT, up_to(last_repeat, after)));
        }
        let Some(sub) = self.stack.pop_if(|piece| !piece.is_mark()) else {
            return Err(error(NOTHING_TO_REPEAT, up_to(before, after)));
        };
        self.count_alive(1, 0);
        let count = u64::from(max.unwrap_or(min));
        let unrolled = |sub: u64| match (max, min) {
            (None, 0) => 2 + sub,
            (None, min) => 1 + u64::from(min).saturating_mul(sub),
            (Some(max), min) => u64::from(max).saturating_mul(sub).saturating_add(u64::from(max.saturating_sub(min))),
        };
        let piece = Piece {
            height: sub.height + 1,
            copies: if !counted {
                sub.copies
            } else if max == Some(0) {
                1
            } else {
                sub.copies.saturating_mul(count.max(1))
            },
            size: unrolled(sub.size).max(1),
            states: unrolled(sub.states).max(1),
            kind: PieceKind::Other(Hir::repetition(Repetition {
                min,
                max,
                greedy,
                sub: Box::new(sub.kind.into_hir()),
            })),
        };
        self.check_limits(&piece, counted.then_some(count))?;
        if counted && count >= 2 && piece.copies > COPIES_MAX {
            return Err(error(BAD_COUNT, up_to(before, after)));
        }
        self.stack.push(piece);
        Ok(after)
    }

    /// Pops everything above the topmost mark off the stack, in order.
    fn above_mark(&mut self) -> Vec<Piece> {
        let start = self.stack.iter().rposition(Piece::is_mark).map_or(0, |mark| mark + 1);
        self.stack.split_off(start)
    }

    /// Joins everything above the topmost mark into one piece.
    fn concat(&mut self) -> Result<(), PatternError> {
        self.join_literals();
        let pieces = self.above_mark();
        if pieces.is_empty() {
            self.count_alive(1, 0);
            return self.push(Piece::leaf(PieceKind::Other(Hir::empty()), 1, 1));
        }
        let piece = self.collapse(pieces, false);
        self.push(piece)
    }

    /// Makes one piece out of several; concatenations in concatenations and alternatives in alternatives are merged.
    fn collapse(&mut self, mut pieces: Vec<Piece>, choice: bool) -> Piece {
        work::steps(pieces.len());
        pieces.iter_mut().for_each(Piece::settle);
        if pieces.len() == 1 {
            return pieces.remove(0);
        }
        let mut whole = Piece::leaf(PieceKind::Bar, 0, 0);
        let mut hirs = VecDeque::with_capacity(pieces.len());
        let mut merged = 0;
        let links = if choice { (pieces.len() as u64).saturating_sub(1) } else { 0 };
        for piece in pieces {
            whole.size += piece.size;
            whole.states += piece.states;
            whole.copies = whole.copies.max(piece.copies);
            let same = matches!((&piece.kind, choice), (PieceKind::Concat(_), false) | (PieceKind::Alternate(_), true));
            whole.height = whole.height.max(if same { piece.height } else { piece.height + 1 });
            match piece.kind {
                PieceKind::Concat(inner) if !choice => {
                    join(&mut hirs, inner);
                    merged += 1;
                }
                PieceKind::Alternate(inner) if choice => {
                    join(&mut hirs, inner);
                    merged += 1;
                }
                kind => hirs.push_back(kind.into_hir()),
            }
        }
        whole.size += links;
        whole.states += links;
        whole.kind = if choice { PieceKind::Alternate(hirs) } else { PieceKind::Concat(hirs) };
        self.count_alive(1, merged);
        whole
    }

    fn vertical_bar(&mut self) -> Result<(), PatternError> {
        self.concat()?;
        if !self.swap_vertical_bar() {
            self.count_alive(1, 0);
            self.push(Piece::leaf(PieceKind::Bar, 1, 1))?;
        }
        Ok(())
    }

    /// Moves the piece on top below the bar under it, if there is one; two sets become one.
    fn swap_vertical_bar(&mut self) -> bool {
        if !matches!(self.stack.as_slice(), [.., Piece { kind: PieceKind::Bar, .. }, _]) {
            return false;
        }
        let Some(top) = self.stack.pop() else { return false };
        let below = self.stack.len().checked_sub(2);
        match below.and_then(|at| self.stack.get_mut(at)).filter(|below| below.is_set() && top.is_set()) {
            Some(below) => {
                let other = std::mem::replace(below, Piece::leaf(PieceKind::Bar, 1, 1));
                let mut ranges = match other.kind {
                    PieceKind::Choice(ranges) => ranges,
                    _ => Ranges::from(other.into_set()),
                };
                ranges.add(&top.into_set());
                *below = Piece::leaf(PieceKind::Choice(ranges), 1, 1);
                self.count_alive(0, 1);
            }
            None => {
                let bar = self.stack.len() - 1;
                self.stack.insert(bar, top);
            }
        }
        true
    }

    /// Ends the group, or the whole pattern: one piece for all alternatives since the opening parenthesis.
    fn end_alternation(&mut self) -> Result<(), PatternError> {
        self.concat()?;
        if self.swap_vertical_bar() {
            self.stack.pop();
            self.count_alive(0, 1);
        }
        let pieces = self.above_mark();
        let piece = self.collapse(pieces, true);
        self.push(piece)
    }

    fn close_group(&mut self) -> Result<(), PatternError> {
        self.end_alternation()?;
        let (inner, paren) = (self.stack.pop(), self.stack.pop());
        let (Some(inner), Some(Piece { kind: PieceKind::Paren { flags, captures }, .. })) = (inner, paren) else {
            return Err(error(STRAY_PAREN, self.source));
        };
        self.flags = flags;
        if !captures {
            return self.push(inner);
        }
        let piece = Piece {
            height: inner.height + 1,
            copies: inner.copies,
            size: inner.size + 2,
            states: inner.states,
            // Only the range of the whole match is ever needed, so a capture is a plain group.
            kind: PieceKind::Other(as_group(inner.kind)),
        };
        self.push(piece)
    }

    // What is read.

    /// `(?P<name>`, `(?<name>`, `(?flags)` or `(?flags:`.
    fn perl_group(&mut self, text: &'s str) -> Result<&'s str, PatternError> {
        let bytes = text.as_bytes();
        let name_start = match bytes {
            [_, _, b'P', b'<', _, ..] => Some(4),
            [_, _, b'<', _, ..] => Some(3),
            _ => None,
        };
        if let Some(start) = name_start {
            let end = text.find('>').ok_or_else(|| error(BAD_NAME, text))?;
            // The name is empty when `>` follows at once.
            let name = text.get(start..end).unwrap_or_default();
            if name.is_empty() || !name.bytes().all(|byte| byte == b'_' || byte.is_ascii_alphanumeric()) {
                return Err(error(BAD_NAME, &text[..=end]));
            }
            self.open_group(true)?;
            return Ok(&text[end + 1..]);
        }

        let mut flags = self.flags;
        let (mut negative, mut saw_flag) = (false, false);
        let mut rest = &text[2..];
        while !rest.is_empty() {
            let (char, after) = next_char(rest);
            rest = after;
            match char::from_u32(char).unwrap_or_default() {
                'i' => flags.fold = !negative,
                'm' => flags.multi_line = !negative,
                's' => flags.dot_newline = !negative,
                'U' => flags.swap_greed = !negative,
                '-' if !negative => {
                    negative = true;
                    saw_flag = false;
                    continue;
                }
                end @ (':' | ')') if !negative || saw_flag => {
                    if end == ':' {
                        self.open_group(false)?;
                    }
                    self.flags = flags;
                    return Ok(rest);
                }
                _ => break,
            }
            saw_flag = true;
        }
        Err(error(BAD_PERL, up_to(text, rest)))
    }

    /// Parses what a backslash outside of a class starts.
    fn backslash(&mut self, text: &'s str) -> Result<&'s str, PatternError> {
        let look = match text.as_bytes().get(1) {
            Some(b'A') => Some(Look::Start),
            Some(b'b') => Some(Look::WordAscii),
            Some(b'B') => Some(Look::WordAsciiNegate),
            Some(b'z') => Some(Look::End),
            Some(b'C') => return Err(error(BAD_ESCAPE, &text[..2])),
            Some(b'Q') => {
                let (quoted, rest) = text[2..].split_once("\\E").unwrap_or((&text[2..], ""));
                for char in quoted.chars() {
                    self.literal(char as u32)?;
                }
                return Ok(rest);
            }
            _ => None,
        };
        if let Some(look) = look {
            self.look(look)?;
            return Ok(&text[2..]);
        }
        if let Some((set, rest)) = self.unicode_class(text)? {
            self.set(set)?;
            return Ok(rest);
        }
        if let Some((set, rest)) = self.perl_class(text) {
            self.set(set)?;
            return Ok(rest);
        }
        let (char, rest) = escape(text)?;
        self.literal(char)?;
        Ok(rest)
    }
}
