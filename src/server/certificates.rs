//! The certificate authority and the certificates that it issues, ECDSA P-256 throughout.
//!
//! An RSA key alone would spend the start budget.

use std::borrow::Cow;
use std::net::IpAddr;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, SanType, SubjectPublicKeyInfo,
};
use rustls_pki_types::pem::PemObject;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use thiserror::Error;
use x509_parser::certification_request::X509CertificationRequest;
use x509_parser::extensions::{GeneralName, ParsedExtension};
use x509_parser::prelude::FromDer as _;

use super::Secrets;
use super::subject::{SubjectError, with_subject};
use crate::controllers::{Sign, Unsigned};
use crate::kinds::certificates::{Request, RequestError, Subject, UnreadableSubject};
use crate::value::base64;
use crate::work;

/// The name under which the CA is stored.
pub const SECRET: &str = "ca";
const AUTHORITY_DAYS: u64 = 3650;
/// Below the 825 days beyond which Apple's clients refuse a server.
const LEAF_DAYS: u64 = 730;
/// How far a client's clock may lag behind ours.
const BACKDATE: Duration = Duration::from_secs(3600);

/// Why a certificate could not be made or read.
#[derive(Debug, Error)]
pub enum CertificateError {
    #[error("cannot make a certificate: {0}")]
    Generate(#[from] rcgen::Error),
    #[error("cannot read a certificate or key: {0}")]
    Parse(#[from] rustls_pki_types::pem::Error),
    #[error("cannot set up TLS: {0}")]
    Tls(#[from] rustls::Error),
    #[error("cannot verify client certificates: {0}")]
    Verifier(rustls::server::VerifierBuilderError),
    #[error("cannot keep the CA: {0}")]
    Secrets(super::SecretsError),
    #[error("the stored CA is not text")]
    NotText,
}

/// A certificate authority: its certificate and its key.
pub struct Authority {
    certificate_pem: String,
    issuer: Issuer<'static, KeyPair>,
}

/// A certificate that the authority issued, with its key.
pub struct Identity {
    pub certificate_pem: String,
    pub key_pem: String,
}

impl Authority {
    /// The CA among `secrets`; at the first start one is created and stored.
    pub async fn load(secrets: &dyn Secrets) -> Result<Self, CertificateError> {
        let kept = match secrets.read(SECRET).await.map_err(CertificateError::Secrets)? {
            Some(kept) => kept,
            None => {
                let made = Self::generate()?.into_bytes();
                secrets.insert_if_absent(SECRET, made).await.map_err(CertificateError::Secrets)?
            }
        };
        Self::from_bytes(kept)
    }

    /// A new CA.
    pub fn generate() -> Result<Self, CertificateError> {
        let mut params = params("skiff-ca", &[], AUTHORITY_DAYS);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
        let key = KeyPair::generate()?;
        let certificate_pem = params.self_signed(&key)?.pem();
        Ok(Authority { issuer: Issuer::from_ca_cert_pem(&certificate_pem, key)?, certificate_pem })
    }

    /// The certificate in PEM, for clients to trust.
    pub fn certificate_pem(&self) -> &str {
        &self.certificate_pem
    }

    /// The certificate in DER.
    pub fn certificate_der(&self) -> Result<CertificateDer<'static>, CertificateError> {
        Ok(CertificateDer::from_pem_slice(self.certificate_pem.as_bytes())?)
    }

    /// Issues a server certificate for `names`, each a host name or an IP address.
    pub fn issue_server(&self, names: &[String]) -> Result<Identity, CertificateError> {
        let mut params = params("skiff", &[], LEAF_DAYS);
        params.subject_alt_names = CertificateParams::new(names)?.subject_alt_names;
        self.issue(params, ExtendedKeyUsagePurpose::ServerAuth)
    }

    /// Issues a client certificate for the user `name` in `groups`.
    pub fn issue_client(&self, name: &str, groups: &[&str]) -> Result<Identity, CertificateError> {
        self.issue(params(name, groups, LEAF_DAYS), ExtendedKeyUsagePurpose::ClientAuth)
    }

    fn issue(
        &self,
        mut params: CertificateParams,
        usage: ExtendedKeyUsagePurpose,
    ) -> Result<Identity, CertificateError> {
        params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
        params.extended_key_usages = vec![usage];
        params.use_authority_key_identifier_extension = true;
        let key = KeyPair::generate()?;
        let certificate_pem = params.signed_by(&key, &self.issuer)?.pem();
        Ok(Identity { certificate_pem, key_pem: key.serialize_pem() })
    }

    fn into_bytes(self) -> Vec<u8> {
        (self.certificate_pem + &self.issuer.key().serialize_pem()).into_bytes()
    }

    fn from_bytes(bytes: Vec<u8>) -> Result<Self, CertificateError> {
        let text = String::from_utf8(bytes).map_err(|_| CertificateError::NotText)?;
        let key_at = text.find("-----BEGIN PRIVATE KEY").unwrap_or(text.len());
        let (certificate_pem, key_pem) = text.split_at(key_at);
        let issuer = Issuer::from_ca_cert_pem(certificate_pem, KeyPair::from_pem(key_pem)?)?;
        Ok(Authority { certificate_pem: certificate_pem.to_owned(), issuer })
    }
}

/// How far a requested certificate is backdated, and below which lifetime its end is not moved as well.
/// Source: `pkg/controller/certificates/signer`, release 1.37.
const SIGNED_BACKDATE: Duration = Duration::from_secs(5 * 60);
const SIGNED_SHORT: Duration = Duration::from_secs(8 * 3600);

/// Why a request is not signed.
#[derive(Debug, Error)]
enum SignError {
    #[error("{0}")]
    Form(String),
    #[error(transparent)]
    Generate(#[from] rcgen::Error),
    #[error("unable to verify certificate request signature: {0}")]
    Signature(RequestError),
    #[error(transparent)]
    Subject(#[from] UnreadableSubject),
    #[error(transparent)]
    Splice(#[from] SubjectError),
    #[error("x509: cannot parse IP address of length {0}")]
    Address(usize),
    #[error("unrecognized usage values: {0:?}")]
    Usage(String),
}

impl Sign for Authority {
    fn sign(&self, request: &[u8], usages: &[&str], valid_for: Duration) -> Result<String, Unsigned> {
        self.certificate_for(request, usages, valid_for).map_err(|error| Unsigned(error.into()))
    }
}

impl Authority {
    /// The certificate that a request asks for, in PEM.
    fn certificate_for(&self, request: &[u8], usages: &[&str], valid_for: Duration) -> Result<String, SignError> {
        let form = |error: &dyn std::error::Error| SignError::Form(error.to_string());
        // rcgen has a reader of requests, which refuses names that Go writes and extensions that don't matter here.
        let (_, request) = X509CertificationRequest::from_der(request).map_err(|error| form(&error))?;
        // As it was admitted; what nothing is known of there may be known to the parser.
        if !Request::is_proven(&request).map_err(SignError::Signature)? {
            request.verify_signature().map_err(|error| form(&error))?;
        }
        let asked = &request.certification_request_info;
        let key = SubjectPublicKeyInfo::from_der(asked.subject_pki.raw)?;
        let subject = Subject::of(&asked.subject)?;
        let mut params = CertificateParams::default();
        params.subject_alt_names = alternative_names(&request)?;
        if subject.attributes().next().is_none() {
            // The other names are critical then.
            params.distinguished_name = DistinguishedName::new();
        }
        let now = SystemTime::now();
        let life = if valid_for < SIGNED_SHORT { valid_for } else { valid_for - SIGNED_BACKDATE };
        params.not_before = (now - SIGNED_BACKDATE).into();
        params.not_after = (now + life).into();
        for usage in usages {
            match (key_usage(usage), extended_usage(usage)) {
                (Some(usage), _) if !params.key_usages.contains(&usage) => params.key_usages.push(usage),
                (_, Some(usage)) if !params.extended_key_usages.contains(&usage) => {
                    params.extended_key_usages.push(usage);
                }
                (None, None) => return Err(SignError::Usage((*usage).to_owned())),
                _ => {}
            }
        }
        params.is_ca = IsCa::ExplicitNoCa;
        params.use_authority_key_identifier_extension = true;
        let signed = params.signed_by(&key, &self.issuer)?;
        let der = with_subject(signed.der(), &subject, self.issuer.key())?;
        Ok(pem(&der))
    }
}

/// The requested alternative names, of the types that Kubernetes' signer copies.
fn alternative_names(request: &X509CertificationRequest<'_>) -> Result<Vec<SanType>, SignError> {
    let mut names = Vec::new();
    for extension in request.requested_extensions().into_iter().flatten() {
        let ParsedExtension::SubjectAlternativeName(asked) = extension else { continue };
        for name in &asked.general_names {
            work::step();
            names.extend(alternative_name(name)?);
        }
    }
    Ok(names)
}

fn alternative_name(name: &GeneralName<'_>) -> Result<Option<SanType>, SignError> {
    Ok(Some(match *name {
        GeneralName::DNSName(name) => SanType::DnsName(name.try_into()?),
        GeneralName::RFC822Name(name) => SanType::Rfc822Name(name.try_into()?),
        GeneralName::URI(name) => SanType::URI(name.try_into()?),
        GeneralName::IPAddress(bytes) => SanType::IpAddress(address(bytes)?),
        _ => return Ok(None),
    }))
}

fn address(bytes: &[u8]) -> Result<IpAddr, SignError> {
    let (four, sixteen) = (<[u8; 4]>::try_from(bytes), <[u8; 16]>::try_from(bytes));
    let address = four.map(IpAddr::from).or_else(|_| sixteen.map(IpAddr::from));
    address.map_err(|_| SignError::Address(bytes.len()))
}

/// A certificate as text.
fn pem(der: &[u8]) -> String {
    const LINE: usize = 64;
    let encoded = base64::encode(der);
    let lines = encoded.as_bytes().chunks(LINE).map(String::from_utf8_lossy);
    let lines: String = lines.flat_map(|line| [line, Cow::Borrowed("\n")]).collect();
    format!("-----BEGIN CERTIFICATE-----\n{lines}-----END CERTIFICATE-----\n")
}

fn key_usage(usage: &str) -> Option<KeyUsagePurpose> {
    Some(match usage {
        "signing" | "digital signature" => KeyUsagePurpose::DigitalSignature,
        "content commitment" => KeyUsagePurpose::ContentCommitment,
        "key encipherment" => KeyUsagePurpose::KeyEncipherment,
        "key agreement" => KeyUsagePurpose::KeyAgreement,
        "data encipherment" => KeyUsagePurpose::DataEncipherment,
        "cert sign" => KeyUsagePurpose::KeyCertSign,
        "crl sign" => KeyUsagePurpose::CrlSign,
        "encipher only" => KeyUsagePurpose::EncipherOnly,
        "decipher only" => KeyUsagePurpose::DecipherOnly,
        _ => return None,
    })
}

fn extended_usage(usage: &str) -> Option<ExtendedKeyUsagePurpose> {
    Some(match usage {
        "any" => ExtendedKeyUsagePurpose::Any,
        "server auth" => ExtendedKeyUsagePurpose::ServerAuth,
        "client auth" => ExtendedKeyUsagePurpose::ClientAuth,
        "code signing" => ExtendedKeyUsagePurpose::CodeSigning,
        "email protection" | "s/mime" => ExtendedKeyUsagePurpose::EmailProtection,
        "timestamping" => ExtendedKeyUsagePurpose::TimeStamping,
        "ocsp signing" => ExtendedKeyUsagePurpose::OcspSigning,
        "ipsec end system" => ExtendedKeyUsagePurpose::Other(vec![1, 3, 6, 1, 5, 5, 7, 3, 5]),
        "ipsec tunnel" => ExtendedKeyUsagePurpose::Other(vec![1, 3, 6, 1, 5, 5, 7, 3, 6]),
        "ipsec user" => ExtendedKeyUsagePurpose::Other(vec![1, 3, 6, 1, 5, 5, 7, 3, 7]),
        "microsoft sgc" => ExtendedKeyUsagePurpose::Other(vec![1, 3, 6, 1, 4, 1, 311, 10, 3, 3]),
        "netscape sgc" => ExtendedKeyUsagePurpose::Other(vec![2, 16, 840, 1, 113_730, 4, 1]),
        _ => return None,
    })
}

impl Identity {
    /// The chain and the key as rustls takes them.
    pub fn to_der(&self) -> Result<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>), CertificateError> {
        let chain = CertificateDer::pem_slice_iter(self.certificate_pem.as_bytes()).collect::<Result<_, _>>()?;
        Ok((chain, PrivateKeyDer::from_pem_slice(self.key_pem.as_bytes())?))
    }
}

fn params(common_name: &str, organizations: &[&str], days: u64) -> CertificateParams {
    let mut params = CertificateParams::default();
    let now = SystemTime::now();
    params.not_before = (now - BACKDATE).into();
    params.not_after = (now + Duration::from_secs(days * 24 * 3600)).into();
    params.distinguished_name = DistinguishedName::new();
    for organization in organizations {
        params.distinguished_name.push(DnType::OrganizationName, *organization);
    }
    params.distinguished_name.push(DnType::CommonName, common_name);
    params
}

#[cfg(test)]
pub mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;
    use rcgen::{DnValue, SigningKey as _};
    use x509_parser::certificate::X509Certificate;
    use x509_parser::prelude::FromDer as _;

    use super::*;
    use crate::server::SecretsError;
    use crate::server::subject::element;

    /// A certificate of X.509 version 1 for `name` of the group `dev`, as `openssl x509 -req` creates it: without a
    /// version and without extensions.
    pub fn in_version_1(authority: &Authority, name: &str) -> Identity {
        let issued = authority.issue_client(name, &["dev"]).expect("a certificate is issued");
        let (chain, _) = issued.to_der().expect("it is well-formed");
        let (_, parsed) = X509Certificate::from_der(&chain[0]).expect("it is well-formed");
        let algorithm = [0x30, 10, 6, 8, 0x2a, 0x86, 0x48, 0xce, 0x3d, 4, 3, 2];
        let times = [parsed.validity().not_before, parsed.validity().not_after].map(|time| {
            let date = time.to_datetime().date();
            let text = format!("{:02}{:02}{:02}000000Z", date.year() % 100, u8::from(date.month()), date.day());
            element(0x17, &[text.as_bytes()])
        });
        let parts = [
            &element(2, &[&[1]])[..],
            &algorithm,
            parsed.issuer().as_raw(),
            &element(0x30, &[&times.concat()]),
            parsed.subject().as_raw(),
            parsed.public_key().raw,
        ];
        let body = element(0x30, &parts);
        let signature = authority.issuer.key().sign(&body).expect("P-256 signs");
        let signature = element(3, &[&[0], &signature]);
        let certificate_pem = pem(&element(0x30, &[&body, &algorithm, &signature]));
        Identity { certificate_pem, key_pem: issued.key_pem }
    }

    /// An identity with the authority's name that may not sign others.
    pub fn posing_as(authority: &Authority) -> Authority {
        let leaf = authority.issue_client("skiff-ca", &[]).expect("a certificate is issued");
        Authority::from_bytes((leaf.certificate_pem + &leaf.key_pem).into_bytes()).expect("they fit")
    }

    /// One secret in memory.
    #[derive(Default)]
    struct OneSecret(Mutex<Option<Vec<u8>>>);

    #[async_trait]
    impl Secrets for OneSecret {
        async fn read(&self, _: &str) -> Result<Option<Vec<u8>>, SecretsError> {
            Ok(self.0.lock().expect("no test panics while holding it").clone())
        }

        async fn insert_if_absent(&self, _: &str, candidate: Vec<u8>) -> Result<Vec<u8>, SecretsError> {
            Ok(self.0.lock().expect("no test panics while holding it").get_or_insert(candidate).clone())
        }
    }

    #[tokio::test]
    async fn the_authority_outlives_a_start() {
        let secrets = OneSecret::default();
        let first = Authority::load(&secrets).await.expect("a CA is made");
        let second = Authority::load(&secrets).await.expect("the CA is read");
        assert_eq!(first.certificate_pem(), second.certificate_pem());
        assert_eq!(first.issuer.key().serialize_pem(), second.issuer.key().serialize_pem());
    }

    #[test]
    fn a_request_is_signed_for_the_key_that_it_has() {
        let authority = Authority::generate().expect("a CA is made");
        let key = KeyPair::generate().expect("ring makes P-256 keys");
        let request = params("jane", &["dev"], 1).serialize_request(&key).expect("it is a request");
        let usages = ["digital signature", "client auth"];
        let pem = authority.sign(request.der(), &usages, Duration::from_secs(600)).expect("it is signed");
        let chain = CertificateDer::from_pem_slice(pem.as_bytes()).expect("it is a certificate");
        let user = crate::auth::user_of_certificate(&chain).expect("it names a user");
        assert_eq!((user.name.as_str(), user.groups[0].as_str()), ("jane", "dev"));
        let key_pem = key.serialize_pem();
        let identity = Identity { certificate_pem: pem, key_pem };
        let authority_trust = super::super::Trust::of(&authority).expect("it is an authority");
        drop(super::super::Tls::new(authority_trust, &identity).expect("the key is that of the certificate"));
        // Each organization is a group.
        let more = include_bytes!("../../tests/data/two-organizations.csr");
        let pem = authority.sign(more, &usages, Duration::from_secs(600)).expect("it is signed");
        let chain = CertificateDer::from_pem_slice(pem.as_bytes()).expect("it is a certificate");
        let user = crate::auth::user_of_certificate(&chain).expect("it names a user");
        assert_eq!((user.name.as_str(), &user.groups[..2]), ("jane", &["dev".to_owned(), "ops".to_owned()][..]));
        let trusted = x509_parser::parse_x509_certificate(&chain).expect("it is a certificate").1;
        let (_, own) = x509_parser::pem::parse_x509_pem(authority.certificate_pem().as_bytes()).expect("it is PEM");
        let own = own.parse_x509().expect("it is a certificate");
        assert_eq!(trusted.issuer().as_raw(), own.subject().as_raw());
        let algorithm = &ring::signature::ECDSA_P256_SHA256_ASN1;
        let signer = ring::signature::UnparsedPublicKey::new(algorithm, authority.issuer.key().public_key_raw());
        signer.verify(trusted.tbs_certificate.as_ref(), &trusted.signature_value.data).expect("the signature is good");
        assert!(authority.sign(b"x", &usages, Duration::from_secs(600)).is_err());
        assert!(authority.sign(request.der(), &["x"], Duration::from_secs(600)).is_err());
    }

    /// The certificate that the authority signs for a request.
    fn signed(authority: &Authority, request: &[u8]) -> CertificateDer<'static> {
        let pem = authority.sign(request, &["client auth"], Duration::from_secs(600)).expect("it is signed");
        CertificateDer::from_pem_slice(pem.as_bytes()).expect("it is a certificate")
    }

    #[test]
    fn a_request_as_go_makes_it_is_signed() {
        // All organizations stand in one set.
        let request = include_bytes!("../../tests/data/organizations-in-one-set.csr");
        let (_, asked) = X509CertificationRequest::from_der(request).expect("it is a request");
        let chain = signed(&Authority::generate().expect("a CA is made"), request);
        let (_, certificate) = X509Certificate::from_der(&chain).expect("it is a certificate");
        // As both are written by the rules of Go, they are the same.
        assert_eq!(certificate.subject().as_raw(), asked.certification_request_info.subject.as_raw());
        let names = certificate.subject_alternative_name().expect("it is well-formed").expect("there are some");
        let expected = [GeneralName::DNSName("a.example"), GeneralName::IPAddress(&[10, 0, 0, 1])];
        assert_eq!((names.critical, &names.value.general_names[..]), (false, &expected[..]));
    }

    #[test]
    fn a_request_that_another_key_signed_is_not_signed() {
        let authority = Authority::generate().expect("a CA is made");
        let mut request = include_bytes!("../../tests/data/organizations-in-one-set.csr").to_vec();
        let at = request.windows(4).position(|letters| letters == b"jane").expect("it is for jane");
        request[at] = b'd';
        let error = authority.sign(&request, &["client auth"], Duration::from_secs(600)).expect_err("it is not signed");
        let why = "unable to verify certificate request signature: x509: ECDSA verification failure";
        assert_eq!(error.to_string(), why);
    }

    #[test]
    fn a_request_of_a_short_key_is_signed_as_it_was_admitted() {
        let authority = Authority::generate().expect("a CA is made");
        let request = include_bytes!("../../tests/data/rsa-1024.csr");
        let request = crate::kinds::certificates::blocks(request);
        let chain = signed(&authority, &request[0].bytes);
        let (_, certificate) = X509Certificate::from_der(&chain).expect("it is a certificate");
        assert_eq!(certificate.subject().to_string(), "CN=jane");
    }

    #[test]
    fn only_what_was_looked_at_is_signed() {
        let authority = Authority::generate().expect("a CA is made");
        let key = KeyPair::generate().expect("ring makes P-256 keys");
        let request = |identifier: &[u64], value: DnValue| {
            let mut asked = params("jane", &[], 1);
            asked.distinguished_name.push(DnType::CustomDnType(identifier.to_vec()), value);
            asked.serialize_request(&key).expect("it is a request")
        };
        let uid = request(&[1, 3, 6, 1, 4, 1, 57_683, 2], DnValue::from("1"));
        let chain = signed(&authority, uid.der());
        let (_, certificate) = X509Certificate::from_der(&chain).expect("it is a certificate");
        assert_eq!(certificate.subject().to_string(), "CN=jane");
        let masters = DnValue::BmpString("system:masters".try_into().expect("it has such letters"));
        let masters = request(&[2, 5, 4, 10], masters);
        assert!(authority.sign(masters.der(), &["client auth"], Duration::from_secs(600)).is_err());
    }

    #[test]
    fn a_client_certificate_names_its_user_and_groups() {
        let authority = Authority::generate().expect("a CA is made");
        let identity = authority.issue_client("jane", &["dev"]).expect("a certificate is issued");
        let (chain, _) = identity.to_der().expect("it is well-formed");
        let user = crate::auth::user_of_certificate(&chain[0]).expect("it names a user");
        assert_eq!((user.name.as_str(), user.groups[0].as_str()), ("jane", "dev"));
    }
}
