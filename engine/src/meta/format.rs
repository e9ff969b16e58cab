//! `format` of texts and numbers: which formats are known, and which texts satisfy them.
//!
//! Kubernetes uses Go libraries to check them, so what counts is what these accept, leniencies included. A format that
//! is unknown, or does not match the type, is ignored.
//! Source: Kubernetes documentation, "Custom resource validation"; answers recorded from apiextensions-apiserver 1.37.

mod address;
mod email;

use std::sync::LazyLock;

use super::duration;
use super::minor::Minor;
use super::pattern::Pattern;
use super::url;

/// The version of Kubernetes that began to check whether formats match their types.
const TYPED_SINCE: Minor = Minor::of(36);

/// A format of texts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// `bsonobjectid`
    BsonObjectId,
    /// `byte`
    Byte,
    /// `cidr`
    Cidr,
    /// `creditcard`
    CreditCard,
    /// `date`
    Date,
    /// `datetime`
    DateTime,
    /// `duration`
    Duration,
    /// `email`
    Email,
    /// `hexcolor`
    HexColor,
    /// `hostname`
    Hostname,
    /// `ipv4`
    Ipv4,
    /// `ipv6`
    Ipv6,
    /// `isbn`
    Isbn,
    /// `isbn10`
    Isbn10,
    /// `isbn13`
    Isbn13,
    /// `k8s-long-name`
    LongName,
    /// `mac`
    Mac,
    /// `password`
    Password,
    /// `rgbcolor`
    RgbColor,
    /// `k8s-short-name`
    ShortName,
    /// `ssn`
    Ssn,
    /// `uri`
    Uri,
    /// `uuid`
    Uuid,
    /// `uuid3`
    Uuid3,
    /// `uuid4`
    Uuid4,
    /// `uuid5`
    Uuid5,
}

impl Format {
    /// The format of texts called `name`; hyphens don't matter.
    pub fn named(name: &str) -> Option<Self> {
        let stripped;
        let name = if !name.contains('-') {
            name
        } else {
            stripped = name.replace('-', "");
            &stripped
        };
        Some(match name {
            "bsonobjectid" => Format::BsonObjectId,
            "byte" => Format::Byte,
            "cidr" => Format::Cidr,
            "creditcard" => Format::CreditCard,
            "date" => Format::Date,
            "datetime" => Format::DateTime,
            "duration" => Format::Duration,
            "email" => Format::Email,
            "hexcolor" => Format::HexColor,
            "hostname" => Format::Hostname,
            "ipv4" => Format::Ipv4,
            "ipv6" => Format::Ipv6,
            "isbn" => Format::Isbn,
            "isbn10" => Format::Isbn10,
            "isbn13" => Format::Isbn13,
            "k8slongname" => Format::LongName,
            "mac" => Format::Mac,
            "password" => Format::Password,
            "rgbcolor" => Format::RgbColor,
            "k8sshortname" => Format::ShortName,
            "ssn" => Format::Ssn,
            "uri" => Format::Uri,
            "uuid" => Format::Uuid,
            "uuid3" => Format::Uuid3,
            "uuid4" => Format::Uuid4,
            "uuid5" => Format::Uuid5,
            _ => return None,
        })
    }

    /// `format` if it has a meaning for `type_`, else the empty text. Untyped values and int-or-string (`""`) have the
    /// formats of texts.
    ///
    /// Source: `pkg/apiserver/validation/formats.go` of apiextensions-apiserver, releases 1.29 to 1.37.
    pub fn effective<'f>(type_: &str, format: &'f str) -> &'f str {
        Format::effective_in(Minor::NEWEST, type_, format)
    }

    /// The same in that version of Kubernetes, which checks the formats that the version before it knows.
    pub fn effective_in<'f>(minor: Minor, type_: &str, format: &'f str) -> &'f str {
        let known = match type_ {
            _ if format.is_empty() => false,
            _ if minor < TYPED_SINCE => Format::named(format).is_some_and(|named| named.since() < minor),
            "" | "string" => Format::named(format).is_some_and(|named| named.since() < minor),
            "integer" => matches!(format, "int32" | "int64"),
            "number" => matches!(format, "float" | "double"),
            _ => false,
        };
        if known { format } else { "" }
    }

    /// The version of Kubernetes that added it; the next version checks it.
    pub fn since(self) -> Minor {
        match self {
            Format::LongName | Format::ShortName => Minor::of(34),
            _ => Minor::of(0),
        }
    }

    /// Whether `text` is in this format.
    pub fn accepts(self, text: &str) -> bool {
        match self {
            Format::BsonObjectId => text.len() == 24 && is_hex(text),
            Format::Byte => is_base64(text),
            Format::Cidr => address::is_cidr(text),
            Format::CreditCard => is_credit_card(text),
            Format::Date => is_date(text),
            Format::DateTime => is_date_time(text),
            Format::Duration => duration::parse_lenient(text).is_ok(),
            Format::Email => email::is_email(text),
            Format::HexColor => {
                let digits = text.strip_prefix('#').unwrap_or(text);
                matches!(digits.len(), 3 | 6) && is_hex(digits)
            }
            Format::Hostname => is_hostname(text),
            Format::Ipv4 => address::is_ipv4(text),
            Format::Ipv6 => address::is_ipv6(text),
            Format::Isbn => is_isbn10(text) || is_isbn13(text),
            Format::Isbn10 => is_isbn10(text),
            Format::Isbn13 => is_isbn13(text),
            Format::LongName => text.len() <= 253 && text.split('.').all(is_label),
            Format::Mac => address::is_mac(text),
            Format::Password => true,
            Format::RgbColor => is_rgb_color(text),
            Format::ShortName => text.len() <= 63 && is_label(text),
            Format::Ssn => is_ssn(text),
            Format::Uri => url::parse_request(text).is_ok(),
            Format::Uuid => is_uuid(text, None),
            Format::Uuid3 => is_uuid(text, Some(b'3')),
            Format::Uuid4 => is_uuid(text, Some(b'4')),
            Format::Uuid5 => is_uuid(text, Some(b'5')),
        }
    }
}

fn is_digits(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_digit())
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// Whitespace as `\s` defines it.
fn is_space(char: char) -> bool {
    matches!(char, '\t' | '\n' | '\x0c' | '\r' | ' ')
}

/// Standard alphabet with padding, without line breaks and not empty.
fn is_base64(text: &str) -> bool {
    let body = text.strip_suffix("==").or(text.strip_suffix('=')).unwrap_or(text);
    text.len().is_multiple_of(4)
        && !body.is_empty()
        && body.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'+' | b'/'))
}

/// Characters other than digits are skipped.
fn is_credit_card(text: &str) -> bool {
    let digits: String = text.chars().filter(char::is_ascii_digit).collect();
    let starts = |prefixes: &[&str]| prefixes.iter().any(|prefix| digits.starts_with(prefix));
    let issued = match digits.len() {
        13 => starts(&["4"]),
        14 => starts(&["300", "301", "302", "303", "304", "305", "36", "38"]),
        15 => starts(&["34", "37", "2131", "1800"]),
        16 => starts(&["4", "51", "52", "53", "54", "55", "6011", "65", "35"]),
        _ => false,
    };
    let checksum = digits.bytes().rev().enumerate().map(|(place, digit)| {
        let digit = u32::from(digit - b'0') * if place % 2 == 1 { 2 } else { 1 };
        digit / 10 + digit % 10
    });
    issued && checksum.sum::<u32>().is_multiple_of(10)
}

/// `2006-01-02`.
fn is_date(text: &str) -> bool {
    let &[y0, y1, y2, y3, b'-', m0, m1, b'-', d0, d1] = text.as_bytes() else { return false };
    let digits = [y0, y1, y2, y3, m0, m1, d0, d1];
    if !digits.iter().all(u8::is_ascii_digit) {
        return false;
    }
    let [y0, y1, y2, y3, m0, m1, d0, d1] = digits.map(|digit| i16::from(digit - b'0'));
    let year = y0 * 1000 + y1 * 100 + y2 * 10 + y3;
    let (month, day) = ((m0 * 10 + m1) as i8, (d0 * 10 + d1) as i8);
    jiff::civil::Date::new(year, month, day).is_ok()
}

/// A date, `t` in any case and a time with its zone; anything after a further `t` is ignored.
fn is_date_time(text: &str) -> bool {
    let text = text.to_ascii_lowercase();
    let mut parts = text.split('t');
    let (Some(date), Some(time)) = (parts.next(), parts.next()) else { return false };
    is_date(date) && is_time(time)
}

/// `15:04:05`, optionally a fraction after any character, and `z` or an offset of digits.
fn is_time(text: &str) -> bool {
    let two = |text: &str, max: &str| text.len() == 2 && is_digits(text) && text <= max;
    let (Some(clock), Some(rest)) = (text.get(..8), text.get(8..)) else { return false };
    let clock: Vec<&str> = clock.split(':').collect();
    let [hour, minute, second] = clock[..] else { return false };
    if !(two(hour, "23") && two(minute, "59") && two(second, "59")) {
        return false;
    }
    let is_zone = |zone: &str| match zone.as_bytes() {
        [b'z'] => true,
        [b'+' | b'-', h0, h1, b':', m0, m1] => [h0, h1, m0, m1].into_iter().all(u8::is_ascii_digit),
        _ => false,
    };
    let after_fraction = || {
        let mut chars = rest.chars();
        chars.next().filter(|char| *char != '\n')?;
        let fraction = chars.as_str();
        let after = fraction.trim_start_matches(|char: char| char.is_ascii_digit());
        (after.len() < fraction.len()).then_some(after)
    };
    is_zone(rest) || after_fraction().is_some_and(is_zone)
}

/// Letters and symbols of any script are allowed; so are labels like `a-`, in a name without dots.
fn is_hostname(text: &str) -> bool {
    const PATTERN: &str = "^([a-zA-Z0-9\\p{S}\\p{L}]((-?[a-zA-Z0-9\\p{S}\\p{L}]{0,62})?)|\
        ([a-zA-Z0-9\\p{S}\\p{L}](([a-zA-Z0-9-\\p{S}\\p{L}]{0,61}[a-zA-Z0-9\\p{S}\\p{L}])?)(\\.)){1,}\
        ([a-zA-Z\\p{L}]){2,63})$";
    static HOSTNAME: LazyLock<Pattern> = LazyLock::new(|| Pattern::new(PATTERN).expect("the pattern is constant"));
    text.len() <= 255 && text.split('.').all(|label| label.len() <= 63) && HOSTNAME.is_match(text)
}

/// The digits of an ISBN, without whitespace and hyphens.
fn isbn_digits(text: &str) -> String {
    text.chars().filter(|char| !is_space(*char) && *char != '-').collect()
}

fn is_isbn10(text: &str) -> bool {
    let digits = isbn_digits(text);
    let Some((front, last)) = digits.split_at_checked(9) else { return false };
    if !is_digits(front) {
        return false;
    }
    let last = match last.as_bytes() {
        [b'X'] => 10,
        [digit] if digit.is_ascii_digit() => u32::from(digit - b'0'),
        _ => return false,
    };
    let checksum: u32 = front.bytes().zip(1..).map(|(digit, weight)| u32::from(digit - b'0') * weight).sum();
    (checksum + 10 * last).is_multiple_of(11)
}

fn is_isbn13(text: &str) -> bool {
    let digits = isbn_digits(text);
    if digits.len() != 13 || !is_digits(&digits) {
        return false;
    }
    let weights = [1, 3].into_iter().cycle();
    let checksum: u32 = digits.bytes().zip(weights).map(|(digit, weight)| u32::from(digit - b'0') * weight).sum();
    checksum.is_multiple_of(10)
}

/// A DNS label in lower case, whatever its length.
fn is_label(text: &str) -> bool {
    !text.is_empty()
        && !text.starts_with('-')
        && !text.ends_with('-')
        && text.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-')
}

/// `rgb(1, 2, 3)`.
fn is_rgb_color(text: &str) -> bool {
    let Some(inner) = text.strip_prefix("rgb(").and_then(|rest| rest.strip_suffix(')')) else { return false };
    let is_part = |part: &str| {
        let number = part.trim_matches(is_space);
        !number.is_empty()
            && is_digits(number)
            && (number == "0" || !number.starts_with('0'))
            && number.parse::<u8>().is_ok()
    };
    let parts: Vec<&str> = inner.split(',').collect();
    parts.len() == 3 && parts.into_iter().all(is_part)
}

/// `123-45-6789`, also with spaces.
fn is_ssn(text: &str) -> bool {
    let is_pattern = |(place, byte): (usize, u8)| match place {
        3 | 6 => matches!(byte, b'-' | b' '),
        _ => byte.is_ascii_digit(),
    };
    text.len() == 11 && text.bytes().enumerate().all(is_pattern)
}

/// Hyphens are optional. In versions 4 and 5 the variant is checked, too.
fn is_uuid(text: &str, version: Option<u8>) -> bool {
    let mut rest = text.as_bytes();
    let mut digits = [0; 32];
    let mut filled = 0;
    for (group, length) in [8, 4, 4, 4, 12].into_iter().enumerate() {
        if group > 0 {
            rest = rest.strip_prefix(b"-").unwrap_or(rest);
        }
        let Some((part, after)) = rest.split_at_checked(length) else { return false };
        digits[filled..filled + length].copy_from_slice(part);
        filled += length;
        rest = after;
    }
    rest.is_empty()
        && digits.iter().all(u8::is_ascii_hexdigit)
        && version.is_none_or(|version| {
            let tells_variant = version == b'3' || matches!(digits[16].to_ascii_lowercase(), b'8' | b'9' | b'a' | b'b');
            digits[12] == version && tells_variant
        })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(format: &str, good: &[&str], bad: &[&str]) {
        let known = Format::named(format).expect(format);
        for text in good {
            assert!(known.accepts(text), "{text:?} is a {format}");
        }
        for text in bad {
            assert!(!known.accepts(text), "{text:?} is not of the format {format}");
        }
    }

    #[test]
    fn dates_and_times() {
        check("date", &["2024-02-29", "0000-01-01"], &["2023-02-29", "2024-2-9", "2024-13-01", ""]);
        let good =
            ["2024-02-29T23:59:59Z", "2024-02-29t00:00:00.5+25:99", "2024-02-29T10:00:00x5z", "2024-02-29T10:00:00ZTx"];
        check(
            "date-time",
            &good,
            &["2024-02-29 10:00:00Z", "2024-02-29T24:00:00Z", "2024-02-29T10:00:00", "2024-02-30T10:00:00Z"],
        );
        check(
            "duration",
            &["1h30m", "-1.5s", "0", ".5h", "in 2 days", "22 ns", "3 weeks"],
            &["", "1", "1 y", "h", "99999999999999999999 s"],
        );
    }

    #[test]
    fn addresses() {
        check("ipv4", &["1.2.3.4", "001.2.3.4", "::ffff:1.2.3.4"], &["1.2.3", "1.2.3.256", "::1"]);
        check("ipv6", &["::1", "::ffff:1.2.3.4", "1::"], &["1.2.3.4", ":::", "::00001", "fe80::1%eth0"]);
        check("cidr", &["10.0.0.0/8", "010.0.0.0/8", "::/0"], &["10.0.0.0", "10.0.0.0/33", "10.0.0.0/"]);
        check(
            "mac",
            &["01:23:45:67:89:ab", "0123.4567.89ab", "0123456789ab"],
            &["01:23:45:67:89", "01:23-45:67:89:ab"],
        );
        check("hostname", &["a", "example.com", "a-", "münchen.de"], &["", "a_b", "-a", "a.1"]);
    }

    #[test]
    fn mail_addresses_are_what_go_parses() {
        let good = ["a@b", "A B <a@b.c>", "\"a b\"@c", "a@[1.2.3.4]", "a@b (c)", "=?utf-8?q?x?= <a@b>", "g: a@b;"];
        check("email", &good, &["", "a", "a@", "@b", ".a@b", "a@b.", "a@b, c@d", "=?x?q?x?= <a@b>", "g: a@b, c@d;"]);
    }

    #[test]
    fn uris_are_absolute_or_paths() {
        let good = ["/a", "http://a/b?c#d", "mailto:x", "*", "http://[::1]:80/", "http://a@b:c@d/", "x://a:b:1/"];
        check(
            "uri",
            &good,
            &["", "a", "http://a b/", "http://[1.2.3.4]/", "http://a:b/", "/%zz", "http://a:1:2/", ":a"],
        );
    }

    #[test]
    fn numbers_with_checksums() {
        check("isbn", &["0321751043", "978-0321751041", "0-8044-2957-X"], &["0321751044", "9780321751042", "X"]);
        check("creditcard", &["4111 1111 1111 1111", "378282246310005"], &["4111111111111112", "1234"]);
        check("ssn", &["123-45-6789", "123 45-6789"], &["123456789", "123-45-678a"]);
    }

    #[test]
    fn codes() {
        check("uuid", &["123E4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000"], &["123e4567"]);
        check("uuid4", &["123e4567-e89b-42d3-a456-426614174000"], &["123e4567-e89b-12d3-a456-426614174000"]);
        check("byte", &["YQ==", "YWI=", "YWJj"], &["", "YQ", "YQ=", "YQ-="]);
        check("hexcolor", &["#fff", "00FF00"], &["#ff", "#gggggg"]);
        check("rgbcolor", &["rgb(0,255, 9 )"], &["rgb(256,0,0)", "rgb(00,0,0)", "rgb(0,0)"]);
        check("bsonobjectid", &["0123456789abcdefABCDEF01"], &["0123456789abcdef"]);
        check("k8s-short-name", &["a-1"], &["", "A", "-a", "a."]);
        check("k8s-long-name", &["a.b-1"], &["a..b", "a-.b"]);
    }

    #[test]
    fn a_format_that_does_not_go_with_the_type_means_nothing() {
        assert_eq!(Format::effective("string", "date-time"), "date-time");
        assert_eq!(Format::effective("", "date"), "date");
        assert_eq!(Format::effective("string", "int32"), "");
        assert_eq!(Format::effective("integer", "int32"), "int32");
        assert_eq!(Format::effective("object", "date"), "");
        assert_eq!(Format::effective("string", "nonsense"), "");
    }
}
