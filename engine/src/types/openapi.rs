//! The published OpenAPI definitions of types, in OpenAPI v3: one per struct, which others refer to.
//!
//! Source: kube-openapi's generator and the documents of Kubernetes 1.37.

use std::collections::HashSet;

use super::descriptions::description;
use super::older::make_older;
use super::{Codec, Field, FieldKind, Message, Named, Ref, Shape};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::{Map, Value, json};
use crate::work;

/// A definition, and the types that it refers to.
pub struct OpenApiDefinition {
    pub name: String,
    pub schema: Value,
    pub references: Vec<&'static Named>,
}

impl Named {
    /// The name of the type's definition: `io.k8s.api.core.v1.Pod`.
    pub fn definition_name(&self) -> String {
        let package = match self.package() {
            "quantity" => "apimachinery.pkg.api.resource".to_owned(),
            "intstr" => "apimachinery.pkg.util.intstr".to_owned(),
            "runtime" => "apimachinery.pkg.runtime".to_owned(),
            package => match package.split_once('.') {
                Some(("meta", version)) => format!("apimachinery.pkg.apis.meta.{version}"),
                Some((group @ "apiextensions", version)) => {
                    format!("apiextensions-apiserver.pkg.apis.{group}.{version}")
                }
                Some((group @ "apiregistration", version)) => format!("kube-aggregator.pkg.apis.{group}.{version}"),
                _ => format!("api.{package}"),
            },
        };
        format!("io.k8s.{package}.{}", self.name())
    }

    /// The type's definition by that minor of Kubernetes.
    pub fn definition_in(&'static self, minor: Minor) -> OpenApiDefinition {
        let mut definition = self.definition();
        if minor != Minor::NEWEST {
            make_older(minor, &definition.name, &mut definition.schema);
            let mut names = HashSet::new();
            collect_references(&definition.schema, &mut names);
            definition.references.retain(|named| names.contains(&named.definition_name()));
        }
        definition
    }

    /// The type's definition.
    pub fn definition(&'static self) -> OpenApiDefinition {
        let message = self.message();
        let mut references = Vec::new();
        let schema = match message.codec {
            Codec::Object => structure(message, self, &mut references),
            Codec::Time | Codec::MicroTime => object! { "type" => "string", "format" => "date-time" },
            Codec::Duration => object! { "type" => "string" },
            Codec::Quantity => object! { "oneOf" => either("string", "number") },
            Codec::IntOrString => object! { "oneOf" => either("integer", "string"), "format" => "int-or-string" },
            Codec::List => message.fields.first().map_or(Value::Null, |items| field(items, &mut references)),
            _ => object! { "type" => "object" },
        };
        OpenApiDefinition { name: self.definition_name(), schema, references }
    }

    /// The fields that a query may have, as the parameters of an operation: texts, numbers, booleans, and lists of
    /// these, which are sent one parameter per item.
    pub fn query_parameters(&'static self) -> Vec<Value> {
        let own = self.message().members().filter(|field| field.owner.is_some());
        own.filter_map(query_parameter).collect()
    }
}

fn query_parameter(field: &'static Field) -> Option<Value> {
    let type_ = match field.kind {
        FieldKind::Bool => "boolean",
        FieldKind::Int32 | FieldKind::Int64 => "integer",
        FieldKind::Double => "number",
        FieldKind::String => "string",
        FieldKind::Bytes | FieldKind::Message(_) => return None,
    };
    let mut parameter = object! {
        "name" => field.json,
        "in" => "query",
        "schema" => object! { "type" => type_, "uniqueItems" => true },
    };
    describe(parameter.make_object(), description_of(field));
    Some(parameter)
}

/// The names of the definitions that a schema refers to.
pub fn collect_references(value: &Value, names: &mut HashSet<String>) {
    work::step();
    match value {
        Value::Object(fields) => {
            for (name, value) in fields.iter() {
                match (name, value) {
                    ("$ref", Value::String(reference)) => {
                        let name = reference.rsplit('/').next().unwrap_or_default();
                        if !names.contains(name) {
                            names.insert(name.to_owned());
                        }
                    }
                    _ => collect_references(value, names),
                }
            }
        }
        Value::Array(items) => items.iter().for_each(|item| collect_references(item, names)),
        _ => {}
    }
}

/// The schemas of two alternative types.
fn either(one: &str, other: &str) -> Vec<Value> {
    [one, other].map(|name| object! { "type" => name }).into()
}

fn structure(message: &'static Message, named: &Named, references: &mut Vec<&'static Named>) -> Value {
    let mut fields = Map::new();
    describe(&mut fields, description(named.package(), named.name(), ""));
    fields.insert("type", "object".into());
    let properties = message.members().map(|member| (member.json.to_owned(), field(member, references)));
    let properties: Map = properties.collect();
    if !properties.is_empty() {
        fields.insert("properties", properties.into());
    }
    let required = message.members().filter(|field| field.is_required);
    let required: Vec<Value> = required.map(|field| Value::from(field.json)).collect();
    if !required.is_empty() {
        fields.insert("required", required.into());
    }
    if message.is_atomic {
        fields.insert("x-kubernetes-map-type", "atomic".into());
    }
    if let Some((group, version)) = named.group_version().filter(|_| message.is_object) {
        let known = object! { "group" => group, "version" => version, "kind" => named.name() };
        fields.insert("x-kubernetes-group-version-kind", vec![known].into());
    }
    Value::Object(fields)
}

/// The description of a field.
pub(crate) fn description_of(field: &Field) -> &'static str {
    match field.owner {
        Some(owner) => description(owner.package(), owner.name(), field.json),
        None if field.json.is_empty() => "",
        // Kind and apiVersion, which are not fields of the types themselves.
        None => description("runtime", "TypeMeta", field.json),
    }
}

fn describe(fields: &mut Map, description: &str) {
    if !description.is_empty() {
        fields.insert("description", description.into());
    }
}

fn field(field: &'static Field, references: &mut Vec<&'static Named>) -> Value {
    work::step();
    let mut schema = match field.shape {
        Shape::Value | Shape::Pointer | Shape::Inline => one(field, references),
        Shape::List => object! { "type" => "array", "items" => item(field, references) },
        Shape::Map | Shape::Extensions => {
            object! { "type" => "object", "additionalProperties" => item(field, references) }
        }
    };
    let fields = schema.make_object();
    describe(fields, description_of(field));
    if let Some(default) = field.default.and_then(|text| json::decode(text.as_bytes()).ok()) {
        fields.insert("default", default);
    }
    let items = &field.items;
    if !items.map_keys.is_empty() {
        let keys: Vec<Value> = items.map_keys.iter().map(|&key| Value::from(key)).collect();
        fields.insert("x-kubernetes-list-map-keys", keys.into());
    }
    let extensions = [
        ("x-kubernetes-list-type", items.list_type),
        ("x-kubernetes-map-type", items.map_type),
        ("x-kubernetes-patch-merge-key", items.merge_key),
        ("x-kubernetes-patch-strategy", items.strategy),
    ];
    for (name, value) in extensions {
        if let Some(value) = value {
            fields.insert(name, value.into());
        }
    }
    schema
}

/// The schema of an item of a list or a map: it has no default, and a reference is not wrapped.
fn item(field: &Field, references: &mut Vec<&'static Named>) -> Value {
    let schema = one(&Field { owner: None, always: false, default: None, shape: Shape::Pointer, ..*field }, references);
    match schema.get("allOf") {
        Some(Value::Array(all)) if all.len() == 1 => all[0].clone(),
        _ => schema,
    }
}

/// The values of an enumeration, which the data separates by commas; `%20` stands for a space, as spaces separate words
/// there.
pub(crate) fn values_of(enums: &str) -> impl Iterator<Item = String> {
    enums.split(',').filter(|value| !value.is_empty()).map(|value| value.replace("%20", " "))
}

/// The schema of a field's value, if it is neither a list nor a map.
fn one(field: &Field, references: &mut Vec<&'static Named>) -> Value {
    let of_type = |name: &str, format: &str, zero: Value| {
        let mut fields = Map::new();
        fields.insert("type", name.into());
        if !format.is_empty() {
            fields.insert("format", format.into());
        }
        if field.always && field.shape == Shape::Value {
            fields.insert("default", zero);
        }
        if !field.enums.is_empty() {
            // The empty text is one of them if Go's type has a constant for it.
            let mut values: Vec<String> = field.enums.split(',').map(|value| value.replace("%20", " ")).collect();
            values.sort_unstable();
            fields.insert("enum", values.into_iter().map(Value::from).collect::<Vec<_>>().into());
        }
        Value::Object(fields)
    };
    match field.kind {
        FieldKind::Bool => of_type("boolean", "", Value::Bool(false)),
        FieldKind::Int32 => of_type("integer", "int32", Value::Int(0)),
        FieldKind::Int64 => of_type("integer", "int64", Value::Int(0)),
        FieldKind::Double => of_type("number", "double", Value::Int(0)),
        FieldKind::String => of_type("string", "", Value::from("")),
        FieldKind::Bytes => object! { "type" => "string", "format" => "byte" },
        FieldKind::Message(Ref::Named(named)) if matches!(named.message().codec, Codec::List) => {
            list(named.message(), references)
        }
        FieldKind::Message(Ref::Named(named)) => {
            references.push(named);
            let reference = object! { "$ref" => format!("#/components/schemas/{}", named.definition_name()) };
            let mut fields = Map::new();
            if field.shape == Shape::Value && matches!(named.message().codec, Codec::Object) {
                fields.insert("default", object! {});
            }
            fields.insert("allOf", vec![reference].into());
            Value::Object(fields)
        }
        // A list in a map.
        FieldKind::Message(Ref::Made(made)) => list(made, references),
    }
}

/// A type that is a list.
fn list(message: &Message, references: &mut Vec<&'static Named>) -> Value {
    let items = message.fields.first().map_or(Value::Null, |items| item(items, references));
    object! { "type" => "array", "items" => items }
}
