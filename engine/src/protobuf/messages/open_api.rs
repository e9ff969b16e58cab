//! The OpenAPI v2 document, `application/com.github.proto-openapi.spec.v2.v1.0+protobuf`, which client-go's discovery
//! requests. Only the fields that this server's document has are described.
//!
//! Source: `OpenAPIv2.proto` of google/gnostic-models.

use crate::types::{Codec, Field, Message, boolean, double, int64, message, string};
use crate::value::Value;

/// The OpenAPI v2 document.
pub static OPEN_API_V2: Message = Message::new(
    "Document",
    &[
        string(1, "swagger"),
        message(2, "info", &INFO),
        message(8, "paths", &PATHS).pointer(),
        message(9, "definitions", &DEFINITIONS).pointer(),
        message(10, "parameters", &PARAMETER_DEFINITIONS).pointer(),
        message(12, "security", &SECURITY_REQUIREMENT).list(),
        message(13, "securityDefinitions", &SECURITY_DEFINITIONS).pointer(),
        extensions(16),
    ],
);

/// The field for members whose names start with `x-`, with any values.
const fn extensions(number: u32) -> Field {
    message(number, "x-", &ANY).extensions()
}

/// A message whose only field has all members of an object, by their names.
const fn members(name: &'static str, fields: &'static [Field]) -> Message {
    Message::new(name, fields).codec(Codec::Members)
}

static ANY: Message = Message::new("Any", &[string(2, "")]).codec(Codec::Any);

static INFO: Message = Message::new("Info", &[string(1, "title"), string(2, "version")]);

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
        string(1, "tags").list(),
        string(3, "description"),
        string(5, "operationId"),
        string(6, "produces").list(),
        string(7, "consumes").list(),
        message(8, "parameters", &PARAMETERS_ITEM).list(),
        message(9, "responses", &RESPONSES).pointer(),
        string(10, "schemes").list(),
        boolean(11, "deprecated").pointer(),
        extensions(13),
    ],
);

static PARAMETERS_ITEM: Message =
    Message::new("ParametersItem", &[message(1, "", &PARAMETER).pointer(), message(2, "", &JSON_REFERENCE).pointer()])
        .codec(Codec::Choice(|item| usize::from(item.get("$ref").is_some())));

static JSON_REFERENCE: Message = Message::new("JsonReference", &[string(1, "$ref")]);

static PARAMETER: Message = Message::new(
    "Parameter",
    &[message(1, "", &BODY_PARAMETER).pointer(), message(2, "", &NON_BODY_PARAMETER).pointer()],
)
.codec(Codec::Choice(|parameter| usize::from(parameter.str_at(&["in"]) != "body")));

static BODY_PARAMETER: Message = Message::new(
    "BodyParameter",
    &[
        string(1, "description"),
        string(2, "name"),
        string(3, "in"),
        boolean(4, "required").pointer(),
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
        boolean(1, "required").pointer(),
        string(2, "in"),
        string(3, "description"),
        string(4, "name"),
        string(6, "type"),
        string(7, "format"),
        boolean(20, "uniqueItems").pointer(),
        extensions(23),
    ],
);

static PATH_PARAMETER: Message = Message::new(
    "PathParameterSubSchema",
    &[
        boolean(1, "required").pointer(),
        string(2, "in"),
        string(3, "description"),
        string(4, "name"),
        string(5, "type"),
        string(6, "format"),
        boolean(19, "uniqueItems").pointer(),
        extensions(22),
    ],
);

static PARAMETER_DEFINITIONS: Message = members("ParameterDefinitions", &[message(1, "", &PARAMETER).map()]);

static RESPONSES: Message = members("Responses", &[message(1, "", &RESPONSE_VALUE).map()]);

static RESPONSE_VALUE: Message =
    Message::new("ResponseValue", &[message(1, "", &RESPONSE).pointer()]).codec(Codec::Choice(|_| 0));

static RESPONSE: Message =
    Message::new("Response", &[string(1, "description"), message(2, "schema", &SCHEMA_ITEM).pointer()]);

static SCHEMA_ITEM: Message =
    Message::new("SchemaItem", &[message(1, "", &SCHEMA).pointer()]).codec(Codec::Choice(|_| 0));

static DEFINITIONS: Message = members("Definitions", &[message(1, "", &SCHEMA).map()]);

static SCHEMA: Message = Message::new(
    "Schema",
    &[
        string(1, "$ref"),
        string(2, "format"),
        string(3, "title"),
        string(4, "description"),
        message(5, "default", &ANY).pointer(),
        double(6, "multipleOf").pointer(),
        double(7, "maximum").pointer(),
        boolean(8, "exclusiveMaximum").pointer(),
        double(9, "minimum").pointer(),
        boolean(10, "exclusiveMinimum").pointer(),
        int64(11, "maxLength").pointer(),
        int64(12, "minLength").pointer(),
        string(13, "pattern"),
        int64(14, "maxItems").pointer(),
        int64(15, "minItems").pointer(),
        boolean(16, "uniqueItems").pointer(),
        int64(17, "maxProperties").pointer(),
        int64(18, "minProperties").pointer(),
        string(19, "required").list(),
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
    Message::new("AdditionalPropertiesItem", &[message(1, "", &SCHEMA).pointer(), boolean(2, "").pointer()])
        .codec(Codec::Choice(|value| usize::from(matches!(value, Value::Bool(_)))));

static ONE_OR_MORE_TEXTS: Message = one_or_more("TypeItem", &[string(1, "").list()]);

static ONE_OR_MORE_SCHEMAS: Message = one_or_more("ItemsItem", &[message(1, "", &SCHEMA).list()]);

const fn one_or_more(name: &'static str, fields: &'static [Field]) -> Message {
    Message::new(name, fields).codec(Codec::OneOrMore)
}

static PROPERTIES: Message = members("Properties", &[message(1, "", &SCHEMA).map()]);

static EXTERNAL_DOCS: Message = Message::new("ExternalDocs", &[string(1, "description"), string(2, "url")]);

static SECURITY_REQUIREMENT: Message = members("SecurityRequirement", &[message(1, "", &TEXTS).map()]);

static TEXTS: Message = Message::new("StringArray", &[string(1, "").list()]).codec(Codec::List);

static SECURITY_DEFINITIONS: Message = members("SecurityDefinitions", &[message(1, "", &SECURITY_DEFINITION).map()]);

static SECURITY_DEFINITION: Message =
    Message::new("SecurityDefinitionsItem", &[message(2, "", &API_KEY).pointer()]).codec(Codec::Choice(|_| 0));

static API_KEY: Message =
    Message::new("ApiKeySecurity", &[string(1, "type"), string(2, "name"), string(3, "in"), string(4, "description")]);
