//! The spec of a volume claim, stored by itself or in a template.
//!
//! Source: `ValidatePersistentVolumeClaimSpec`, `pkg/api/persistentvolumeclaim` of Kubernetes 1.36.

use crate::kinds::{checks, resources};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::meta::selector::LabelSelector;
use crate::object;
use crate::value::{Value, json};

use super::access_modes;

pub const VOLUME_MODES: [&str; 2] = ["Block", "Filesystem"];
/// The annotation in which claims and volumes named their class before there was a field.
pub const CLASS_ANNOTATION: &str = "volume.beta.kubernetes.io/storage-class";

/// The faults that are accepted because the old object has them.
#[derive(Clone, Copy, Debug, Default)]
pub struct ClaimValidationOptions {
    pub allow_invalid_label_value_in_selector: bool,
    pub allow_invalid_api_group_in_data_source: bool,
}

impl ClaimValidationOptions {
    /// Makes the options for an update of a claim whose spec was `old`.
    pub fn for_update(old: &FieldRef<'_>) -> Self {
        let selector = old.field("selector");
        let faults = selector.value().map(|value| LabelSelector::validate(value, true, selector.path()));
        let has_group = |name: &str| old.field(name).field("apiGroup").is_set();
        ClaimValidationOptions {
            allow_invalid_label_value_in_selector: faults.is_some_and(|faults| !faults.is_empty()),
            allow_invalid_api_group_in_data_source: has_group("dataSource") || has_group("dataSourceRef"),
        }
    }
}

/// Validates the spec.
pub fn validate_spec(spec: &FieldRef<'_>, options: &ClaimValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let (modes, selector) = (spec.field("accessModes"), spec.field("selector"));
    if modes.is_empty() {
        errors.push(modes.required("at least 1 access mode is required"));
    }
    if let Some(value) = selector.value() {
        let checks_values = !options.allow_invalid_label_value_in_selector;
        errors.extend(LabelSelector::validate(value, checks_values, selector.path()));
    }
    errors.extend(access_modes::validate(&modes));
    errors.extend(validate_storage(spec));
    errors.extend(validate_class_name(&spec.field("storageClassName")));
    let mode = spec.field("volumeMode");
    if mode.is_set() {
        errors.extend(checks::one_of(&mode, &VOLUME_MODES));
    }
    errors.extend(validate_data_sources(spec, options));
    errors.extend(validate_class_name(&spec.field("volumeAttributesClassName")));
    errors
}

/// Validates the requested storage. The paths of errors leave out `requests`.
fn validate_storage(spec: &FieldRef<'_>) -> Option<Error> {
    let (resources, at) = (spec.field("resources"), spec.path().child("resources"));
    let requests = resources.field("requests");
    let amount = FieldRef::new(requests.field("storage").value(), at.key("storage"));
    if amount.is_set() { resources::validate_positive(&amount) } else { Some(amount.required("")) }
}

/// Validates the name of a storage class, if there is one.
pub fn validate_class_name(name: &FieldRef<'_>) -> ErrorList {
    if name.is_empty() { ErrorList::new() } else { checks::named(name, names::is_dns1123_subdomain) }
}

fn validate_data_sources(spec: &FieldRef<'_>, options: &ClaimValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    let (source, reference) = (spec.field("dataSource"), spec.field("dataSourceRef"));
    let namespace = reference.field("namespace");
    for source in [&source, &reference] {
        if source.is_set() {
            errors.extend(validate_data_source(source, options));
        }
    }
    if !namespace.is_empty() {
        errors.extend(checks::named(&namespace, names::is_dns1123_label));
    }
    let mut conflict = |why: &str| {
        // In the reference, the bad value is the path itself, a struct without visible fields.
        errors.push(Error::invalid(spec.path(), Value::Null, why).shown_as("{}".to_owned()));
    };
    if !source.is_set() || !reference.is_set() {
        return errors;
    }
    let is_equal =
        ["apiGroup", "kind", "name"].iter().all(|name| source.field(name).value() == reference.field(name).value());
    if !namespace.is_empty() {
        conflict("may not be specified when dataSourceRef.namespace is specified");
    } else if !is_equal {
        conflict("must match dataSourceRef");
    }
    errors
}

/// Validates the data source of a volume: another claim, or an object of another group.
fn validate_data_source(source: &FieldRef<'_>, options: &ClaimValidationOptions) -> ErrorList {
    let mut errors = checks::required_fields(source, &["name", "kind"]);
    let (group, kind) = (source.field("apiGroup"), source.field("kind"));
    if group.is_empty() && kind.text() != "PersistentVolumeClaim" {
        let why = "must be 'PersistentVolumeClaim' when referencing the default apiGroup";
        errors.push(Error::invalid(source.path(), kind.text(), why));
    }
    if !group.is_empty() && !options.allow_invalid_api_group_in_data_source {
        errors.extend(checks::named(&group, names::is_dns1123_subdomain));
    }
    errors
}

/// Aligns the two fields for a volume's data source. A source of a kind that claims never accepted is dropped, unless
/// `old` has one.
pub fn prepare_data_sources(spec: &mut Value, old: Option<&Value>) {
    let is_set = |spec: &Value, name: &str| spec.get(name).is_some_and(|source| !source.is_null());
    let had = |name: &str| old.is_some_and(|old| is_set(old, name));
    if !had("dataSourceRef") && !spec.str_at(&["dataSourceRef", "namespace"]).is_empty() {
        spec.make_object().remove("dataSourceRef");
    }
    if !had("dataSource") && !had("dataSourceRef") && !is_set(spec, "dataSourceRef") && !is_known_source(spec) {
        spec.make_object().remove("dataSource");
    }
    normalize_data_sources(spec);
}

/// Whether the source is a claim or a snapshot.
fn is_known_source(spec: &Value) -> bool {
    let text = |name: &str| spec.str_at(&["dataSource", name]);
    matches!(
        (text("kind"), text("apiGroup")),
        ("PersistentVolumeClaim", "") | ("VolumeSnapshot", "snapshot.storage.k8s.io")
    )
}

/// Copies the data source from the field that is set to the one that is not.
pub fn normalize_data_sources(spec: &mut Value) {
    let source = |name: &str| spec.get(name).filter(|source| !source.is_null());
    let (copy, to) = match (source("dataSource"), source("dataSourceRef")) {
        (Some(source), None) => (copy_source(source), "dataSourceRef"),
        (None, Some(reference)) if reference.str_at(&["namespace"]).is_empty() => {
            (copy_source(reference), "dataSource")
        }
        _ => return,
    };
    spec.make_object().insert(to, copy);
}

fn copy_source(source: &Value) -> Value {
    let text = |name: &str| source.str_at(&[name]);
    let group = source.get("apiGroup").cloned().unwrap_or(Value::Null);
    object! { "apiGroup" => group, "kind" => text("kind"), "name" => text("name") }
}

/// The warnings about amounts that are not whole bytes.
pub fn warnings(spec: &FieldRef<'_>) -> Vec<String> {
    let resources = spec.field("resources");
    let mut warnings = Vec::new();
    for name in ["requests", "limits"] {
        let list = resources.field(name);
        let at = list.path().key("storage");
        let field = list.field("storage");
        let amount = resources::quantity(&field);
        if field.is_set() && !amount.is_whole() {
            let shown = json::encode_to_string(&Value::from(amount.to_string()));
            warnings.push(format!("{at}: fractional byte value {shown} is invalid, must be an integer"));
        }
    }
    warnings
}
