//! IP addresses and prefixes, as Go's `net/netip` reads them, with its errors.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use thiserror::Error;

use crate::value::go_quote;

/// An address, perhaps with a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Address<'t> {
    /// The address.
    pub ip: IpAddr,
    /// `eth0` of `fe80::1%eth0`.
    pub zone: Option<&'t str>,
}

/// Why a text is not an address, in Go's words: `ParseAddr("x"): unable to parse IP`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("ParseAddr({}): {what}{}", go_quote(.text), show_place(.place))]
pub struct AddressError {
    text: String,
    what: &'static str,
    /// The part that could not be read; empty for the whole text.
    place: String,
}

fn show_place(place: &str) -> String {
    if place.is_empty() { String::new() } else { format!(" (at {})", go_quote(place)) }
}

/// Reads `192.0.2.1` or `2001:db8::1%eth0`.
///
/// # Errors
///
/// The text is not an address.
pub fn parse(text: &str) -> Result<Address<'_>, AddressError> {
    let fault = match text.bytes().find(|byte| matches!(byte, b'.' | b':' | b'%')) {
        Some(b'.') => match parse_v4(text) {
            Ok(address) => return Ok(Address { ip: IpAddr::V4(address), zone: None }),
            Err(fault) => fault,
        },
        Some(b':') => match parse_v6(text) {
            Ok(address) => return Ok(address),
            Err(fault) => fault,
        },
        Some(_) => UnreadableAddress::new("missing IPv6 address"),
        None => UnreadableAddress::new("unable to parse IP"),
    };
    Err(AddressError { text: text.to_owned(), what: fault.what, place: fault.at.to_owned() })
}

/// Reads an address as early versions of Kubernetes did: parts of IPv4 may have leading zeros, and there are no zones.
pub fn parse_sloppy(text: &str) -> Option<IpAddr> {
    let at = text.rfind(':').map_or(0, |at| at + 1);
    let (before, last) = text.split_at(at);
    let trimmed = |part: &str| match part.trim_start_matches('0') {
        "" if !part.is_empty() => "0".to_owned(),
        rest => rest.to_owned(),
    };
    let address = if last.contains('.') {
        format!("{before}{}", last.split('.').map(trimmed).collect::<Vec<_>>().join("."))
    } else {
        text.to_owned()
    };
    parse(&address).ok().filter(|address| address.zone.is_none()).map(|address| address.ip)
}

/// The error, and the part that could not be read.
struct UnreadableAddress<'t> {
    what: &'static str,
    at: &'t str,
}

impl<'t> UnreadableAddress<'t> {
    fn new(what: &'static str) -> Self {
        UnreadableAddress { what, at: "" }
    }

    fn at(what: &'static str, at: &'t str) -> Self {
        UnreadableAddress { what, at }
    }
}

fn parse_v4(text: &str) -> Result<Ipv4Addr, UnreadableAddress<'_>> {
    let mut octets = [0_u8; 4];
    let (mut value, mut digits, mut octet) = (0_u16, 0, 0);
    for (at, byte) in text.bytes().enumerate() {
        match byte {
            b'0'..=b'9' => {
                if digits == 1 && value == 0 {
                    return Err(UnreadableAddress::new("IPv4 field has octet with leading zero"));
                }
                value = value * 10 + u16::from(byte - b'0');
                digits += 1;
                if value > 255 {
                    return Err(UnreadableAddress::new("IPv4 field has value >255"));
                }
            }
            b'.' => {
                if digits == 0 || at + 1 == text.len() {
                    return Err(UnreadableAddress::at("IPv4 field must have at least one digit", &text[at..]));
                }
                if octet == 3 {
                    return Err(UnreadableAddress::new("IPv4 address too long"));
                }
                octets[octet] = value as u8;
                octet += 1;
                (value, digits) = (0, 0);
            }
            _ => return Err(UnreadableAddress::at("unexpected character", &text[at..])),
        }
    }
    if octet < 3 {
        return Err(UnreadableAddress::new("IPv4 address too short"));
    }
    octets[3] = value as u8;
    Ok(octets.into())
}

fn parse_v6(text: &str) -> Result<Address<'_>, UnreadableAddress<'_>> {
    let (rest, zone) = match text.split_once('%') {
        Some((_, "")) => return Err(UnreadableAddress::new("zone must be a non-empty string")),
        Some((rest, zone)) => (rest, Some(zone)),
        None => (text, None),
    };
    let mut groups = Groups { rest, bytes: [0; 16], filled: 0, gap: None };
    if let Some(after) = rest.strip_prefix("::") {
        (groups.rest, groups.gap) = (after, Some(0));
    }
    while (groups.filled < 16 && !groups.rest.is_empty()) || groups.is_nothing() {
        groups.read()?;
    }
    Ok(Address { ip: IpAddr::V6(groups.expanded()?), zone })
}

/// The groups read so far of an IPv6 address.
struct Groups<'t> {
    /// The text that is not read yet.
    rest: &'t str,
    bytes: [u8; 16],
    filled: usize,
    /// Where `::` stands.
    gap: Option<usize>,
}

impl<'t> Groups<'t> {
    fn is_nothing(&self) -> bool {
        self.filled == 0 && self.gap.is_none()
    }

    /// Reads a group, or an IPv4 address at the end, and the separator after it.
    fn read(&mut self) -> Result<(), UnreadableAddress<'t>> {
        let rest = self.rest;
        let digits = rest.bytes().take_while(u8::is_ascii_hexdigit).count();
        match digits {
            0 => return Err(UnreadableAddress::at("each colon-separated field must have at least one digit", rest)),
            1..=4 => {}
            _ => return Err(UnreadableAddress::at("each group must have 4 or less digits", rest)),
        }
        let (group, after) = rest.split_at(digits);
        if after.starts_with('.') {
            return self.read_v4();
        }
        let group = group.chars().filter_map(|digit| digit.to_digit(16)).fold(0, |group, digit| group << 4 | digit);
        self.fill(&(group as u16).to_be_bytes());
        self.rest = match after.strip_prefix(':') {
            _ if after.is_empty() => "",
            None => return Err(UnreadableAddress::at("unexpected character, want colon", after)),
            Some("") => return Err(UnreadableAddress::at("colon must be followed by more characters", after)),
            Some(after) => after,
        };
        if let Some(after) = self.rest.strip_prefix(':') {
            if self.gap.is_some() {
                return Err(UnreadableAddress::at("multiple :: in address", self.rest));
            }
            (self.gap, self.rest) = (Some(self.filled), after);
        }
        Ok(())
    }

    fn read_v4(&mut self) -> Result<(), UnreadableAddress<'t>> {
        if self.gap.is_none() && self.filled != 12 {
            let what = "embedded IPv4 address must replace the final 2 fields of the address";
            return Err(UnreadableAddress::at(what, self.rest));
        }
        if self.filled > 12 {
            let what = "too many hex fields to fit an embedded IPv4 at the end of the address";
            return Err(UnreadableAddress::at(what, self.rest));
        }
        self.fill(&parse_v4(self.rest)?.octets());
        self.rest = "";
        Ok(())
    }

    fn fill(&mut self, bytes: &[u8]) {
        self.bytes[self.filled..self.filled + bytes.len()].copy_from_slice(bytes);
        self.filled += bytes.len();
    }

    /// The address, with zeros for `::`.
    fn expanded(mut self) -> Result<Ipv6Addr, UnreadableAddress<'t>> {
        let filled = self.filled;
        if !self.rest.is_empty() {
            return Err(UnreadableAddress::at("trailing garbage after address", self.rest));
        }
        match self.gap {
            None if filled < 16 => Err(UnreadableAddress::new("address string too short")),
            Some(_) if filled == 16 => Err(UnreadableAddress::new("the :: must expand to at least one field of zeros")),
            Some(gap) => {
                self.bytes.copy_within(gap..filled, 16 - (filled - gap));
                self.bytes[gap..16 - (filled - gap)].fill(0);
                Ok(self.bytes.into())
            }
            None => Ok(self.bytes.into()),
        }
    }
}

/// An address, and how many of its leading bits belong to the network.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Prefix {
    /// The address before the slash.
    pub ip: IpAddr,
    /// At most 32, or 128 for IPv6.
    pub bits: u8,
}

/// Why a text is not a prefix, in Go's words: `netip.ParsePrefix("x"): no '/'`.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("netip.ParsePrefix({}): {fault}", go_quote(.text))]
pub struct PrefixError {
    text: String,
    fault: PrefixFault,
}

#[derive(Clone, Debug, PartialEq, Eq, Error)]
enum PrefixFault {
    #[error("no '/'")]
    NoSlash,
    #[error("{0}")]
    Address(AddressError),
    #[error("IPv6 zones cannot be present in a prefix")]
    Zone,
    #[error("bad bits after slash: {}", go_quote(.0))]
    Bits(String),
    #[error("prefix length out of range")]
    Length,
}

impl Prefix {
    /// Reads `10.0.0.0/8`; the address may have bits set after the prefix.
    ///
    /// # Errors
    ///
    /// The text is not a prefix.
    pub fn parse(text: &str) -> Result<Self, PrefixError> {
        let error = |fault| PrefixError { text: text.to_owned(), fault };
        let (address, bits) = text.rsplit_once('/').ok_or_else(|| error(PrefixFault::NoSlash))?;
        let address = parse(address).map_err(|fault| error(PrefixFault::Address(fault)))?;
        if address.zone.is_some() {
            return Err(error(PrefixFault::Zone));
        }
        let bad_bits = || error(PrefixFault::Bits(bits.to_owned()));
        if bits.len() > 1 && !bits.starts_with(|char: char| matches!(char, '1'..='9')) {
            return Err(bad_bits());
        }
        let bits: i64 = bits.parse().map_err(|_| bad_bits())?;
        let bits = u8::try_from(bits).ok().filter(|bits| *bits <= width(address.ip));
        Ok(Prefix { ip: address.ip, bits: bits.ok_or_else(|| error(PrefixFault::Length))? })
    }

    /// The same with the bits after the prefix cleared.
    #[must_use]
    pub fn masked(self) -> Self {
        let ip = match self.ip {
            IpAddr::V4(ip) => IpAddr::V4(Ipv4Addr::from_bits(ip.to_bits() & mask(self.bits, 32) as u32)),
            IpAddr::V6(ip) => IpAddr::V6(Ipv6Addr::from_bits(ip.to_bits() & mask(self.bits, 128))),
        };
        Prefix { ip, bits: self.bits }
    }

    /// Whether `ip` is in the network.
    pub fn contains(self, ip: IpAddr) -> bool {
        Prefix { ip, bits: self.bits }.masked().ip == self.masked().ip
    }

    /// Whether all of `other` is in the network.
    pub fn contains_prefix(self, other: Prefix) -> bool {
        self.bits <= other.bits && self.contains(other.ip)
    }
}

fn width(ip: IpAddr) -> u8 {
    if ip.is_ipv4() { 32 } else { 128 }
}

/// A number of `width` bits whose leading `bits` are ones.
fn mask(bits: u8, width: u8) -> u128 {
    let ones = u128::MAX >> (128 - u32::from(width));
    ones & !ones.checked_shr(u32::from(bits)).unwrap_or(0)
}

impl fmt::Display for Prefix {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}/{}", self.ip, self.bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_read() {
        for (text, canonical) in [
            ("1.2.3.4", "1.2.3.4"),
            ("::", "::"),
            ("2001:DB8::0:1", "2001:db8::1"),
            ("1:2:3:4:5:6:7.8.9.10", "1:2:3:4:5:6:708:90a"),
            ("1::1.2.3.4", "1::102:304"),
        ] {
            assert_eq!(parse(text).map(|address| address.ip.to_string()), Ok(canonical.to_owned()), "{text}");
        }
        assert_eq!(parse("fe80::1%eth0").map(|address| address.zone), Ok(Some("eth0")));
    }

    #[test]
    fn leading_zeros_were_once_allowed() {
        for (text, ip) in [
            ("010.002.003.004", Some("10.2.3.4")),
            ("::ffff:01.2.3.4", Some("::ffff:1.2.3.4")),
            ("1.2.3.00", Some("1.2.3.0")),
            ("1.2.3.", None),
            ("fe80::1%eth0", None),
        ] {
            assert_eq!(parse_sloppy(text).map(|ip| ip.to_string()).as_deref(), ip, "{text}");
        }
    }

    #[test]
    fn faults_are_told_in_gos_words() {
        for (text, what) in [
            ("", "unable to parse IP"),
            ("1%x", "missing IPv6 address"),
            ("1.2.3", "IPv4 address too short"),
            ("1.2.3.04", "IPv4 field has octet with leading zero"),
            ("1..2.3", r#"IPv4 field must have at least one digit (at ".2.3")"#),
            ("1.2.3.x", r#"unexpected character (at "x")"#),
            (":::1", r#"each colon-separated field must have at least one digit (at ":1")"#),
            ("1::2::3", r#"multiple :: in address (at ":3")"#),
            ("1:2:3:4:5:6:7::8", "the :: must expand to at least one field of zeros"),
            ("12345::", r#"each group must have 4 or less digits (at "12345::")"#),
        ] {
            let expected = format!("ParseAddr({}): {what}", go_quote(text));
            assert_eq!(parse(text).map_err(|error| error.to_string()), Err(expected), "{text}");
        }
        let bits = Prefix::parse("::/+1").map(drop).map_err(|error| error.to_string());
        assert_eq!(bits, Err(r#"netip.ParsePrefix("::/+1"): bad bits after slash: "+1""#.to_owned()));
    }

    #[test]
    fn prefixes_hold_addresses() {
        let prefix = Prefix::parse("10.1.2.3/8").expect("it is a prefix");
        assert_eq!(prefix.masked().to_string(), "10.0.0.0/8");
        assert!(prefix.contains(IpAddr::from([10, 255, 0, 1])));
        assert!(!prefix.contains(IpAddr::from([0; 16])));
        assert!(Prefix { ip: IpAddr::from([0; 16]), bits: 0 }.contains(Ipv6Addr::LOCALHOST.into()));
        assert!(!prefix.contains_prefix(Prefix { ip: IpAddr::from([10, 0, 0, 0]), bits: 7 }));
    }
}
