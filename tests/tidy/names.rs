//! Names of types that are given again and again, so that a reader has to look up which of them is meant.
//!
//! Input: the sources of both packages, tests left out. Output: the names that three types or more have: there are
//! none.

use std::collections::BTreeMap;

use super::{PACKAGES, root, sources};

/// So many types have one name before it is too much.
const TYPES_MIN: usize = 3;
const KEYWORDS: [&str; 5] = ["struct ", "enum ", "trait ", "type ", "union "];

#[test]
fn types_have_names_of_their_own() {
    let mut found: BTreeMap<String, usize> = BTreeMap::new();
    for (path, text) in PACKAGES.into_iter().flat_map(sources) {
        let path = path.strip_prefix(root()).expect("it is in the project");
        let is_test = path.iter().any(|part| part == "tests" || part == "tests.rs");
        let code = text.split("#[cfg(test)]\nmod tests {").next().filter(|_| !is_test).unwrap_or_default();
        for name in code.lines().filter_map(defined) {
            *found.entry(name.to_owned()).or_default() += 1;
        }
    }
    found.retain(|_, types| *types >= TYPES_MIN);
    assert!(
        found.is_empty(),
        "several types have one of these names, give them names that say what they are: {found:#?}"
    );
}

/// The type that a line defines, outside of everything else.
fn defined(line: &str) -> Option<&str> {
    let line = match line.strip_prefix("pub(") {
        Some(rest) => rest.split_once(") ")?.1,
        None => line.strip_prefix("pub ").unwrap_or(line),
    };
    let rest = KEYWORDS.iter().find_map(|keyword| line.strip_prefix(keyword))?;
    rest.split(|it: char| !(it.is_alphanumeric() || it == '_')).next()
}

#[test]
fn a_definition_is_told_from_other_lines() {
    let check = |line: &str, expected: Option<&str>| assert_eq!(defined(line), expected, "{line}");
    check("pub(in crate::author) struct Place<'t> {", Some("Place"));
    check("pub(super) enum Node {", Some("Node"));
    check("type Seen = (u8, u8);", Some("Seen"));
    check("    type Output = u8;", None);
    check("pub use place::Place;", None);
}
