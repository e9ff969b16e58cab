//! A range of cluster IPs, and the order in which its addresses are tried.
//!
//! The lower part is reserved for requests for a specific address, as long as there are others.
//!
//! Source: `pkg/registry/core/service/ipallocator`, release 1.37.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use crate::kinds::services::Family;
use crate::meta::address::{Prefix, PrefixError};

use super::Refusal;

/// The minimum prefix length of an IPv6 range.
const V6_BITS_MIN: u8 = 64;
/// The minimum number of host bits of a range: it has at least eight addresses.
const FREE_BITS_MIN: u8 = 3;
/// The minimum size of the lower part; `LOWER_MAX` is the maximum, and in between it is one in `LOWER_PART` of the
/// range. A range of at most `LOWER_MIN` addresses has no lower part.
const LOWER_MIN: u128 = 16;
const LOWER_MAX: u128 = 256;
const LOWER_PART: u128 = 16;

/// A range of addresses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpRange {
    prefix: Prefix,
    /// The first address that can be allocated, as a number; the network's own address cannot.
    first: u128,
    /// The number of addresses; the last one of an IPv4 range is not allocated either.
    size: u128,
    /// The size of the lower part.
    lower: u128,
}

/// Why a text is not a range of cluster IPs.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RangeError {
    /// The text is not a prefix.
    #[error(transparent)]
    Prefix(#[from] PrefixError),
    /// The range is too large; holds the length of its prefix.
    #[error("shortest allowed prefix length for service CIDR is {V6_BITS_MIN}, got {0}")]
    TooLarge(u8),
}

impl IpRange {
    /// Parses a range such as `10.0.0.0/24`.
    ///
    /// # Errors
    ///
    /// The text is not a range, or it is too large.
    pub fn parse(text: &str) -> Result<Self, RangeError> {
        let prefix = Prefix::parse(text)?.masked();
        let is_v6 = prefix.ip.is_ipv6();
        if is_v6 && prefix.bits < V6_BITS_MIN {
            return Err(RangeError::TooLarge(prefix.bits));
        }
        let all: u128 = 1 << (if is_v6 { 128 } else { 32 } - u32::from(prefix.bits));
        let size = all.saturating_sub(if is_v6 { 1 } else { 2 });
        let lower = if all <= LOWER_MIN { 0 } else { (all / LOWER_PART).clamp(LOWER_MIN, LOWER_MAX).min(size) };
        Ok(IpRange { prefix, first: number(prefix.ip) + 1, size, lower })
    }

    /// The family of its addresses.
    pub fn family(&self) -> Family {
        if self.prefix.ip.is_ipv4() { Family::V4 } else { Family::V6 }
    }

    /// Whether it has fewer addresses than a range of cluster IPs must have.
    pub fn is_too_small(&self) -> bool {
        let bits = if self.prefix.ip.is_ipv4() { 32 } else { 128 };
        bits - self.prefix.bits < FREE_BITS_MIN
    }

    /// The network's own address.
    pub fn network(&self) -> IpAddr {
        self.prefix.ip
    }

    /// The first address, which belongs to the service `kubernetes`.
    pub fn first(&self) -> Option<IpAddr> {
        (self.size > 0).then(|| self.address(0))
    }

    /// Why an address cannot be allocated from the range, if it cannot.
    pub fn refuse(&self, ip: IpAddr) -> Option<Refusal> {
        let is_in = self.prefix.contains(ip) && (self.first..self.first + self.size).contains(&number(ip));
        (!is_in).then(|| {
            Refusal::OutOfRange(format!(
                "the provided IP ({ip}) is not in the valid range. The range of valid IPs is {}",
                self.prefix
            ))
        })
    }

    /// All addresses in the order in which they are tried: those of the upper part from a random one on, then those of
    /// the lower part.
    pub fn candidates(&self, random: u64) -> impl Iterator<Item = IpAddr> + use<> {
        let range = *self;
        let rotated = move |from: u128, count: u128| {
            let start = if count == 0 { 0 } else { u128::from(random) % count };
            (0..count).map(move |step| from + (start + step) % count)
        };
        let upper = rotated(self.lower, self.size - self.lower);
        upper.chain(rotated(0, self.lower)).map(move |offset| range.address(offset))
    }

    fn address(&self, offset: u128) -> IpAddr {
        let number = self.first + offset;
        match self.prefix.ip {
            IpAddr::V4(_) => IpAddr::V4((number as u32).into()),
            IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::from_bits(number)),
        }
    }
}

impl fmt::Display for IpRange {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.prefix.fmt(out)
    }
}

fn number(ip: IpAddr) -> u128 {
    match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn range(text: &str) -> IpRange {
        IpRange::parse(text).expect("it is a range")
    }

    #[test]
    fn each_address_is_tried_once_the_upper_ones_first() {
        for (text, count, lower) in
            [("10.0.0.0/24", 254, 16), ("10.0.0.0/28", 14, 0), ("10.0.0.0/16", 65_534, 256), ("fd00::/120", 255, 16)]
        {
            let range = range(text);
            let tried: Vec<_> = range.candidates(u64::MAX).collect();
            assert_eq!(tried.iter().collect::<BTreeSet<_>>().len(), count, "{text}");
            let is_lower = |ip: &IpAddr| number(*ip) - range.first < lower;
            assert!(!tried[..count - lower as usize].iter().any(is_lower), "{text}");
            assert!(tried.iter().all(|ip| range.refuse(*ip).is_none()), "{text}");
        }
        assert_eq!(range("10.0.0.0/24").first().map(|ip| ip.to_string()).as_deref(), Some("10.0.0.1"));
        assert_eq!(range("10.0.0.0/32").candidates(7).count(), 0);
    }

    #[test]
    fn the_ends_are_not_allocated() {
        let told = |text: &str| range("10.0.0.0/24").refuse(text.parse().expect("it is an address"));
        let why =
            |ip| format!("the provided IP ({ip}) is not in the valid range. The range of valid IPs is 10.0.0.0/24");
        for ip in ["10.0.0.0", "10.0.0.255", "10.0.1.1", "::a00:1"] {
            assert_eq!(told(ip), Some(Refusal::OutOfRange(why(ip))), "{ip}");
        }
        assert_eq!(told("10.0.0.1"), None);
        assert!(matches!(IpRange::parse("fd00::/48"), Err(RangeError::TooLarge(48))));
    }
}
