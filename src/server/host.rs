//! Which Host headers are refused before a request is looked at.
//!
//! Source: Go's `net/http` (`readRequest` in `server.go` and `request.go`) and `httpguts.ValidHostHeader`. HTTP/2 has
//! `:authority` instead, which may be missing there as here.

use axum::body::Body;
use hyper::ext::ReasonPhrase;
use hyper::header::{CONNECTION, CONTENT_TYPE, HOST, HeaderValue};
use hyper::{HeaderMap, Method, Response, StatusCode, Version};

/// The characters that a Host header may contain besides letters and digits.
const HOST_BYTES: &[u8] = b"!$%&'()*+,-.:;=[]_~";

/// The answer to a request without exactly one valid Host header.
pub fn refusal(version: Version, method: &Method, headers: &HeaderMap) -> Option<Response<Body>> {
    if version >= Version::HTTP_2 {
        return None;
    }
    let mut hosts = headers.get_all(HOST).iter();
    match (hosts.next(), hosts.next()) {
        (Some(_), Some(_)) => Some(bad_request("400 Bad Request", "Bad Request")),
        (None, _) if version == Version::HTTP_11 && method != Method::CONNECT => Some(bad_request(
            "400 Bad Request: missing required Host header",
            "Bad Request: missing required Host header",
        )),
        (Some(host), None) if !is_well_formed(host) => {
            Some(bad_request("400 Bad Request: malformed Host header", "Bad Request: malformed Host header"))
        }
        _ => None,
    }
}

fn is_well_formed(host: &HeaderValue) -> bool {
    host.as_bytes().iter().all(|byte| byte.is_ascii_alphanumeric() || HOST_BYTES.contains(byte))
}

fn bad_request(text: &'static str, reason: &'static str) -> Response<Body> {
    let mut response = Response::new(Body::from(text));
    *response.status_mut() = StatusCode::BAD_REQUEST;
    response.extensions_mut().insert(ReasonPhrase::from_static(reason.as_bytes()));
    response.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
    response
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn http_1_has_one_host_that_is_well_formed() {
        let reason = |version, hosts: &[&'static str]| {
            let mut headers = HeaderMap::new();
            hosts.iter().for_each(|host| _ = headers.append(HOST, HeaderValue::from_static(host)));
            let refusal = refusal(version, &Method::GET, &headers)?;
            let phrase = refusal.extensions().get::<ReasonPhrase>().expect("it says why");
            Some(String::from_utf8_lossy(phrase.as_bytes()).into_owned())
        };
        assert_eq!(reason(Version::HTTP_11, &["localhost:6443"]), None);
        assert_eq!(reason(Version::HTTP_11, &["[::1]:6443"]), None);
        assert_eq!(reason(Version::HTTP_11, &[""]), None, "as in Go");
        let told = |text: &str| Some(text.to_owned());
        assert_eq!(reason(Version::HTTP_11, &[]), told("Bad Request: missing required Host header"));
        assert_eq!(reason(Version::HTTP_11, &["a", "a"]), told("Bad Request"));
        assert_eq!(reason(Version::HTTP_10, &["a", "b"]), told("Bad Request"));
        assert_eq!(reason(Version::HTTP_11, &["a/b"]), told("Bad Request: malformed Host header"));
        assert_eq!(reason(Version::HTTP_10, &[]), None);
        assert_eq!(reason(Version::HTTP_2, &[]), None);
    }
}
