//! Certificates by the names that clients ask for (SNI), beside the one for all others.
//!
//! Source: `k8s.io/apiserver/pkg/server/dynamiccertificates/named_certificates.go`, release 1.36, and `getCertificate` of Go's
//! `crypto/tls`.

use std::collections::HashMap;
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer as _;

use super::certificates::{CertificateError, Identity};
use crate::meta::names::is_dns1123_subdomain;

/// A certificate, and for which names it is shown; where there are none, for those that it has itself.
pub struct NamedIdentity {
    pub identity: Identity,
    pub names: Vec<String>,
}

/// The certificates, by names in lower case.
#[derive(Debug)]
pub(super) struct ByName {
    others: Arc<CertifiedKey>,
    named: HashMap<String, Arc<CertifiedKey>>,
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
        Ok(ByName { others: key(identity)?, named: all })
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
        let found = client.server_name().and_then(|name| self.find(name));
        Some(Arc::clone(found.unwrap_or(&self.others)))
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
}
