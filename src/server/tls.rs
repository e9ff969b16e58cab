//! The server's side of TLS: who we are, and whose certificates we believe.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::SystemTime;

use rustls::client::danger::HandshakeSignatureValid;
use rustls::crypto::{CryptoProvider, WebPkiSupportedAlgorithms, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::server::danger::{ClientCertVerified, ClientCertVerifier};
use rustls::server::{ServerSessionMemoryCache, WebPkiClientVerifier};
use rustls::time_provider::TimeProvider;
use rustls::{
    DigitallySignedStruct, DistinguishedName, RootCertStore, ServerConfig, ServerConnection, SignatureScheme,
};
use rustls_pki_types::{CertificateDer, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::prelude::FromDer as _;

use super::certificates::{Authority, CertificateError, Identity};
use super::named_certificates::{ByName, NamedIdentity};
use super::version_1::{Version1, is_valid};
use crate::auth::{UserInfo, user_of_certificate};

/// The authorities whose certificates are trusted.
#[derive(Clone, Default)]
pub struct Trust {
    /// The authorities that sign clients' certificates; such a certificate itself is trusted from a client, too.
    pub clients: Vec<CertificateDer<'static>>,
    /// The authorities that sign those of proxies.
    pub proxies: Vec<CertificateDer<'static>>,
    /// The names that a proxy may have; empty for all.
    pub proxy_names: Vec<String>,
}

impl Trust {
    /// Believes what `authority` signs.
    pub fn of(authority: &Authority) -> Result<Self, CertificateError> {
        Ok(Trust { clients: vec![authority.certificate_der()?], ..Trust::default() })
    }
}

/// What a TLS listener needs.
#[derive(Clone)]
pub struct Tls {
    config: Arc<ServerConfig>,
    /// Of addresses that have a certificate of their own.
    by_address: Arc<HashMap<IpAddr, Arc<ServerConfig>>>,
    clients: Arc<TrustedCertificates>,
    proxies: Arc<TrustedCertificates>,
    proxy_names: Arc<[String]>,
}

/// The identity in a connection's client certificate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Peer {
    User(UserInfo),
    /// No certificate: a token may still tell who it is.
    Unnamed,
    /// A certificate that our CA did not sign, has expired or names nobody.
    Refused,
    /// A proxy that may name the user it asks for, with its own identity.
    Proxy(Box<Peer>),
}

impl Tls {
    /// Serves as `identity`; clients may show certificates that are believed.
    pub fn new(trust: Trust, identity: &Identity) -> Result<Self, CertificateError> {
        let provider = Arc::new(ring::default_provider());
        let clients = Arc::new(TrustedCertificates::new(trust.clients, &provider)?);
        let proxies = Arc::new(TrustedCertificates::new(trust.proxies, &provider)?);
        let hints = [&clients, &proxies].into_iter().flat_map(|believed| believed.subjects()).collect();
        let any = AnyClient { hints, algorithms: provider.signature_verification_algorithms };
        let (chain, key) = identity.to_der()?;
        let mut config = ServerConfig::builder_with_details(provider, Arc::new(TlsClock))
            .with_safe_default_protocol_versions()?
            .with_client_cert_verifier(Arc::new(any))
            .with_single_cert(chain, key)?;
        config.alpn_protocols = vec![b"h2".to_vec(), b"http/1.1".to_vec()];
        let proxy_names = trust.proxy_names.into();
        Ok(Tls { config: Arc::new(config), by_address: Arc::default(), clients, proxies, proxy_names })
    }

    /// The same, showing these certificates where their names are asked for, and that of `identity` elsewhere.
    pub fn with_named(self, identity: &Identity, named: &[NamedIdentity]) -> Result<Self, CertificateError> {
        if named.is_empty() {
            return Ok(self);
        }
        let showing = |certificates: ByName| {
            let mut config = ServerConfig::clone(&self.config);
            config.cert_resolver = Arc::new(certificates);
            Arc::new(config)
        };
        let certificates = ByName::new(identity, named, &ring::default_provider())?;
        let by_address = certificates.by_address().map(|(address, certificates)| (address, showing(certificates)));
        Ok(Tls { by_address: Arc::new(by_address.collect()), config: showing(certificates), ..self })
    }

    /// The same, with so many sessions remembered that clients may go on with. For a server that shows one certificate: those of
    /// addresses that have their own are as they were.
    pub fn remembering(self, sessions: usize) -> Self {
        let mut config = ServerConfig::clone(&self.config);
        config.session_storage = ServerSessionMemoryCache::new(sessions);
        Tls { config: Arc::new(config), ..self }
    }

    /// For a connection to this address of the machine.
    pub(super) fn config(&self, reached: Option<IpAddr>) -> Arc<ServerConfig> {
        let own = reached.and_then(|address| self.by_address.get(&address.to_canonical()));
        Arc::clone(own.unwrap_or(&self.config))
    }

    /// The identity in the client's certificate, once the handshake is done.
    pub(super) fn peer(&self, connection: &ServerConnection) -> Peer {
        let Some([certificate, intermediates @ ..]) = connection.peer_certificates() else {
            return Peer::Unnamed;
        };
        // Before 1970 no certificate is valid.
        let Some(now) = TlsClock.current_time() else { return Peer::Refused };
        let itself = match self.clients.believes(certificate, intermediates, now) {
            Ok(()) => user_of_certificate(certificate).map_or(Peer::Refused, Peer::User),
            Err(_) if self.clients.roots.is_empty() => Peer::Unnamed,
            Err(error) => {
                tracing::debug!(%error, "client certificate refused");
                Peer::Refused
            }
        };
        if self.proxies.believes(certificate, intermediates, now).is_ok() && self.is_proxy_name(certificate) {
            return Peer::Proxy(Box::new(itself));
        }
        itself
    }

    fn is_proxy_name(&self, certificate: &[u8]) -> bool {
        let name = user_of_certificate(certificate).map(|user| user.name).unwrap_or_default();
        self.proxy_names.is_empty() || self.proxy_names.contains(&name)
    }
}

/// Certificates that are believed, and those that they sign.
struct TrustedCertificates {
    roots: Vec<CertificateDer<'static>>,
    /// `None` where there are none.
    signed: Option<Arc<dyn ClientCertVerifier>>,
}

impl TrustedCertificates {
    fn new(roots: Vec<CertificateDer<'static>>, provider: &Arc<CryptoProvider>) -> Result<Self, CertificateError> {
        let mut store = RootCertStore::empty();
        for root in &roots {
            store.add(root.clone())?;
        }
        let signed = if roots.is_empty() {
            None
        } else {
            Some(
                WebPkiClientVerifier::builder_with_provider(Arc::new(store), Arc::clone(provider))
                    .allow_unauthenticated()
                    .build()
                    .map_err(CertificateError::Verifier)?,
            )
        };
        Ok(TrustedCertificates { roots, signed })
    }

    fn subjects(&self) -> Vec<DistinguishedName> {
        self.signed.as_ref().map(|signed| signed.root_hint_subjects().to_vec()).unwrap_or_default()
    }

    fn believes(
        &self,
        certificate: &CertificateDer<'_>,
        intermediates: &[CertificateDer<'_>],
        now: UnixTime,
    ) -> Result<(), rustls::Error> {
        const UNKNOWN: rustls::Error = rustls::Error::InvalidCertificate(rustls::CertificateError::UnknownIssuer);
        if self.roots.iter().any(|root| root == certificate) && is_good_for_clients(certificate, now) {
            return Ok(());
        }
        if let Some(certificate) = Version1::of(certificate) {
            return certificate.believe(&self.roots, now);
        }
        self.signed.as_ref().ok_or(UNKNOWN)?.verify_client_cert(certificate, intermediates, now).map(drop)
    }
}

/// Whether a certificate that is believed for its own sake may be a client's now.
fn is_good_for_clients(certificate: &CertificateDer<'_>, now: UnixTime) -> bool {
    let Ok((_, certificate)) = X509Certificate::from_der(certificate) else { return false };
    let usage = certificate.extended_key_usage().ok().flatten();
    is_valid(&certificate, now) && usage.is_none_or(|usage| usage.value.client_auth || usage.value.any)
}

/// The machine's clock, which may be set to before 1970: rustls' own panics then.
#[derive(Debug)]
struct TlsClock;

impl TimeProvider for TlsClock {
    fn current_time(&self) -> Option<UnixTime> {
        SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).ok().map(UnixTime::since_unix_epoch)
    }
}

/// Lets every client finish the handshake if it holds its certificate's key. Whether we trust the certificate is
/// asked afterwards: a stranger gets a 401 that says so, as from Kubernetes, and not a broken connection.
#[derive(Debug)]
struct AnyClient {
    /// The authorities whose certificates a client should choose from.
    hints: Vec<DistinguishedName>,
    algorithms: WebPkiSupportedAlgorithms,
}

impl ClientCertVerifier for AnyClient {
    fn client_auth_mandatory(&self) -> bool {
        false
    }

    fn root_hint_subjects(&self) -> &[DistinguishedName] {
        &self.hints
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
        if let Some(certificate) = Version1::of(certificate) {
            return certificate
                .verify_tls12(message, signature, &self.algorithms)
                .map(|()| HandshakeSignatureValid::assertion());
        }
        verify_tls12_signature(message, certificate, signature, &self.algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        if let Some(certificate) = Version1::of(certificate) {
            return certificate
                .verify_tls13(message, signature, &self.algorithms)
                .map(|()| HandshakeSignatureValid::assertion());
        }
        verify_tls13_signature(message, certificate, signature, &self.algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.algorithms.supported_schemes()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_of_its_own_has_a_certificate_of_its_own() {
        let authority = Authority::generate().expect("a key is made");
        let issue = |name: &str| authority.issue_server(&[name.to_owned()]).expect("a certificate is made");
        let identity = issue("localhost");
        let named = [NamedIdentity { identity: issue("127.0.0.2"), names: vec!["127.0.0.2".to_owned()] }];
        let trust = Trust::of(&authority).expect("it has a certificate");
        let tls = Tls::new(trust, &identity).and_then(|tls| tls.with_named(&identity, &named)).expect("they fit");
        let of = |address: &str| tls.config(Some(address.parse().expect("it is an address")));
        assert!(Arc::ptr_eq(&of("127.0.0.1"), &tls.config(None)));
        assert!(!Arc::ptr_eq(&of("127.0.0.2"), &tls.config(None)));
        assert!(Arc::ptr_eq(&of("127.0.0.2"), &of("::ffff:127.0.0.2")));
    }
}
