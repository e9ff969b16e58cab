//! Signatures of JSON web tokens with ring, which TLS uses as well.

use jsonwebtoken::crypto::{CryptoProvider, JwtSigner, JwtVerifier, KeyUtils};
use jsonwebtoken::errors::{ErrorKind, Result};
use jsonwebtoken::signature::{Error, Signer, Verifier};
use jsonwebtoken::{Algorithm, AlgorithmFamily, DecodingKey, EncodingKey};
use ring::signature::{
    ECDSA_P256_SHA256_FIXED, ECDSA_P384_SHA384_FIXED, RSA_PKCS1_2048_8192_SHA256, UnparsedPublicKey,
    VerificationAlgorithm,
};
use rustls::SignatureScheme;
use rustls::crypto::ring::sign::any_supported_type;
use rustls_pki_types::PrivateKeyDer;

/// Supports only three strong algorithms: no token can name a weaker one.
static PROVIDER: CryptoProvider =
    CryptoProvider { signer_factory: signer, verifier_factory: verifier, key_utils: KeyUtils::new_unimplemented() };

/// Makes the library use ring in this process.
pub(super) fn install() {
    // It may be installed already.
    _ = PROVIDER.install_default();
}

/// How signatures of an algorithm are made and verified.
struct SignatureMethod {
    algorithm: Algorithm,
    family: AlgorithmFamily,
    scheme: SignatureScheme,
    verification: &'static dyn VerificationAlgorithm,
    /// For ECDSA, the length of each of the two numbers of a signature.
    number_bytes: Option<usize>,
}

static WAYS: [SignatureMethod; 3] = [
    SignatureMethod {
        algorithm: Algorithm::ES256,
        family: AlgorithmFamily::Ec,
        scheme: SignatureScheme::ECDSA_NISTP256_SHA256,
        verification: &ECDSA_P256_SHA256_FIXED,
        number_bytes: Some(32),
    },
    SignatureMethod {
        algorithm: Algorithm::ES384,
        family: AlgorithmFamily::Ec,
        scheme: SignatureScheme::ECDSA_NISTP384_SHA384,
        verification: &ECDSA_P384_SHA384_FIXED,
        number_bytes: Some(48),
    },
    SignatureMethod {
        algorithm: Algorithm::RS256,
        family: AlgorithmFamily::Rsa,
        scheme: SignatureScheme::RSA_PKCS1_SHA256,
        verification: &RSA_PKCS1_2048_8192_SHA256,
        number_bytes: None,
    },
];

fn way(algorithm: Algorithm, family: AlgorithmFamily) -> Result<&'static SignatureMethod> {
    let found = WAYS.iter().find(|way| way.algorithm == algorithm && way.family == family);
    found.ok_or_else(|| ErrorKind::UnsupportedAlgorithm.into())
}

struct OwnSigner(&'static SignatureMethod, Box<dyn rustls::sign::Signer>);

struct OwnVerifier(&'static SignatureMethod, UnparsedPublicKey<Vec<u8>>);

fn signer(algorithm: &Algorithm, key: &EncodingKey) -> Result<Box<dyn JwtSigner>> {
    let way = way(*algorithm, key.family())?;
    let key = PrivateKeyDer::try_from(key.as_bytes()).ok().and_then(|key| any_supported_type(&key).ok());
    let signer = key.and_then(|key| key.choose_scheme(&[way.scheme]));
    Ok(Box::new(OwnSigner(way, signer.ok_or(ErrorKind::InvalidKeyFormat)?)))
}

fn verifier(algorithm: &Algorithm, key: &DecodingKey) -> Result<Box<dyn JwtVerifier>> {
    let way = way(*algorithm, key.family())?;
    let key = key.try_get_as_bytes()?.to_vec();
    Ok(Box::new(OwnVerifier(way, UnparsedPublicKey::new(way.verification, key))))
}

/// The two numbers of an ECDSA signature in DER, concatenated, each with a fixed length.
fn fixed(der: &[u8], number_bytes: usize) -> Option<Vec<u8>> {
    let mut rest = der_value(der, 0x30)?.0;
    let mut out = Vec::with_capacity(2 * number_bytes);
    for _ in 0..2 {
        let (number, after) = der_value(rest, 0x02)?;
        let digits = &number[number.iter().take_while(|byte| **byte == 0).count()..];
        out.resize(out.len() + number_bytes.checked_sub(digits.len())?, 0);
        out.extend_from_slice(digits);
        rest = after;
    }
    Some(out)
}

/// The contents of a short DER element with this tag, and the bytes after it.
fn der_value(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (head, rest) = der.split_at_checked(2)?;
    (head[0] == tag && head[1] < 0x80).then_some(())?;
    rest.split_at_checked(head[1].into())
}

impl Signer<Vec<u8>> for OwnSigner {
    fn try_sign(&self, message: &[u8]) -> std::result::Result<Vec<u8>, Error> {
        let signature = self.1.sign(message).map_err(|_| Error::new())?;
        match self.0.number_bytes {
            Some(length) => fixed(&signature, length).ok_or_else(Error::new),
            None => Ok(signature),
        }
    }
}

impl JwtSigner for OwnSigner {
    fn algorithm(&self) -> Algorithm {
        self.0.algorithm
    }
}

impl Verifier<Vec<u8>> for OwnVerifier {
    fn verify(&self, message: &[u8], signature: &Vec<u8>) -> std::result::Result<(), Error> {
        self.1.verify(message, signature).map_err(|_| Error::new())
    }
}

impl JwtVerifier for OwnVerifier {
    fn algorithm(&self) -> Algorithm {
        self.0.algorithm
    }
}
