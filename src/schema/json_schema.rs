//! `JSONSchemaProps`: the schema language of a CustomResourceDefinition, as its author wrote it.
//!
//! Source: `apiextensions.k8s.io/v1`, release 1.37.

use std::collections::BTreeMap;

use crate::value::Value;

/// A JSON schema. `None` and empty mean the same only where the API says so; a nil list and an empty one are equal here.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct JsonSchema {
    pub id: String,
    pub schema: String,
    pub reference: Option<String>,
    pub description: String,
    pub type_: String,
    pub nullable: bool,
    pub format: String,
    pub title: String,
    pub default: Option<Value>,
    pub maximum: Option<f64>,
    pub exclusive_maximum: bool,
    pub minimum: Option<f64>,
    pub exclusive_minimum: bool,
    pub max_length: Option<i64>,
    pub min_length: Option<i64>,
    pub pattern: String,
    pub max_items: Option<i64>,
    pub min_items: Option<i64>,
    pub unique_items: bool,
    pub multiple_of: Option<f64>,
    pub enum_: Vec<Value>,
    pub max_properties: Option<i64>,
    pub min_properties: Option<i64>,
    pub required: Vec<String>,
    pub items: Option<SchemaOrArray>,
    pub all_of: Vec<JsonSchema>,
    pub one_of: Vec<JsonSchema>,
    pub any_of: Vec<JsonSchema>,
    pub not: Option<Box<JsonSchema>>,
    pub properties: BTreeMap<String, JsonSchema>,
    pub additional_properties: Option<SchemaOrBool>,
    pub pattern_properties: BTreeMap<String, JsonSchema>,
    pub dependencies: BTreeMap<String, SchemaOrStrings>,
    pub additional_items: Option<SchemaOrBool>,
    pub definitions: BTreeMap<String, JsonSchema>,
    pub external_docs: Option<ExternalDocs>,
    pub example: Option<Value>,
    pub preserve_unknown_fields: Option<bool>,
    pub embedded_resource: bool,
    pub int_or_string: bool,
    pub list_map_keys: Vec<String>,
    pub list_type: Option<String>,
    pub map_type: Option<String>,
    pub validations: Vec<ValidationRule>,
}

/// `items`: one schema for all, or a schema each.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaOrArray {
    Schema(Box<JsonSchema>),
    Array(Vec<JsonSchema>),
}

/// `additionalProperties`, `additionalItems`: a schema, or whether any is allowed.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaOrBool {
    Schema(Box<JsonSchema>),
    Bool(bool),
}

/// A value of `dependencies`.
#[derive(Clone, Debug, PartialEq)]
pub enum SchemaOrStrings {
    Schema(Box<JsonSchema>),
    Strings(Vec<String>),
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct ExternalDocs {
    pub description: String,
    pub url: String,
}

/// One item of `x-kubernetes-validations`.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ValidationRule {
    pub rule: String,
    pub message: String,
    pub message_expression: String,
    pub reason: Option<String>,
    pub field_path: String,
    pub optional_old_self: Option<bool>,
}
