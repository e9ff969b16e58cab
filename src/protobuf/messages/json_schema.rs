//! The schema in a CustomResourceDefinition.

use super::super::table::{Codec, Kind::*, Message, field, message};

pub static JSON_SCHEMA_PROPS: Message = Message::new(
    "JSONSchemaProps",
    &[
        field(1, "id", String).go("ID"),
        field(2, "$schema", String).go("Schema"),
        field(3, "$ref", String).pointer().go("Ref"),
        field(4, "description", String),
        field(5, "type", String),
        field(6, "format", String),
        field(7, "title", String),
        message(8, "default", &JSON).pointer(),
        field(9, "maximum", Double).pointer(),
        field(10, "exclusiveMaximum", Bool),
        field(11, "minimum", Double).pointer(),
        field(12, "exclusiveMinimum", Bool),
        field(13, "maxLength", Int64).pointer(),
        field(14, "minLength", Int64).pointer(),
        field(15, "pattern", String),
        field(16, "maxItems", Int64).pointer(),
        field(17, "minItems", Int64).pointer(),
        field(18, "uniqueItems", Bool),
        field(19, "multipleOf", Double).pointer(),
        message(20, "enum", &JSON).list(),
        field(21, "maxProperties", Int64).pointer(),
        field(22, "minProperties", Int64).pointer(),
        field(23, "required", String).list(),
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
        field(37, "nullable", Bool),
        field(38, "x-kubernetes-preserve-unknown-fields", Bool).pointer().go("XPreserveUnknownFields"),
        field(39, "x-kubernetes-embedded-resource", Bool).go("XEmbeddedResource"),
        field(40, "x-kubernetes-int-or-string", Bool).go("XIntOrString"),
        field(41, "x-kubernetes-list-map-keys", String).list().go("XListMapKeys"),
        field(42, "x-kubernetes-list-type", String).pointer().go("XListType"),
        field(43, "x-kubernetes-map-type", String).pointer().go("XMapType"),
        message(44, "x-kubernetes-validations", &VALIDATION_RULE).list().go("XValidations"),
    ],
);

static JSON: Message = Message::new("JSON", &[field(1, "", String).pointer().go("Raw")]).codec(Codec::Json);

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
    &[field(1, "", Bool).go("Allows"), message(2, "", &JSON_SCHEMA_PROPS).pointer().go("Schema")],
)
.codec(Codec::SchemaOrBool);

static OR_STRING_ARRAY: Message = Message::new(
    "JSONSchemaPropsOrStringArray",
    &[message(1, "", &JSON_SCHEMA_PROPS).pointer().go("Schema"), field(2, "", String).list().go("Property")],
)
.codec(Codec::SchemaOrStringArray);

static EXTERNAL_DOCUMENTATION: Message =
    Message::new("ExternalDocumentation", &[field(1, "description", String), field(2, "url", String).go("URL")]);

static VALIDATION_RULE: Message = Message::new(
    "ValidationRule",
    &[
        field(1, "rule", String).always(),
        field(2, "message", String),
        field(3, "messageExpression", String),
        field(4, "reason", String).pointer(),
        field(5, "fieldPath", String),
        field(6, "optionalOldSelf", Bool).pointer(),
    ],
);
