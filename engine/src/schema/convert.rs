//! [`JsonSchema`] → [`Structural`]: structure apart from value validation.
//!
//! Source: `apiextensions-apiserver/pkg/apiserver/schema`, release 1.37.

use std::sync::Arc;

use super::json_schema::{JsonSchema, Junctors, SchemaOrArray, SchemaOrBool};
use super::pattern::Pattern;
use super::structural::{
    EnumIndex, Extensions, Generic, NestedValueValidation, Structural, StructuralOrBool, ValueValidation,
};
use crate::value::Map;
use crate::work;

/// The keywords that Go keeps in a structural schema if they are given empty.
const KEPT_EMPTY: [&str; 4] = ["properties", "required", "x-kubernetes-list-map-keys", "x-kubernetes-validations"];

/// Why a schema can't be made structural, in Kubernetes' words.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ConvertError {
    /// A keyword that structural schemas don't have.
    #[error("OpenAPIV3Schema '{0}' is not supported")]
    Unsupported(&'static str),
    /// `items` is an array.
    #[error("OpenAPIV3Schema 'items' must be a schema, but is an array")]
    ItemsIsArray,
    /// `x-kubernetes-preserve-unknown-fields` is false.
    #[error("internal error: 'x-kubernetes-preserve-unknown-fields' must be true or undefined")]
    PreserveUnknownFieldsIsFalse,
}

/// The structural form of `schema`; a schema that passed validation always has one.
///
/// # Errors
///
/// A keyword that structural schemas don't have. [`super::check`] reports what is well formed but not structural.
pub fn to_structural(schema: &JsonSchema) -> Result<Structural, ConvertError> {
    refuse_unsupported(schema)?;
    let value_validation = value_validation(schema)?;
    let extensions = extensions(schema)?;
    let mut structural = Structural {
        generic: generic(schema),
        extensions: extensions.into(),
        validations: schema.validations.clone(),
        properties: Map::with_capacity(schema.properties.len()),
        value_validation: (value_validation != ValueValidation::default()).then(|| Box::new(value_validation)),
        ..Structural::default()
    };
    if let Some(items) = single_items(schema)? {
        structural.items = Some(Box::new(to_structural(items)?));
    }
    for (name, property) in schema.properties.iter() {
        structural.properties.insert(name, to_structural(property)?);
    }
    structural.additional_properties = match &schema.additional_properties {
        Some(SchemaOrBool::Schema(schema)) => Some(StructuralOrBool::Structural(Box::new(to_structural(schema)?))),
        Some(SchemaOrBool::Bool(allowed)) => Some(StructuralOrBool::Bool(*allowed)),
        None => None,
    };
    structural.note_lacks();
    Ok(structural)
}

fn nested(schema: &JsonSchema) -> Result<NestedValueValidation, ConvertError> {
    refuse_unsupported(schema)?;
    let mut nested = NestedValueValidation {
        value_validation: value_validation(schema)?,
        validations: schema.validations.clone(),
        forbidden_generics: generic(schema).into(),
        forbidden_extensions: extensions(schema)?.into(),
        properties: Map::with_capacity(schema.properties.len()),
        forbids_additional_properties: schema.additional_properties == Some(SchemaOrBool::Bool(false)),
        gives_empty: KEPT_EMPTY.iter().any(|keyword| schema.given_empty.contains(keyword)),
        ..NestedValueValidation::default()
    };
    if let Some(items) = single_items(schema)? {
        nested.items = Some(Box::new(self::nested(items)?));
    }
    for (name, property) in schema.properties.iter() {
        nested.properties.insert(name, self::nested(property)?);
    }
    nested.additional_properties = match &schema.additional_properties {
        Some(SchemaOrBool::Schema(schema)) => Some(Box::new(self::nested(schema)?)),
        Some(SchemaOrBool::Bool(true)) => Some(Box::default()),
        Some(SchemaOrBool::Bool(false)) | None => None,
    };
    Ok(nested)
}

fn refuse_unsupported(schema: &JsonSchema) -> Result<(), ConvertError> {
    work::steps(1 + schema.required.len() + schema.validations.len() + schema.list_map_keys.len());
    work::bytes(schema.description.len());
    let refused = [
        ("id", !schema.unsupported.id.is_empty()),
        ("schema", !schema.unsupported.schema.is_empty()),
        ("$ref", schema.unsupported.reference.as_ref().is_some_and(|reference| !reference.is_empty())),
        ("patternProperties", !schema.unsupported.pattern_properties.is_empty()),
        ("dependencies", !schema.unsupported.dependencies.is_empty()),
        ("additionalItems", schema.unsupported.additional_items.is_some()),
        ("definitions", !schema.unsupported.definitions.is_empty()),
    ];
    match refused.into_iter().find(|(_, present)| *present) {
        Some((keyword, _)) => Err(ConvertError::Unsupported(keyword)),
        None => Ok(()),
    }
}

fn single_items(schema: &JsonSchema) -> Result<Option<&JsonSchema>, ConvertError> {
    match &schema.items {
        Some(SchemaOrArray::Schema(items)) => Ok(Some(items)),
        Some(SchemaOrArray::Array(items)) if !items.is_empty() => Err(ConvertError::ItemsIsArray),
        Some(SchemaOrArray::Array(_)) | None => Ok(None),
    }
}

fn value_validation(schema: &JsonSchema) -> Result<ValueValidation, ConvertError> {
    Ok(ValueValidation {
        format: schema.format.clone(),
        pattern: schema.pattern.clone(),
        compiled_pattern: compile(&schema.pattern),
        bounds: schema.bounds.clone(),
        enum_: schema.enum_.clone(),
        enum_index: EnumIndex::of(&schema.enum_),
        required: schema.required.clone(),
        junctors: junctors(&schema.junctors)?.into(),
    })
}

fn junctors(junctors: &Junctors<JsonSchema>) -> Result<Junctors<NestedValueValidation>, ConvertError> {
    Ok(Junctors {
        not: junctors.not.as_deref().map(|not| nested(not).map(Box::new)).transpose()?,
        all_of: all_nested(&junctors.all_of)?,
        any_of: all_nested(&junctors.any_of)?,
        one_of: all_nested(&junctors.one_of)?,
    })
}

fn all_nested(schemas: &[JsonSchema]) -> Result<Vec<NestedValueValidation>, ConvertError> {
    schemas.iter().map(nested).collect()
}

fn compile(pattern: &str) -> Option<Arc<Pattern>> {
    if pattern.is_empty() {
        return None;
    }
    Pattern::new(pattern).ok().map(Arc::new)
}

fn generic(schema: &JsonSchema) -> Generic {
    Generic {
        description: schema.description.as_str().into(),
        type_: schema.type_.clone(),
        default: schema.default.clone().map(Box::new),
        nullable: schema.nullable,
        annotations: schema.annotations.clone(),
    }
}

fn extensions(schema: &JsonSchema) -> Result<Extensions, ConvertError> {
    if schema.preserve_unknown_fields == Some(false) {
        return Err(ConvertError::PreserveUnknownFieldsIsFalse);
    }
    Ok(Extensions {
        preserve_unknown_fields: schema.preserve_unknown_fields.is_some(),
        embedded_resource: schema.embedded_resource,
        int_or_string: schema.int_or_string,
        list_map_keys: schema.list_map_keys.clone(),
        list_type: schema.list_type.clone(),
        map_type: schema.map_type.clone(),
    })
}
