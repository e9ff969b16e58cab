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

/// Which byte is the first with its high bit in `found`.
pub const fn first(found: u64) -> Option<usize> {
    let found = found & HIGHS;
    if found == 0 { None } else { Some((found.trailing_zeros() / 8) as usize) }
}
