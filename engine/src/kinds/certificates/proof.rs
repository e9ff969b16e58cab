//! The proof that who asks for a certificate has the key.
//!
//! Input: a public key, what is signed, and the signature. Output: whether it is signed by that key. What is not known here
//! counts as signed.

use x509_parser::x509::SubjectPublicKeyInfo;

/// Whether `message` is signed by `key`, which is on `curve` if it is an elliptic one.
#[cfg(feature = "signatures")]
pub fn is_signed(key: &SubjectPublicKeyInfo<'_>, curve: Option<&str>, message: &[u8], signature: &[u8]) -> bool {
    use ring::signature::{ECDSA_P256_SHA256_ASN1, ECDSA_P384_SHA256_ASN1, ED25519};
    use ring::signature::{UnparsedPublicKey, VerificationAlgorithm};
    use x509_parser::public_key::PublicKey;

    let algorithm: &'static dyn VerificationAlgorithm = match (key.parsed(), curve) {
        (Ok(PublicKey::RSA(rsa)), _) => return pss::is_signed(rsa.modulus, rsa.exponent, message, signature),
        (Ok(PublicKey::EC(_)), Some("P-256")) => &ECDSA_P256_SHA256_ASN1,
        (Ok(PublicKey::EC(_)), Some("P-384")) => &ECDSA_P384_SHA256_ASN1,
        (Ok(PublicKey::EC(_)), _) => return true,
        _ => &ED25519,
    };
    UnparsedPublicKey::new(algorithm, &key.subject_public_key.data).verify(message, signature).is_ok()
}

/// Whether `message` is signed by `key`: nothing is known against it.
#[cfg(not(feature = "signatures"))]
pub const fn is_signed(_: &SubjectPublicKeyInfo<'_>, _: Option<&str>, _: &[u8], _: &[u8]) -> bool {
    true
}

/// Signatures by RSA-PSS with SHA-256, with a salt of any length, as Go makes them; others want one of 32 bytes.
///
/// Source: RFC 8017, 8.1.2 and 9.1.2.
#[cfg(feature = "signatures")]
mod pss {
    use num_bigint::BigUint;
    use ring::digest::{SHA256, SHA256_OUTPUT_LEN, digest};

    use crate::work;

    /// The last byte of what is signed.
    const END: u8 = 0xbc;
    /// The bits of the largest exponent, as in Go: a longer one takes long to compute with.
    const EXPONENT_BITS_MAX: u64 = 31;

    pub fn is_signed(modulus: &[u8], exponent: &[u8], message: &[u8], signature: &[u8]) -> bool {
        let (modulus, exponent) = (BigUint::from_bytes_be(modulus), BigUint::from_bytes_be(exponent));
        let is_usable = exponent.bits() <= EXPONENT_BITS_MAX && exponent > BigUint::from(1_u8);
        if !is_usable || !exponent.bit(0) || !modulus.bit(0) {
            return false;
        }
        let number = BigUint::from_bytes_be(signature);
        let bytes = usize::try_from(modulus.bits().div_ceil(8)).unwrap_or(usize::MAX);
        if number >= modulus || signature.len() != bytes {
            return false;
        }
        work::bytes(bytes * bytes);
        let bits = usize::try_from(modulus.bits()).unwrap_or(usize::MAX) - 1;
        let encoded = number.modpow(&exponent, &modulus).to_bytes_be();
        let Some(zeros) = bits.div_ceil(8).checked_sub(encoded.len()) else { return false };
        is_encoded([vec![0; zeros], encoded].concat(), bits, message)
    }

    /// Whether bytes, of which only `bits` count, are the encoded form of a message.
    fn is_encoded(mut encoded: Vec<u8>, bits: usize, message: &[u8]) -> bool {
        let Some(masked_bytes) = encoded.len().checked_sub(SHA256_OUTPUT_LEN + 1) else { return false };
        if encoded.pop() != Some(END) {
            return false;
        }
        let hash = encoded.split_off(masked_bytes);
        let unused = encoded.len() * 8 + (SHA256_OUTPUT_LEN + 1) * 8 - bits;
        let top = 0xff_u8.checked_shr(u32::try_from(unused).unwrap_or(u32::MAX)).unwrap_or_default();
        if encoded.first().is_none_or(|first| first & !top != 0) {
            return false;
        }
        for (byte, mask) in encoded.iter_mut().zip(mask(&hash)) {
            *byte ^= mask;
        }
        if let Some(first) = encoded.first_mut() {
            *first &= top;
        }
        let salt =
            encoded.iter().position(|byte| *byte != 0).filter(|at| encoded[*at] == 1).map(|at| &encoded[at + 1..]);
        let of_message = digest(&SHA256, message);
        salt.is_some_and(|salt| {
            let whole = [&[0; 8][..], of_message.as_ref(), salt].concat();
            digest(&SHA256, &whole).as_ref() == hash
        })
    }

    /// The bytes that a seed makes without end.
    fn mask(seed: &[u8]) -> impl Iterator<Item = u8> {
        (0_u32..).flat_map(move |count| digest(&SHA256, &[seed, &count.to_be_bytes()].concat()).as_ref().to_vec())
    }
}
