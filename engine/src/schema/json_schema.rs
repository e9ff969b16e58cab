//! `JSONSchemaProps`: the schema language of a CustomResourceDefinition, as its author wrote it.
//!
//! Source: `apiextensions.k8s.io/v1`, release 1.37.

use std::sync::LazyLock;

use super::rare::{Blank, Rare};
use super::typed::{Findings, Stop, TypedDecoder};
use crate::meta::unmarshal::UnmarshalError;
use crate::value::{Map, Value};
use crate::work;

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
#[derive(Clone, Debug, Default)]
pub struct EmptyKeywords(Vec<&'static str>);

impl PartialEq for EmptyKeywords {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl EmptyKeywords {
    const LISTS_AND_MAPS: [&'static str; 12] = [
        "enum",
        "required",
        "items",
        "allOf",
        "oneOf",
        "anyOf",
        "properties",
        "patternProperties",
        "dependencies",
        "definitions",
        "x-kubernetes-list-map-keys",
        "x-kubernetes-validations",
    ];

    /// Whether `keyword` was given as an empty list or map.
    pub fn contains(&self, keyword: &str) -> bool {
        self.0.contains(&keyword)
    }

    fn note(&mut self, keyword: &str, value: &Value) {
        let is_empty = match value {
            Value::Array(items) => items.is_empty(),
            Value::Object(fields) => fields.is_empty() && keyword != "items",
            _ => false,
        };
        if is_empty {
            self.0.extend(Self::LISTS_AND_MAPS.into_iter().find(|known| *known == keyword));
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
    TypedDecoder::run(|typed| JsonSchema::decode(typed, value))
}

impl JsonSchema {
    /// Decodes a schema within something larger.
    ///
    /// # Errors
    ///
    /// What ends the decoding, as Go's decoder does.
    pub fn decode<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<JsonSchema, Stop> {
        let mut schema = JsonSchema::default();
        typed.structure(value, "JSONSchemaProps", |typed, name, value| {
            schema.given_empty.note(name, value);
            schema.decode_field(typed, name, value)
        })?;
        Ok(schema)
    }

    fn decode_field<'v>(&mut self, typed: &mut TypedDecoder<'v>, name: &str, value: &'v Value) -> Result<bool, Stop> {
        match name {
            "id" => self.unsupported.id = typed.string(value).unwrap_or_default(),
            "$schema" => self.unsupported.schema = typed.string_as(value, "v1.JSONSchemaURL").unwrap_or_default(),
            "$ref" => self.unsupported.reference = typed.string(value),
            "description" => self.description = typed.string(value).unwrap_or_default(),
            "type" => self.type_ = typed.string(value).unwrap_or_default(),
            "nullable" => self.nullable = typed.boolean(value).unwrap_or_default(),
            "format" => self.format = typed.string(value).unwrap_or_default(),
            "title" => self.annotations.title = typed.string(value).unwrap_or_default(),
            "default" => self.default = raw(typed, value),
            "maximum" => self.bounds.maximum = typed.float64(value),
            "exclusiveMaximum" => self.bounds.exclusive_maximum = typed.boolean(value).unwrap_or_default(),
            "minimum" => self.bounds.minimum = typed.float64(value),
            "exclusiveMinimum" => self.bounds.exclusive_minimum = typed.boolean(value).unwrap_or_default(),
            "maxLength" => self.bounds.max_length = typed.int64(value),
            "minLength" => self.bounds.min_length = typed.int64(value),
            "pattern" => self.pattern = typed.string(value).unwrap_or_default(),
            "maxItems" => self.bounds.max_items = typed.int64(value),
            "minItems" => self.bounds.min_items = typed.int64(value),
            "uniqueItems" => self.bounds.unique_items = typed.boolean(value).unwrap_or_default(),
            "multipleOf" => self.bounds.multiple_of = typed.float64(value),
            "enum" => self.enum_ = decode_enum(typed, value)?,
            "maxProperties" => self.bounds.max_properties = typed.int64(value),
            "minProperties" => self.bounds.min_properties = typed.int64(value),
            "required" => self.required = typed.strings(value)?.unwrap_or_default(),
            "items" => self.items = SchemaOrArray::decode(typed, value)?,
            "allOf" => self.junctors.all_of = decode_schemas(typed, value)?,
            "oneOf" => self.junctors.one_of = decode_schemas(typed, value)?,
            "anyOf" => self.junctors.any_of = decode_schemas(typed, value)?,
            "not" if value.is_null() => self.junctors.not = None,
            "not" => self.junctors.not = Some(Box::new(JsonSchema::decode(typed, value)?)),
            "properties" => self.properties = decode_map(typed, value, "map[string]v1.JSONSchemaProps")?,
            "additionalProperties" => self.additional_properties = SchemaOrBool::decode(typed, value)?,
            "patternProperties" => {
                self.unsupported.pattern_properties = decode_map(typed, value, "map[string]v1.JSONSchemaProps")?
            }
            "dependencies" => {
                let dependencies = typed.map(value, "v1.JSONSchemaDependencies", SchemaOrStrings::decode)?;
                self.unsupported.dependencies = dependencies.unwrap_or_default();
            }
            "additionalItems" => self.unsupported.additional_items = SchemaOrBool::decode(typed, value)?,
            "definitions" => self.unsupported.definitions = decode_map(typed, value, "v1.JSONSchemaDefinitions")?,
            "externalDocs" => self.annotations.external_docs = ExternalDocs::decode(typed, value)?,
            "example" => self.annotations.example = raw(typed, value),
            "x-kubernetes-preserve-unknown-fields" => self.preserve_unknown_fields = typed.boolean(value),
            "x-kubernetes-embedded-resource" => self.embedded_resource = typed.boolean(value).unwrap_or_default(),
            "x-kubernetes-int-or-string" => self.int_or_string = typed.boolean(value).unwrap_or_default(),
            "x-kubernetes-list-map-keys" => self.list_map_keys = typed.strings(value)?.unwrap_or_default(),
            "x-kubernetes-list-type" => self.list_type = typed.string(value),
            "x-kubernetes-map-type" => self.map_type = typed.string(value),
            "x-kubernetes-validations" => {
                let rules = typed.list(value, "v1.ValidationRules", ValidationRule::decode)?;
                self.validations = rules.unwrap_or_default();
            }
            _ => return Ok(false),
        }
        Ok(true)
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

    /// The schema as the API shows it: empty fields are left out.
    pub fn encode(&self) -> Value {
        work::step();
        let mut fields = OmitEmptyFields::default();
        fields.text("id", &self.unsupported.id);
        fields.text("$schema", &self.unsupported.schema);
        fields.option("$ref", self.unsupported.reference.as_deref());
        fields.text("description", &self.description);
        fields.text("type", &self.type_);
        fields.truth("nullable", self.nullable);
        fields.text("format", &self.format);
        fields.text("title", &self.annotations.title);
        fields.option("default", self.default.clone());
        fields.option("maximum", self.bounds.maximum.map(number));
        fields.truth("exclusiveMaximum", self.bounds.exclusive_maximum);
        fields.option("minimum", self.bounds.minimum.map(number));
        fields.truth("exclusiveMinimum", self.bounds.exclusive_minimum);
        fields.option("maxLength", self.bounds.max_length);
        fields.option("minLength", self.bounds.min_length);
        fields.text("pattern", &self.pattern);
        fields.option("maxItems", self.bounds.max_items);
        fields.option("minItems", self.bounds.min_items);
        fields.truth("uniqueItems", self.bounds.unique_items);
        fields.option("multipleOf", self.bounds.multiple_of.map(number));
        fields.list("enum", self.enum_.iter().cloned());
        fields.option("maxProperties", self.bounds.max_properties);
        fields.option("minProperties", self.bounds.min_properties);
        fields.list("required", self.required.iter().map(|name| Value::from(name.as_str())));
        fields.option("items", self.items.as_ref().map(SchemaOrArray::encode));
        fields.list("allOf", self.junctors.all_of.iter().map(JsonSchema::encode));
        fields.list("oneOf", self.junctors.one_of.iter().map(JsonSchema::encode));
        fields.list("anyOf", self.junctors.any_of.iter().map(JsonSchema::encode));
        fields.option("not", self.junctors.not.as_ref().map(|schema| schema.encode()));
        fields.map("properties", &self.properties, JsonSchema::encode);
        fields.option("additionalProperties", self.additional_properties.as_ref().map(SchemaOrBool::encode));
        fields.map("patternProperties", &self.unsupported.pattern_properties, JsonSchema::encode);
        fields.map("dependencies", &self.unsupported.dependencies, SchemaOrStrings::encode);
        fields.option("additionalItems", self.unsupported.additional_items.as_ref().map(SchemaOrBool::encode));
        fields.map("definitions", &self.unsupported.definitions, JsonSchema::encode);
        fields.option("externalDocs", self.annotations.external_docs.as_ref().map(ExternalDocs::encode));
        fields.option("example", self.annotations.example.clone());
        fields.option("x-kubernetes-preserve-unknown-fields", self.preserve_unknown_fields);
        fields.truth("x-kubernetes-embedded-resource", self.embedded_resource);
        fields.truth("x-kubernetes-int-or-string", self.int_or_string);
        fields.list("x-kubernetes-list-map-keys", self.list_map_keys.iter().map(|key| Value::from(key.as_str())));
        fields.option("x-kubernetes-list-type", self.list_type.as_deref());
        fields.option("x-kubernetes-map-type", self.map_type.as_deref());
        fields.list("x-kubernetes-validations", self.validations.iter().map(ValidationRule::encode));
        fields.finish()
    }
}

impl SchemaOrArray {
    fn decode<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Option<Self>, Stop> {
        if value.is_null() {
            return Ok(None);
        }
        typed.own(|typed| match value {
            Value::Object(_) => Ok(Some(SchemaOrArray::Schema(Box::new(JsonSchema::decode(typed, value)?)))),
            Value::Array(_) => Ok(Some(SchemaOrArray::Array(decode_schemas(typed, value)?))),
            _ => Ok(Some(SchemaOrArray::Array(Vec::new()))),
        })
    }

    fn encode(&self) -> Value {
        match self {
            SchemaOrArray::Schema(schema) => schema.encode(),
            SchemaOrArray::Array(schemas) if schemas.is_empty() => Value::Null,
            SchemaOrArray::Array(schemas) => Value::Array(schemas.iter().map(JsonSchema::encode).collect()),
        }
    }

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

impl SchemaOrBool {
    fn decode<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Option<Self>, Stop> {
        if value.is_null() {
            return Ok(None);
        }
        typed.own(|typed| match value {
            Value::Object(_) => Ok(Some(SchemaOrBool::Schema(Box::new(JsonSchema::decode(typed, value)?)))),
            Value::Bool(allowed) => Ok(Some(SchemaOrBool::Bool(*allowed))),
            _ => Err(Stop::other("boolean or JSON schema expected")),
        })
    }

    fn encode(&self) -> Value {
        match self {
            SchemaOrBool::Schema(schema) => schema.encode(),
            SchemaOrBool::Bool(allowed) => Value::Bool(*allowed),
        }
    }

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
    fn decode<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Self, Stop> {
        typed.own(|typed| match value {
            Value::Object(_) => Ok(SchemaOrStrings::Schema(Box::new(JsonSchema::decode(typed, value)?))),
            Value::Array(_) => Ok(SchemaOrStrings::Strings(typed.strings(value)?.unwrap_or_default())),
            _ => Ok(SchemaOrStrings::Strings(Vec::new())),
        })
    }

    fn encode(&self) -> Value {
        match self {
            SchemaOrStrings::Schema(schema) => schema.encode(),
            SchemaOrStrings::Strings(names) if names.is_empty() => Value::Null,
            SchemaOrStrings::Strings(names) => Value::Array(names.iter().map(|name| name.as_str().into()).collect()),
        }
    }

    /// The schema, if there is one.
    pub fn schema(&self) -> Option<&JsonSchema> {
        match self {
            SchemaOrStrings::Schema(schema) => Some(schema),
            SchemaOrStrings::Strings(_) => None,
        }
    }
}

impl ExternalDocs {
    fn decode<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Option<Self>, Stop> {
        if value.is_null() {
            return Ok(None);
        }
        let mut docs = ExternalDocs::default();
        typed.structure(value, "ExternalDocumentation", |typed, name, value| {
            match name {
                "description" => docs.description = typed.string(value).unwrap_or_default(),
                "url" => docs.url = typed.string(value).unwrap_or_default(),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(Some(docs))
    }

    fn encode(&self) -> Value {
        let mut fields = OmitEmptyFields::default();
        fields.text("description", &self.description);
        fields.text("url", &self.url);
        fields.finish()
    }
}

impl ValidationRule {
    fn decode<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Self, Stop> {
        let mut rule = ValidationRule::default();
        typed.structure(value, "ValidationRule", |typed, name, value| {
            match name {
                "rule" => rule.rule = typed.string(value).unwrap_or_default(),
                "message" => rule.message = typed.string(value).unwrap_or_default(),
                "messageExpression" => rule.message_expression = typed.string(value).unwrap_or_default(),
                "reason" => rule.reason = typed.string_as(value, "v1.FieldValueErrorReason"),
                "fieldPath" => rule.field_path = typed.string(value).unwrap_or_default(),
                "optionalOldSelf" => rule.optional_old_self = typed.boolean(value),
                _ => return Ok(false),
            }
            Ok(true)
        })?;
        Ok(rule)
    }

    /// The rule as the API shows it.
    pub fn encode(&self) -> Value {
        let mut fields = OmitEmptyFields::default();
        fields.set("rule", self.rule.as_str());
        fields.text("message", &self.message);
        fields.text("messageExpression", &self.message_expression);
        fields.option("reason", self.reason.as_deref());
        fields.text("fieldPath", &self.field_path);
        fields.option("optionalOldSelf", self.optional_old_self);
        fields.finish()
    }
}

/// The fields of an object under construction, as Go's `omitempty` leaves them out.
#[derive(Debug, Default)]
pub struct OmitEmptyFields(Map);

impl OmitEmptyFields {
    /// Sets a field.
    pub fn set(&mut self, name: &str, value: impl Into<Value>) {
        self.0.insert(name, value.into());
    }

    /// Sets a field, unless the text is empty.
    pub fn text(&mut self, name: &str, text: &str) {
        if !text.is_empty() {
            self.set(name, text);
        }
    }

    /// Sets a field, if it is true.
    pub fn truth(&mut self, name: &str, truth: bool) {
        if truth {
            self.set(name, true);
        }
    }

    /// Sets a field, if there is a value.
    pub fn option(&mut self, name: &str, value: Option<impl Into<Value>>) {
        if let Some(value) = value {
            self.set(name, value);
        }
    }

    /// Sets a field, unless there are no items.
    pub fn list(&mut self, name: &str, items: impl Iterator<Item = Value>) {
        let items: Vec<Value> = items.collect();
        if !items.is_empty() {
            self.set(name, items);
        }
    }

    fn map<T>(&mut self, name: &str, entries: &Map<T>, encode: impl Fn(&T) -> Value) {
        if !entries.is_empty() {
            let fields: Map = entries.iter().map(|(key, entry)| (key.to_owned(), encode(entry))).collect();
            self.set(name, fields);
        }
    }

    /// The object.
    pub fn finish(self) -> Value {
        Value::Object(self.0)
    }
}

/// A JSON value that Go keeps as raw bytes; null counts as absent.
fn raw(typed: &mut TypedDecoder<'_>, value: &Value) -> Option<Value> {
    typed.opaque();
    match value {
        Value::Null => None,
        value => Some(value.clone()),
    }
}

fn decode_enum<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Vec<Value>, Stop> {
    let items = typed.list(value, "[]v1.JSON", |typed, item| Ok(raw(typed, item).unwrap_or_default()))?;
    Ok(items.unwrap_or_default())
}

fn decode_schemas<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value) -> Result<Vec<JsonSchema>, Stop> {
    Ok(typed.list(value, "[]v1.JSONSchemaProps", JsonSchema::decode)?.unwrap_or_default())
}

fn decode_map<'v>(typed: &mut TypedDecoder<'v>, value: &'v Value, go_type: &str) -> Result<Map<JsonSchema>, Stop> {
    Ok(typed.map(value, go_type, JsonSchema::decode)?.unwrap_or_default())
}

/// A double as JSON: a whole number is an integer, as it is when it is read again.
fn number(number: f64) -> Value {
    const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
    if number.fract() == 0.0 && number.abs() <= EXACT_MAX && !(number == 0.0 && number.is_sign_negative()) {
        Value::Int(number as i64)
    } else {
        Value::Float(number)
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
