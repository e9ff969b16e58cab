//! Reading and writing schemas by the published type.

use std::sync::LazyLock;

use super::{EmptyKeywords, ExternalDocs, JsonSchema, SchemaOrArray, SchemaOrBool, SchemaOrStrings, ValidationRule};
use crate::meta::minor::Minor;
use crate::meta::unmarshal::UnmarshalError;
use crate::types::decoder::Findings;
use crate::types::field_value::{FieldValue, GivenEmpty, WrittenFields, read};
use crate::types::{Message, Shape, message_named};
use crate::value::{Map, Value};
use crate::work;

/// The published types.
static SCHEMA: LazyLock<&Message> = LazyLock::new(|| message_named("apiextensions.v1", "JSONSchemaProps"));
static RULE: LazyLock<&Message> = LazyLock::new(|| message_named("apiextensions.v1", "ValidationRule"));
static EXTERNAL_DOCS: LazyLock<&Message> = LazyLock::new(|| message_named("apiextensions.v1", "ExternalDocumentation"));

/// Decodes a schema that stands alone.
///
/// # Errors
///
/// Go's text for the first value of a wrong type, or for an `additionalProperties` that is neither a boolean nor a
/// schema.
pub fn decode(value: &Value) -> Result<(JsonSchema, Findings), UnmarshalError> {
    let findings = SCHEMA.check(Minor::NEWEST, value)?;
    Ok((JsonSchema::read(value), findings))
}

impl FieldValue for JsonSchema {
    /// Reads a schema that conforms to the published type.
    fn read(value: &Value) -> Self {
        let mut schema = JsonSchema::default();
        for (name, value) in value.as_object().into_iter().flat_map(Map::iter) {
            work::step();
            schema.given_empty.note(name, value);
            schema.read_field(name, value);
        }
        schema
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        work::step();
        let mut fields = WrittenFields::new(given_empty);
        fields.put("id", &self.unsupported.id);
        fields.put("$schema", &self.unsupported.schema);
        fields.put("$ref", &self.unsupported.reference);
        fields.put("description", &self.description);
        fields.put("type", &self.type_);
        fields.put("nullable", &self.nullable);
        fields.put("format", &self.format);
        fields.put("title", &self.annotations.title);
        fields.put("default", &self.default);
        fields.put("maximum", &self.bounds.maximum);
        fields.put("exclusiveMaximum", &self.bounds.exclusive_maximum);
        fields.put("minimum", &self.bounds.minimum);
        fields.put("exclusiveMinimum", &self.bounds.exclusive_minimum);
        fields.put("maxLength", &self.bounds.max_length);
        fields.put("minLength", &self.bounds.min_length);
        fields.put("pattern", &self.pattern);
        fields.put("maxItems", &self.bounds.max_items);
        fields.put("minItems", &self.bounds.min_items);
        fields.put("uniqueItems", &self.bounds.unique_items);
        fields.put("multipleOf", &self.bounds.multiple_of);
        fields.put("enum", &self.enum_);
        fields.put("maxProperties", &self.bounds.max_properties);
        fields.put("minProperties", &self.bounds.min_properties);
        fields.put("required", &self.required);
        fields.put("items", &self.items);
        fields.put("allOf", &self.junctors.all_of);
        fields.put("oneOf", &self.junctors.one_of);
        fields.put("anyOf", &self.junctors.any_of);
        fields.put("not", &self.junctors.not);
        fields.put("properties", &self.properties);
        fields.put("additionalProperties", &self.additional_properties);
        fields.put("patternProperties", &self.unsupported.pattern_properties);
        fields.put("dependencies", &self.unsupported.dependencies);
        fields.put("additionalItems", &self.unsupported.additional_items);
        fields.put("definitions", &self.unsupported.definitions);
        fields.put("externalDocs", &self.annotations.external_docs);
        fields.put("example", &self.annotations.example);
        fields.put("x-kubernetes-preserve-unknown-fields", &self.preserve_unknown_fields);
        fields.put("x-kubernetes-embedded-resource", &self.embedded_resource);
        fields.put("x-kubernetes-int-or-string", &self.int_or_string);
        fields.put("x-kubernetes-list-map-keys", &self.list_map_keys);
        fields.put("x-kubernetes-list-type", &self.list_type);
        fields.put("x-kubernetes-map-type", &self.map_type);
        fields.put("x-kubernetes-validations", &self.validations);
        if given_empty == GivenEmpty::Written {
            self.given_empty.write(&mut fields);
        }
        fields.of(&SCHEMA)
    }
}

impl JsonSchema {
    fn read_field(&mut self, name: &str, value: &Value) {
        match name {
            "id" => self.unsupported.id = FieldValue::read(value),
            "$schema" => self.unsupported.schema = FieldValue::read(value),
            "$ref" => self.unsupported.reference = FieldValue::read(value),
            "description" => self.description = FieldValue::read(value),
            "type" => self.type_ = FieldValue::read(value),
            "nullable" => self.nullable = FieldValue::read(value),
            "format" => self.format = FieldValue::read(value),
            "title" => self.annotations.title = FieldValue::read(value),
            "default" => self.default = FieldValue::read(value),
            "maximum" => self.bounds.maximum = FieldValue::read(value),
            "exclusiveMaximum" => self.bounds.exclusive_maximum = FieldValue::read(value),
            "minimum" => self.bounds.minimum = FieldValue::read(value),
            "exclusiveMinimum" => self.bounds.exclusive_minimum = FieldValue::read(value),
            "maxLength" => self.bounds.max_length = FieldValue::read(value),
            "minLength" => self.bounds.min_length = FieldValue::read(value),
            "pattern" => self.pattern = FieldValue::read(value),
            "maxItems" => self.bounds.max_items = FieldValue::read(value),
            "minItems" => self.bounds.min_items = FieldValue::read(value),
            "uniqueItems" => self.bounds.unique_items = FieldValue::read(value),
            "multipleOf" => self.bounds.multiple_of = FieldValue::read(value),
            "enum" => self.enum_ = FieldValue::read(value),
            "maxProperties" => self.bounds.max_properties = FieldValue::read(value),
            "minProperties" => self.bounds.min_properties = FieldValue::read(value),
            "required" => self.required = FieldValue::read(value),
            "items" => self.items = FieldValue::read(value),
            "allOf" => self.junctors.all_of = FieldValue::read(value),
            "oneOf" => self.junctors.one_of = FieldValue::read(value),
            "anyOf" => self.junctors.any_of = FieldValue::read(value),
            "not" => self.junctors.not = FieldValue::read(value),
            "properties" => self.properties = FieldValue::read(value),
            "additionalProperties" => self.additional_properties = FieldValue::read(value),
            "patternProperties" => self.unsupported.pattern_properties = FieldValue::read(value),
            "dependencies" => self.unsupported.dependencies = FieldValue::read(value),
            "additionalItems" => self.unsupported.additional_items = FieldValue::read(value),
            "definitions" => self.unsupported.definitions = FieldValue::read(value),
            "externalDocs" => self.annotations.external_docs = FieldValue::read(value),
            "example" => self.annotations.example = FieldValue::read(value),
            "x-kubernetes-preserve-unknown-fields" => self.preserve_unknown_fields = FieldValue::read(value),
            "x-kubernetes-embedded-resource" => self.embedded_resource = FieldValue::read(value),
            "x-kubernetes-int-or-string" => self.int_or_string = FieldValue::read(value),
            "x-kubernetes-list-map-keys" => self.list_map_keys = FieldValue::read(value),
            "x-kubernetes-list-type" => self.list_type = FieldValue::read(value),
            "x-kubernetes-map-type" => self.map_type = FieldValue::read(value),
            "x-kubernetes-validations" => self.validations = FieldValue::read(value),
            _ => {}
        }
    }
}

impl EmptyKeywords {
    fn note(&mut self, keyword: &str, value: &Value) {
        let is_empty = match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty() && keyword != "items",
            _ => false,
        };
        if is_empty && let Some(field) = SCHEMA.member(keyword) {
            let may_be_empty = matches!(field.shape, Shape::List | Shape::Map) || keyword == "items";
            self.0.extend(may_be_empty.then_some(field));
        }
    }

    fn write(&self, fields: &mut WrittenFields) {
        for field in &self.0 {
            let empty = if field.shape == Shape::Map { Value::Object(Map::new()) } else { Value::Array(Vec::new()) };
            if !fields.has(field.json) {
                fields.set(field.json, empty);
            }
        }
    }
}

/// How `items` without a schema are written for messages, which show a struct that holds neither one nor a list: as what is
/// not null, so that it is there, and fits no field of that struct.
const NEITHER: Value = Value::Bool(true);

impl FieldValue for SchemaOrArray {
    fn read(value: &Value) -> Self {
        match value {
            Value::Object(_) => SchemaOrArray::Schema(FieldValue::read(value)),
            _ => SchemaOrArray::Array(FieldValue::read(value)),
        }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        match self {
            SchemaOrArray::Schema(schema) => schema.write(given_empty),
            SchemaOrArray::Array(schemas) if schemas.is_empty() => match given_empty {
                GivenEmpty::LeftOut => Value::Null,
                GivenEmpty::Written => NEITHER,
            },
            SchemaOrArray::Array(schemas) => schemas.write(given_empty),
        }
    }
}

impl FieldValue for SchemaOrBool {
    fn read(value: &Value) -> Self {
        match value {
            Value::Object(_) => SchemaOrBool::Schema(FieldValue::read(value)),
            _ => SchemaOrBool::Bool(FieldValue::read(value)),
        }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        match self {
            SchemaOrBool::Schema(schema) => schema.write(given_empty),
            SchemaOrBool::Bool(allowed) => allowed.write(given_empty),
        }
    }
}

impl FieldValue for SchemaOrStrings {
    fn read(value: &Value) -> Self {
        match value {
            Value::Object(_) => SchemaOrStrings::Schema(FieldValue::read(value)),
            _ => SchemaOrStrings::Strings(FieldValue::read(value)),
        }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        match self {
            SchemaOrStrings::Schema(schema) => schema.write(given_empty),
            SchemaOrStrings::Strings(names) if names.is_empty() => Value::Null,
            SchemaOrStrings::Strings(names) => names.write(given_empty),
        }
    }
}

impl FieldValue for ExternalDocs {
    fn read(value: &Value) -> Self {
        ExternalDocs { description: read(value, "description"), url: read(value, "url") }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        fields.put("description", &self.description);
        fields.put("url", &self.url);
        fields.of(&EXTERNAL_DOCS)
    }
}

impl FieldValue for ValidationRule {
    fn read(value: &Value) -> Self {
        ValidationRule {
            rule: read(value, "rule"),
            message: read(value, "message"),
            message_expression: read(value, "messageExpression"),
            reason: read(value, "reason"),
            field_path: read(value, "fieldPath"),
            optional_old_self: read(value, "optionalOldSelf"),
        }
    }

    fn is_empty(&self) -> bool {
        false
    }

    fn write(&self, given_empty: GivenEmpty) -> Value {
        let mut fields = WrittenFields::new(given_empty);
        fields.put("rule", &self.rule);
        fields.put("message", &self.message);
        fields.put("messageExpression", &self.message_expression);
        fields.put("reason", &self.reason);
        fields.put("fieldPath", &self.field_path);
        fields.put("optionalOldSelf", &self.optional_old_self);
        fields.of(&RULE)
    }
}
