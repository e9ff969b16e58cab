//! The spec of a persistent volume, stored by itself or within an attachment.
//!
//! Source: `ValidatePersistentVolumeSpec`, `pkg/api/persistentvolume` of Kubernetes 1.36.

use crate::kinds::pod::PodValidationOptions;
use crate::kinds::pod::set_network_defaults;
use crate::kinds::pod::volumes::source::{self, Source, VolumeContext};
use crate::kinds::pod::volumes::{disks, files, iscsi, network};
use crate::kinds::{checks, defaults, resources};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

use super::{access_modes, claim, drivers};
use crate::kinds::node_selector;

const RECLAIM_POLICIES: [&str; 3] = ["Delete", "Recycle", "Retain"];
const OF_INLINE: &str = "may not be specified in the context of inline volumes";

/// All sources of a persistent volume, in the order in which the reference checks them.
const SOURCES: &[Source] = &[
    Source::new("hostPath", |source, _| files::host_path(source)),
    Source::new("gcePersistentDisk", |source, _| disks::persistent_disk(source)).checked_at("persistentDisk"),
    Source::new("awsElasticBlockStore", |source, _| disks::elastic_block_store(source)),
    Source::new("glusterfs", |source, _| glusterfs(source)),
    Source::new("flocker", |source, _| network::flocker(source)),
    Source::new("nfs", |source, _| network::nfs(source)),
    Source::new("rbd", |source, _| network::rbd(source)),
    Source::new("quobyte", |source, _| network::quobyte(source)),
    Source::new("cephfs", |source, _| network::cephfs(source)).refused_at("cephFS"),
    Source::new("iscsi", iscsi::persistent_iscsi),
    Source::new("cinder", |source, _| disks::cinder(source, &["name", "namespace"])),
    Source::new("fc", |source, _| disks::fibre_channel(source)),
    Source::new("flexVolume", |source, _| disks::flex(source)).beside_others(),
    Source::new("azureFile", |source, _| azure_file(source)),
    Source::new("vsphereVolume", |source, _| checks::required_fields(source, &["volumePath"])),
    Source::new("photonPersistentDisk", |source, _| checks::required_fields(source, &["pdID"])),
    Source::new("portworxVolume", |source, _| checks::required_fields(source, &["volumeID"])),
    Source::new("azureDisk", |source, _| disks::azure_disk(source)),
    Source::new("scaleIO", |source, _| disks::scale_io(source)),
    Source::new("local", |source, _| local(source)).with(|volume, _| local_affinity(volume)),
    Source::new("storageos", |source, _| disks::storage_os(source, &["name", "namespace"])),
    Source::new("csi", |source, _| driver(source)),
];

/// Sets the defaults that the spec of a volume has both by itself and within an attachment.
pub fn set_spec_defaults(spec: &mut Value) {
    resources::set_list_defaults(defaults::field(spec, "capacity"));
    if let Some(source) = defaults::field(spec, "hostPath") {
        defaults::set_pointer(source, "type", "");
    }
    set_network_defaults(spec);
}

/// The field names of all sources; a volume has one of them.
pub fn source_names() -> impl Iterator<Item = &'static str> {
    SOURCES.iter().map(Source::name)
}

/// Validates the spec of the volume `name`. `checks_values` tells whether the values of node labels are checked.
pub fn validate_spec(spec: &FieldRef<'_>, name: &str, checks_values: bool) -> ErrorList {
    let mut errors = validate_access_modes(spec);
    errors.extend(validate_capacity(&spec.field("capacity")));
    let policy = spec.field("persistentVolumeReclaimPolicy");
    if !policy.is_empty() {
        errors.extend(checks::one_of(&policy, &RECLAIM_POLICIES));
    }
    let affinity = spec.field("nodeAffinity");
    let required = affinity.field("required");
    if required.is_set() {
        errors.extend(node_selector::validate(&required, checks_values));
    } else if affinity.is_set() {
        errors.push(required.required("must specify required node constraints"));
    }
    errors.extend(validate_sources(spec, name));
    errors.extend(claim::validate_class_name(&spec.field("storageClassName")));
    let mode = spec.field("volumeMode");
    if mode.is_set() {
        errors.extend(checks::one_of(&mode, &claim::VOLUME_MODES));
    }
    errors.extend(validate_attributes_class(spec));
    errors
}

/// Validates the spec of a volume within an attachment: it has a CSI driver, and few other fields.
pub fn validate_inline_spec(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for name in ["claimRef", "capacity"] {
        let field = spec.field(name);
        if field.is_set() && (name == "claimRef" || !field.is_empty()) {
            errors.push(field.forbidden(OF_INLINE));
        }
    }
    let driver = spec.field("csi");
    if !driver.is_set() {
        errors.push(driver.required("has to be specified in the context of inline volumes"));
    }
    errors.extend(validate_access_modes(spec));
    let (policy, affinity) = (spec.field("persistentVolumeReclaimPolicy"), spec.field("nodeAffinity"));
    if !policy.is_empty() && policy.text() != "Retain" {
        errors.push(policy.forbidden("may only be Retain in the context of inline volumes"));
    }
    if affinity.is_set() {
        errors.push(affinity.forbidden(OF_INLINE));
    }
    errors.extend(validate_sources(spec, ""));
    let (class, mode) = (spec.field("storageClassName"), spec.field("volumeMode"));
    if !class.is_empty() {
        errors.push(class.forbidden(OF_INLINE));
    }
    if mode.is_set() && mode.text() != "Filesystem" {
        let why = "may not specify volumeMode other than Filesystem in the context of inline volumes";
        errors.push(mode.forbidden(why));
    }
    errors
}

fn validate_access_modes(spec: &FieldRef<'_>) -> ErrorList {
    let modes = spec.field("accessModes");
    let mut errors = checks::required_fields(spec, &["accessModes"]);
    errors.extend(access_modes::validate(&modes));
    errors
}

fn validate_capacity(capacity: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    if capacity.is_empty() {
        errors.push(capacity.required(""));
    }
    if !capacity.field("storage").is_set() || capacity.len() > 1 {
        let shown = capacity.value().cloned().unwrap_or(Value::Null);
        errors.push(Error::not_supported(capacity.path(), shown, &["storage"]));
    }
    for (_, amount) in capacity.entries() {
        errors.extend(resources::validate_basic(&amount));
        errors.extend(resources::validate_positive(&amount));
    }
    errors
}

fn validate_sources(spec: &FieldRef<'_>, name: &str) -> ErrorList {
    let options = PodValidationOptions::default();
    let context = VolumeContext { volume_name: name, pod_name: "", options: &options };
    let mut errors = source::validate_one(spec, SOURCES, &context);
    let (path, policy) =
        (spec.field("hostPath").field("path").text().to_owned(), spec.field("persistentVolumeReclaimPolicy"));
    if is_root(&path) && policy.text() == "Recycle" {
        errors.push(policy.forbidden("may not be 'recycle' for a hostPath mount of '/'"));
    }
    errors
}

/// Whether the path, cleaned up, is `/`.
fn is_root(path: &str) -> bool {
    let mut depth = 0_usize;
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => depth = depth.saturating_sub(1),
            _ => depth += 1,
        }
    }
    path.starts_with('/') && depth == 0
}

fn validate_attributes_class(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (class, driver) = (spec.field("volumeAttributesClassName"), spec.field("csi"));
    if !class.is_set() {
        return errors;
    }
    if class.is_empty() {
        errors.push(class.required("an empty string is disallowed"));
    }
    errors.extend(claim::validate_class_name(&class));
    if !driver.is_set() {
        errors.push(driver.required("has to be specified when using volumeAttributesClassName"));
    }
    errors
}

fn glusterfs(source: &FieldRef<'_>) -> ErrorList {
    let mut errors = network::glusterfs(source);
    let namespace = source.field("endpointsNamespace");
    if namespace.is_set() && namespace.is_empty() {
        errors.push(namespace.invalid("if the endpointnamespace is set, it must be a valid namespace name"));
    } else if namespace.is_set() {
        errors.extend(checks::named(&namespace, names::is_dns1123_label));
    }
    errors
}

fn azure_file(source: &FieldRef<'_>) -> ErrorList {
    let mut errors = network::azure_file(source);
    if source.field("secretNamespace").is_set() {
        errors.extend(checks::required_fields(source, &["secretNamespace"]));
    }
    errors
}

/// Validates a local path of a node.
fn local(source: &FieldRef<'_>) -> ErrorList {
    let mut errors = checks::required_fields(source, &["path"]);
    errors.extend(crate::kinds::pod::volumes::paths::no_backsteps(&source.field("path")));
    errors
}

/// Checks that a volume with a local path says on which node it is.
fn local_affinity(spec: &FieldRef<'_>) -> ErrorList {
    let affinity = spec.field("nodeAffinity");
    let error = (!affinity.is_set()).then(|| affinity.required("Local volume requires node affinity"));
    error.into_iter().collect()
}

fn driver(source: &FieldRef<'_>) -> ErrorList {
    let mut errors = drivers::validate_name(&source.field("driver"));
    errors.extend(checks::required_fields(source, &["volumeHandle"]));
    for name in
        ["controllerPublishSecretRef", "controllerExpandSecretRef", "nodePublishSecretRef", "nodeExpandSecretRef"]
    {
        let secret = source.field(name);
        if secret.is_set() {
            errors.extend(secret_reference(&secret));
        }
    }
    errors
}

fn secret_reference(secret: &FieldRef<'_>) -> ErrorList {
    let mut errors = checks::required_fields(secret, &["name"]);
    let name = secret.field("name");
    if !name.is_empty() {
        errors.extend(checks::named(&name, names::is_dns1123_subdomain));
    }
    errors.extend(checks::required_label(&secret.field("namespace")));
    errors
}

/// The warnings about a volume that is written.
pub fn warnings(volume: &FieldRef<'_>) -> Vec<String> {
    const ANNOTATIONS: [(&str, &str); 2] = [
        (claim::CLASS_ANNOTATION, "deprecated since v1.8; use \"storageClassName\" attribute instead"),
        ("volume.beta.kubernetes.io/mount-options", "deprecated since v1.31; use \"mountOptions\" attribute instead"),
    ];
    const SOURCES: [(&str, &str, &str); 6] = [
        ("cephfs", "cephfs", "deprecated in v1.28, non-functional in v1.31+"),
        ("photonPersistentDisk", "photonPersistentDisk", "deprecated in v1.11, non-functional in v1.16+"),
        ("scaleIO", "scaleIO", "deprecated in v1.16, non-functional in v1.22+"),
        ("storageos", "storageOS", "deprecated in v1.22, non-functional in v1.25+"),
        ("glusterfs", "glusterfs", "deprecated in v1.25, non-functional in v1.26+"),
        ("rbd", "rbd", "deprecated in v1.28, non-functional in v1.31+"),
    ];
    let (metadata, spec) = (volume.field("metadata"), volume.field("spec"));
    let annotations = metadata.field("annotations");
    let annotated = ANNOTATIONS.iter().filter(|(key, _)| annotations.field(key).is_set());
    let mut warnings: Vec<String> =
        annotated.map(|(key, message)| format!("metadata.annotations[{key}]: {message}")).collect();
    if spec.field("persistentVolumeReclaimPolicy").text() == "Recycle" {
        let message = "The Recycle reclaim policy is deprecated. Instead, the recommended approach is to use dynamic \
                       provisioning.";
        warnings.push(format!("spec.persistentVolumeReclaimPolicy: {message}"));
    }
    let affinity = spec.field("nodeAffinity");
    for term in affinity.field("required").field("nodeSelectorTerms").items() {
        warnings.extend(node_selector::term_warnings(&term, false));
    }
    let used = SOURCES.iter().filter(|(name, ..)| spec.field(name).is_set());
    warnings.extend(used.map(|(_, called, message)| format!("spec.{called}: {message}")));
    warnings
}
