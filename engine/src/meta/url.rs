//! URLs as Go's `net/url` parses and formats them, with its errors.
//!
//! DIFFERS: percent-encoded bytes that are not UTF-8 become replacement characters, one per byte, while Go keeps them;
//! so URLs that only differ in such bytes are equal here.

use std::fmt;

use thiserror::Error;

use super::address::{self, AddressError};
use crate::value::go_quote;
use crate::work;

/// The parts of a URL. Missing parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// In lower case.
    pub scheme: String,
    /// The part after the scheme of a URL such as `mailto:a@b`, as it is written.
    pub opaque: String,
    /// As it would be written; `None` differs from an empty user.
    pub user: Option<String>,
    /// With the port, percent-decoded.
    pub host: String,
    /// As it is written, if that is a valid encoding.
    pub escaped_path: String,
    /// As it is written.
    pub query: String,
    /// The part after `#`, may be empty.
    pub fragment: String,
    escaped_fragment: String,
    ends_in_question_mark: bool,
    /// `file:/path`
    omits_host: bool,
}

/// Why a text is not a URL, in Go's words: `parse ":x": missing protocol scheme`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("parse {}: {fault}", go_quote(.text))]
pub struct UrlError {
    text: String,
    fault: UrlErrorKind,
}

/// The error of a URL.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum UrlErrorKind {
    #[error("net/url: invalid control character in URL")]
    ControlCharacter,
    #[error("empty url")]
    Empty,
    #[error("invalid URI for request")]
    NotForRequest,
    #[error("first path segment in URL cannot contain colon")]
    ColonInSegment,
    #[error("missing protocol scheme")]
    NoScheme,
    #[error("net/url: invalid userinfo")]
    User,
    #[error("missing ']' in host")]
    OpenBracket,
    #[error("invalid host: {0}")]
    Host(AddressError),
    #[error("invalid IP-literal")]
    Literal,
    #[error("invalid port {} after host", go_quote(.0))]
    Port(String),
    #[error("invalid character {} in host name", go_quote(.0.encode_utf8(&mut [0; 4])))]
    HostCharacter(char),
    /// Up to three bytes, quoted.
    #[error("invalid URL escape {0}")]
    Escape(String),
}

/// Any URL, also a relative one.
///
/// # Errors
///
/// The text is not a URL.
pub fn parse(text: &str) -> Result<Url, UrlError> {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let mut url = parse_in(rest, false).map_err(|fault| UrlError { text: rest.to_owned(), fault })?;
    let plain = unescape(fragment, UrlPart::Fragment).map_err(|fault| UrlError { text: text.to_owned(), fault })?;
    url.escaped_fragment = as_written(fragment, &plain, UrlPart::Fragment);
    url.fragment = lossy(&plain);
    Ok(url)
}

/// The URL of a request: an absolute one, or an absolute path; without a fragment.
///
/// # Errors
///
/// As [`parse`].
pub fn parse_request(text: &str) -> Result<Url, UrlError> {
    parse_in(text, true).map_err(|fault| UrlError { text: text.to_owned(), fault })
}

fn parse_in(text: &str, is_request: bool) -> Result<Url, UrlErrorKind> {
    work::bytes(text.len());
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err(UrlErrorKind::ControlCharacter);
    }
    if text.is_empty() && is_request {
        return Err(UrlErrorKind::Empty);
    }
    let mut url = Url::default();
    if text == "*" {
        url.escaped_path = text.to_owned();
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = match rest.split_once('?') {
        Some((rest, query)) => (rest, Some(query)),
        None => (rest, None),
    };
    url.ends_in_question_mark = query == Some("");
    url.query = query.unwrap_or("").to_owned();
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            url.opaque = rest.to_owned();
            return Ok(url);
        }
        if is_request {
            return Err(UrlErrorKind::NotForRequest);
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err(UrlErrorKind::ColonInSegment);
        }
    }
    let may_have_host = !scheme.is_empty() || !is_request && !rest.starts_with("///");
    let path = match rest.strip_prefix("//").filter(|_| may_have_host) {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            let (user, host) = match authority.rsplit_once('@') {
                Some((user, host)) => (Some(user), host),
                None => (None, authority),
            };
            url.host = parse_host(&url.scheme, host)?;
            url.user = user.map(parse_user).transpose()?;
            path
        }
        None => {
            url.omits_host = !scheme.is_empty() && rest.starts_with('/');
            rest
        }
    };
    let plain = unescape(path, UrlPart::Path)?;
    url.escaped_path = as_written(path, &plain, UrlPart::Path);
    Ok(url)
}

/// The scheme, which may be empty, and the text after its colon.
fn split_scheme(text: &str) -> Result<(&str, &str), UrlErrorKind> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err(UrlErrorKind::NoScheme),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_user(text: &str) -> Result<String, UrlErrorKind> {
    let is_user_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !text.bytes().all(is_user_byte) {
        return Err(UrlErrorKind::User);
    }
    let parts: Result<Vec<String>, UrlErrorKind> =
        text.splitn(2, ':').map(|part| Ok(escape(&unescape(part, UrlPart::User)?, UrlPart::User))).collect();
    Ok(parts?.join(":"))
}

fn parse_host(scheme: &str, host: &str) -> Result<String, UrlErrorKind> {
    match host.rfind('[') {
        Some(0) => {
            let close = host.rfind(']').ok_or(UrlErrorKind::OpenBracket)?;
            let (inner, port) = (host.get(1..close).unwrap_or_default(), &host[close + 1..]);
            check_port(port)?;
            let (address, zone) = inner.split_at(inner.find("%25").unwrap_or(inner.len()));
            let inner = [unescape(address, UrlPart::Host)?, unescape(zone, UrlPart::Zone)?].concat();
            let inner = lossy(&inner);
            let address = address::parse(&inner).map_err(UrlErrorKind::Host)?;
            if address.ip.is_ipv4() {
                return Err(UrlErrorKind::Literal);
            }
            return Ok(format!("[{inner}]{port}"));
        }
        Some(_) => return Err(UrlErrorKind::Literal),
        None => {}
    }
    // Databases list several hosts with ports, so only http and https are strict about colons.
    let colon = if matches!(scheme, "http" | "https") { host.find(':') } else { host.rfind(':') };
    if let Some(colon) = colon {
        check_port(&host[colon..])?;
    }
    Ok(lossy(&unescape(host, UrlPart::Host)?))
}

fn is_port(text: &str) -> bool {
    let digits = if text.is_empty() { Some("") } else { text.strip_prefix(':') };
    digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Checks for an empty text, or a colon and optional digits.
fn check_port(text: &str) -> Result<(), UrlErrorKind> {
    if is_port(text) { Ok(()) } else { Err(UrlErrorKind::Port(text.to_owned())) }
}

impl Url {
    /// The host without the port and without brackets, and the port.
    pub fn host_and_port(&self) -> (&str, &str) {
        let (host, port) = match self.host.rfind(':') {
            Some(colon) if is_port(&self.host[colon..]) => (&self.host[..colon], &self.host[colon + 1..]),
            _ => (self.host.as_str(), ""),
        };
        (host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host), port)
    }

    /// The parameters of the query in their order; those that don't parse are left out; if there are more than 10,000,
    /// all are.
    pub fn query_parameters(&self) -> Vec<(String, String)> {
        const PARAMETERS_MAX: usize = 10_000;
        if self.query.matches('&').count() >= PARAMETERS_MAX {
            return Vec::new();
        }
        let parameters = self.query.split('&').filter(|parameter| !parameter.is_empty() && !parameter.contains(';'));
        let plain = |text: &str| unescape(text, UrlPart::QueryParameter).ok().map(|plain| lossy(&plain));
        parameters
            .filter_map(|parameter| {
                let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
                Some((plain(name)?, plain(value)?))
            })
            .collect()
    }
}

/// As Go's `String` puts it together.
impl fmt::Display for Url {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let has_scheme = !self.scheme.is_empty();
        let has_authority = !self.host.is_empty() || self.user.is_some();
        if has_scheme {
            write!(formatter, "{}:", self.scheme)?;
        }
        if self.opaque.is_empty() {
            if has_authority || has_scheme && !self.omits_host && !self.escaped_path.is_empty() {
                formatter.write_str("//")?;
            }
            if let Some(user) = &self.user {
                write!(formatter, "{user}@")?;
            }
            formatter.write_str(&escape(self.host.as_bytes(), UrlPart::Host))?;
            let segment = self.escaped_path.split('/').next().unwrap_or_default();
            if !has_scheme && !has_authority && segment.contains(':') {
                formatter.write_str("./")?;
            }
            formatter.write_str(&self.escaped_path)?;
        } else {
            formatter.write_str(&self.opaque)?;
        }
        if self.ends_in_question_mark || !self.query.is_empty() {
            write!(formatter, "?{}", self.query)?;
        }
        if self.fragment.is_empty() { Ok(()) } else { write!(formatter, "#{}", self.escaped_fragment) }
    }
}

/// The part of a URL that a byte is in; parts differ in which bytes must be percent-encoded.
#[derive(Clone, Copy, PartialEq, Eq)]
enum UrlPart {
    User,
    Host,
    Zone,
    Path,
    QueryParameter,
    Fragment,
}

fn needs_escape(byte: u8, part: UrlPart) -> bool {
    match byte {
        b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => false,
        _ if matches!(part, UrlPart::Host | UrlPart::Zone) => !b"!$&'()*+,;=:[]<>\"".contains(&byte),
        b'$' | b'&' | b'+' | b',' | b'/' | b':' | b';' | b'=' | b'?' | b'@' => match part {
            UrlPart::User => matches!(byte, b'@' | b'/' | b'?' | b':'),
            UrlPart::Path => byte == b'?',
            UrlPart::Fragment => false,
            UrlPart::QueryParameter | UrlPart::Host | UrlPart::Zone => true,
        },
        b'!' | b'(' | b')' | b'*' => part != UrlPart::Fragment,
        _ => true,
    }
}

fn escape(bytes: &[u8], part: UrlPart) -> String {
    let mut escaped = String::with_capacity(bytes.len());
    for byte in bytes {
        if !needs_escape(*byte, part) {
            escaped.push(char::from(*byte))
        } else {
            escaped.push_str(&format!("%{byte:02X}"))
        }
    }
    escaped
}

/// `written` if it has no byte that must be encoded, else `plain`, encoded anew.
fn as_written(written: &str, plain: &[u8], part: UrlPart) -> String {
    let may_stand = |byte: u8| b"!$&'()*+,;=:@[]%".contains(&byte) || !needs_escape(byte, part);
    if written.bytes().all(may_stand) { written.to_owned() } else { escape(plain, part) }
}

fn unescape(text: &str, part: UrlPart) -> Result<Vec<u8>, UrlErrorKind> {
    let bytes = text.as_bytes();
    let in_host = matches!(part, UrlPart::Host | UrlPart::Zone);
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            if in_host && byte.is_ascii() && needs_escape(byte, part) {
                return Err(UrlErrorKind::HostCharacter(char::from(byte)));
            }
            plain.push(if byte == b'+' && part == UrlPart::QueryParameter { b' ' } else { byte });
            at += 1;
            continue;
        }
        let allowed = hidden_byte(bytes, at).filter(|code| match part {
            UrlPart::Host => *code >= 0x80 || *code == b'%',
            UrlPart::Zone => matches!(code, b'%' | b' ') || !needs_escape(*code, UrlPart::Host),
            _ => true,
        });
        let Some(code) = allowed else {
            let end = bytes.len().min(at + 3);
            return Err(UrlErrorKind::Escape(quote_bytes(&bytes[at..end])));
        };
        plain.push(code);
        at += 3;
    }
    Ok(plain)
}

/// The byte of the escape `%xx` at `at`.
fn hidden_byte(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |place: usize| bytes.get(place).and_then(|byte| char::from(*byte).to_digit(16));
    u8::try_from(digit(at + 1)? * 16 + digit(at + 2)?).ok()
}

/// As Go quotes a text that may end within a character.
fn quote_bytes(bytes: &[u8]) -> String {
    let mut quoted = String::from("\"");
    for chunk in bytes.utf8_chunks() {
        let valid = go_quote(chunk.valid());
        quoted.push_str(&valid[1..valid.len() - 1]);
        for byte in chunk.invalid() {
            quoted.push_str(&format!("\\x{byte:02x}"));
        }
    }
    quoted.push('"');
    quoted
}

/// Text, with a replacement character for each byte that is not part of a character.
fn lossy(bytes: &[u8]) -> String {
    let mut text = String::with_capacity(bytes.len());
    for chunk in bytes.utf8_chunks() {
        text.push_str(chunk.valid());
        text.extend(chunk.invalid().iter().map(|_| char::REPLACEMENT_CHARACTER));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let url = parse("HTTPS://a:b%40@host:1/path%2f?q=1#f").expect("it is a URL");
        assert_eq!((url.scheme.as_str(), url.user.as_deref()), ("https", Some("a:b%40")));
        assert_eq!((url.host_and_port(), url.escaped_path.as_str()), (("host", "1"), "/path%2f"));
        assert_eq!((url.query.as_str(), url.fragment.as_str()), ("q=1", "f"));
        let url = parse("http://[::1]:80/a b?x=1&x=%20+&;=2&y").expect("it is a URL");
        assert_eq!((url.host_and_port(), url.escaped_path.as_str()), (("::1", "80"), "/a%20b"));
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(url.query_parameters(), [pair("x", "1"), pair("x", "  "), pair("y", "")]);
    }

    #[test]
    fn a_url_is_put_together() {
        for (text, written) in [
            ("HTTP://a/b?", "http://a/b?"),
            ("file:/a", "file:/a"),
            ("mailto:a b", "mailto:a b"),
            ("//a/é#x y", "//a/%C3%A9#x%20y"),
            ("http://", "http:"),
        ] {
            assert_eq!(parse(text).map(|url| url.to_string()), Ok(written.to_owned()), "{text}");
        }
    }

    #[test]
    fn errors_are_gos() {
        let check = |text: &str, expected: &str| assert_eq!(parse(text).expect_err(text).to_string(), expected);
        check(":x", r#"parse ":x": missing protocol scheme"#);
        check("https://a b", r#"parse "https://a b": invalid character " " in host name"#);
        check("https://a:x/", r#"parse "https://a:x/": invalid port ":x" after host"#);
        check("https://a/%zz", r#"parse "https://a/%zz": invalid URL escape "%zz""#);
        check("1:2", r#"parse "1:2": first path segment in URL cannot contain colon"#);
    }
}
