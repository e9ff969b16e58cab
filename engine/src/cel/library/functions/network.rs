//! Addresses and prefixes of the Internet: `ip(…)` and `cidr(…)`.

use std::net::IpAddr;

use super::arguments::{opaque, text};
use crate::cel::eval::value::{KeyKind, Opaque};
use crate::cel::eval::{EvalError, Function, Value};
use crate::cel::types::Type;
use crate::meta::address::{self, Prefix};
use crate::value::go_quote;

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "string_to_ip" => |_, arguments| parse_ip(text(arguments, 0)?).map(|ip| Value::opaque(Ip(ip))),
        "is_ip" => |_, arguments| Ok(Value::Bool(parse_ip(text(arguments, 0)?).is_ok())),
        "ip_is_canonical" => |_, arguments| {
            let text = text(arguments, 0)?;
            Ok(Value::Bool(parse_ip(text)?.to_string() == text.as_str()))
        },
        "ip_family" => |_, arguments| Ok(Value::Int(if ip(arguments, 0)?.is_ipv4() { 4 } else { 6 })),
        "ip_is_unspecified" => |_, arguments| Ok(Value::Bool(ip(arguments, 0)?.is_unspecified())),
        "ip_is_loopback" => |_, arguments| Ok(Value::Bool(ip(arguments, 0)?.is_loopback())),
        "ip_is_link_local_multicast" => |_, arguments| Ok(Value::Bool(is_link_local_multicast(ip(arguments, 0)?))),
        "ip_is_link_local_unicast" => |_, arguments| Ok(Value::Bool(is_link_local_unicast(ip(arguments, 0)?))),
        "ip_is_global_unicast" => |_, arguments| Ok(Value::Bool(is_global_unicast(ip(arguments, 0)?))),
        "ip_to_string" => |_, arguments| Ok(Value::string(ip(arguments, 0)?.to_string())),
        "string_to_cidr" => |_, arguments| parse_cidr(text(arguments, 0)?).map(|prefix| Value::opaque(Cidr(prefix))),
        "is_cidr" => |_, arguments| Ok(Value::Bool(parse_cidr(text(arguments, 0)?).is_ok())),
        "cidr_contains_ip_string" => |_, arguments| {
            // Why the text is no address gets lost, unlike with prefixes.
            let ip = parse_ip(text(arguments, 1)?).map_err(|_| EvalError::no_such_overload())?;
            Ok(Value::Bool(cidr(arguments, 0)?.contains(ip)))
        },
        "cidr_contains_ip_ip" => |_, arguments| Ok(Value::Bool(cidr(arguments, 0)?.contains(ip(arguments, 1)?))),
        "cidr_contains_cidr_string" => |_, arguments| {
            let part = parse_cidr(text(arguments, 1)?)?;
            Ok(Value::Bool(cidr(arguments, 0)?.contains_prefix(part)))
        },
        "cidr_contains_cidr" => {
            |_, arguments| Ok(Value::Bool(cidr(arguments, 0)?.contains_prefix(cidr(arguments, 1)?)))
        }
        "cidr_ip" => |_, arguments| Ok(Value::opaque(Ip(cidr(arguments, 0)?.ip))),
        "cidr_masked" => |_, arguments| Ok(Value::opaque(Cidr(cidr(arguments, 0)?.masked()))),
        "cidr_prefix_length" => |_, arguments| Ok(Value::Int(i64::from(cidr(arguments, 0)?.bits))),
        "cidr_to_string" => |_, arguments| Ok(Value::string(cidr(arguments, 0)?.to_string())),
        _ => return None,
    })
}

/// `net.IP`
#[derive(Debug)]
struct Ip(IpAddr);

impl Opaque for Ip {
    fn ty(&self) -> Type {
        Type::opaque("net.IP", Vec::new())
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let Ip(other) = downcast(other)?;
        Some(self.0 == *other)
    }

    fn go_type(&self) -> &'static str {
        "cel.IP"
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

/// `net.CIDR`
#[derive(Debug)]
struct Cidr(Prefix);

impl Opaque for Cidr {
    fn ty(&self) -> Type {
        Type::opaque("net.CIDR", Vec::new())
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let Cidr(other) = downcast(other)?;
        Some(self.0 == *other)
    }

    fn go_type(&self) -> &'static str {
        "cel.CIDR"
    }

    fn shown(&self) -> String {
        self.0.to_string()
    }

    fn as_key(&self) -> KeyKind {
        KeyKind::Content
    }

    /// Bytes of the prefix.
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

/// An IPv6 address that stands for an IPv4 one.
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

/// The text of an error says so twice.
fn parse_cidr(text: &str) -> Result<Prefix, EvalError> {
    const WHERE: &str = "network address parse error during conversion from string: ";
    let prefix = Prefix::parse(text).map_err(|error| EvalError::new(format!("{WHERE}{WHERE}{error}")))?;
    match is_mapped(prefix.ip) {
        true => Err(EvalError::new(format!("{WHERE}{}", mapped(text)))),
        false => Ok(prefix),
    }
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
