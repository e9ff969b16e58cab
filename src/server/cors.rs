//! Cross-origin requests: the web pages of which other origins may read answers in a browser.
//!
//! Source: `WithCORS` of `k8s.io/apiserver/pkg/server/filters`, and `validateCorsAllowedOriginList`, release 1.36.

use hyper::header::{
    ACCESS_CONTROL_ALLOW_CREDENTIALS, ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS,
    ACCESS_CONTROL_ALLOW_ORIGIN, ACCESS_CONTROL_EXPOSE_HEADERS, HeaderName, HeaderValue, ORIGIN,
};
use hyper::{HeaderMap, Response};

use crate::meta::pattern::{self, Pattern};

const HEADERS: [(HeaderName, &str); 4] = [
    (ACCESS_CONTROL_ALLOW_METHODS, "POST, GET, OPTIONS, PUT, DELETE, PATCH"),
    (
        ACCESS_CONTROL_ALLOW_HEADERS,
        "Content-Type, Content-Length, Accept-Encoding, X-CSRF-Token, Authorization, X-Requested-With, \
         If-Modified-Since",
    ),
    (ACCESS_CONTROL_EXPOSE_HEADERS, "Date"),
    (ACCESS_CONTROL_ALLOW_CREDENTIALS, "true"),
];

/// An expression must match a whole host, so it must contain one of these, and one of those.
const BEGINNINGS: [&str; 2] = ["^", "//"];
const ENDS: [&str; 2] = ["$", ":"];

/// The origins that are allowed, as patterns; none by default.
#[derive(Default)]
pub struct AllowedOrigins(Vec<Pattern>);

/// Why a text is not a pattern of origins.
#[derive(Debug, thiserror::Error)]
pub enum OriginError {
    #[error(transparent)]
    Pattern(#[from] pattern::PatternError),
    #[error("regular expression does not pin to start/end of host in the origin header")]
    Unpinned,
}

impl AllowedOrigins {
    /// Reads patterns.
    ///
    /// # Errors
    ///
    /// A text is not a pattern, or matches only part of a host.
    pub fn parse(patterns: &[String]) -> Result<Self, OriginError> {
        patterns.iter().map(|text| read(text)).collect::<Result<_, _>>().map(AllowedOrigins)
    }

    /// The origin of a request, if it is allowed.
    pub(super) fn origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        if self.0.is_empty() {
            return None;
        }
        let origin = headers.get(ORIGIN)?;
        let text = origin.to_str().ok().filter(|text| !text.is_empty())?;
        self.0.iter().any(|pattern| pattern.is_match(text)).then(|| origin.clone())
    }
}

fn read(text: &str) -> Result<Pattern, OriginError> {
    let pattern = Pattern::new(text)?;
    let has = |parts: [&str; 2]| parts.iter().any(|part| text.contains(part));
    if has(BEGINNINGS) && has(ENDS) { Ok(pattern) } else { Err(OriginError::Unpinned) }
}

/// Lets pages of the origin read the answer.
pub(super) fn allow<B>(origin: HeaderValue, answer: &mut Response<B>) {
    let headers = answer.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    for (name, value) in HEADERS {
        headers.insert(name, HeaderValue::from_static(value));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origins(patterns: &[&str]) -> Result<AllowedOrigins, String> {
        let parsed = AllowedOrigins::parse(&patterns.iter().map(ToString::to_string).collect::<Vec<_>>());
        parsed.map_err(|error| error.to_string())
    }

    #[test]
    fn origins_are_those_that_a_pattern_matches() {
        let allowed = origins(&["//example\\.com(:|$)", "^https://a$"]).expect("they are patterns");
        let of = |origin: &'static str| {
            let headers = HeaderMap::from_iter([(ORIGIN, HeaderValue::from_static(origin))]);
            allowed.origin(&headers).is_some()
        };
        assert!(of("https://example.com") && of("http://example.com:8080") && of("https://a"));
        assert!(!of("https://example.com.evil.org") && !of("https://b") && !of(""));
        assert_eq!(allowed.origin(&HeaderMap::new()), None);
    }

    #[test]
    fn a_pattern_is_about_a_whole_host() {
        let fault = |pattern: &str| origins(&[pattern]).err();
        let loose = "regular expression does not pin to start/end of host in the origin header";
        assert_eq!(fault("abc").as_deref(), Some(loose));
        assert!(fault("^a$").is_none());
        let unreadable = "error parsing regexp: missing argument to repetition operator: `*`";
        assert_eq!(fault("*").as_deref(), Some(unreadable));
    }
}
