//! The server's side of TLS: who we are, and whose certificates we believe.

use std::sync::Arc;
use std::time::SystemTime;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::ring;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, ServerConnection, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, UnixTime};

use super::certificates::{Authority, CertificateError, Identity};
use crate::auth::{UserInfo, user_of_certificate};

/// What a TLS listener needs.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    clients: Arc<dyn ClientCertVerifier>,
}

/// Whom a connection's client certificate stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    User(UserInfo),
    /// No certificate: a token may still tell who it is.
    Unnamed,
    /// A certificate that our CA did not sign, has expired or names nobody.
    Refused,
}

impl Tls {
    /// Serves as `identity`; clients may show a certificate of `authority`.
    pub fn new(authority: &Authority, identity: &Identity) -> Result<Self, CertificateError> {
        let provider = Arc::new(ring::default_provider());
        let mut roots = RootCertStore::empty();
        roots.add(authority.certificate_der()?)?;
        let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider.clone())
            .allow_unauthenticated()
            .build()
            .map_err(CertificateError::Verifier)?;
        let (chain, key) = identity.to_der()?;
        let mut config = ServerConfig::builder_with_details(provider, Arc::new(Clock))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(AnyClient(clients.clone())))
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        Ok(Tls { config: Arc::new(config), clients })
    }

    pub(super) fn config(&self) -> Arc<ServerConfig> {
        self.config.clone()
    }

    /// Whom the client's certificate stands for, once the handshake is done.
    pub(super) fn peer(&self, connection: &ServerConnection) -> Peer {
        let Some([certificate, intermediates @ ..]) = connection.peer_certificates() else {
            return Peer::Unnamed;
        };
        // Before 1970 no certificate is valid.
        let Some(now) = Clock.current_time() else { return Peer::Refused };
        match self.clients.verify_client_cert(certificate, intermediates, now) {
            Ok(_) => user_of_certificate(certificate).map_or(Peer::Refused, Peer::User),
            Err(error) => {
                tracing::debug!(%error, "client certificate refused");
                Peer::Refused
            }
        }
    }
}

/// The machine's clock, which may be set to before 1970: rustls' own panics then.
#[derive(Debug)]
struct Clock;

impl TimeProvider for Clock {
    fn current_time(&self) -> Option<UnixTime> {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok().map(UnixTime::since_unix_epoch)
    }
}

/// Lets every client finish the handshake if it holds its certificate's key. Whether we trust the certificate is
/// asked afterwards: a stranger gets a 401 that says so, as from Kubernetes, and not a broken connection.
#[derive(Debug)]
struct AnyClient(Arc<dyn ClientCertVerifier>);

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        self.0.root_hint_subjects()
    }

    fn verify_client_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: UnixTime,
    ) -> Result<ClientCertVerified, rustls::Error> {
        Ok(ClientCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls12_signature(message, certificate, signature)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.0.verify_tls13_signature(message, certificate, signature)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.supported_verify_schemes()
    }
}
