//! URIs as Go's `url.ParseRequestURI` reads them: absolute, or a path.

use super::address;

/// The part of a URI that a percent sign stands in; they differ in what it may hide.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    User,
    Host,
    Zone,
    Path,
}

/// Whether `text` is an absolute URI or an absolute path. Fragments are not split off.
pub fn is_request_uri(text: &str) -> bool {
    if text.is_empty() || text.bytes().any(|byte| byte < b' ' || byte == 0x7f) {
        return false;
    }
    if text == "*" {
        return true;
    }
    let Some((scheme, rest)) = split_scheme(text) else { return false };
    let rest = rest.split('?').next().unwrap_or_default();
    if !rest.starts_with('/') {
        return !scheme.is_empty();
    }
    match rest.strip_prefix("//").filter(|_| !scheme.is_empty()) {
        Some(rest) => {
            let (authority, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
            is_authority(scheme, authority) && is_escaped(path, Part::Path)
        }
        None => is_escaped(rest, Part::Path),
    }
}

/// The scheme, perhaps empty, and what follows its colon; `None` if the text starts with a colon.
fn split_scheme(text: &str) -> Option<(&str, &str)> {
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' => {}
            b'0'..=b'9' | b'+' | b'-' | b'.' if at > 0 => {}
            b':' if at == 0 => return None,
            b':' => return Some((&text[..at], &text[at + 1..])),
            _ => break,
        }
    }
    Some(("", text))
}

fn is_authority(scheme: &str, authority: &str) -> bool {
    let (user, host) = match authority.rsplit_once('@') {
        Some((user, host)) => (Some(user), host),
        None => (None, authority),
    };
    let is_user_byte = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:~!$&'()*+,;=%@".contains(&byte);
    is_host(scheme, host) && user.is_none_or(|user| user.bytes().all(is_user_byte) && is_escaped(user, Part::User))
}

fn is_host(scheme: &str, host: &str) -> bool {
    if let Some(open) = host.rfind('[') {
        let Some(close) = host.rfind(']').filter(|_| open == 0) else { return false };
        let (inner, port) = (host.get(1..close).unwrap_or_default(), &host[close + 1..]);
        if !is_port(port) {
            return false;
        }
        let (address, zone) = inner.split_at(inner.find("%25").unwrap_or(inner.len()));
        return is_escaped(address, Part::Host)
            && is_escaped(zone, Part::Zone)
            && address::is_zoned_ipv6(&unescaped(inner));
    }
    // Databases list several hosts with ports, so only the web is strict about colons.
    let web = scheme.eq_ignore_ascii_case("http") || scheme.eq_ignore_ascii_case("https");
    let colon = if web { host.find(':') } else { host.rfind(':') };
    colon.is_none_or(|colon| is_port(&host[colon..])) && is_escaped(host, Part::Host)
}

/// Nothing, or a colon and perhaps digits.
fn is_port(text: &str) -> bool {
    text.is_empty() || text.strip_prefix(':').is_some_and(super::is_digits)
}

/// Whether percent signs introduce what may stand in `part`, and in hosts nothing else is out of place.
fn is_escaped(text: &str, part: Part) -> bool {
    let bytes = text.as_bytes();
    let in_host = matches!(part, Part::Host | Part::Zone);
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        if byte != b'%' {
            if in_host && byte.is_ascii() && !is_host_byte(byte) {
                return false;
            }
            at += 1;
            continue;
        }
        let Some(code) = hidden_byte(bytes, at) else { return false };
        let is_percent = code == b'%';
        let allowed = match part {
            Part::Host => code >= 0x80 || is_percent,
            Part::Zone => is_percent || code == b' ' || is_host_byte(code),
            Part::User | Part::Path => true,
        };
        if !allowed {
            return false;
        }
        at += 3;
    }
    true
}

fn is_host_byte(byte: u8) -> bool {
    byte.is_ascii_alphanumeric() || b"-_.~!$&'()*+,;=:[]<>\"".contains(&byte)
}

/// The byte that `%xx` at `at` stands for.
fn hidden_byte(bytes: &[u8], at: usize) -> Option<u8> {
    let digit = |place: usize| bytes.get(place).and_then(|byte| char::from(*byte).to_digit(16));
    u8::try_from(digit(at + 1)? * 16 + digit(at + 2)?).ok()
}

fn unescaped(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut plain = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        match hidden_byte(bytes, at).filter(|_| byte == b'%') {
            Some(code) => {
                plain.push(code);
                at += 3;
            }
            None => {
                plain.push(byte);
                at += 1;
            }
        }
    }
    String::from_utf8_lossy(&plain).into_owned()
}
