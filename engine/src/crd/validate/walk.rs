//! Every node of a schema as its author wrote it: keywords that definitions don't have, and extensions that don't fit.
//!
//! Source: apiextensions-apiserver 1.37, answers recorded from it.

use super::expressions::{ExpressionContext, SchemaCosts};
use super::options::ValidationOptions;
use super::{list_type, rules};
use crate::meta::field::{Error, ErrorList, Path};
use crate::schema::json_schema::{JsonSchema, SchemaOrBool, SchemaOrStrings};
use crate::work;

const TYPES: [&str; 6] = ["array", "boolean", "integer", "number", "object", "string"];

/// Whether a type is one of OpenAPI v3; an empty one passes.
pub fn is_valid_type(type_: &str) -> bool {
    type_.is_empty() || TYPES.contains(&type_)
}

/// The errors in `schema`, the root of a version: first those of the schema, then those of its rules' expressions.
///
/// Rules are compiled if there is a `context`, and only in parts without another fault, the inner ones first. Their
/// costs go to `costs`.
pub fn validate_open_api(
    schema: &JsonSchema,
    context: Option<&ExpressionContext<'_>>,
    costs: &mut SchemaCosts,
    options: &ValidationOptions,
    path: &Path<'_>,
) -> ErrorList {
    let mut walk = Walk { options, costs, errors: ErrorList::new(), rule_errors: ErrorList::new() };
    let place = SchemaContext { is_root: true, inside_meta: false, no_default_reason: None, uncorrelatable: None };
    walk.enter(schema, place, context, path);
    let Walk { mut errors, rule_errors, .. } = walk;
    errors.extend(rule_errors);
    errors
}

/// Facts about a node that follow from its path.
#[derive(Clone, Copy)]
struct SchemaContext<'p> {
    is_root: bool,
    /// Within `apiVersion`, `kind` or `metadata` of an object.
    inside_meta: bool,
    /// The place, if no default is allowed there.
    no_default_reason: Option<&'static str>,
    /// The outermost node whose parts can't be correlated on updates.
    uncorrelatable: Option<&'p Path<'p>>,
}

struct Walk<'o> {
    options: &'o ValidationOptions,
    costs: &'o mut SchemaCosts,
    errors: ErrorList,
    rule_errors: ErrorList,
}

impl Walk<'_> {
    fn enter(
        &mut self,
        schema: &JsonSchema,
        place: SchemaContext<'_>,
        context: Option<&ExpressionContext<'_>>,
        path: &Path<'_>,
    ) {
        work::step();
        let errors_before = self.errors.len();
        self.check_keywords(schema, place, path);
        if schema.bounds.unique_items {
            let detail = "uniqueItems cannot be set to true since the runtime complexity becomes quadratic";
            self.errors.push(Error::forbidden(&path.child("uniqueItems"), detail));
        }
        self.enter_children(schema, place, context, path);
        if schema.preserve_unknown_fields == Some(false) {
            let path = path.child("x-kubernetes-preserve-unknown-fields");
            self.errors.push(Error::invalid(&path, false, "must be true or undefined"));
        }
        self.errors.extend(list_type::validate_map_type(schema, path));
        self.errors.extend(list_type::validate_list_type(schema, self.options.require_atomic_set_type, path));
        if self.options.require_map_list_keys_map_set {
            self.errors.extend(list_type::validate_items_of_sets_and_maps(schema, path));
        }
        let rules_path = path.child("x-kubernetes-validations");
        self.errors.extend(rules::validate_rules(
            self.options.minor,
            schema,
            context.map(ExpressionContext::structural),
            &rules_path,
        ));
        if let Some(context) = context.filter(|_| !schema.validations.is_empty())
            && self.errors.len() == errors_before
        {
            let found = context.check(self.options, place.uncorrelatable, self.costs, &rules_path);
            self.rule_errors.extend(found);
        }
    }

    fn enter_children(
        &mut self,
        schema: &JsonSchema,
        place: SchemaContext<'_>,
        context: Option<&ExpressionContext<'_>>,
        path: &Path<'_>,
    ) {
        let inner = SchemaContext { is_root: false, ..place };
        self.enter_additional(schema, inner, context, path);
        let properties_path = path.child("properties");
        for (name, property) in schema.properties.iter() {
            let mut place = property_place(schema, name, place);
            if !list_type::is_correlatable_map(schema) {
                place.uncorrelatable = place.uncorrelatable.or(Some(path));
            }
            let context = context.and_then(|context| context.property(name, property));
            self.enter(property, place, context.as_ref(), &properties_path.key(name));
        }
        // Rules are not allowed in these.
        if let Some(not) = &schema.junctors.not {
            self.enter(not, inner, None, &path.child("not"));
        }
        for (name, junctor) in
            [("allOf", &schema.junctors.all_of), ("oneOf", &schema.junctors.one_of), ("anyOf", &schema.junctors.any_of)]
        {
            let path = path.child(name);
            for (index, schema) in junctor.iter().enumerate() {
                self.enter(schema, inner, None, &path.index(index));
            }
        }
        let definitions_path = path.child("definitions");
        for (name, definition) in schema.unsupported.definitions.iter() {
            self.enter(definition, inner, None, &definitions_path.key(name));
        }
        self.enter_items(schema, inner, context, path);
        let dependencies_path = path.child("dependencies");
        for (name, dependency) in schema.unsupported.dependencies.iter() {
            if let SchemaOrStrings::Schema(schema) = dependency {
                self.enter(schema, inner, None, &dependencies_path.key(name));
            }
        }
    }

    fn enter_additional(
        &mut self,
        schema: &JsonSchema,
        inner: SchemaContext<'_>,
        context: Option<&ExpressionContext<'_>>,
        path: &Path<'_>,
    ) {
        let Some(additional) = &schema.additional_properties else { return };
        let path = path.child("additionalProperties");
        if !schema.properties.is_empty() && *additional != SchemaOrBool::Bool(true) {
            let detail = "additionalProperties and properties are mutual exclusive";
            self.errors.push(Error::forbidden(&path, detail));
        }
        if let Some(values) = additional.schema() {
            let mut place = inner;
            if place.inside_meta {
                place.no_default_reason = Some("inside additionalProperties applying to object metadata");
            }
            let context = context.and_then(|context| context.values(values));
            self.enter(values, place, context.as_ref(), &path);
        }
    }

    fn enter_items(
        &mut self,
        schema: &JsonSchema,
        inner: SchemaContext<'_>,
        context: Option<&ExpressionContext<'_>>,
        path: &Path<'_>,
    ) {
        let Some(items) = &schema.items else { return };
        let mut place = inner;
        // Items of sets have no key: an item that changed is a different one.
        if schema.list_type.as_deref() != Some("map") {
            place.uncorrelatable = place.uncorrelatable.or(Some(path));
        }
        let path = path.child("items");
        if let Some(items) = items.schema() {
            let context = context.and_then(|context| context.items(items));
            self.enter(items, place, context.as_ref(), &path);
        }
        for (index, item) in items.array().iter().enumerate() {
            self.enter(item, place, None, &path.index(index));
        }
    }

    /// Checks for keywords of JSON schema that definitions don't have, and for misplaced defaults and types.
    fn check_keywords(&mut self, schema: &JsonSchema, place: SchemaContext<'_>, path: &Path<'_>) {
        let type_ = schema.type_.as_str();
        if self.options.require_valid_property_type && !is_valid_type(type_) {
            self.errors.push(Error::not_supported(&path.child("type"), type_, &TYPES));
        }
        if let (Some(_), Some(reason)) = (&schema.default, place.no_default_reason) {
            self.errors.push(Error::forbidden(&path.child("default"), format!("must not be set {reason}")));
        }
        let unsupported = [
            ("id", !schema.unsupported.id.is_empty()),
            ("additionalItems", schema.unsupported.additional_items.is_some()),
            ("patternProperties", !schema.unsupported.pattern_properties.is_empty()),
            ("definitions", !schema.unsupported.definitions.is_empty()),
            (
                "dependencies",
                !schema.unsupported.dependencies.is_empty() || schema.given_empty.contains("dependencies"),
            ),
            ("$ref", schema.unsupported.reference.is_some()),
        ];
        for (keyword, _) in unsupported.into_iter().filter(|(_, is_set)| *is_set) {
            self.errors.push(Error::forbidden(&path.child(keyword), format!("{keyword} is not supported")));
        }
        if type_ == "null" {
            let detail = "type cannot be set to null, use nullable as an alternative";
            self.errors.push(Error::forbidden(&path.child("type"), detail));
        }
        if schema.items.as_ref().is_some_and(|items| !items.array().is_empty()) {
            let detail = "items must be a schema object and not an array";
            self.errors.push(Error::forbidden(&path.child("items"), detail));
        }
        if place.inside_meta && schema.embedded_resource {
            let path = path.child("x-kubernetes-embedded-resource");
            self.errors.push(Error::forbidden(&path, "must not be used inside of resource meta"));
        }
    }
}

/// The context of the property `name` of `schema`, which is at `outer`.
fn property_place<'p>(schema: &JsonSchema, name: &str, outer: SchemaContext<'p>) -> SchemaContext<'p> {
    let mut place = SchemaContext { is_root: false, ..outer };
    let reason = match name {
        "apiVersion" => "in top-level apiVersion",
        "kind" => "in top-level kind",
        "metadata" => "in top-level metadata",
        _ => return place,
    };
    place.inside_meta |= outer.is_root || schema.embedded_resource;
    if outer.is_root {
        place.no_default_reason = Some(reason);
    }
    place
}
