//! The fuzz targets over their corpora, and over what some seeds make of these. `fuzz/run` goes on for longer.

#[path = "../fuzz/targets/lib.rs"]
pub mod targets;

use std::fs;
use std::path::Path;
use std::time::Duration;

use targets::{TARGETS, Target};

/// How many inputs the seeds make for each target.
const MADE: u64 = 500;
const INPUT_BYTES_MAX: usize = 4_096;
/// As the server's threads have.
const STACK_BYTES: usize = 64 << 20;

#[test]
fn properties_hold_over_the_corpora_and_some_seeds() {
    let running: Vec<_> = TARGETS
        .into_iter()
        .map(|target| {
            let name = target.name;
            let thread = std::thread::Builder::new().name(format!("fuzz {name}")).stack_size(STACK_BYTES);
            let work = move || {
                let corpus = corpus(name);
                corpus.iter().for_each(|input| attempt(target, input));
                (1..=MADE).for_each(|seed| attempt(target, &mutated(&corpus, seed)));
            };
            (name, thread.spawn(work).expect("there is memory for a thread"))
        })
        .collect();
    let failed: Vec<&str> =
        running.into_iter().filter_map(|(name, thread)| thread.join().err().map(|_| name)).collect();
    assert!(failed.is_empty(), "what fails stands above: {failed:?}");
}

#[test]
fn controllers_are_given_all_that_their_corpus_has() {
    for input in corpus("controllers") {
        let not_made = targets::controllers::not_made(&input, Duration::from_secs(30));
        assert!(not_made.is_empty(), "{not_made:?}");
    }
}

fn corpus(name: &str) -> Vec<Vec<u8>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("fuzz/corpus").join(name);
    let mut paths: Vec<_> = fs::read_dir(&folder)
        .expect("every target has a corpus")
        .map(|entry| entry.expect("the corpus is readable").path())
        .collect();
    paths.sort();
    assert!(!paths.is_empty(), "the corpus of {name} is empty");
    paths.iter().map(|path| fs::read(path).expect("the corpus is readable")).collect()
}

/// Runs the target, and shows the input that it fails on.
fn attempt(target: Target, input: &[u8]) {
    struct Shown<'a>(&'a [u8]);
    impl Drop for Shown<'_> {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("the input is b\"{}\"", self.0.escape_ascii());
            }
        }
    }
    let _shown = Shown(input);
    target.attempt(input);
}

/// An input of the corpus after some changes, the same for the same seed.
fn mutated(corpus: &[Vec<u8>], seed: u64) -> Vec<u8> {
    let mut random = Random(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15));
    let mut input = random.pick(corpus).clone();
    for _ in 0..=random.below(4) {
        let (from, to) = (random.below(input.len() + 1), random.below(input.len() + 1));
        let (from, to) = (from.min(to), from.max(to));
        match random.below(6) {
            0 => drop(input.drain(from..to.min(from + 8))),
            1 => input.insert(from, random.byte()),
            2 => input.iter_mut().skip(from).take(1).for_each(|byte| *byte = random.byte()),
            3 => drop(input.splice(to..to, input[from..to].to_vec())),
            4 => drop(input.splice(from..to, random.pick(corpus).clone())),
            _ => drop(input.splice(from..from, random.token().bytes())),
        }
        input.truncate(INPUT_BYTES_MAX);
    }
    input
}

/// xorshift64*.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 16
    }

    fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next()).expect("48 bits fit") % bound
    }

    fn pick<'p, T>(&mut self, from: &'p [T]) -> &'p T {
        &from[self.below(from.len())]
    }

    fn byte(&mut self) -> u8 {
        *self.pick(b"{}[]()\"'\\/,:;=!<>&|*?+-.%#@~^$ \n\t01e9aAnN\x00\x7f\x80\xc3\xff")
    }

    fn token(&mut self) -> &'static str {
        const TOKENS: [&str; 20] = [
            "null",
            "true",
            "{}",
            "[]",
            "\"\"",
            "-0.0",
            "1e400",
            "\\ud800",
            "%2f",
            "in (",
            "---",
            "<<: *a",
            "&a ",
            "\\p{L}",
            "self.list",
            ".map(x, x)",
            "has(",
            "?1:",
            "b'\\377'",
            "1u",
        ];
        TOKENS[self.below(TOKENS.len())]
    }
}
