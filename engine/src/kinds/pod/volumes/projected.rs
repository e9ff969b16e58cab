//! Volumes that put several sources into one directory.

use std::collections::HashSet;

use crate::kinds::checks;
use crate::kinds::pod::PodValidationOptions;
use crate::kinds::{show_internal, signers};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::meta::object_meta;
use crate::meta::selector::LabelSelector;

use super::{downward_api, files, paths};

const TOKEN_SECONDS_MIN: i64 = 10 * 60;
const TOKEN_SECONDS_MAX: i64 = 1 << 32;
const CERTIFICATE_SECONDS_MIN: i64 = 60 * 60;
/// The maximum lifetimes of certificates by Kubernetes' own signers and by others.
const KUBERNETES_CERTIFICATE_SECONDS_MAX: i64 = 24 * 60 * 60;
const CERTIFICATE_SECONDS_MAX: i64 = 91 * 24 * 60 * 60;
const KEY_TYPES: [&str; 6] = ["RSA3072", "RSA4096", "ECDSAP256", "ECDSAP384", "ECDSAP521", "ED25519"];

/// The paths that sources have taken so far.
#[derive(Default)]
struct Paths(HashSet<String>);

impl Paths {
    /// Takes a path; that of another source is an error of the volume, which shows `shown`.
    fn take(&mut self, path: &str, volume: &FieldRef<'_>, shown: &str) -> Option<Error> {
        let is_taken = !self.0.insert(path.to_owned());
        is_taken.then(|| Error::invalid(volume.path(), shown, "conflicting duplicate paths"))
    }
}

/// The source of a projected volume.
pub fn volume(volume: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors: ErrorList = paths::file_mode(&volume.field("defaultMode")).into_iter().collect();
    let mut taken = Paths::default();
    for source in volume.field("sources").items() {
        errors.extend(validate_source(&source, volume, options, &mut taken));
    }
    errors
}

fn validate_source(
    source: &FieldRef<'_>,
    volume: &FieldRef<'_>,
    options: &PodValidationOptions,
    taken: &mut Paths,
) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut count = 0;
    for name in ["secret", "configMap", "downwardAPI", "serviceAccountToken", "clusterTrustBundle", "podCertificate"] {
        let part = source.field(name);
        if !part.is_set() {
            continue;
        }
        count += 1;
        errors.extend(match name {
            "secret" | "configMap" => keyed_files(&part, volume, taken),
            "downwardAPI" => own_fields(&part, volume, taken),
            "serviceAccountToken" => token(&part, volume, options),
            "clusterTrustBundle" => trust_bundle(&part, volume, taken),
            _ => certificate(&part, volume, taken),
        });
    }
    if count > 1 {
        errors.push(source.forbidden("may not specify more than 1 volume type per source"));
    }
    errors
}

fn keyed_files(part: &FieldRef<'_>, volume: &FieldRef<'_>, taken: &mut Paths) -> ErrorList {
    let mut errors = checks::required_fields(part, &["name"]);
    let name = part.field("name");
    for item in part.field("items").items() {
        errors.extend(files::key_to_path(&item));
        let path = item.field("path");
        if !path.is_empty() {
            errors.extend(taken.take(path.text(), volume, name.text()));
        }
    }
    errors
}

fn own_fields(part: &FieldRef<'_>, volume: &FieldRef<'_>, taken: &mut Paths) -> ErrorList {
    let mut errors = ErrorList::new();
    for item in part.field("items").items() {
        // As in a volume of its own, the item is not named.
        let file = FieldRef::new(item.value(), *part.path());
        errors.extend(downward_api::file(&file));
        let path = file.field("path");
        if !path.is_empty() {
            errors.extend(taken.take(path.text(), volume, path.text()));
        }
    }
    errors
}

/// A service account's token. Errors report its path as one of the volume.
fn token(part: &FieldRef<'_>, volume: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let seconds = part.field("expirationSeconds");
    if seconds.int() < TOKEN_SECONDS_MIN {
        errors.push(Error::invalid(seconds.path(), seconds.int(), "may not specify a duration less than 10 minutes"));
    }
    if seconds.int() > TOKEN_SECONDS_MAX {
        errors.push(seconds.invalid("may not specify a duration larger than 2^32 seconds"));
    }
    let (own, at) = (part.field("path"), volume.path().child("path"));
    let path = FieldRef::new(own.value(), at);
    if path.is_empty() {
        errors.push(path.required(""));
    } else if !options.allow_non_local_projected_token_path {
        errors.extend(paths::local_not_reserved(&path));
    }
    errors
}

/// Certificates to trust: one bundle by its name, or all of a signer.
fn trust_bundle(part: &FieldRef<'_>, volume: &FieldRef<'_>, taken: &mut Paths) -> ErrorList {
    let mut errors = ErrorList::new();
    match (part.field("name").is_set(), part.field("signerName").is_set()) {
        (true, true) => {
            let shown = part.value().map(|value| show_internal("core.v1.ClusterTrustBundleProjection", value));
            let error = part.invalid("only one of name and signerName may be used");
            errors.push(error.shown_as(shown.unwrap_or_default()));
        }
        (true, false) => errors.extend(bundle_name(part)),
        (false, true) => errors.extend(bundle_signer(part)),
        (false, false) => errors.push(part.required("either name or signerName must be specified")),
    }
    let path = part.field("path");
    errors.extend(checks::required_fields(part, &["path"]));
    errors.extend(paths::local_not_reserved(&path));
    errors.extend(taken.take(path.text(), volume, path.text()));
    errors
}

fn bundle_name(part: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = part.field("name");
    if name.is_empty() {
        errors.push(name.required("must be a valid object name"));
    }
    for fault in signers::trust_bundle_name(name.text()) {
        errors.push(name.invalid(format!("not a valid clustertrustbundlename: {fault}")));
    }
    let selector = part.field("labelSelector");
    if let Some(value) = selector.value() {
        let error = selector.invalid("labelSelector must be unset if name is specified");
        errors.push(error.shown_as(show_internal("meta.v1.LabelSelector", value)));
    }
    errors
}

fn bundle_signer(part: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (signer, selector) = (part.field("signerName"), part.field("labelSelector"));
    if signer.is_empty() {
        errors.push(signer.required("must be a valid signer name"));
    }
    errors.extend(signers::validate_name(&signer));
    if let Some(value) = selector.value() {
        errors.extend(LabelSelector::validate(value, true, selector.path()));
    }
    errors
}

/// A key and a certificate for the pod.
fn certificate(part: &FieldRef<'_>, volume: &FieldRef<'_>, taken: &mut Paths) -> ErrorList {
    let mut errors = signers::validate_name(&part.field("signerName"));
    let annotations = part.field("userAnnotations");
    if annotations.is_set() {
        errors.extend(user_annotations(&annotations));
    }
    errors.extend(checks::one_of(&part.field("keyType"), &KEY_TYPES));
    errors.extend(certificate_lifetime(part));
    let mut has_path = false;
    for name in ["credentialBundlePath", "keyPath", "certificateChainPath"] {
        let path = part.field(name);
        if !path.is_empty() {
            has_path = true;
            errors.extend(paths::local_not_reserved(&path));
            errors.extend(taken.take(path.text(), volume, path.text()));
        }
    }
    if !has_path {
        errors.push(part.required("specify at least one of credentialBundlePath, keyPath, and certificateChainPath"));
    }
    errors
}

fn certificate_lifetime(part: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let seconds = part.field("maxExpirationSeconds");
    if !seconds.is_set() {
        return errors;
    }
    if seconds.int() < CERTIFICATE_SECONDS_MIN {
        errors.push(seconds.invalid("if provided, maxExpirationSeconds must be >= 3600"));
    }
    let max = if signers::is_of_kubernetes(part.field("signerName").text()) {
        KUBERNETES_CERTIFICATE_SECONDS_MAX
    } else {
        CERTIFICATE_SECONDS_MAX
    };
    if seconds.int() > max {
        errors.push(seconds.invalid(format!("if provided, maxExpirationSeconds must be <= {max}")));
    }
    errors
}

/// Annotations for the signer: keys with a domain.
fn user_annotations(annotations: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut bytes = 0;
    for (key, value) in annotations.entries() {
        bytes += key.len() + value.text().len();
        let lower = key.to_lowercase();
        let faults = names::is_qualified_name(&lower);
        if key.is_empty() {
            errors.push(annotations.required(""));
        } else if faults.is_empty() && !lower.contains('/') {
            let why = "must be a domain-prefixed key (such as \"acme.io/foo\")";
            errors.push(Error::invalid(annotations.path(), lower, why));
        } else {
            let error = |fault| Error::invalid(annotations.path(), lower.as_str(), fault);
            errors.extend(faults.into_iter().map(error));
        }
    }
    if i64::try_from(bytes).is_ok_and(|bytes| bytes > object_meta::ANNOTATIONS_BYTES_MAX) {
        errors.push(annotations.too_long(object_meta::ANNOTATIONS_BYTES_MAX));
    }
    errors
}
