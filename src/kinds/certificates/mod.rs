//! What the kinds of certificates.k8s.io share: names of signers, PEM, and requests by PKCS#10.
//!
//! Source: `pkg/apis/certificates` and `pkg/apis/core/validation/names.go`, release 1.37.

mod pem;
mod request;

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::go_quote;

pub use pem::{Block, blocks};
pub use request::{Request, is_authority, is_certificate};

const DOMAIN_BYTES_MAX: usize = 253;
const NAME_BYTES_MAX: usize = DOMAIN_BYTES_MAX + 1 + 253 + 63 + 1;

/// Who signs: `DOMAIN/NAME`.
pub fn validate_signer_name(field: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = field.text();
    if name.is_empty() {
        errors.push(field.required(""));
        return errors;
    }
    let Some((domain, path)) = name.split_once('/').filter(|(_, path)| !path.contains('/')) else {
        let why = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        errors.push(field.invalid(why));
        return errors;
    };
    if domain.len() > DOMAIN_BYTES_MAX {
        errors.push(field.too_long(DOMAIN_BYTES_MAX as i64));
    }
    errors.extend(validate_labels(field, domain, names::is_dns1123_label));
    if !domain.contains('.') {
        let why = "should be a domain with at least two segments separated by dots";
        errors.push(Error::invalid(field.path(), domain, why));
    }
    errors.extend(validate_labels(field, path, names::is_dns1123_subdomain));
    if name.len() > NAME_BYTES_MAX {
        errors.push(field.too_long(NAME_BYTES_MAX as i64));
    }
    errors
}

/// The faults of the first label that has any.
fn validate_labels(field: &FieldRef<'_>, text: &str, check: fn(&str) -> Vec<String>) -> ErrorList {
    let faulty = text.split('.').map(|label| (label, check(label))).find(|(_, faults)| !faults.is_empty());
    let (label, faults) = faulty.unwrap_or_default();
    let told = |fault| Error::invalid(field.path(), text, format!("validating label {}: {fault}", go_quote(label)));
    faults.into_iter().map(told).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::Value;

    fn faults(name: &str) -> String {
        let object = crate::object! { "spec" => crate::object! { "signerName" => Value::from(name) } };
        let root = FieldRef::root(&object);
        let spec = root.field("spec");
        let errors = validate_signer_name(&spec.field("signerName"));
        errors.iter().map(ToString::to_string).collect::<Vec<_>>().join("; ")
    }

    #[test]
    fn a_signer_has_a_domain_and_a_name() {
        assert_eq!(faults("example.com/signer"), "");
        assert_eq!(faults(""), "spec.signerName: Required value");
        let form = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        assert_eq!(faults("example.com"), format!("spec.signerName: Invalid value: \"example.com\": {form}"));
        assert_eq!(
            faults("com/a"),
            "spec.signerName: Invalid value: \"com\": should be a domain with at least two segments separated by dots"
        );
        assert!(
            faults("A.b/c").starts_with("spec.signerName: Invalid value: \"A.b\": validating label \"A\": a lowercase")
        );
    }
}
