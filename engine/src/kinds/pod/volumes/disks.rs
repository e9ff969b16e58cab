//! Sources that are block devices.

use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;

const CACHING_MODES: [&str; 3] = ["None", "ReadOnly", "ReadWrite"];
const DISK_KINDS: [&str; 3] = ["Dedicated", "Managed", "Shared"];
const MANAGED_DISK_URI: &str =
    "/subscriptions/{sub-id}/resourcegroups/{group-name}/providers/microsoft.compute/disks/{disk-id}";
const BLOB_DISK_URI: &str = "https://{account-name}.blob.core.windows.net/{container-name}/{disk-name}.vhd";

pub fn persistent_disk(source: &FieldRef<'_>) -> ErrorList {
    partitioned(source, "pdName")
}

pub fn elastic_block_store(source: &FieldRef<'_>) -> ErrorList {
    partitioned(source, "volumeID")
}

/// A partition of a disk; 0 is all of it.
fn partitioned(source: &FieldRef<'_>, name: &str) -> ErrorList {
    let mut errors = checks::required_fields(source, &[name]);
    let partition = source.field("partition");
    if !(0..=255).contains(&partition.int()) {
        errors.push(partition.invalid("must be between 1 and 255, inclusive"));
    }
    errors
}

/// A logical unit's number.
pub fn logical_unit(number: &FieldRef<'_>) -> Option<Error> {
    (!(0..=255).contains(&number.int())).then(|| number.invalid("must be between 0 and 255, inclusive"))
}

pub fn fibre_channel(source: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (targets, ids, lun) = (source.field("targetWWNs"), source.field("wwids"), source.field("lun"));
    if targets.is_empty() && ids.is_empty() {
        errors.push(targets.required("must specify either targetWWNs or wwids, but not both"));
    }
    if !targets.is_empty() && !ids.is_empty() {
        errors.push(targets.invalid("targetWWNs and wwids can not be specified simultaneously"));
    }
    if !targets.is_empty() && !lun.is_set() {
        errors.push(lun.required("lun is required if targetWWNs is specified"));
    } else if !targets.is_empty() {
        errors.extend(logical_unit(&lun));
    }
    errors
}

/// The required fields of a reference to a secret, if there is one.
fn secret_reference(source: &FieldRef<'_>, fields: &[&str]) -> ErrorList {
    let secret = source.field("secretRef");
    if secret.is_set() { checks::required_fields(&secret, fields) } else { ErrorList::new() }
}

/// `of_secret`: the fields that a secret needs.
pub fn cinder(source: &FieldRef<'_>, of_secret: &[&str]) -> ErrorList {
    let mut errors = checks::required_fields(source, &["volumeID"]);
    errors.extend(secret_reference(source, of_secret));
    errors
}

/// `of_secret`: the fields that a secret needs.
pub fn storage_os(source: &FieldRef<'_>, of_secret: &[&str]) -> ErrorList {
    let mut errors = checks::required_label(&source.field("volumeName"));
    let namespace = source.field("volumeNamespace");
    if !namespace.is_empty() {
        errors.extend(checks::named(&namespace, names::is_dns1123_label));
    }
    errors.extend(secret_reference(source, of_secret));
    errors
}

pub fn scale_io(source: &FieldRef<'_>) -> ErrorList {
    checks::required_fields(source, &["gateway", "system", "volumeName"])
}

/// The options are the driver's; names of Kubernetes' own are kept for it.
pub fn flex(source: &FieldRef<'_>) -> ErrorList {
    let mut errors = checks::required_fields(source, &["driver"]);
    let options = source.field("options");
    for (key, option) in options.entries() {
        let namespace = key.split_once('/').map_or(key, |(namespace, _)| namespace);
        let domain = format!(".{}", namespace.to_lowercase());
        if domain.ends_with(".kubernetes.io") || domain.ends_with(".k8s.io") {
            let why = "kubernetes.io and k8s.io namespaces are reserved";
            errors.push(Error::invalid(option.path(), key, why));
        }
    }
    errors
}

pub fn azure_disk(source: &FieldRef<'_>) -> ErrorList {
    let mut errors = checks::required_fields(source, &["diskName", "diskURI"]);
    let (caching, kind, uri) = (source.field("cachingMode"), source.field("kind"), source.field("diskURI"));
    if caching.is_set() {
        errors.extend(checks::one_of(&caching, &CACHING_MODES));
    }
    if !kind.is_set() {
        return errors;
    }
    errors.extend(checks::one_of(&kind, &DISK_KINDS));
    let (start, example) = match kind.text() {
        "Managed" => ("/subscriptions/", MANAGED_DISK_URI),
        _ => ("https://", BLOB_DISK_URI),
    };
    if !uri.text().starts_with(start) {
        errors.push(uri.not_supported(&[example]));
    }
    errors
}
