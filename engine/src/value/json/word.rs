//! Works on eight bytes of a text at once, as a number whose lowest byte is the first.

pub const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);

/// Sets the high bit of each byte below `bound`, which is at most 0x80; bytes after the first such byte may be wrong,
/// and the other bits are arbitrary. See [`first`].
pub const fn below(word: u64, bound: u8) -> u64 {
    word.wrapping_sub(ONES * bound as u64) & !word
}

/// As [`below`], for bytes equal to `byte`.
pub const fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * byte as u64), 1)
}

/// The position of the next `"` or `\`, from `at` on.
pub fn next_quote_or_backslash(bytes: &[u8], mut at: usize) -> Option<usize> {
    while let Some((chunk, _)) = bytes.get(at..)?.split_first_chunk() {
        let word = u64::from_le_bytes(*chunk);
        match first(equal(word, b'"') | equal(word, b'\\')) {
            Some(found) => return Some(at + found),
            None => at += chunk.len(),
        }
    }
    let found = bytes[at..].iter().position(|byte| matches!(byte, b'"' | b'\\'))?;
    Some(at + found)
}

/// How many of the first bytes are printable ASCII other than `"` and `\`.
pub const fn plain_start(chunk: [u8; 8]) -> usize {
    let word = u64::from_le_bytes(chunk);
    let other = below(word, b' ') | equal(word, b'"') | equal(word, b'\\') | equal(word, 0x7f);
    // Bytes outside ASCII have their high bit set.
    match first(other | word) {
        Some(first) => first,
        None => 8,
    }
}

/// The index of the first byte with its high bit set in `found`.
pub const fn first(found: u64) -> Option<usize> {
    let found = found & HIGHS;
    if found == 0 { None } else { Some((found.trailing_zeros() / 8) as usize) }
}
