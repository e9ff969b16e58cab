//! Errors that are only a text: `Result<_, String>`, which says nothing that code could decide on.
//!
//! In: the sources of both packages, tests and comments left out. Out: how often each module returns such an error. The numbers
//! stand in `tests/data/text_errors.txt`; they may only become smaller.

use std::collections::BTreeMap;
use std::fs;

use super::{PACKAGES, root, sources};

#[test]
fn errors_are_values_but_for_those_that_are_known() {
    let path = root().join("tests/data/text_errors.txt");
    let known = fs::read_to_string(path).expect("the list is there");
    let lines = known.lines().filter(|line| !line.starts_with('#'));
    let known: BTreeMap<String, usize> = lines.filter_map(line_of).collect();
    let found = counts();
    let grown: Vec<String> = found
        .iter()
        .filter(|(module, count)| **count > known.get(*module).copied().unwrap_or_default())
        .map(|(module, count)| format!("{module} {count}"))
        .collect();
    assert!(
        grown.is_empty(),
        "modules with more `Result<_, String>` than tests/data/text_errors.txt has (give them an error type): {grown:#?}"
    );
}

fn line_of(line: &str) -> Option<(String, usize)> {
    let (module, count) = line.split_once(' ')?;
    Some((module.to_owned(), count.parse().ok()?))
}

/// How many there are in each module of the packages.
fn counts() -> BTreeMap<String, usize> {
    let mut counts = BTreeMap::new();
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
