//! IP address families, and the policies on how many of them a service has.

use crate::kinds::network::addresses::parse_lenient;

/// The family policies, in the order in which the reference lists them.
pub(super) const POLICIES: [&str; 3] = [PREFER_DUAL, REQUIRE_DUAL, SINGLE];
pub(super) const SINGLE: &str = "SingleStack";
pub(super) const PREFER_DUAL: &str = "PreferDualStack";
pub(super) const REQUIRE_DUAL: &str = "RequireDualStack";

/// An IP address family.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Family {
    /// IPv4
    V4,
    /// IPv6
    V6,
}

impl Family {
    /// `IPv4` or `IPv6`.
    pub const fn name(self) -> &'static str {
        match self {
            Family::V4 => "IPv4",
            Family::V6 => "IPv6",
        }
    }

    /// The family of this name.
    pub fn named(name: &str) -> Option<Self> {
        [Family::V4, Family::V6].into_iter().find(|family| family.name() == name)
    }

    /// The family of an address.
    pub fn of(ip: &str) -> Option<Self> {
        parse_lenient(ip).map(|ip| if ip.is_ipv4() { Family::V4 } else { Family::V6 })
    }

    /// The other family.
    pub const fn other(self) -> Self {
        match self {
            Family::V4 => Family::V6,
            Family::V6 => Family::V4,
        }
    }
}
