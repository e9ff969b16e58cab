//! Decides which requests are equal.

use crate::value::{Value, json};

use super::mask::Sensitive;

/// Parameters that are ignored: clients choose time-outs at random.
const IGNORED: [&str; 2] = ["timeoutSeconds", "timeout"];

/// How requests are compared.
#[derive(Clone, Copy, Debug, Default)]
pub struct Matching {
    pub ignores_bodies: bool,
}

/// What equal requests have in common.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RequestKey {
    method: String,
    path: String,
    /// The parameters, sorted.
    query: Vec<String>,
    accept: String,
    body: Vec<u8>,
}

impl Matching {
    /// The key of a request for `uri`, a path with a query. A JSON body is compared in a normalized
    /// form, and masked as in the file.
    pub fn key(&self, method: &str, uri: &str, accept: &str, body: &[u8]) -> RequestKey {
        let (path, query) = uri.split_once('?').unwrap_or((uri, ""));
        let named = |parameter: &&str| {
            !parameter.is_empty() && !IGNORED.contains(&parameter.split_once('=').map_or(*parameter, |(name, _)| name))
        };
        let mut query: Vec<String> = query.split('&').filter(named).map(str::to_owned).collect();
        query.sort_unstable();
        let body = if self.ignores_bodies { Vec::new() } else { canonical(path, body) };
        RequestKey { method: method.to_owned(), path: path.to_owned(), query, accept: accept.to_owned(), body }
    }
}

fn canonical(path: &str, body: &[u8]) -> Vec<u8> {
    let masked = Sensitive::of(path).and_then(|sensitive| sensitive.masked_body(body));
    let body = masked.as_deref().unwrap_or(body);
    match json::decode(body) {
        Ok(value @ (Value::Object(_) | Value::Array(_))) => json::encode(&value),
        _ => body.to_vec(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_are_the_same_whatever_the_order_of_their_parts() {
        let key = |uri: &str, body: &str| Matching::default().key("POST", uri, "a", body.as_bytes());
        assert_eq!(key("/a?x=1&y=2&timeoutSeconds=7", r#"{"a":1,"b":2}"#), key("/a?y=2&x=1", r#"{ "b":2,"a":1}"#));
        assert_ne!(key("/a?x=1", ""), key("/a?x=2", ""));
        assert_ne!(key("/a", "{}"), key("/a", "[]"));
        let loose = Matching { ignores_bodies: true };
        assert_eq!(loose.key("PUT", "/a", "", b"{}"), loose.key("PUT", "/a", "", b"[]"));
    }

    #[test]
    fn secrets_are_compared_as_they_are_kept() {
        let key = |data: &str| {
            let body = format!(r#"{{"kind":"Secret","data":{{"a":"{data}"}}}}"#);
            Matching::default().key("POST", "/api/v1/namespaces/a/secrets", "", body.as_bytes())
        };
        assert_eq!(key("eA=="), key("eQ=="));
    }
}
