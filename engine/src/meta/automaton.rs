//! Matching in countable steps: an automaton that is driven byte by byte.
//!
//! Input: the parsed form of a pattern, and texts. Output: whether they match, and where. The states of the automaton
//! are built lazily and cached up to a limit, so that a byte costs at most a look-up, or building one state.
//!
//! The meta engine of `regex-automata` is faster for short texts, but goes through a text in one piece, which takes
//! time in proportion to the text times the pattern.

use std::ops::Range;
use std::sync::{Mutex, OnceLock, PoisonError};

use regex_automata::hybrid::LazyStateID;
use regex_automata::hybrid::dfa::{Cache, Config, DFA};
use regex_automata::nfa::thompson::{self, WhichCaptures};
use regex_automata::{Anchored, Input, MatchKind};
use regex_syntax::hir::Hir;

use crate::work;

/// The most bytes of states that a search builds before it clears the cache.
const CACHE_BYTES_MAX: usize = 16 << 20;
/// The most bytes of states that are kept from one search to the next.
const CACHE_BYTES_KEPT: usize = 2 << 20;
/// How many bytes of a text are counted at once.
const PIECE_BYTES: usize = 1024;
/// Building a state of the automaton counts one step per this many states of the pattern.
const STATES_PER_STEP: u64 = 64;

/// The automaton of a pattern.
#[derive(Debug)]
pub(super) struct Automaton {
    forward: Direction,
    /// Finds the start of a match, which most searches don't need.
    backward: OnceLock<Direction>,
}

#[derive(Debug)]
struct Direction {
    dfa: DFA,
    /// The cache that the last search left.
    cache: Mutex<Option<Box<Cache>>>,
    /// The steps of building a state.
    steps: usize,
}

impl Automaton {
    /// The automaton of `hir`, which has about this many states.
    pub fn new(hir: &Hir, states: u64) -> Self {
        Automaton { forward: Direction::new(hir, states, false), backward: OnceLock::new() }
    }

    /// Whether any part of `text` matches.
    pub fn is_match(&self, text: &str) -> bool {
        let mut cache = self.forward.take_cache();
        let mut start = 0;
        let found = loop {
            match self.forward.end(&mut cache, text.as_bytes(), start, true) {
                // An empty match within a character does not count.
                Some(end) if !text.is_char_boundary(end) => start = end + 1,
                found => break found.is_some(),
            }
        };
        self.forward.give_back(cache);
        found
    }

    /// The first match that begins at `start` or after it; `hir` is what the automaton was made from.
    pub fn find(&self, text: &str, mut start: usize, hir: impl FnOnce() -> (Hir, u64)) -> Option<Range<usize>> {
        let mut cache = self.forward.take_cache();
        let mut hir = Some(hir);
        let found = loop {
            let Some(end) = self.forward.end(&mut cache, text.as_bytes(), start, false) else { break None };
            let backward = self.backward(&mut hir);
            let mut cache = backward.take_cache();
            let begin = backward.begin(&mut cache, text.as_bytes(), start..end);
            backward.give_back(cache);
            if begin < end || text.is_char_boundary(end) {
                break Some(begin..end);
            }
            start = end + 1;
        };
        self.forward.give_back(cache);
        found
    }

    /// Built outside the lock, as the budget may abort it.
    fn backward(&self, hir: &mut Option<impl FnOnce() -> (Hir, u64)>) -> &Direction {
        let made = match (self.backward.get(), hir.take()) {
            (None, Some(hir)) => {
                let (hir, states) = hir();
                Some(Direction::new(&hir, states, true))
            }
            _ => None,
        };
        self.backward.get_or_init(|| made.expect("what is not there yet was just made"))
    }
}

impl Direction {
    fn new(hir: &Hir, states: u64, backward: bool) -> Self {
        work::steps(usize::try_from(states).unwrap_or(usize::MAX));
        let config = thompson::Config::new().which_captures(WhichCaptures::None).nfa_size_limit(None).reverse(backward);
        let nfa = thompson::Compiler::new().configure(config).build_from_hir(hir);
        let nfa = nfa.expect("STATES_MAX states fit an automaton");
        let kind = if backward { MatchKind::All } else { MatchKind::LeftmostFirst };
        let config = Config::new().match_kind(kind).cache_capacity(CACHE_BYTES_MAX).skip_cache_capacity_check(true);
        let dfa = DFA::builder().configure(config).build_from_nfa(nfa).expect("every capacity is enough");
        let steps = usize::try_from(1 + states / STATES_PER_STEP).unwrap_or(usize::MAX);
        Direction { dfa, cache: Mutex::new(None), steps }
    }

    fn take_cache(&self) -> Box<Cache> {
        let kept = self.cache.lock().unwrap_or_else(PoisonError::into_inner).take();
        kept.unwrap_or_else(|| {
            work::steps(self.steps);
            Box::new(self.dfa.create_cache())
        })
    }

    fn give_back(&self, cache: Box<Cache>) {
        if cache.memory_usage() <= CACHE_BYTES_KEPT {
            *self.cache.lock().unwrap_or_else(PoisonError::into_inner) = Some(cache);
        }
    }

    /// The end of the first match from `start` on; of the shortest one with `earliest`, else of the one that Go
    /// prefers.
    fn end(&self, cache: &mut Cache, text: &[u8], start: usize, earliest: bool) -> Option<usize> {
        if start > text.len() {
            return None;
        }
        let input = Input::new(text).range(start..);
        let mut state = self.dfa.start_state_forward(cache, &input).expect(NEVER_FAILS);
        let mut end = None;
        let mut at = start;
        while at < text.len() {
            let piece = &text[at..text.len().min(at + PIECE_BYTES)];
            work::bytes(piece.len());
            for byte in piece {
                state = self.next(cache, state, *byte);
                // A match is reported one byte late.
                if state.is_match() {
                    end = Some(at);
                    if earliest {
                        return end;
                    }
                } else if state.is_dead() {
                    return end;
                }
                at += 1;
            }
        }
        let last = self.dfa.next_eoi_state(cache, state).expect(NEVER_FAILS);
        if last.is_match() { Some(text.len()) } else { end }
    }

    /// The start of the match that ends where `range` does.
    fn begin(&self, cache: &mut Cache, text: &[u8], range: Range<usize>) -> usize {
        let input = Input::new(text).range(range.clone()).anchored(Anchored::Yes);
        let mut state = self.dfa.start_state_reverse(cache, &input).expect(NEVER_FAILS);
        let mut begin = range.end;
        for (count, at) in range.clone().rev().enumerate() {
            if count % PIECE_BYTES == 0 {
                work::bytes(PIECE_BYTES);
            }
            state = self.next(cache, state, text[at]);
            if state.is_match() {
                begin = at + 1;
            } else if state.is_dead() {
                return begin;
            }
        }
        let last = match range.start.checked_sub(1) {
            Some(before) => self.next(cache, state, text[before]),
            None => self.dfa.next_eoi_state(cache, state).expect(NEVER_FAILS),
        };
        if last.is_match() { range.start } else { begin }
    }

    fn next(&self, cache: &mut Cache, state: LazyStateID, byte: u8) -> LazyStateID {
        if state.is_tagged() {
            work::step();
        } else {
            let known = self.dfa.next_state_untagged(cache, state, byte);
            if !known.is_unknown() {
                return known;
            }
            work::steps(self.steps);
        }
        self.dfa.next_state(cache, state, byte).expect(NEVER_FAILS)
    }
}

const NEVER_FAILS: &str = "no byte ends a search, and a full cache is emptied";
