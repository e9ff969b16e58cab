//! The defaults of a definition.
//!
//! Source: `apiextensions/v1/defaults.go`, release 1.37.

use super::definition::{Conversion, Definition};

const WEBHOOK_PORT: i32 = 443;

/// Sets the defaults of a definition.
pub fn set_defaults(definition: &mut Definition) {
    let spec = &mut definition.spec;
    if spec.names.singular.is_empty() {
        spec.names.singular = spec.names.kind.to_lowercase();
    }
    if spec.names.list_kind.is_empty() && !spec.names.kind.is_empty() {
        spec.names.list_kind = format!("{}List", spec.names.kind);
    }
    let conversion = spec.conversion.get_or_insert_with(|| Conversion { strategy: "None".to_owned(), webhook: None });
    let config = conversion.webhook.as_mut().and_then(|webhook| webhook.client_config.as_mut());
    if let Some(service) = config.and_then(|config| config.service.as_mut()) {
        service.port.get_or_insert(WEBHOOK_PORT);
    }
    if definition.status.stored_versions.is_empty() {
        let storage = spec.versions.iter().find(|version| version.storage);
        definition.status.stored_versions.extend(storage.map(|version| version.name.clone()));
    }
}
