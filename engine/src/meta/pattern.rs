//! Regular expressions in Go's syntax, matched in time linear in the text.
//!
//! In: the text of a `pattern`. Out: a [`Pattern`], or Go's own words on why it is none. A parser of our own stands
//! here because the `regex` crate reads many patterns otherwise than Go does, several of them silently: `\d` is ASCII
//! in Go, `a{` is a literal, `\Q…\E` quotes, `[a&&b]` is not an intersection. Matching is the `regex` crate's own engine where
//! that can't take long, and elsewhere one that counts its steps.
//!
//! ```
//! use kubeskiff_engine::meta::pattern::Pattern;
//!
//! let pattern = Pattern::new("^[a-z]+$")?;
//! assert!(pattern.is_match("abc"));
//! let error = Pattern::new("a(").unwrap_err();
//! assert_eq!(error.to_string(), "error parsing regexp: missing closing ): `a(`");
//! # Ok::<(), kubeskiff_engine::meta::pattern::Error>(())
//! ```
//!
//! Source: Go's documentation of `regexp/syntax` with flags as `regexp.Compile` sets them, Go 1.26 (Unicode 15).

use std::collections::hash_map::Entry;
use std::collections::{HashMap, VecDeque};
use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::{Capture, Class, ClassUnicode, ClassUnicodeRange, Hir, HirKind, Look, Repetition};

use super::automaton::Automaton;
use crate::work;

/// How deeply groups and repetitions may nest.
const HEIGHT_MAX: u32 = 1000;
/// How often the innermost piece may be repeated by nested counts, `(x{10}){10}` being 100.
const COPIES_MAX: u64 = 1000;
/// Instructions of Go's compiled program: 128 MiB of 40 bytes.
const SIZE_MAX: u64 = (128 << 20) / 40;
/// States of our automaton. DIFFERS: Go has no such limit, as a class of many ranges is one instruction there. This is
/// reached by thousands of copies of a large class such as `\pL`.
const STATES_MAX: u64 = 4_000_000;
/// States of a pattern times bytes of a text that are looked at in one piece: 5 ms at worst.
const PIECE_MAX: u64 = 1 << 18;
/// Such looks that count as a step.
const LOOKS_PER_STEP: u64 = 256;
/// Pieces of a row or a choice that are merged into what is around it.
const MERGED_MAX: usize = 64;
/// Ranges of a set that are copied in a step.
const RANGES_PER_STEP: usize = 8;
/// Ranges of a set that wait to be merged.
const UNMERGED_MAX: usize = 4096;
/// Ranges in all classes: 128 MiB of two code points with 4 bytes each.
const RANGES_MAX: u64 = (128 << 20) / 8;

/// A pattern that Go's `regexp` accepts. The automata are built on the first match, as most patterns of a cluster never
/// see a value.
#[derive(Debug)]
pub struct Pattern {
    source: String,
    /// About how many states its automaton has.
    states: u64,
    regex: OnceLock<Regex>,
    /// For what might take long.
    automaton: OnceLock<Automaton>,
}

impl Pattern {
    /// Parses `source`; what is wrong with it comes in Go's words.
    ///
    /// # Errors
    ///
    /// What is wrong with it, in Go's words; and a pattern that needs too many states.
    pub fn new(source: &str) -> Result<Self, Error> {
        let (_, states) = Parser::new(source).parse()?;
        Ok(Pattern { source: source.to_owned(), states, regex: OnceLock::new(), automaton: OnceLock::new() })
    }

    /// Whether some part of `text` matches: the pattern is not anchored, as with Go's `MatchString`.
    pub fn is_match(&self, text: &str) -> bool {
        if self.is_quick(text.len()) { self.regex().is_match(text) } else { self.automaton().is_match(text) }
    }

    /// The first match in `text`.
    pub fn find(&self, text: &str) -> Option<Range<usize>> {
        self.find_from(text, 0)
    }

    /// The matches in `text` that don't overlap. An empty one does not follow another match at once.
    pub fn find_iter<'p>(&'p self, text: &'p str) -> impl Iterator<Item = Range<usize>> + 'p {
        let (mut start, mut last_end) = (0, None);
        std::iter::from_fn(move || {
            let mut found = self.find_from(text, start)?;
            if found.is_empty() && Some(found.end) == last_end {
                let next = text[found.end..].chars().next()?;
                found = self.find_from(text, found.end + next.len_utf8())?;
            }
            (start, last_end) = (found.end, Some(found.end));
            Some(found)
        })
    }

    /// The first match that begins at `start` or after it.
    fn find_from(&self, text: &str, start: usize) -> Option<Range<usize>> {
        if self.is_quick(text.len() - start) {
            self.regex().find(Input::new(text).range(start..)).map(|found| found.range())
        } else {
            self.automaton().find(text, start, || self.parsed())
        }
    }

    /// Whether so many bytes are looked at in one piece, which this counts.
    fn is_quick(&self, bytes: usize) -> bool {
        let looks = self.states.saturating_mul(bytes as u64 + 1);
        let is_quick = looks <= PIECE_MAX;
        if is_quick {
            work::steps(1 + (looks / LOOKS_PER_STEP) as usize);
        }
        is_quick
    }

    fn parsed(&self) -> (Hir, u64) {
        Parser::new(&self.source).parse().expect("`new` parsed this source")
    }

    fn regex(&self) -> &Regex {
        made_once(&self.regex, || {
            work::steps(self.states as usize);
            let config = Regex::config().nfa_size_limit(None).which_captures(WhichCaptures::Implicit);
            let built = Regex::builder().configure(config).build_from_hir(&self.parsed().0);
            built.expect("a pattern that is matched in one piece is small")
        })
    }

    fn automaton(&self) -> &Automaton {
        made_once(&self.automaton, || {
            let (hir, states) = self.parsed();
            Automaton::new(&hir, states)
        })
    }

    /// The text that this was made from.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// What is in `place`, or what is made for it: outside of the lock, as it may be ended.
fn made_once<T>(place: &OnceLock<T>, make: impl FnOnce() -> T) -> &T {
    if let Some(made) = place.get() {
        return made;
    }
    let made = make();
    place.get_or_init(|| made)
}

impl PartialEq for Pattern {
    fn eq(&self, other: &Self) -> bool {
        self.source == other.source
    }
}

/// Why a text is not a pattern; prints as Go's error does.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("error parsing regexp: {code}: `{fragment}`")]
pub struct Error {
    code: &'static str,
    fragment: String,
}

fn error(code: &'static str, fragment: &str) -> Error {
    Error { code, fragment: fragment.to_owned() }
}

const BAD_RANGE: &str = "invalid character class range";
const BAD_ESCAPE: &str = "invalid escape sequence";
const BAD_NAME: &str = "invalid named capture";
const BAD_PERL: &str = "invalid or unsupported Perl syntax";
const BAD_COUNT: &str = "invalid repeat count";
const NESTED_REPEAT: &str = "invalid nested repetition operator";
const NOTHING_TO_REPEAT: &str = "missing argument to repetition operator";
const NO_BRACKET: &str = "missing closing ]";
const NO_PAREN: &str = "missing closing )";
const STRAY_PAREN: &str = "unexpected )";
const TRAILING_BACKSLASH: &str = "trailing backslash at end of expression";
const TOO_DEEP: &str = "expression nests too deeply";
const TOO_LARGE: &str = "expression too large";

/// What `(?ims-U)` switches.
#[derive(Clone, Copy, Default)]
struct Flags {
    fold: bool,
    multi_line: bool,
    dot_newline: bool,
    swap_greed: bool,
}

/// An entry of the parser's stack: a finished piece with its measures, or a mark.
struct Piece {
    kind: PieceKind,
    height: u32,
    copies: u64,
    size: u64,
    states: u64,
}

enum PieceKind {
    /// A run of literal characters. Lone surrogates, which no text has, are `None`.
    Literal {
        chars: VecDeque<Option<char>>,
        fold: bool,
    },
    /// One character out of a set.
    Set(ClassUnicode),
    /// One character out of a set to which more may come.
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
    /// Pieces below it are alternatives to the one above.
    Bar,
}

impl Piece {
    fn leaf(kind: PieceKind, size: u64, states: u64) -> Self {
        Piece { kind, height: 1, copies: 1, size, states }
    }

    /// Ends a choice of characters: its states are known only now.
    fn settle(&mut self) {
        if let PieceKind::Choice(ranges) = &mut self.kind {
            let set = std::mem::take(ranges).into_set();
            self.states = states_of(&set);
            self.kind = PieceKind::Set(set);
        }
    }

    fn is_mark(&self) -> bool {
        matches!(self.kind, PieceKind::Paren { .. } | PieceKind::Bar)
    }

    /// Whether it matches exactly one character.
    fn is_set(&self) -> bool {
        match &self.kind {
            PieceKind::Set(_) | PieceKind::Choice(_) => true,
            PieceKind::Literal { chars, .. } => chars.len() == 1,
            _ => false,
        }
    }

    fn into_set(self) -> ClassUnicode {
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
    fn into_hir(self) -> Hir {
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

/// A long row or choice is kept apart, as it would else be copied for each group around it.
fn as_group(kind: PieceKind) -> Hir {
    let is_long =
        matches!(&kind, PieceKind::Concat(pieces) | PieceKind::Alternate(pieces) if pieces.len() > MERGED_MAX);
    let hir = kind.into_hir();
    if is_long { Hir::capture(Capture { index: 1, name: None, sub: Box::new(hir) }) } else { hir }
}

/// Puts `more` behind `pieces`, moving the fewer of them.
fn join<T>(pieces: &mut VecDeque<T>, mut more: VecDeque<T>) {
    work::steps(pieces.len().min(more.len()));
    if pieces.len() >= more.len() {
        pieces.append(&mut more);
    } else {
        pieces.drain(..).rev().for_each(|piece| more.push_front(piece));
        *pieces = more;
    }
}

/// Ranges that come one by one, sorted and merged now and then: each time at the end would cost their product.
#[derive(Default)]
struct Ranges {
    ranges: Vec<ClassUnicodeRange>,
    /// How many there were when they were merged last.
    merged: usize,
}

impl From<ClassUnicode> for Ranges {
    fn from(set: ClassUnicode) -> Self {
        Ranges { merged: set.ranges().len(), ranges: set.ranges().to_vec() }
    }
}

impl Ranges {
    fn add(&mut self, set: &ClassUnicode) {
        work::steps(1 + set.ranges().len() / RANGES_PER_STEP);
        self.ranges.extend(set.ranges());
        if self.ranges.len() > 2 * self.merged + UNMERGED_MAX {
            *self = Ranges::from(std::mem::take(self).into_set());
        }
    }

    fn into_set(self) -> ClassUnicode {
        work::steps(self.ranges.len());
        ClassUnicode::new(self.ranges)
    }
}

fn literal_hir(chars: &VecDeque<Option<char>>, fold: bool) -> Hir {
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

struct Parser<'s> {
    source: &'s str,
    flags: Flags,
    stack: Vec<Piece>,
    /// Pieces alive and the most that ever were, marks included: Go measures sizes only once these could matter.
    alive: u64,
    alive_max: u64,
    /// The product of all counts seen.
    repeats: u64,
    measures_size: bool,
    /// Bytes from the last `:]` to the end; the length of all where there is none.
    posix_end: usize,
    /// States and ranges of all that was pushed, each counted once.
    states: u64,
    ranges: u64,
    /// The Unicode groups met so far, by canonical name, with and without their folds.
    groups: HashMap<(String, bool), ClassUnicode>,
}

impl<'s> Parser<'s> {
    fn new(source: &'s str) -> Self {
        Parser {
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

    /// The pattern, and about how many states its automaton has.
    fn parse(mut self) -> Result<(Hir, u64), Error> {
        let mut rest = self.source;
        let mut last_repeat = "";
        while let Some(&first) = rest.as_bytes().first() {
            work::step();
            let before = rest;
            let mut repeat = "";
            match first {
                b'(' if rest.as_bytes().get(1) == Some(&b'?') => rest = self.perl_group(rest)?,
                b'(' => {
                    self.open_group(true)?;
                    rest = &rest[1..];
                }
                b'|' => {
                    self.vertical_bar()?;
                    rest = &rest[1..];
                }
                b')' => {
                    self.close_group()?;
                    rest = &rest[1..];
                }
                b'^' => {
                    self.look(if self.flags.multi_line { Look::StartLF } else { Look::Start })?;
                    rest = &rest[1..];
                }
                b'$' => {
                    self.look(if self.flags.multi_line { Look::EndLF } else { Look::End })?;
                    rest = &rest[1..];
                }
                b'.' => {
                    let newline = if self.flags.dot_newline { None } else { Some('\n') };
                    self.set(negated(newline.into_iter().map(|char| (char, char))))?;
                    rest = &rest[1..];
                }
                b'[' => rest = self.class(rest)?,
                b'*' | b'+' | b'?' => {
                    let (min, max) = match first {
                        b'*' => (0, None),
                        b'+' => (1, None),
                        _ => (0, Some(1)),
                    };
                    rest = self.repeat(min, max, false, before, &rest[1..], last_repeat)?;
                    repeat = before;
                }
                b'{' => match parse_counts(rest) {
                    None => {
                        self.literal('{' as u32)?;
                        rest = &rest[1..];
                    }
                    Some((counts, after)) => {
                        let (min, max) = counts.ok_or_else(|| error(BAD_COUNT, up_to(before, after)))?;
                        rest = self.repeat(min, max, true, before, after, last_repeat)?;
                        repeat = before;
                    }
                },
                b'\\' => rest = self.backslash(rest)?,
                _ => {
                    let (char, after) = next_char(rest);
                    self.literal(char)?;
                    rest = after;
                }
            }
            last_repeat = repeat;
        }
        self.end_alternation()?;
        match (self.stack.pop(), self.stack.is_empty()) {
            (Some(piece), true) => Ok((piece.kind.into_hir(), piece.states)),
            _ => Err(error(NO_PAREN, self.source)),
        }
    }

    // What stands on the stack.

    fn count_alive(&mut self, made: u64, merged: u64) {
        self.alive += made;
        self.alive_max = self.alive_max.max(self.alive);
        self.alive = self.alive.saturating_sub(merged);
    }

    /// Puts a piece on the stack, and joins the two literals below it: no operator can take them apart any more.
    fn push(&mut self, piece: Piece) -> Result<(), Error> {
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

    /// `count` is the count of the repetition that `piece` is, if it is a counted one.
    fn check_limits(&mut self, piece: &Piece, count: Option<u64>) -> Result<(), Error> {
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

    fn literal(&mut self, char: u32) -> Result<(), Error> {
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

    fn set(&mut self, set: ClassUnicode) -> Result<(), Error> {
        self.count_alive(1, 0);
        let states = states_of(&set);
        self.count_leaf(states, set.ranges().len() as u64)?;
        self.push(Piece::leaf(PieceKind::Set(set), 1, states))
    }

    /// Refuses what is too large before it is built.
    fn count_leaf(&mut self, states: u64, ranges: u64) -> Result<(), Error> {
        self.states += states;
        self.ranges += ranges;
        if self.states > STATES_MAX || self.ranges > RANGES_MAX { Err(error(TOO_LARGE, self.source)) } else { Ok(()) }
    }

    fn look(&mut self, look: Look) -> Result<(), Error> {
        self.count_alive(1, 0);
        self.push(Piece::leaf(PieceKind::Other(Hir::look(look)), 1, 1))
    }

    fn open_group(&mut self, captures: bool) -> Result<(), Error> {
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
    ) -> Result<&'s str, Error> {
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
            copies: match counted && max == Some(0) {
                true => 1,
                false if counted => sub.copies.saturating_mul(count.max(1)),
                false => sub.copies,
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

    /// Takes what stands above the topmost mark off the stack, in order.
    fn above_mark(&mut self) -> Vec<Piece> {
        let start = self.stack.iter().rposition(Piece::is_mark).map_or(0, |mark| mark + 1);
        self.stack.split_off(start)
    }

    /// Joins what stands above the topmost mark to one piece.
    fn concat(&mut self) -> Result<(), Error> {
        self.join_literals();
        let pieces = self.above_mark();
        if pieces.is_empty() {
            self.count_alive(1, 0);
            return self.push(Piece::leaf(PieceKind::Other(Hir::empty()), 1, 1));
        }
        let piece = self.collapse(pieces, false);
        self.push(piece)
    }

    /// One piece out of several; rows inside a row and choices inside a choice are merged.
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

    fn vertical_bar(&mut self) -> Result<(), Error> {
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
    fn end_alternation(&mut self) -> Result<(), Error> {
        self.concat()?;
        if self.swap_vertical_bar() {
            self.stack.pop();
            self.count_alive(0, 1);
        }
        let pieces = self.above_mark();
        let piece = self.collapse(pieces, true);
        self.push(piece)
    }

    fn close_group(&mut self) -> Result<(), Error> {
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
            // Only whether and where all of it matches is ever asked, so a capture is a group.
            kind: PieceKind::Other(as_group(inner.kind)),
        };
        self.push(piece)
    }

    // What is read.

    /// `(?P<name>`, `(?<name>`, `(?flags)` or `(?flags:`.
    fn perl_group(&mut self, text: &'s str) -> Result<&'s str, Error> {
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

    /// What a backslash outside of a class starts.
    fn backslash(&mut self, text: &'s str) -> Result<&'s str, Error> {
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

    /// `[…]`.
    fn class(&mut self, text: &'s str) -> Result<&'s str, Error> {
        let mut rest = &text[1..];
        let negative = rest.starts_with('^');
        if negative {
            rest = &rest[1..];
        }
        // One union at the end, as a class of many pieces would cost their product. Groups are folded already.
        let mut ranges = Ranges::default();
        let mut loose: Vec<ClassUnicodeRange> = Vec::new();
        let mut first = true;
        while first || !rest.starts_with(']') {
            work::step();
            first = false;
            if let Some((set, after)) = self.posix_class(rest)? {
                ranges.add(&set);
                rest = after;
                continue;
            }
            if let Some((set, after)) = self.unicode_class(rest)? {
                ranges.add(&set);
                rest = after;
                continue;
            }
            if let Some((set, after)) = self.perl_class(rest) {
                ranges.add(&set);
                rest = after;
                continue;
            }
            let start = rest;
            let (low, after) = class_char(rest, text)?;
            rest = after;
            let mut high = low;
            if let [b'-', next, ..] = rest.as_bytes()
                && *next != b']'
            {
                (high, rest) = class_char(&rest[1..], text)?;
                if high < low {
                    return Err(error(BAD_RANGE, up_to(start, rest)));
                }
            }
            loose.extend(set_between(low, high).ranges());
        }
        let mut set = ClassUnicode::new(loose);
        if self.flags.fold {
            set = folded(set);
        }
        set.union(&ranges.into_set());
        if negative {
            set.negate();
        }
        self.set(set)?;
        Ok(&rest[1..])
    }

    /// `[:alpha:]`, within a class.
    fn posix_class(&self, text: &'s str) -> Result<Option<(ClassUnicode, &'s str)>, Error> {
        let Some(inner) = text.strip_prefix("[:").filter(|inner| inner.len() >= self.posix_end) else {
            return Ok(None);
        };
        let Some(end) = inner.find(":]") else { return Ok(None) };
        let (whole, rest) = text.split_at(end + 4);
        let name = &whole[2..whole.len() - 2];
        let (negative, name) = name.strip_prefix('^').map_or((false, name), |name| (true, name));
        let ranges = posix_ranges(name).ok_or_else(|| error(BAD_RANGE, whole))?;
        Ok(Some((self.ascii_group(ranges, negative), rest)))
    }

    /// `\d`, `\S` and so on.
    fn perl_class(&self, text: &'s str) -> Option<(ClassUnicode, &'s str)> {
        let [b'\\', letter, ..] = text.as_bytes() else { return None };
        let ranges: &[(char, char)] = match letter.to_ascii_lowercase() {
            b'd' => &[('0', '9')],
            b's' => &[('\t', '\n'), ('\u{c}', '\r'), (' ', ' ')],
            b'w' => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
            _ => return None,
        };
        Some((self.ascii_group(ranges, letter.is_ascii_uppercase()), &text[2..]))
    }

    fn ascii_group(&self, ranges: &[(char, char)], negative: bool) -> ClassUnicode {
        let mut set = ClassUnicode::new(ranges.iter().map(|&(low, high)| ClassUnicodeRange::new(low, high)));
        if self.flags.fold {
            set = folded(set);
        }
        if negative {
            set.negate();
        }
        set
    }

    /// `\pL`, `\p{Greek}`, `\P{^Lu}`.
    fn unicode_class(&mut self, text: &'s str) -> Result<Option<(ClassUnicode, &'s str)>, Error> {
        let [b'\\', letter @ (b'p' | b'P'), ..] = text.as_bytes() else { return Ok(None) };
        let (char, mut rest) = next_char(&text[2..]);
        let mut name = up_to(&text[2..], rest);
        if char == '{' as u32 {
            let end = text.find('}').ok_or_else(|| error(BAD_RANGE, text))?;
            (name, rest) = (&text[3..end], &text[end + 1..]);
        }
        let (inverse, name) = name.strip_prefix('^').map_or((false, name), |name| (true, name));
        let unknown = || error(BAD_RANGE, up_to(text, rest));
        let mut set = match self.groups.entry((canonical_name(name), self.flags.fold)) {
            Entry::Occupied(known) => known.get().clone(),
            Entry::Vacant(new) => {
                let (name, fold) = new.key();
                let set = unicode_group(name, *fold).ok_or_else(unknown)?;
                new.insert(set).clone()
            }
        };
        if inverse != (*letter == b'P') {
            set.negate();
        }
        Ok(Some((set, rest)))
    }
}

/// `text` without `rest`, which is its end.
fn up_to<'t>(text: &'t str, rest: &str) -> &'t str {
    &text[..text.len() - rest.len()]
}

/// The first character; at the end of the text U+FFFD, as in Go.
fn next_char(text: &str) -> (u32, &str) {
    let mut chars = text.chars();
    let char = chars.next().unwrap_or(char::REPLACEMENT_CHARACTER);
    (char as u32, chars.as_str())
}

/// `min` and `max` of a repetition; no `max` is unbounded.
type Counts = (u32, Option<u32>);

/// `{2}`, `{2,}` or `{2,5}` and what follows it; `None` if it is no such thing, no counts if they are out of bounds.
fn parse_counts(text: &str) -> Option<(Option<Counts>, &str)> {
    let (min, mut rest) = parse_count(text.strip_prefix('{')?)?;
    let mut max = Some(min);
    if let Some(after) = rest.strip_prefix(',') {
        rest = after;
        max = None;
        if !rest.starts_with('}') {
            let (number, after) = parse_count(rest)?;
            (max, rest) = (Some(number), after);
        }
    }
    let rest = rest.strip_prefix('}')?;
    let fine = min <= 1000 && max.is_none_or(|max| max <= 1000 && min <= max);
    Some((fine.then_some((min, max)), rest))
}

/// Digits without a leading zero; too large a number saturates.
fn parse_count(text: &str) -> Option<(u32, &str)> {
    let end = text.bytes().position(|byte| !byte.is_ascii_digit()).unwrap_or(text.len());
    let (digits, rest) = text.split_at(end);
    if digits.is_empty() || digits.len() > 1 && digits.starts_with('0') {
        return None;
    }
    Some((digits.parse().unwrap_or(u32::MAX), rest))
}

/// A character within `[…]`, `whole` being all from the bracket on.
fn class_char<'s>(text: &'s str, whole: &str) -> Result<(u32, &'s str), Error> {
    match text.as_bytes().first() {
        None => Err(error(NO_BRACKET, whole)),
        Some(b'\\') => escape(text),
        Some(_) => Ok(next_char(text)),
    }
}

/// The code point that `\…` at the start of `text` stands for; it may be a surrogate.
fn escape(text: &str) -> Result<(u32, &str), Error> {
    let rest = &text[1..];
    if rest.is_empty() {
        return Err(error(TRAILING_BACKSLASH, ""));
    }
    let (letter, mut rest) = next_char(rest);
    let octal = |text: &str| text.bytes().next().filter(|byte| (b'0'..=b'7').contains(byte)).map(|byte| byte - b'0');
    let is_backreference = octal(rest).is_none();
    let code_point = match char::from_u32(letter).unwrap_or_default() {
        'a' => 0x07,
        'f' => 0x0c,
        'n' => 0x0a,
        'r' => 0x0d,
        't' => 0x09,
        'v' => 0x0b,
        'x' => return hexadecimal(text, rest),
        '1'..='7' if is_backreference => return Err(error(BAD_ESCAPE, up_to(text, rest))),
        '0'..='7' => {
            let mut code_point = letter - '0' as u32;
            for _ in 0..2 {
                let Some(digit) = octal(rest) else { break };
                code_point = code_point * 8 + u32::from(digit);
                rest = &rest[1..];
            }
            code_point
        }
        char if char.is_ascii() && !char.is_ascii_alphanumeric() => letter,
        _ => return Err(error(BAD_ESCAPE, up_to(text, rest))),
    };
    Ok((code_point, rest))
}

/// The two digits or the braces after `\x`; `text` is all from the backslash on.
fn hexadecimal<'s>(text: &str, rest: &'s str) -> Result<(u32, &'s str), Error> {
    let digit = |char: u32| char::from_u32(char).and_then(|char| char.to_digit(16));
    let (first, mut rest) = next_char(rest);
    if first != '{' as u32 {
        let (second, rest) = next_char(rest);
        return match (digit(first), digit(second)) {
            (Some(high), Some(low)) => Ok((high * 16 + low, rest)),
            _ => Err(error(BAD_ESCAPE, up_to(text, rest))),
        };
    }
    let mut code_point: Option<u32> = None;
    while !rest.is_empty() {
        let (char, after) = next_char(rest);
        rest = after;
        if let ('}', Some(code_point)) = (char::from_u32(char).unwrap_or_default(), code_point) {
            return Ok((code_point, rest));
        }
        let Some(digit) = digit(char) else { break };
        let number = code_point.unwrap_or(0) * 16 + digit;
        if number > char::MAX as u32 {
            break;
        }
        code_point = Some(number);
    }
    Err(error(BAD_ESCAPE, up_to(text, rest)))
}

/// The characters from `low` to `high`, both code points; surrogates are none.
fn set_between(low: u32, high: u32) -> ClassUnicode {
    let low = (low..=high).take(0x801).find_map(char::from_u32);
    let high = (0..=high).rev().take(0x801).find_map(char::from_u32);
    ClassUnicode::new(
        low.zip(high).filter(|(low, high)| low <= high).map(|(low, high)| ClassUnicodeRange::new(low, high)),
    )
}

fn negated(ranges: impl Iterator<Item = (char, char)>) -> ClassUnicode {
    let mut set = ClassUnicode::new(ranges.map(|(low, high)| ClassUnicodeRange::new(low, high)));
    set.negate();
    set
}

fn posix_ranges(name: &str) -> Option<&'static [(char, char)]> {
    Some(match name {
        "alnum" => &[('0', '9'), ('A', 'Z'), ('a', 'z')],
        "alpha" => &[('A', 'Z'), ('a', 'z')],
        "ascii" => &[('\0', '\x7f')],
        "blank" => &[('\t', '\t'), (' ', ' ')],
        "cntrl" => &[('\0', '\x1f'), ('\x7f', '\x7f')],
        "digit" => &[('0', '9')],
        "graph" => &[('!', '~')],
        "lower" => &[('a', 'z')],
        "print" => &[(' ', '~')],
        "punct" => &[('!', '/'), (':', '@'), ('[', '`'), ('{', '~')],
        "space" => &[('\t', '\r'), (' ', ' ')],
        "upper" => &[('A', 'Z')],
        "word" => &[('0', '9'), ('A', 'Z'), ('_', '_'), ('a', 'z')],
        "xdigit" => &[('0', '9'), ('A', 'F'), ('a', 'f')],
        _ => return None,
    })
}

/// The scripts of Unicode 15 that Go finds by name: those of one word, as it drops underscores before it looks.
const SCRIPTS: &str = "\
    Adlam Ahom Arabic Armenian Avestan Balinese Bamum Batak Bengali Bhaiksuki Bopomofo Brahmi Braille Buginese \
    Buhid Carian Chakma Cham Cherokee Chorasmian Common Coptic Cuneiform Cypriot Cyrillic Deseret Devanagari Dogra \
    Duployan Elbasan Elymaic Ethiopic Georgian Glagolitic Gothic Grantha Greek Gujarati Gurmukhi Han Hangul \
    Hanunoo Hatran Hebrew Hiragana Inherited Javanese Kaithi Kannada Katakana Kawi Kharoshthi Khmer Khojki \
    Khudawadi Lao Latin Lepcha Limbu Lisu Lycian Lydian Mahajani Makasar Malayalam Mandaic Manichaean Marchen \
    Medefaidrin Miao Modi Mongolian Mro Multani Myanmar Nabataean Nandinagari Newa Nko Nushu Ogham Oriya Osage \
    Osmanya Palmyrene Phoenician Rejang Runic Samaritan Saurashtra Sharada Shavian Siddham Sinhala Sogdian Soyombo \
    Sundanese Syriac Tagalog Tagbanwa Takri Tamil Tangsa Tangut Telugu Thaana Thai Tibetan Tifinagh Tirhuta Toto \
    Ugaritic Vai Vithkuqi Wancho Yezidi Yi";

/// `name` as Go looks it up: case, spaces, hyphens and underscores don't matter.
fn canonical_name(name: &str) -> String {
    let mut canonical: String = name.chars().filter(|char| !matches!(char, '_' | '-' | ' ')).collect();
    canonical.make_ascii_lowercase();
    if let Some(first) = canonical.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    canonical
}

/// The set that `\p{name}` means, by its canonical name.
fn unicode_group(name: &str, fold: bool) -> Option<ClassUnicode> {
    let short = match name {
        "Any" => return Some(negated(std::iter::empty())),
        "Ascii" => {
            let ascii = ClassUnicode::new([ClassUnicodeRange::new('\0', '\x7f')]);
            return Some(if fold { folded(ascii) } else { ascii });
        }
        "Assigned" => return Some(assigned()),
        "Unassigned" | "Cn" => {
            let mut unassigned = assigned();
            unassigned.negate();
            return Some(unassigned);
        }
        "Other" | "C" => {
            let mut other = assigned();
            other.negate();
            for part in ["Cc", "Cf", "Co"] {
                other.union(&table(&format!("gc={part}")));
            }
            return Some(other);
        }
        // Text has no surrogates.
        "Surrogate" | "Cs" => return Some(ClassUnicode::empty()),
        "Casedletter" | "Lc" => "LC",
        "Closepunctuation" | "Pe" => "Pe",
        "Combiningmark" | "Mark" | "M" => "M",
        "Connectorpunctuation" | "Pc" => "Pc",
        "Control" | "Cntrl" | "Cc" => "Cc",
        "Currencysymbol" | "Sc" => "Sc",
        "Dashpunctuation" | "Pd" => "Pd",
        "Decimalnumber" | "Digit" | "Nd" => "Nd",
        "Enclosingmark" | "Me" => "Me",
        "Finalpunctuation" | "Pf" => "Pf",
        "Format" | "Cf" => "Cf",
        "Initialpunctuation" | "Pi" => "Pi",
        "Letter" | "L" => "L",
        "Letternumber" | "Nl" => "Nl",
        "Lineseparator" | "Zl" => "Zl",
        "Lowercaseletter" | "Ll" => "Ll",
        "Mathsymbol" | "Sm" => "Sm",
        "Modifierletter" | "Lm" => "Lm",
        "Modifiersymbol" | "Sk" => "Sk",
        "Nonspacingmark" | "Mn" => "Mn",
        "Number" | "N" => "N",
        "Openpunctuation" | "Ps" => "Ps",
        "Otherletter" | "Lo" => "Lo",
        "Othernumber" | "No" => "No",
        "Otherpunctuation" | "Po" => "Po",
        "Othersymbol" | "So" => "So",
        "Paragraphseparator" | "Zp" => "Zp",
        "Privateuse" | "Co" => "Co",
        "Punctuation" | "Punct" | "P" => "P",
        "Separator" | "Z" => "Z",
        "Spaceseparator" | "Zs" => "Zs",
        "Spacingmark" | "Mc" => "Mc",
        "Symbol" | "S" => "S",
        "Titlecaseletter" | "Lt" => "Lt",
        "Uppercaseletter" | "Lu" => "Lu",
        script if SCRIPTS.split(' ').any(|name| name == script) => {
            return Some(fold_if(fold, within_assigned(table(&format!("sc={script}")))));
        }
        _ => return None,
    };
    let mut set = within_assigned(table(&format!("gc={short}")));
    match short {
        "Mn" => set.union(&of_chars([MOVED_MARK])),
        "Mc" => set.difference(&of_chars([MOVED_MARK])),
        _ => {}
    }
    // Go has no table of what cased letters fold to.
    Some(fold_if(fold && short != "LC", set))
}

fn fold_if(fold: bool, set: ClassUnicode) -> ClassUnicode {
    if fold { folded(set) } else { set }
}

/// A property of the Unicode tables by the name that `regex-syntax` has for it.
fn table(property: &str) -> ClassUnicode {
    match regex_syntax::parse(&format!("\\p{{{property}}}")).map(Hir::into_kind) {
        Ok(HirKind::Class(Class::Unicode(set))) => set,
        Ok(HirKind::Literal(literal)) => {
            let chars = String::from_utf8_lossy(&literal.0).into_owned();
            of_chars(chars.chars())
        }
        _ => ClassUnicode::empty(),
    }
}

/// What Unicode 15 assigns: Go's tables are of that version, ours are newer. Code points that never will be characters
/// have an age, but are not assigned.
fn assigned() -> ClassUnicode {
    let mut assigned = table("gc=Cn");
    assigned.negate();
    assigned.intersect(&table("Age=15.0"));
    assigned
}

/// Characters with a case that came after Unicode 15, or that fold to each other only since then.
const NEWER_FOLDS: [(char, char); 10] = [
    ('\u{390}', '\u{390}'),
    ('\u{3b0}', '\u{3b0}'),
    ('\u{1c89}', '\u{1c8a}'),
    ('\u{1fd3}', '\u{1fd3}'),
    ('\u{1fe3}', '\u{1fe3}'),
    ('\u{a7cb}', '\u{a7cd}'),
    ('\u{a7da}', '\u{a7dc}'),
    ('\u{fb05}', '\u{fb06}'),
    ('\u{10d50}', '\u{10d65}'),
    ('\u{10d70}', '\u{10d85}'),
];

/// A mark that became a spacing one (`Mc`) after Unicode 15, where it is nonspacing (`Mn`).
const MOVED_MARK: char = '\u{1171e}';

fn of_chars(chars: impl IntoIterator<Item = char>) -> ClassUnicode {
    ClassUnicode::new(chars.into_iter().map(|char| ClassUnicodeRange::new(char, char)))
}

fn within_assigned(mut set: ClassUnicode) -> ClassUnicode {
    set.intersect(&assigned());
    set
}

/// `set` and all that simple case folding makes equal to it.
fn folded(set: ClassUnicode) -> ClassUnicode {
    let mut wide = set.clone();
    if set.is_ascii() {
        wide.case_fold_simple();
        return wide;
    }
    let newer = ClassUnicode::new(NEWER_FOLDS.map(|(low, high)| ClassUnicodeRange::new(low, high)));
    wide.difference(&newer);
    wide.case_fold_simple();
    wide.difference(&newer);
    wide.union(&set);
    wide
}

fn has_case(char: char) -> bool {
    if char.is_ascii() {
        return char.is_ascii_alphabetic();
    }
    let one = of_chars([char]);
    folded(one.clone()) != one
}

/// About how many states of a UTF-8 automaton `set` takes.
fn states_of(set: &ClassUnicode) -> u64 {
    if set.is_ascii() { 1 } else { 4 + 2 * set.ranges().len() as u64 }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(pattern: &str, fits: &[&str], fails: &[&str]) {
        let compiled = Pattern::new(pattern).unwrap_or_else(|error| panic!("{error}"));
        for text in fits {
            assert!(compiled.is_match(text), "`{pattern}` should match {text:?}");
        }
        for text in fails {
            assert!(!compiled.is_match(text), "`{pattern}` should not match {text:?}");
        }
    }

    #[track_caller]
    fn check_error(pattern: &str, expected: &str) {
        let message = Pattern::new(pattern).expect_err(pattern).to_string();
        assert_eq!(message, format!("error parsing regexp: {expected}"));
    }

    #[test]
    fn a_pattern_matches_any_part_of_a_text() {
        check("b", &["abc"], &["ac"]);
        check("^b$", &["b"], &["ab", "b\n"]);
        check("", &["", "x"], &[]);
    }

    #[test]
    fn perl_classes_and_word_boundaries_are_ascii() {
        check("^\\d$", &["5"], &["\u{665}"]);
        check("^\\w$", &["_"], &["é"]);
        check("^\\s$", &[" ", "\x0c"], &["\x0b", "\u{a0}"]);
        check("a\\b", &["aé"], &["ab"]);
    }

    #[test]
    fn case_folding_is_unicode_even_for_perl_classes() {
        check("(?i)^k$", &["K", "\u{212a}"], &["x"]);
        check("(?i)^\\w$", &["\u{17f}"], &[]);
        check("(?i)[^k]", &["x"], &["K"]);
        check("(?i)^\\P{Lu}$", &["1"], &["a", "A"]);
        check("(?i:a)b", &["Ab"], &["AB"]);
    }

    #[test]
    fn unicode_is_of_version_15() {
        check("^\\p{Cn}$", &["\u{fdd0}", "\u{10ffff}", "\u{2ebf0}"], &["a"]);
        check("^\\p{Assigned}$", &["a"], &["\u{fdd0}", "\u{2ebf0}"]);
        check("^\\p{Mn}$", &["\u{1171e}"], &[]);
        check("(?i)^[\u{390}\u{fb05}]$", &["\u{390}"], &["\u{1fd3}", "\u{fb06}"]);
        check("(?i)^\\p{LC}$", &["a"], &["\u{345}"]);
        check("(?i)^\\p{Ll}$", &["A", "\u{345}"], &[]);
    }

    #[test]
    fn braces_that_are_no_count_are_literal() {
        check("^a{,2}$", &["a{,2}"], &["aa"]);
        check("^a{$", &["a{"], &[]);
        check("^{1$", &["{1"], &[]);
        check("^a{01}$", &["a{01}"], &[]);
    }

    #[test]
    fn classes_have_no_operators() {
        check("^[a&&b]+$", &["a&b"], &["c"]);
        check("^[+--b]+$", &["+,-b"], &["a"]);
        check("^[]a]+$", &["]a"], &["b"]);
        check("^[a-]+$", &["-a"], &["b"]);
        check("^[[:alpha:][:^ascii:]]+$", &["aé"], &["1"]);
    }

    #[test]
    fn quotes_and_escapes() {
        check("^\\Qa.b*\\E+$", &["a.b**"], &["axb"]);
        check("^\\101\\x42\\x{43}\\-$", &["ABC-"], &[]);
        check("^\\x{D800}?a$", &["a"], &[]);
        check("^\\pN\\p{Greek}\\P{Greek}\\p{^Greek}$", &["1αab"], &["1aab"]);
    }

    #[test]
    fn flags_last_until_their_group_ends() {
        check("(?s)^a.b$", &["a\nb"], &[]);
        check("^a.b$", &["aéb"], &["a\nb"]);
        check("(?m)^b$", &["a\nb\nc"], &["ab"]);
        check("(a(?i)b)c", &["aBc"], &["aBC"]);
        check("(?i-s:A.)(?P<x>b)(?<y>c)", &["axbc"], &["axBc"]);
    }

    #[test]
    fn what_go_refuses_is_refused_in_its_words() {
        check_error("(?=a)b", "invalid or unsupported Perl syntax: `(?=`");
        check_error("(?i", "invalid or unsupported Perl syntax: `(?i`");
        check_error("[", "missing closing ]: `[`");
        check_error("a(", "missing closing ): `a(`");
        check_error("a)b", "unexpected ): `a)b`");
        check_error("a{1001}", "invalid repeat count: `{1001}`");
        check_error("a{2,1}", "invalid repeat count: `{2,1}`");
        check_error("((a{100}){10}){2}", "invalid repeat count: `{2}`");
        check_error("*", "missing argument to repetition operator: `*`");
        check_error("a|*?", "missing argument to repetition operator: `*?`");
        check_error("a**", "invalid nested repetition operator: `**`");
        check_error("a+?{2}", "invalid nested repetition operator: `+?{2}`");
        check_error("[b-a]", "invalid character class range: `b-a`");
        check_error("[[:foo:]]", "invalid character class range: `[:foo:]`");
        check_error("\\p{Old_Italic}", "invalid character class range: `\\p{Old_Italic}`");
        check_error("\\Z", "invalid escape sequence: `\\Z`");
        check_error("\\8", "invalid escape sequence: `\\8`");
        check_error("a\\", "trailing backslash at end of expression: ``");
        check_error("(?P<n", "invalid named capture: `(?P<n`");
        check_error("(?P<a-b>c)", "invalid named capture: `(?P<a-b>`");
    }

    #[test]
    fn nesting_ends_at_a_thousand_levels() {
        let nested = |levels: usize| format!("{}a{}", "(".repeat(levels), ")".repeat(levels));
        check(&nested(999), &["a"], &[]);
        let deep = nested(1000);
        check_error(&deep, &format!("expression nests too deeply: `{deep}`"));
    }

    /// Steps of reading a pattern, and of matching it with a text.
    fn steps(pattern: &str, text: &str) -> u64 {
        let read = || Pattern::new(pattern).map(|pattern| pattern.is_match(text));
        let (result, steps) = work::counted(read);
        assert!(result.is_ok(), "{result:?}");
        steps
    }

    #[track_caller]
    fn check_growth(make: impl Fn(usize) -> (String, String)) {
        let of = |size| {
            let (pattern, text) = make(size);
            steps(&pattern, &text)
        };
        let (small, large) = (of(1000), of(10_000));
        assert!(large < 13 * small, "{small} steps, then {large}");
    }

    #[test]
    fn ten_times_the_text_takes_ten_times_the_steps() {
        for pattern in ["(\\pL|x){20}(\\pL|y){20}!", "^[a-z]+$", "(a|aa)*b", "(?:a*)*$x", "x*y*z*!"] {
            check_growth(|size| (pattern.to_owned(), "axé".repeat(10 * size)));
        }
    }

    #[test]
    fn ten_times_the_pattern_takes_ten_times_the_steps() {
        let chars = |count: usize| ('\u{4e00}'..).take(count);
        check_growth(|size| (chars(size).map(|char| format!("{char}|")).collect(), String::new()));
        check_growth(|size| (format!("[{}]", chars(size).collect::<String>()), String::new()));
        check_growth(|size| (format!("[{}]", "\\pL".repeat(size / 10)), String::new()));
        check_growth(|size| (format!("[{}]", "[:a".repeat(size)), String::new()));
        check_growth(|size| (format!("{}b{}", "(?:a".repeat(size), ")".repeat(size)), String::new()));
        check_growth(|size| (format!("{}b{}", "(?:[ab]c*".repeat(size), ")".repeat(size)), String::new()));
        check_growth(|size| (format!("{}b{}", "(?:".repeat(size), "c*a)".repeat(size)), String::new()));
        check_growth(|size| (format!("{}{}{}", "(".repeat(300), "a*b".repeat(size), "c)".repeat(300)), String::new()));
    }

    /// What is found in pieces is what the engine finds that goes through a text at once.
    #[test]
    fn both_engines_find_the_same() {
        let texts = ["", "abcabc", "é", "aébé\nx", "foo bar  baz", "aaaaab", "日本語 text", "12-34_56"];
        for source in [
            "",
            "a|ab",
            "(a|ab)(c|bcd)?",
            "\\b",
            "\\B",
            "^",
            "$",
            "(?m)^.",
            "x*",
            "[^a]*?b",
            "\\pL+",
            "a*?",
            "(?:)|b",
            "\\bb",
            "o+",
        ] {
            let pattern = Pattern::new(source).expect("it is a pattern");
            for text in texts {
                let quick: Vec<_> = pattern.regex().find_iter(text).map(|found| found.range()).collect();
                assert_eq!(pattern.find_iter(text).collect::<Vec<_>>(), quick, "`{source}` in {text:?}");
                assert_eq!(pattern.automaton().is_match(text), !quick.is_empty(), "`{source}` in {text:?}");
                for start in (0..=text.len()).filter(|start| text.is_char_boundary(*start)) {
                    let found = pattern.automaton().find(text, start, || pattern.parsed());
                    let expected = pattern.regex().find(Input::new(text).range(start..)).map(|found| found.range());
                    assert_eq!(found, expected, "`{source}` in {text:?} from {start}");
                }
            }
        }
    }

    #[test]
    fn a_long_search_can_be_ended() {
        struct Never;
        impl work::Oversee for Never {
            fn look(&mut self) -> Result<(), work::Ended> {
                Err(work::Ended::Budget)
            }
        }
        let pattern = Pattern::new("(\\pL|x){1000}(\\pL|y){1000}!").expect("it is a pattern");
        let ended = work::Meter::new(Never).run(|| pattern.is_match(&"xé1".repeat(100_000)));
        assert!(matches!(ended, Err(work::Broken::Ended(_))));
    }
}
