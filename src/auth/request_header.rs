//! Users from headers that an authenticating proxy in front of this server sets; it proves its
//! identity with a certificate.
//!
//! Source: `pkg/authentication/request/headerrequest` of apiserver, release 1.36.

use std::collections::BTreeMap;

use super::UserInfo;

/// The names of the headers, in lower case.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RequestHeader {
    /// The first of these headers that is present and not empty is the user's name.
    pub user: Vec<String>,
    /// All values of all these headers are groups.
    pub group: Vec<String>,
    pub uid: Vec<String>,
    /// After one of these prefixes, the rest of a header's name is the key of an extra value.
    pub extra_prefixes: Vec<String>,
}

impl RequestHeader {
    /// The user that `headers` identify, whose names are in lower case; `None` if there is none.
    pub fn user_of(&self, headers: &[(String, String)]) -> Option<UserInfo> {
        let first = |names: &[String]| {
            let values = |name: &String| headers.iter().find(|(header, text)| header == name && !text.is_empty());
            names.iter().find_map(values).map(|(_, text)| text.clone())
        };
        let name = first(&self.user)?;
        let groups = self.group.iter().flat_map(|name| headers.iter().filter(move |(header, _)| header == name));
        let mut user = UserInfo::authenticated(name, groups.map(|(_, text)| text.clone()).collect());
        user.uid = first(&self.uid).unwrap_or_default();
        user.extra = self.extra_of(headers);
        Some(user)
    }

    fn extra_of(&self, headers: &[(String, String)]) -> BTreeMap<String, Vec<String>> {
        let mut extra: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for prefix in &self.extra_prefixes {
            for (header, text) in headers {
                if let Some(key) = header.strip_prefix(prefix.as_str()) {
                    extra.entry(unescape(key)).or_default().push(text.clone());
                }
            }
        }
        extra
    }
}

/// Decodes percent-encoding, such as `%2F` for a slash; a malformed text is returned unchanged.
fn unescape(key: &str) -> String {
    let mut out = Vec::with_capacity(key.len());
    let mut rest = key.as_bytes();
    while let [first, after @ ..] = rest {
        rest = after;
        // A sign is not a digit.
        let digits = after.get(..2).filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.and_then(|digits| std::str::from_utf8(digits).ok());
        match (*first, digits.map(|digits| u8::from_str_radix(digits, 16))) {
            (b'%', Some(Ok(byte))) => {
                out.push(byte);
                rest = &after[2..];
            }
            (b'%', _) => return key.to_owned(),
            (byte, _) => out.push(byte),
        }
    }
    String::from_utf8(out).unwrap_or_else(|_| key.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_proxy_tells_a_user_with_groups_and_extra_values() {
        let texts = |text: &str| vec![text.to_owned()];
        let names = RequestHeader {
            user: texts("x-remote-user"),
            group: texts("x-remote-group"),
            uid: texts("x-remote-uid"),
            extra_prefixes: texts("x-remote-extra-"),
        };
        let headers = |list: &[(&str, &str)]| -> Vec<_> {
            list.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect()
        };
        let told = headers(&[
            ("x-remote-user", "jane"),
            ("x-remote-group", "a"),
            ("x-remote-group", "b"),
            ("x-remote-uid", "u"),
            ("x-remote-extra-a%2fb", "1"),
            ("x-other", "2"),
        ]);
        let user = names.user_of(&told).expect("there is one");
        assert_eq!((user.name.as_str(), user.uid.as_str()), ("jane", "u"));
        assert_eq!(user.groups, ["a", "b", "system:authenticated"]);
        assert_eq!(user.extra["a/b"], ["1"]);
        assert_eq!(names.user_of(&headers(&[("x-remote-user", ""), ("x-remote-group", "a")])), None);
        assert_eq!([unescape("50%"), unescape("%+f")], ["50%", "%+f"]);
    }
}
