//! The order in which Go prints the fields of Kubernetes' own kinds.
//!
//! A custom object is a map in Go, so its fields are sorted. Kinds that are structs there have their fields in the order
//! they are declared in, `kind` first. Only text shows it; no meaning hangs on it. Built-in kinds have it from their
//! message; what else goes out as JSON stands here.
//!
//! Source: the types of `k8s.io/api`, `apimachinery` and `apiextensions-apiserver`, release 1.37.

use crate::types::metadata;
use crate::value::Value;
use crate::value::json;
use crate::value::json::Layout::{self, Map, Sorted, Struct};

/// The layout of an object, by its `apiVersion` and `kind`.
pub fn of(object: &Value) -> Layout {
    let (api_version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    let layout = match (api_version, kind) {
        ("v1", "Status") => &STATUS,
        ("v1", "APIResourceList") => &RESOURCE_LIST,
        ("v1", "APIGroup") => &GROUP,
        ("v1", "APIGroupList") => &GROUP_LIST,
        ("", "APIVersions") => &CORE_VERSIONS,
        ("autoscaling/v1", "Scale") => &SCALE,
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition") => &DEFINITION,
        ("apiextensions.k8s.io/v1", "CustomResourceDefinitionList") => &DEFINITION_LIST,
        ("meta.k8s.io/v1" | "meta.k8s.io/v1beta1", "Table") => &TABLE,
        ("meta.k8s.io/v1" | "meta.k8s.io/v1beta1", "PartialObjectMetadata") => &PARTIAL,
        ("meta.k8s.io/v1" | "meta.k8s.io/v1beta1", "PartialObjectMetadataList") => &PARTIAL_LIST,
        ("apidiscovery.k8s.io/v2" | "apidiscovery.k8s.io/v2beta1", "APIGroupDiscoveryList") => &DISCOVERY_LIST,
        _ => return super::layout_of(api_version, kind).unwrap_or(Sorted),
    };
    *layout
}

/// The sorted JSON of an object in its layout; custom objects cost a look at their first bytes.
pub fn lay_out(sorted: Vec<u8>) -> Vec<u8> {
    const API_VERSIONS: [&[u8]; 7] = [
        b"v1",
        b"apiextensions.k8s.io/v1",
        b"autoscaling/v1",
        b"meta.k8s.io/v1",
        b"meta.k8s.io/v1beta1",
        b"apidiscovery.k8s.io/v2",
        b"apidiscovery.k8s.io/v2beta1",
    ];
    let rest = sorted.strip_prefix(b"{\"apiVersion\":\"").unwrap_or_default();
    let api_version = rest.split(|byte| *byte == b'"').next().unwrap_or_default();
    let is_known = API_VERSIONS.contains(&api_version)
        || super::all().any(|kind| std::str::from_utf8(api_version).is_ok_and(|text| kind.is_in(text)));
    if !is_known {
        return sorted;
    }
    match json::decode(&sorted) {
        Ok(object) => json::encode_as(&object, of(&object)),
        Err(_) => sorted,
    }
}

/// What `/version` answers.
pub static VERSION: Layout = Struct(&[
    ("major", &Sorted),
    ("minor", &Sorted),
    ("emulationMajor", &Sorted),
    ("emulationMinor", &Sorted),
    ("minCompatibilityMajor", &Sorted),
    ("minCompatibilityMinor", &Sorted),
    ("gitVersion", &Sorted),
    ("gitCommit", &Sorted),
    ("gitTreeState", &Sorted),
    ("buildDate", &Sorted),
    ("goVersion", &Sorted),
    ("compiler", &Sorted),
    ("platform", &Sorted),
]);

static LIST_METADATA: Layout = metadata::LIST_META.layout();

static OBJECT_METADATA: Layout = metadata::OBJECT_META.layout();

static STATUS: Layout = Struct(&[
    ("kind", &Sorted),
    ("apiVersion", &Sorted),
    ("metadata", &LIST_METADATA),
    ("status", &Sorted),
    ("message", &Sorted),
    ("reason", &Sorted),
    ("details", &STATUS_DETAILS),
    ("code", &Sorted),
]);

static STATUS_DETAILS: Layout = Struct(&[
    ("name", &Sorted),
    ("group", &Sorted),
    ("kind", &Sorted),
    ("uid", &Sorted),
    ("causes", &STATUS_CAUSE),
    ("retryAfterSeconds", &Sorted),
]);

static STATUS_CAUSE: Layout = Struct(&[("reason", &Sorted), ("message", &Sorted), ("field", &Sorted)]);

static PARTIAL: Layout = Struct(&[("kind", &Sorted), ("apiVersion", &Sorted), ("metadata", &OBJECT_METADATA)]);

static PARTIAL_LIST: Layout =
    Struct(&[("kind", &Sorted), ("apiVersion", &Sorted), ("metadata", &LIST_METADATA), ("items", &PARTIAL)]);

static TABLE: Layout = Struct(&[
    ("kind", &Sorted),
    ("apiVersion", &Sorted),
    ("metadata", &LIST_METADATA),
    ("columnDefinitions", &TABLE_COLUMN),
    ("rows", &TABLE_ROW),
]);

static TABLE_COLUMN: Layout = Struct(&[
    ("name", &Sorted),
    ("type", &Sorted),
    ("format", &Sorted),
    ("description", &Sorted),
    ("priority", &Sorted),
]);

static TABLE_ROW: Layout = Struct(&[("cells", &Sorted), ("conditions", &Sorted), ("object", &Layout::Choose(of))]);

static GROUP_VERSION: Layout = Struct(&[("groupVersion", &Sorted), ("version", &Sorted)]);

static SERVER_ADDRESS: Layout = Struct(&[("clientCIDR", &Sorted), ("serverAddress", &Sorted)]);

static GROUP: Layout = Struct(&[
    ("kind", &Sorted),
    ("apiVersion", &Sorted),
    ("name", &Sorted),
    ("versions", &GROUP_VERSION),
    ("preferredVersion", &GROUP_VERSION),
    ("serverAddressByClientCIDRs", &SERVER_ADDRESS),
]);

static GROUP_LIST: Layout = Struct(&[("kind", &Sorted), ("apiVersion", &Sorted), ("groups", &GROUP)]);

static CORE_VERSIONS: Layout = Struct(&[
    ("kind", &Sorted),
    ("apiVersion", &Sorted),
    ("versions", &Sorted),
    ("serverAddressByClientCIDRs", &SERVER_ADDRESS),
]);

static RESOURCE_LIST: Layout =
    Struct(&[("kind", &Sorted), ("apiVersion", &Sorted), ("groupVersion", &Sorted), ("resources", &RESOURCE)]);

static RESOURCE: Layout = Struct(&[
    ("name", &Sorted),
    ("singularName", &Sorted),
    ("namespaced", &Sorted),
    ("group", &Sorted),
    ("version", &Sorted),
    ("kind", &Sorted),
    ("verbs", &Sorted),
    ("shortNames", &Sorted),
    ("categories", &Sorted),
    ("storageVersionHash", &Sorted),
]);

static DISCOVERY_LIST: Layout =
    Struct(&[("kind", &Sorted), ("apiVersion", &Sorted), ("metadata", &LIST_METADATA), ("items", &DISCOVERY_GROUP)]);

static DISCOVERY_GROUP: Layout = Struct(&[("metadata", &OBJECT_METADATA), ("versions", &DISCOVERY_VERSION)]);

static DISCOVERY_VERSION: Layout =
    Struct(&[("version", &Sorted), ("resources", &DISCOVERY_RESOURCE), ("freshness", &Sorted)]);

static DISCOVERY_RESOURCE: Layout = Struct(&[
    ("resource", &Sorted),
    ("responseKind", &DISCOVERY_KIND),
    ("scope", &Sorted),
    ("singularResource", &Sorted),
    ("verbs", &Sorted),
    ("shortNames", &Sorted),
    ("categories", &Sorted),
    ("subresources", &DISCOVERY_SUBRESOURCE),
]);

static DISCOVERY_SUBRESOURCE: Layout = Struct(&[
    ("subresource", &Sorted),
    ("responseKind", &DISCOVERY_KIND),
    ("acceptedTypes", &DISCOVERY_KIND),
    ("verbs", &Sorted),
]);

static DISCOVERY_KIND: Layout = Struct(&[("group", &Sorted), ("version", &Sorted), ("kind", &Sorted)]);

static SCALE: Layout = Struct(&[
    ("kind", &Sorted),
    ("apiVersion", &Sorted),
    ("metadata", &OBJECT_METADATA),
    ("spec", &Sorted),
    ("status", &Struct(&[("replicas", &Sorted), ("selector", &Sorted)])),
]);

static DEFINITION_LIST: Layout =
    Struct(&[("kind", &Sorted), ("apiVersion", &Sorted), ("metadata", &LIST_METADATA), ("items", &DEFINITION)]);

static DEFINITION: Layout = Struct(&[
    ("kind", &Sorted),
    ("apiVersion", &Sorted),
    ("metadata", &OBJECT_METADATA),
    (
        "spec",
        &Struct(&[
            ("group", &Sorted),
            ("names", &DEFINITION_NAMES),
            ("scope", &Sorted),
            ("versions", &DEFINITION_VERSION),
            ("conversion", &DEFINITION_CONVERSION),
            ("preserveUnknownFields", &Sorted),
        ]),
    ),
    (
        "status",
        &Struct(&[
            ("conditions", &DEFINITION_CONDITION),
            ("acceptedNames", &DEFINITION_NAMES),
            ("storedVersions", &Sorted),
            ("observedGeneration", &Sorted),
        ]),
    ),
]);

static DEFINITION_NAMES: Layout = Struct(&[
    ("plural", &Sorted),
    ("singular", &Sorted),
    ("shortNames", &Sorted),
    ("kind", &Sorted),
    ("listKind", &Sorted),
    ("categories", &Sorted),
]);

static DEFINITION_CONDITION: Layout = Struct(&[
    ("type", &Sorted),
    ("status", &Sorted),
    ("lastTransitionTime", &Sorted),
    ("reason", &Sorted),
    ("message", &Sorted),
    ("observedGeneration", &Sorted),
]);

static DEFINITION_CONVERSION: Layout = Struct(&[
    ("strategy", &Sorted),
    (
        "webhook",
        &Struct(&[
            (
                "clientConfig",
                &Struct(&[
                    ("url", &Sorted),
                    (
                        "service",
                        &Struct(&[("namespace", &Sorted), ("name", &Sorted), ("path", &Sorted), ("port", &Sorted)]),
                    ),
                    ("caBundle", &Sorted),
                ]),
            ),
            ("conversionReviewVersions", &Sorted),
        ]),
    ),
]);

static DEFINITION_VERSION: Layout = Struct(&[
    ("name", &Sorted),
    ("served", &Sorted),
    ("storage", &Sorted),
    ("deprecated", &Sorted),
    ("deprecationWarning", &Sorted),
    ("schema", &Struct(&[("openAPIV3Schema", &JSON_SCHEMA)])),
    (
        "subresources",
        &Struct(&[
            ("status", &Sorted),
            (
                "scale",
                &Struct(&[
                    ("specReplicasPath", &Sorted),
                    ("statusReplicasPath", &Sorted),
                    ("labelSelectorPath", &Sorted),
                ]),
            ),
        ]),
    ),
    (
        "additionalPrinterColumns",
        &Struct(&[
            ("name", &Sorted),
            ("type", &Sorted),
            ("format", &Sorted),
            ("description", &Sorted),
            ("priority", &Sorted),
            ("jsonPath", &Sorted),
        ]),
    ),
    ("selectableFields", &Sorted),
]);

static JSON_SCHEMAS: Layout = Map(&JSON_SCHEMA);

static JSON_SCHEMA: Layout = Struct(&[
    ("id", &Sorted),
    ("$schema", &Sorted),
    ("$ref", &Sorted),
    ("description", &Sorted),
    ("type", &Sorted),
    ("format", &Sorted),
    ("title", &Sorted),
    ("default", &Sorted),
    ("maximum", &Sorted),
    ("exclusiveMaximum", &Sorted),
    ("minimum", &Sorted),
    ("exclusiveMinimum", &Sorted),
    ("maxLength", &Sorted),
    ("minLength", &Sorted),
    ("pattern", &Sorted),
    ("maxItems", &Sorted),
    ("minItems", &Sorted),
    ("uniqueItems", &Sorted),
    ("multipleOf", &Sorted),
    ("enum", &Sorted),
    ("maxProperties", &Sorted),
    ("minProperties", &Sorted),
    ("required", &Sorted),
    ("items", &JSON_SCHEMA),
    ("allOf", &JSON_SCHEMA),
    ("oneOf", &JSON_SCHEMA),
    ("anyOf", &JSON_SCHEMA),
    ("not", &JSON_SCHEMA),
    ("properties", &JSON_SCHEMAS),
    ("additionalProperties", &JSON_SCHEMA),
    ("patternProperties", &JSON_SCHEMAS),
    ("dependencies", &JSON_SCHEMAS),
    ("additionalItems", &JSON_SCHEMA),
    ("definitions", &JSON_SCHEMAS),
    ("externalDocs", &Struct(&[("description", &Sorted), ("url", &Sorted)])),
    ("example", &Sorted),
    ("nullable", &Sorted),
    ("x-kubernetes-preserve-unknown-fields", &Sorted),
    ("x-kubernetes-embedded-resource", &Sorted),
    ("x-kubernetes-int-or-string", &Sorted),
    ("x-kubernetes-list-map-keys", &Sorted),
    ("x-kubernetes-list-type", &Sorted),
    ("x-kubernetes-map-type", &Sorted),
    (
        "x-kubernetes-validations",
        &Struct(&[
            ("rule", &Sorted),
            ("message", &Sorted),
            ("messageExpression", &Sorted),
            ("reason", &Sorted),
            ("fieldPath", &Sorted),
            ("optionalOldSelf", &Sorted),
        ]),
    ),
]);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(sorted: &str, expect: &str) {
        assert_eq!(String::from_utf8_lossy(&lay_out(sorted.as_bytes().to_vec())), expect);
    }

    #[test]
    fn structs_have_their_own_order() {
        check(
            r#"{"apiVersion":"v1","code":404,"details":{"kind":"w","name":"a"},"kind":"Status","metadata":{},"reason":"NotFound"}"#,
            r#"{"kind":"Status","apiVersion":"v1","metadata":{},"reason":"NotFound","details":{"name":"a","kind":"w"},"code":404}"#,
        );
    }

    #[test]
    fn rows_hold_objects_of_any_kind() {
        check(
            r#"{"apiVersion":"meta.k8s.io/v1","kind":"Table","rows":[{"cells":[1],"object":{"apiVersion":"a/v1","kind":"A"}},{"object":{"apiVersion":"meta.k8s.io/v1","kind":"PartialObjectMetadata"}}]}"#,
            r#"{"kind":"Table","apiVersion":"meta.k8s.io/v1","rows":[{"cells":[1],"object":{"apiVersion":"a/v1","kind":"A"}},{"object":{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/v1"}}]}"#,
        );
    }

    #[test]
    fn schemas_within_schemas_are_ordered_too() {
        check(
            r#"{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"properties":{"b":{"items":{"minimum":1,"type":"integer"},"type":"array"},"a":{"x-unknown":1,"type":"string"}},"type":"object"}}}]}}"#,
            r#"{"kind":"CustomResourceDefinition","apiVersion":"apiextensions.k8s.io/v1","spec":{"versions":[{"name":"v1","schema":{"openAPIV3Schema":{"type":"object","properties":{"a":{"type":"string","x-unknown":1},"b":{"type":"array","items":{"type":"integer","minimum":1}}}}}}]}}"#,
        );
    }
}
