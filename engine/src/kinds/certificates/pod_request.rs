//! The kubelet's requests for certificates on behalf of pods: the proof of the key, and the issued certificate.
//!
//! Source: `pkg/apis/certificates/validation` of Kubernetes 1.36.

use thiserror::Error;
use x509_parser::certificate::X509Certificate;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::request::signature;
use super::{PemBlock, blocks};

const ED25519: &str = "1.3.101.112";
/// Curves that Go's reader knows, with their names; the first one is not taken.
const CURVES: [(&str, &str); 4] =
    [("1.3.132.0.33", "P-224"), ("1.2.840.10045.3.1.7", "P-256"), ("1.3.132.0.34", "P-384"), ("1.3.132.0.35", "P-521")];
const MODULUS_BITS: [usize; 2] = [3072, 4096];
const UNKNOWN_KEY: &str = "unknown public key type; supported types are Ed25519, ECDSA, and RSA";

/// The error of a key: the value that the message shows, if any, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyFault {
    pub shown: Option<String>,
    pub why: String,
}

impl KeyFault {
    fn omitted(why: &str) -> Self {
        KeyFault { shown: None, why: why.to_owned() }
    }
}

/// The error of a PKCS#10 request, of which only the key matters.
pub fn stub_fault(der: &[u8]) -> Option<KeyFault> {
    let Some(request) = request(der) else { return Some(KeyFault::omitted("must be a valid PKCS#10 CSR")) };
    let key = &request.certification_request_info.subject_pki;
    let curves = "elliptic public keys must use curve P256, P384, or P521";
    key_fault(key, curves)
        .or_else(|| signature::is_proven(&request).err().map(|_| KeyFault::omitted("invalid signature")))
}

fn request(der: &[u8]) -> Option<X509CertificationRequest<'_>> {
    let (rest, request) = X509CertificationRequest::from_der(der).ok()?;
    let is_known = is_readable(&request.certification_request_info.subject_pki);
    (rest.is_empty() && is_known).then_some(request)
}

/// The error of a bare key, a SubjectPublicKeyInfo, as in deprecated requests.
pub fn public_key_fault(der: &[u8]) -> Option<KeyFault> {
    match public_key(der) {
        Some(key) => key_fault(&key, "elliptic public keys must use curve P256 or P384"),
        None => Some(KeyFault::omitted("must be a valid PKIX-serialized public key")),
    }
}

fn public_key(der: &[u8]) -> Option<SubjectPublicKeyInfo<'_>> {
    let (rest, key) = SubjectPublicKeyInfo::from_der(der).ok()?;
    (rest.is_empty() && is_readable(&key)).then_some(key)
}

/// Whether Go reads the key: it knows few curves.
fn is_readable(key: &SubjectPublicKeyInfo<'_>) -> bool {
    match key.parsed() {
        Ok(PublicKey::EC(_)) => curve(key).is_some(),
        Ok(_) => true,
        Err(_) => false,
    }
}

/// The name of a key's curve.
fn curve(key: &SubjectPublicKeyInfo<'_>) -> Option<&'static str> {
    let id = key.algorithm.parameters.as_ref()?.as_oid().ok()?.to_id_string();
    CURVES.iter().find(|(known, _)| *known == id).map(|(_, name)| *name)
}

fn key_fault(key: &SubjectPublicKeyInfo<'_>, curves: &str) -> Option<KeyFault> {
    match key.parsed() {
        _ if key.algorithm.algorithm.to_id_string() == ED25519 => None,
        Ok(PublicKey::EC(_)) => {
            let curve = curve(key).filter(|name| *name == CURVES[0].1)?;
            Some(KeyFault { shown: Some(format!("curve {curve}")), why: curves.to_owned() })
        }
        Ok(PublicKey::RSA(rsa)) => {
            let bits = rsa.modulus.strip_prefix(&[0]).unwrap_or(rsa.modulus).len() * 8;
            let why = "RSA keys must have modulus size 3072 or 4096".to_owned();
            (!MODULUS_BITS.contains(&bits)).then(|| KeyFault { shown: Some(format!("{bits}-bit modulus")), why })
        }
        _ => Some(KeyFault::omitted(UNKNOWN_KEY)),
    }
}

/// From when until when a certificate is valid, in seconds since 1970.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Validity {
    pub not_before: i64,
    pub not_after: i64,
}

/// Why a chain of certificates does not answer a request, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum ChainError {
    /// There is no certificate.
    #[error("issued certificate chain must contain at least one certificate")]
    Empty,
    /// The first block is not a certificate.
    #[error("issued certificate chain must consist entirely of CERTIFICATE PEM blocks")]
    LeafBlock,
    /// The first certificate can't be read.
    #[error("leaf certificate does not parse as valid X.509")]
    Leaf,
    /// The first certificate is for another key.
    #[error("leaf certificate was not issued to the requested public key")]
    Key,
    /// A further block is not a certificate.
    #[error("issued certificate chain must consist entirely of CERTFICATE PEM blocks")]
    IntermediateBlock,
    /// A further certificate can't be read.
    #[error("intermediate certificate does not parse as valid X.509")]
    Intermediate,
}

/// Reads the chain of certificates that a signer has issued for the key of `stub`, a PKCS#10 request.
///
/// # Errors
///
/// The chain is empty, has other blocks than certificates, or its first certificate is for another key.
pub fn issued(chain: &str, stub: &[u8]) -> Result<Validity, ChainError> {
    let blocks = blocks(chain.as_bytes());
    let Some((leaf, others)) = blocks.split_first() else {
        return Err(ChainError::Empty);
    };
    let is_certificate = |block: &PemBlock| block.label == "CERTIFICATE";
    if !is_certificate(leaf) {
        return Err(ChainError::LeafBlock);
    }
    let leaf = certificate(&leaf.bytes).ok_or(ChainError::Leaf)?;
    if request(stub).is_none_or(|request| request.certification_request_info.subject_pki.raw != leaf.public_key().raw) {
        return Err(ChainError::Key);
    }
    for other in others {
        if !is_certificate(other) {
            return Err(ChainError::IntermediateBlock);
        }
        certificate(&other.bytes).ok_or(ChainError::Intermediate)?;
    }
    let validity = leaf.validity();
    Ok(Validity { not_before: validity.not_before.timestamp(), not_after: validity.not_after.timestamp() })
}

fn certificate(der: &[u8]) -> Option<X509Certificate<'_>> {
    X509Certificate::from_der(der).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, certificate)| certificate)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stub(key: &rcgen::KeyPair) -> Vec<u8> {
        let request = rcgen::CertificateParams::default().serialize_request(key).expect("a request");
        request.der().to_vec()
    }

    #[cfg(feature = "signatures")]
    #[test]
    fn a_request_proves_that_who_asks_has_the_key() {
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut der = stub(&key);
        assert_eq!(stub_fault(&der), None);
        assert_eq!(stub_fault(&der[1..]), Some(KeyFault::omitted("must be a valid PKCS#10 CSR")));
        let last = der.len() - 1;
        der[last] ^= 1;
        assert_eq!(stub_fault(&der), Some(KeyFault::omitted("invalid signature")));
    }

    #[test]
    fn a_certificate_is_for_the_key_that_was_asked_for() {
        let key = rcgen::KeyPair::generate().expect("a key");
        let certificate = rcgen::CertificateParams::default().self_signed(&key).expect("a certificate");
        assert!(issued(&certificate.pem(), &stub(&key)).is_ok());
        let other = stub(&rcgen::KeyPair::generate().expect("a key"));
        let told = issued(&certificate.pem(), &other).expect_err("it is another key");
        assert_eq!(told.to_string(), "leaf certificate was not issued to the requested public key");
        assert!(issued("", &other).is_err());
    }
}
