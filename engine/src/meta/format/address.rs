//! IP addresses and MAC addresses.

use std::net::IpAddr;

/// Numbers may have leading zeros. An IPv6 address with an IPv4 tail counts, too, as it has dots.
pub fn is_ipv4(text: &str) -> bool {
    if !text.contains('.') {
        return false;
    }
    match text.find(['.', ':']).map(|at| text.as_bytes()[at]) {
        Some(b':') => is_loose_ipv6(text),
        _ => is_loose_ipv4(text),
    }
}

pub fn is_ipv6(text: &str) -> bool {
    text.contains(':') && text.parse::<IpAddr>().is_ok()
}

pub fn is_ip(text: &str) -> bool {
    text.parse::<IpAddr>().is_ok()
}

/// `10.0.0.0/8`, also with leading zeros.
pub fn is_cidr(text: &str) -> bool {
    let Some((address, bits)) = text.split_once('/') else { return false };
    let bits_max = if is_loose_ipv4(address) {
        32
    } else if is_loose_ipv6(address) {
        128
    } else {
        return false;
    };
    leading_number(bits, 10).is_some_and(|(bits, rest)| rest.is_empty() && bits <= bits_max)
}

/// Six, eight or twenty bytes in hexadecimal: in pairs separated by `:` or `-`, in groups of four separated by `.`, or
/// without separators.
pub fn is_mac(text: &str) -> bool {
    let bytes = text.as_bytes();
    let (group, separator) = match bytes {
        _ if bytes.len() < 12 => return false,
        [_, _, separator @ (b':' | b'-'), ..] => (2, Some(*separator)),
        [_, _, _, _, b'.', ..] => (4, Some(b'.')),
        _ => (bytes.len(), None),
    };
    let stride = group + usize::from(separator.is_some());
    let digits = bytes.iter().enumerate().filter(|(place, _)| place % stride < group);
    let separators = bytes.iter().enumerate().filter(|(place, _)| place % stride == group);
    let digits: Vec<u8> = digits.map(|(_, byte)| *byte).collect();
    matches!(digits.len(), 12 | 16 | 40)
        && (separator.is_none() || (bytes.len() + 1).is_multiple_of(stride))
        && digits.iter().all(u8::is_ascii_hexdigit)
        && separators.into_iter().all(|(_, byte)| Some(*byte) == separator)
}

/// The number at the start of `text`, below 2^24, and the rest.
fn leading_number(text: &str, radix: u32) -> Option<(u32, &str)> {
    let mut number = 0;
    let mut end = 0;
    for digit in text.chars().map_while(|char| char.to_digit(radix)) {
        number = number * radix + digit;
        end += 1;
        if number >= 0xff_ffff {
            return None;
        }
    }
    (end > 0).then(|| (number, &text[end..]))
}

fn is_loose_ipv4(text: &str) -> bool {
    let mut parts = 0;
    let fits = text.split('.').all(|part| {
        parts += 1;
        leading_number(part, 10).is_some_and(|(number, rest)| rest.is_empty() && number <= 0xff)
    });
    fits && parts == 4
}

fn is_loose_ipv6(text: &str) -> bool {
    let (mut rest, mut bytes) = (text, 0);
    let mut gap = text.starts_with("::");
    if gap {
        rest = &text[2..];
        if rest.is_empty() {
            return true;
        }
    }
    while bytes < 16 {
        let Some((number, after)) = leading_number(rest, 16) else { return false };
        if number > 0xffff {
            return false;
        }
        if after.starts_with('.') {
            if !gap && bytes != 12 || bytes > 12 || !is_loose_ipv4(rest) {
                return false;
            }
            rest = "";
            bytes += 4;
            break;
        }
        bytes += 2;
        rest = after;
        if rest.is_empty() {
            break;
        }
        let Some(after) = rest.strip_prefix(':').filter(|after| !after.is_empty()) else { return false };
        rest = after;
        if let Some(after) = rest.strip_prefix(':') {
            if gap {
                return false;
            }
            gap = true;
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
    }
    // A gap stands for at least one group.
    rest.is_empty() && (bytes < 16) == gap
}
