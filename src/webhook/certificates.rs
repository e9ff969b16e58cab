//! Metrics of webhook certificates in obsolete forms.
//!
//! A certificate without subject alternative names has its host only as the common name; one with a
//! SHA-1 signature may be forged. Neither is trusted, unless a kubeconfig disables the
//! verification.
//!
//! Source: `k8s.io/apiserver/pkg/util/{webhook,x509metrics}`, release 1.37.

use prometheus_client::metrics::counter::Counter;
use prometheus_client::registry::Registry;
use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::oid_registry::{OID_PKCS1_SHA1WITHRSA, OID_X509_EXT_SUBJECT_ALT_NAME, Oid};

/// The signature algorithm `ecdsa-with-SHA1`.
const ECDSA_WITH_SHA1: &str = "1.2.840.10045.4.1";

/// The error for a certificate that has the host only as its common name.
pub(super) const RELIES_ON_COMMON_NAME: &str = "certificate relies on legacy Common Name field, use SANs instead";

/// Counts the calls and failed connections to webhooks that have such certificates.
#[derive(Clone, Debug, Default)]
pub struct OldCertificates {
    missing_san: Counter,
    insecure_sha1: Counter,
}

impl OldCertificates {
    /// Registers the counters in `registry`.
    pub fn register(&self, registry: &mut Registry) {
        let told = "[BETA] Counts the number of requests to servers missing SAN extension in their serving certificate OR \
                    the number of connection failures due to the lack of x509 certificate SAN extension missing \
                    (either/or, based on the runtime environment)";
        registry.register("apiserver_webhooks_x509_missing_san", told, self.missing_san.clone());
        let told = "[BETA] Counts the number of requests to servers with insecure SHA1 signatures in their serving \
                    certificate OR the number of connection failures due to the insecure SHA1 signatures (either/or, \
                    based on the runtime environment)";
        registry.register("apiserver_webhooks_x509_insecure_sha1", told, self.insecure_sha1.clone());
    }

    /// Counts a call that was answered, or a failed handshake.
    pub(super) fn count(&self, flaws: Flaws) {
        if flaws.missing_san {
            self.missing_san.inc();
        }
        if flaws.insecure_sha1 {
            self.insecure_sha1.inc();
        }
    }
}

/// The obsolete properties of a webhook's certificates.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Flaws {
    pub missing_san: bool,
    pub insecure_sha1: bool,
}

impl Flaws {
    /// The flaws of a chain that begins with the webhook's own certificate.
    pub fn of(chain: &[CertificateDer<'_>]) -> Self {
        let parsed = |der| x509_parser::parse_x509_certificate(der).ok().map(|(_, certificate)| certificate);
        let missing_san = chain.first().and_then(|own| parsed(own)).is_some_and(|own| !has_san(&own));
        let insecure_sha1 = chain.iter().filter_map(|der| parsed(der)).any(|certificate| {
            is_sha1(&certificate.signature_algorithm.algorithm) && certificate.issuer() != certificate.subject()
        });
        Flaws { missing_san, insecure_sha1 }
    }
}

fn has_san(certificate: &X509Certificate<'_>) -> bool {
    certificate.extensions().iter().any(|extension| extension.oid == OID_X509_EXT_SUBJECT_ALT_NAME)
}

fn is_sha1(algorithm: &Oid<'_>) -> bool {
    *algorithm == OID_PKCS1_SHA1WITHRSA || algorithm.to_id_string() == ECDSA_WITH_SHA1
}

/// Whether a certificate has `host` as its common name and has no subject alternative names.
pub(super) fn relies_on_common_name(certificate: &CertificateDer<'_>, host: &str) -> bool {
    let Ok((_, parsed)) = x509_parser::parse_x509_certificate(certificate) else { return false };
    let mut names = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    !has_san(&parsed) && names.any(|name| matches_host(name, host))
}

/// The SHA-1 algorithm of a certificate's signature, and the common name of the issuer; `None` if
/// the signature uses another algorithm, or the issuer is not among `authorities`.
pub(super) fn signed_over_sha1(
    certificate: &CertificateDer<'_>,
    authorities: &[CertificateDer<'_>],
) -> Option<(&'static str, String)> {
    let (_, parsed) = x509_parser::parse_x509_certificate(certificate).ok()?;
    let algorithm = &parsed.signature_algorithm.algorithm;
    if !is_sha1(algorithm) {
        return None;
    }
    let name = if *algorithm == OID_PKCS1_SHA1WITHRSA { "SHA1-RSA" } else { "ECDSA-SHA1" };
    let known = authorities.iter().filter_map(|der| x509_parser::parse_x509_certificate(der).ok());
    let authority = known.map(|(_, known)| known).find(|known| known.subject() == parsed.issuer())?;
    let common_name = authority.subject().iter_common_name().next().and_then(|name| name.as_str().ok());
    Some((name, common_name.unwrap_or_default().to_owned()))
}

/// Whether a name matches a host; the first label of the name may be `*`.
fn matches_host(name: &str, host: &str) -> bool {
    let (name, host) = (name.strip_suffix('.').unwrap_or(name), host.strip_suffix('.').unwrap_or(host));
    let is_same = |name: &str, host: &str| !name.is_empty() && name.eq_ignore_ascii_case(host);
    match (name.strip_prefix("*."), host.split_once('.')) {
        (Some(domain), Some((_, of_host))) => is_same(domain, of_host),
        _ => is_same(name, host),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use bytes::Bytes;
    use rustls::pki_types::pem::PemObject;

    use super::super::{Address, Endpoint, EndpointAccess, Manner, WebhookClient, fixture};
    use super::*;
    use crate::memory::Memory;

    /// A certificate without extensions, signed with SHA-1 by an authority of another name.
    const OLD: &[u8] = include_bytes!("../../tests/data/sha1-without-san.pem");

    fn of_common_name(alternative: &[&str]) -> CertificateDer<'static> {
        let names: Vec<String> = alternative.iter().map(|name| (*name).to_owned()).collect();
        let mut params = rcgen::CertificateParams::new(names).expect("the names are well formed");
        params.distinguished_name.push(rcgen::DnType::CommonName, "hook.example.com");
        let key = rcgen::KeyPair::generate().expect("a key can be made");
        params.self_signed(&key).expect("it can be signed").der().clone()
    }

    #[test]
    fn a_certificate_without_alternative_names_is_told_apart() {
        let (old, new) = (of_common_name(&[]), of_common_name(&["hook.example.com"]));
        assert!(relies_on_common_name(&old, "Hook.example.com"));
        assert!(!relies_on_common_name(&old, "other.example.com") && !relies_on_common_name(&new, "hook.example.com"));
        let flaws = |missing_san| Flaws { missing_san, insecure_sha1: false };
        assert_eq!([Flaws::of(&[old]), Flaws::of(&[new]), Flaws::of(&[])], [true, false, false].map(flaws));
    }

    #[test]
    fn a_signature_over_sha_1_counts_anywhere_in_the_chain() {
        let old = CertificateDer::from_pem_slice(OLD).expect("it is PEM");
        assert_eq!(Flaws::of(std::slice::from_ref(&old)), Flaws { missing_san: true, insecure_sha1: true });
        let new = of_common_name(&["a"]);
        assert_eq!(Flaws::of(&[new, old]), Flaws { missing_san: false, insecure_sha1: true });
    }

    #[tokio::test]
    async fn calls_of_a_webhook_with_an_old_certificate_are_counted_whether_it_is_believed_or_not() {
        let (url, ca_bundle) = fixture::webhook(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}".to_vec()).await;
        let client = WebhookClient::new(Vec::new(), Vec::new(), Arc::new(Memory::of_system()));
        let mut endpoint = Endpoint { address: Address::Url(url), ca_bundle, access: None };
        let manner = Manner::of_admission(Duration::from_secs(30));
        let refused = client.call(&endpoint, Bytes::from_static(b"{}"), manner).await.expect_err("it is not believed");
        assert!(
            refused.text.ends_with("x509: certificate relies on legacy Common Name field, use SANs instead"),
            "{refused}"
        );
        assert_eq!(client.old_certificates.missing_san.get(), 1);
        endpoint.access = Some(Arc::new(EndpointAccess { is_insecure: true, ..EndpointAccess::default() }));
        for expected in [2, 3] {
            let answer =
                client.call(&endpoint, Bytes::from_static(b"{}"), manner).await.map_err(|failure| failure.text);
            assert_eq!((answer.as_deref(), client.old_certificates.missing_san.get()), (Ok(&b"{}"[..]), expected));
        }
        assert_eq!(client.old_certificates.insecure_sha1.get(), 0);
    }

    #[test]
    fn what_go_says_of_a_signature_over_sha_1_names_the_authority() {
        let old = CertificateDer::from_pem_slice(OLD).expect("it is PEM");
        let authority = |name: &str| {
            let mut params = rcgen::CertificateParams::default();
            params.distinguished_name = rcgen::DistinguishedName::new();
            params.distinguished_name.push(rcgen::DnType::CommonName, rcgen::DnValue::Utf8String(name.to_owned()));
            let key = rcgen::KeyPair::generate().expect("a key can be made");
            params.self_signed(&key).expect("it can be signed").der().clone()
        };
        let told = signed_over_sha1(&old, &[authority("another"), authority("an authority")]);
        assert_eq!(told, Some(("SHA1-RSA", "an authority".to_owned())));
        assert_eq!(signed_over_sha1(&old, &[authority("another")]), None);
        assert_eq!(signed_over_sha1(&authority("new"), &[authority("new")]), None);
    }

    #[test]
    fn the_first_part_of_a_name_may_stand_for_any() {
        assert!(matches_host("*.example.com", "a.example.com") && matches_host("a.", "A"));
        assert!(!matches_host("*.example.com", "a.b.example.com") && !matches_host("", "") && !matches_host("*", "a"));
    }
}
