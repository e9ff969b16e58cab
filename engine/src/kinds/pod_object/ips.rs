//! The addresses of pods and hosts: fields that are older than today's rules for addresses.
//!
//! Source: `IsValidIPForLegacyField` and `GetWarningsForIP` of apimachinery.

use std::net::IpAddr;

use crate::meta::address;
use crate::meta::field::{Error, ErrorList, Path};
use crate::value::go_quote;

/// The address, read as Go once did: zeros before numbers are ignored.
pub fn parse(text: &str) -> Option<IpAddr> {
    if text.contains(':') {
        return text.parse().ok();
    }
    let without_zeros = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        part => part.to_owned(),
    };
    let parts: Vec<String> = text.split('.').map(without_zeros).collect();
    parts.join(".").parse().ok()
}

/// Whether Go would take an address of version 4 that is written as one of version 6 for the former.
fn is_mapped(text: &str) -> bool {
    matches!(address::parse(text), Ok(address::Address { ip: IpAddr::V6(ip), .. }) if ip.to_ipv4_mapped().is_some())
}

/// The errors of an address; `is_lenient` says that it may be written as Go once read it.
pub fn check(path: &Path<'_>, text: &str, is_lenient: bool) -> ErrorList {
    let why = if parse(text).is_none() {
        "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    } else if is_lenient {
        return ErrorList::new();
    } else if address::parse(text).is_err() {
        "must not have leading 0s"
    } else if is_mapped(text) {
        "must not be an IPv4-mapped IPv6 address"
    } else {
        return ErrorList::new();
    };
    Error::invalid(path, text, why).into()
}

/// A text that is not an address.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid IP[{index}]: {text}")]
pub struct NotAnAddress {
    /// Where it is in the list.
    pub index: usize,
    /// The text.
    pub text: String,
}

/// Whether there is an address of each family.
///
/// # Errors
///
/// The first text that is not an address.
pub fn families(texts: &[&str]) -> Result<bool, NotAnAddress> {
    let (mut v4, mut v6) = (false, false);
    for (index, text) in texts.iter().enumerate() {
        match parse(text).map(|ip| ip.to_canonical()) {
            Some(IpAddr::V4(_)) => v4 = true,
            Some(IpAddr::V6(_)) => v6 = true,
            None => return Err(NotAnAddress { index, text: (*text).to_owned() }),
        }
    }
    Ok(v4 && v6)
}

/// The warning for an address that can be read but is not in the canonical form.
pub fn warning(path: &Path<'_>, text: &str) -> Option<String> {
    let ip = parse(text)?;
    let (strict, quoted) = (address::parse(text), go_quote(text));
    if strict.is_err() || is_mapped(text) {
        let preferred = go_quote(&ip.to_canonical().to_string());
        return Some(format!("{path}: non-standard IP address {quoted} is invalid: use {preferred}"));
    }
    let canonical = ip.to_string();
    (ip.is_ipv6() && canonical != text).then(|| {
        let canonical = go_quote(&canonical);
        format!("{path}: IPv6 address {quoted} should be in RFC 5952 canonical format ({canonical})")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_not_written_as_it_should_be_is_told() {
        let told = |text: &str| warning(&Path::new("ip"), text);
        assert_eq!(told("10.0.0.1"), None);
        let zeros = "ip: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\"";
        assert_eq!(told("010.0.0.1").as_deref(), Some(zeros));
        let mapped = "ip: non-standard IP address \"::ffff:1.2.3.4\" is invalid: use \"1.2.3.4\"";
        assert_eq!(told("::ffff:1.2.3.4").as_deref(), Some(mapped));
        let long = "ip: IPv6 address \"2001:DB8::1\" should be in RFC 5952 canonical format (\"2001:db8::1\")";
        assert_eq!(told("2001:DB8::1").as_deref(), Some(long));
        assert_eq!(families(&["10.0.0.1", "::1"]), Ok(true));
    }
}
