//! Which requests are answered: those of the page itself.

use std::net::SocketAddr;

use axum::http::{HeaderMap, Method, header};

/// Who asks from where, as browsers tell it. Source: "Fetch Metadata Request Headers", W3C.
const FETCH_SITE: &str = "sec-fetch-site";

/// Whether a request is one of the page at `address`, or of a program that is not a browser.
///
/// The host must be this machine under the port of the page: a name that was made to point here is another host. What a
/// browser says of its origin must be the page's own; a link may lead here from anywhere (`is_page`), as it shows nothing
/// to whoever set it.
pub fn is_own(address: SocketAddr, method: &Method, headers: &HeaderMap, is_page: bool) -> bool {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let hosts = [address.to_string(), format!("localhost:{}", address.port())];
    let is_host = |host: &str| hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
    let is_origin = |origin: &str| origin.strip_prefix("http://").is_some_and(is_host);
    let is_site = |site: &str| match site {
        "same-origin" | "none" => true,
        _ => is_page && method == Method::GET,
    };
    text(header::HOST.as_str()).is_some_and(is_host)
        && text(header::ORIGIN.as_str()).is_none_or(is_origin)
        && text(FETCH_SITE).is_none_or(is_site)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], is_page: bool, expected: bool) {
        let address = SocketAddr::from(([127, 0, 0, 1], 8123));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a header value"));
        }
        assert_eq!(is_own(address, &Method::GET, &map, is_page), expected, "{headers:?}");
    }

    #[test]
    fn other_hosts_and_origins_are_refused() {
        let own = ("host", "127.0.0.1:8123");
        check(&[own], false, true);
        check(&[("host", "localhost:8123")], false, true);
        check(&[own, ("origin", "http://127.0.0.1:8123"), (FETCH_SITE, "same-origin")], false, true);
        check(&[own, (FETCH_SITE, "none")], true, true);
        check(&[], false, false);
        check(&[("host", "127.0.0.1")], false, false);
        check(&[("host", "127.0.0.1:8124")], false, false);
        check(&[("host", "rebound.example.com:8123")], true, false);
        for origin in ["null", "http://example.com", "http://127.0.0.1:9000", "https://127.0.0.1:8123", ""] {
            check(&[own, ("origin", origin)], false, false);
        }
        for site in ["cross-site", "same-site", ""] {
            check(&[own, (FETCH_SITE, site)], false, false);
            check(&[own, (FETCH_SITE, site)], true, true);
        }
    }
}
