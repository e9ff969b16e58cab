//! Regular expressions of Go's syntax.

use kubeskiff::schema::pattern::Pattern;

use super::{Linear, Target};

/// Most of it is for the automaton, whose size has a limit of its own: with it grows what a character of the text takes,
/// too, as in Go.
pub const TARGET: Target = Target {
    name: "patterns",
    run,
    steps: Linear { beside: 1 << 20, per_byte: 100_000 },
    allocated_bytes: Linear { beside: 512 << 20, per_byte: 10_000 },
};

/// The input is a pattern, a line `---`, and a text. A pattern that is read keeps its source, and an anchored one matches
/// nothing more.
fn run(data: &[u8]) {
    let (source, text) = super::parts(data);
    let (Ok(source), Ok(text)) = (str::from_utf8(source), str::from_utf8(text)) else { return };
    let Ok(pattern) = Pattern::new(source) else { return };
    assert_eq!(pattern.source(), source);
    let matches = pattern.is_match(text);
    if let Ok(anchored) = Pattern::new(&format!("^(?:{source})$")) {
        assert!(matches || !anchored.is_match(text), "what matches as a whole matches");
    }
}
