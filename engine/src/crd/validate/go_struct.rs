//! Bad values that are structs in Kubernetes: messages show them as JSON of the internal types, whose fields have Go's
//! names, in their order, none left out.
//!
//! Source: `apiextensions` types, release 1.37.

use super::internal::{InternalVersion, SharedFields};
use crate::crd::{Column, Scale};
use crate::meta::field::{Error, Path};
use crate::meta::minor::Minor;
use crate::schema::json_schema::{
    ExternalDocs, JsonSchema, SchemaOrArray, SchemaOrBool, SchemaOrStrings, ValidationRule,
};
use crate::value::{Map, Value, go_quote, json, number};
use crate::work;

/// The version of Kubernetes from which on messages show structs as JSON; before, they showed them in Go's own form.
const JSON_SINCE: Minor = Minor::of(34);

/// An error about a value that is shown as `shown`, which is JSON.
pub fn invalid(path: &Path<'_>, shown: String, detail: impl Into<String>) -> Error {
    // What was just written as JSON is JSON.
    let value = json::decode(shown.as_bytes()).unwrap_or_default();
    Error::invalid(path, value, detail).shown_as(shown)
}

/// `error` with its bad value shown as JSON, as Go shows a text behind a pointer or under a type of its own.
pub fn shown_as_json(error: Error) -> Error {
    match error.bad_value.as_ref().map(json::encode_to_string) {
        Some(shown) => error.shown_as(shown),
        None => error,
    }
}

pub fn show_versions(versions: &[InternalVersion<'_>]) -> String {
    list(versions, |version| {
        let SharedFields { schema, subresources, columns, selectable_fields } = version.own;
        let version = version.version;
        structure(&[
            ("Name", text(&version.name)),
            ("Served", version.served.to_string()),
            ("Storage", version.storage.to_string()),
            ("Deprecated", version.deprecated.to_string()),
            ("DeprecationWarning", pointer(version.deprecation_warning.as_deref(), text)),
            (
                "Schema",
                pointer(schema, |schema| structure(&[("OpenAPIV3Schema", pointer(schema.as_deref(), show_schema))])),
            ),
            (
                "Subresources",
                pointer(subresources, |subresources| {
                    structure(&[
                        ("Status", if subresources.status { "{}".to_owned() } else { "null".to_owned() }),
                        ("Scale", pointer(subresources.scale.as_ref(), show_scale)),
                    ])
                }),
            ),
            ("AdditionalPrinterColumns", list_or_null(columns, show_column)),
            ("SelectableFields", list_or_null(selectable_fields, |path| structure(&[("JSONPath", text(path))]))),
        ])
    })
}

fn show_scale(scale: &Scale) -> String {
    structure(&[
        ("SpecReplicasPath", text(&scale.spec_replicas_path)),
        ("StatusReplicasPath", text(&scale.status_replicas_path)),
        ("LabelSelectorPath", pointer(scale.label_selector_path.as_deref(), text)),
    ])
}

fn show_column(column: &Column) -> String {
    structure(&[
        ("Name", text(&column.name)),
        ("Type", text(&column.type_)),
        ("Format", text(&column.format)),
        ("Description", text(&column.description)),
        ("Priority", column.priority.to_string()),
        ("JSONPath", text(&column.json_path)),
    ])
}

pub fn show_schema(schema: &JsonSchema) -> String {
    work::steps(16);
    // What is absent is null, what was given is shown even if empty.
    let null_unless_given = |keyword: &str, shown: String| match shown.as_str() {
        "[]" | "{}" if !schema.given_empty.contains(keyword) => "null".to_owned(),
        _ => shown,
    };
    structure(&[
        ("ID", text(&schema.unsupported.id)),
        ("Schema", text(&schema.unsupported.schema)),
        ("Ref", pointer(schema.unsupported.reference.as_deref(), text)),
        ("Description", text(&schema.description)),
        ("Type", text(&schema.type_)),
        ("Nullable", schema.nullable.to_string()),
        ("Format", text(&schema.format)),
        ("Title", text(&schema.annotations.title)),
        ("Default", pointer(schema.default.as_ref(), json::encode_to_string)),
        ("Maximum", pointer(schema.bounds.maximum, number::format_float)),
        ("ExclusiveMaximum", schema.bounds.exclusive_maximum.to_string()),
        ("Minimum", pointer(schema.bounds.minimum, number::format_float)),
        ("ExclusiveMinimum", schema.bounds.exclusive_minimum.to_string()),
        ("MaxLength", integer(schema.bounds.max_length)),
        ("MinLength", integer(schema.bounds.min_length)),
        ("Pattern", text(&schema.pattern)),
        ("MaxItems", integer(schema.bounds.max_items)),
        ("MinItems", integer(schema.bounds.min_items)),
        ("UniqueItems", schema.bounds.unique_items.to_string()),
        ("MultipleOf", pointer(schema.bounds.multiple_of, number::format_float)),
        ("Enum", null_unless_given("enum", list(&schema.enum_, json::encode_to_string))),
        ("MaxProperties", integer(schema.bounds.max_properties)),
        ("MinProperties", integer(schema.bounds.min_properties)),
        ("Required", null_unless_given("required", list(&schema.required, |name| text(name)))),
        ("Items", pointer(schema.items.as_ref(), |items| show_items(items, schema))),
        ("AllOf", null_unless_given("allOf", list(&schema.junctors.all_of, show_schema))),
        ("OneOf", null_unless_given("oneOf", list(&schema.junctors.one_of, show_schema))),
        ("AnyOf", null_unless_given("anyOf", list(&schema.junctors.any_of, show_schema))),
        ("Not", pointer(schema.junctors.not.as_deref(), show_schema)),
        ("Properties", null_unless_given("properties", map(&schema.properties, show_schema))),
        ("AdditionalProperties", pointer(schema.additional_properties.as_ref(), show_schema_or_bool)),
        (
            "PatternProperties",
            null_unless_given("patternProperties", map(&schema.unsupported.pattern_properties, show_schema)),
        ),
        ("Dependencies", null_unless_given("dependencies", map(&schema.unsupported.dependencies, show_dependency))),
        ("AdditionalItems", pointer(schema.unsupported.additional_items.as_ref(), show_schema_or_bool)),
        ("Definitions", null_unless_given("definitions", map(&schema.unsupported.definitions, show_schema))),
        ("ExternalDocs", pointer(schema.annotations.external_docs.as_ref(), show_external_docs)),
        ("Example", pointer(schema.annotations.example.as_ref(), json::encode_to_string)),
        ("XPreserveUnknownFields", pointer(schema.preserve_unknown_fields, |truth| truth.to_string())),
        ("XEmbeddedResource", schema.embedded_resource.to_string()),
        ("XIntOrString", schema.int_or_string.to_string()),
        ("XListMapKeys", null_unless_given("x-kubernetes-list-map-keys", list(&schema.list_map_keys, |key| text(key)))),
        ("XListType", pointer(schema.list_type.as_deref(), text)),
        ("XMapType", pointer(schema.map_type.as_deref(), text)),
        ("XValidations", null_unless_given("x-kubernetes-validations", list(&schema.validations, show_rule))),
    ])
}

fn show_external_docs(docs: &ExternalDocs) -> String {
    structure(&[("Description", text(&docs.description)), ("URL", text(&docs.url))])
}

pub fn show_rule(rule: &ValidationRule) -> String {
    structure(&[
        ("Rule", text(&rule.rule)),
        ("Message", text(&rule.message)),
        ("MessageExpression", text(&rule.message_expression)),
        ("Reason", pointer(rule.reason.as_deref(), text)),
        ("FieldPath", text(&rule.field_path)),
        ("OptionalOldSelf", pointer(rule.optional_old_self, |truth| truth.to_string())),
    ])
}

/// A rule as messages of that version of Kubernetes show it.
pub fn show_rule_in(minor: Minor, rule: &ValidationRule) -> String {
    // Behind a pointer, Go's own form shows an address, which differs from run to run.
    let has_pointers = rule.reason.is_some() || rule.optional_old_self.is_some();
    if minor >= JSON_SINCE || has_pointers {
        return show_rule(rule);
    }
    let [text, message, expression, path] =
        [&rule.rule, &rule.message, &rule.message_expression, &rule.field_path].map(|text| go_quote(text));
    format!(
        "apiextensions.ValidationRule{{Rule:{text}, Message:{message}, MessageExpression:{expression}, \
         Reason:(*apiextensions.FieldValueErrorReason)(nil), FieldPath:{path}, OptionalOldSelf:(*bool)(nil)}}"
    )
}

/// The `items` of `schema`.
pub fn show_items(items: &SchemaOrArray, schema: &JsonSchema) -> String {
    let array =
        if schema.given_empty.contains("items") { "[]".to_owned() } else { list_or_null(items.array(), show_schema) };
    structure(&[("Schema", pointer(items.schema(), show_schema)), ("JSONSchemas", array)])
}

fn show_schema_or_bool(schema: &SchemaOrBool) -> String {
    structure(&[("Allows", schema.allows().to_string()), ("Schema", pointer(schema.schema(), show_schema))])
}

fn show_dependency(dependency: &SchemaOrStrings) -> String {
    let names: &[String] = match dependency {
        SchemaOrStrings::Schema(_) => &[],
        SchemaOrStrings::Strings(names) => names,
    };
    structure(&[
        ("Schema", pointer(dependency.schema(), show_schema)),
        ("Property", list_or_null(names, |name| text(name))),
    ])
}

fn text(text: &str) -> String {
    json::encode_to_string(&Value::from(text))
}

fn integer(number: Option<i64>) -> String {
    pointer(number, |number| number.to_string())
}

fn pointer<T>(value: Option<T>, show: impl Fn(T) -> String) -> String {
    value.map_or_else(|| "null".to_owned(), show)
}

fn structure(fields: &[(&str, String)]) -> String {
    let fields: Vec<String> = fields.iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
    format!("{{{}}}", fields.join(","))
}

fn list<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    format!("[{}]", items.iter().map(show).collect::<Vec<_>>().join(","))
}

fn list_or_null<T>(items: &[T], show: impl Fn(&T) -> String) -> String {
    if items.is_empty() { "null".to_owned() } else { list(items, show) }
}

fn map<T>(entries: &Map<T>, show: impl Fn(&T) -> String) -> String {
    let entries: Vec<String> = entries.iter().map(|(key, entry)| format!("{}:{}", text(key), show(entry))).collect();
    format!("{{{}}}", entries.join(","))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::types::message_named;

    /// What is shown has the fields of the published type, whose names in Go are those of the internal one.
    #[track_caller]
    fn check(shown: &str, name: &str) {
        let shown = json::decode(shown.as_bytes()).expect("it is JSON");
        let shown: BTreeSet<String> = shown.as_object().expect("a struct").keys().map(str::to_owned).collect();
        let published = message_named("apiextensions.v1", name).members();
        assert_eq!(shown, published.map(crate::types::Field::go_name).collect::<BTreeSet<_>>(), "{name}");
    }

    #[test]
    fn structs_are_shown_with_the_fields_that_are_published() {
        check(&show_schema(&JsonSchema::default()), "JSONSchemaProps");
        check(&show_rule(&ValidationRule::default()), "ValidationRule");
        check(&show_column(&Column::default()), "CustomResourceColumnDefinition");
        check(&show_scale(&Scale::default()), "CustomResourceSubresourceScale");
    }
}
