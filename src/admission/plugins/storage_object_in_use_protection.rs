//! `StorageObjectInUseProtection`: volumes, claims and volume attributes classes get a finalizer,
//! which a controller removes when they are no longer used.
//!
//! Source: `plugin/pkg/admission/storage/storageobjectinuseprotection`, release 1.36.

use async_trait::async_trait;

use super::is_about;
use crate::admission::{Admission, Attributes, Operation};
use crate::meta::Status;
use crate::value::Value;

/// Resources with their finalizers.
const FINALIZERS: [(&str, &str, &str); 3] = [
    ("", "persistentvolumes", "kubernetes.io/pv-protection"),
    ("", "persistentvolumeclaims", "kubernetes.io/pvc-protection"),
    ("storage.k8s.io", "volumeattributesclasses", "kubernetes.io/vac-protection"),
];

pub struct StorageObjectInUseProtection;

#[async_trait]
impl Admission for StorageObjectInUseProtection {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        let is_protected = |(group, plural, _): &&(&str, &str, &str)| is_about(attributes, group, plural);
        let protected = FINALIZERS.iter().find(is_protected).filter(|_| attributes.operation == Operation::Create);
        if let Some((.., finalizer)) = protected {
            add_finalizer(object, finalizer);
        }
        Ok(())
    }

    async fn validate(&self, _: &Attributes<'_>, _: &Value) -> Result<(), Status> {
        Ok(())
    }
}

fn add_finalizer(object: &mut Value, finalizer: &str) {
    let finalizers = object.make_object().entry("metadata").make_object().entry("finalizers");
    if finalizers.is_null() {
        *finalizers = Value::Array(Vec::new());
    }
    if let Value::Array(finalizers) = finalizers
        && !finalizers.iter().any(|known| known.as_str() == Some(finalizer))
    {
        finalizers.push(Value::from(finalizer));
    }
}
