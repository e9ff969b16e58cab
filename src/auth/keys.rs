//! The keys of service account tokens: parsed from PEM, given an id, and encoded as JSON web keys.
//!
//! A file may contain private keys, public keys and certificates: RSA, or ECDSA on P-256 or P-384.
//! P-521 is not supported by ring.
//! Source: `keyutil.ParsePublicKeysPEM` of client-go and `keyIDFromPublicKey` of Kubernetes,
//! release 1.36.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey};
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair};
use rustls::crypto::ring::sign::any_supported_type;
use rustls_pki_types::PrivateKeyDer;
use rustls_pki_types::pem::{PemObject as _, SectionKind};
use sha2::{Digest as _, Sha256};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;
use x509_parser::public_key::PublicKey as Parsed;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::jwt_crypto;
use crate::object;
use crate::value::Value;

/// The length of an uncompressed point of each curve: one byte and two coordinates.
const P256_POINT_BYTES: usize = 65;
const P384_POINT_BYTES: usize = 97;

/// Why a key can't be used.
#[derive(Debug, thiserror::Error)]
#[error("the key of service account tokens can't be made or read")]
pub struct NoSigningKey;

/// The key that tokens are signed with.
pub struct SigningKey {
    pub(super) private: EncodingKey,
    pub public: VerifyingKey,
}

impl SigningKey {
    /// Generates a key on P-256, in PKCS#8: ring generates no RSA keys.
    pub fn generate() -> Result<Vec<u8>, NoSigningKey> {
        let made = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &SystemRandom::new());
        made.map(|made| made.as_ref().to_vec()).map_err(|_| NoSigningKey)
    }

    /// Parses a private key in PKCS#8, PKCS#1 or SEC1.
    pub fn from_der(der: &[u8]) -> Result<Self, NoSigningKey> {
        jwt_crypto::install();
        let key = PrivateKeyDer::try_from(der).map_err(|_| NoSigningKey)?;
        let public = public_of(&key).ok_or(NoSigningKey)?;
        let private = match public.algorithm {
            Algorithm::RS256 => EncodingKey::from_rsa_der(der),
            _ => EncodingKey::from_ec_der(der),
        };
        Ok(SigningKey { private, public })
    }

    /// Parses the first private key of a text in PEM.
    pub fn from_pem(pem: &[u8]) -> Result<Self, NoSigningKey> {
        let key = PrivateKeyDer::from_pem_slice(pem).map_err(|_| NoSigningKey)?;
        Self::from_der(key.secret_der())
    }
}

/// A public key that verifies the signatures of tokens.
#[derive(Clone)]
pub struct VerifyingKey {
    pub(super) public: DecodingKey,
    pub(super) algorithm: Algorithm,
    parts: KeyNumbers,
    /// The key id: a digest of the public key.
    pub(super) id: String,
}

/// The numbers that a JSON web key contains.
#[derive(Clone)]
enum KeyNumbers {
    /// Modulus and exponent.
    Rsa(Vec<u8>, Vec<u8>),
    /// The uncompressed point.
    Ec(Vec<u8>),
}

impl VerifyingKey {
    /// Parses every key in a text in PEM; for certificates and private keys, their public keys.
    ///
    /// # Errors
    ///
    /// There is no key that can be used.
    pub fn all_from_pem(pem: &[u8]) -> Result<Vec<Self>, NoSigningKey> {
        jwt_crypto::install();
        let sections = <(SectionKind, Vec<u8>)>::pem_slice_iter(pem).filter_map(Result::ok);
        let found: Vec<_> = sections.filter_map(|(kind, der)| Self::from_section(kind, der)).collect();
        if found.is_empty() { Err(NoSigningKey) } else { Ok(found) }
    }

    fn from_section(kind: SectionKind, der: Vec<u8>) -> Option<Self> {
        match kind {
            SectionKind::Certificate => {
                let (_, certificate) = X509Certificate::from_der(&der).ok()?;
                Self::from_spki(certificate.public_key().raw)
            }
            SectionKind::PublicKey => Self::from_spki(&der),
            SectionKind::PrivateKey => public_of(&PrivateKeyDer::Pkcs8(der.into())),
            SectionKind::RsaPrivateKey => public_of(&PrivateKeyDer::Pkcs1(der.into())),
            SectionKind::EcPrivateKey => public_of(&PrivateKeyDer::Sec1(der.into())),
            _ => None,
        }
    }

    /// Parses the DER of a public key; its digest is the key id.
    fn from_spki(spki: &[u8]) -> Option<Self> {
        let (_, info) = SubjectPublicKeyInfo::from_der(spki).ok()?;
        let bits: &[u8] = &info.subject_public_key.data;
        let (algorithm, public, parts) = match info.parsed().ok()? {
            Parsed::RSA(key) => {
                let number = |bytes: &[u8]| bytes.iter().copied().skip_while(|byte| *byte == 0).collect();
                let parts = KeyNumbers::Rsa(number(key.modulus), number(key.exponent));
                (Algorithm::RS256, DecodingKey::from_rsa_der(bits), parts)
            }
            Parsed::EC(_) => {
                let algorithm = match bits.len() {
                    P256_POINT_BYTES => Algorithm::ES256,
                    P384_POINT_BYTES => Algorithm::ES384,
                    _ => return None,
                };
                (algorithm, DecodingKey::from_ec_der(bits), KeyNumbers::Ec(bits.to_vec()))
            }
            _ => return None,
        };
        Some(VerifyingKey { public, algorithm, parts, id: URL_SAFE_NO_PAD.encode(Sha256::digest(spki)) })
    }

    /// The name of the signature algorithm that the key is used with.
    pub(super) fn algorithm_name(&self) -> &'static str {
        match self.algorithm {
            Algorithm::RS256 => "RS256",
            Algorithm::ES384 => "ES384",
            _ => "ES256",
        }
    }

    /// Encodes the key as a JSON web key.
    pub(super) fn to_jwk(&self) -> Value {
        let encode = |bytes: &[u8]| Value::from(URL_SAFE_NO_PAD.encode(bytes).as_str());
        let mut key = object! { "use" => "sig", "kid" => self.id.as_str(), "alg" => self.algorithm_name() };
        let fields = key.make_object();
        match &self.parts {
            KeyNumbers::Rsa(modulus, exponent) => {
                fields.insert("kty", Value::from("RSA"));
                fields.insert("n", encode(modulus));
                fields.insert("e", encode(exponent));
            }
            KeyNumbers::Ec(point) => {
                // INVARIANT: an uncompressed point is a byte and two coordinates of equal length.
                let (x, y) = point[1..].split_at(point.len() / 2);
                let curve = if point.len() == P256_POINT_BYTES { "P-256" } else { "P-384" };
                fields.insert("kty", Value::from("EC"));
                fields.insert("crv", Value::from(curve));
                fields.insert("x", encode(x));
                fields.insert("y", encode(y));
            }
        }
        key
    }
}

fn public_of(private: &PrivateKeyDer<'_>) -> Option<VerifyingKey> {
    VerifyingKey::from_spki(any_supported_type(private).ok()?.public_key()?.as_ref())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Generated for this test with `openssl genrsa`, `openssl ecparam` and similar commands.
    const RSA_PKCS1: &str = include_str!("../../tests/data/keys/rsa.pem");
    const EC_SEC1: &str = include_str!("../../tests/data/keys/p384.pem");

    #[test]
    fn private_keys_of_older_forms_are_read() {
        let rsa = SigningKey::from_pem(RSA_PKCS1.as_bytes()).expect("it is a key");
        assert_eq!(rsa.public.algorithm_name(), "RS256");
        assert_eq!(rsa.public.to_jwk().str_at(&["e"]), "AQAB");
        let ec = SigningKey::from_pem(EC_SEC1.as_bytes()).expect("it is a key");
        assert_eq!(ec.public.algorithm_name(), "ES384");
        assert_eq!(ec.public.to_jwk().str_at(&["crv"]), "P-384");
    }

    #[test]
    fn one_text_may_have_several_keys() {
        let both = format!("{RSA_PKCS1}{EC_SEC1}");
        let found = VerifyingKey::all_from_pem(both.as_bytes()).expect("there are keys");
        assert_eq!(found.iter().map(VerifyingKey::algorithm_name).collect::<Vec<_>>(), ["RS256", "ES384"]);
        assert!(VerifyingKey::all_from_pem(b"no keys").is_err());
    }
}
