//! LeaseCandidate, coordination.k8s.io/v1beta1 and v1alpha2.
//!
//! Source: validation, strategy and columns of Kubernetes 1.37.

use crate::crd::{Column, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, checks, metadata};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::semver::Semver;
use crate::meta::{names, object_meta};
use crate::value::Value;

/// The only strategy that Kubernetes itself defines.
const OLDEST_EMULATION_VERSION: &str = "OldestEmulationVersion";

/// Both versions have the same fields.
pub static KINDS: [&Kind; 2] = [&BETA, &ALPHA];

static BETA: Kind = of_version("v1beta1");
static ALPHA: Kind = of_version("v1alpha2");

const fn of_version(version: &'static str) -> Kind {
    Kind {
        plural: "leasecandidates",
        singular: "leasecandidate",
        example: r"
metadata: {name: example}
spec: {leaseName: example, strategy: OldestEmulationVersion, binaryVersion: 1.37.0, emulationVersion: 1.37.0}
",
        forms: &KINDS,
        is_default: false,
        ..Kind::new("coordination.k8s.io", version, "LeaseCandidate", &LeaseCandidate)
    }
}

struct LeaseCandidate;

impl Strategy for LeaseCandidate {
    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        let name_check = |name: &str, _| names::is_config_map_key(name);
        let mut errors = object_meta::validate(metadata::of(object), true, name_check, &metadata::METADATA);
        errors.extend(validate_spec(&FieldRef::root(object).field("spec")));
        errors
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        let mut errors = metadata::validate_plain_update(new, old);
        let (new_root, old_root) = (FieldRef::root(new), FieldRef::root(old));
        let (new_spec, old_spec) = (new_root.field("spec"), old_root.field("spec"));
        errors.extend(validate_spec(&new_spec));
        errors.extend(checks::unchanged(&new_spec.field("leaseName"), &old_spec.field("leaseName")));
        errors
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![
            Column::string("LeaseName", "The lease that the candidate would hold."),
            Column::string("BinaryVersion", ""),
            Column::string("EmulationVersion", ""),
        ];
        Some(Table::named(columns, |candidate| {
            let spec = |name: &str| Cell::text(candidate.str_at(&["spec", name]));
            Cell::named(candidate, ["leaseName", "binaryVersion", "emulationVersion"].map(spec).to_vec())
        }))
    }
}

fn validate_spec(spec: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (lease, strategy) = (spec.field("leaseName"), spec.field("strategy"));
    let (emulated, binary) = (spec.field("emulationVersion"), spec.field("binaryVersion"));
    if lease.is_empty() {
        errors.push(lease.required(""));
    }
    let emulation_version = version(&emulated, &mut errors);
    if binary.is_empty() {
        errors.push(binary.required(""));
    }
    let binary_version = version(&binary, &mut errors);
    if !binary.is_empty() && !emulated.is_empty() && binary_version < emulation_version {
        errors.push(binary.invalid("must be greater than or equal to `emulationVersion`"));
    }
    if strategy.is_empty() {
        errors.push(strategy.required(""));
        return errors;
    }
    if strategy.text() == OLDEST_EMULATION_VERSION && emulation_version == Semver::ZERO {
        errors.push(emulated.required("must be specified when `strategy` is 'OldestEmulationVersion'"));
    }
    errors.extend(validate_strategy(&strategy));
    errors
}

/// The semantic version in a field; 0.0.0 if it is empty or invalid.
fn version(field: &FieldRef<'_>, errors: &mut ErrorList) -> Semver {
    if field.is_empty() {
        return Semver::ZERO;
    }
    Semver::parse(field.text()).unwrap_or_else(|_| {
        errors.push(field.invalid("must be a valid semantic version"));
        Semver::ZERO
    })
}

/// Validates the strategy. The reference names the field twice in the path.
fn validate_strategy(strategy: &FieldRef<'_>) -> ErrorList {
    let path = strategy.path().child("strategy");
    let text = strategy.text();
    if text.contains('/') {
        let faults = names::is_qualified_name(text).into_iter();
        return faults.map(|fault| Error::invalid(&path, text, fault)).collect();
    }
    let known = [OLDEST_EMULATION_VERSION];
    (!known.contains(&text)).then(|| Error::not_supported(&path, text, &known)).into_iter().collect()
}
