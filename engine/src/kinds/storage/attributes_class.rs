//! The volume attributes class of claims and volumes.

use crate::kinds::semantic;
use crate::meta::field::{Error, Path};
use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::value::Value;

/// Checks that the class does not change while the feature gate is off.
pub fn forbid_change(minor: Minor, new: &Value, old: &Value) -> Option<Error> {
    const NAME: &str = "volumeAttributesClassName";
    let is_kept = semantic::equal_untyped(new.at(&["spec", NAME]), old.at(&["spec", NAME]));
    let why = "update is forbidden when the VolumeAttributesClass feature gate is disabled";
    let spec = Path::new("spec");
    (!minor.opens(Gate::VolumeAttributesClass) && !is_kept).then(|| Error::forbidden(&spec.child(NAME), why))
}
