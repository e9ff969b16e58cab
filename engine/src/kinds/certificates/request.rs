//! PKCS#10 requests for certificates, and certificates.
//!
//! A signature is checked if the server's cryptography is built in; offline tools accept it unchecked.

use std::fmt;

use thiserror::Error;
use x509_parser::certificate::X509Certificate;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer;

use super::subject::{Subject, UnreadableSubject};
use super::{PemBlock, blocks};

/// The subject of a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// The subject's organizations: groups of the user that it will be.
    pub organizations: Vec<String>,
    /// The subject's common name, which becomes the user name. Empty if there is none.
    pub common_name: String,
    /// The number of other requested names.
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
    /// Source: `parseSANExtension` of Go's `crypto/x509`.
    fn of(request: &X509CertificationRequest<'_>) -> Result<Self, RequestError> {
        let mut names = Names::default();
        for extension in request.requested_extensions().into_iter().flatten() {
            let ParsedExtension::SubjectAlternativeName(alternative) = extension else { continue };
            for name in &alternative.general_names {
                let (count, sort, text) = match name {
                    GeneralName::DNSName(name) => (&mut names.dns, "dNSName", name),
                    GeneralName::RFC822Name(name) => (&mut names.emails, "rfc822Name", name),
                    GeneralName::URI(name) => (&mut names.uris, "uniformResourceIdentifier", name),
                    GeneralName::IPAddress(bytes) => {
                        names.ips += 1;
                        match bytes.len() {
                            IPV4_BYTES | IPV6_BYTES => continue,
                            length => return Err(RequestError::Address(length)),
                        }
                    }
                    _ => continue,
                };
                *count += 1;
                if !text.is_ascii() {
                    return Err(RequestError::Name(sort));
                }
            }
        }
        Ok(names)
    }
}

const IPV4_BYTES: usize = 4;
const IPV6_BYTES: usize = 16;

/// Why bytes are not a request for a certificate, in Go's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum RequestError {
    /// The first block of PEM is another one.
    #[error("PEM block type must be CERTIFICATE REQUEST")]
    BlockType,
    /// The bytes are not DER, or not all of them.
    #[error("asn1: syntax error: {0}")]
    Syntax(&'static str),
    /// A length is written in more bytes than it takes.
    #[error("asn1: structure error: {0}")]
    Length(&'static str),
    /// The bytes are something else.
    #[error(
        "asn1: structure error: tags don't match (16 vs {found}) {{optional:false explicit:false application:false \
         private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false}} {wanted} @{}",
        .found.bytes
    )]
    Structure {
        /// Go's type.
        wanted: &'static str,
        /// What stands there.
        found: Header,
    },
    /// An attribute of the subject can't be read.
    #[error(transparent)]
    Subject(#[from] UnreadableSubject),
    /// An address among the other names is neither of IPv4 nor of IPv6: how many bytes it has.
    #[error("x509: cannot parse IP address of length {0}")]
    Address(usize),
    /// One of the other names, of a sort, has letters beyond ASCII.
    #[error("x509: SAN {0} is malformed")]
    Name(&'static str),
    /// A key of RSA has too few bits.
    #[error("crypto/rsa: {0}-bit keys are insecure (see https://go.dev/pkg/crypto/rsa#hdr-Minimum_key_size)")]
    KeySize(usize),
    /// The signature does not match.
    #[error("{0}")]
    Signature(&'static str),
}

impl Request {
    /// Reads a PEM block of type `CERTIFICATE REQUEST` without a look at its signature.
    ///
    /// # Errors
    ///
    /// It is not a request, or its names can't be read.
    pub fn parse(pem: &[u8]) -> Result<Self, RequestError> {
        let block = first(pem)?;
        let request = decoded(&block.bytes)?;
        let subject = Subject::of(&request.certification_request_info.subject)?;
        let common_name = subject.common_name().to_owned();
        Ok(Request { organizations: subject.organizations().to_vec(), common_name, names: Names::of(&request)? })
    }

    /// [`Request::parse`], and whether the sender has the key.
    ///
    /// # Errors
    ///
    /// It is not a request, its names can't be read, or it is not signed by its own key. What is signed by an algorithm that is not
    /// known here passes.
    pub fn verify(pem: &[u8]) -> Result<(), RequestError> {
        let block = first(pem)?;
        let request = decoded(&block.bytes)?;
        Subject::of(&request.certification_request_info.subject)?;
        Names::of(&request)?;
        Request::is_proven(&request).map(|_| ())
    }

    /// Whether a request is signed by its own key; false if the algorithm is unknown here.
    ///
    /// # Errors
    ///
    /// The signature does not match.
    pub fn is_proven(request: &X509CertificationRequest<'_>) -> Result<bool, RequestError> {
        signature::is_proven(request)
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

fn first(pem: &[u8]) -> Result<PemBlock, RequestError> {
    let first = blocks(pem).into_iter().next().filter(|block| block.label == "CERTIFICATE REQUEST");
    first.ok_or(RequestError::BlockType)
}

/// Go's error for bytes that are not a request, as far as the outer two elements show it.
fn malformed(der: &[u8]) -> RequestError {
    let content = match sequence(der, "certificateRequest") {
        Ok(content) => content,
        Err(error) => return error,
    };
    sequence(content, "tbsCertificateRequest").err().unwrap_or(RequestError::Syntax("data truncated"))
}

/// What is in a sequence, which is of Go's type `wanted`.
///
/// Source: `parseField` of `encoding/asn1`, Go 1.26.
fn sequence<'d>(der: &'d [u8], wanted: &'static str) -> Result<&'d [u8], RequestError> {
    if der.is_empty() {
        return Err(RequestError::Syntax("sequence truncated"));
    }
    let found = Header::read(der)?;
    if !found.is_sequence() {
        return Err(RequestError::Structure { wanted, found });
    }
    let content = der.get(found.bytes..found.bytes + found.length);
    content.ok_or(RequestError::Syntax("data truncated"))
}

/// The tag and the length of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The tag, with its class.
    tag: u8,
    length: usize,
    /// How many bytes it has itself.
    bytes: usize,
}

impl Header {
    /// Source: `parseTagAndLength` of `encoding/asn1`, Go 1.26.
    fn read(der: &[u8]) -> Result<Self, RequestError> {
        const TRUNCATED: RequestError = RequestError::Syntax("truncated tag or length");
        const LENGTH_MAX: usize = 1 << 23;
        let [tag, first, rest @ ..] = der else { return Err(TRUNCATED) };
        if tag & 0x1f == 0x1f {
            // A tag of several bytes, which nothing here has.
            return Err(RequestError::Syntax("non-minimal tag"));
        }
        if first & 0x80 == 0 {
            return Ok(Header { tag: *tag, length: usize::from(*first), bytes: 2 });
        }
        let count = usize::from(first & 0x7f);
        if count == 0 {
            return Err(RequestError::Syntax("indefinite length found (not DER)"));
        }
        let mut length = 0;
        for at in 0..count {
            let byte = rest.get(at).ok_or(TRUNCATED)?;
            if length >= LENGTH_MAX {
                return Err(RequestError::Length("length too large"));
            }
            length = length << 8 | usize::from(*byte);
            if length == 0 {
                return Err(RequestError::Length("superfluous leading zeros in length"));
            }
        }
        match length {
            0..0x80 => Err(RequestError::Length("non-minimal length")),
            _ => Ok(Header { tag: *tag, length, bytes: 2 + count }),
        }
    }

    const fn is_sequence(self) -> bool {
        self.tag == 0x30
    }
}

impl fmt::Display for Header {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (class, tag, is_compound) = (self.tag >> 6, self.tag & 0x1f, self.tag & 0x20 != 0);
        write!(out, "{{class:{class} tag:{tag} length:{} isCompound:{is_compound}}}", self.length)
    }
}

/// The request in DER.
fn decoded(der: &[u8]) -> Result<X509CertificationRequest<'_>, RequestError> {
    match X509CertificationRequest::from_der(der) {
        Ok(([], request)) => Ok(request),
        Ok(_) => Err(RequestError::Syntax("trailing data")),
        Err(_) => Err(malformed(der)),
    }
}

#[cfg(feature = "signatures")]
pub(super) mod signature {
    use ring::signature::{self, UnparsedPublicKey, VerificationAlgorithm};
    use x509_parser::certification_request::X509CertificationRequest;
    use x509_parser::public_key::PublicKey;

    use super::RequestError;

    const RSA: &str = "1.2.840.113549.1.1.";
    const ECDSA: &str = "1.2.840.10045.4.3.";
    const ED25519: &str = "1.3.101.112";
    const P384_BITS: usize = 384;
    /// The least number of bits of an RSA key, as in Go.
    const RSA_BITS_MIN: usize = 1024;

    /// Whether the request is signed by its own key; false if the algorithm is unknown here.
    ///
    /// # Errors
    ///
    /// The signature does not match.
    pub fn is_proven(request: &X509CertificationRequest<'_>) -> Result<bool, RequestError> {
        let algorithm = request.signature_algorithm.algorithm.to_id_string();
        let key = &request.certification_request_info.subject_pki;
        let bits = match key.parsed() {
            Ok(PublicKey::RSA(rsa)) => {
                let bits = bits_of(rsa.modulus);
                if bits < RSA_BITS_MIN {
                    return Err(RequestError::KeySize(bits));
                }
                bits
            }
            Ok(other) => other.key_size(),
            Err(_) => 0,
        };
        let Some((verification, failure)) = verification(&algorithm, bits) else { return Ok(false) };
        let key = UnparsedPublicKey::new(verification, key.subject_public_key.data.as_ref());
        let signed = key.verify(request.certification_request_info.raw, &request.signature_value.data);
        signed.map(|()| true).map_err(|_| RequestError::Signature(failure))
    }

    /// How many bits a number has.
    fn bits_of(number: &[u8]) -> usize {
        let zeros = number.iter().take_while(|byte| **byte == 0).count();
        let first = number.get(zeros).map_or(0, |byte| byte.leading_zeros());
        (number.len() - zeros) * 8 - usize::try_from(first).unwrap_or_default()
    }

    fn verification(algorithm: &str, key_bits: usize) -> Option<(&'static dyn VerificationAlgorithm, &'static str)> {
        if let Some(hash) = algorithm.strip_prefix(RSA) {
            let verification: &'static dyn VerificationAlgorithm = match hash {
                "5" => &signature::RSA_PKCS1_1024_8192_SHA1_FOR_LEGACY_USE_ONLY,
                "11" => &signature::RSA_PKCS1_1024_8192_SHA256_FOR_LEGACY_USE_ONLY,
                // Shorter keys can't be verified with it.
                "12" if key_bits >= 2048 => &signature::RSA_PKCS1_2048_8192_SHA384,
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

    /// Nothing is known against it, or for it.
    ///
    /// # Errors
    ///
    /// The signature does not match.
    pub const fn is_proven(_: &X509CertificationRequest<'_>) -> Result<bool, RequestError> {
        Ok(false)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_a_request_is_told_in_gos_words() {
        let wrong_type = Err(RequestError::BlockType);
        assert_eq!(Request::verify(b""), wrong_type);
        assert_eq!(Request::verify(b"-----BEGIN X-----\nAQID\n-----END X-----\n"), wrong_type);
        let garbage = b"-----BEGIN CERTIFICATE REQUEST-----\nMAID\n-----END CERTIFICATE REQUEST-----\n";
        assert_eq!(Request::verify(garbage), Err(RequestError::Syntax("data truncated")));
        let told = |der: &[u8]| decoded(der).err().map(|error| error.to_string()).unwrap_or_default();
        let other = |found: &str, wanted: &str| {
            format!(
                "asn1: structure error: tags don't match (16 vs {found}) {{optional:false explicit:false application:false \
                 private:false defaultValue:<nil> tag:<nil> stringType:0 timeType:0 set:false omitEmpty:false}} {wanted}"
            )
        };
        // As Go 1.26 answers.
        for (der, text) in [
            (&[][..], "asn1: syntax error: sequence truncated".to_owned()),
            (&[0x30], "asn1: syntax error: truncated tag or length".to_owned()),
            (&[0x30, 0], "asn1: syntax error: sequence truncated".to_owned()),
            (&[0x30, 0x80], "asn1: syntax error: indefinite length found (not DER)".to_owned()),
            (&[0x30, 0x82, 0, 1, 0], "asn1: structure error: superfluous leading zeros in length".to_owned()),
            (&[2, 1, 5], other("{class:0 tag:2 length:1 isCompound:false}", "certificateRequest @2")),
            (&[4, 0x82, 1, 0], other("{class:0 tag:4 length:256 isCompound:false}", "certificateRequest @4")),
            (&[0x30, 3, 2, 1, 5], other("{class:0 tag:2 length:1 isCompound:false}", "tbsCertificateRequest @2")),
        ] {
            assert_eq!(told(der), text);
        }
    }

    #[test]
    fn a_request_stands_alone() {
        let pem = request(Vec::new());
        let mut der = first(pem.as_bytes()).expect("it is PEM").bytes;
        assert!(decoded(&der).is_ok());
        der.push(0);
        assert_eq!(decoded(&der).err(), Some(RequestError::Syntax("trailing data")));
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
        // Attributes that a certificate will not contain are not checked.
        let pem = request(vec![(UID, bmp()), (NAME, node())]);
        assert_eq!(Request::parse(pem.as_bytes()).map(|request| request.common_name), Ok("system:node:a".to_owned()));
    }

    #[test]
    fn a_request_whose_other_names_go_cannot_read_is_refused() {
        use rcgen::SanType;
        let check = |change: fn(&mut Vec<u8>), expected: Result<Names, RequestError>| {
            let mut params = rcgen::CertificateParams::default();
            params.distinguished_name = rcgen::DistinguishedName::new();
            let name = "mail.example".try_into().expect("it is a name");
            params.subject_alt_names = vec![SanType::IpAddress([10, 0, 0, 1].into()), SanType::DnsName(name)];
            let key = rcgen::KeyPair::generate().expect("a key");
            let mut der = params.serialize_request(&key).expect("a request").der().to_vec();
            change(&mut der);
            let (_, request) = X509CertificationRequest::from_der(&der).expect("it is a request");
            assert_eq!(Names::of(&request), expected);
        };
        check(|_| {}, Ok(Names { dns: 1, ips: 1, ..Names::default() }));
        // The text after it becomes a part of the address.
        check(
            |der| {
                let at = der.windows(6).position(|bytes| bytes == [0x87, 4, 10, 0, 0, 1]).expect("it is there");
                der[at + 1] = 4 + 14;
            },
            Err(RequestError::Address(18)),
        );
        check(
            |der| {
                let at = der.windows(4).position(|bytes| bytes == b"mail").expect("it is there");
                der[at..at + 2].copy_from_slice("\u{e9}".as_bytes());
            },
            Err(RequestError::Name("dNSName")),
        );
    }

    #[cfg(feature = "signatures")]
    #[test]
    fn a_key_of_rsa_has_as_many_bits_as_go_wants() {
        let short = include_bytes!("../../../tests/data/rsa-512.csr");
        assert_eq!(Request::verify(short), Err(RequestError::KeySize(512)));
        for request in [
            &include_bytes!("../../../tests/data/rsa-1024.csr")[..],
            include_bytes!("../../../tests/data/rsa-1024-sha1.csr"),
        ] {
            let block = first(request).expect("it is PEM");
            let (_, request) = X509CertificationRequest::from_der(&block.bytes).expect("it is a request");
            assert_eq!(Request::is_proven(&request), Ok(true));
        }
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
