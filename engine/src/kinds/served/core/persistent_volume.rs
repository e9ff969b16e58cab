//! PersistentVolume, core/v1.
//!
//! Source: `pkg/apis/core` and `pkg/registry/core/persistentvolume` of Kubernetes 1.36, with the types of 1.37.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::features::{self, Feature};
use crate::kinds::node_selector;
use crate::kinds::storage::{access_modes, attributes_class, columns, volume};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, checks, defaults, diff, metadata, prepare, semantic, show_internal};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::object;
use crate::value::Value;

const FEATURES: [Feature; 1] = [Feature::new(Gate::VolumeAttributesClass, &["spec.volumeAttributesClassName"])];
/// The annotation for mount options, from before there was a field.
const MOUNT_OPTIONS: &str = "volume.beta.kubernetes.io/mount-options";
/// The volume sources that accept mount options.
const MOUNTED: [&str; 13] = [
    "gcePersistentDisk",
    "awsElasticBlockStore",
    "glusterfs",
    "nfs",
    "rbd",
    "quobyte",
    "iscsi",
    "cinder",
    "cephfs",
    "azureFile",
    "vsphereVolume",
    "azureDisk",
    "photonPersistentDisk",
];
/// The labels, each with the new name that may replace it in a node selector.
const RENAMED_LABELS: [(&str, &str); 5] = [
    ("beta.kubernetes.io/arch", "kubernetes.io/arch"),
    ("beta.kubernetes.io/instance-type", "node.kubernetes.io/instance-type"),
    ("beta.kubernetes.io/os", "kubernetes.io/os"),
    ("failure-domain.beta.kubernetes.io/region", "topology.kubernetes.io/region"),
    ("failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/zone"),
];

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "persistentvolumes",
    singular: "persistentvolume",
    short_names: &["pv"],
    scope: Scope::Cluster,
    status: true,
    example: r"
metadata: {name: example}
spec: {accessModes: [ReadWriteOnce], capacity: {storage: 1Gi}, nfs: {server: files.example.com, path: /data}}",
    ..Kind::new("", "v1", "PersistentVolume", &PersistentVolume)
}];

struct PersistentVolume;

impl Strategy for PersistentVolume {
    fn set_typed_defaults(&self, object: &mut Value) {
        defaults::set(defaults::structure(object, "status"), "phase", "Pending");
        let spec = defaults::structure(object, "spec");
        defaults::set(spec, "persistentVolumeReclaimPolicy", "Retain");
        defaults::set_pointer(spec, "volumeMode", "Filesystem");
        volume::set_spec_defaults(spec);
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        let mut status = object! { "phase" => "Pending" };
        if let Some(now) = object.at(&["metadata", "creationTimestamp"]) {
            status.make_object().insert("lastPhaseTransitionTime", now.clone());
        }
        prepare::reset(object, "status", status);
        features::drop_fields(&FEATURES, version.minor, object, None);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let mut errors = validate(object, true);
        errors.extend(validate_mount_options(object));
        errors
    }

    fn prepare_update_at(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &mut Value,
        old: &Value,
        now: &str,
    ) {
        if subresource == Subresource::Status {
            prepare::keep(new, old, &["spec"]);
            note_phase(new, old, now);
        } else {
            prepare::keep(new, old, &["status"]);
            features::drop_fields(&FEATURES, version.minor, new, Some(old));
        }
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        if subresource == Subresource::Status {
            return validate_status_update(new, old);
        }
        let was_valid = !node_selector::has_invalid_value(old.at(&["spec", "nodeAffinity", "required"]));
        let mut errors = validate(new, was_valid);
        errors.extend(validate_mount_options(new));
        errors.extend(validate(new, was_valid));
        errors.extend(validate_kept(version.minor, new, old));
        errors
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, _: Option<&Value>) -> Vec<String> {
        match subresource {
            Subresource::Status => Vec::new(),
            _ => volume::warnings(&FieldRef::root(new)),
        }
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let mut table = Table::named(
            vec![
                Column::string("Capacity", "How much the volume holds."),
                Column::string("Access Modes", "How the volume may be mounted."),
                Column::string("Reclaim Policy", "What becomes of the volume when nobody claims it any more."),
                Column::string("Status", "Whether the volume is free, claimed or released."),
                Column::string("Claim", "The claim that has the volume."),
                Column::string("StorageClass", "StorageClass of the pv"),
                Column::string("VolumeAttributesClass", "VolumeAttributesClass of the pv"),
                Column::string("Reason", "Why the volume failed."),
            ],
            cells,
        );
        table.columns.push(columns::wide("VolumeMode", "Whether the volume is a file system or a device."));
        Some(table)
    }
}

fn cells(volume: &Value) -> Vec<Cell> {
    let text = |path: &[&str]| volume.str_at(path);
    let claim = match volume.at(&["spec", "claimRef"]).filter(|claim| !claim.is_null()) {
        Some(claim) => format!("{}/{}", claim.str_at(&["namespace"]), claim.str_at(&["name"])),
        None => String::new(),
    };
    let mut cells = Cell::named(
        volume,
        vec![
            columns::text_or(volume.at(&["spec", "capacity", "storage"]), "0"),
            Cell::text(&access_modes::abbreviate(volume.items_at(&["spec", "accessModes"]))),
            Cell::text(text(&["spec", "persistentVolumeReclaimPolicy"])),
            columns::phase(volume),
            Cell::text(&claim),
            columns::class(volume),
            columns::text_or(volume.at(&["spec", "volumeAttributesClassName"]), "<unset>"),
            Cell::text(text(&["status", "reason"])),
        ],
    );
    cells.push(columns::text_or(volume.at(&["spec", "volumeMode"]), "<unset>"));
    cells
}

fn validate(object: &Value, checks_values: bool) -> ErrorList {
    let mut errors = metadata::validate(object, false, names::name_is_dns1123_subdomain);
    let root = FieldRef::root(object);
    errors.extend(volume::validate_spec(&root.field("spec"), object.str_at(&["metadata", "name"]), checks_values));
    errors
}

/// Checks that only volumes that are mounted have mount options.
fn validate_mount_options(object: &Value) -> Option<Error> {
    let root = FieldRef::root(object);
    let spec = root.field("spec");
    let has_options = object.at(&["metadata", "annotations", MOUNT_OPTIONS]).is_some();
    let is_mounted = MOUNTED.iter().any(|name| spec.field(name).is_set());
    let annotations = metadata::METADATA.child("annotations");
    let why = "may not specify mount options for this volume type";
    (has_options && !is_mounted).then(|| Error::forbidden(&annotations.child(MOUNT_OPTIONS), why))
}

/// Sets the time of the last phase transition, unless the writer sets it.
fn note_phase(new: &mut Value, old: &Value, now: &str) {
    const TIME: [&str; 2] = ["status", "lastPhaseTransitionTime"];
    let time = |object: &Value| object.at(&TIME).filter(|time| !time.is_null()).cloned();
    let is_same_phase = old.str_at(&["status", "phase"]) == new.str_at(&["status", "phase"]);
    let noted = match (is_same_phase, time(new), time(old)) {
        (true, None, Some(before)) => before,
        (false, None, _) => Value::from(now),
        (false, Some(after), before) if before.as_ref() == Some(&after) => Value::from(now),
        _ => return,
    };
    defaults::structure(new, "status").make_object().insert("lastPhaseTransitionTime", noted);
}

fn validate_status_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = metadata::validate_update(new, old);
    if new.str_at(&["metadata", "resourceVersion"]).is_empty() {
        errors.push(Error::required(&Path::new("resourceVersion"), ""));
    }
    errors
}

/// Checks the fields of a volume that do not change: its source, and mostly its node affinity.
fn validate_kept(minor: Minor, new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let (before, mut after) = (source(old), source(new));
    let has_secret =
        |source: &Value| source.at(&["csi", "controllerExpandSecretRef"]).is_some_and(|secret| !secret.is_null());
    let has_driver = |source: &Value| source.get("csi").is_some_and(|driver| !driver.is_null());
    if has_driver(&before) && !has_secret(&before) && has_secret(&after) {
        defaults::structure(&mut after, "csi").make_object().remove("controllerExpandSecretRef");
    }
    let spec = Path::new("spec");
    if !semantic::equal("spec", Some(&after), Some(&before)) {
        let lines = |source: &Value| diff::in_lines(&show_internal("core.v1.PersistentVolumeSource", source));
        let difference = diff::unified(&lines(&before), &lines(&after));
        let why = format!("spec.persistentvolumesource is immutable after creation\n{difference}");
        errors.push(Error::forbidden(&spec.child("persistentvolumesource"), why));
    }
    let mode = |object| FieldRef::new(Value::at(object, &["spec", "volumeMode"]), Path::new("volumeMode"));
    errors.extend(checks::unchanged_or_null(&mode(new), &mode(old)));
    if !minor.opens(Gate::MutablePvNodeAffinity) {
        errors.extend(validate_affinity_kept(new, old));
    }
    errors.extend(attributes_class::forbid_change(minor, new, old));
    let class =
        |object: &Value| object.at(&["spec", "volumeAttributesClassName"]).filter(|class| !class.is_null()).is_some();
    if class(old) && !class(new) {
        let why = "update from non-nil value to nil is forbidden";
        errors.push(Error::forbidden(&spec.child("volumeAttributesClassName"), why));
    }
    errors
}

/// The fields of the spec that describe the volume's source.
fn source(object: &Value) -> Value {
    let mut source = object! {};
    for name in volume::source_names() {
        if let Some(value) = object.at(&["spec", name]).filter(|value| !value.is_null()) {
            source.make_object().insert(name, value.clone());
        }
    }
    source
}

/// Checks that a volume's node affinity has not changed, except for labels that were renamed.
fn validate_affinity_kept(new: &Value, old: &Value) -> Option<Error> {
    let before = old.at(&["spec", "nodeAffinity"]).filter(|affinity| !affinity.is_null())?;
    let after = new.at(&["spec", "nodeAffinity"]).filter(|affinity| !affinity.is_null());
    let mut renamed = before.clone();
    rename_labels(&mut renamed, after);
    if semantic::equal_untyped(Some(&renamed), after) {
        return None;
    }
    let shown = after.map_or_else(|| "null".to_owned(), |after| show_internal("core.v1.VolumeNodeAffinity", after));
    let why = "field is immutable, except for updating from beta label to GA";
    Some(Error::invalid(&Path::new("nodeAffinity"), Value::Null, why).shown_as(shown))
}

/// Replaces labels by the new names that `after` has for them.
fn rename_labels(before: &mut Value, after: Option<&Value>) {
    let Some(required) = defaults::field(before, "required") else { return };
    for (index, term) in defaults::items(required, "nodeSelectorTerms").enumerate() {
        let terms = after.map(|after| after.items_at(&["required", "nodeSelectorTerms"])).unwrap_or_default();
        let Some(changed) = terms.get(index) else { return };
        for list in ["matchExpressions", "matchFields"] {
            for (requirement, changed) in defaults::items(term, list).zip(changed.items_at(&[list])) {
                let key = (requirement.str_at(&["key"]), changed.str_at(&["key"]));
                // A label without a new name is treated as if its new name were empty.
                let is_dropped = key.1.is_empty() && RENAMED_LABELS.iter().all(|(old, _)| *old != key.0);
                if is_dropped || RENAMED_LABELS.contains(&key) {
                    let key = Value::from(key.1);
                    requirement.make_object().insert("key", key);
                }
            }
        }
    }
}
