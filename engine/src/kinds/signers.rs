//! The names of certificate signers and of their trust bundles.
//!
//! Source: `pkg/apis/core/validation/names.go` of Kubernetes 1.36.

use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::go_quote;

const DOMAIN_BYTES_MAX: usize = 253;
/// The maximum length of a signer's name: a domain, a slash, and a namespace and a name with a dot between them.
const NAME_BYTES_MAX: usize = DOMAIN_BYTES_MAX + 1 + 253 + 63 + 1;

/// Whether the name is reserved for Kubernetes itself.
pub fn is_of_kubernetes(name: &str) -> bool {
    let host = name.split_once('/').map_or(name, |(host, _)| host);
    host == "kubernetes.io" || host.ends_with(".kubernetes.io")
}

/// Validates the name of a signer, `example.com/signer-name`.
pub fn validate_name(field: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if field.is_empty() {
        errors.push(field.required(""));
        return errors;
    }
    let Some((domain, path)) = field.text().split_once('/').filter(|(_, path)| !path.contains('/')) else {
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
    if field.text().len() > NAME_BYTES_MAX {
        errors.push(field.too_long(NAME_BYTES_MAX as i64));
    }
    errors
}

/// The faults of the first dot-separated part that has any.
fn validate_labels(field: &FieldRef<'_>, segment: &str, check: fn(&str) -> Vec<String>) -> ErrorList {
    let faults = segment.split('.').map(|label| (label, check(label))).find(|(_, faults)| !faults.is_empty());
    let (label, faults) = faults.unwrap_or_default();
    let why = |fault: String| format!("validating label {}: {fault}", go_quote(label));
    faults.into_iter().map(|fault| Error::invalid(field.path(), segment, why(fault))).collect()
}

/// The faults of a trust bundle's name: `NAME`, or `example.com:signer:NAME`.
pub fn trust_bundle_name(name: &str) -> Vec<String> {
    let Some((prefix, own)) = name.rsplit_once(':') else { return names::is_dns1123_subdomain(name) };
    if prefix.is_empty() {
        return vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()];
    }
    if prefix.contains('/') {
        let (signer, prefix) = (prefix.replace(':', "/"), prefix.replace('/', ":"));
        return vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}:")];
    }
    names::is_dns1123_subdomain(own)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::field::Path;
    use crate::value::Value;

    #[test]
    fn signers_have_a_domain_and_a_path() {
        let faults = |name: &str| {
            let value = Value::from(name);
            let errors = validate_name(&FieldRef::new(Some(&value), Path::new("signerName")));
            errors.into_vec().into_iter().map(|error| error.to_string()).collect::<Vec<_>>()
        };
        assert!(faults("example.com/a.b").is_empty());
        assert_eq!(faults(""), ["signerName: Required value"]);
        let domain =
            "signerName: Invalid value: \"com\": should be a domain with at least two segments separated by dots";
        assert_eq!(faults("com/a"), [domain]);
        let form = "must be a fully qualified domain and path of the form 'example.com/signer-name'";
        assert_eq!(faults("example.com"), [format!("signerName: Invalid value: \"example.com\": {form}")]);
        assert!(
            faults("A.b/c")[0].starts_with("signerName: Invalid value: \"A.b\": validating label \"A\": a lowercase")
        );
        assert!(
            faults("a.b/A")[0].starts_with("signerName: Invalid value: \"A\": validating label \"A\": a lowercase")
        );
        assert!(faults("a.b/c/d")[0].ends_with("of the form 'example.com/signer-name'"));
    }
}
