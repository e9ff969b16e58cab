//! Base64 as Go reads and writes it: padded, with line breaks anywhere, and with Go's errors.
//!
//! The `base64` crate does not accept line breaks, and its errors have other offsets than Go's, which clients see.

use crate::work;

/// The text is not base64.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("illegal base64 data at input byte {at}")]
pub struct Base64Error {
    /// The offset at which Go gives up.
    pub at: usize,
}

/// The bytes encoded by `text`.
///
/// # Errors
///
/// The text is not base64.
pub fn decode(text: &str) -> Result<Vec<u8>, Base64Error> {
    work::bytes(text.len());
    let input = text.as_bytes();
    let corrupt = |at: usize| Err(Base64Error { at });
    let mut bytes = Vec::with_capacity(input.len() / 4 * 3);
    let mut symbols = input.iter().enumerate().filter(|(_, byte)| !matches!(byte, b'\r' | b'\n'));
    let (mut bits, mut count) = (0_u32, 0_usize);
    while let Some((at, &byte)) = symbols.next() {
        if let Some(value) = value_of(byte) {
            bits = bits << 6 | u32::from(value);
            count += 1;
            if count == 4 {
                bytes.extend_from_slice(&bits.to_be_bytes()[1..]);
                (bits, count) = (0, 0);
            }
            continue;
        }
        match (byte, count) {
            (b'=', 2) => match symbols.next() {
                None => return corrupt(input.len()),
                Some((_, b'=')) => bytes.push((bits >> 4) as u8),
                Some((at, _)) => return corrupt(at.saturating_sub(1)),
            },
            (b'=', 3) => bytes.extend_from_slice(&((bits >> 2) as u16).to_be_bytes()),
            _ => return corrupt(at),
        }
        // Nothing may follow the padding.
        return symbols.next().map_or(Ok(bytes), |(at, _)| corrupt(at));
    }
    if count == 0 { Ok(bytes) } else { corrupt(input.len() - count) }
}

/// `bytes` in base64, padded and in one line.
pub fn encode(bytes: &[u8]) -> String {
    const SYMBOLS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    work::bytes(bytes.len());
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |at: usize| u32::from(group.get(at).copied().unwrap_or_default());
        let bits = byte(0) << 16 | byte(1) << 8 | byte(2);
        for symbol in 0..4 {
            let index = (bits >> (18 - 6 * symbol)) as usize & 63;
            text.push(if symbol <= group.len() { char::from(SYMBOLS[index]) } else { '=' });
        }
    }
    text
}

fn value_of(byte: u8) -> Option<u8> {
    match byte {
        b'A'..=b'Z' => Some(byte - b'A'),
        b'a'..=b'z' => Some(byte - b'a' + 26),
        b'0'..=b'9' => Some(byte - b'0' + 52),
        b'+' => Some(62),
        b'/' => Some(63),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_decoded() {
        for (text, bytes) in [("", ""), ("YQ==", "a"), ("YWI=", "ab"), ("YW\nJj", "abc"), ("YWJjZA==\n", "abcd")] {
            assert_eq!(decode(text).as_deref(), Ok(bytes.as_bytes()), "{text}");
            assert_eq!(encode(bytes.as_bytes()), text.replace('\n', ""));
        }
    }

    #[test]
    fn faults_are_told_with_their_position() {
        for (text, at) in [("!", 0), ("YWJ", 0), ("YWJj=", 4), ("YQ=", 3), ("YQ==a", 4), ("YWJjYW", 4)] {
            assert_eq!(decode(text), Err(Base64Error { at }), "{text}");
        }
    }
}
