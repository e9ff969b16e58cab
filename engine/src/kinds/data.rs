//! Data of ConfigMaps and Secrets: values by key.

use crate::value::{Value, base64};
use crate::work;

/// The data of one object, in bytes. Source: Kubernetes' `MaxSecretSize`.
pub const DATA_BYTES_MAX: usize = 1 << 20;

/// The entries of a map in the object.
pub fn entries<'v>(object: &'v Value, field: &str) -> impl Iterator<Item = (&'v str, &'v Value)> + use<'v> {
    object
        .get(field)
        .and_then(Value::as_object)
        .into_iter()
        .flat_map(|entries| entries.iter())
        .inspect(|_| work::step())
}

/// The number of bytes that a base64 value decodes to.
pub fn decoded_bytes(value: &Value) -> usize {
    base64::decode(value.as_str().unwrap_or_default()).map_or(0, |bytes| bytes.len())
}
