//! The volumes of a pod: their names and sources.
//!
//! Input: the field `volumes` of a pod's spec, in the form that its Go type gives it. Output: the errors, and the
//! volumes that containers may mount. The sources that persistent volumes have, too, are checked by the same functions.
//!
//! Source: `ValidateVolumes` in `pkg/apis/core/validation` of Kubernetes 1.36, with the types of 1.37.

mod claim_template;
pub(crate) mod disks;
pub(crate) mod downward_api;
pub(crate) mod files;
pub(crate) mod iscsi;
pub(crate) mod network;
pub(crate) mod paths;
mod projected;
pub(crate) mod source;

use std::collections::{BTreeMap, HashSet};

use crate::kinds::checks;
use crate::meta::field::ErrorList;
use crate::meta::field_ref::FieldRef;
use crate::value::Value;

use super::PodValidationOptions;
use source::{Source, VolumeContext};

/// The volumes without fault, by name: whether each is a claim, which may be mounted as a device.
#[derive(Debug, Default)]
pub struct Volumes<'v> {
    claims: BTreeMap<&'v str, bool>,
}

impl<'v> Volumes<'v> {
    fn insert(&mut self, volume: &FieldRef<'v>) {
        let Some(value) = volume.value() else { return };
        let is_claim = ["persistentVolumeClaim", "ephemeral"].iter().any(|name| volume.field(name).is_set());
        self.claims.insert(value.str_at(&["name"]), is_claim);
    }

    /// Whether a volume has this name.
    pub fn has(&self, name: &str) -> bool {
        self.claims.contains_key(name)
    }

    /// Whether the volume of this name is a claim; `None` if there is no such volume.
    pub fn is_claim(&self, name: &str) -> Option<bool> {
        self.claims.get(name).copied()
    }
}

/// The errors of the volumes of a pod, and those that are valid. `pod_metadata` is that of the pod itself; a template's
/// is not known to be that of the pods.
pub fn validate_volumes<'v>(
    volumes: &'v FieldRef<'v>,
    pod_metadata: Option<&Value>,
    options: &PodValidationOptions,
) -> (Volumes<'v>, ErrorList) {
    let mut errors = ErrorList::new();
    let mut known = Volumes::default();
    let pod_name = pod_metadata.map_or("", |metadata| metadata.str_at(&["name"]));
    let created = created_claims(volumes, pod_name);
    for volume in volumes.items() {
        let faults = validate_volume(&volume, pod_name, options, &known);
        if faults.is_empty() {
            known.insert(&volume);
        }
        errors.extend(faults);
        let claim = volume.field("persistentVolumeClaim");
        let name = claim.field("claimName");
        if claim.is_set() && created.contains(name.text()) {
            errors.push(name.invalid("must not reference a PVC that gets created for an ephemeral volume"));
        }
    }
    (known, errors)
}

/// The names of the claims that are made for the pod.
fn created_claims(volumes: &FieldRef<'_>, pod_name: &str) -> HashSet<String> {
    let named = volumes.items().filter(|_| !pod_name.is_empty());
    let ephemeral = named.filter(|volume| volume.field("ephemeral").is_set());
    ephemeral.map(|volume| format!("{pod_name}-{}", volume.field("name").text())).collect()
}

fn validate_volume(
    volume: &FieldRef<'_>,
    pod_name: &str,
    options: &PodValidationOptions,
    known: &Volumes<'_>,
) -> ErrorList {
    let name = volume.field("name");
    let context = VolumeContext { volume_name: name.text(), pod_name, options };
    let mut errors = source::validate_one(volume, SOURCES, &context);
    errors.extend(checks::required_label(&name));
    if known.has(name.text()) {
        errors.push(name.duplicate());
    }
    errors
}

/// Everything that a pod's volume may be made of, in the order in which the reference looks.
const SOURCES: &[Source] = &[
    Source::new("emptyDir", |source, _| files::empty_dir(source)),
    Source::new("hostPath", |source, _| files::host_path(source)),
    Source::new("gitRepo", |source, _| files::git_repo(source)),
    Source::new("gcePersistentDisk", |source, _| disks::persistent_disk(source)).checked_at("persistentDisk"),
    Source::new("awsElasticBlockStore", |source, _| disks::elastic_block_store(source)),
    Source::new("secret", |source, _| files::secret(source)),
    Source::new("nfs", |source, _| network::nfs(source)),
    Source::new("iscsi", |source, _| iscsi::inline_iscsi(source)).always(iscsi::name_length),
    Source::new("glusterfs", |source, _| network::glusterfs(source)),
    Source::new("flocker", |source, _| network::flocker(source)),
    Source::new("persistentVolumeClaim", |source, _| checks::required_fields(source, &["claimName"])),
    Source::new("rbd", |source, _| network::rbd(source)),
    Source::new("cinder", |source, _| disks::cinder(source, &["name"])),
    Source::new("cephfs", |source, _| network::cephfs(source)).refused_at("cephFS"),
    Source::new("quobyte", |source, _| network::quobyte(source)),
    Source::new("downwardAPI", |source, _| downward_api::volume(source)).refused_at("downwarAPI"),
    Source::new("fc", |source, _| disks::fibre_channel(source)),
    Source::new("flexVolume", |source, _| disks::flex(source)),
    Source::new("configMap", |source, _| files::config_map(source)),
    Source::new("azureFile", |source, _| network::azure_file(source)),
    Source::new("vsphereVolume", |source, _| checks::required_fields(source, &["volumePath"])),
    Source::new("photonPersistentDisk", |source, _| checks::required_fields(source, &["pdID"])),
    Source::new("portworxVolume", |source, _| checks::required_fields(source, &["volumeID"])),
    Source::new("azureDisk", |source, _| disks::azure_disk(source)),
    Source::new("storageos", |source, _| disks::storage_os(source, &["name"])),
    Source::new("projected", |source, context| projected::volume(source, context.options)),
    Source::new("scaleIO", |source, _| disks::scale_io(source)),
    Source::new("csi", |source, _| files::inline_driver(source)),
    Source::new("ephemeral", |source, _| claim_template::ephemeral(source)).with(claim_template::claim_name),
    Source::new("image", |source, context| files::image(source, context.options)),
];
