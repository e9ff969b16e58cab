//! ClusterTrustBundle, certificates.k8s.io/v1 and v1beta1, and v1alpha1 in older minor versions: the trust anchors for
//! a signer's certificates.
//!
//! Source: `pkg/apis/certificates/validation` and `pkg/registry/certificates/clustertrustbundle`, release 1.37.

use std::collections::BTreeMap;

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::certificates::{blocks, is_authority, is_certificate};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, checks, metadata, signers};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::names;
use crate::value::Value;

const BUNDLE_BYTES_MAX: usize = 1 << 20;

pub static KINDS: [&Kind; 3] = [&V1, &V1BETA1, &V1ALPHA1];

static V1: Kind = form("v1", true);
static V1BETA1: Kind = form("v1beta1", false);
static V1ALPHA1: Kind = form("v1beta1", false).former("v1alpha1");

const fn form(version: &'static str, is_default: bool) -> Kind {
    Kind {
        plural: "clustertrustbundles",
        singular: "clustertrustbundle",
        scope: Scope::Cluster,
        selectable_fields: &[".spec.signerName"],
        example: EXAMPLE,
        forms: &KINDS,
        is_default,
        gate: Some(Gate::ClusterTrustBundle),
        ..Kind::new("certificates.k8s.io", version, "ClusterTrustBundle", &ClusterTrustBundle)
    }
}

/// A bundle of one certificate.
const EXAMPLE: &str = "\
metadata:
  name: example
spec:
  trustBundle: |
    -----BEGIN CERTIFICATE-----
    MIIBbjCCARWgAwIBAgIUGIqBdyTpJLVhY9XmYAxJLI8AjCAwCgYIKoZIzj0EAwIw
    DDEKMAgGA1UEAwwBYTAgFw0yNjExMjIxNjQyMjJaGA8yMTI2MTAyOTE2NDIyMlow
    DDEKMAgGA1UEAwwBYTBZMBMGByqGSM49AgEGCCqGSM49AwEHA0IABJ+a86XxGZce
    MVVj3pWHgSStqBOO2oqVO+PnyZeLflusL+GV6BVlo7bpboCexVRdtiKZpDku6cO/
    6iezN+hSj1ejUzBRMB0GA1UdDgQWBBSlUf22NvhxJT7zkCeaVpNVIDwkPTAfBgNV
    HSMEGDAWgBSlUf22NvhxJT7zkCeaVpNVIDwkPTAPBgNVHRMBAf8EBTADAQH/MAoG
    CCqGSM49BAMCA0cAMEQCIFA7aZr/ZGmDZrPWHSbFvyufX9bjGKBd+8qFb2SRdYW7
    AiBtXOwSvauywQPZs4lk53hQXnLMURecQAQB2D/8WY0YDw==
    -----END CERTIFICATE-----
";

struct ClusterTrustBundle;

impl Strategy for ClusterTrustBundle {
    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        validate(object, true)
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let bundle = |object: &Value| object.str_at(&["spec", "trustBundle"]).to_owned();
        let mut errors = validate(new, bundle(new) != bundle(old));
        errors.extend(metadata::validate_update(new, old));
        let (new, old) = (FieldRef::root(new), FieldRef::root(old));
        let (new, old) = (new.field("spec"), old.field("spec"));
        errors.extend(checks::unchanged(&new.field("signerName"), &old.field("signerName")));
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn lists_field_labels(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let name = Column { format: "name".to_owned(), ..Column::string("Name", "") };
        Some(Table { columns: vec![name, Column::string("SignerName", "")], cells })
    }
}

fn cells(object: &Value) -> Vec<Cell> {
    let signer = Some(object.str_at(&["spec", "signerName"])).filter(|name| !name.is_empty());
    vec![Cell::text(object.str_at(&["metadata", "name"])), Cell::text(signer.unwrap_or("<none>"))]
}

fn validate(object: &Value, parses: bool) -> ErrorList {
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let signer = spec.field("signerName");
    let mut errors = metadata::validate(object, false, |name, is_prefix| name_faults(name, is_prefix, signer.text()));
    if !signer.text().is_empty() {
        errors.extend(signers::validate_name(&signer));
    }
    if parses {
        errors.extend(validate_bundle(&spec.field("trustBundle")));
    }
    errors
}

/// The faults of a bundle's name, or of a prefix of it: the bundle of a signer has the signer's name before its own.
fn name_faults(name: &str, is_prefix: bool, signer: &str) -> Vec<String> {
    if signer.is_empty() {
        if name.contains(':') {
            return vec!["ClusterTrustBundle without signer name must not have \":\" in its name".to_owned()];
        }
        return names::name_is_dns1123_subdomain(name, is_prefix);
    }
    let prefix = format!("{}:", signer.replace('/', ":"));
    match name.strip_prefix(&prefix) {
        Some(rest) => names::name_is_dns1123_subdomain(rest, is_prefix),
        None => vec![format!("ClusterTrustBundle for signerName {signer} must be named with prefix {prefix}")],
    }
}

fn validate_bundle(bundle: &FieldRef<'_>) -> ErrorList {
    let invalid = |why: String| Error::invalid(bundle.path(), "<value omitted>", why);
    let mut errors = ErrorList::new();
    if bundle.text().len() > BUNDLE_BYTES_MAX {
        errors.push(bundle.too_long(BUNDLE_BYTES_MAX as i64));
        return errors;
    }
    let mut known: BTreeMap<Vec<u8>, Vec<usize>> = BTreeMap::new();
    for (index, block) in blocks(bundle.text().as_bytes()).into_iter().enumerate() {
        if block.label != "CERTIFICATE" {
            errors.push(invalid(format!("entry {index} has bad block type: {}", block.label)));
        } else if block.has_headers {
            errors.push(invalid(format!("entry {index} has PEM block headers")));
        } else if !is_certificate(&block.bytes) {
            errors.push(invalid(format!("entry {index} does not parse as X.509")));
        } else if !is_authority(&block.bytes) {
            errors.push(invalid(format!("entry {index} does not have the CA bit set")));
        } else {
            known.entry(block.bytes).or_default().push(index);
        }
    }
    if !errors.is_empty() {
        return errors;
    }
    if known.is_empty() {
        errors.push(invalid("at least one trust anchor must be provided".to_owned()));
    }
    for indices in known.values().filter(|indices| indices.len() > 1) {
        let shown: Vec<String> = indices.iter().map(ToString::to_string).collect();
        errors.push(invalid(format!("duplicate trust anchor (indices [{}])", shown.join(" "))));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn the_name_is_checked_among_the_metadata() {
        let told = |metadata: Value| {
            let bundle = object! { "metadata" => metadata, "spec" => object! { "signerName" => "a.b/c" } };
            validate(&bundle, false).iter().map(|error| error.field.clone()).collect::<Vec<_>>()
        };
        let labels = object! { "a b" => "c" };
        assert_eq!(told(object! { "name" => "x", "labels" => labels }), ["metadata.name", "metadata.labels"]);
        assert_eq!(told(object! { "name" => "a.b:c:x", "generateName" => "a.b:c:x-" }), [""; 0]);
        assert_eq!(told(object! { "name" => "a.b:c:x", "generateName" => "x-" }), ["metadata.generateName"]);
    }
}
