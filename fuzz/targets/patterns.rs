//! Regular expressions of Go's syntax.

use kubeskiff::schema::pattern::Pattern;

/// The input is a pattern, a line `---`, and a text. A pattern that is read keeps its source, and an anchored one matches
/// nothing more.
pub fn run(data: &[u8]) {
    let (source, text) = super::parts(data);
    let (Ok(source), Ok(text)) = (str::from_utf8(source), str::from_utf8(text)) else { return };
    let Ok(pattern) = Pattern::new(source) else { return };
    assert_eq!(pattern.source(), source);
    let matches = pattern.is_match(text);
    if let Ok(anchored) = Pattern::new(&format!("^(?:{source})$")) {
        assert!(matches || !anchored.is_match(text), "what matches as a whole matches");
    }
}
