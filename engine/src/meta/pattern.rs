//! Regular expressions in Go's syntax, matched in time linear in the text.
//!
//! Input: the text of a `pattern`. Output: a [`Pattern`], or Go's error. The parser is our own because the `regex`
//! crate reads many patterns differently from Go, several of them silently: `\d` is ASCII in Go, `a{` is a literal,
//! `\Q…\E` quotes, `[a&&b]` is not an intersection. Matching uses the `regex` crate's engine if that can't take long,
//! and else one that counts its steps.
//!
//! ```
//! use kubeskiff_engine::meta::pattern::Pattern;
//!
//! let pattern = Pattern::new("^[a-z]+$")?;
//! assert!(pattern.is_match("abc"));
//! let error = Pattern::new("a(").unwrap_err();
//! assert_eq!(error.to_string(), "error parsing regexp: missing closing ): `a(`");
//! # Ok::<(), kubeskiff_engine::meta::pattern::PatternError>(())
//! ```
//!
//! Source: Go's documentation of `regexp/syntax` with flags as `regexp.Compile` sets them, Go 1.26 (Unicode 15).

mod parser;
mod piece;
mod unicode;

use std::ops::Range;
use std::sync::OnceLock;

use regex_automata::Input;
use regex_automata::meta::Regex;
use regex_automata::nfa::thompson::WhichCaptures;
use regex_syntax::hir::Hir;

use parser::PatternParser;

use super::automaton::Automaton;
use crate::work;

/// The most states of a pattern times bytes of a text that are matched in one piece: 5 ms at worst.
const PIECE_MAX: u64 = 1 << 18;
/// What a state takes, in bytes.
const STATE_BYTES: usize = 64;
/// How many of these count as a step.
const LOOKS_PER_STEP: u64 = 256;

/// A pattern that Go's `regexp` accepts. The automata are built on the first match, as most patterns of a cluster never
/// see a value.
#[derive(Debug)]
pub struct Pattern {
    source: String,
    /// The approximate number of states of its automaton.
    states: u64,
    regex: OnceLock<Regex>,
    /// For matches that might take long.
    automaton: OnceLock<Automaton>,
}

impl Pattern {
    /// Parses `source`; errors are in Go's words.
    ///
    /// # Errors
    ///
    /// A syntax error, in Go's words; or the pattern needs too many states.
    pub fn new(source: &str) -> Result<Self, PatternError> {
        let (_, states) = PatternParser::new(source).parse()?;
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

    /// The matches in `text` that don't overlap. An empty match directly after another one is skipped.
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

    /// Whether this many bytes may be matched in one piece; if so, counts them.
    fn is_quick(&self, bytes: usize) -> bool {
        let looks = self.states.saturating_mul(bytes as u64 + 1);
        let is_quick = looks <= PIECE_MAX;
        if is_quick {
            work::steps(1 + (looks / LOOKS_PER_STEP) as usize);
        }
        is_quick
    }

    fn parsed(&self) -> (Hir, u64) {
        PatternParser::new(&self.source).parse().expect("`new` parsed this source")
    }

    fn regex(&self) -> &Regex {
        made_once(&self.regex, || {
            work::steps(self.states as usize);
            // The texts are short, so a search for literals first would save nothing. Classes before a long literal make
            // thousands of literals.
            let config =
                Regex::config().nfa_size_limit(None).which_captures(WhichCaptures::Implicit).auto_prefilter(false);
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

    /// About how much memory it takes once it was matched, in bytes.
    pub fn bytes(&self) -> usize {
        self.source.len() + usize::try_from(self.states).unwrap_or(usize::MAX).saturating_mul(STATE_BYTES)
    }

    /// The text of the pattern.
    pub fn source(&self) -> &str {
        &self.source
    }
}

/// The value in `place`, which is made if needed: outside the lock, as the budget may abort it.
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
pub struct PatternError {
    code: &'static str,
    fragment: String,
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

    /// The steps of parsing a pattern, and of matching it with a text.
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

    /// Matching in pieces finds the same as the engine that matches a text at once.
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
