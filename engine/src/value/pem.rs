//! PEM blocks, found as Go finds them: other text is skipped.
//!
//! Written by hand, as the readers of crates stop at the first malformed block, which Go skips.
//!
//! Source: `encoding/pem` of Go 1.26.

use super::base64;
use crate::work;

const BEGIN: &str = "-----BEGIN ";
const END: &str = "\n-----END ";
const DASHES: &str = "-----";

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
    let text = String::from_utf8_lossy(text);
    let mut rest = text.as_ref();
    let mut found = Vec::new();
    while let Some((block, after)) = next_block(rest) {
        found.push(block);
        rest = after;
    }
    found
}

/// The next well-formed block and the text after it: as Go 1.26 finds it, from the last `BEGIN` before each `END`, so
/// that no text is read twice.
pub fn next_block(text: &str) -> Option<(PemBlock, &str)> {
    let mut from = 0;
    loop {
        let end = from + text[from..].find(END)?;
        let trailer = end + END.len();
        let (start, searched) = (from, &text[from..end]);
        work::bytes(searched.len());
        from = trailer;
        let Some(begin) = searched.rfind(BEGIN) else { continue };
        if begin > 0 && !searched[..begin].ends_with('\n') {
            continue;
        }
        let (line, mut body) = line_at(text, start + begin + BEGIN.len());
        let Some(label) = line.strip_suffix(DASHES) else { continue };
        let mut has_headers = false;
        while let (line, after) = line_at(text, body)
            && line.contains(':')
        {
            has_headers = true;
            body = after;
        }
        if body == text.len() || body > trailer {
            return None;
        }
        if has_headers && body > end {
            continue;
        }
        let ended = text[trailer..].strip_prefix(label).and_then(|rest| rest.strip_prefix(DASHES));
        let Some(rest) = ended.filter(|rest| line_at(rest, 0).0.is_empty()) else { continue };
        let encoded = text.get(body..end).unwrap_or_default().replace([' ', '\t'], "");
        if let Ok(bytes) = base64::decode(&encoded) {
            return Some((PemBlock { label: label.to_owned(), has_headers, bytes }, &rest[line_at(rest, 0).1..]));
        }
    }
}

/// The line that begins at `start`, without trailing spaces, and where the next one begins.
fn line_at(text: &str, start: usize) -> (&str, usize) {
    let (line, next) = match text[start..].find('\n') {
        Some(length) => {
            let line = &text[start..start + length];
            (line.strip_suffix('\r').unwrap_or(line), start + length + 1)
        }
        None => (&text[start..], text.len()),
    };
    (line.trim_end_matches([' ', '\t']), next)
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

    /// The labels of the blocks of a text, each with `+` if it has headers and with the length of its contents; `-` for
    /// text that has none.
    fn found(mut text: &str) -> String {
        let mut all = Vec::new();
        while !text.is_empty() {
            let Some((block, rest)) = next_block(text) else {
                all.push("-".to_owned());
                break;
            };
            all.push(format!("{}{}{}", block.label, if block.has_headers { "+" } else { "" }, block.bytes.len()));
            text = rest;
        }
        all.join(" ")
    }

    /// What `pem.Decode` of Go 1.26 finds.
    #[test]
    fn blocks_are_found_as_by_go() {
        const A: &str = "-----BEGIN A-----\n";
        const END_A: &str = "-----END A-----\n";
        let cases = [
            (["", A, "", END_A], "A0"),
            (["k: v\n", A, "AA==\n", END_A], "A1"),
            (["", A, "AA AA\nAA\tAA\r\n", END_A], "A6"),
            (["", A, "k: v\nAAAA\n", END_A], "A+3"),
            (["", A, "k: v\n\n", END_A], "A+0"),
            (["", A, "k: v\n", END_A], "-"),
            (["", A, "AAA\n", END_A], "-"),
            (["x", A, "AAAA\n", END_A], "-"),
            (["", A, "AAAA\n", "-----END B-----\n"], "-"),
            (["", A, "AAAA\n", "-----END A----- x\n"], "-"),
            (["", A, "AAAA\n", "-----END A----- \t\r\n\n"], "A3 -"),
            (["", A, "-----BEGIN B-----\nAAAA\n", "-----END B-----"], "B3"),
            (["", A, "-----BEGIN B-----\nAAAA\n", END_A], "-"),
            (["\r\n-----END ", A, "\n", "-----END A-----\r\n\r\n"], "A0 -"),
            (["", A, "AAAA\n-----END A-----\nA: -----\n-----BEGIN A-----\n", END_A], "A3 A0"),
        ];
        for (parts, expected) in cases {
            assert_eq!(found(&parts.concat()), expected, "{parts:?}");
        }
    }
}
