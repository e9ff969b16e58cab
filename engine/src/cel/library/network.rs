//! IP addresses and prefixes: `ip(…)` and `cidr(…)`.

use std::net::IpAddr;

use super::arguments::{opaque, text};
use super::since;
use crate::cel::cost::formula::PARSE;
use crate::cel::cost::{Called, Cost, Estimate, Range, actual, model};
use crate::cel::eval::value::{KeyKind, Opaque, pointer_syntax};
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Function, Overload};
use crate::cel::types::Type::{self, Bool, Int};
use crate::meta::address::{self, Prefix};
use crate::value::go_quote;

/// The length of an address in bytes: 4 for IPv4, 16 for IPv6.
const ADDRESS: Range = Range::new(4, 16);

/// A text is parsed, and compared with the text of the result.
const IS_CANONICAL: Cost = Cost::of_name(
    |sizes| Estimate::of(sizes.size(0).scale(model::TRAVERSAL_AND_COPY)),
    |called| actual::scale(called.size(0), model::TRAVERSAL_AND_COPY),
);

/// The bytes of two addresses are compared.
const CONTAINS_IP: Cost = Cost::of_name(|_| Estimate::of(compare_addresses_estimate()), compare_addresses);

/// The same, with a text that is parsed first.
const CONTAINS_IP_TEXT: Cost = Cost::of_overload(
    |sizes| Estimate::of(compare_addresses_estimate().plus(sizes.size(1).scale(model::TRAVERSAL))),
    |called| compare_addresses(called).saturating_add(actual::scale(called.size(1), model::TRAVERSAL)),
);

/// The result of `containsCIDR` before 1.32: a prefix was contained only if its address is that of `whole`, masked.
fn contained_formerly(whole: Prefix, part: Prefix) -> bool {
    whole.contains_prefix(part) && whole.masked().ip == part.ip
}

/// The addresses and the prefixes are compared.
const CONTAINS_CIDR: Cost = Cost::of_name(
    |_| Estimate::of(compare_prefixes_estimate(compare_addresses_estimate())),
    |called| compare_prefixes(called, compare_addresses(called)),
);

/// The same, with a text that is parsed first.
const CONTAINS_CIDR_TEXT: Cost = Cost::of_overload(
    |sizes| {
        let addresses = compare_addresses_estimate().plus(sizes.size(1).scale(model::TRAVERSAL));
        Estimate::of(compare_prefixes_estimate(addresses))
    },
    |called| {
        let addresses = compare_addresses(called).saturating_add(actual::scale(called.size(1), model::TRAVERSAL));
        compare_prefixes(called, addresses)
    },
);

pub(super) fn functions() -> Vec<Function> {
    let functions = vec![
        Function::new(
            "cidr",
            [Overload::global("string_to_cidr", [Type::String], cidr_type(), PARSE, |_, arguments| {
                parse_cidr(text(arguments, 0)?).map(|prefix| Value::opaque(Cidr(prefix)))
            })],
        ),
        Function::new(
            "containsCIDR",
            [
                Overload::member(
                    "cidr_contains_cidr_string",
                    [cidr_type(), Type::String],
                    Bool,
                    CONTAINS_CIDR_TEXT,
                    |_, arguments| {
                        let part = parse_cidr(text(arguments, 1)?)?;
                        Ok(Value::Bool(cidr(arguments, 0)?.contains_prefix(part)))
                    },
                )
                .formerly(32, |_, arguments| {
                    let part = parse_cidr(text(arguments, 1)?)?;
                    Ok(Value::Bool(contained_formerly(cidr(arguments, 0)?, part)))
                }),
                Overload::member(
                    "cidr_contains_cidr",
                    [cidr_type(), cidr_type()],
                    Bool,
                    CONTAINS_CIDR,
                    |_, arguments| Ok(Value::Bool(cidr(arguments, 0)?.contains_prefix(cidr(arguments, 1)?))),
                )
                .formerly(32, |_, arguments| {
                    Ok(Value::Bool(contained_formerly(cidr(arguments, 0)?, cidr(arguments, 1)?)))
                }),
            ],
        ),
        Function::new(
            "containsIP",
            [
                Overload::member(
                    "cidr_contains_ip_string",
                    [cidr_type(), Type::String],
                    Bool,
                    CONTAINS_IP_TEXT,
                    |_, arguments| {
                        // The reason why the text is not an address is not reported, unlike for prefixes.
                        let ip = parse_ip(text(arguments, 1)?).map_err(|_| EvalError::no_such_overload())?;
                        Ok(Value::Bool(cidr(arguments, 0)?.contains(ip)))
                    },
                ),
                Overload::member("cidr_contains_ip_ip", [cidr_type(), ip_type()], Bool, CONTAINS_IP, |_, arguments| {
                    Ok(Value::Bool(cidr(arguments, 0)?.contains(ip(arguments, 1)?)))
                }),
            ],
        ),
        Function::new(
            "family",
            [Overload::member("ip_family", [ip_type()], Int, Cost::One, |_, arguments| {
                Ok(Value::Int(if ip(arguments, 0)?.is_ipv4() { 4 } else { 6 }))
            })],
        ),
        Function::new(
            "ip",
            [
                Overload::global("string_to_ip", [Type::String], ip_type(), PARSE, |_, arguments| {
                    parse_ip(text(arguments, 0)?).map(|ip| Value::opaque(Ip(ip)))
                }),
                // Only a field of the parsed value.
                Overload::member("cidr_ip", [cidr_type()], ip_type(), Cost::One, |_, arguments| {
                    Ok(Value::opaque(Ip(cidr(arguments, 0)?.ip)))
                }),
            ],
        ),
        Function::new(
            "ip.isCanonical",
            [Overload::global("ip_is_canonical", [Type::String], Bool, IS_CANONICAL, |_, arguments| {
                let text = text(arguments, 0)?;
                Ok(Value::Bool(parse_ip(text)?.to_string() == text.as_str()))
            })],
        ),
        Function::new(
            "isCIDR",
            [Overload::global("is_cidr", [Type::String], Bool, PARSE, |_, arguments| {
                Ok(Value::Bool(parse_cidr(text(arguments, 0)?).is_ok()))
            })],
        ),
        Function::new(
            "isGlobalUnicast",
            [Overload::member("ip_is_global_unicast", [ip_type()], Bool, Cost::One, |_, arguments| {
                Ok(Value::Bool(is_global_unicast(ip(arguments, 0)?)))
            })],
        ),
        Function::new(
            "isIP",
            [Overload::global("is_ip", [Type::String], Bool, PARSE, |_, arguments| {
                Ok(Value::Bool(parse_ip(text(arguments, 0)?).is_ok()))
            })],
        ),
        Function::new(
            "isLinkLocalMulticast",
            [Overload::member("ip_is_link_local_multicast", [ip_type()], Bool, Cost::One, |_, arguments| {
                Ok(Value::Bool(is_link_local_multicast(ip(arguments, 0)?)))
            })],
        ),
        Function::new(
            "isLinkLocalUnicast",
            [Overload::member("ip_is_link_local_unicast", [ip_type()], Bool, Cost::One, |_, arguments| {
                Ok(Value::Bool(is_link_local_unicast(ip(arguments, 0)?)))
            })],
        ),
        Function::new(
            "isLoopback",
            [Overload::member("ip_is_loopback", [ip_type()], Bool, Cost::One, |_, arguments| {
                Ok(Value::Bool(ip(arguments, 0)?.is_loopback()))
            })],
        ),
        Function::new(
            "isUnspecified",
            [Overload::member("ip_is_unspecified", [ip_type()], Bool, Cost::One, |_, arguments| {
                Ok(Value::Bool(ip(arguments, 0)?.is_unspecified()))
            })],
        ),
        Function::new(
            "masked",
            [Overload::member("cidr_masked", [cidr_type()], cidr_type(), Cost::One, |_, arguments| {
                Ok(Value::opaque(Cidr(cidr(arguments, 0)?.masked())))
            })],
        ),
        Function::new(
            "prefixLength",
            [Overload::member("cidr_prefix_length", [cidr_type()], Int, Cost::One, |_, arguments| {
                Ok(Value::Int(i64::from(cidr(arguments, 0)?.bits)))
            })],
        ),
        Function::new(
            "string",
            [
                Overload::global("ip_to_string", [ip_type()], Type::String, Cost::One, |_, arguments| {
                    Ok(Value::string(ip(arguments, 0)?.to_string()))
                }),
                Overload::global("cidr_to_string", [cidr_type()], Type::String, Cost::One, |_, arguments| {
                    Ok(Value::string(cidr(arguments, 0)?.to_string()))
                }),
            ],
        ),
    ];
    since(30, functions)
}

fn ip_type() -> Type {
    Type::opaque("net.IP", Vec::new())
}

fn cidr_type() -> Type {
    Type::opaque("net.CIDR", Vec::new())
}

fn compare_addresses_estimate() -> Range {
    ADDRESS.plus(ADDRESS).scale(model::TRAVERSAL)
}

fn compare_addresses(called: &Called<'_, '_>) -> u64 {
    actual::scale(called.size(0).saturating_mul(2), model::TRAVERSAL)
}

fn compare_prefixes_estimate(addresses: Range) -> Range {
    addresses.plus(ADDRESS.scale(model::TRAVERSAL)).plus(Range::fixed(1))
}

fn compare_prefixes(called: &Called<'_, '_>, addresses: u64) -> u64 {
    addresses.saturating_add(actual::scale(called.size(0), model::TRAVERSAL)).saturating_add(1)
}

/// `net.IP`
#[derive(Debug)]
struct Ip(IpAddr);

impl Opaque for Ip {
    fn ty(&self) -> Type {
        ip_type()
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let Ip(other) = downcast(other)?;
        Some(self.0 == *other)
    }

    fn go_type(&self) -> &'static str {
        "cel.IP"
    }

    fn native(&self) -> (&'static str, String) {
        ("netip.Addr", address_syntax(self.0))
    }

    fn shown(&self) -> String {
        self.0.to_string()
    }

    fn as_key(&self) -> KeyKind {
        KeyKind::Content
    }

    fn size(&self) -> u64 {
        if self.0.is_ipv4() { 4 } else { 16 }
    }
}

/// Formats an address as Go's `%#v` does: an IPv4 address is in the last 32 bits.
fn address_syntax(address: IpAddr) -> String {
    let bits = match address {
        IpAddr::V4(address) => address.to_ipv6_mapped().to_bits(),
        IpAddr::V6(address) => address.to_bits(),
    };
    let (high, low) = (bits >> 64, bits & u128::from(u64::MAX));
    let detail = pointer_syntax("*netip.addrDetail");
    format!(
        "netip.Addr{{addr:netip.uint128{{hi:{high:#x}, lo:{low:#x}}}, \
         z:unique.Handle[net/netip.addrDetail]{{value:{detail}}}}}"
    )
}

/// `net.CIDR`
#[derive(Debug)]
struct Cidr(Prefix);

impl Opaque for Cidr {
    fn ty(&self) -> Type {
        cidr_type()
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let Cidr(other) = downcast(other)?;
        Some(self.0 == *other)
    }

    fn go_type(&self) -> &'static str {
        "cel.CIDR"
    }

    fn native(&self) -> (&'static str, String) {
        let (ip, bits) = (address_syntax(self.0.ip), u16::from(self.0.bits) + 1);
        ("netip.Prefix", format!("netip.Prefix{{ip:{ip}, bitsPlusOne:{bits:#x}}}"))
    }

    fn shown(&self) -> String {
        self.0.to_string()
    }

    fn as_key(&self) -> KeyKind {
        KeyKind::Content
    }

    /// The length of the prefix in bytes, rounded up.
    fn size(&self) -> u64 {
        u64::from(self.0.bits).div_ceil(8)
    }
}

/// `other` as a value of the type `T`, if it is one.
pub fn downcast<T: Opaque>(other: &dyn Opaque) -> Option<&T> {
    (other as &dyn std::any::Any).downcast_ref()
}

fn ip(arguments: &[Value<'_>], at: usize) -> Result<IpAddr, EvalError> {
    opaque::<Ip>(arguments, at).map(|Ip(ip)| *ip)
}

fn cidr(arguments: &[Value<'_>], at: usize) -> Result<Prefix, EvalError> {
    opaque::<Cidr>(arguments, at).map(|Cidr(prefix)| *prefix)
}

/// Whether the address is an IPv4-mapped IPv6 address.
fn is_mapped(ip: IpAddr) -> bool {
    matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some())
}

fn mapped(text: &str) -> EvalError {
    EvalError::new(format!("IPv4-mapped IPv6 address {} is not allowed", go_quote(text)))
}

fn parse_ip(text: &str) -> Result<IpAddr, EvalError> {
    let address = address::parse(text).map_err(|error| {
        EvalError::new(format!("IP Address {} parse error during conversion from string: {error}", go_quote(text)))
    })?;
    if address.zone.is_some() {
        return Err(EvalError::new(format!("IP address {} with zone value is not allowed", go_quote(text))));
    }
    if is_mapped(address.ip) { Err(mapped(text)) } else { Ok(address.ip) }
}

/// Parses a prefix. The message of an error has its introduction twice, as in the reference.
fn parse_cidr(text: &str) -> Result<Prefix, EvalError> {
    const WHERE: &str = "network address parse error during conversion from string: ";
    let prefix = Prefix::parse(text).map_err(|error| EvalError::new(format!("{WHERE}{WHERE}{error}")))?;
    if is_mapped(prefix.ip) { Err(EvalError::new(format!("{WHERE}{}", mapped(text)))) } else { Ok(prefix) }
}

fn is_link_local_unicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    }
}

fn is_link_local_multicast(ip: IpAddr) -> bool {
    match ip {
        IpAddr::V4(ip) => matches!(ip.octets(), [224, 0, 0, _]),
        IpAddr::V6(ip) => ip.segments()[0] & 0xff0f == 0xff02,
    }
}

fn is_global_unicast(ip: IpAddr) -> bool {
    let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
    !(is_broadcast || ip.is_unspecified() || ip.is_loopback() || ip.is_multicast() || is_link_local_unicast(ip))
}
