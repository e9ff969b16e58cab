//! `JSONSchemaProps`: the schema language of a CustomResourceDefinition, as its author wrote it.
//!
//! Source: `apiextensions.k8s.io/v1`, release 1.37.

use std::fmt;
use std::sync::LazyLock;

use super::rare::{Blank, Rare};
use crate::meta::minor::Minor;
use crate::meta::unmarshal::UnmarshalError;
use crate::types::decoder::Findings;
use crate::types::field_value::{FieldValue, GivenEmpty, WrittenFields, read};
use crate::types::{Field, Message, Shape, message_named};
use crate::value::{Map, Value};
use crate::work;

/// The published types.
static SCHEMA: LazyLock<&Message> = LazyLock::new(|| message_named("apiextensions.v1", "JSONSchemaProps"));
static RULE: LazyLock<&Message> = LazyLock::new(|| message_named("apiextensions.v1", "ValidationRule"));
static EXTERNAL_DOCS: LazyLock<&Message> = LazyLock::new(|| message_named("apiextensions.v1", "ExternalDocumentation"));

/// A JSON schema. Lists and maps that are absent and those that are empty are the same here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonSchema {
    /// `description`
    pub description: String,
    /// `type`
    pub type_: String,
    /// `nullable`
    pub nullable: bool,
    /// `format`
    pub format: String,
    /// `default`
    pub default: Option<Value>,
    /// Limits of numbers, texts, lists and maps.
    pub bounds: Rare<SchemaBounds>,
    /// `pattern`
    pub pattern: String,
    /// `enum`
    pub enum_: Vec<Value>,
    /// `required`
    pub required: Vec<String>,
    /// `items`
    pub items: Option<SchemaOrArray>,
    /// `allOf`, `oneOf`, `anyOf`, `not`.
    pub junctors: Rare<Junctors<JsonSchema>>,
    /// `properties`
    pub properties: Map<JsonSchema>,
    /// `additionalProperties`
    pub additional_properties: Option<SchemaOrBool>,
    /// What validates nothing.
    pub annotations: Rare<Annotations>,
    /// Keywords that a structural schema must not have.
    pub unsupported: Rare<Unsupported>,
    /// `x-kubernetes-preserve-unknown-fields`
    pub preserve_unknown_fields: Option<bool>,
    /// `x-kubernetes-embedded-resource`
    pub embedded_resource: bool,
    /// `x-kubernetes-int-or-string`
    pub int_or_string: bool,
    /// `x-kubernetes-list-map-keys`
    pub list_map_keys: Vec<String>,
    /// `x-kubernetes-list-type`
    pub list_type: Option<String>,
    /// `x-kubernetes-map-type`
    pub map_type: Option<String>,
    /// `x-kubernetes-validations`
    pub validations: Vec<ValidationRule>,
    /// Keywords that were given as empty lists or maps, which Go tells from absent ones.
    pub given_empty: EmptyKeywords,
}

/// The keywords that bound numbers and sizes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SchemaBounds {
    /// `maximum`
    pub maximum: Option<f64>,
    /// `exclusiveMaximum`
    pub exclusive_maximum: bool,
    /// `minimum`
    pub minimum: Option<f64>,
    /// `exclusiveMinimum`
    pub exclusive_minimum: bool,
    /// `multipleOf`
    pub multiple_of: Option<f64>,
    /// `maxLength`
    pub max_length: Option<i64>,
    /// `minLength`
    pub min_length: Option<i64>,
    /// `maxItems`
    pub max_items: Option<i64>,
    /// `minItems`
    pub min_items: Option<i64>,
    /// `uniqueItems`
    pub unique_items: bool,
    /// `maxProperties`
    pub max_properties: Option<i64>,
    /// `minProperties`
    pub min_properties: Option<i64>,
}

impl Blank for SchemaBounds {
    fn blank() -> &'static Self {
        static BLANK: LazyLock<SchemaBounds> = LazyLock::new(SchemaBounds::default);
        &BLANK
    }
}

/// The keywords that combine schemas.
#[derive(Clone, Debug, PartialEq)]
pub struct Junctors<S> {
    /// `allOf`
    pub all_of: Vec<S>,
    /// `oneOf`
    pub one_of: Vec<S>,
    /// `anyOf`
    pub any_of: Vec<S>,
    /// `not`
    pub not: Option<Box<S>>,
}

impl<S> Default for Junctors<S> {
    fn default() -> Self {
        Junctors { all_of: Vec::new(), one_of: Vec::new(), any_of: Vec::new(), not: None }
    }
}

impl Blank for Junctors<JsonSchema> {
    fn blank() -> &'static Self {
        static BLANK: LazyLock<Junctors<JsonSchema>> = LazyLock::new(Junctors::default);
        &BLANK
    }
}

/// What only readers of the published schema see.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Annotations {
    /// `title`
    pub title: String,
    /// `externalDocs`
    pub external_docs: Option<ExternalDocs>,
    /// `example`
    pub example: Option<Value>,
}

impl Blank for Annotations {
    fn blank() -> &'static Self {
        static BLANK: LazyLock<Annotations> = LazyLock::new(Annotations::default);
        &BLANK
    }
}

/// The keywords that structural schemas don't have.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Unsupported {
    /// `id`
    pub id: String,
    /// `$schema`
    pub schema: String,
    /// `$ref`
    pub reference: Option<String>,
    /// `patternProperties`
    pub pattern_properties: Map<JsonSchema>,
    /// `dependencies`
    pub dependencies: Map<SchemaOrStrings>,
    /// `additionalItems`
    pub additional_items: Option<SchemaOrBool>,
    /// `definitions`
    pub definitions: Map<JsonSchema>,
}

impl Blank for Unsupported {
    fn blank() -> &'static Self {
        static BLANK: LazyLock<Unsupported> = LazyLock::new(Unsupported::default);
        &BLANK
    }
}

/// The lists and maps that a schema was written with though there is nothing in them. That says nothing, so it makes no
/// schema another; but messages show it, and some keywords may not even be named.
#[derive(Clone, Default)]
pub struct EmptyKeywords(Vec<&'static Field>);

impl fmt::Debug for EmptyKeywords {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_list().entries(self.0.iter().map(|field| field.json)).finish()
    }
}

impl PartialEq for EmptyKeywords {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl EmptyKeywords {
    /// Whether `keyword` was given as an empty list or map.
    pub fn contains(&self, keyword: &str) -> bool {
        self.0.iter().any(|field| field.json == keyword)
    }

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

/// `items`: one schema for all, or a schema each. An empty array stands for anything that is neither.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaOrArray {
    /// One schema for all items.
    Schema(Box<JsonSchema>),
    /// A schema for each item.
    Array(Vec<JsonSchema>),
}

/// `additionalProperties`, `additionalItems`: a schema, or whether any is allowed.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaOrBool {
    /// A schema.
    Schema(Box<JsonSchema>),
    /// Whether anything is allowed.
    Bool(bool),
}

/// A value of `dependencies`. Empty strings stand for anything that is neither.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaOrStrings {
    /// A schema.
    Schema(Box<JsonSchema>),
    /// Names of properties.
    Strings(Vec<String>),
}

/// `externalDocs` of a schema.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExternalDocs {
    /// `description`
    pub description: String,
    /// `url`
    pub url: String,
}

/// One item of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidationRule {
    /// `rule`
    pub rule: String,
    /// `message`
    pub message: String,
    /// `messageExpression`
    pub message_expression: String,
    /// `reason`
    pub reason: Option<String>,
    /// `fieldPath`
    pub field_path: String,
    /// `optionalOldSelf`
    pub optional_old_self: Option<bool>,
}

/// Decodes a schema that stands alone.
///
/// # Errors
///
/// Go's text for the first value of a wrong type, or for an `additionalProperties` that is neither truth value nor schema.
pub fn decode(value: &Value) -> Result<(JsonSchema, Findings), UnmarshalError> {
    let findings = SCHEMA.check(Minor::NEWEST, value)?;
    Ok((JsonSchema::read(value), findings))
}

impl FieldValue for JsonSchema {
    /// Reads a schema that is of the published type.
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

    /// The schema as the API shows it: empty fields are left out.
    pub fn encode(&self) -> Value {
        self.write(GivenEmpty::LeftOut)
    }

    /// Whether `test` holds for this schema or for one at any depth within; it is asked of each until it does.
    pub fn any(&self, test: &mut impl FnMut(&JsonSchema) -> bool) -> bool {
        work::step();
        if test(self) {
            return true;
        }
        let items = self.items.iter().flat_map(|items| items.schema().into_iter().chain(items.array()));
        let junctors = [&self.junctors.all_of, &self.junctors.any_of, &self.junctors.one_of]
            .into_iter()
            .flatten()
            .chain(self.junctors.not.as_deref());
        let additional = [&self.additional_properties, &self.unsupported.additional_items].into_iter().flatten();
        let dependencies = self.unsupported.dependencies.values().filter_map(SchemaOrStrings::schema);
        items
            .chain(junctors)
            .chain(self.properties.values())
            .chain(additional.filter_map(SchemaOrBool::schema))
            .chain(self.unsupported.pattern_properties.values())
            .chain(self.unsupported.definitions.values())
            .chain(dependencies)
            .any(|schema| schema.any(test))
    }

    /// Forgets `optionalOldSelf` of the rules of this schema, and of those of its properties and items, at any depth.
    pub fn forget_optional_old_self(&mut self) {
        work::step();
        self.validations.iter_mut().for_each(|rule| rule.optional_old_self = None);
        if let Some(SchemaOrBool::Schema(schema)) = &mut self.additional_properties {
            schema.forget_optional_old_self();
        }
        let items = match &mut self.items {
            Some(SchemaOrArray::Schema(schema)) => std::slice::from_mut(&mut **schema),
            Some(SchemaOrArray::Array(schemas)) => schemas,
            None => &mut [],
        };
        items.iter_mut().chain(self.properties.values_mut()).for_each(JsonSchema::forget_optional_old_self);
    }

    /// Whether a rule at any depth says something of `optionalOldSelf`.
    pub fn names_optional_old_self(&self) -> bool {
        self.any(&mut |schema| schema.validations.iter().any(|rule| rule.optional_old_self.is_some()))
    }
}

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
                // What is neither a schema nor a list is there all the same.
                GivenEmpty::Written => Value::from(""),
            },
            SchemaOrArray::Array(schemas) => schemas.write(given_empty),
        }
    }
}

impl SchemaOrArray {
    /// The one schema for all items.
    pub fn schema(&self) -> Option<&JsonSchema> {
        match self {
            SchemaOrArray::Schema(schema) => Some(schema),
            SchemaOrArray::Array(_) => None,
        }
    }

    /// The schemas of an array; none where one schema is for all.
    pub fn array(&self) -> &[JsonSchema] {
        match self {
            SchemaOrArray::Schema(_) => &[],
            SchemaOrArray::Array(schemas) => schemas,
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

impl SchemaOrBool {
    /// The schema, if there is one.
    pub fn schema(&self) -> Option<&JsonSchema> {
        match self {
            SchemaOrBool::Schema(schema) => Some(schema),
            SchemaOrBool::Bool(_) => None,
        }
    }

    /// Whether anything is allowed at all; a schema allows what fits it.
    pub fn allows(&self) -> bool {
        !matches!(self, SchemaOrBool::Bool(false))
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

impl SchemaOrStrings {
    /// The schema, if there is one.
    pub fn schema(&self) -> Option<&JsonSchema> {
        match self {
            SchemaOrStrings::Schema(schema) => Some(schema),
            SchemaOrStrings::Strings(_) => None,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::json;

    fn value(text: &str) -> Value {
        json::decode(text.as_bytes()).expect("the text is JSON")
    }

    /// Decodes and encodes again.
    fn check(text: &str, expected: &str) {
        let (schema, _) = decode(&value(text)).expect("the schema is of the right types");
        assert_eq!(json::encode_to_string(&schema.encode()), expected);
    }

    fn check_error(text: &str, expected: &str) {
        let error = decode(&value(text)).map(drop).map_err(|error| error.to_string());
        assert_eq!(error, Err(expected.to_owned()));
    }

    #[test]
    fn empty_fields_are_left_out() {
        check(
            r#"{"type": "object", "title": "", "nullable": false, "required": [], "properties": {"a": {}}, "default": null}"#,
            r#"{"properties":{"a":{}},"type":"object"}"#,
        );
    }

    #[test]
    fn null_counts_as_absent_but_for_items_of_lists_and_maps() {
        check(
            r#"{"items": null, "not": null, "type": null, "allOf": [null], "enum": [null], "properties": {"a": null}}"#,
            r#"{"allOf":[{}],"enum":[null],"properties":{"a":{}}}"#,
        );
    }

    #[test]
    fn items_that_are_neither_schema_nor_list_become_null() {
        check(r#"{"items": 5}"#, r#"{"items":null}"#);
        check(r#"{"items": {"type": "string"}}"#, r#"{"items":{"type":"string"}}"#);
    }

    #[test]
    fn numbers_are_written_as_go_writes_doubles() {
        check(r#"{"maximum": 5.0, "minimum": -0.5}"#, r#"{"maximum":5,"minimum":-0.5}"#);
    }

    #[test]
    fn the_first_wrong_type_is_told_with_the_fields_on_the_way() {
        check_error(
            r#"{"properties": {"a": {"minimum": "x"}}, "type": 1}"#,
            "json: cannot unmarshal string into Go struct field JSONSchemaProps.properties.minimum of type float64",
        );
        check_error("[]", "json: cannot unmarshal array into Go value of type v1.JSONSchemaProps");
    }

    #[test]
    fn a_type_that_decodes_itself_forgets_where_it_is_and_comes_first() {
        check_error(
            r#"{"id": 1, "items": {"maxLength": 1.5}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field JSONSchemaProps.items of type int64",
        );
        check_error(r#"{"id": 1, "additionalProperties": 1}"#, "boolean or JSON schema expected");
    }

    #[test]
    fn unknown_fields_are_told_but_not_within_types_that_decode_themselves() {
        let text =
            r#"{"properties": {"a": {"x": 1}}, "items": {"y": 1}, "externalDocs": {"z": 1}, "default": {"w": 1}}"#;
        let value = value(text);
        let (_, findings) = decode(&value).expect("the schema is of the right types");
        assert_eq!(findings.unknown, ["externalDocs.z", "properties.a.x"]);
        assert_eq!(findings.opaque, ["default", "items"]);
    }
}
