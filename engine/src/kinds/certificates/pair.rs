//! A certificate and its private key, as a server of TLS gets them.
//!
//! Input: two texts in PEM. Output: Go's error, if a server could not use them. That an elliptic key belongs to its
//! certificate is computed if the server's cryptography is built in and knows the curve; else what the key itself says of
//! its public half is compared.
//!
//! Source: `X509KeyPair` of `crypto/tls`, Go 1.26.

use num_bigint::BigUint;
use thiserror::Error;

use super::certificate::{self, CertificateError, Curve, EC, ED25519, PublicKey, RSA};
use super::der::{Der, OCTET_STRING, SEQUENCE, context};
use super::{PemBlock, blocks};
use crate::work;

/// Of each number of an RSA key: more than any has.
const NUMBER_BYTES_MAX: usize = 2048;
const SEED_BYTES: usize = 32;
const CERTIFICATE: &str = "CERTIFICATE";
const PRIVATE_KEY: &str = "PRIVATE KEY";

/// Why a pair can't be used, in Go's words.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum PairError {
    /// There is no block in the certificate, or in the key.
    #[error("tls: failed to find any PEM data in {0} input")]
    NoPem(&'static str),
    /// The key stands where the certificate belongs.
    #[error(
        "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have been \
         switched"
    )]
    Switched,
    /// The certificate stands where the key belongs.
    #[error("tls: found a certificate rather than a key in the PEM for the private key")]
    CertificateForKey,
    /// There are other blocks only.
    #[error(
        "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following types: [{0}]"
    )]
    NoCertificate(String),
    /// There are other blocks only.
    #[error(
        "tls: failed to find PEM block with type ending in \"PRIVATE KEY\" in key input after skipping PEM blocks of the \
         following types: [{0}]"
    )]
    NoKey(String),
    /// The certificate can't be read.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
    /// The key can't be read.
    #[error("tls: failed to parse private key")]
    Key,
    /// The key is for other things than signatures.
    #[error("tls: found unknown private key type in PKCS#8 wrapping")]
    KeyType,
    /// The key is of another algorithm than the certificate's.
    #[error("tls: private key type does not match public key type")]
    OtherType,
    /// The key is another one.
    #[error("tls: private key does not match public key")]
    OtherKey,
    /// The certificate's key is of an algorithm that is not known.
    #[error("tls: unknown public key algorithm")]
    UnknownAlgorithm,
}

/// Checks a certificate, with those that follow it, and its key.
///
/// # Errors
///
/// A server could not use them.
pub fn check(certificates: &[u8], key: &[u8]) -> Result<(), PairError> {
    let certificates = blocks(certificates);
    let Some(leaf) = certificates.iter().find(|block| block.label == CERTIFICATE) else {
        return Err(match certificates.as_slice() {
            [] => PairError::NoPem("certificate"),
            [only] if only.label.ends_with(PRIVATE_KEY) => PairError::Switched,
            others => PairError::NoCertificate(labels(others)),
        });
    };
    let keys = blocks(key);
    let is_key = |block: &&PemBlock| block.label == PRIVATE_KEY || block.label.ends_with(" PRIVATE KEY");
    let Some(key) = keys.iter().find(is_key) else {
        return Err(match keys.as_slice() {
            [] => PairError::NoPem("key"),
            [only] if only.label == CERTIFICATE => PairError::CertificateForKey,
            others => PairError::NoKey(labels(others)),
        });
    };
    let public = certificate::read_one(&leaf.bytes)?;
    matches(&PrivateKey::read(&key.bytes)?, public)
}

fn labels(blocks: &[PemBlock]) -> String {
    blocks.iter().map(|block| block.label.as_str()).collect::<Vec<_>>().join(" ")
}

fn matches(private: &PrivateKey<'_>, public: PublicKey<'_>) -> Result<(), PairError> {
    let is_same = match (private, public) {
        (_, PublicKey::Other) => return Err(PairError::UnknownAlgorithm),
        (PrivateKey::Rsa(modulus, exponent), PublicKey::Rsa(of_modulus, of_exponent)) => {
            (*modulus, *exponent) == (of_modulus, of_exponent)
        }
        (PrivateKey::Ec(key), PublicKey::Ec(curve, point)) => key.curve == curve && key.is_of(point),
        (PrivateKey::Ed25519(seed), PublicKey::Ed25519(public)) => math::is_of_ed25519(seed, public),
        _ => return Err(PairError::OtherType),
    };
    if is_same { Ok(()) } else { Err(PairError::OtherKey) }
}

/// A private key.
enum PrivateKey<'a> {
    /// Its modulus and its public exponent.
    Rsa(&'a [u8], &'a [u8]),
    Ec(EcKey<'a>),
    /// Its seed.
    Ed25519(&'a [u8]),
}

/// An elliptic private key.
struct EcKey<'a> {
    curve: Curve,
    /// The number, without zeros before it.
    number: &'a [u8],
    /// Its point, if it says so.
    point: Option<&'a [u8]>,
}

impl<'a> PrivateKey<'a> {
    /// A key in one of three forms, which Go tries in turn.
    fn read(der: &'a [u8]) -> Result<Self, PairError> {
        if let Some((modulus, exponent)) = rsa(der) {
            return Ok(PrivateKey::Rsa(modulus, exponent));
        }
        match wrapped(der) {
            Some(wrapped) => wrapped,
            None => EcKey::read(der, None).map(PrivateKey::Ec).ok_or(PairError::Key),
        }
    }
}

/// A key in PKCS#8; `None` if it is none, or one that can't be read.
fn wrapped(der: &[u8]) -> Option<Result<PrivateKey<'_>, PairError>> {
    /// X25519, for agreement on keys.
    const X25519: &[u8] = &[0x2b, 0x65, 0x6e];
    let mut outer = Der(der).read(SEQUENCE)?;
    outer.integer()?;
    let mut algorithm = outer.read(SEQUENCE)?;
    let (identifier, mut parameters) = (algorithm.identifier()?, algorithm);
    let key = outer.read(OCTET_STRING)?.0;
    match identifier {
        RSA => rsa(key).map(|(modulus, exponent)| Ok(PrivateKey::Rsa(modulus, exponent))),
        EC => EcKey::read(key, parameters.identifier()).map(|key| Ok(PrivateKey::Ec(key))),
        ED25519 | X25519 if !parameters.is_empty() => None,
        ED25519 | X25519 => {
            let seed = Der(key).read(OCTET_STRING)?.0;
            let is_signing = identifier == ED25519;
            let key = if is_signing { Ok(PrivateKey::Ed25519(seed)) } else { Err(PairError::KeyType) };
            (seed.len() == SEED_BYTES).then_some(key)
        }
        _ => None,
    }
}

/// The modulus and the public exponent of a key in PKCS#1, if its numbers belong together.
fn rsa(der: &[u8]) -> Option<(&[u8], &[u8])> {
    let mut rest = Der(der);
    let mut fields = rest.read(SEQUENCE).filter(|_| rest.is_empty())?;
    fields.integer()?.small().filter(|version| *version <= 1)?;
    let mut numbers = [&[][..]; 8];
    for number in &mut numbers {
        *number = fields.integer().filter(|number| number.is_positive())?.magnitude();
        if number.len() > NUMBER_BYTES_MAX {
            return None;
        }
    }
    let [modulus, exponent, private, p, q, ..] = numbers;
    work::bytes(der.len());
    let number = BigUint::from_bytes_be;
    let (of_p, of_q) = (number(p), number(q));
    // A key of more than two primes is beyond this; nobody has one.
    let is_one = &of_p * &of_q == number(modulus) && {
        let product = number(exponent) * number(private);
        let one = BigUint::from(1_u8);
        let is_inverse = |prime: BigUint| prime > one && &product % (prime - 1_u8) == one;
        is_inverse(of_p) && is_inverse(of_q)
    };
    is_one.then_some((modulus, exponent))
}

impl<'a> EcKey<'a> {
    /// A key in the form of SEC 1, whose curve may be known from outside.
    fn read(der: &'a [u8], curve: Option<&[u8]>) -> Option<Self> {
        let mut fields = Der(der).read(SEQUENCE)?;
        fields.integer()?.small().filter(|version| *version == 1)?;
        let number = fields.read(OCTET_STRING)?.0;
        let named = fields.optional(context(0))?.map(|mut named| named.identifier());
        let point = fields.optional(context(1))?.map(|mut point| point.bits());
        let curve = Curve::of(curve.or(named.flatten())?)?;
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let number = &number[zeros..];
        (number.len() <= curve.0).then_some(EcKey { curve, number, point: point.flatten() })
    }

    /// Whether its point is this one.
    fn is_of(&self, point: &[u8]) -> bool {
        let mut number = vec![0; self.curve.0 - self.number.len()];
        number.extend(self.number);
        let computed = math::is_of_curve(self.curve, &number, point);
        computed.or_else(|| self.point.map(|own| own == point)).unwrap_or(true)
    }
}

#[cfg(feature = "signatures")]
mod math {
    use ring::rand::SystemRandom;
    use ring::signature::{
        ECDSA_P256_SHA256_ASN1_SIGNING, ECDSA_P384_SHA384_ASN1_SIGNING, EcdsaKeyPair, Ed25519KeyPair,
    };

    use super::Curve;

    /// Whether a number is the private half of a point; `None` if the curve is not known here.
    pub fn is_of_curve(curve: Curve, number: &[u8], point: &[u8]) -> Option<bool> {
        let algorithm = match curve.0 {
            32 => &ECDSA_P256_SHA256_ASN1_SIGNING,
            48 => &ECDSA_P384_SHA384_ASN1_SIGNING,
            _ => return None,
        };
        // Nothing is signed: the random numbers have no effect.
        let pair = EcdsaKeyPair::from_private_key_and_public_key(algorithm, number, point, &SystemRandom::new());
        Some(pair.is_ok())
    }

    pub fn is_of_ed25519(seed: &[u8], public: &[u8]) -> bool {
        Ed25519KeyPair::from_seed_and_public_key(seed, public).is_ok()
    }
}

#[cfg(not(feature = "signatures"))]
mod math {
    use super::Curve;

    /// Nothing is known here.
    pub const fn is_of_curve(_: Curve, _: &[u8], _: &[u8]) -> Option<bool> {
        None
    }

    /// Nothing is known against it.
    pub const fn is_of_ed25519(_: &[u8], _: &[u8]) -> bool {
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn certificate(key: &rcgen::KeyPair) -> String {
        rcgen::CertificateParams::default().self_signed(key).expect("a certificate").pem()
    }

    fn key_of(algorithm: &'static rcgen::SignatureAlgorithm) -> rcgen::KeyPair {
        rcgen::KeyPair::generate_for(algorithm).expect("a key")
    }

    #[test]
    fn a_key_belongs_to_its_certificate() {
        for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ECDSA_P384_SHA384, &rcgen::PKCS_ED25519] {
            let key = key_of(algorithm);
            assert_eq!(check(certificate(&key).as_bytes(), key.serialize_pem().as_bytes()), Ok(()));
        }
        let rsa = include_bytes!("../../../tests/data/rsa-1024.pem");
        assert_eq!(check(rsa, rsa), Ok(()));
        let ec = include_bytes!("../../../tests/data/ec-p521.pem");
        assert_eq!(check(ec, ec), Ok(()));
        let key = key_of(&rcgen::PKCS_ECDSA_P256_SHA256);
        assert_eq!(check(rsa, key.serialize_pem().as_bytes()), Err(PairError::OtherType));
    }

    #[cfg(feature = "signatures")]
    #[test]
    fn another_key_is_refused() {
        for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519] {
            let (key, other) = (key_of(algorithm), key_of(algorithm));
            let told = check(certificate(&key).as_bytes(), other.serialize_pem().as_bytes());
            assert_eq!(told, Err(PairError::OtherKey));
        }
    }

    #[test]
    fn what_cannot_be_read_is_told_in_gos_words() {
        let key = key_of(&rcgen::PKCS_ECDSA_P256_SHA256);
        let (certificate, key) = (certificate(&key), key.serialize_pem());
        let told = |certificate: &str, key: &str| {
            check(certificate.as_bytes(), key.as_bytes()).err().map(|error| error.to_string()).unwrap_or_default()
        };
        let block = |label: &str| format!("-----BEGIN {label}-----\nAQID\n-----END {label}-----\n");
        assert_eq!(told("", &key), "tls: failed to find any PEM data in certificate input");
        assert_eq!(told(&certificate, ""), "tls: failed to find any PEM data in key input");
        assert_eq!(
            told(&key, &certificate),
            "tls: failed to find certificate PEM data in certificate input, but did find a private key; PEM inputs may have \
             been switched"
        );
        assert_eq!(
            told(&certificate, &certificate),
            "tls: found a certificate rather than a key in the PEM for the private key"
        );
        assert_eq!(told(&block("CERTIFICATE"), &key), "x509: malformed certificate");
        assert_eq!(told(&certificate, &block("PRIVATE KEY")), "tls: failed to parse private key");
        assert_eq!(
            told(&block("A"), &key),
            "tls: failed to find \"CERTIFICATE\" PEM block in certificate input after skipping PEM blocks of the following \
             types: [A]"
        );
    }
}
