//! Names around devices.

use std::collections::{BTreeMap, BTreeSet};

use crate::kinds::declared::identifier_faults;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

const DRIVER_BYTES_MAX: usize = 63;
const POOL_BYTES_MAX: usize = 253;
const UID_BYTES: usize = 36;

/// The name of a driver: a DNS name in any case.
pub fn driver_name(field: &FieldRef<'_>) -> ErrorList {
    driver_text(field, field.text())
}

fn driver_text(field: &FieldRef<'_>, name: &str) -> ErrorList {
    let mut errors = ErrorList::new();
    if name.is_empty() {
        errors.push(field.required(""));
    }
    if name.len() > DRIVER_BYTES_MAX {
        errors.push(field.too_long(DRIVER_BYTES_MAX as i64));
    }
    if !name.is_empty() {
        let faults = names::is_dns1123_subdomain(&name.to_lowercase()).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(field.path(), name, fault)));
    }
    errors
}

/// The name of a pool: DNS names, with slashes between them.
pub fn pool_name(field: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = field.text();
    if name.is_empty() {
        errors.push(field.required(""));
        return errors;
    }
    if name.len() > POOL_BYTES_MAX {
        errors.push(field.too_long(POOL_BYTES_MAX as i64));
    }
    for part in name.split('/') {
        let faults = names::is_dns1123_subdomain(part).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(field.path(), part, fault)));
    }
    errors
}

/// `DOMAIN/IDENTIFIER`, or an identifier in the domain of the driver.
pub fn qualified_name(field: &FieldRef<'_>, name: &str, needs_domain: bool) -> ErrorList {
    let mut errors = ErrorList::new();
    let parts: Vec<&str> = name.split('/').collect();
    match parts.as_slice() {
        [id] => errors.extend(identifier_faults(field, id)),
        [domain, id] => {
            match *domain {
                "" => errors.push(Error::invalid(field.path(), "", "the domain must not be empty")),
                domain => errors.extend(driver_text(field, domain)),
            }
            match *id {
                "" => errors.push(Error::invalid(field.path(), "", "the name must not be empty")),
                id => errors.extend(identifier_faults(field, id)),
            }
        }
        _ => {}
    }
    if needs_domain && parts.len() == 1 {
        let why = "a fully qualified name must be a domain and a name separated by a slash";
        errors.push(Error::invalid(field.path(), name, why));
    }
    errors
}

/// Texts that are keys of labels.
pub fn labels(field: &FieldRef<'_>) -> ErrorList {
    names::is_qualified_name(field.text()).into_iter().map(|fault| field.invalid(fault)).collect()
}

/// The name of a request of `known`, or of a request and of a request in it: `a/b`.
pub fn request_reference(field: &FieldRef<'_>, known: &Requests) -> ErrorList {
    const WHY: &str =
        "must be the name of a request in the claim or the name of a request and a subrequest separated by '/'";
    let mut errors = ErrorList::new();
    let name = field.text();
    let parts: Vec<&str> = name.split('/').collect();
    if parts.len() <= 2 {
        for part in &parts {
            let faults = names::is_dns1123_label(part).into_iter();
            errors.extend(faults.map(|fault| Error::invalid(field.path(), *part, fault)));
        }
    }
    if !known.have(&parts) {
        errors.push(field.invalid(WHY));
    }
    errors
}

/// The names of the requests of a claim, and of those in them.
pub struct Requests(BTreeMap<String, BTreeSet<String>>);

impl Requests {
    /// Of a `DeviceClaim`.
    pub fn of(claim: &Value) -> Self {
        let name = |request: &Value| request.str_at(&["name"]).to_owned();
        let inner = |request: &Value| request.items_at(&["firstAvailable"]).iter().map(name).collect();
        Requests(claim.items_at(&["requests"]).iter().map(|request| (name(request), inner(request))).collect())
    }

    fn have(&self, parts: &[&str]) -> bool {
        match parts {
            [request] => self.0.contains_key(*request),
            [request, inner] => self.0.get(*request).is_some_and(|known| known.contains(*inner)),
            _ => false,
        }
    }
}

/// A UUID in lower case.
pub fn uid(field: &FieldRef<'_>) -> Option<Error> {
    const FORM: &str = "uid must be in RFC 4122 normalized form, `xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx` with lowercase \
                        hexadecimal characters";
    let text = field.text();
    let why = match uuid_fault(text) {
        Some(fault) => format!("error validating uid: {fault}"),
        None if text.len() != UID_BYTES || text.bytes().any(|byte| byte.is_ascii_uppercase()) => FORM.to_owned(),
        None => return None,
    };
    Some(field.invalid(why))
}

/// Go's error for a text that is not a UUID.
fn uuid_fault(text: &str) -> Option<String> {
    const DASHES: [usize; 4] = [8, 13, 18, 23];
    let bytes = text.as_bytes();
    let digits = match bytes.len() {
        32 => return (!bytes.iter().all(u8::is_ascii_hexdigit)).then(|| "invalid UUID format".to_owned()),
        UID_BYTES => bytes,
        38 if bytes.first() == Some(&b'{') && bytes.last() == Some(&b'}') => bytes.get(1..37)?,
        38 => return Some("invalid bracketed UUID format".to_owned()),
        45 => match text.get(..9) {
            Some(prefix) if prefix.eq_ignore_ascii_case("urn:uuid:") => bytes.get(9..)?,
            prefix => {
                return Some(format!("invalid urn prefix: {}", crate::value::go_quote(prefix.unwrap_or_default())));
            }
        },
        length => return Some(format!("invalid UUID length: {length}")),
    };
    let is_fit = |(at, byte): (usize, &u8)| if DASHES.contains(&at) { *byte == b'-' } else { byte.is_ascii_hexdigit() };
    (!digits.iter().enumerate().all(is_fit)).then(|| "invalid UUID format".to_owned())
}
