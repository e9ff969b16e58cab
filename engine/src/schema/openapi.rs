//! Structural schemas as clients see them: OpenAPI v2 and v3 definitions of a kind and of its list.
//!
//! Input: a structural schema and the names of its kind. Output: the JSON of one definition. References point to shared
//! definitions (`ObjectMeta`, `ListMeta`), which the writer of the document adds.
//! Source: definitions recorded from apiextensions-apiserver 1.37.

use super::json_schema::{ExternalDocs, ValidationRule};
use super::structural::{Extensions, Generic, NestedValueValidation, Structural, StructuralOrBool, ValueValidation};
use crate::object;
use crate::value::{Map, Value};
use crate::work;

/// The version of OpenAPI that a definition is written in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dialect {
    /// Without junctors, `nullable`, and structure under preserved unknown fields: kubectl's v2 reader trips over them.
    V2,
    /// OpenAPI v3.
    V3,
}

impl Dialect {
    /// A reference to the definition `name`.
    pub fn reference(self, name: &str) -> Value {
        let prefix = match self {
            Dialect::V2 => "#/definitions/",
            Dialect::V3 => "#/components/schemas/",
        };
        object! { "$ref" => format!("{prefix}{name}") }
    }

    /// A reference with a description beside it; in v3 that needs an `allOf`.
    fn described_reference(self, name: &str, description: &str) -> Value {
        let mut schema = match self {
            Dialect::V2 => self.reference(name),
            Dialect::V3 => object! { "allOf" => vec![self.reference(name)] },
        };
        if let Some(fields) = schema.as_object_mut() {
            fields.insert("description", description.into());
        }
        schema
    }
}

/// What is published.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OpenApiOptions {
    /// Which OpenAPI it is for.
    pub dialect: Dialect,
    /// Structure only.
    pub strip_value_validation: bool,
    /// Whether `nullable` is left out.
    pub strip_nullable: bool,
}

impl OpenApiOptions {
    /// Everything that the dialect can express.
    pub const fn all(dialect: Dialect) -> Self {
        OpenApiOptions { dialect, strip_value_validation: false, strip_nullable: false }
    }
}

/// The kind that a definition describes.
#[derive(Clone, Copy, Debug)]
pub struct PublishedKind<'a> {
    /// The API group; empty for the core.
    pub group: &'a str,
    /// The version without its group.
    pub version: &'a str,
    /// The kind of objects.
    pub kind: &'a str,
    /// The kind of lists.
    pub list_kind: &'a str,
    /// The name in paths.
    pub plural: &'a str,
    /// JSON paths with their leading dot.
    pub selectable_fields: &'a [String],
}

/// The definition of `ObjectMeta`.
pub const OBJECT_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta";
/// The definition of `ListMeta`.
pub const LIST_META: &str = "io.k8s.apimachinery.pkg.apis.meta.v1.ListMeta";

const CONVENTIONS: &str = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md";

/// The name of a definition: the group's parts in reverse, version, kind.
pub fn definition_name(group: &str, version: &str, kind: &str) -> String {
    let parts: Vec<&str> = group.rsplit('.').collect();
    format!("{}.{version}.{kind}", parts.join("."))
}

/// The definition of a kind. Without a schema, or in v2 with unknown fields preserved at the root, it has only the
/// kind: otherwise kubectl would reject fields that it doesn't find there.
pub fn publish(
    schema: Option<&Structural>,
    kind: &PublishedKind<'_>,
    preserve_unknown_fields: bool,
    options: OpenApiOptions,
) -> Value {
    let preserves = |schema: &Structural| schema.extensions.preserve_unknown_fields || preserve_unknown_fields;
    let mut fields = match schema {
        Some(schema) if options.dialect == Dialect::V3 || !preserves(schema) => {
            let mut fields = publish_structural(schema, options);
            let properties = properties_mut(&mut fields);
            properties.insert("metadata", object_metadata(options.dialect));
            insert_type_meta(properties);
            fields
        }
        _ => Map::from_iter([("type".to_owned(), Value::from("object"))]),
    };
    insert_kind(&mut fields, kind, kind.kind);
    Value::Object(fields)
}

/// The definition of a kind's list.
pub fn publish_list(kind: &PublishedKind<'_>, dialect: Dialect) -> Value {
    let item = dialect.reference(&definition_name(kind.group, kind.version, kind.kind));
    let items = object! {
        "description" => format!("List of {}. More info: {CONVENTIONS}", kind.plural),
        "type" => "array",
        "items" => item,
    };
    let metadata = format!("Standard list metadata. More info: {CONVENTIONS}#types-kinds");
    let mut properties = Map::new();
    properties.insert("items", items);
    properties.insert("metadata", dialect.described_reference(LIST_META, &metadata));
    insert_type_meta(&mut properties);
    let mut fields = Map::new();
    fields.insert("description", format!("{} is a list of {}", kind.list_kind, kind.kind).into());
    fields.insert("type", "object".into());
    fields.insert("required", vec![Value::from("items")].into());
    fields.insert("properties", properties.into());
    insert_kind(&mut fields, kind, kind.list_kind);
    Value::Object(fields)
}

fn insert_kind(fields: &mut Map, kind: &PublishedKind<'_>, name: &str) {
    let group_version_kind = object! { "group" => kind.group, "version" => kind.version, "kind" => name };
    fields.insert("x-kubernetes-group-version-kind", vec![group_version_kind].into());
    if !kind.selectable_fields.is_empty() {
        let paths = kind.selectable_fields.iter().map(|path| path.strip_prefix('.').unwrap_or(path));
        let paths: Vec<Value> = paths.map(|path| object! { "fieldPath" => path }).collect();
        fields.insert("x-kubernetes-selectable-fields", paths.into());
    }
}

fn insert_type_meta(properties: &mut Map) {
    let api_version = format!(
        "APIVersion defines the versioned schema of this representation of an object. Servers should convert recognized \
         schemas to the latest internal value, and may reject unrecognized values. More info: {CONVENTIONS}#resources"
    );
    let kind = format!(
        "Kind is a string value representing the REST resource this object represents. Servers may infer this from the \
         endpoint the client submits requests to. Cannot be updated. In CamelCase. More info: {CONVENTIONS}#types-kinds"
    );
    properties.insert("apiVersion", object! { "description" => api_version, "type" => "string" });
    properties.insert("kind", object! { "description" => kind, "type" => "string" });
}

fn object_metadata(dialect: Dialect) -> Value {
    dialect.described_reference(OBJECT_META, &format!("Standard object's metadata. More info: {CONVENTIONS}#metadata"))
}

fn publish_structural(schema: &Structural, options: OpenApiOptions) -> Map {
    work::steps(16);
    let v2 = options.dialect == Dialect::V2;
    let nullable = schema.generic.nullable && !options.strip_nullable;
    let hides_structure = v2 && (nullable || schema.extensions.preserve_unknown_fields);
    let mut fields = Map::new();

    let items = schema.items.as_deref().filter(|_| !hides_structure);
    if let Some(items) = items {
        fields.insert("items", publish_structural(items, options).into());
    }
    if !hides_structure && !schema.properties.is_empty() {
        let properties = schema.properties.iter();
        let properties: Map =
            properties.map(|(name, schema)| (name.to_owned(), publish_structural(schema, options).into())).collect();
        fields.insert("properties", properties.into());
    }
    match &schema.additional_properties {
        None => {}
        Some(StructuralOrBool::Bool(allowed)) => {
            fields.insert("additionalProperties", (*allowed).into());
        }
        Some(StructuralOrBool::Structural(schema)) => {
            fields.insert("additionalProperties", publish_structural(schema, options).into());
        }
    }

    publish_generic(&schema.generic, &mut fields);
    if v2 || options.strip_nullable {
        fields.remove("nullable");
    }
    let is_bare = match schema.generic.type_.as_str() {
        "array" => items.is_none(),
        "object" => schema.extensions.preserve_unknown_fields,
        _ => false,
    };
    if v2 && (nullable || is_bare) {
        fields.remove("type");
    }
    publish_extensions(&schema.extensions, &mut fields);
    publish_rules(&schema.validations, &mut fields);
    if !options.strip_value_validation {
        if let Some(validation) = &schema.value_validation {
            publish_value_validation(validation, &mut fields);
        }
        if v2 { reduce_to_v2(schema, hides_structure, &mut fields) } else { unfold_int_or_string(schema, &mut fields) }
    }
    if schema.extensions.embedded_resource && !(v2 && schema.extensions.preserve_unknown_fields) {
        publish_embedded(options.dialect, &mut fields);
    }
    fields
}

/// Drops junctors, and `required` for fields that may be null, which v2 can't express.
fn reduce_to_v2(schema: &Structural, hides_structure: bool, fields: &mut Map) {
    for junctor in ["allOf", "anyOf", "oneOf", "not"] {
        fields.remove(junctor);
    }
    let additional = schema.additional_properties.as_ref().and_then(StructuralOrBool::structural);
    if additional.is_some_and(|schema| schema.generic.nullable) {
        fields.remove("required");
    }
    if hides_structure {
        return;
    }
    let is_nullable = |name: &Value| {
        let property = name.as_str().and_then(|name| schema.properties.get(name));
        property.is_some_and(|property| property.generic.nullable)
    };
    let required = fields.get_mut("required").and_then(Value::as_array_mut);
    if required.is_some_and(|required| {
        required.retain(|name| !is_nullable(name));
        required.is_empty()
    }) {
        fields.remove("required");
    }
}

/// Writes out the meaning of `x-kubernetes-int-or-string`, unless the author has done so.
fn unfold_int_or_string(schema: &Structural, fields: &mut Map) {
    if !schema.extensions.int_or_string {
        return;
    }
    let is_pattern = |alternatives: &[NestedValueValidation]| {
        let types = ["integer", "string"].map(|type_| NestedValueValidation {
            forbidden_generics: Generic { type_: type_.to_owned(), ..Generic::default() }.into(),
            ..NestedValueValidation::default()
        });
        alternatives == types
    };
    let (any_of, all_of) = match schema.value_validation.as_deref() {
        Some(validation) => (validation.junctors.any_of.as_slice(), validation.junctors.all_of.as_slice()),
        None => (&[][..], &[][..]),
    };
    if is_pattern(any_of) || all_of.first().is_some_and(|first| is_pattern(&first.value_validation.junctors.any_of)) {
        return;
    }
    let pattern = vec![object! { "type" => "integer" }, object! { "type" => "string" }];
    if any_of.is_empty() {
        fields.insert("anyOf", pattern.into());
        return;
    }
    let mut unfolded = vec![object! { "anyOf" => pattern }];
    if let Some(Value::Array(rest)) = fields.remove("allOf") {
        unfolded.extend(rest);
    }
    fields.insert("allOf", unfolded.into());
}

/// An embedded object has the fields of a resource.
fn publish_embedded(dialect: Dialect, fields: &mut Map) {
    let api_version = format!(
        "apiVersion defines the versioned schema of this representation of an object. More info: {CONVENTIONS}#resources"
    );
    let kind = format!(
        "kind is a string value representing the type of this object. In CamelCase. More info: {CONVENTIONS}#types-kinds"
    );
    let properties = properties_mut(fields);
    properties.insert("apiVersion", object! { "description" => api_version, "type" => "string" });
    properties.insert("kind", object! { "description" => kind, "type" => "string" });
    properties.insert("metadata", object_metadata(dialect));
    let required = fields.entry("required");
    if required.is_null() {
        *required = Value::Array(Vec::new());
    }
    let Some(required) = required.as_array_mut() else { return };
    for name in ["kind", "apiVersion"] {
        if !required.contains(&Value::from(name)) {
            required.push(name.into());
        }
    }
}

/// The `properties` of a schema, added if there are none.
fn properties_mut(fields: &mut Map) -> &mut Map {
    let properties = fields.entry("properties");
    if properties.as_object().is_none() {
        *properties = Map::new().into();
    }
    properties.as_object_mut().expect("it was made an object above")
}

fn publish_generic(generic: &Generic, fields: &mut Map) {
    insert_text(fields, "description", &generic.description);
    insert_text(fields, "type", &generic.type_);
    insert_text(fields, "title", &generic.annotations.title);
    insert(fields, "default", generic.default.as_deref().cloned());
    insert_flag(fields, "nullable", generic.nullable);
    insert(fields, "externalDocs", generic.annotations.external_docs.as_ref().map(publish_external_docs));
    insert(fields, "example", generic.annotations.example.clone());
}

fn publish_external_docs(docs: &ExternalDocs) -> Value {
    let mut fields = Map::new();
    insert_text(&mut fields, "description", &docs.description);
    insert_text(&mut fields, "url", &docs.url);
    fields.into()
}

fn publish_extensions(extensions: &Extensions, fields: &mut Map) {
    insert_flag(fields, "x-kubernetes-preserve-unknown-fields", extensions.preserve_unknown_fields);
    insert_flag(fields, "x-kubernetes-embedded-resource", extensions.embedded_resource);
    insert_flag(fields, "x-kubernetes-int-or-string", extensions.int_or_string);
    insert_texts(fields, "x-kubernetes-list-map-keys", &extensions.list_map_keys);
    insert(fields, "x-kubernetes-list-type", extensions.list_type.clone());
    insert(fields, "x-kubernetes-map-type", extensions.map_type.clone());
}

fn publish_rules(rules: &[ValidationRule], fields: &mut Map) {
    if rules.is_empty() {
        return;
    }
    let rules: Vec<Value> = rules
        .iter()
        .map(|rule| {
            let mut fields = Map::new();
            fields.insert("rule", rule.rule.as_str().into());
            insert_text(&mut fields, "message", &rule.message);
            insert_text(&mut fields, "messageExpression", &rule.message_expression);
            insert(&mut fields, "reason", rule.reason.clone());
            insert_text(&mut fields, "fieldPath", &rule.field_path);
            insert(&mut fields, "optionalOldSelf", rule.optional_old_self);
            fields.into()
        })
        .collect();
    fields.insert("x-kubernetes-validations", rules.into());
}

fn publish_value_validation(validation: &ValueValidation, fields: &mut Map) {
    insert_text(fields, "format", &validation.format);
    insert(fields, "maximum", validation.bounds.maximum.map(Value::Float));
    insert_flag(fields, "exclusiveMaximum", validation.bounds.exclusive_maximum);
    insert(fields, "minimum", validation.bounds.minimum.map(Value::Float));
    insert_flag(fields, "exclusiveMinimum", validation.bounds.exclusive_minimum);
    insert(fields, "maxLength", validation.bounds.max_length);
    insert(fields, "minLength", validation.bounds.min_length);
    insert_text(fields, "pattern", &validation.pattern);
    insert(fields, "maxItems", validation.bounds.max_items);
    insert(fields, "minItems", validation.bounds.min_items);
    insert_flag(fields, "uniqueItems", validation.bounds.unique_items);
    insert(fields, "multipleOf", validation.bounds.multiple_of.map(Value::Float));
    if !validation.enum_.is_empty() {
        fields.insert("enum", validation.enum_.clone().into());
    }
    insert(fields, "maxProperties", validation.bounds.max_properties);
    insert(fields, "minProperties", validation.bounds.min_properties);
    insert_texts(fields, "required", &validation.required);
    let junctors = [
        ("allOf", &validation.junctors.all_of),
        ("anyOf", &validation.junctors.any_of),
        ("oneOf", &validation.junctors.one_of),
    ];
    for (name, alternatives) in junctors.into_iter().filter(|(_, alternatives)| !alternatives.is_empty()) {
        let alternatives: Vec<Value> = alternatives.iter().map(publish_nested).collect();
        fields.insert(name, alternatives.into());
    }
    insert(fields, "not", validation.junctors.not.as_deref().map(publish_nested));
}

fn publish_nested(nested: &NestedValueValidation) -> Value {
    let mut fields = Map::new();
    publish_value_validation(&nested.value_validation, &mut fields);
    publish_rules(&nested.validations, &mut fields);
    insert(&mut fields, "items", nested.items.as_deref().map(publish_nested));
    if !nested.properties.is_empty() {
        let properties = nested.properties.iter().map(|(name, nested)| (name.to_owned(), publish_nested(nested)));
        fields.insert("properties", properties.collect::<Map>().into());
    }
    publish_generic(&nested.forbidden_generics, &mut fields);
    publish_extensions(&nested.forbidden_extensions, &mut fields);
    fields.into()
}

fn insert(fields: &mut Map, name: &str, value: Option<impl Into<Value>>) {
    if let Some(value) = value {
        fields.insert(name, value.into());
    }
}

fn insert_text(fields: &mut Map, name: &str, text: &str) {
    if !text.is_empty() {
        fields.insert(name, text.into());
    }
}

fn insert_texts(fields: &mut Map, name: &str, texts: &[String]) {
    if !texts.is_empty() {
        let texts: Vec<Value> = texts.iter().map(|text| text.as_str().into()).collect();
        fields.insert(name, texts.into());
    }
}

fn insert_flag(fields: &mut Map, name: &str, flag: bool) {
    if flag {
        fields.insert(name, true.into());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const WIDGET: PublishedKind<'static> = PublishedKind {
        group: "example.com",
        version: "v1",
        kind: "Widget",
        list_kind: "WidgetList",
        plural: "widgets",
        selectable_fields: &[],
    };

    fn of_type(type_: &str) -> Structural {
        Structural { generic: Generic { type_: type_.to_owned(), ..Generic::default() }, ..Structural::default() }
    }

    fn published(property: Structural, dialect: Dialect) -> Value {
        let root = Structural { properties: Map::from_fields(vec![("x".into(), property)]), ..of_type("object") };
        let published = publish(Some(&root), &WIDGET, false, OpenApiOptions::all(dialect));
        published.at(&["properties", "x"]).cloned().expect("the property is published")
    }

    #[test]
    fn a_definition_is_named_by_the_reversed_group() {
        assert_eq!(definition_name("a.example.com", "v1", "Foo"), "com.example.a.v1.Foo");
    }

    #[test]
    fn v2_says_nothing_about_a_nullable_field() {
        let mut nullable = of_type("string");
        nullable.generic.nullable = true;
        assert_eq!(published(nullable.clone(), Dialect::V2), object! {});
        assert_eq!(published(nullable, Dialect::V3), object! { "type" => "string", "nullable" => true });
    }

    #[test]
    fn v3_writes_out_int_or_string() {
        let mut port = Structural::default();
        port.extensions.int_or_string = true;
        let alternatives = vec![object! { "type" => "integer" }, object! { "type" => "string" }];
        let expected = object! { "x-kubernetes-int-or-string" => true, "anyOf" => alternatives };
        assert_eq!(published(port, Dialect::V3), expected);
    }

    #[test]
    fn v2_is_silent_where_the_root_preserves_unknown_fields() {
        let mut root = of_type("object");
        root.extensions.preserve_unknown_fields = true;
        let published = publish(Some(&root), &WIDGET, false, OpenApiOptions::all(Dialect::V2));
        let names: Vec<&str> = published.as_object().expect("an object").keys().collect();
        assert_eq!(names, ["type", "x-kubernetes-group-version-kind"]);
    }

    #[test]
    fn an_embedded_resource_requires_its_kind() {
        let mut embedded = of_type("object");
        embedded.extensions.embedded_resource = true;
        let found = published(embedded, Dialect::V3);
        assert_eq!(found.get("required"), Some(&vec![Value::from("kind"), Value::from("apiVersion")].into()));
        assert!(found.at(&["properties", "metadata", "allOf"]).is_some());
    }
}
