//! What does not hold, by the file `KNOWN`: the tests fail when one of these begins to hold.

use std::sync::LazyLock;

struct Known {
    count: &'static str,
    pass: &'static str,
}

/// A line each: the count, and the pass. What follows a `#` says why.
static KNOWN: LazyLock<Vec<Known>> = LazyLock::new(|| {
    let lines = include_str!("KNOWN").lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let known = |line: &'static str| {
        let (count, pass) = line.split_once(' ').expect("a line is a count and a pass");
        Known { count, pass: pass.trim_start() }
    };
    lines.map(known).collect()
});

/// What of them `names` has not.
pub fn without_a_pass(names: &[String]) -> Vec<&'static str> {
    KNOWN.iter().map(|known| known.pass).filter(|pass| !names.iter().any(|name| is_meant(pass, name))).collect()
}

/// The entry about a count of a pass, where that is known not to hold.
pub fn entry(pass: &str, count: &str) -> Option<usize> {
    KNOWN.iter().position(|known| known.count == count && is_meant(known.pass, pass))
}

/// Those about one of `counts` that are not among `failed`: they hold now.
pub fn holding(counts: &[&str], failed: &[usize]) -> Vec<String> {
    let about = KNOWN.iter().enumerate().filter(|(at, known)| counts.contains(&known.count) && !failed.contains(at));
    about.map(|(_, known)| format!("{}: {}: it holds now, and is still in KNOWN", known.pass, known.count)).collect()
}

/// Whether an entry means a pass; one that ends in a star means all that begin so.
fn is_meant(known: &str, pass: &str) -> bool {
    known.strip_suffix('*').map_or(known == pass, |begin| pass.starts_with(begin))
}
