//! Access to the port without TLS: only for programs of this machine that intend it.
//!
//! A web page may make a browser talk to a loopback address. Its requests name another host, or come from another
//! origin, and are refused.

use std::net::IpAddr;

use hyper::{HeaderMap, Uri, header};

/// Whether `host`, with or without a port, is this machine's own: `localhost`, 127.0.0.0/8 or `[::1]`.
pub fn is_loopback(host: &str) -> bool {
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _)| name),
    };
    name.eq_ignore_ascii_case("localhost") || name.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
}

/// Whether a request was meant for a loopback host and does not come from a page of another one.
pub fn is_local_request(uri: &Uri, headers: &HeaderMap) -> bool {
    let text = |name| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let host = uri.authority().map(|authority| authority.as_str()).or_else(|| text(header::HOST));
    let origin = text(header::ORIGIN).map(|origin| origin.split_once("://").map_or("", |(_, host)| host));
    host.is_some_and(is_loopback) && origin.is_none_or(is_loopback)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_this_machine_are_loopback() {
        for host in ["localhost", "LOCALHOST:80", "127.0.0.1", "127.0.0.1:8080", "127.1.2.3:1", "[::1]", "[::1]:8080"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in ["", "example.com", "10.0.0.1:80", "localhost.example.com", "[::2]:80", "127.0.0.1.example.com"] {
            assert!(!is_loopback(host), "{host}");
        }
    }

    #[test]
    fn a_page_of_another_host_is_refused() {
        let check = |host: &'static str, origin: Option<&'static str>| {
            let mut headers = HeaderMap::new();
            headers.insert(header::HOST, host.parse().expect("a header value"));
            if let Some(origin) = origin {
                headers.insert(header::ORIGIN, origin.parse().expect("a header value"));
            }
            is_local_request(&Uri::from_static("/version"), &headers)
        };
        assert!(check("localhost:8080", None));
        assert!(check("localhost:8080", Some("http://localhost:3000")));
        assert!(!check("localhost:8080", Some("https://example.com")));
        assert!(!check("localhost:8080", Some("null")));
        assert!(!check("rebound.example.com", None));
        assert!(!is_local_request(&Uri::from_static("/version"), &HeaderMap::new()));
    }
}
