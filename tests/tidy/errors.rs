//! Errors that are only a text: `Result<_, String>`, which says nothing that code could decide on.
//!
//! In: the sources of both packages, tests and comments left out. Out: how often each module returns such an error. The numbers
//! stand in `tests/data/text_errors.txt`, and are those that are there: who takes an error away writes the smaller number, so
//! that it can't grow again unseen.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::{PACKAGES, root, sources};

#[test]
fn errors_are_values_but_for_those_that_are_known() {
    let path = root().join("tests/data/text_errors.txt");
    let known = fs::read_to_string(path).expect("the list is there");
    let lines = known.lines().filter(|line| !line.starts_with('#'));
    let known: BTreeMap<String, usize> = lines.filter_map(line_of).collect();
    let changed = changes(&known, &counts());
    assert!(changed.is_empty(), "`Result<_, String>`, beside tests/data/text_errors.txt: {changed:#?}");
}

/// The modules that have another number than is known, and what is to be done.
fn changes(known: &BTreeMap<String, usize>, found: &BTreeMap<String, usize>) -> Vec<String> {
    let of = |counts: &BTreeMap<String, usize>, module: &str| counts.get(module).copied().unwrap_or_default();
    let modules: BTreeSet<&String> = known.keys().chain(found.keys()).collect();
    let change = |module: &&String| {
        let (known, found) = (of(known, module), of(found, module));
        let advice = match found.cmp(&known) {
            Ordering::Less => "write the smaller number",
            Ordering::Equal => return None,
            Ordering::Greater => "give the new ones an error type",
        };
        Some(format!("{module} has {found}, not {known}: {advice}"))
    };
    modules.iter().filter_map(change).collect()
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
fn a_number_that_is_no_longer_true_is_told() {
    let of = |counts: &[(&str, usize)]| counts.iter().map(|(module, count)| ((*module).to_owned(), *count)).collect();
    let known = of(&[("a", 2), ("b", 1), ("c", 3)]);
    assert!(changes(&known, &known).is_empty());
    assert_eq!(
        changes(&known, &of(&[("a", 1), ("c", 4), ("d", 1)])),
        [
            "a has 1, not 2: write the smaller number",
            "b has 0, not 1: write the smaller number",
            "c has 4, not 3: give the new ones an error type",
            "d has 1, not 0: give the new ones an error type",
        ]
    );
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
