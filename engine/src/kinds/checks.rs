//! Checks that the validation of many kinds has in common, in Kubernetes' words.
//!
//! Source: `apimachinery/pkg/api/validation` and `pkg/apis/core/validation`, release 1.37.

use std::net::IpAddr;

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::{address, names};
use crate::value::go_quote;

use super::semantic;

/// A number must not be negative.
pub fn not_negative(field: &FieldRef<'_>) -> Option<Error> {
    (field.int() < 0).then(|| field.invalid("must be greater than or equal to 0"))
}

/// The field must be as it was.
pub fn unchanged(new: &FieldRef<'_>, old: &FieldRef<'_>) -> Option<Error> {
    (new.value() != old.value()).then(|| new.invalid("field is immutable"))
}

/// [`unchanged`] for a text of a named type, which Go shows as JSON.
pub fn unchanged_as_json(new: &FieldRef<'_>, old: &FieldRef<'_>) -> Option<Error> {
    (new.value() != old.value()).then(|| new.invalid_as_json("field is immutable"))
}

/// [`unchanged`] for a field that is null if absent: a pointer, a list or a map.
pub fn unchanged_or_null(new: &FieldRef<'_>, old: &FieldRef<'_>) -> Option<Error> {
    let is_same = semantic::equal_untyped(new.value(), old.value());
    (!is_same).then(|| new.invalid_or_null("field is immutable"))
}

/// A text must be one of `supported`.
pub fn one_of(field: &FieldRef<'_>, supported: &[&str]) -> Option<Error> {
    (!supported.contains(&field.text())).then(|| field.not_supported(supported))
}

/// A text must be there, and one of `supported`.
pub fn required_one_of(field: &FieldRef<'_>, supported: &[&str]) -> Option<Error> {
    if field.text().is_empty() { Some(field.required("")) } else { one_of(field, supported) }
}

/// An address in a field that once took more texts than are addresses today; `is_lenient` says that it takes them still.
pub fn legacy_ip(field: &FieldRef<'_>, is_lenient: bool) -> Option<Error> {
    let Some(ip) = address::parse_sloppy(field.text()) else {
        return Some(field.invalid("must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"));
    };
    let is_mapped = matches!(ip, IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some());
    if is_lenient {
        None
    } else if address::parse(field.text()).is_err() {
        Some(field.invalid("must not have leading 0s"))
    } else if is_mapped {
        Some(field.invalid("must not be an IPv4-mapped IPv6 address"))
    } else {
        None
    }
}

/// The warning for an address that is not in the canonical form.
pub fn ip_warning(field: &FieldRef<'_>) -> Option<String> {
    let (path, text) = (field.path(), field.text());
    let ip = address::parse_sloppy(text)?;
    match address::parse(text).map(|address| address.ip) {
        Ok(IpAddr::V6(plain)) if plain.to_ipv4_mapped().is_none() => (plain.to_string() != text).then(|| {
            format!("{path}: IPv6 address {} should be in RFC 5952 canonical format (\"{plain}\")", go_quote(text))
        }),
        Ok(IpAddr::V4(_)) => None,
        _ => {
            let preferred = ip.to_canonical();
            Some(format!("{path}: non-standard IP address {} is invalid: use \"{preferred}\"", go_quote(text)))
        }
    }
}

/// A text that `check` has nothing against.
pub fn named(field: &FieldRef<'_>, check: fn(&str) -> Vec<String>) -> ErrorList {
    check(field.text()).into_iter().map(|fault| field.invalid(fault)).collect()
}

/// A port's number.
pub fn port_number(field: &FieldRef<'_>) -> Option<Error> {
    (!(1..=65535).contains(&field.int())).then(|| field.invalid("must be between 1 and 65535, inclusive"))
}

/// A text that must be there and be a DNS-1123 label.
pub fn required_label(field: &FieldRef<'_>) -> ErrorList {
    if field.text().is_empty() {
        return [field.required("")].into_iter().collect();
    }
    named(field, names::is_dns1123_label)
}

/// The fields of `holder` that must be there: texts, lists or maps that are not empty.
pub fn required_fields(holder: &FieldRef<'_>, names: &[&str]) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in names {
        let field = holder.field(name);
        if field.is_empty() {
            errors.push(field.required(""));
        }
    }
    errors
}
