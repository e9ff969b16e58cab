//! The schema in a CustomResourceDefinition.

use crate::types::{Codec, Message, boolean, double, int64, message, string};

pub static JSON_SCHEMA_PROPS: Message = Message::new(
    "JSONSchemaProps",
    &[
        string(1, "id").go("ID"),
        string(2, "$schema").go("Schema"),
        string(3, "$ref").pointer().go("Ref"),
        string(4, "description"),
        string(5, "type"),
        string(6, "format"),
        string(7, "title"),
        message(8, "default", &JSON).pointer(),
        double(9, "maximum").pointer(),
        boolean(10, "exclusiveMaximum"),
        double(11, "minimum").pointer(),
        boolean(12, "exclusiveMinimum"),
        int64(13, "maxLength").pointer(),
        int64(14, "minLength").pointer(),
        string(15, "pattern"),
        int64(16, "maxItems").pointer(),
        int64(17, "minItems").pointer(),
        boolean(18, "uniqueItems"),
        double(19, "multipleOf").pointer(),
        message(20, "enum", &JSON).list(),
        int64(21, "maxProperties").pointer(),
        int64(22, "minProperties").pointer(),
        string(23, "required").list(),
        message(24, "items", &OR_ARRAY).pointer(),
        message(25, "allOf", &JSON_SCHEMA_PROPS).list(),
        message(26, "oneOf", &JSON_SCHEMA_PROPS).list(),
        message(27, "anyOf", &JSON_SCHEMA_PROPS).list(),
        message(28, "not", &JSON_SCHEMA_PROPS).pointer(),
        message(29, "properties", &JSON_SCHEMA_PROPS).map(),
        message(30, "additionalProperties", &OR_BOOL).pointer(),
        message(31, "patternProperties", &JSON_SCHEMA_PROPS).map(),
        message(32, "dependencies", &OR_STRING_ARRAY).map(),
        message(33, "additionalItems", &OR_BOOL).pointer(),
        message(34, "definitions", &JSON_SCHEMA_PROPS).map(),
        message(35, "externalDocs", &EXTERNAL_DOCUMENTATION).pointer(),
        message(36, "example", &JSON).pointer(),
        boolean(37, "nullable"),
        boolean(38, "x-kubernetes-preserve-unknown-fields").pointer().go("XPreserveUnknownFields"),
        boolean(39, "x-kubernetes-embedded-resource").go("XEmbeddedResource"),
        boolean(40, "x-kubernetes-int-or-string").go("XIntOrString"),
        string(41, "x-kubernetes-list-map-keys").list().go("XListMapKeys"),
        string(42, "x-kubernetes-list-type").pointer().go("XListType"),
        string(43, "x-kubernetes-map-type").pointer().go("XMapType"),
        message(44, "x-kubernetes-validations", &VALIDATION_RULE).list().go("XValidations"),
    ],
);

static JSON: Message = Message::new("JSON", &[string(1, "").pointer().go("Raw")]).codec(Codec::Json);

static OR_ARRAY: Message = Message::new(
    "JSONSchemaPropsOrArray",
    &[
        message(1, "", &JSON_SCHEMA_PROPS).pointer().go("Schema"),
        message(2, "", &JSON_SCHEMA_PROPS).list().go("JSONSchemas"),
    ],
)
.codec(Codec::SchemaOrArray);

static OR_BOOL: Message = Message::new(
    "JSONSchemaPropsOrBool",
    &[boolean(1, "").go("Allows"), message(2, "", &JSON_SCHEMA_PROPS).pointer().go("Schema")],
)
.codec(Codec::SchemaOrBool);

static OR_STRING_ARRAY: Message = Message::new(
    "JSONSchemaPropsOrStringArray",
    &[message(1, "", &JSON_SCHEMA_PROPS).pointer().go("Schema"), string(2, "").list().go("Property")],
)
.codec(Codec::SchemaOrStringArray);

static EXTERNAL_DOCUMENTATION: Message =
    Message::new("ExternalDocumentation", &[string(1, "description"), string(2, "url").go("URL")]);

static VALIDATION_RULE: Message = Message::new(
    "ValidationRule",
    &[
        string(1, "rule").always(),
        string(2, "message"),
        string(3, "messageExpression"),
        string(4, "reason").pointer(),
        string(5, "fieldPath"),
        boolean(6, "optionalOldSelf").pointer(),
    ],
);
