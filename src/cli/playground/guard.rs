//! Decides which requests are answered: those of the page itself.

use std::net::SocketAddr;

use axum::http::{HeaderMap, Method, header};

/// The header by which browsers tell where a request comes from. Source: "Fetch Metadata Request
/// Headers", W3C.
const FETCH_SITE: &str = "sec-fetch-site";

const OTHER_HOST: &str = "this page answers itself alone: the Host header of the request names another host";
const OTHER_PAGE: &str = "this page answers itself alone: by its Origin or Sec-Fetch-Site header, the request comes from \
                          another page";

/// Why a request is refused; `None` for one of the page at `address`, or of a program that is not a
/// browser.
///
/// The host must be this machine with the port of the page: a foreign name that resolves to this
/// address is another host. The origin that a browser reports must be the page's own. The page
/// itself (`is_page`) may be linked from anywhere, as it reveals nothing to the linking page.
pub fn refusal(address: SocketAddr, method: &Method, headers: &HeaderMap, is_page: bool) -> Option<&'static str> {
    let text = |name: &str| headers.get(name).map(|value| value.to_str().unwrap_or_default());
    let hosts = [address.to_string(), format!("localhost:{}", address.port())];
    let is_host = |host: &str| hosts.iter().any(|known| known.eq_ignore_ascii_case(host));
    let is_origin = |origin: &str| origin.strip_prefix("http://").is_some_and(is_host);
    let is_site = |site: &str| match site {
        "same-origin" | "none" => true,
        _ => is_page && method == Method::GET,
    };
    if !text(header::HOST.as_str()).is_some_and(is_host) {
        Some(OTHER_HOST)
    } else if !text(header::ORIGIN.as_str()).is_none_or(is_origin) || !text(FETCH_SITE).is_none_or(is_site) {
        Some(OTHER_PAGE)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(headers: &[(&'static str, &str)], is_page: bool, expected: Option<&str>) {
        let address = SocketAddr::from(([127, 0, 0, 1], 8123));
        let mut map = HeaderMap::new();
        for (name, value) in headers {
            map.insert(*name, value.parse().expect("a header value"));
        }
        assert_eq!(refusal(address, &Method::GET, &map, is_page), expected, "{headers:?}");
    }

    #[test]
    fn other_hosts_and_origins_are_refused() {
        let own = ("host", "127.0.0.1:8123");
        check(&[own], false, None);
        check(&[("host", "localhost:8123")], false, None);
        check(&[own, ("origin", "http://127.0.0.1:8123"), (FETCH_SITE, "same-origin")], false, None);
        check(&[own, (FETCH_SITE, "none")], true, None);
        check(&[], false, Some(OTHER_HOST));
        check(&[("host", "127.0.0.1")], false, Some(OTHER_HOST));
        check(&[("host", "127.0.0.1:8124")], false, Some(OTHER_HOST));
        check(&[("host", "rebound.example.com:8123")], true, Some(OTHER_HOST));
        for origin in ["null", "http://example.com", "http://127.0.0.1:9000", "https://127.0.0.1:8123", ""] {
            check(&[own, ("origin", origin)], false, Some(OTHER_PAGE));
        }
        for site in ["cross-site", "same-site", ""] {
            check(&[own, (FETCH_SITE, site)], false, Some(OTHER_PAGE));
            check(&[own, (FETCH_SITE, site)], true, None);
        }
    }
}
