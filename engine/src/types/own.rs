//! Types that encode and decode themselves in Go: their JSON does not follow from their fields.

use super::{Codec, Field, int32, int64, string};

/// The encoding of such a type. Its fields are here if the data has none, or not those that are sent.
pub(super) struct OwnType {
    pub codec: Codec,
    pub fields: Option<&'static [Field]>,
}

impl OwnType {
    const fn new(codec: Codec, fields: &'static [Field]) -> Option<Self> {
        Some(OwnType { codec, fields: Some(fields) })
    }

    const fn of_data(codec: Codec) -> Option<Self> {
        Some(OwnType { codec, fields: None })
    }
}

/// The encoding of the type `name` of a package, if it has its own.
pub(super) fn find(package: &str, name: &str) -> Option<OwnType> {
    match (package, name) {
        ("meta.v1", "Time") => OwnType::new(Codec::Time, TIMESTAMP),
        ("meta.v1", "MicroTime") => OwnType::new(Codec::MicroTime, TIMESTAMP),
        ("meta.v1", "Duration") => OwnType::new(Codec::Duration, DURATION),
        ("meta.v1", "FieldsV1") => OwnType::new(Codec::FieldsV1, RAW),
        ("quantity", "Quantity") => OwnType::new(Codec::Quantity, QUANTITY),
        ("intstr", "IntOrString") => OwnType::of_data(Codec::IntOrString),
        ("runtime", "RawExtension") | ("apiextensions.v1", "JSON") => OwnType::new(Codec::Json, RAW),
        ("apiextensions.v1", "JSONSchemaPropsOrArray") => OwnType::of_data(Codec::SchemaOrArray),
        ("apiextensions.v1", "JSONSchemaPropsOrBool") => OwnType::of_data(Codec::SchemaOrBool),
        ("apiextensions.v1", "JSONSchemaPropsOrStringArray") => OwnType::of_data(Codec::SchemaOrStringArray),
        _ => None,
    }
}

const DURATION: &[Field] = &[int64(1, "duration")];

const QUANTITY: &[Field] = &[string(1, "string")];

const TIMESTAMP: &[Field] = &[int64(1, "seconds"), int32(2, "nanos")];

/// Bytes that hold a text of JSON.
const RAW: &[Field] = &[string(1, "").pointer().go("Raw")];
