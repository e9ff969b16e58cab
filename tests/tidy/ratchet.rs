//! Numbers that may only become smaller: those that are known, a line each in a file of `tests/data`, and those that are found.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use super::root;

/// Numbers by what they are of.
pub type Numbers = BTreeMap<String, usize>;

/// The numbers of a file: `NAME NUMBER`, or a remark behind `#`.
pub fn known(file: &str) -> Numbers {
    let text = fs::read_to_string(root().join("tests/data").join(file)).expect("the list is there");
    text.lines().filter(|line| !line.starts_with('#')).filter_map(line_of).collect()
}

fn line_of(line: &str) -> Option<(String, usize)> {
    let (name, number) = line.split_once(' ')?;
    Some((name.to_owned(), number.parse().ok()?))
}

/// What has another number than is known, and what is to be done: `remedy` where it has grown.
pub fn changes(known: &Numbers, found: &Numbers, remedy: &str) -> Vec<String> {
    let of = |numbers: &Numbers, name: &str| numbers.get(name).copied().unwrap_or_default();
    let names: BTreeSet<&String> = known.keys().chain(found.keys()).collect();
    let change = |name: &&String| {
        let (known, found) = (of(known, name), of(found, name));
        let advice = match found.cmp(&known) {
            Ordering::Less => "write the smaller number",
            Ordering::Equal => return None,
            Ordering::Greater => remedy,
        };
        Some(format!("{name} has {found}, not {known}: {advice}"))
    };
    names.iter().filter_map(change).collect()
}

#[test]
fn a_number_that_is_no_longer_true_is_told() {
    let of = |numbers: &[(&str, usize)]| numbers.iter().map(|(name, number)| ((*name).to_owned(), *number)).collect();
    let known = of(&[("a", 2), ("b", 1), ("c", 3)]);
    assert!(changes(&known, &known, "").is_empty());
    assert_eq!(
        changes(&known, &of(&[("a", 1), ("c", 4), ("d", 1)]), "give the new ones an error type"),
        [
            "a has 1, not 2: write the smaller number",
            "b has 0, not 1: write the smaller number",
            "c has 4, not 3: give the new ones an error type",
            "d has 1, not 0: give the new ones an error type",
        ]
    );
}
