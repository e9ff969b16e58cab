//! The kubelet's requests for certificates on behalf of pods: the proof of the key, and the issued certificate.
//!
//! Source: `pkg/apis/certificates/validation` of Kubernetes 1.36.

use thiserror::Error;
use x509_parser::certificate::X509Certificate;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;
use x509_parser::x509::SubjectPublicKeyInfo;

use super::request::signature;
use super::{PemBlock, blocks, proof};

const CERTIFICATE: &str = "CERTIFICATE";
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

/// Whether `proof` shows that who asks has the key: it signs the uid of the pod. True if the key's algorithm is unknown
/// here.
pub fn is_proven(der: &[u8], uid: &str, signed: &[u8]) -> bool {
    public_key(der).is_none_or(|key| proof::is_signed(&key, curve(&key), uid.as_bytes(), signed))
}

fn public_key(der: &[u8]) -> Option<SubjectPublicKeyInfo<'_>> {
    let (rest, key) = SubjectPublicKeyInfo::from_der(der).ok()?;
    (rest.is_empty() && is_readable(&key)).then_some(key)
}

/// Whether Go reads the key: it knows few curves, and no long exponents.
fn is_readable(key: &SubjectPublicKeyInfo<'_>) -> bool {
    /// Of an RSA key; its first bit is the sign.
    const EXPONENT_BYTES_MAX: usize = 8;
    match key.parsed() {
        Ok(PublicKey::EC(_)) => curve(key).is_some(),
        Ok(PublicKey::RSA(rsa)) => {
            let is_positive = rsa.exponent.first().is_some_and(|first| first & 0x80 == 0) && rsa.exponent != [0];
            is_positive && rsa.exponent.len() <= EXPONENT_BYTES_MAX
        }
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
    /// A further block is not a certificate.
    #[error("issued certificate chain must consist entirely of CERTFICATE PEM blocks")]
    IntermediateBlock,
    /// A further certificate can't be read.
    #[error("intermediate certificate does not parse as valid X.509")]
    Intermediate,
}

/// The chain of certificates that a signer has issued: what its first one says, and those after it.
pub struct CertificateChain {
    /// When the first certificate is valid.
    pub validity: Validity,
    /// The faults of its names: the name, and the reason.
    pub name_faults: Vec<(String, &'static str)>,
    key: Vec<u8>,
    others: Vec<PemBlock>,
}

impl CertificateChain {
    /// Reads the first certificate of a chain.
    ///
    /// # Errors
    ///
    /// There is none.
    pub fn read(chain: &str) -> Result<Self, ChainError> {
        let mut blocks = blocks(chain.as_bytes()).into_iter();
        let leaf = blocks.next().ok_or(ChainError::Empty)?;
        if leaf.label != CERTIFICATE {
            return Err(ChainError::LeafBlock);
        }
        let leaf = certificate(&leaf.bytes).ok_or(ChainError::Leaf)?;
        let validity = leaf.validity();
        Ok(CertificateChain {
            validity: Validity {
                not_before: validity.not_before.timestamp(),
                not_after: validity.not_after.timestamp(),
            },
            name_faults: name_faults(&leaf),
            key: leaf.public_key().raw.to_vec(),
            others: blocks.collect(),
        })
    }

    /// Whether the first certificate is for the key of `stub`, a PKCS#10 request; `None` if that can't be read.
    pub fn is_for_request(&self, stub: &[u8]) -> Option<bool> {
        request(stub).map(|request| request.certification_request_info.subject_pki.raw == self.key)
    }

    /// Whether the first certificate is for a bare key; `None` if that can't be read.
    pub fn is_for_key(&self, der: &[u8]) -> Option<bool> {
        public_key(der).map(|key| key.raw == self.key)
    }

    /// Checks the certificates after the first one.
    ///
    /// # Errors
    ///
    /// One of them is something else.
    pub fn check_others(&self) -> Result<(), ChainError> {
        for other in &self.others {
            if other.label != CERTIFICATE {
                return Err(ChainError::IntermediateBlock);
            }
            certificate(&other.bytes).ok_or(ChainError::Intermediate)?;
        }
        Ok(())
    }
}

fn name_faults(leaf: &X509Certificate<'_>) -> Vec<(String, &'static str)> {
    let mut faults = Vec::new();
    let Ok(Some(alternative)) = leaf.subject_alternative_name() else { return faults };
    let names = &alternative.value.general_names;
    for name in names {
        let GeneralName::DNSName(name) = name else { continue };
        let mut add = |fault: &'static str| faults.push(((*name).to_owned(), fault));
        if name.is_empty() {
            add("leaf certificate should not contain empty DNSName");
        }
        if name.contains("..") {
            add("leaf certificate's DNSName should not contain '..'");
        }
        if name.starts_with('.') || name.ends_with('.') {
            add("leaf certificate's DNSName should not start or end with '.'");
        }
    }
    for name in names {
        if let GeneralName::RFC822Name(name) = name
            && !is_mail_address(name)
        {
            faults.push(((*name).to_owned(), "leaf certificate should not contain invalid EmailAddress"));
        }
    }
    faults
}

/// Whether a text is an address of mail as far as its plainest form goes; quotes, names and comments are not looked at.
fn is_mail_address(text: &str) -> bool {
    const OTHER_FORMS: [char; 4] = ['<', '"', '(', '['];
    let is_dotted = |part: &str| {
        let is_atom = |atom: &str| {
            let is_fit =
                |character: char| character.is_ascii_alphanumeric() || "!#$%&'*+-/=?^_`{|}~".contains(character);
            !atom.is_empty() && atom.chars().all(is_fit)
        };
        part.split('.').all(is_atom)
    };
    let is_plain = |text: &str| text.split_once('@').is_some_and(|(local, host)| is_dotted(local) && is_dotted(host));
    text.contains(OTHER_FORMS) || is_plain(text.trim())
}

fn certificate(der: &[u8]) -> Option<X509Certificate<'_>> {
    X509Certificate::from_der(der).ok().filter(|(rest, _)| rest.is_empty()).map(|(_, certificate)| certificate)
}

#[cfg(test)]
mod tests {
    use rcgen::PublicKeyData;

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
        let chain = CertificateChain::read(&certificate.pem()).expect("it is a certificate");
        assert_eq!(chain.is_for_request(&stub(&key)), Some(true));
        assert_eq!(chain.is_for_key(&key.subject_public_key_info()), Some(true));
        let other = rcgen::KeyPair::generate().expect("a key");
        assert_eq!(chain.is_for_request(&stub(&other)), Some(false));
        assert_eq!(chain.is_for_key(&other.subject_public_key_info()), Some(false));
        assert_eq!(chain.is_for_key(&[1]), None);
        assert_eq!(CertificateChain::read("").err(), Some(ChainError::Empty));
        let with_key = format!("{}{}", certificate.pem(), key.serialize_pem());
        let chain = CertificateChain::read(&with_key).expect("it begins with a certificate");
        assert_eq!(chain.check_others(), Err(ChainError::IntermediateBlock));
    }

    #[test]
    fn the_names_of_a_certificate_are_fit_for_hosts_and_mail() {
        use rcgen::SanType;
        let mut params = rcgen::CertificateParams::default();
        let text = |text: &str| text.try_into().expect("it has such letters");
        params.subject_alt_names = vec![
            SanType::Rfc822Name(text("a")),
            SanType::DnsName(text("a..b.")),
            SanType::Rfc822Name(text("a@b")),
            SanType::DnsName(text("a.b")),
        ];
        let key = rcgen::KeyPair::generate().expect("a key");
        let chain = CertificateChain::read(&params.self_signed(&key).expect("a certificate").pem())
            .expect("it is a certificate");
        assert_eq!(
            chain.name_faults,
            [
                ("a..b.".to_owned(), "leaf certificate's DNSName should not contain '..'"),
                ("a..b.".to_owned(), "leaf certificate's DNSName should not start or end with '.'"),
                ("a".to_owned(), "leaf certificate should not contain invalid EmailAddress"),
            ]
        );
    }

    #[cfg(feature = "signatures")]
    #[test]
    fn a_proof_is_a_signature_over_the_uid() {
        use rcgen::SigningKey;
        for algorithm in [&rcgen::PKCS_ECDSA_P256_SHA256, &rcgen::PKCS_ED25519] {
            let key = rcgen::KeyPair::generate_for(algorithm).expect("a key");
            let der = key.subject_public_key_info();
            let proof = key.sign(b"uid").expect("it signs");
            assert!(is_proven(&der, "uid", &proof));
            assert!(!is_proven(&der, "other", &proof));
        }
        let (der, proof) =
            (include_bytes!("../../../tests/data/rsa-3072.der"), include_bytes!("../../../tests/data/rsa-3072.pss"));
        assert!(is_proven(der, "uid", proof));
        assert!(!is_proven(der, "other", proof));
    }
}
