//! Defaults of the sources that volumes are made of.

use crate::kinds::defaults;
use crate::value::Value;

/// The mode of files, where no other is said.
const FILE_MODE: i64 = 0o644;
const TOKEN_SECONDS: i64 = 60 * 60;

/// Sets the defaults of a pod's volume, beside those of a claim that it makes.
pub fn set_volume_defaults(volume: &mut Value) {
    for name in ["secret", "configMap", "downwardAPI", "projected"] {
        if let Some(source) = defaults::field(volume, name) {
            defaults::set(source, "defaultMode", FILE_MODE);
            set_field_versions(source);
        }
    }
    if let Some(projected) = defaults::field(volume, "projected") {
        for source in defaults::items(projected, "sources") {
            if let Some(token) = defaults::field(source, "serviceAccountToken") {
                defaults::set(token, "expirationSeconds", TOKEN_SECONDS);
            }
            if let Some(own_fields) = defaults::field(source, "downwardAPI") {
                set_field_versions(own_fields);
            }
        }
    }
    set_source_defaults(volume);
}

fn set_field_versions(source: &mut Value) {
    for item in defaults::items(source, "items") {
        if let Some(reference) = defaults::field(item, "fieldRef") {
            defaults::set(reference, "apiVersion", "v1");
        }
    }
}

/// Sets the defaults of sources that persistent volumes have, too.
pub fn set_source_defaults(volume: &mut Value) {
    const TEXTS: [(&str, &[(&str, &str)]); 5] = [
        ("hostPath", &[("type", "")]),
        ("rbd", &[("pool", "rbd"), ("user", "admin"), ("keyring", "/etc/ceph/keyring")]),
        ("iscsi", &[("iscsiInterface", "default")]),
        ("azureDisk", &[("cachingMode", "ReadWrite"), ("fsType", "ext4"), ("kind", "Shared")]),
        ("scaleIO", &[("storageMode", "ThinProvisioned"), ("fsType", "xfs")]),
    ];
    for (name, texts) in TEXTS {
        if let Some(source) = defaults::field(volume, name) {
            texts.iter().for_each(|(field, text)| set_absent(source, field, *text));
        }
    }
    if let Some(disk) = defaults::field(volume, "azureDisk") {
        set_absent(disk, "readOnly", false);
    }
}

/// Sets a field that is a pointer in Go, where an empty text is one; other empty texts have no member.
fn set_absent(object: &mut Value, name: &str, value: impl Into<Value>) {
    let field = object.make_object().entry(name);
    if field.is_null() {
        *field = value.into();
    }
}
