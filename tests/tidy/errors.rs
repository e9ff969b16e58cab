//! Errors that are only a text: `Result<_, String>`, which says nothing that code could decide on.
//!
//! Input: the sources of both packages, tests and comments left out. Output: the files that return such an error, and how often:
//! none does.

use super::{PACKAGES, root, sources};

#[test]
fn errors_are_values() {
    let mut found = Vec::new();
    for (path, text) in PACKAGES.into_iter().flat_map(sources) {
        let path = path.strip_prefix(root()).expect("it is in the project");
        let is_test = path.file_name().is_some_and(|name| name == "tests.rs");
        let count = if is_test { 0 } else { text_errors(code_of(&text)) };
        if count > 0 {
            found.push((path.to_owned(), count));
        }
    }
    assert!(
        found.is_empty(),
        "`Result<_, String>` says nothing that code can decide on, give them error types: {found:#?}"
    );
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
