//! PersistentVolumeClaim, core/v1.
//!
//! Source: `pkg/apis/core` and `pkg/registry/core/persistentvolumeclaim` of Kubernetes 1.36, with the types of 1.37.

use crate::crd::{Column, ServedVersion};
use crate::kinds::features::{self, Feature};
use crate::kinds::storage::{access_modes, attributes_class, claim, columns};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, checks, declared, defaults, diff, metadata, prepare, resources, semantic, show_internal};
use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::meta::names;
use crate::object;
use crate::types;
use crate::value::Value;

const RESIZE_STATES: [&str; 5] = [
    "ControllerResizeInProgress",
    "ControllerResizeInfeasible",
    "NodeResizeInProgress",
    "NodeResizeInfeasible",
    "NodeResizePending",
];

const FEATURES: [Feature; 1] = [Feature::new(Gate::VolumeAttributesClass, &["spec.volumeAttributesClassName"])];
const STATUS_FEATURES: [Feature; 5] = [
    Feature::new(Gate::VolumeAttributesClass, &["status.currentVolumeAttributesClassName"]),
    Feature::new(Gate::VolumeAttributesClass, &["status.modifyVolumeStatus"]),
    Feature::new(Gate::RecoverVolumeExpansionFailure, &["status.allocatedResources"]),
    Feature::new(Gate::RecoverVolumeExpansionFailure, &["status.allocatedResourceStatuses"]),
    Feature::new(Gate::CsiVolumeHealth, &["status.healthStatus"]),
];

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "persistentvolumeclaims",
    singular: "persistentvolumeclaim",
    short_names: &["pvc"],
    status: true,
    example: "metadata: {name: example}\nspec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}",
    ..Kind::new("", "v1", "PersistentVolumeClaim", &PersistentVolumeClaim)
}];

struct PersistentVolumeClaim;

impl Strategy for PersistentVolumeClaim {
    fn set_typed_defaults(&self, object: &mut Value) {
        let status = defaults::structure(object, "status");
        defaults::set(status, "phase", "Pending");
        for list in ["capacity", "allocatedResources"] {
            resources::set_list_defaults(defaults::field(status, list));
        }
        let spec = defaults::structure(object, "spec");
        defaults::set_pointer(spec, "volumeMode", "Filesystem");
        resources::set_requirements_defaults(spec);
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        prepare::reset(object, "status", object! { "phase" => "Pending" });
        features::drop_fields(&FEATURES, version.minor, object, None);
        claim::prepare_data_sources(defaults::structure(object, "spec"), None);
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        validate(object, &claim::ClaimValidationOptions::default())
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        if subresource == Subresource::Status {
            prepare::keep(new, old, &["spec"]);
            features::drop_fields(&STATUS_FEATURES, version.minor, new, Some(old));
            return;
        }
        prepare::keep(new, old, &["status"]);
        features::drop_fields(&FEATURES, version.minor, new, Some(old));
        claim::prepare_data_sources(defaults::structure(new, "spec"), old.get("spec"));
    }

    fn tells_empty(&self) -> &'static [&'static [&'static str]] {
        // A bound claim may request other amounts, or none at all; its spec then counts as unchanged.
        &[&["spec", "resources", "requests"]]
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        if subresource == Subresource::Status {
            let mut errors = validate_status_update(new, old);
            let (root, old_root) = (FieldRef::root(new), FieldRef::root(old));
            let (status, before) = (root.field("status"), old_root.field("status"));
            let message = types::message_named("core.v1", "PersistentVolumeClaimStatus");
            errors.extend(declared::validate_field(message, "healthStatus", &status, Some(&before), version.minor));
            return errors;
        }
        let options = claim::ClaimValidationOptions::for_update(&FieldRef::root(old).field("spec"));
        let mut errors = metadata::validate_update(new, old);
        errors.extend(validate(new, &options));
        errors.extend(validate_kept(version.minor, new, old));
        errors
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, _: Option<&Value>) -> Vec<String> {
        if subresource == Subresource::Status {
            return Vec::new();
        }
        let mut warnings = Vec::new();
        if new.at(&["metadata", "annotations", claim::CLASS_ANNOTATION]).is_some() {
            let why = "deprecated since v1.8; use \"storageClassName\" attribute instead";
            warnings.push(format!("metadata.annotations[{}]: {why}", claim::CLASS_ANNOTATION));
        }
        warnings.extend(claim::warnings(&FieldRef::root(new).field("spec")));
        warnings
    }

    fn returns_deleted(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let mut table = Table::named(
            vec![
                Column::string("Status", "Whether the claim has its volume."),
                Column::string("Volume", "The volume that the claim has."),
                Column::string("Capacity", "How much the volume holds."),
                Column::string("Access Modes", "How the volume may be mounted."),
                Column::string("StorageClass", "StorageClass of the pvc"),
                Column::string("VolumeAttributesClass", "VolumeAttributesClass of the pvc"),
            ],
            cells,
        );
        table.columns.push(columns::wide("VolumeMode", "Whether a file system or a device is claimed."));
        Some(table)
    }
}

fn cells(claim: &Value) -> Vec<Cell> {
    let volume = claim.str_at(&["spec", "volumeName"]);
    let is_bound = !volume.is_empty();
    let capacity = columns::text_or(claim.at(&["status", "capacity", "storage"]), "0");
    let modes = access_modes::abbreviate(claim.items_at(&["status", "accessModes"]));
    let mut cells = Cell::named(
        claim,
        vec![
            columns::phase(claim),
            Cell::text(volume),
            if is_bound { capacity } else { Cell::text("") },
            Cell::text(if is_bound { &modes } else { "" }),
            columns::class(claim),
            columns::text_or(claim.at(&["spec", "volumeAttributesClassName"]), "<unset>"),
        ],
    );
    cells.push(columns::text_or(claim.at(&["spec", "volumeMode"]), "<unset>"));
    cells
}

fn validate(object: &Value, options: &claim::ClaimValidationOptions) -> ErrorList {
    let mut errors = metadata::validate(object, true, names::name_is_dns1123_subdomain);
    errors.extend(claim::validate_spec(&FieldRef::root(object).field("spec"), options));
    errors
}

/// Checks that a claim has not changed, except for its volume, which is set once, and the resources of a bound claim.
fn validate_kept(minor: Minor, new: &Value, old: &Value) -> ErrorList {
    let mut errors = ErrorList::new();
    let spec = |object: &Value| object.get("spec").cloned().unwrap_or_else(|| object! {});
    let (mut after, mut before) = (spec(new), spec(old));
    claim::normalize_data_sources(&mut before);
    if before.str_at(&["volumeName"]).is_empty() {
        copy(&mut before, &after, "volumeName");
    }
    errors.extend(forgive_class(new, old, &mut after, &before));
    if new.str_at(&["status", "phase"]) == "Bound" {
        forgive_growth(&mut after, &before);
    }
    if !semantic::equal("spec", Some(&after), Some(&before)) {
        let lines = |spec: &Value| diff::in_lines(&show_internal("core.v1.PersistentVolumeClaimSpec", spec));
        let difference = diff::unified(&lines(&before), &lines(&after));
        let why =
            "spec is immutable after creation except resources.requests and volumeAttributesClassName for bound claims";
        errors.push(Error::forbidden(&Path::new("spec"), format!("{why}\n{difference}")));
    }
    errors.extend(validate_size(minor, new, old));
    let mode = |object| FieldRef::new(Value::at(object, &["spec", "volumeMode"]), Path::new("volumeMode"));
    errors.extend(checks::unchanged_or_null(&mode(new), &mode(old)));
    errors.extend(attributes_class::forbid_change(minor, new, old));
    errors.extend(validate_attributes_class(new, old));
    errors
}

/// Copies a field from `from` to `object`, or removes it if `from` does not have it.
fn copy(object: &mut Value, from: &Value, name: &str) {
    match from.get(name).filter(|value| !value.is_null()) {
        Some(value) => _ = object.make_object().insert(name, value.clone()),
        None => _ = object.make_object().remove(name),
    }
}

/// Ignores a change of the class that is allowed: the class may move from the annotation to the field, and an empty
/// field may be set.
fn forgive_class(new: &Value, old: &Value, after: &mut Value, before: &Value) -> Option<Error> {
    let annotation = |object: &Value| {
        object.at(&["metadata", "annotations", claim::CLASS_ANNOTATION]).and_then(Value::as_str).map(str::to_owned)
    };
    let class = |object: &Value| object.at(&["spec", "storageClassName"]).and_then(Value::as_str).map(str::to_owned);
    let (noted_now, noted) = (annotation(new), annotation(old));
    let (named_now, named) = (class(new), class(old));
    let is_moved = noted.is_some() && named.is_none() && named_now == noted;
    if is_moved && (noted_now.is_none() || noted_now == noted) {
        after.make_object().remove("storageClassName");
        return None;
    }
    if named.is_none() && named_now.is_some() && (noted.is_none() || noted == named_now) {
        copy(after, before, "storageClassName");
    }
    let annotations = metadata::METADATA.child("annotations");
    let shown = noted_now.clone().unwrap_or_default();
    let is_changed = noted_now.unwrap_or_default() != noted.unwrap_or_default();
    is_changed.then(|| Error::invalid(&annotations.child(claim::CLASS_ANNOTATION), shown, "field is immutable"))
}

/// Ignores the requested size and the attributes class of a bound claim, which may change.
fn forgive_growth(after: &mut Value, before: &Value) {
    if let Some(requests) = after.at_mut(&["resources", "requests"]).filter(|requests| !requests.is_null()) {
        let storage = before.at(&["resources", "requests", "storage"]).cloned();
        requests.make_object().insert("storage", storage.unwrap_or_else(|| Value::from("0")));
    }
    copy(after, before, "volumeAttributesClassName");
}

/// Checks that a claim's size is not reduced; with a feature enabled, it may be, to more than the claim's capacity.
fn validate_size(minor: Minor, new: &Value, old: &Value) -> Option<Error> {
    let size = |object: &Value| resources::parse(object.at(&["spec", "resources", "requests", "storage"]));
    let capacity = resources::parse(old.at(&["status", "capacity", "storage"]));
    let (spec, size) = (Path::new("spec"), (size(new), size(old)));
    let (resources, requests);
    let at = {
        resources = spec.child("resources");
        requests = resources.child("requests");
        requests.child("storage")
    };
    // A recovery that has begun, of whatever resource, may continue.
    let is_resized = |name: &str| old.at(&["status", name]).is_some_and(|list| !list.is_null());
    let recovers = ["allocatedResources", "allocatedResourceStatuses"].into_iter().any(is_resized);
    if !minor.opens(Gate::RecoverVolumeExpansionFailure) && !recovers {
        let is_smaller = size.0 < size.1;
        return is_smaller.then(|| Error::forbidden(&at, "field can not be less than previous value"));
    }
    let is_too_small = size.0 < size.1 && size.0 <= capacity;
    is_too_small.then(|| Error::forbidden(&at, "field can not be less than status.capacity"))
}

/// Checks that the attributes class of a volume is not removed once one is applied.
fn validate_attributes_class(new: &Value, old: &Value) -> Option<Error> {
    let class =
        |object: &Value| object.at(&["spec", "volumeAttributesClassName"]).and_then(Value::as_str).map(str::to_owned);
    let is_applied = old.at(&["status", "currentVolumeAttributesClassName"]).is_some_and(|class| !class.is_null());
    let (now, before) = (class(new), class(old));
    let spec = Path::new("spec");
    let forbidden = |what: &str| {
        let why = format!("update to {what} is forbidden when status.currentVolumeAttributesClassName is not nil");
        Some(Error::forbidden(&spec.child("volumeAttributesClassName"), why))
    };
    match now.as_deref() {
        _ if now == before || !is_applied => None,
        None => forbidden("nil"),
        Some("") => forbidden("empty string"),
        Some(_) => None,
    }
}

fn validate_status_update(new: &Value, old: &Value) -> ErrorList {
    let mut errors = metadata::validate_update(new, old);
    if new.str_at(&["metadata", "resourceVersion"]).is_empty() {
        errors.push(Error::required(&Path::new("resourceVersion"), ""));
    }
    if new.items_at(&["spec", "accessModes"]).is_empty() {
        errors.push(Error::required(&Path::new("Spec").child("accessModes"), ""));
    }
    let root = FieldRef::root(new);
    let status = root.field("status");
    for (_, amount) in status.field("capacity").entries() {
        errors.extend(resources::validate_basic(&amount));
    }
    let states = status.field("allocatedResourceStatuses");
    for (name, state) in states.entries() {
        errors.extend(validate_resource_name(name, states.path()));
        if !RESIZE_STATES.contains(&state.text()) {
            errors.push(Error::not_supported(states.path(), name, &RESIZE_STATES));
        }
    }
    let allocated = status.field("allocatedResources");
    for (name, amount) in allocated.entries() {
        let unfit = validate_resource_name(name, allocated.path());
        if unfit.is_empty() {
            errors.extend(resources::validate_basic(&amount).or_else(|| resources::validate_nonnegative(&amount)));
        }
        errors.extend(unfit);
    }
    errors
}

/// Validates a resource name; of Kubernetes' own resources, volumes only have storage.
fn validate_resource_name(name: &str, path: &Path<'_>) -> ErrorList {
    let faults = names::is_qualified_name(name);
    if faults.is_empty() && resources::is_native(name) && name != "storage" {
        return [Error::not_supported(path, name, &["storage"])].into_iter().collect();
    }
    faults.into_iter().map(|fault| Error::invalid(path, name, fault)).collect()
}
