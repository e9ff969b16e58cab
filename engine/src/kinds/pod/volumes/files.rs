//! Sources that put files of the node or of the API server into a pod.

use crate::kinds::checks;
use crate::kinds::pod::PodValidationOptions;
use crate::kinds::storage::drivers;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::meta::quantity::Quantity;

use super::paths;

const HOST_PATH_TYPES: [&str; 8] =
    ["", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"];
const PULL_POLICIES: [&str; 3] = ["Always", "IfNotPresent", "Never"];

pub fn empty_dir(source: &FieldRef<'_>) -> ErrorList {
    let limit = source.field("sizeLimit");
    let is_negative = Quantity::parse(limit.text()).is_ok_and(|limit| limit.signum() < 0);
    let error = is_negative.then(|| limit.forbidden("SizeLimit field must be a valid resource quantity"));
    error.into_iter().collect()
}

pub fn host_path(source: &FieldRef<'_>) -> ErrorList {
    let path = source.field("path");
    if path.is_empty() {
        return [path.required("")].into_iter().collect();
    }
    let mut errors: ErrorList = paths::no_backsteps(&path).into_iter().collect();
    errors.extend(checks::one_of(&source.field("type"), &HOST_PATH_TYPES));
    errors
}

pub fn git_repo(source: &FieldRef<'_>) -> ErrorList {
    let mut errors = checks::required_fields(source, &["repository"]);
    errors.extend(paths::descending(&source.field("directory")));
    errors
}

pub fn secret(source: &FieldRef<'_>) -> ErrorList {
    keyed_files(source, "secretName")
}

pub fn config_map(source: &FieldRef<'_>) -> ErrorList {
    keyed_files(source, "name")
}

/// Files made of the keys of an object that the field `name` names.
fn keyed_files(source: &FieldRef<'_>, name: &str) -> ErrorList {
    let mut errors = checks::required_fields(source, &[name]);
    errors.extend(paths::file_mode(&source.field("defaultMode")));
    for item in source.field("items").items() {
        errors.extend(key_to_path(&item));
    }
    errors
}

/// A key and the file that it becomes.
pub fn key_to_path(item: &FieldRef<'_>) -> ErrorList {
    let mut errors = checks::required_fields(item, &["key", "path"]);
    errors.extend(paths::local_not_reserved(&item.field("path")));
    errors.extend(paths::file_mode(&item.field("mode")));
    errors
}

/// A CSI driver that needs no persistent volume.
pub fn inline_driver(source: &FieldRef<'_>) -> ErrorList {
    let mut errors = drivers::validate_name(&source.field("driver"));
    let secret = source.field("nodePublishSecretRef");
    let name = secret.field("name");
    if secret.is_set() && name.is_empty() {
        errors.push(name.required(""));
    } else if secret.is_set() {
        // The reference names another field here.
        let at = source.path().child("name");
        let faults = names::is_dns1123_subdomain(name.text()).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(&at, name.text(), fault)));
    }
    errors
}

/// An image whose files are mounted. Templates may leave open which.
pub fn image(source: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let reference = source.field("reference");
    let mut errors = ErrorList::new();
    if options.resource_is_pod && reference.is_empty() {
        errors.push(reference.required(""));
    }
    let policy = source.field("pullPolicy");
    if policy.is_empty() {
        errors.push(policy.required(""));
    } else {
        errors.extend(checks::one_of(&policy, &PULL_POLICIES));
    }
    errors
}
