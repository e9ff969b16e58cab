//! Client certificates of X.509 version 1: `openssl x509 -req` makes them where it is given no extensions. Go takes them, `webpki`
//! does not.
//!
//! Input: such a certificate, and those that are believed. Output: whether one of these signed it, and whether a message is signed
//! with its key. It can't say what it is for, so it is good for clients. The certificates that a client sends beside it are never
//! looked at: one of those that are believed must have signed it itself.

use rustls::crypto::{WebPkiSupportedAlgorithms, verify_tls13_signature_with_raw_key};
use rustls::{CertificateError, DigitallySignedStruct, Error, PeerMisbehaved};
use rustls_pki_types::{CertificateDer, SubjectPublicKeyInfoDer, UnixTime};
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::{OID_PKCS1_SHA1WITHRSA, OID_SHA1_WITH_RSA};
use x509_parser::prelude::FromDer as _;
use x509_parser::time::ASN1Time;
use x509_parser::x509::X509Version;

/// A certificate of version 1.
pub(super) struct Version1<'a>(X509Certificate<'a>);

impl<'a> Version1<'a> {
    /// `None` for certificates of other versions, and for what is not a certificate.
    pub(super) fn of(certificate: &'a CertificateDer<'_>) -> Option<Self> {
        let (rest, certificate) = X509Certificate::from_der(certificate).ok()?;
        (rest.is_empty() && certificate.version() == X509Version::V1).then_some(Version1(certificate))
    }

    /// Believes it if one of `roots` signed it, and it is valid now.
    ///
    /// # Errors
    ///
    /// As `webpki` says of certificates of version 3.
    pub(super) fn believe(&self, roots: &[CertificateDer<'_>], now: UnixTime) -> Result<(), Error> {
        if !is_valid(&self.0, now) {
            return Err(CertificateError::Expired.into());
        }
        let signed_it =
            |root: &CertificateDer<'_>| X509Certificate::from_der(root).is_ok_and(|(_, root)| self.is_signed_by(&root));
        if roots.iter().any(signed_it) { Ok(()) } else { Err(CertificateError::UnknownIssuer.into()) }
    }

    fn is_signed_by(&self, root: &X509Certificate<'_>) -> bool {
        let algorithm = &self.0.signature_algorithm.algorithm;
        let is_broken = [OID_SHA1_WITH_RSA, OID_PKCS1_SHA1WITHRSA].contains(algorithm);
        root.subject().as_raw() == self.0.issuer().as_raw()
            && may_sign(root)
            && !is_broken
            && self.0.verify_signature(Some(root.public_key())).is_ok()
    }

    /// Whether a message of TLS 1.2 is signed with its key.
    ///
    /// # Errors
    ///
    /// It is not, or in a way that nobody offered.
    pub(super) fn verify_tls12(
        &self,
        message: &[u8],
        signed: &DigitallySignedStruct,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<(), Error> {
        let offered = algorithms.mapping.iter().find(|(scheme, _)| *scheme == signed.scheme);
        let (_, offered) = offered.ok_or(PeerMisbehaved::SignedHandshakeWithUnadvertisedSigScheme)?;
        // An algorithm for other keys finds none in these bits.
        let key = &self.0.public_key().subject_public_key.data;
        if offered.iter().any(|algorithm| algorithm.verify_signature(key, message, signed.signature()).is_ok()) {
            Ok(())
        } else {
            Err(CertificateError::BadSignature.into())
        }
    }

    /// Whether a message of TLS 1.3 is signed with its key.
    ///
    /// # Errors
    ///
    /// It is not, or in a way that nobody offered.
    pub(super) fn verify_tls13(
        &self,
        message: &[u8],
        signed: &DigitallySignedStruct,
        algorithms: &WebPkiSupportedAlgorithms,
    ) -> Result<(), Error> {
        let key = SubjectPublicKeyInfoDer::from(self.0.public_key().raw);
        verify_tls13_signature_with_raw_key(message, &key, signed, algorithms).map(drop)
    }
}

/// Whether a certificate may be used at this time.
pub(super) fn is_valid(certificate: &X509Certificate<'_>, now: UnixTime) -> bool {
    let now = i64::try_from(now.as_secs()).ok().and_then(|now| ASN1Time::from_timestamp(now).ok());
    now.is_some_and(|now| certificate.validity().is_valid_at(now))
}

/// Whether others believe what it signs. Source: Go's `x509.Certificate.CheckSignatureFrom`.
fn may_sign(root: &X509Certificate<'_>) -> bool {
    let usage = root.key_usage().ok().flatten();
    (root.version() != X509Version::V3 || root.is_ca()) && usage.is_none_or(|usage| usage.value.key_cert_sign())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::{Duration, SystemTime};

    use rustls::client::ResolvesClientCert;
    use rustls::crypto::ring;
    use rustls::sign::CertifiedKey;
    use rustls::version::{TLS12, TLS13};
    use rustls::{
        ClientConfig, ClientConnection, RootCertStore, ServerConnection, SignatureScheme, SupportedProtocolVersion,
    };
    use rustls_pki_types::ServerName;
    use rustls_pki_types::pem::PemObject as _;

    use super::super::certificates::tests::{in_version_1, posing_as};
    use super::super::tls::Peer;
    use super::super::{Authority, Identity, Tls, Trust};
    use super::*;

    /// Shows a certificate that rustls itself would not show.
    #[derive(Debug)]
    struct Shows(Arc<CertifiedKey>);

    impl ResolvesClientCert for Shows {
        fn resolve(&self, _: &[&[u8]], _: &[SignatureScheme]) -> Option<Arc<CertifiedKey>> {
            Some(Arc::clone(&self.0))
        }

        fn has_certs(&self) -> bool {
            true
        }
    }

    fn authority() -> Authority {
        Authority::generate().expect("a key is made")
    }

    /// The identity that a server which trusts `trusted` gives a client with this certificate.
    fn peer(trusted: &Authority, client: &Identity, version: &'static SupportedProtocolVersion) -> Peer {
        shaken(trusted, client, version).expect("the handshake goes on")
    }

    /// [`peer`], or why the server ends the handshake.
    fn shaken(
        trusted: &Authority,
        client: &Identity,
        version: &'static SupportedProtocolVersion,
    ) -> Result<Peer, Error> {
        let served = trusted.issue_server(&["localhost".to_owned()]).expect("a certificate is made");
        let tls = Tls::new(Trust::of(trusted).expect("it has a certificate"), &served).expect("they fit");
        let mut roots = RootCertStore::empty();
        roots.add(trusted.certificate_der().expect("it is one")).expect("it is an authority");
        let (chain, key) = client.to_der().expect("it is well-formed");
        let key = ring::sign::any_supported_type(&key).expect("ring knows P-256");
        let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_protocol_versions(&[version])
            .expect("ring knows it")
            .with_root_certificates(roots)
            .with_client_cert_resolver(Arc::new(Shows(Arc::new(CertifiedKey::new(chain, key)))));
        let name = ServerName::try_from("localhost").expect("it is a name");
        let mut client = ClientConnection::new(Arc::new(config), name).expect("it is complete");
        let mut server = ServerConnection::new(tls.config(None)).expect("it is complete");
        while client.is_handshaking() || server.is_handshaking() {
            let (mut sent, mut answered) = (Vec::new(), Vec::new());
            while client.wants_write() {
                client.write_tls(&mut sent).expect("memory takes it");
            }
            server.read_tls(&mut &sent[..]).expect("memory gives it");
            server.process_new_packets()?;
            while server.wants_write() {
                server.write_tls(&mut answered).expect("memory takes it");
            }
            client.read_tls(&mut &answered[..]).expect("memory gives it");
            client.process_new_packets().expect("the handshake goes on");
        }
        Ok(tls.peer(&server))
    }

    #[test]
    fn a_certificate_of_version_1_names_a_user() {
        let trusted = authority();
        let jane = in_version_1(&trusted, "jane");
        for version in [&TLS12, &TLS13] {
            let Peer::User(user) = peer(&trusted, &jane, version) else { panic!("{version:?}") };
            assert_eq!((user.name.as_str(), user.groups[0].as_str()), ("jane", "dev"));
        }
    }

    #[test]
    fn one_of_another_authority_names_nobody() {
        let (trusted, other) = (authority(), authority());
        assert_eq!(peer(&trusted, &in_version_1(&other, "jane"), &TLS13), Peer::Refused);
    }

    #[test]
    fn a_client_that_shows_one_has_its_key() {
        let trusted = authority();
        let certificate_pem = in_version_1(&trusted, "jane").certificate_pem;
        let key_pem = in_version_1(&trusted, "eve").key_pem;
        let eve = Identity { certificate_pem, key_pem };
        for version in [&TLS12, &TLS13] {
            let ended = shaken(&trusted, &eve, version);
            assert_eq!(ended, Err(CertificateError::BadSignature.into()), "{version:?}");
        }
    }

    #[test]
    fn one_that_is_signed_by_way_of_sha_1_is_not_believed() {
        let bytes = include_bytes!("../../tests/data/version-1-by-rsa.pem");
        let all = CertificateDer::pem_slice_iter(bytes).collect::<Result<Vec<_>, _>>().expect("it is PEM");
        let [root, sha256, sha1] = all.as_slice() else { panic!("{}", all.len()) };
        let in_2027 = UnixTime::since_unix_epoch(Duration::from_secs(1_800_000_000));
        let believed = |certificate| {
            let version_1 = Version1::of(certificate).expect("it is of version 1");
            version_1.believe(std::slice::from_ref(root), in_2027)
        };
        assert_eq!(believed(sha256), Ok(()));
        assert_eq!(believed(sha1), Err(CertificateError::UnknownIssuer.into()));
    }

    #[test]
    fn one_that_a_leaf_signed_is_not_believed() {
        let trusted = authority();
        let leaf = posing_as(&trusted);
        let (chain, _) = in_version_1(&leaf, "jane").to_der().expect("it is well-formed");
        let jane = Version1::of(&chain[0]).expect("it is of version 1");
        let roots = [&trusted, &leaf].map(|root| root.certificate_der().expect("it is one"));
        let (_, named) = X509Certificate::from_der(&roots[0]).expect("it is well-formed");
        assert_eq!(named.subject().as_raw(), jane.0.issuer().as_raw());
        // Not even where the leaf is among those that are believed.
        for roots in [&roots[..1], &roots[1..]] {
            assert_eq!(jane.believe(roots, UnixTime::now()), Err(CertificateError::UnknownIssuer.into()));
        }
    }

    #[test]
    fn one_is_believed_in_its_time_only() {
        let trusted = authority();
        let (chain, _) = in_version_1(&trusted, "jane").to_der().expect("it is well-formed");
        let roots = [trusted.certificate_der().expect("it is one")];
        let jane = Version1::of(&chain[0]).expect("it is of version 1");
        let believed = |now| jane.believe(&roots, now).is_ok();
        let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).expect("it is after 1970");
        let decade = Duration::from_secs(10 * 365 * 24 * 3600);
        let times = [now, now + decade, now.saturating_sub(decade)].map(UnixTime::since_unix_epoch);
        assert_eq!(times.map(believed), [true, false, false]);
    }

    #[test]
    fn what_may_not_sign_others_is_not_believed_about_them() {
        let trusted = authority();
        let (leaf, _) = trusted.issue_client("skiff-ca", &[]).and_then(|leaf| leaf.to_der()).expect("it is made");
        let (_, leaf) = X509Certificate::from_der(&leaf[0]).expect("it is well-formed");
        assert!(!may_sign(&leaf));
        assert!(Version1::of(&trusted.certificate_der().expect("it is one")).is_none());
    }
}
