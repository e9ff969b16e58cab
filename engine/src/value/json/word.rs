//! Eight bytes of a text at once, as a number whose lowest byte is the first.

pub const ONES: u64 = u64::from_ne_bytes([1; 8]);
const HIGHS: u64 = u64::from_ne_bytes([0x80; 8]);

/// The high bit of each byte that is below `bound`, which is at most 0x80, and perhaps of bytes behind one; of the other bits
/// any. See [`first`].
pub const fn below(word: u64, bound: u8) -> u64 {
    word.wrapping_sub(ONES * bound as u64) & !word
}

/// As [`below`], of bytes that are `byte`.
pub const fn equal(word: u64, byte: u8) -> u64 {
    below(word ^ (ONES * byte as u64), 1)
}

/// Where the next `"` or `\` stands, from `at` on.
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
    // Other bytes than ASCII have their high bit.
    match first(other | word) {
        Some(first) => first,
        None => 8,
    }
}

/// Which byte is the first with its high bit in `found`.
pub const fn first(found: u64) -> Option<usize> {
    let found = found & HIGHS;
    if found == 0 { None } else { Some((found.trailing_zeros() / 8) as usize) }
}
