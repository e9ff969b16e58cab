//! The types of custom resources, from their schemas.
//!
//! Source: kube-openapi's `schemaconv` over the OpenAPI v3 that apiextensions-apiserver 1.37 builds of a definition.

use std::sync::Arc;

use super::of_message::common;
use super::type_schema::{
    ATOMIC, BOOLEAN, Builder, DEDUCED, Items, ListKey, ListType, MapType, NUMERIC, OBJECT_META, OWN_METADATA, SCALAR,
    STRING, ScalarType, SchemaType, TypeId, TypeSchema, keyed_by,
};
use crate::schema::structural::{Structural, StructuralOrBool};
use crate::work;

impl TypeSchema {
    /// The types of a custom resource, with `apiVersion`, `kind` and `metadata`.
    ///
    /// `preserve_unknown_fields` is the field of that name of a definition from v1beta1 days.
    pub fn of_custom_resource(schema: &Structural, preserve_unknown_fields: bool) -> Self {
        let mut schemas = Schemas { builder: Builder::beside(common(preserve_unknown_fields)) };
        let root = schemas.structural(schema, preserve_unknown_fields, true);
        schemas.builder.finish(root)
    }
}

/// Makes types of schemas.
struct Schemas {
    builder: Builder,
}

impl Schemas {
    fn structural(&mut self, schema: &Structural, preserve_inherited: bool, is_root: bool) -> TypeId {
        work::step();
        let preserve = preserve_inherited || schema.extensions.preserve_unknown_fields;
        let format = schema.value_validation.as_ref().map(|validation| validation.format.as_str()).unwrap_or_default();
        match schema.generic.type_.as_str() {
            "integer" | "number" => NUMERIC,
            "boolean" => BOOLEAN,
            "string" if matches!(format, "" | "byte") => STRING,
            "string" => SCALAR,
            "object" => {
                let map = Some(self.map(schema, preserve, is_root));
                self.builder.add(SchemaType { map, ..SchemaType::default() })
            }
            "array" => {
                let list = Some(self.list(schema, preserve));
                self.builder.add(SchemaType { list, ..SchemaType::default() })
            }
            _ => {
                let list = self.list(schema, preserve);
                let map = self.map(schema, preserve, is_root);
                let plain_list = list.element == ATOMIC && matches!(list.items, Items::Atomic);
                if plain_list && map.fields.is_empty() && map.element == Some(DEDUCED) && !map.atomic {
                    return DEDUCED;
                }
                self.builder.add(SchemaType { scalar: Some(ScalarType::Untyped), list: Some(list), map: Some(map) })
            }
        }
    }

    fn map(&mut self, schema: &Structural, preserve: bool, is_root: bool) -> MapType {
        let mut fields: Vec<(Arc<str>, TypeId)> = Vec::with_capacity(schema.properties.len());
        let is_resource = is_root || schema.extensions.embedded_resource;
        for (name, property) in schema.properties.iter() {
            if !(is_resource && is_resource_field(name)) {
                let id = self.structural(property, preserve, false);
                fields.push((name.into(), id));
            }
        }
        if is_resource {
            let metadata = if is_root { OWN_METADATA } else { OBJECT_META };
            fields.extend(resource_fields(metadata).map(|(name, id)| (name.into(), id)));
            fields.sort_by(|a, b| a.0.cmp(&b.0));
        }
        let element = match &schema.additional_properties {
            Some(StructuralOrBool::Structural(additional)) => Some(self.structural(additional, preserve, false)),
            Some(StructuralOrBool::Bool(allowed)) => allowed.then_some(DEDUCED),
            None => (preserve || fields.is_empty()).then_some(DEDUCED),
        };
        let atomic = schema.extensions.map_type.as_deref() == Some("atomic");
        MapType { fields, element, atomic, is_own_metadata: false }
    }

    fn list(&mut self, schema: &Structural, preserve: bool) -> ListType {
        let element = schema.items.as_ref().map_or(ATOMIC, |items| self.structural(items, preserve, false));
        let default_of = |name: &str| {
            let items = schema.items.as_ref()?;
            if items.extensions.embedded_resource && is_resource_field(name) {
                return None;
            }
            let key = &items.properties.get(name)?.generic;
            key.default.as_deref().filter(|default| !default.is_null()).cloned()
        };
        let items = match schema.extensions.list_type.as_deref() {
            Some("set") => Items::Set,
            Some("map") => {
                let names = &schema.extensions.list_map_keys;
                let key = |name: &String| ListKey { name: name.as_str().into(), default: default_of(name) };
                keyed_by(names, names.iter().map(key).collect(), self.builder.get(element).map.is_some())
            }
            _ => Items::Atomic,
        };
        ListType { element, items }
    }
}

/// What every resource has, whatever its schema says about it.
const fn resource_fields(metadata: TypeId) -> [(&'static str, TypeId); 3] {
    [("apiVersion", STRING), ("kind", STRING), ("metadata", metadata)]
}

fn is_resource_field(name: &str) -> bool {
    resource_fields(OBJECT_META).iter().any(|(field, _)| *field == name)
}
