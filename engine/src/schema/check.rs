//! Whether a [`Structural`] is structural, and if not, why.
//!
//! The rules: no structure under a junctor (but for the int-or-string pattern), every field that the root's junctors name
//! is specified outside them too, types are given, metadata is left alone, extensions fit together.
//!
//! Source: Kubernetes documentation, "Specifying a structural schema"; `apiextensions-apiserver`, release 1.37.

use super::pattern::Pattern;
use super::structural::{Extensions, Generic, NestedValueValidation, Structural, StructuralOrBool, ValueValidation};
use crate::meta::field::{Error, ErrorList, Path};
use crate::value::Map;
use crate::work;

#[derive(Clone, Copy, PartialEq, Eq)]
enum SchemaLevel {
    Root,
    Item,
    Field,
}

/// Everything that keeps `schema` from being structural, sorted by text.
pub fn validate_structural(path: &Path<'_>, schema: &Structural) -> ErrorList {
    let mut errors = ErrorList::new();
    check_invariants(path, schema, SchemaLevel::Root, &mut errors);
    if let Some(validation) = &schema.value_validation {
        check_completeness(validation, schema, path, path, &mut errors);
    }
    errors.sort_by_cached_key(Error::to_string);
    errors
}

/// Whether `anyOf` is the int-or-string pattern, with or without the marker of such a field.
pub fn is_int_or_string_any_of(validation: &ValueValidation) -> bool {
    matches!(&validation.junctors.any_of[..], [integer, string] if is_type_only(integer, "integer") && is_type_only(string, "string"))
}

/// Whether the first schema of `allOf` holds the int-or-string pattern.
pub fn is_int_or_string_all_of(validation: &ValueValidation) -> bool {
    validation.junctors.all_of.first().is_some_and(|first| is_int_or_string_any_of(&first.value_validation))
}

fn is_type_only(nested: &NestedValueValidation, type_: &str) -> bool {
    let generics = Generic { type_: type_.to_owned(), ..Generic::default() };
    let forbids_additional_properties = nested.forbids_additional_properties;
    let type_only = NestedValueValidation {
        forbidden_generics: generics.into(),
        forbids_additional_properties,
        ..NestedValueValidation::default()
    };
    *nested == type_only
}

fn check_invariants(path: &Path<'_>, schema: &Structural, level: SchemaLevel, errors: &mut ErrorList) {
    work::step();
    let type_ = schema.generic.type_.as_str();
    let extensions = &schema.extensions;
    let type_path = path.child("type");
    match &schema.items {
        None if type_ == "array" => errors.push(Error::required(&path.child("items"), "must be specified")),
        None => {}
        Some(items) => check_invariants(&path.child("items"), items, SchemaLevel::Item, errors),
    }
    let properties = path.child("properties");
    for (name, property) in schema.properties.iter() {
        check_invariants(&properties.key(name), property, SchemaLevel::Field, errors);
    }
    if let Some(additional) = &schema.additional_properties {
        let additional_path = path.child("additionalProperties");
        if level == SchemaLevel::Root {
            errors.push(Error::forbidden(&additional_path, "must not be used at the root"));
        }
        if let StructuralOrBool::Structural(schema) = additional {
            check_invariants(&additional_path, schema, SchemaLevel::Field, errors);
        }
    }
    check_extensions(path, extensions, errors);
    if let Some(validation) = &schema.value_validation {
        let skip_any_of = is_int_or_string_any_of(validation);
        let skip_first_all_of = is_int_or_string_all_of(validation);
        check_value_validation(path, validation, skip_any_of, skip_first_all_of, errors);
    }

    if extensions.embedded_resource && type_ != "object" {
        let detail = "must be object if x-kubernetes-embedded-resource is true";
        errors.push(if type_.is_empty() {
            Error::required(&type_path, detail)
        } else {
            Error::invalid(&type_path, type_, detail)
        });
    } else if type_.is_empty() && !extensions.int_or_string && !extensions.preserve_unknown_fields {
        let detail = match level {
            SchemaLevel::Root => "must not be empty at the root",
            SchemaLevel::Item => "must not be empty for specified array items",
            SchemaLevel::Field => "must not be empty for specified object fields",
        };
        errors.push(Error::required(&type_path, detail));
    }
    if extensions.embedded_resource && schema.additional_properties.is_some() {
        let detail = "must not be used if x-kubernetes-embedded-resource is set";
        errors.push(Error::forbidden(&path.child("additionalProperties"), detail));
    }
    if level == SchemaLevel::Root && !type_.is_empty() && type_ != "object" {
        errors.push(Error::invalid(&type_path, type_, "must be object at the root"));
    }
    check_meta_properties(path, schema, level, errors);
    if extensions.embedded_resource && !extensions.preserve_unknown_fields && schema.properties.is_empty() {
        let detail = "must not be empty if x-kubernetes-embedded-resource is true without \
                      x-kubernetes-preserve-unknown-fields";
        errors.push(Error::required(&properties, detail));
    }
}

/// `kind`, `apiVersion` and `metadata` of a resource, at the root or embedded.
fn check_meta_properties(path: &Path<'_>, schema: &Structural, level: SchemaLevel, errors: &mut ErrorList) {
    let is_resource = level == SchemaLevel::Root || schema.extensions.embedded_resource;
    let properties = path.child("properties");
    for name in ["kind", "apiVersion"] {
        if let Some(property) = schema.properties.get(name)
            && is_resource
            && property.generic.type_ != "string"
        {
            let property_path = properties.key(name);
            errors.push(Error::invalid(
                &property_path.child("type"),
                property.generic.type_.as_str(),
                "must be string",
            ));
        }
    }
    let Some(metadata) = schema.properties.get("metadata") else { return };
    let metadata_path = properties.key("metadata");
    if is_resource && metadata.generic.type_ != "object" {
        errors.push(Error::invalid(&metadata_path.child("type"), metadata.generic.type_.as_str(), "must be object"));
    }
    if level == SchemaLevel::Root && !restricts_names_only(metadata) {
        let detail = "must not specify anything other than name and generateName, but metadata is implicitly specified";
        errors.push(Error::forbidden(&metadata_path, detail));
    }
}

fn restricts_names_only(metadata: &Structural) -> bool {
    let mut rest = metadata.clone();
    if rest.properties.keys().all(|name| matches!(name, "name" | "generateName")) {
        rest.properties = Map::new();
    }
    rest.generic.type_.clear();
    // Defaults are checked by the validation of definitions.
    rest.generic.default = None;
    rest == Structural::default()
}

fn check_extensions(path: &Path<'_>, extensions: &Extensions, errors: &mut ErrorList) {
    if !extensions.int_or_string {
        return;
    }
    let detail = "must be false if x-kubernetes-int-or-string is true";
    if extensions.preserve_unknown_fields {
        errors.push(Error::invalid(&path.child("x-kubernetes-preserve-unknown-fields"), true, detail));
    }
    if extensions.embedded_resource {
        errors.push(Error::invalid(&path.child("x-kubernetes-embedded-resource"), true, detail));
    }
}

fn check_value_validation(
    path: &Path<'_>,
    validation: &ValueValidation,
    skip_any_of: bool,
    skip_first_all_of: bool,
    errors: &mut ErrorList,
) {
    if !skip_any_of {
        let junctor = path.child("anyOf");
        for (index, nested) in validation.junctors.any_of.iter().enumerate() {
            check_nested(&junctor.index(index), nested, false, errors);
        }
    }
    let junctor = path.child("allOf");
    for (index, nested) in validation.junctors.all_of.iter().enumerate() {
        check_nested(&junctor.index(index), nested, skip_first_all_of && index == 0, errors);
    }
    let junctor = path.child("oneOf");
    for (index, nested) in validation.junctors.one_of.iter().enumerate() {
        check_nested(&junctor.index(index), nested, false, errors);
    }
    if let Some(nested) = &validation.junctors.not {
        check_nested(&path.child("not"), nested, false, errors);
    }
    // A pattern that compiled before need not be compiled again.
    if !validation.pattern.is_empty()
        && validation.compiled_pattern.is_none()
        && let Err(error) = Pattern::new(&validation.pattern)
    {
        let detail = format!("must be a valid regular expression, but isn't: {error}");
        errors.push(Error::invalid(&path.child("pattern"), validation.pattern.as_str(), detail));
    }
}

fn check_nested(path: &Path<'_>, nested: &NestedValueValidation, skip_any_of: bool, errors: &mut ErrorList) {
    work::step();
    check_value_validation(path, &nested.value_validation, skip_any_of, false, errors);
    if let Some(items) = &nested.items {
        check_nested(&path.child("items"), items, false, errors);
    }
    let properties = path.child("properties");
    for (name, property) in nested.properties.iter() {
        check_nested(&properties.key(name), property, false, errors);
    }

    const EMPTY: &str = "must be empty to be structural";
    const UNDEFINED: &str = "must be undefined to be structural";
    const FALSE: &str = "must be false to be structural";
    let generics = &nested.forbidden_generics;
    let extensions = &nested.forbidden_extensions;
    let forbidden = [
        ("type", !generics.type_.is_empty(), EMPTY),
        ("additionalProperties", nested.additional_properties.is_some(), UNDEFINED),
        ("default", generics.default.is_some(), UNDEFINED),
        ("title", !generics.annotations.title.is_empty(), EMPTY),
        ("description", !generics.description.is_empty(), EMPTY),
        ("nullable", generics.nullable, FALSE),
        ("x-kubernetes-preserve-unknown-fields", extensions.preserve_unknown_fields, FALSE),
        ("x-kubernetes-embedded-resource", extensions.embedded_resource, FALSE),
        ("x-kubernetes-int-or-string", extensions.int_or_string, FALSE),
        ("x-kubernetes-list-map-keys", !extensions.list_map_keys.is_empty(), EMPTY),
        ("x-kubernetes-list-type", extensions.list_type.is_some(), UNDEFINED),
        ("x-kubernetes-map-type", extensions.map_type.is_some(), UNDEFINED),
        ("x-kubernetes-validations", !nested.validations.is_empty(), EMPTY),
    ];
    for (name, present, detail) in forbidden {
        if present {
            errors.push(Error::forbidden(&path.child(name), detail));
        }
    }
    if nested.properties.contains_key("metadata") {
        errors.push(Error::forbidden(&properties.key("metadata"), "must not be specified in a nested context"));
    }
}

/// What the junctors of `validation` name must be specified in `schema`, too.
fn check_completeness(
    validation: &ValueValidation,
    schema: &Structural,
    schema_path: &Path<'_>,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    if let Some(nested) = &validation.junctors.not {
        check_nested_completeness(nested, schema, schema_path, &path.child("not"), errors);
    }
    for (name, junctor) in [
        ("allOf", &validation.junctors.all_of),
        ("anyOf", &validation.junctors.any_of),
        ("oneOf", &validation.junctors.one_of),
    ] {
        let junctor_path = path.child(name);
        for (index, nested) in junctor.iter().enumerate() {
            check_nested_completeness(nested, schema, schema_path, &junctor_path.index(index), errors);
        }
    }
}

fn check_nested_completeness(
    nested: &NestedValueValidation,
    schema: &Structural,
    schema_path: &Path<'_>,
    path: &Path<'_>,
    errors: &mut ErrorList,
) {
    work::step();
    check_completeness(&nested.value_validation, schema, schema_path, path, errors);
    if let Some(items) = &nested.items {
        let (schema_path, path) = (schema_path.child("items"), path.child("items"));
        match &schema.items {
            Some(schema) => check_nested_completeness(items, schema, &schema_path, &path, errors),
            None => errors.push(Error::required(&schema_path, format!("because it is defined in {path}"))),
        }
    }
    let (schema_path, path) = (schema_path.child("properties"), path.child("properties"));
    for (name, property) in nested.properties.iter() {
        let (schema_path, path) = (schema_path.key(name), path.key(name));
        match schema.properties.get(name) {
            Some(schema) => check_nested_completeness(property, schema, &schema_path, &path, errors),
            None => errors.push(Error::required(&schema_path, format!("because it is defined in {path}"))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::convert::to_structural;
    use crate::schema::json_schema;
    use crate::value::json;

    fn check(schema: &str, expected: &[&str]) {
        let value = json::decode(schema.as_bytes()).expect("the schema is JSON");
        let (schema, _) = json_schema::decode(&value).expect("the schema is of the right types");
        let structural = to_structural(&schema).expect("the schema has a structural form");
        let errors = validate_structural(&Path::new("s"), &structural);
        assert_eq!(errors.iter().map(ToString::to_string).collect::<Vec<_>>(), expected);
    }

    #[test]
    fn every_field_has_a_type() {
        check(
            r#"{"type": "object", "properties": {"a": {}, "b": {"type": "array"}}}"#,
            &[
                "s.properties[a].type: Required value: must not be empty for specified object fields",
                "s.properties[b].items: Required value: must be specified",
            ],
        );
    }

    #[test]
    fn junctors_add_no_structure() {
        check(
            r#"{"type": "object", "anyOf": [{"type": "object", "description": "x"}]}"#,
            &[
                "s.anyOf[0].description: Forbidden: must be empty to be structural",
                "s.anyOf[0].type: Forbidden: must be empty to be structural",
            ],
        );
    }

    #[test]
    fn what_junctors_of_the_root_name_is_specified_outside_them() {
        check(
            r#"{"type": "object", "not": {"properties": {"a": {"minimum": 1}}}}"#,
            &["s.properties[a]: Required value: because it is defined in s.not.properties[a]"],
        );
        check(
            r#"{"type": "object", "properties": {"o": {"type": "object", "not": {"properties": {"a": {"minimum": 1}}}}}}"#,
            &[],
        );
    }

    #[test]
    fn an_integer_or_string_needs_no_marker() {
        check(
            r#"{"type": "object", "properties": {"a": {"type": "string", "anyOf": [{"type": "integer"}, {"type": "string"}]}}}"#,
            &[],
        );
    }

    #[test]
    fn an_integer_or_string_has_types_and_nothing_else() {
        let of_string = |more: &str| {
            format!(
                r#"{{"type": "object", "properties": {{"a": {{"x-kubernetes-int-or-string": true, "anyOf": [{{"type": "integer"}}, {{"type": "string"{more}}}]}}}}}}"#
            )
        };
        check(&of_string(""), &[]);
        check(&of_string(r#", "enum": [], "additionalProperties": false"#), &[]);
        for empty in [r#""required": []"#, r#""properties": {}"#] {
            check(
                &of_string(&format!(", {empty}")),
                &[
                    "s.properties[a].anyOf[0].type: Forbidden: must be empty to be structural",
                    "s.properties[a].anyOf[1].type: Forbidden: must be empty to be structural",
                ],
            );
        }
    }

    #[test]
    fn metadata_of_the_root_may_only_restrict_names() {
        let metadata = |inner: &str| format!(r#"{{"type": "object", "properties": {{"metadata": {inner}}}}}"#);
        check(&metadata(r#"{"type": "object", "properties": {"name": {"type": "string", "maxLength": 3}}}"#), &[]);
        check(
            &metadata(r#"{"type": "object", "properties": {"labels": {"type": "object"}}}"#),
            &[
                "s.properties[metadata]: Forbidden: must not specify anything other than name and generateName, but metadata \
               is implicitly specified",
            ],
        );
    }
}
