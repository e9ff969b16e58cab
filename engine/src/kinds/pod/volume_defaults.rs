//! Defaults of volumes and their sources.
//!
//! Source: `pkg/apis/core/v1/{defaults,zz_generated.defaults}.go`, release 1.36.

use super::image;
use crate::kinds::defaults::{field, items, set, set_pointer, structure};
use crate::kinds::resources;
use crate::value::Value;

/// Octal 0644.
const FILE_MODE: i64 = 0o644;
const TOKEN_SECONDS: i64 = 3600;

/// The defaults of one volume. One without a source is an empty directory.
pub fn set_volume_defaults(volume: &mut Value) {
    let fields = volume.make_object();
    if !fields.iter().any(|(name, source)| name != "name" && !source.is_null()) {
        fields.insert("emptyDir", crate::object! {});
        return;
    }
    for source in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = field(volume, source) {
            set_pointer(source, "defaultMode", FILE_MODE);
        }
    }
    if let Some(source) = field(volume, "downwardAPI") {
        items(source, "items").for_each(set_field_selector_defaults);
    }
    if let Some(source) = field(volume, "projected") {
        items(source, "sources").for_each(set_projection_defaults);
    }
    if let Some(source) = field(volume, "ephemeral") {
        set_ephemeral_defaults(source);
    }
    if let Some(source) = field(volume, "hostPath") {
        set_pointer(source, "type", "");
    }
    if let Some(source) = field(volume, "image") {
        let policy = image::default_pull_policy(source.str_at(&["reference"]));
        set(source, "pullPolicy", policy);
    }
    set_network_defaults(volume);
}

/// The defaults of storage that is attached over a network, which volumes of pods have with persistent volumes in common.
pub fn set_network_defaults(volume: &mut Value) {
    if let Some(source) = field(volume, "iscsi") {
        set(source, "iscsiInterface", "default");
    }
    if let Some(source) = field(volume, "rbd") {
        set(source, "pool", "rbd");
        set(source, "user", "admin");
        set(source, "keyring", "/etc/ceph/keyring");
    }
    if let Some(source) = field(volume, "azureDisk") {
        set_pointer(source, "cachingMode", "ReadWrite");
        set_pointer(source, "fsType", "ext4");
        set_pointer(source, "readOnly", false);
        set_pointer(source, "kind", "Shared");
    }
    if let Some(source) = field(volume, "scaleIO") {
        set(source, "storageMode", "ThinProvisioned");
        set(source, "fsType", "xfs");
    }
}

fn set_projection_defaults(source: &mut Value) {
    if let Some(projection) = field(source, "downwardAPI") {
        items(projection, "items").for_each(set_field_selector_defaults);
    }
    if let Some(token) = field(source, "serviceAccountToken") {
        set_pointer(token, "expirationSeconds", TOKEN_SECONDS);
    }
}

/// A claim that is made for the pod.
fn set_ephemeral_defaults(source: &mut Value) {
    let Some(template) = field(source, "volumeClaimTemplate") else { return };
    let spec = structure(template, "spec");
    set_pointer(spec, "volumeMode", "Filesystem");
    resources::set_requirements_defaults(spec);
}

/// The version of the pod that a `fieldRef` is about.
pub fn set_field_selector_defaults(source: &mut Value) {
    if let Some(selector) = field(source, "fieldRef") {
        set(selector, "apiVersion", "v1");
    }
}
