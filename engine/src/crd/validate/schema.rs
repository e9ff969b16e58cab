//! The schema of a version, or the schema that all versions share.
//!
//! Source: Kubernetes documentation, "Specifying a structural schema"; apiextensions-apiserver 1.37.

use super::defaults::validate_defaults;
use std::sync::Arc;

use super::expressions::{ExpressionContext, SchemaCosts};
use super::go_struct;
use super::options::ValidationOptions;
use super::validated::SchemaVerdict;
use super::walk::validate_open_api;
use crate::meta::field::{Error, ErrorList, ErrorSubject, Path};
use crate::schema::check::validate_structural;
use crate::schema::convert::to_structural;
use crate::schema::default::prune_defaults;
use crate::schema::json_schema::JsonSchema;

/// The verdict on `schema`, whose `openAPIV3Schema` would be at `path`.
pub fn validate_schema(
    schema: &JsonSchema,
    has_status: bool,
    options: &ValidationOptions,
    path: &Path<'_>,
) -> SchemaVerdict {
    let schema_path = path.child("openAPIV3Schema");
    let mut costs = SchemaCosts::new(&schema_path);
    let mut errors = ErrorList::new();
    if has_status {
        errors.extend(validate_root_with_status(schema, &schema_path));
    }
    if schema.nullable {
        errors.push(Error::forbidden(&schema_path.child("nullable"), "nullable cannot be true at the root"));
    }
    let mut not_convertible = None;
    let mut structural = None;
    if options.require_structural {
        match to_structural(schema) {
            Err(error) => {
                let error = Error::invalid(&schema_path, "", error.to_string());
                not_convertible = Some(error.about(ErrorSubject::Structure));
            }
            Ok(converted) => {
                let mut found = about_structure(validate_structural(&schema_path, &converted));
                if found.is_empty() {
                    found = validate_defaults(options.minor, &converted, options.require_pruned_defaults, &schema_path);
                }
                // In a schema with faults, rules would only show errors that disappear with these.
                structural = Some(converted).filter(|_| found.is_empty());
                errors.extend(found);
            }
        }
    }
    let context = structural.as_ref().map(|structural| ExpressionContext::root(options.minor, schema, structural));
    errors.extend(validate_open_api(schema, context.as_ref(), &mut costs, options, &schema_path));
    // The walk over all nodes usually reports the same in clearer words.
    if errors.is_empty() {
        errors.extend(not_convertible);
    }
    errors.extend(costs.check_total());
    let costs = context.is_some().then_some(costs);
    let structural = structural.filter(|_| options.keeps_costs).map(|mut structural| {
        prune_defaults(&mut structural);
        Arc::new(structural)
    });
    SchemaVerdict { errors, costs, structural }
}

/// Marks the errors as ones that keep the schema from being structural.
fn about_structure(errors: ErrorList) -> ErrorList {
    let mut found = ErrorList::new();
    errors.into_vec().into_iter().for_each(|error| found.push(error.about(ErrorSubject::Structure)));
    found
}

/// Whether `schema` itself has an extension that only structural schemas may have.
pub fn has_extensions(schema: &JsonSchema) -> bool {
    schema.embedded_resource
        || schema.preserve_unknown_fields.is_some()
        || schema.int_or_string
        || !schema.list_map_keys.is_empty()
        || schema.list_type.is_some()
        || !schema.validations.is_empty()
}

/// The status is validated separately, by `properties.status`, so the root must not constrain it.
fn validate_root_with_status(schema: &JsonSchema, path: &Path<'_>) -> Option<Error> {
    let forbidden = || {
        let detail = "only [Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength \
                      MinLength Pattern MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs \
                      Example XPreserveUnknownFields XValidations] fields are allowed at the root of the schema if the \
                      status subresource is enabled";
        Some(go_struct::invalid(path, go_struct::show_schema(schema), detail))
    };
    if !schema.unsupported.id.is_empty()
        || !schema.unsupported.schema.is_empty()
        || schema.unsupported.reference.is_some()
    {
        return forbidden();
    }
    if !schema.type_.is_empty() && schema.type_ != "object" {
        let detail =
            "only \"object\" is allowed as the type at the root of the schema if the status subresource is enabled";
        return Some(Error::invalid(&path.child("type"), schema.type_.as_str(), detail));
    }
    let names_list = [
        ("enum", schema.enum_.is_empty()),
        ("allOf", schema.junctors.all_of.is_empty()),
        ("oneOf", schema.junctors.one_of.is_empty()),
        ("anyOf", schema.junctors.any_of.is_empty()),
        ("patternProperties", schema.unsupported.pattern_properties.is_empty()),
        ("dependencies", schema.unsupported.dependencies.is_empty()),
        ("definitions", schema.unsupported.definitions.is_empty()),
        ("x-kubernetes-list-map-keys", schema.list_map_keys.is_empty()),
    ];
    let names_more = names_list.iter().any(|(keyword, is_empty)| !is_empty || schema.given_empty.contains(keyword))
        || schema.nullable
        || schema.default.is_some()
        || schema.bounds.max_properties.is_some()
        || schema.bounds.min_properties.is_some()
        || schema.junctors.not.is_some()
        || schema.additional_properties.is_some()
        || schema.unsupported.additional_items.is_some()
        || schema.embedded_resource
        || schema.int_or_string
        || schema.list_type.is_some()
        || schema.map_type.is_some();
    if names_more { forbidden() } else { None }
}
