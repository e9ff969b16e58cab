//! The formats of texts that a marker names: `+k8s:format=k8s-long-name`.
//!
//! Input: the name of the format, and a field with a text. Output: the errors.
//!
//! Source: `pkg/api/validate/strfmt.go` of apimachinery, release 1.37.

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;

const POOL_BYTES_MAX: usize = 253;
const DOMAIN_BYTES_MAX: usize = 63;
const IDENTIFIER_BYTES_MAX: usize = 32;

/// The errors of a text's format; none if the format has no rule here.
pub(super) fn faults(format: &str, field: &FieldRef<'_>) -> ErrorList {
    let text = field.text();
    let faults = match format {
        "k8s-short-name" => names::is_short_name(text),
        "k8s-long-name" => names::is_long_name(text),
        "k8s-long-name-caseless" => names::is_dns1123_subdomain_caseless(text),
        "k8s-label-key" => names::is_qualified_name(text),
        "k8s-prefixed-label-key" => prefixed_key_faults(text),
        "k8s-path-segment-name" => names::is_path_segment(text, false),
        "k8s-resource-pool-name" => return pool_name_faults(field),
        "k8s-resource-fully-qualified-name" => return qualified_name_faults(field),
        "k8s-uuid" if !is_uuid(text) => vec!["must be a lowercase UUID in 8-4-4-4-12 format".to_owned()],
        _ => Vec::new(),
    };
    faults.into_iter().map(|fault| field.invalid(fault)).collect()
}

/// The key of a label that has a domain.
fn prefixed_key_faults(text: &str) -> Vec<String> {
    let faults = names::is_qualified_name(text);
    if faults.is_empty() && !text.contains('/') {
        return vec!["must include a prefix (e.g. 'example.com/key')".to_owned()];
    }
    faults
}

/// DNS names with slashes between them.
fn pool_name_faults(pool: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if pool.text().len() > POOL_BYTES_MAX {
        errors.push(pool.too_long(POOL_BYTES_MAX as i64));
    }
    for (at, part) in pool.text().split('/').enumerate() {
        if part.is_empty() {
            errors.push(pool.invalid(format!("segment {at}: must not be empty")));
            continue;
        }
        let faults = names::is_long_name(part).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(pool.path(), part, format!("segment {at}: {fault}"))));
    }
    errors
}

/// A domain, a slash and an identifier.
fn qualified_name_faults(field: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let invalid = |part: &str, fault: String| Error::invalid(field.path(), part, fault);
    let (domain, name) = match field.text().split('/').collect::<Vec<_>>()[..] {
        [name] => (None, Some(name)),
        [domain, name] => (Some(domain), Some(name)),
        _ => (None, None),
    };
    match domain {
        None => {}
        Some("") => errors.push(invalid("", "prefix must not be empty".to_owned())),
        Some(domain) => {
            errors.extend((domain.len() > DOMAIN_BYTES_MAX).then(|| field.too_long(DOMAIN_BYTES_MAX as i64)));
            let faults = names::is_long_name(domain).into_iter();
            errors.extend(faults.map(|fault| invalid(domain, format!("prefix: {fault}"))));
        }
    }
    match name {
        None => {}
        Some("") if domain.is_some() => errors.push(invalid("", "name must not be empty".to_owned())),
        Some(name) => errors.extend(identifier_faults(field, name)),
    }
    if !field.text().contains('/') {
        errors.push(field.invalid("a fully qualified name must be a domain and a name separated by a slash"));
    }
    errors
}

/// The identifier in the text of a field.
pub fn identifier_faults(field: &FieldRef<'_>, name: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    if name.len() > IDENTIFIER_BYTES_MAX {
        errors.push(field.too_long(IDENTIFIER_BYTES_MAX as i64));
    }
    errors.extend(names::is_c_identifier(name).into_iter().map(|fault| Error::invalid(field.path(), name, fault)));
    errors
}

fn is_uuid(text: &str) -> bool {
    const LENGTHS: [usize; 5] = [8, 4, 4, 4, 12];
    let is_part = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let parts: Vec<&str> = text.split('-').collect();
    parts.iter().map(|part| part.len()).eq(LENGTHS) && parts.iter().all(|part| is_part(part))
}
