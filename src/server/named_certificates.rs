//! Certificates by the names that clients ask for (SNI), beside the one for all others.
//!
//! Clients that connect to an IP address send no name: they get the certificate for the address that they have
//! connected to.
//!
//! Source: `named_certificates.go` and `tlsconfig.go` of `k8s.io/apiserver/pkg/server/dynamiccertificates`, release 1.36, and
//! `getCertificate` of Go's `crypto/tls`.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

use super::certificates::{CertificateError, Identity};
use crate::meta::names::is_dns1123_subdomain;

/// A certificate, and the names for which it is used; if there are none, its own names.
pub struct NamedIdentity {
    pub identity: Identity,
    pub names: Vec<String>,
}

/// The certificates, by names in lower case.
#[derive(Clone, Debug)]
pub(super) struct ByName {
    others: Arc<CertifiedKey>,
    /// For clients that send no name.
    nameless: Arc<CertifiedKey>,
    named: Arc<HashMap<String, Arc<CertifiedKey>>>,
}

impl ByName {
    /// Of several certificates for a name the first counts, and those whose names were said before the others.
    pub fn new(
        identity: &Identity,
        named: &[NamedIdentity],
        provider: &CryptoProvider,
    ) -> Result<Self, CertificateError> {
        let key = |identity: &Identity| -> Result<Arc<CertifiedKey>, CertificateError> {
            let (chain, key) = identity.to_der()?;
            Ok(Arc::new(CertifiedKey::from_der(chain, key, provider)?))
        };
        let mut all = HashMap::new();
        let said = named.iter().filter(|one| !one.names.is_empty());
        for one in said.chain(named.iter().filter(|one| one.names.is_empty())) {
            let certified = key(&one.identity)?;
            let names = if one.names.is_empty() { own_names(&certified) } else { one.names.clone() };
            for name in names {
                all.entry(name.to_lowercase()).or_insert_with(|| Arc::clone(&certified));
            }
        }
        let others = key(identity)?;
        Ok(ByName { nameless: Arc::clone(&others), others, named: Arc::new(all) })
    }

    /// The certificates for clients that connect to an address of this machine, if there is one for that address.
    pub fn by_address(&self) -> impl Iterator<Item = (IpAddr, Self)> {
        self.named.iter().filter_map(|(name, certified)| {
            let address = name.parse().ok()?;
            Some((address, ByName { nameless: Arc::clone(certified), ..self.clone() }))
        })
    }

    /// The certificate for a name, or for all names that differ in their first part.
    fn find(&self, name: &str) -> Option<&Arc<CertifiedKey>> {
        let name = name.to_lowercase();
        let wild = || name.split_once('.').map(|(_, rest)| format!("*.{rest}"));
        self.named.get(&name).or_else(|| self.named.get(&wild()?))
    }
}

impl ResolvesServerCert for ByName {
    fn resolve(&self, client: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        let shown = match client.server_name() {
            Some(name) => self.find(name).unwrap_or(&self.others),
            None => &self.nameless,
        };
        Some(Arc::clone(shown))
    }
}

/// The names in a certificate: that of its subject where it could be one of a host, and its DNS names.
fn own_names(certified: &CertifiedKey) -> Vec<String> {
    let Some((_, certificate)) = certified.cert.first().and_then(|der| X509Certificate::from_der(der).ok()) else {
        return Vec::new();
    };
    let subject = certificate.subject().iter_common_name().filter_map(|name| name.as_str().ok()).last();
    let is_host = |name: &&str| {
        let rest = name.strip_prefix("*.").unwrap_or(name);
        name.parse::<std::net::IpAddr>().is_err() && (*name == "*" || is_dns1123_subdomain(rest).is_empty())
    };
    let mut names: Vec<String> = subject.filter(is_host).map(str::to_owned).into_iter().collect();
    let alternatives = certificate.subject_alternative_name().ok().flatten();
    let alternatives = alternatives.iter().flat_map(|found| &found.value.general_names);
    names.extend(alternatives.filter_map(|name| match name {
        GeneralName::DNSName(name) => Some((*name).to_owned()),
        _ => None,
    }));
    names
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::Authority;

    #[test]
    fn a_name_leads_to_its_certificate() {
        let authority = Authority::generate().expect("a key is made");
        let issue = |names: &[&str]| {
            let names: Vec<String> = names.iter().map(ToString::to_string).collect();
            authority.issue_server(&names).expect("a certificate is made")
        };
        let named = |identity: Identity, names: &[&str]| NamedIdentity {
            identity,
            names: names.iter().map(ToString::to_string).collect(),
        };
        let (first, second) = (issue(&["a.example.com", "*.wild.example.com"]), issue(&["a.example.com"]));
        let said = issue(&["elsewhere"]);
        let all = [named(first, &[]), named(second, &[]), named(said, &["said.example.com", "*.n.example.com"])];
        let by_name = ByName::new(&issue(&["localhost"]), &all, &rustls::crypto::ring::default_provider());
        let by_name = by_name.expect("they are certificates");
        let found = |name: &str| {
            let found = by_name.find(name)?;
            all.iter().position(|one| one.identity.to_der().is_ok_and(|(chain, _)| chain == found.cert))
        };
        for (name, expected) in [
            ("a.example.com", Some(0)),
            ("A.Example.com", Some(0)),
            ("x.wild.example.com", Some(0)),
            ("x.y.wild.example.com", None),
            ("said.example.com", Some(2)),
            ("x.n.example.com", Some(2)),
            ("elsewhere", None),
            ("b.example.com", None),
        ] {
            assert_eq!(found(name), expected, "{name}");
        }
    }

    #[test]
    fn a_client_that_names_no_host_is_shown_the_certificate_of_the_address() {
        let authority = Authority::generate().expect("a key is made");
        let issue = |name: &str| authority.issue_server(&[name.to_owned()]).expect("a certificate is made");
        let chain = |identity: &Identity| identity.to_der().expect("it is a certificate").0;
        let others = issue("localhost");
        let named = ["127.0.0.2", "::1", "a.example.com"]
            .map(|name| NamedIdentity { identity: issue(name), names: vec![name.to_owned()] });
        let by_name = ByName::new(&others, &named, &rustls::crypto::ring::default_provider());
        let by_name = by_name.expect("they are certificates");
        assert_eq!(by_name.nameless.cert, chain(&others));
        let by_address: HashMap<_, _> = by_name.by_address().collect();
        assert_eq!(by_address.len(), 2);
        for one in &named[..2] {
            let at = &by_address[&one.names[0].parse().expect("it is an address")];
            assert_eq!((&at.nameless.cert, &at.others.cert), (&chain(&one.identity), &chain(&others)));
        }
    }
}
