//! `JSONSchemaProps`: the schema language of a CustomResourceDefinition, as its author wrote it.
//!
//! Source: `apiextensions.k8s.io/v1`, release 1.37.

mod fields;

use std::fmt;
use std::sync::LazyLock;

use super::rare::{Blank, Rare};
use crate::types::Field;
use crate::types::field_value::{FieldValue, GivenEmpty};
use crate::value::{Map, Value};
use crate::work;

pub use fields::decode;

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
    /// Keywords that don't validate anything.
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
    /// Keywords that were given as empty lists or maps, which Go distinguishes from absent ones.
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

/// Keywords that matter only to readers of the published schema.
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

/// The keywords that were given as empty lists or maps. They have no meaning and are ignored when schemas are compared;
/// but messages show them, and some keywords may not even be named.
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

impl JsonSchema {
    /// The schema as the API shows it: empty fields are left out.
    pub fn encode(&self) -> Value {
        self.write(GivenEmpty::LeftOut)
    }

    /// Whether `test` holds for this schema or for one at any depth within; stops at the first one for which it does.
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

    /// Removes `optionalOldSelf` from the rules of this schema, and of its properties and items, at any depth.
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

    /// Whether a rule at any depth sets `optionalOldSelf`.
    pub fn names_optional_old_self(&self) -> bool {
        self.any(&mut |schema| schema.validations.iter().any(|rule| rule.optional_old_self.is_some()))
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

    /// The schemas of an array; empty if there is one schema for all items.
    pub fn array(&self) -> &[JsonSchema] {
        match self {
            SchemaOrArray::Schema(_) => &[],
            SchemaOrArray::Array(schemas) => schemas,
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

impl SchemaOrStrings {
    /// The schema, if there is one.
    pub fn schema(&self) -> Option<&JsonSchema> {
        match self {
            SchemaOrStrings::Schema(schema) => Some(schema),
            SchemaOrStrings::Strings(_) => None,
        }
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
    fn errors_of_a_type_that_decodes_itself_come_first() {
        check_error(
            r#"{"id": 1, "items": {"maxLength": 1.5}}"#,
            "json: cannot unmarshal number 1.5 into Go struct field JSONSchemaProps.items.maxLength of type int64",
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
