//! Errors that are only a text: `Result<_, String>`, which says nothing that code could decide on.
//!
//! In: the sources of both packages, tests and comments left out. Out: how often each module returns such an error. The numbers
//! stand in `tests/data/text_errors.txt`, and are those that are there: who takes an error away writes the smaller number, so
//! that it can't grow again unseen.

use super::ratchet::{self, Numbers};
use super::{PACKAGES, root, sources};

#[test]
fn errors_are_values_but_for_those_that_are_known() {
    let remedy = "give the new ones an error type";
    let changed = ratchet::changes(&ratchet::known("text_errors.txt"), &counts(), remedy);
    assert!(changed.is_empty(), "`Result<_, String>`, beside tests/data/text_errors.txt: {changed:#?}");
}

/// How many there are in each module of the packages.
fn counts() -> Numbers {
    let mut counts = Numbers::new();
    for package in PACKAGES {
        for (path, text) in sources(package) {
            let count = text_errors(code_of(&text));
            let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
            if count == 0 || is_test {
                continue;
            }
            let relative = path.strip_prefix(root().join(package)).expect("it is in the package").with_extension("");
            let module = relative.iter().next().map(|part| part.to_string_lossy().into_owned()).unwrap_or_default();
            *counts.entry(format!("{package}/{module}")).or_default() += count;
        }
    }
    counts
}

fn code_of(text: &str) -> &str {
    text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default()
}

/// The `Result<_, String>` of a source.
fn text_errors(code: &str) -> usize {
    let code: Vec<&str> = code.lines().map(|line| line.split("//").next().unwrap_or_default()).collect();
    code.join("\n").split("Result<").skip(1).filter(|rest| error_of(rest) == Some("String")).count()
}

/// The second of the arguments that begin a text, if there are two.
fn error_of(rest: &str) -> Option<&str> {
    let (mut depth, mut comma, mut before) = (1_usize, None, ' ');
    for (at, sign) in rest.char_indices() {
        match sign {
            '<' | '(' | '[' => depth += 1,
            ')' | ']' => depth -= 1,
            // Not that of an arrow.
            '>' if before != '-' => depth -= 1,
            ',' if depth == 1 => comma = Some(at + 1),
            _ => {}
        }
        if depth == 0 {
            return comma.map(|from| rest[from..at].trim());
        }
        before = sign;
    }
    None
}

#[test]
fn a_text_is_told_from_other_errors() {
    let check = |code: &str, expected: usize| assert_eq!(text_errors(code), expected, "{code}");
    check("fn a() -> Result<u8, String> {", 1);
    check("fn a() -> Result<(String, Vec<u8>), String> {", 1);
    check("fn a() -> Result<Result<u8, String>, Status> {", 1);
    check("fn a() -> Result<String, Status> {", 0);
    check("fn a(of: impl Fn(u8) -> Result<u8, Error>) -> io::Result<String> {", 0);
    check("// It was a Result<u8, String>.", 0);
}
