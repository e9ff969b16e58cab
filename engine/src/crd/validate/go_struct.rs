//! Bad values that are structs in Kubernetes: messages show them as JSON of the internal types, with all fields, under
//! Go's names and in Go's order.
//!
//! Source: `apiextensions` types, release 1.37.

use super::internal::{InternalVersion, SharedFields};
use crate::crd::definition::Version;
use crate::meta::field::{Error, Path};
use crate::meta::minor::Minor;
use crate::schema::json_schema::{JsonSchema, ValidationRule};
use crate::types;
use crate::types::field_value::{FieldValue as _, GivenEmpty};
use crate::value::{Value, go_quote, json};

/// The version of Kubernetes that began to show structs as JSON in messages; before, they were in Go's own format.
const JSON_SINCE: Minor = Minor::of(34);

/// An error about a value that is shown as the JSON text `shown`.
pub fn invalid(path: &Path<'_>, shown: String, detail: impl Into<String>) -> Error {
    // The text was just encoded, so it is valid JSON.
    let value = json::decode(shown.as_bytes()).unwrap_or_default();
    Error::invalid(path, value, detail).shown_as(shown)
}

pub fn show_versions(versions: &[InternalVersion<'_>]) -> String {
    let shown = versions.iter().map(|version| {
        let SharedFields { schema, subresources, columns, selectable_fields } = version.own;
        let own = Version {
            schema: schema.cloned(),
            subresources: subresources.cloned(),
            columns: columns.to_vec(),
            selectable_fields: selectable_fields.to_vec(),
            ..version.version.clone()
        };
        show("CustomResourceDefinitionVersion", &own.write(GivenEmpty::Written))
    });
    format!("[{}]", shown.collect::<Vec<_>>().join(","))
}

pub fn show_schema(schema: &JsonSchema) -> String {
    show("JSONSchemaProps", &schema.write(GivenEmpty::Written))
}

pub fn show_rule(rule: &ValidationRule) -> String {
    show("ValidationRule", &rule.write(GivenEmpty::Written))
}

/// A value of a published type, as JSON of the internal type.
fn show(name: &str, value: &Value) -> String {
    types::show_internal(&format!("apiextensions.v1.{name}"), value)
}

/// A rule as messages of that version of Kubernetes show it.
pub fn show_rule_in(minor: Minor, rule: &ValidationRule) -> String {
    // For a pointer, Go's own format shows an address, which differs from run to run.
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
pub fn show_items(schema: &JsonSchema) -> String {
    let shown = schema.write(GivenEmpty::Written);
    show("JSONSchemaPropsOrArray", shown.get("items").unwrap_or(&Value::Null))
}
