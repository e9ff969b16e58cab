//! Requests for certificates by PKCS#10, and certificates.
//!
//! A signature is checked where the server's cryptography is built in; offline tools take it as it is.

use thiserror::Error;
use x509_parser::certificate::X509Certificate;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

use super::pem::{Block, blocks};
use super::subject::{Subject, UnreadableSubject};

/// What a request says of its subject.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The subject's organizations: groups of the user that it will be.
    pub organizations: Vec<String>,
    /// The subject's common name: the user that it will be. Empty where there is none.
    pub common_name: String,
    /// How many other names are asked for.
    pub names: Names,
}

/// How many alternative names of each sort there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Names {
    /// Names of hosts.
    pub dns: usize,
    /// Addresses of mail.
    pub emails: usize,
    /// Addresses of hosts.
    pub ips: usize,
    /// URIs.
    pub uris: usize,
}

impl Names {
    fn of(request: &X509CertificationRequest<'_>) -> Self {
        let mut names = Names::default();
        for extension in request.requested_extensions().into_iter().flatten() {
            let ParsedExtension::SubjectAlternativeName(alternative) = extension else { continue };
            for name in &alternative.general_names {
                match name {
                    GeneralName::DNSName(_) => names.dns += 1,
                    GeneralName::RFC822Name(_) => names.emails += 1,
                    GeneralName::IPAddress(_) => names.ips += 1,
                    GeneralName::URI(_) => names.uris += 1,
                    _ => {}
                }
            }
        }
        names
    }
}

/// Why bytes are not a request for a certificate, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The first block of PEM is another one.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    BlockType,
    /// The bytes end too early.
    #[error("asn1: syntax error: data truncated")]
    Truncated,
    /// The bytes are something else.
    #[error("asn1: structure error: tags don't match")]
    Structure,
    /// An attribute of the subject can't be read.
    #[error(transparent)]
    Subject(#[from] UnreadableSubject),
    /// The signature does not match.
    #[error("{0}")]
    Signature(&'static str),
}

impl Request {
    /// Reads a PEM block of type `CERTIFICATE REQUEST` without a look at its signature.
    ///
    /// # Errors
    ///
    /// It is not a request, or its subject can't be read.
    pub fn parse(pem: &[u8]) -> Result<Self, RequestError> {
        let block = first(pem)?;
        let (_, request) = X509CertificationRequest::from_der(&block.bytes).map_err(|_| malformed(&block.bytes))?;
        let subject = Subject::of(&request.certification_request_info.subject)?;
        let common_name = subject.common_name().to_owned();
        Ok(Request { organizations: subject.organizations().to_vec(), common_name, names: Names::of(&request) })
    }

    /// [`Request::parse`], and whether who asks has the key.
    ///
    /// # Errors
    ///
    /// It is not a request, its subject can't be read, or it is not signed by its own key.
    pub fn verify(pem: &[u8]) -> Result<(), RequestError> {
        let block = first(pem)?;
        let (_, request) = X509CertificationRequest::from_der(&block.bytes).map_err(|_| malformed(&block.bytes))?;
        Subject::of(&request.certification_request_info.subject)?;
        signature::verify(&request)
    }
}

/// Whether `der` is a certificate.
pub fn is_certificate(der: &[u8]) -> bool {
    X509Certificate::from_der(der).is_ok_and(|(rest, _)| rest.is_empty())
}

/// Whether `der` is the certificate of an authority.
pub fn is_authority(der: &[u8]) -> bool {
    X509Certificate::from_der(der).is_ok_and(|(_, certificate)| certificate.is_ca())
}

fn first(pem: &[u8]) -> Result<Block, RequestError> {
    let first = blocks(pem).into_iter().next().filter(|block| block.label == "CERTIFICATE REQUEST");
    first.ok_or(RequestError::BlockType)
}

/// What Go says of bytes that are not a request, as far as can be told from the outermost element.
fn malformed(der: &[u8]) -> RequestError {
    const SEQUENCE: u8 = 0x30;
    match der.first() {
        Some(&SEQUENCE) | None => RequestError::Truncated,
        Some(_) => RequestError::Structure,
    }
}

#[cfg(feature = "signatures")]
pub(super) mod signature {
    use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
    use x509_parser::certification_request::X509CertificationRequest;

    use super::RequestError;

    const RSA: &str = "1.2.840.113549.1.1.";
    const ECDSA: &str = "1.2.840.10045.4.3.";
    const ED25519: &str = "1.3.101.112";
    const P384_BITS: usize = 384;

    /// Whether the request is signed by its own key; an algorithm that is not known here passes.
    ///
    /// # Errors
    ///
    /// The signature does not match.
    pub fn verify(request: &X509CertificationRequest<'_>) -> Result<(), RequestError> {
        let algorithm = request.signature_algorithm.algorithm.to_id_string();
        let key = &request.certification_request_info.subject_pki;
        let bits = key.parsed().map(|key| key.key_size()).unwrap_or_default();
        let Some((verification, failure)) = verification(&algorithm, bits) else { return Ok(()) };
        let key = UnparsedPublicKey::new(verification, key.subject_public_key.data.as_ref());
        let signed = key.verify(request.certification_request_info.raw, &request.signature_value.data);
        signed.map_err(|_| RequestError::Signature(failure))
    }

    fn verification(algorithm: &str, key_bits: usize) -> Option<(&'static dyn VerificationAlgorithm, &'static str)> {
        if let Some(hash) = algorithm.strip_prefix(RSA) {
            let verification: &'static dyn VerificationAlgorithm = match hash {
                "11" => &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
                "12" => &signature::RSA_PKCS1_2048_8192_SHA384,
                "13" => &signature::RSA_PKCS1_1024_8192_SHA512_FOR_LEGACY_USE_ONLY,
                _ => return None,
            };
            return Some((verification, "crypto/rsa: verification error"));
        }
        if let Some(hash) = algorithm.strip_prefix(ECDSA) {
            let verification: &'static dyn VerificationAlgorithm = match (hash, key_bits >= P384_BITS) {
                ("2", false) => &signature::ECDSA_P256_SHA256_ASN1,
                ("2", true) => &signature::ECDSA_P384_SHA256_ASN1,
                ("3", false) => &signature::ECDSA_P256_SHA384_ASN1,
                ("3", true) => &signature::ECDSA_P384_SHA384_ASN1,
                _ => return None,
            };
            return Some((verification, "x509: ECDSA verification failure"));
        }
        (algorithm == ED25519).then_some((
            &signature::ED25519 as &'static dyn VerificationAlgorithm,
            "x509: Ed25519 verification failure",
        ))
    }
}

#[cfg(not(feature = "signatures"))]
pub(super) mod signature {
    use x509_parser::certification_request::X509CertificationRequest;

    use super::RequestError;

    /// Nothing is known against it.
    ///
    /// # Errors
    ///
    /// The signature does not match.
    pub const fn verify(_: &X509CertificationRequest<'_>) -> Result<(), RequestError> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_request_is_told_in_gos_words() {
        let wrong_type = Err(RequestError::BlockType);
        assert_eq!(Request::verify(b""), wrong_type);
        assert_eq!(Request::verify(b"-----BEGIN X-----\nAQID\n-----END X-----\n"), wrong_type);
        let garbage = b"-----BEGIN CERTIFICATE REQUEST-----\nMAID\n-----END CERTIFICATE REQUEST-----\n";
        assert_eq!(Request::verify(garbage), Err(RequestError::Truncated));
    }

    /// A request for a certificate with these attributes, each under its object identifier.
    fn request(attributes: Vec<(&[u64], rcgen::DnValue)>) -> String {
        let mut params = rcgen::CertificateParams::default();
        params.distinguished_name = rcgen::DistinguishedName::new();
        for (identifier, value) in attributes {
            params.distinguished_name.push(rcgen::DnType::from_oid(identifier), value);
        }
        let key = rcgen::KeyPair::generate().expect("a key");
        params.serialize_request(&key).expect("a request").pem().expect("as text")
    }

    #[test]
    fn a_request_whose_subject_cannot_be_read_is_refused() {
        const NAME: &[u64] = &[2, 5, 4, 3];
        const ORGANIZATION: &[u64] = &[2, 5, 4, 10];
        const UID: &[u64] = &[1, 3, 6, 1, 4, 1, 57_683, 2];
        let bmp = || rcgen::DnValue::BmpString("system:masters".try_into().expect("it has such letters"));
        let teletex = rcgen::DnValue::TeletexString("system:masters".try_into().expect("it has such letters"));
        let node = || rcgen::DnValue::Utf8String("system:node:a".to_owned());
        for attributes in [
            vec![(ORGANIZATION, bmp())],
            vec![(ORGANIZATION, teletex)],
            vec![(NAME, bmp())],
            vec![(NAME, node()), (ORGANIZATION, bmp())],
        ] {
            let pem = request(attributes);
            assert_eq!(Request::parse(pem.as_bytes()), Err(RequestError::Subject(UnreadableSubject)));
            assert_eq!(Request::verify(pem.as_bytes()), Err(RequestError::Subject(UnreadableSubject)));
        }
        // What a certificate will not have is not looked at.
        let pem = request(vec![(UID, bmp()), (NAME, node())]);
        assert_eq!(Request::parse(pem.as_bytes()).map(|request| request.common_name), Ok("system:node:a".to_owned()));
    }

    #[cfg(feature = "signatures")]
    #[test]
    fn a_request_is_signed_by_its_own_key() {
        let params = rcgen::CertificateParams::default();
        let key = rcgen::KeyPair::generate().expect("a key");
        let mut request = params.serialize_request(&key).expect("a request").pem().expect("as text");
        assert_eq!(Request::verify(request.as_bytes()), Ok(()));
        let at = request.len() - 60;
        let other = if request.as_bytes()[at] == b'A' { "B" } else { "A" };
        request.replace_range(at..=at, other);
        assert_eq!(
            Request::verify(request.as_bytes()),
            Err(RequestError::Signature("x509: ECDSA verification failure"))
        );
    }
}
