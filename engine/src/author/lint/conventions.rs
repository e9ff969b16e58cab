//! The API conventions about types, names and structures, by heading.

use super::lints::{
    BOOLEAN, BOOLEAN_NAME, CONDITIONS, CROSS_NAMESPACE, ENUM_CASE, ENUM_TYPE, FLOAT, INT64, KIND_CASE, LIST_TYPE, MAP,
    NAME_CASE, PHASE, REFERENCE, REQUIRED_UNSPECIFIED, REQUIRED_WITH_DEFAULT, RESERVED_GROUP, RESERVED_PREFIX, STATUS,
    TIME_NAME, UNBOUNDED_NUMBER, UNIT, UNKNOWN_FIELDS,
};
use super::{NodeLocation, VersionFindings};
use crate::crd::approval::{Approval, is_protected};
use crate::crd::{Definition, ServedVersion};
use crate::schema::structural::{Structural, StructuralOrBool, ValueValidation};
use crate::value::Value;

/// The largest integer up to which all are exact in floating-point numbers.
const EXACT_MAX: f64 = 9_007_199_254_740_992.0;
/// Words at the end of a name that require a unit.
const DURATIONS: [&str; 8] = ["timeout", "period", "interval", "delay", "duration", "ttl", "deadline", "age"];
const SIZES: [&str; 2] = ["memory", "bandwidth"];

/// The name of a node.
pub struct NodeName<'n> {
    pub name: &'n str,
    /// Whether its type is one of Kubernetes', so that only the name is the author's choice.
    pub is_embedded: bool,
}

/// Checks a definition as a whole.
pub fn look_at_definition(found: &mut VersionFindings<'_>, definition: &Definition) {
    let node = |at| NodeLocation { path: "", at };
    let kind = &definition.spec.names.kind;
    if !is_camel_case(kind) || (kind.ends_with("List") && kind != "List") {
        let message = format!("the kind `{kind}` is not a CamelCase word for one object");
        found.tell(&node("spec.names.kind"), &KIND_CASE, message, KIND_CASE.remedy);
    }
    // Without the annotation, the server refuses the definition.
    let group = &definition.spec.group;
    if is_protected(group) && Approval::of(definition) == Approval::Bypassed {
        let message = format!("the group `{group}` is reserved, and its definition is not approved");
        found.tell(&node("spec.group"), &RESERVED_GROUP, message, RESERVED_GROUP.remedy);
    }
}

/// Checks a version as a whole.
pub fn look_at_version(found: &mut VersionFindings<'_>, version: &ServedVersion, own: &str) {
    if version.structural.properties.contains_key("status") && !version.status {
        let at = format!("{own}.properties[status]");
        found.tell(
            &NodeLocation { path: "status", at: &at },
            &STATUS,
            "the kind has a status, but no /status",
            STATUS.remedy,
        );
    }
}

/// Checks a node of a schema.
pub fn look(
    found: &mut VersionFindings<'_>,
    version: &ServedVersion,
    node: &NodeLocation<'_>,
    schema: &Structural,
    named: &NodeName<'_>,
) {
    let none = ValueValidation::default();
    let values = schema.value_validation.as_deref().unwrap_or(&none);
    names(found, node, named.name);
    if version.is_namespaced() {
        references(found, node, schema, named.name);
    }
    if named.is_embedded {
        return;
    }
    structure(found, node, schema, values);
    match schema.generic.type_.as_str() {
        "integer" | "number" => number(found, node, schema, values),
        "boolean" => boolean(found, node, named.name),
        _ => {}
    }
    units(found, node, schema, values, named.name);
    constants(found, node, values);
    if node.path == "status.phase" {
        found.tell(node, &PHASE, "the status has a phase", PHASE.remedy);
    }
    if node.path == "status.conditions" {
        conditions(found, node, schema);
    }
}

fn structure(found: &mut VersionFindings<'_>, node: &NodeLocation<'_>, schema: &Structural, values: &ValueValidation) {
    let is_untyped = schema.generic.type_ == "array" && schema.extensions.list_type.is_none();
    if is_untyped && node.path != "status.conditions" {
        found.tell(node, &LIST_TYPE, "the list has no x-kubernetes-list-type", LIST_TYPE.remedy);
    }
    let entries = schema.additional_properties.as_ref().and_then(StructuralOrBool::structural);
    if entries.is_some_and(|entries| !entries.properties.is_empty()) {
        let fix = "use a list with x-kubernetes-list-type: map and x-kubernetes-list-map-keys: [name]";
        found.tell(node, &MAP, "it is a map of objects", fix);
    }
    if schema.extensions.preserve_unknown_fields && ["", "spec", "status"].contains(&node.path) {
        found.tell(node, &UNKNOWN_FIELDS, "all of it takes fields that nothing specifies", UNKNOWN_FIELDS.remedy);
    }
    let keeps_unspecified = schema.extensions.preserve_unknown_fields || schema.additional_properties.is_some();
    for name in &values.required {
        let property = schema.properties.get(name);
        if property.is_some_and(|property| property.generic.default.is_some()) {
            let message = format!("`{name}` is required, and has a default");
            found.tell(node, &REQUIRED_WITH_DEFAULT, message, format!("don't require `{name}`"));
        }
        let is_resource = node.path.is_empty() || schema.extensions.embedded_resource;
        let is_known = is_resource && ["apiVersion", "kind", "metadata"].contains(&name.as_str());
        if property.is_none() && !keeps_unspecified && !is_known && schema.generic.type_ == "object" {
            let message = format!("`{name}` is required, but not specified");
            found.tell(node, &REQUIRED_UNSPECIFIED, message, format!("specify `{name}`, or don't require it"));
        }
    }
}

fn number(found: &mut VersionFindings<'_>, node: &NodeLocation<'_>, schema: &Structural, values: &ValueValidation) {
    let is_whole = schema.generic.type_ == "integer";
    if is_whole && values.format == "int64" && values.bounds.maximum.is_none_or(|maximum| maximum > EXACT_MAX) {
        found.tell(node, &INT64, "an int64 may be larger than JSON readers hold exactly", INT64.remedy);
    }
    if !is_in_spec(node) {
        return;
    }
    if !is_whole {
        found.tell(node, &FLOAT, "it is a floating-point number in a spec", FLOAT.remedy);
    }
    let missing: Vec<&str> = [(values.bounds.minimum, "minimum"), (values.bounds.maximum, "maximum")]
        .into_iter()
        .filter_map(|(bound, name)| bound.is_none().then_some(name))
        .collect();
    if !missing.is_empty() && values.enum_.is_empty() {
        let missing = missing.join(" and ");
        found.tell(node, &UNBOUNDED_NUMBER, format!("the number has no {missing}"), format!("set {missing}"));
    }
}

fn boolean(found: &mut VersionFindings<'_>, node: &NodeLocation<'_>, name: &str) {
    if is_in_spec(node) && !name.is_empty() {
        found.tell(node, &BOOLEAN, format!("`{name}` can never have a third state"), BOOLEAN.remedy);
    }
    let bare = name.strip_prefix("is").filter(|bare| bare.starts_with(|first: char| first.is_ascii_uppercase()));
    if let Some(bare) = bare {
        let fix = format!("call it {}{}", bare[..1].to_ascii_lowercase(), &bare[1..]);
        found.tell(node, &BOOLEAN_NAME, format!("the boolean `{name}` begins with is"), fix);
    }
}

fn units(
    found: &mut VersionFindings<'_>,
    node: &NodeLocation<'_>,
    schema: &Structural,
    values: &ValueValidation,
    name: &str,
) {
    let is_number = matches!(schema.generic.type_.as_str(), "integer" | "number");
    let is_called = |words: &[&str]| {
        words.iter().any(|word| {
            let behind = name.to_ascii_lowercase();
            let Some(stem) = behind.strip_suffix(word) else { return false };
            // Only a separate word: `maxAge`, not `storage`.
            stem.is_empty() || name[stem.len()..].starts_with(|first: char| first.is_ascii_uppercase())
        })
    };
    if is_number && is_called(&DURATIONS) {
        found.tell(node, &UNIT, format!("`{name}` does not say its unit"), format!("call it {name}Seconds"));
    } else if is_number && is_called(&SIZES) {
        found.tell(
            node,
            &UNIT,
            format!("`{name}` does not say its unit"),
            format!("call it {name}Bytes, or use a quantity"),
        );
    } else if schema.generic.type_ == "string" && values.format == "duration" && !name.is_empty() {
        let message = format!("`{name}` is a duration in Go's format");
        found.tell(node, &UNIT, message, format!("use an integer called {name}Seconds"));
    }
    let says_time = ["Time", "time"].iter().any(|word| name.ends_with(word)) || name.starts_with("time");
    if values.format == "date-time" && !name.is_empty() && !says_time {
        let stem = ["Timestamp", "Date", "At"].into_iter().find_map(|end| name.strip_suffix(end)).unwrap_or(name);
        found.tell(node, &TIME_NAME, format!("the time `{name}` does not end in Time"), format!("call it {stem}Time"));
    }
}

fn names(found: &mut VersionFindings<'_>, node: &NodeLocation<'_>, name: &str) {
    if let Some(stem) = name.strip_suffix("Reference").filter(|stem| !stem.is_empty()) {
        found.tell(node, &REFERENCE, format!("`{name}` is a reference"), format!("call it {stem}Ref"));
    }
    match name.split_once('/') {
        Some((prefix, _)) if is_protected(prefix) => {
            let message = format!("the prefix of `{name}` is reserved");
            found.tell(node, &RESERVED_PREFIX, message, RESERVED_PREFIX.remedy);
        }
        _ if name.starts_with(|first: char| first.is_ascii_uppercase()) || name.contains(['_', '-']) => {
            found.tell(node, &NAME_CASE, format!("`{name}` is not lowerCamelCase"), NAME_CASE.remedy);
        }
        _ => {}
    }
}

/// Checks references that can name an object in another namespace.
fn references(found: &mut VersionFindings<'_>, node: &NodeLocation<'_>, schema: &Structural, name: &str) {
    let is_reference = ["Ref", "Reference", "Refs", "References"].iter().any(|end| name.ends_with(end));
    let holder = schema.items.as_deref().unwrap_or(schema);
    if is_reference && holder.properties.contains_key("namespace") && holder.properties.contains_key("name") {
        let message = format!("`{name}` may name an object of another namespace");
        found.tell(node, &CROSS_NAMESPACE, message, CROSS_NAMESPACE.remedy);
    }
}

fn constants(found: &mut VersionFindings<'_>, node: &NodeLocation<'_>, values: &ValueValidation) {
    if values.enum_.iter().any(|value| matches!(value, Value::Int(_) | Value::Float(_))) {
        found.tell(node, &ENUM_TYPE, "the values are numbers", ENUM_TYPE.remedy);
    }
    let texts = values.enum_.iter().filter_map(|value| value.as_str());
    let odd: Vec<&str> = texts.filter(|text| !text.is_empty() && !is_camel_case(text)).collect();
    if !odd.is_empty() {
        let message = format!("the values {} are not CamelCase", odd.join(", "));
        found.tell(node, &ENUM_CASE, message, ENUM_CASE.remedy);
    }
}

fn conditions(found: &mut VersionFindings<'_>, node: &NodeLocation<'_>, schema: &Structural) {
    let is_map = schema.extensions.list_type.as_deref() == Some("map") && schema.extensions.list_map_keys == ["type"];
    if schema.generic.type_ == "array" && !is_map {
        let fix = "add x-kubernetes-list-type: map and x-kubernetes-list-map-keys: [type]";
        found.tell(node, &CONDITIONS, "conditions are not a list map by type", fix);
    }
    let Some(items) = schema.items.as_deref() else { return };
    let standard = ["type", "status", "lastTransitionTime", "reason", "message"];
    let missing: Vec<&str> = standard.into_iter().filter(|name| !items.properties.contains_key(name)).collect();
    if !missing.is_empty() && !items.extensions.preserve_unknown_fields {
        let message = format!("conditions have no {}", missing.join(", "));
        found.tell(node, &CONDITIONS, message, "take the fields of metav1.Condition");
    }
}

fn is_in_spec(node: &NodeLocation<'_>) -> bool {
    node.path == "spec" || node.path.starts_with("spec.") || node.path.starts_with("spec[")
}

fn is_camel_case(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_uppercase()) && text.chars().all(|c| c.is_ascii_alphanumeric())
}
