//! The OpenAPI v2 document, `application/com.github.proto-openapi.spec.v2.v1.0+protobuf`: what client-go's discovery asks
//! for. Only what our document has is described.
//!
//! Source: `OpenAPIv2.proto` of google/gnostic-models.

use super::super::table::{Codec, Field, Kind::*, Message, field, message};
use crate::value::Value;

pub static OPEN_API_V2: Message = Message::new(
    "Document",
    &[
        field(1, "swagger", String),
        message(2, "info", &INFO),
        message(8, "paths", &PATHS).pointer(),
        message(9, "definitions", &DEFINITIONS).pointer(),
        message(10, "parameters", &PARAMETER_DEFINITIONS).pointer(),
        message(12, "security", &SECURITY_REQUIREMENT).list(),
        message(13, "securityDefinitions", &SECURITY_DEFINITIONS).pointer(),
        extensions(16),
    ],
);

/// The members that begin with `x-`, each with any value.
const fn extensions(number: u32) -> Field {
    message(number, "x-", &ANY).extensions()
}

/// A message whose one field holds all members of an object, by their names.
const fn members(name: &'static str, fields: &'static [Field]) -> Message {
    Message::new(name, fields).codec(Codec::Members)
}

static ANY: Message = Message::new("Any", &[field(2, "", String)]).codec(Codec::Any);

static INFO: Message = Message::new("Info", &[field(1, "title", String), field(2, "version", String)]);

static PATHS: Message = members("Paths", &[message(2, "", &PATH_ITEM).map()]);

static PATH_ITEM: Message = Message::new(
    "PathItem",
    &[
        message(2, "get", &OPERATION).pointer(),
        message(3, "put", &OPERATION).pointer(),
        message(4, "post", &OPERATION).pointer(),
        message(5, "delete", &OPERATION).pointer(),
        message(6, "options", &OPERATION).pointer(),
        message(7, "head", &OPERATION).pointer(),
        message(8, "patch", &OPERATION).pointer(),
        message(9, "parameters", &PARAMETERS_ITEM).list(),
        extensions(10),
    ],
);

static OPERATION: Message = Message::new(
    "Operation",
    &[
        field(1, "tags", String).list(),
        field(3, "description", String),
        field(5, "operationId", String),
        field(6, "produces", String).list(),
        field(7, "consumes", String).list(),
        message(8, "parameters", &PARAMETERS_ITEM).list(),
        message(9, "responses", &RESPONSES).pointer(),
        field(10, "schemes", String).list(),
        field(11, "deprecated", Bool).pointer(),
        extensions(13),
    ],
);

static PARAMETERS_ITEM: Message =
    Message::new("ParametersItem", &[message(1, "", &PARAMETER).pointer(), message(2, "", &JSON_REFERENCE).pointer()])
        .codec(Codec::Choice(|item| usize::from(item.get("$ref").is_some())));

static JSON_REFERENCE: Message = Message::new("JsonReference", &[field(1, "$ref", String)]);

static PARAMETER: Message = Message::new(
    "Parameter",
    &[message(1, "", &BODY_PARAMETER).pointer(), message(2, "", &NON_BODY_PARAMETER).pointer()],
)
.codec(Codec::Choice(|parameter| usize::from(parameter.str_at(&["in"]) != "body")));

static BODY_PARAMETER: Message = Message::new(
    "BodyParameter",
    &[
        field(1, "description", String),
        field(2, "name", String),
        field(3, "in", String),
        field(4, "required", Bool).pointer(),
        message(5, "schema", &SCHEMA).pointer(),
        extensions(6),
    ],
);

static NON_BODY_PARAMETER: Message = Message::new(
    "NonBodyParameter",
    &[message(3, "", &QUERY_PARAMETER).pointer(), message(4, "", &PATH_PARAMETER).pointer()],
)
.codec(Codec::Choice(|parameter| usize::from(parameter.str_at(&["in"]) == "path")));

static QUERY_PARAMETER: Message = Message::new(
    "QueryParameterSubSchema",
    &[
        field(1, "required", Bool).pointer(),
        field(2, "in", String),
        field(3, "description", String),
        field(4, "name", String),
        field(6, "type", String),
        field(7, "format", String),
        field(20, "uniqueItems", Bool).pointer(),
        extensions(23),
    ],
);

static PATH_PARAMETER: Message = Message::new(
    "PathParameterSubSchema",
    &[
        field(1, "required", Bool).pointer(),
        field(2, "in", String),
        field(3, "description", String),
        field(4, "name", String),
        field(5, "type", String),
        field(6, "format", String),
        field(19, "uniqueItems", Bool).pointer(),
        extensions(22),
    ],
);

static PARAMETER_DEFINITIONS: Message = members("ParameterDefinitions", &[message(1, "", &PARAMETER).map()]);

static RESPONSES: Message = members("Responses", &[message(1, "", &RESPONSE_VALUE).map()]);

static RESPONSE_VALUE: Message =
    Message::new("ResponseValue", &[message(1, "", &RESPONSE).pointer()]).codec(Codec::Choice(|_| 0));

static RESPONSE: Message =
    Message::new("Response", &[field(1, "description", String), message(2, "schema", &SCHEMA_ITEM).pointer()]);

static SCHEMA_ITEM: Message =
    Message::new("SchemaItem", &[message(1, "", &SCHEMA).pointer()]).codec(Codec::Choice(|_| 0));

static DEFINITIONS: Message = members("Definitions", &[message(1, "", &SCHEMA).map()]);

static SCHEMA: Message = Message::new(
    "Schema",
    &[
        field(1, "$ref", String),
        field(2, "format", String),
        field(3, "title", String),
        field(4, "description", String),
        message(5, "default", &ANY).pointer(),
        field(6, "multipleOf", Double).pointer(),
        field(7, "maximum", Double).pointer(),
        field(8, "exclusiveMaximum", Bool).pointer(),
        field(9, "minimum", Double).pointer(),
        field(10, "exclusiveMinimum", Bool).pointer(),
        field(11, "maxLength", Int64).pointer(),
        field(12, "minLength", Int64).pointer(),
        field(13, "pattern", String),
        field(14, "maxItems", Int64).pointer(),
        field(15, "minItems", Int64).pointer(),
        field(16, "uniqueItems", Bool).pointer(),
        field(17, "maxProperties", Int64).pointer(),
        field(18, "minProperties", Int64).pointer(),
        field(19, "required", String).list(),
        message(20, "enum", &ANY).list(),
        message(21, "additionalProperties", &ADDITIONAL_PROPERTIES).pointer(),
        message(22, "type", &ONE_OR_MORE_TEXTS).pointer(),
        message(23, "items", &ONE_OR_MORE_SCHEMAS).pointer(),
        message(24, "allOf", &SCHEMA).list(),
        message(25, "properties", &PROPERTIES).pointer(),
        message(29, "externalDocs", &EXTERNAL_DOCS).pointer(),
        message(30, "example", &ANY).pointer(),
        extensions(31),
    ],
);

static ADDITIONAL_PROPERTIES: Message =
    Message::new("AdditionalPropertiesItem", &[message(1, "", &SCHEMA).pointer(), field(2, "", Bool).pointer()])
        .codec(Codec::Choice(|value| usize::from(matches!(value, Value::Bool(_)))));

static ONE_OR_MORE_TEXTS: Message = one_or_more("TypeItem", &[field(1, "", String).list()]);

static ONE_OR_MORE_SCHEMAS: Message = one_or_more("ItemsItem", &[message(1, "", &SCHEMA).list()]);

const fn one_or_more(name: &'static str, fields: &'static [Field]) -> Message {
    Message::new(name, fields).codec(Codec::OneOrMore)
}

static PROPERTIES: Message = members("Properties", &[message(1, "", &SCHEMA).map()]);

static EXTERNAL_DOCS: Message =
    Message::new("ExternalDocs", &[field(1, "description", String), field(2, "url", String)]);

static SECURITY_REQUIREMENT: Message = members("SecurityRequirement", &[message(1, "", &TEXTS).map()]);

static TEXTS: Message = Message::new("StringArray", &[field(1, "", String).list()]).codec(Codec::List);

static SECURITY_DEFINITIONS: Message = members("SecurityDefinitions", &[message(1, "", &SECURITY_DEFINITION).map()]);

static SECURITY_DEFINITION: Message =
    Message::new("SecurityDefinitionsItem", &[message(2, "", &API_KEY).pointer()]).codec(Codec::Choice(|_| 0));

static API_KEY: Message = Message::new(
    "ApiKeySecurity",
    &[field(1, "type", String), field(2, "name", String), field(3, "in", String), field(4, "description", String)],
);
