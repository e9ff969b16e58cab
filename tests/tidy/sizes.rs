//! Functions that are too long to be read at once.
//!
//! Input: the sources of both packages, formatted, tests left out. Output: the functions of more than 60 lines. Tables of CEL's
//! functions may be as long as there are functions.

use super::{PACKAGES, root, sources};

/// From the line of its name to its last brace.
const LINES_MAX: usize = 60;
const TABLES: &str = "engine/src/cel/library";
const WORDS: [&str; 3] = ["const ", "async ", "pub "];

#[test]
fn functions_are_short() {
    let mut found = Vec::new();
    for (path, text) in PACKAGES.into_iter().flat_map(sources) {
        let path = path.strip_prefix(root()).expect("it is in the project");
        let is_test = path.iter().any(|part| part == "tests" || part == "tests.rs");
        let code = text.split("#[cfg(test)]\nmod tests {").next().filter(|_| !is_test).unwrap_or_default();
        let is_table = |name: &str| name == "functions" && path.starts_with(TABLES);
        let long = functions(code).into_iter().filter(|(name, lines)| *lines > LINES_MAX && !is_table(name));
        found.extend(long.map(|(name, lines)| format!("{} has {lines} lines: {name}", path.display())));
    }
    assert!(found.is_empty(), "split these functions: {found:#?}");
}

/// The functions of formatted code, with the lines that each has.
fn functions(code: &str) -> Vec<(&str, usize)> {
    let lines: Vec<&str> = code.lines().collect();
    let named = lines.iter().enumerate().filter_map(|(at, line)| Some((at, named(line)?)));
    let length = |(at, (indentation, name)): (usize, (&str, _))| {
        let is_end = |line: &&str| line.strip_prefix(indentation) == Some("}");
        // One without a body ends with its head.
        let head = lines[at..].iter().position(|line| line.ends_with(['{', ';', '}']))?;
        let is_open = lines[at + head].ends_with('{');
        let body = if is_open { lines[at + head..].iter().position(is_end)? } else { 0 };
        Some((name, head + body + 1))
    };
    named.filter_map(length).collect()
}

/// The indentation and the name of the function that begins in a line.
fn named(line: &str) -> Option<(&str, &str)> {
    let code = line.trim_start();
    let indentation = &line[..line.len() - code.len()];
    let mut rest = code;
    loop {
        let without = WORDS.iter().find_map(|word| rest.strip_prefix(word));
        let without = without.or_else(|| rest.strip_prefix("pub(").and_then(|rest| Some(rest.split_once(") ")?.1)));
        match without {
            Some(without) => rest = without,
            None => break,
        }
    }
    let name = rest.strip_prefix("fn ")?;
    Some((indentation, name.split(['(', '<']).next().unwrap_or_default()))
}

#[test]
fn the_lines_of_functions_are_counted() {
    let code = "fn a() {}\nimpl A {\n    pub(in crate::a) async fn b<T>(\n        it: T,\n    ) -> u8 {\n        if x {\n        }\n    }\n\n    \
                const fn c();\n}\n";
    assert_eq!(functions(code), [("a", 1), ("b", 6), ("c", 1)]);
}
