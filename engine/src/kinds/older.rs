//! What an older Kubernetes does not know of the built-in kinds yet.

use crate::crd::ServedVersion;
use crate::meta::minor::Minor;
use crate::types::Message;
use crate::value::Value;

/// The type of the objects of `version`, if that is built in and speaks for an older Kubernetes.
pub(super) fn older_type(version: &ServedVersion) -> Option<&'static Message> {
    let is_older = version.minor < Minor::NEWEST && !version.preserve_unknown_fields;
    is_older.then(|| super::type_of(&version.api_version(), &version.names.kind)).flatten()
}

/// Removes the fields of `object` that the Kubernetes does not know which `version` speaks for.
pub fn forget_newer(version: &ServedVersion, object: &mut Value) {
    if let Some(message) = older_type(version) {
        message.forget_newer(version.minor, object);
    }
}
