//! PEM blocks, found as Go finds them: other text is skipped.
//!
//! Written by hand, as the readers of crates stop at the first malformed block, which Go skips.
//!
//! Source: `encoding/pem` of Go 1.26.

use crate::value::base64;
use crate::work;

/// A block: `-----BEGIN LABEL-----`, headers, base64, `-----END LABEL-----`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PemBlock {
    /// The label after `BEGIN`.
    pub label: String,
    /// Whether it has headers.
    pub has_headers: bool,
    /// The decoded contents.
    pub bytes: Vec<u8>,
}

/// Every block in `text`, in order.
pub fn blocks(text: &[u8]) -> Vec<PemBlock> {
    work::bytes(text.len());
    let text = String::from_utf8_lossy(text);
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        let Some(label) = label_of(line, "-----BEGIN ") else { continue };
        let mut inside = lines.clone();
        if let Some(block) = block(label, &mut inside) {
            found.push(block);
            lines = inside;
        }
    }
    found
}

fn label_of<'l>(line: &'l str, start: &str) -> Option<&'l str> {
    line.trim_end_matches([' ', '\t']).strip_prefix(start)?.strip_suffix("-----")
}

/// The block after its first line; `None` if its end does not match its beginning, or it is not base64.
fn block(label: &str, lines: &mut std::str::Lines<'_>) -> Option<PemBlock> {
    let mut has_headers = false;
    let mut body = String::new();
    for line in lines {
        if let Some(end) = label_of(line, "-----END ") {
            let bytes = base64::decode(&body).ok().filter(|_| end == label)?;
            return Some(PemBlock { label: label.to_owned(), has_headers, bytes });
        }
        if label_of(line, "-----BEGIN ").is_some() {
            return None;
        }
        if line.contains(':') && body.is_empty() {
            has_headers = true
        } else {
            body.extend(line.chars().filter(|character| !matches!(character, ' ' | '\t')))
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_stand_among_other_text() {
        let text = "x\n-----BEGIN A-----\nAQID\n-----END A-----\n-----BEGIN B-----\nk: v\n\nAQ==\n-----END B-----\n";
        let found = blocks(text.as_bytes());
        assert_eq!(found[0], PemBlock { label: "A".to_owned(), has_headers: false, bytes: vec![1, 2, 3] });
        assert_eq!(found[1], PemBlock { label: "B".to_owned(), has_headers: true, bytes: vec![1] });
        assert_eq!(blocks(b"-----BEGIN A-----\nAQID\n-----END B-----\n"), []);
    }
}
