//! The authorities that are trusted to sign a webhook's certificate.

use std::sync::{Arc, OnceLock};

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::client::{VerifierBuilderError, WebPkiServerVerifier};
use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::{self, PemObject};
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::server::ParsedCertificate;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, Error, RootCertStore, SignatureScheme};

use super::certificates::{self, Flaws, RELIES_ON_COMMON_NAME};

/// The authorities that the system trusts, once some were found.
static SYSTEM_ROOTS: OnceLock<Arc<RootCertStore>> = OnceLock::new();

/// Why the TLS client can't be configured.
#[derive(Debug, thiserror::Error)]
pub enum TrustError {
    #[error(transparent)]
    Tls(#[from] Error),
    #[error(transparent)]
    Verifier(#[from] VerifierBuilderError),
    #[error("the client certificate of the kubeconfig: {0}")]
    Pem(#[from] pem::Error),
    #[error("the client certificate of the kubeconfig: {0}")]
    Identity(#[source] Error),
}

/// The TLS client configuration for a webhook with these CA certificates, in PEM.
pub fn config(ca_bundle: &[u8]) -> Result<ClientConfig, TrustError> {
    identified(verifier(ca_bundle)?, None)
}

/// The TLS client configuration with a client certificate and its key, if given; both are PEM.
pub(crate) fn identified(
    verifier: Arc<dyn ServerCertVerifier>,
    identity: Option<&(Vec<u8>, Vec<u8>)>,
) -> Result<ClientConfig, TrustError> {
    let config = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions();
    let config = config?.dangerous().with_custom_certificate_verifier(verifier);
    let Some((certificate, key)) = identity else { return Ok(config.with_no_client_auth()) };
    let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(certificate).collect();
    let key = PrivateKeyDer::from_pem_slice(key)?;
    config.with_client_auth_cert(chain?, key).map_err(TrustError::Identity)
}

/// A verifier that trusts certificates signed by these authorities, in PEM, or by the system's if
/// there are none.
pub(crate) fn verifier(ca_bundle: &[u8]) -> Result<Arc<dyn ServerCertVerifier>, TrustError> {
    let mut trusted = Vec::new();
    let roots = if ca_bundle.trim_ascii().is_empty() {
        system_roots()
    } else {
        trusted = CertificateDer::pem_slice_iter(ca_bundle).filter_map(Result::ok).collect();
        let mut own = RootCertStore::empty();
        own.add_parsable_certificates(trusted.iter().cloned());
        Arc::new(own)
    };
    if roots.is_empty() {
        return Ok(Arc::new(Trust { provider: provider(), trusted_servers: TrustedServers::Nobody }));
    }
    let chain = WebPkiServerVerifier::builder_with_provider(roots, provider()).build()?;
    Ok(Arc::new(Trust { provider: provider(), trusted_servers: TrustedServers::Chains { chain, trusted } }))
}

/// The authorities that the system trusts. As in Go, they are read once; but again if none could be read.
fn system_roots() -> Arc<RootCertStore> {
    if let Some(roots) = SYSTEM_ROOTS.get() {
        return Arc::clone(roots);
    }
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
    let roots = Arc::new(roots);
    if !roots.is_empty() {
        _ = SYSTEM_ROOTS.set(Arc::clone(&roots));
    }
    roots
}

/// A verifier that trusts any certificate.
pub(crate) fn anybody() -> Arc<dyn ServerCertVerifier> {
    Arc::new(Trust { provider: provider(), trusted_servers: TrustedServers::Anybody })
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

/// The flaws for which a certificate was rejected, as far as they are counted.
pub(super) fn flaws(error: &Error) -> Flaws {
    let is = |why: &str| matches!(error, Error::General(what) if what.starts_with(why));
    Flaws { missing_san: is(RELIES_ON_COMMON_NAME), insecure_sha1: is(SIGNED_OVER_SHA1) }
}

/// Whether the text is one of the errors of this module.
fn is_explained(what: &str) -> bool {
    what == RELIES_ON_COMMON_NAME || what.starts_with(SIGNED_OVER_SHA1)
}

/// The error of a failed handshake in Go's words.
pub(super) fn describe(error: &Error, server_name: &str) -> String {
    let failed = |what: String| format!("tls: failed to verify certificate: x509: {what}");
    match error {
        Error::General(what) if is_explained(what) => failed(what.clone()),
        Error::InvalidCertificate(CertificateError::UnknownIssuer | CertificateError::BadSignature) => {
            failed("certificate signed by unknown authority".to_owned())
        }
        Error::InvalidCertificate(CertificateError::NotValidForNameContext { presented, .. }) => {
            let is_address = server_name.parse::<std::net::IpAddr>().is_ok();
            let of = |prefix: &str, suffix: &str| -> Vec<String> {
                let found = presented.iter().filter_map(|name| name.strip_prefix(prefix)?.strip_suffix(suffix));
                found.map(|name| name.trim_matches('"').to_owned()).collect()
            };
            let names = if is_address { of("IpAddress(", ")") } else { of("DnsName(", ")") };
            failed(match (is_address, names.is_empty()) {
                (true, true) => {
                    format!("cannot validate certificate for {server_name} because it doesn't contain any IP SANs")
                }
                (false, true) => format!("certificate is not valid for any names, but wanted to match {server_name}"),
                (_, false) => format!("certificate is valid for {}, not {server_name}", names.join(", ")),
            })
        }
        Error::InvalidCertificate(
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. },
        ) => failed("certificate has expired or is not yet valid".to_owned()),
        other => format!("tls: {other}"),
    }
}

/// The beginning of the error for a certificate with a SHA-1 signature.
const SIGNED_OVER_SHA1: &str =
    "certificate signed by unknown authority (possibly because of \"x509: cannot verify signature: insecure algorithm ";

/// Replaces the error of a certificate that a known authority signed with SHA-1 by Go's error for
/// it.
fn explained(error: Error, end_entity: &CertificateDer<'_>, trusted: &[CertificateDer<'_>]) -> Error {
    let is_about_name = matches!(error, Error::InvalidCertificate(CertificateError::NotValidForNameContext { .. }));
    let signed = (!is_about_name).then(|| certificates::signed_over_sha1(end_entity, trusted)).flatten();
    let Some((algorithm, authority)) = signed else { return error };
    let candidate = format!("while trying to verify candidate authority certificate \"{authority}\")");
    Error::General(format!("{SIGNED_OVER_SHA1}{algorithm}\" {candidate}"))
}

#[derive(Debug)]
struct Trust {
    provider: Arc<CryptoProvider>,
    trusted_servers: TrustedServers,
}

#[derive(Debug)]
enum TrustedServers {
    Anybody,
    /// No authority is trusted.
    Nobody,
    /// Trusts a chain up to a trusted certificate, and a trusted certificate itself: Go accepts
    /// both, webpki only the former.
    Chains {
        chain: Arc<WebPkiServerVerifier>,
        trusted: Vec<CertificateDer<'static>>,
    },
}

impl ServerCertVerifier for Trust {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        server_name: &ServerName<'_>,
        ocsp_response: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, Error> {
        let (chain, trusted) = match &self.trusted_servers {
            TrustedServers::Anybody => return Ok(ServerCertVerified::assertion()),
            TrustedServers::Nobody => return Err(Error::InvalidCertificate(CertificateError::UnknownIssuer)),
            TrustedServers::Chains { chain, trusted } => (chain, trusted),
        };
        let outcome = chain.verify_server_cert(end_entity, intermediates, server_name, ocsp_response, now);
        if outcome.is_err() && certificates::relies_on_common_name(end_entity, &server_name.to_str()) {
            return Err(Error::General(RELIES_ON_COMMON_NAME.to_owned()));
        }
        if outcome.is_ok() || !trusted.contains(end_entity) {
            return outcome.map_err(|error| explained(error, end_entity, trusted));
        }
        rustls::client::verify_server_name(&ParsedCertificate::try_from(end_entity)?, server_name)?;
        let parsed = x509_parser::parse_x509_certificate(end_entity);
        let (_, parsed) = parsed.map_err(|_| Error::InvalidCertificate(CertificateError::BadEncoding))?;
        let now = i64::try_from(now.as_secs()).unwrap_or(i64::MAX);
        let validity = parsed.validity();
        if (validity.not_before.timestamp()..=validity.not_after.timestamp()).contains(&now) {
            Ok(ServerCertVerified::assertion())
        } else {
            Err(Error::InvalidCertificate(CertificateError::Expired))
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
