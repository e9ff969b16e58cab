//! URLs as Go's `net/url` takes them apart, with its words for those that it can't.

use std::net::{Ipv4Addr, Ipv6Addr};

use crate::value::go_quote;

/// The parts of a URL that validation looks at. Missing parts are empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Url {
    /// In lower case.
    pub scheme: String,
    /// As it would be written; `None` differs from an empty one.
    pub user: Option<String>,
    /// With the port.
    pub host: String,
    pub query: String,
    pub fragment: String,
}

/// Any URL, also a relative one.
///
/// # Errors
///
/// Go's text: `parse ":x": missing protocol scheme`.
pub fn parse(text: &str) -> Result<Url, String> {
    let (rest, fragment) = text.split_once('#').unwrap_or((text, ""));
    let mut url = parse_in(rest, false).map_err(|error| format!("parse {}: {error}", go_quote(rest)))?;
    let fragment = unescape(fragment, Part::Other).map_err(|error| format!("parse {}: {error}", go_quote(text)))?;
    url.fragment = fragment;
    Ok(url)
}

/// The URL of a request: an absolute one, or an absolute path; without a fragment.
pub fn parse_request(text: &str) -> Option<Url> {
    parse_in(text, true).ok()
}

fn parse_in(text: &str, is_request: bool) -> Result<Url, String> {
    if text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return Err("net/url: invalid control character in URL".to_owned());
    }
    if text.is_empty() && is_request {
        return Err("empty url".to_owned());
    }
    let mut url = Url::default();
    if text == "*" {
        return Ok(url);
    }
    let (scheme, rest) = split_scheme(text)?;
    url.scheme = scheme.to_ascii_lowercase();
    let (rest, query) = rest.split_once('?').unwrap_or((rest, ""));
    url.query = query.to_owned();
    if !rest.starts_with('/') {
        if !scheme.is_empty() {
            return Ok(url);
        }
        if is_request {
            return Err("invalid URI for request".to_owned());
        }
        if rest.split('/').next().is_some_and(|segment| segment.contains(':')) {
            return Err("first path segment in URL cannot contain colon".to_owned());
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
        None => rest,
    };
    unescape(path, Part::Other)?;
    Ok(url)
}

/// The scheme, perhaps empty, and what follows its colon.
fn split_scheme(text: &str) -> Result<(&str, &str), String> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return Err("missing protocol scheme".to_owned()),
            b':' => return Ok((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Ok(("", text))
}

fn parse_user(text: &str) -> Result<String, String> {
    let is_user_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    if !text.bytes().all(is_user_byte) {
        return Err("net/url: invalid userinfo".to_owned());
    }
    let parts: Result<Vec<String>, String> =
        text.splitn(2, ':').map(|part| Ok(escape_user(&unescape(part, Part::Other)?))).collect();
    Ok(parts?.join(":"))
}

fn escape_user(text: &str) -> String {
    let mut escaped = String::new();
    for byte in text.bytes() {
        match byte.is_ascii_alphanumeric() || b"-_.~$&+,;=".contains(&byte) {
            true => escaped.push(char::from(byte)),
            false => escaped.push_str(&format!("%{byte:02X}")),
        }
    }
    escaped
}

fn parse_host(scheme: &str, host: &str) -> Result<String, String> {
    match host.rfind('[') {
        Some(0) => {
            let close = host.rfind(']').ok_or("missing ']' in host")?;
            let (inner, port) = (host.get(1..close).unwrap_or_default(), &host[close + 1..]);
            check_port(port)?;
            let (address, zone) = inner.split_at(inner.find("%25").unwrap_or(inner.len()));
            let address = unescape(address, Part::Host)?;
            let zone = unescape(zone, Part::Zone)?;
            if address.parse::<Ipv4Addr>().is_ok() {
                return Err("invalid IP-literal".to_owned());
            }
            if address.parse::<Ipv6Addr>().is_err() {
                let quoted = go_quote(&format!("{address}{zone}"));
                return Err(format!("invalid host: ParseAddr({quoted}): unable to parse IP"));
            }
            return Ok(format!("[{address}{zone}]{port}"));
        }
        Some(_) => return Err("invalid IP-literal".to_owned()),
        None => {}
    }
    // Databases list several hosts with ports, so only the web is strict about colons.
    let colon = if matches!(scheme, "http" | "https") { host.find(':') } else { host.rfind(':') };
    if let Some(colon) = colon {
        check_port(&host[colon..])?;
    }
    unescape(host, Part::Host)
}

/// Nothing, or a colon and perhaps digits.
fn check_port(text: &str) -> Result<(), String> {
    let digits = if text.is_empty() { Some("") } else { text.strip_prefix(':') };
    match digits.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit())) {
        true => Ok(()),
        false => Err(format!("invalid port {} after host", go_quote(text))),
    }
}

/// The part of a URL that a percent sign stands in; they differ in what it may hide.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Host,
    Zone,
    Other,
}

fn unescape(text: &str, part: Part) -> Result<String, String> {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            if part != Part::Other && byte.is_ascii() && !is_host_byte(byte) {
                return Err(format!("invalid character {} in host name", go_quote(&char::from(byte).to_string())));
            }
            plain.push(byte);
            at += 1;
            continue;
        }
        let allowed = hidden_byte(bytes, at).filter(|code| match part {
            Part::Host => *code >= 0x80 || *code == b'%',
            Part::Zone => matches!(code, b'%' | b' ') || is_host_byte(*code),
            Part::Other => true,
        });
        let Some(code) = allowed else {
            let end = bytes.len().min(at + 3);
            return Err(format!("invalid URL escape {}", go_quote(&String::from_utf8_lossy(&bytes[at..end]))));
        };
        plain.push(code);
        at += 3;
    }
    Ok(String::from_utf8_lossy(&plain).into_owned())
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

/// The byte that `%xx` at `at` stands for.
fn hidden_byte(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |place: usize| bytes.get(place).and_then(|byte| char::from(*byte).to_digit(16));
    u8::try_from(digit(at + 1)? * 16 + digit(at + 2)?).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart() {
        let url = parse("HTTPS://a:b%40@host:1/path?q=1#f").expect("it is a URL");
        let expected = Url {
            scheme: "https".to_owned(),
            user: Some("a:b%40".to_owned()),
            host: "host:1".to_owned(),
            query: "q=1".to_owned(),
            fragment: "f".to_owned(),
        };
        assert_eq!(url, expected);
    }

    #[test]
    fn errors_are_gos() {
        let check = |text: &str, expected: &str| assert_eq!(parse(text).expect_err(text), expected);
        check(":x", r#"parse ":x": missing protocol scheme"#);
        check("https://a b", r#"parse "https://a b": invalid character " " in host name"#);
        check("https://a:x/", r#"parse "https://a:x/": invalid port ":x" after host"#);
        check("https://a/%zz", r#"parse "https://a/%zz": invalid URL escape "%zz""#);
        check("1:2", r#"parse "1:2": first path segment in URL cannot contain colon"#);
    }
}
