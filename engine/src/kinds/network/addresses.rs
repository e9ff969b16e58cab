//! Addresses and their prefixes in fields: the lenient reading of old fields, errors and warnings.
//!
//! Old fields were once read leniently, with zeros before octets and with IPv4 inside IPv6. New values in them are read
//! strictly while `StrictIPCIDRValidation` is enabled; values that the object already has may stay. Fields of newer
//! kinds only accept the canonical form.
//!
//! Source: `apimachinery/pkg/util/validation/ip.go` and `k8s.io/utils/net`, release 1.37.

use std::net::{IpAddr, Ipv4Addr};

use crate::meta::address::{self, Prefix};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::value::go_quote;

const NOT_AN_ADDRESS: &str = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)";
const NOT_A_PREFIX: &str = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)";

/// Reads an address as Go once did: octets may have zeros before them, and IPv4 inside IPv6 is IPv4.
pub fn parse_lenient(text: &str) -> Option<IpAddr> {
    parse_as_written(text).map(|ip| ip.to_canonical())
}

/// [`parse_lenient`], with IPv4 inside IPv6 left there.
fn parse_as_written(text: &str) -> Option<IpAddr> {
    if !text.contains(':') {
        return parse_lenient_v4(text).map(IpAddr::V4);
    }
    let (before, last) = text.rsplit_once(':')?;
    let parsed = if last.contains('.') {
        address::parse(&format!("{before}:{}", parse_lenient_v4(last)?)).ok().map(|address| address.ip)
    } else {
        address::parse(text).ok().filter(|address| address.zone.is_none()).map(|address| address.ip)
    };
    parsed.filter(IpAddr::is_ipv6)
}

fn parse_lenient_v4(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0_u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        *octet = number(parts.next()?)?;
    }
    parts.next().is_none().then(|| octets.into())
}

/// A number of only digits, with any number of leading zeros.
fn number(text: &str) -> Option<u8> {
    if text.is_empty() || !text.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    match text.trim_start_matches('0') {
        "" => Some(0),
        digits => digits.parse().ok(),
    }
}

/// Reads a prefix as Go once did; the bits after it stay, and so does IPv4 inside IPv6.
pub fn parse_lenient_prefix(text: &str) -> Option<Prefix> {
    let (ip, bits) = text.split_once('/')?;
    let (ip, bits) = (parse_as_written(ip)?, number(bits)?);
    let bits_max = if ip.is_ipv4() { 32 } else { 128 };
    (bits <= bits_max).then_some(Prefix { ip, bits })
}

/// A prefix as Go prints it: without the bits after it, and IPv4 inside IPv6 as IPv4.
fn shown(prefix: Prefix) -> String {
    let Prefix { ip, bits } = prefix.masked();
    match (ip, ip.to_canonical()) {
        (IpAddr::V6(_), IpAddr::V4(inner)) => format!("{inner}/{}", bits.saturating_sub(96)),
        (ip, _) => format!("{ip}/{bits}"),
    }
}

fn is_inside_v6(ip: IpAddr) -> bool {
    ip.is_ipv6() && ip.to_canonical().is_ipv4()
}

/// The errors of an address in an old field; none if it is one of `known`, which the object already has.
pub fn check_address<'a>(
    minor: Minor,
    path: &Path<'_>,
    text: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> ErrorList {
    let is_forgiven = is_forgiven(minor, text, known, parse_lenient(text).is_some());
    if is_forgiven { ErrorList::new() } else { check_strictly(path, text) }
}

/// Whether the text of an old field is accepted as it is: the object already has it, or its minor accepts everything
/// that can be read.
fn is_forgiven<'a>(minor: Minor, text: &str, known: impl IntoIterator<Item = &'a str>, is_readable: bool) -> bool {
    known.into_iter().any(|known| known == text) || (is_readable && !minor.opens(Gate::StrictIpCidrValidation))
}

fn check_strictly(path: &Path<'_>, text: &str) -> ErrorList {
    if parse_lenient(text).is_none() {
        return Error::invalid(path, text, NOT_AN_ADDRESS).into();
    }
    match address::parse(text) {
        Err(_) => Error::invalid(path, text, "must not have leading 0s").into(),
        Ok(strict) if is_inside_v6(strict.ip) => {
            Error::invalid(path, text, "must not be an IPv4-mapped IPv6 address").into()
        }
        Ok(_) => ErrorList::new(),
    }
}

/// The errors of an address in a newer field, which must be in its canonical form.
pub fn check_canonical_address(path: &Path<'_>, text: &str) -> ErrorList {
    let errors = check_strictly(path, text);
    match parse_lenient(text).map(|ip| ip.to_string()) {
        Some(canonical) if errors.is_empty() && canonical != text => {
            Error::invalid(path, text, format!("must be in canonical form ({})", go_quote(&canonical))).into()
        }
        _ => errors,
    }
}

/// The errors of a prefix in an old field; none if it is one of `known`, which the object already has.
pub fn check_prefix<'a>(
    minor: Minor,
    path: &Path<'_>,
    text: &str,
    known: impl IntoIterator<Item = &'a str>,
) -> ErrorList {
    let is_forgiven = is_forgiven(minor, text, known, parse_lenient_prefix(text).is_some());
    if is_forgiven { ErrorList::new() } else { check_prefix_strictly(path, text) }
}

fn check_prefix_strictly(path: &Path<'_>, text: &str) -> ErrorList {
    if parse_lenient_prefix(text).is_none() {
        return Error::invalid(path, text, NOT_A_PREFIX).into();
    }
    let fault = match Prefix::parse(text) {
        Err(_) => "must not have leading 0s in IP or prefix length",
        Ok(strict) if is_inside_v6(strict.ip) => "must not have an IPv4-mapped IPv6 address",
        Ok(strict) if strict.masked() != strict => "must not have bits set beyond the prefix length",
        Ok(_) => return ErrorList::new(),
    };
    Error::invalid(path, text, fault).into()
}

/// The errors of a prefix in a newer field, which must be in its canonical form.
pub fn check_canonical_prefix(path: &Path<'_>, text: &str) -> ErrorList {
    let errors = check_prefix_strictly(path, text);
    match parse_lenient_prefix(text).map(shown) {
        Some(canonical) if errors.is_empty() && canonical != text => {
            Error::invalid(path, text, format!("must be in canonical form ({})", go_quote(&canonical))).into()
        }
        _ => errors,
    }
}

/// Why an address is not one that traffic can be sent to.
pub fn check_endpoint(path: &Path<'_>, text: &str) -> ErrorList {
    let Some(ip) = parse_lenient(text) else {
        return Error::invalid(path, text, "must be a valid IP address").into();
    };
    let (is_link_local, is_local_multicast) = match ip {
        IpAddr::V4(ip) => (ip.is_link_local(), ip.octets().starts_with(&[224, 0, 0])),
        IpAddr::V6(ip) => (ip.is_unicast_link_local(), ip.segments()[0] & 0xff0f == 0xff02),
    };
    let faults = [
        (ip.is_unspecified(), format!("may not be unspecified ({text})")),
        (ip.is_loopback(), "may not be in the loopback range (127.0.0.0/8, ::1/128)".to_owned()),
        (is_link_local, "may not be in the link-local range (169.254.0.0/16, fe80::/10)".to_owned()),
        (is_local_multicast, "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)".to_owned()),
    ];
    faults.into_iter().filter(|(holds, _)| *holds).map(|(_, fault)| Error::invalid(path, text, fault)).collect()
}

/// The warning for an address that is valid, and written in another way than it should be.
pub fn address_warning(path: &Path<'_>, text: &str) -> Option<String> {
    let ip = parse_lenient(text)?;
    let given = go_quote(text);
    match address::parse(text) {
        Ok(strict) if !is_inside_v6(strict.ip) => {
            let canonical = ip.to_string();
            (ip.is_ipv6() && canonical != text).then(|| {
                let canonical = go_quote(&canonical);
                format!("{path}: IPv6 address {given} should be in RFC 5952 canonical format ({canonical})")
            })
        }
        _ => Some(format!("{path}: non-standard IP address {given} is invalid: use {}", go_quote(&ip.to_string()))),
    }
}

/// The warnings for a prefix that is valid, and written in another way than it should be.
pub fn prefix_warnings(path: &Path<'_>, text: &str) -> Vec<String> {
    let Some(prefix) = parse_lenient_prefix(text) else { return Vec::new() };
    let (given, network) = (go_quote(text), go_quote(&shown(prefix)));
    let mut warnings = Vec::new();
    if prefix.masked().ip != prefix.ip {
        let bits = if prefix.ip.is_ipv4() { 32 } else { 128 };
        let alone = go_quote(&format!("{}/{bits}", prefix.ip.to_canonical()));
        warnings
            .push(format!("{path}: CIDR value {given} is ambiguous in this context (should be {network} or {alone}?)"));
    }
    let strict = Prefix::parse(text).ok().filter(|strict| !is_inside_v6(strict.ip));
    match strict {
        None => warnings.push(format!("{path}: non-standard CIDR value {given} is invalid: use {network}")),
        Some(strict) if warnings.is_empty() && strict.ip.is_ipv6() && strict.to_string() != text => {
            let canonical = go_quote(&strict.to_string());
            warnings
                .push(format!("{path}: IPv6 CIDR value {given} should be in RFC 5952 canonical format ({canonical})"));
        }
        Some(_) => {}
    }
    warnings
}

#[cfg(test)]
mod tests {
    use super::*;

    const PATH: Path<'static> = Path::new("ip");
    const NOW: Minor = Minor::NEWEST;
    const BEFORE: Minor = Minor::of(35);

    fn told(errors: &ErrorList) -> String {
        errors.iter().map(|error| error.detail.clone()).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn old_fields_take_what_is_strictly_an_address() {
        for (text, fault) in [
            ("10.0.0.1", ""),
            ("FE80::0001", ""),
            ("010.0.0.1", "must not have leading 0s"),
            ("::ffff:1.2.3.4", "must not be an IPv4-mapped IPv6 address"),
            ("fe80::1%eth0", NOT_AN_ADDRESS),
            ("10.0.0.256", NOT_AN_ADDRESS),
            ("", NOT_AN_ADDRESS),
        ] {
            assert_eq!(told(&check_address(NOW, &PATH, text, [])), fault, "{text}");
        }
        assert!(check_address(NOW, &PATH, "010.0.0.1", ["1.1.1.1", "010.0.0.1"]).is_empty());
        assert_eq!(told(&check_canonical_address(&PATH, "2001:DB8::1")), "must be in canonical form (\"2001:db8::1\")");
    }

    #[test]
    fn before_strict_validation_old_fields_are_read_as_they_once_were() {
        for text in ["010.0.0.1", "::ffff:1.2.3.4"] {
            assert_eq!(told(&check_address(BEFORE, &PATH, text, [])), "", "{text}");
        }
        assert_eq!(told(&check_address(BEFORE, &PATH, "10.0.0.256", [])), NOT_AN_ADDRESS);
        for text in ["10.0.0.1/8", "10.0.0.0/08"] {
            assert_eq!(told(&check_prefix(BEFORE, &PATH, text, [])), "", "{text}");
        }
        assert_eq!(told(&check_prefix(BEFORE, &PATH, "10.0.0.0", [])), NOT_A_PREFIX);
    }

    #[test]
    fn prefixes_end_where_they_say() {
        for (text, fault) in [
            ("10.0.0.0/8", ""),
            ("10.0.0.1/8", "must not have bits set beyond the prefix length"),
            ("10.0.0.0/08", "must not have leading 0s in IP or prefix length"),
            ("::ffff:10.0.0.0/104", "must not have an IPv4-mapped IPv6 address"),
            ("10.0.0.0/33", NOT_A_PREFIX),
            ("10.0.0.0", NOT_A_PREFIX),
        ] {
            assert_eq!(told(&check_prefix(NOW, &PATH, text, [])), fault, "{text}");
        }
        assert_eq!(
            told(&check_canonical_prefix(&PATH, "2001:DB8::/64")),
            "must be in canonical form (\"2001:db8::/64\")"
        );
    }

    #[test]
    fn what_is_valid_and_odd_is_warned_of() {
        let warning = |text| address_warning(&PATH, text).unwrap_or_default();
        assert_eq!(warning("10.0.0.1"), "");
        assert_eq!(warning("010.0.0.1"), "ip: non-standard IP address \"010.0.0.1\" is invalid: use \"10.0.0.1\"");
        assert_eq!(
            warning("2001:DB8::1"),
            "ip: IPv6 address \"2001:DB8::1\" should be in RFC 5952 canonical format (\"2001:db8::1\")"
        );
        assert_eq!(
            prefix_warnings(&PATH, "10.1.2.3/8"),
            [
                "ip: CIDR value \"10.1.2.3/8\" is ambiguous in this context (should be \"10.0.0.0/8\" or \"10.1.2.3/32\"?)"
            ]
        );
        assert_eq!(
            prefix_warnings(&PATH, "2001:DB8::/64"),
            ["ip: IPv6 CIDR value \"2001:DB8::/64\" should be in RFC 5952 canonical format (\"2001:db8::/64\")"]
        );
    }

    #[test]
    fn endpoints_are_addresses_that_packets_reach() {
        for (text, fault) in [
            ("10.0.0.1", ""),
            ("127.0.0.1", "may not be in the loopback range (127.0.0.0/8, ::1/128)"),
            ("0.0.0.0", "may not be unspecified (0.0.0.0)"),
            ("169.254.1.1", "may not be in the link-local range (169.254.0.0/16, fe80::/10)"),
            ("224.0.0.9", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
            ("ff02::1", "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"),
            ("x", "must be a valid IP address"),
        ] {
            assert_eq!(told(&check_endpoint(&PATH, text)), fault, "{text}");
        }
    }
}
