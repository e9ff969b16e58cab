//! Names of CSI drivers.

use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::meta::names;

const NAME_BYTES_MAX: usize = 63;

/// Validates the name of a CSI driver.
pub fn validate_name(name: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if name.is_empty() {
        errors.push(name.required(""));
        return errors;
    }
    if name.text().len() > NAME_BYTES_MAX {
        errors.push(name.too_long(NAME_BYTES_MAX as i64));
    }
    let faults = names::is_dns1123_subdomain(&name.text().to_lowercase()).into_iter();
    errors.extend(faults.map(|fault| name.invalid(fault)));
    errors
}
