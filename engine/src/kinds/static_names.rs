//! The names of policies, bindings and webhook configurations that are defined in files of the server.
//!
//! Source: `staticManifestsDir` of the configuration of admission plugins, Kubernetes 1.37.

use crate::crd::ServedVersion;
use crate::meta::field::Error;
use crate::meta::field_ref::FieldRef;
use crate::meta::gate::Gate;
use crate::policy::STATIC_SUFFIX;
use crate::value::Value;

/// Refuses a new object whose name is reserved for files of the server.
pub fn check_new_name(version: &ServedVersion, object: &Value) -> Option<Error> {
    let root = FieldRef::root(object);
    let metadata = root.field("metadata");
    let name = metadata.field("name");
    let is_reserved = version.minor.opens(Gate::ManifestBasedAdmissionControlConfig);
    (is_reserved && name.text().ends_with(STATIC_SUFFIX)).then(|| name.invalid(reserved()))
}

/// Warns of an object with such a name: of a new one where it is not refused, of others at each update.
pub fn warnings(version: &ServedVersion, new: &Value, old: Option<&Value>) -> Vec<String> {
    let is_refused = old.is_none() && version.minor.opens(Gate::ManifestBasedAdmissionControlConfig);
    let is_told = !is_refused && new.str_at(&["metadata", "name"]).ends_with(STATIC_SUFFIX);
    is_told.then(|| format!("metadata.name: {}", reserved())).into_iter().collect()
}

fn reserved() -> String {
    format!(
        "names ending with {STATIC_SUFFIX:?} are reserved for static manifest-based configurations and cannot be managed \
         via the API"
    )
}
