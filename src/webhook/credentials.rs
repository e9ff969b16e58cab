//! Credentials for calls to webhooks, by address: the users of a kubeconfig, each named after a
//! host.
//!
//! Input: the users of the file by name. Output: the user for an address. A name is that of a host with
//! its port, which may be omitted if it is 443, or `*` and the end of a host's name, or only `*`.
//!
//! Source: `k8s.io/apiserver/pkg/util/webhook/authentication.go`, release 1.36.

use std::collections::BTreeMap;
use std::sync::Arc;

use hyper::Uri;

use super::{Address, EndpointAccess, SERVICE_PORT};

/// The credentials by name.
#[derive(Clone, Debug, Default)]
pub struct Credentials {
    named: BTreeMap<String, Arc<EndpointAccess>>,
    /// For hosts that match no name.
    others: Option<Arc<EndpointAccess>>,
}

impl Credentials {
    /// Builds the credentials from users by name. The user called `*`, or else the `current` one,
    /// is for hosts that match no name.
    pub fn new(users: Vec<(String, EndpointAccess)>, current: Option<&str>) -> Self {
        let mut named = BTreeMap::new();
        for (name, access) in users {
            named.entry(name).or_insert_with(|| Arc::new(access));
        }
        let others = named.get("*").or_else(|| named.get(current?)).cloned();
        Credentials { named, others }
    }

    /// The credentials for calls to an address; `None` for anonymous calls.
    pub fn of(&self, address: &Address) -> Option<Arc<EndpointAccess>> {
        if self.named.is_empty() {
            return None;
        }
        let (host, port) = location(address)?;
        let found = self.find(&format!("{host}:{port}"));
        let found = found.or_else(|| self.find(&host).filter(|_| port == SERVICE_PORT));
        found.or(self.others.as_ref()).cloned()
    }

    /// The user who is named after a host, or else after the longest suffix of its name.
    fn find(&self, host: &str) -> Option<&Arc<EndpointAccess>> {
        let ends = host.match_indices('.').map(|(at, _)| &host[at..]);
        self.named.get(host).or_else(|| ends.map(|end| format!("*{end}")).find_map(|name| self.named.get(&name)))
    }
}

fn location(address: &Address) -> Option<(String, u16)> {
    match address {
        Address::Url(url) => {
            let uri: Uri = url.parse().ok()?;
            Some((uri.host()?.to_owned(), uri.port_u16().unwrap_or(SERVICE_PORT)))
        }
        Address::Service { namespace, name, port, .. } => Some((format!("{name}.{namespace}.svc"), *port)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn credentials(names: &[&str], current: Option<&str>) -> Credentials {
        let user = |name: &&str| {
            let headers = vec![("Authorization".to_owned(), format!("Bearer {name}"))];
            ((*name).to_owned(), EndpointAccess { headers, ..EndpointAccess::default() })
        };
        Credentials::new(names.iter().map(user).collect(), current)
    }

    #[track_caller]
    fn check(credentials: &Credentials, address: &Address, expected: Option<&str>) {
        let token =
            |access: Arc<EndpointAccess>| access.headers[0].1.strip_prefix("Bearer ").unwrap_or_default().to_owned();
        assert_eq!(credentials.of(address).map(token).as_deref(), expected, "{address:?}");
    }

    fn url(text: &str) -> Address {
        Address::Url(text.to_owned())
    }

    fn service(port: u16) -> Address {
        Address::Service { namespace: "prod".to_owned(), name: "guard".to_owned(), port, path: String::new() }
    }

    #[test]
    fn the_closest_name_of_a_host_counts() {
        let names = ["a.example.com:8443", "*.example.com:8443", "b.example.com", "*.example.com", "*.com", "*"];
        let all = credentials(&names, None);
        check(&all, &url("https://a.example.com:8443/x"), Some("a.example.com:8443"));
        check(&all, &url("https://c.example.com:8443"), Some("*.example.com:8443"));
        check(&all, &url("https://b.example.com/x?y"), Some("b.example.com"));
        check(&all, &url("https://b.example.com:443/"), Some("b.example.com"));
        check(&all, &url("https://c.d.example.com/"), Some("*.example.com"));
        check(&all, &url("https://example.com/"), Some("*.com"));
        // Names without a port apply to port 443 only.
        check(&all, &url("https://b.example.com:9443/"), Some("*"));
    }

    #[test]
    fn services_are_hosts_of_the_cluster() {
        let by_port = credentials(&["guard.prod.svc:8443", "guard.prod.svc", "*.prod.svc:9443"], None);
        check(&by_port, &service(443), Some("guard.prod.svc"));
        check(&by_port, &service(8443), Some("guard.prod.svc:8443"));
        check(&by_port, &service(9443), Some("*.prod.svc:9443"));
        check(&by_port, &service(80), None);
    }

    #[test]
    fn the_user_of_the_current_context_is_for_all_others() {
        let current = credentials(&["me", "a.example.com"], Some("me"));
        check(&current, &url("https://b.example.com/"), Some("me"));
        check(&current, &url("https://a.example.com/"), Some("a.example.com"));
        check(&credentials(&["me"], Some("gone")), &url("https://b.example.com/"), None);
        check(&credentials(&["me", "*"], Some("me")), &url("https://b.example.com/"), Some("*"));
        check(&Credentials::default(), &url("https://b.example.com/"), None);
    }
}
