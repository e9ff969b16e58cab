//! Random schemas and objects for property tests of types.

use proptest::prelude::*;

use super::type_schema::TypeSchema;
use crate::object;
use crate::schema::structural::{Structural, StructuralOrBool};
use crate::value::{Map, Value};

pub fn typed(type_: &str) -> Structural {
    let mut schema = Structural::default();
    schema.generic.type_ = type_.to_owned();
    schema
}

pub fn list(of: Structural, list_type: &str) -> Structural {
    let mut schema = typed("array");
    schema.items = Some(Box::new(of));
    schema.extensions.list_type = Some(list_type.to_owned());
    if list_type == "map" {
        schema.extensions.list_map_keys = vec!["a".to_owned(), "b".to_owned()];
    }
    schema
}

fn schema() -> impl Strategy<Value = Structural> {
    let scalars = || prop_oneof![Just(typed("string")), Just(typed("integer")), Just(typed("boolean"))];
    let leaf = prop_oneof![
        4 => scalars(),
        1 => scalars().prop_map(|of| list(of, "set")),
        1 => scalars().prop_map(|of| list(of, "atomic")),
        1 => Just(typed("")).prop_map(|mut any| {
            any.extensions.preserve_unknown_fields = true;
            any
        }),
    ];
    leaf.prop_recursive(4, 24, 4, |inner| {
        let properties = prop::collection::btree_map("[a-e<]", inner.clone(), 0..5);
        let object = (properties, any::<bool>(), any::<bool>()).prop_map(|(properties, is_atomic, is_open)| {
            let mut schema = typed("object");
            schema.properties = properties.into_iter().collect();
            schema.extensions.map_type = (is_atomic && is_open).then(|| "atomic".to_owned());
            schema.extensions.preserve_unknown_fields = is_open;
            schema
        });
        prop_oneof![
            4 => object.clone(),
            1 => inner.clone().prop_map(|of| {
                let mut schema = typed("object");
                schema.additional_properties = Some(StructuralOrBool::Structural(Box::new(of)));
                schema
            }),
            2 => object.clone().prop_map(|of| list(of, "map")),
            1 => inner.prop_map(|of| list(of, "atomic")),
        ]
    })
}

/// A value that mostly conforms.
fn value_of(schema: &Structural) -> BoxedStrategy<Value> {
    let items = schema.items.as_deref().map(value_of);
    let scalar = prop_oneof!["[a-c\"<!]{0,2}".prop_map(Value::String), (0..4_i64).prop_map(Value::Int)];
    let conforming = match (schema.generic.type_.as_str(), items) {
        ("string", _) => prop_oneof!["[a-c]{0,3}", "[a-c!\"<\u{e9}]{0,2}"].prop_map(Value::String).boxed(),
        ("integer", _) => prop_oneof![(0..20_i64).prop_map(Value::Int), Just(Value::Float(1.0))].boxed(),
        ("boolean", _) => any::<bool>().prop_map(Value::Bool).boxed(),
        ("array", Some(item)) => prop::collection::vec(item, 0..4).prop_map(Value::Array).boxed(),
        ("object", _) => {
            let mut fields = Just(Value::Object(Map::new())).boxed();
            let with = |fields: BoxedStrategy<Value>, name: String, field: BoxedStrategy<Value>| {
                (fields, prop::option::weighted(0.8, field)).prop_map(move |(mut object, field)| {
                    field.into_iter().for_each(|field| _ = object.make_object().insert(name.as_str(), field));
                    object
                })
            };
            for (name, property) in schema.properties.iter() {
                fields = with(fields, name.to_owned(), value_of(property)).boxed();
            }
            match &schema.additional_properties {
                Some(StructuralOrBool::Structural(of)) => with(fields, "k\u{e9}y/1".to_owned(), value_of(of)).boxed(),
                _ => fields,
            }
        }
        _ => scalar.clone().boxed(),
    };
    prop_oneof![30 => conforming, 1 => scalar, 1 => Just(Value::Null), 1 => Just(Value::Object(Map::new()))].boxed()
}

pub fn root(spec: Structural, status: Structural) -> Structural {
    let mut root = typed("object");
    root.properties = [("spec", spec), ("status", status)].into_iter().map(|(n, s)| (n.to_owned(), s)).collect();
    root
}

fn metadata() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(object! { "name" => "n", "uid" => "u", "generation" => 1 }),
        Just(object! { "name" => "n", "labels" => object! { "a" => "b" }, "managedFields" => Value::Array(vec![]) }),
        Just(object! { "finalizers" => Value::Array(vec!["f".into(), "e".into()]), "annotations" => object! {} }),
        Just(object! { "finalizers" => Value::Array(vec!["f".into(), "f".into()]) }),
        Just(object! { "labels" => object! { "a" => 1 } }),
        Just(Value::Null),
    ]
}

/// The types of a random schema, an object, and one before any field is set or with a `spec`.
pub fn cases() -> impl Strategy<Value = (TypeSchema, Value, Value)> {
    let schemas = (schema(), schema()).prop_map(|(spec, status)| root(spec, status));
    schemas.prop_flat_map(|schema| {
        let types = TypeSchema::of_custom_resource(&schema, false);
        let objects = (value_of(&schema), value_of(&schema), metadata(), any::<bool>());
        objects.prop_map(move |(mut object, empty, metadata, is_bare)| {
            let mut bare = object! { "apiVersion" => "g/v", "kind" => "K" };
            let fields = object.make_object();
            bare.as_object().into_iter().flat_map(Map::iter).for_each(|(name, value)| {
                fields.insert(name, value.clone());
            });
            fields.insert("metadata", metadata);
            if let (false, Some(spec)) = (is_bare, empty.get("spec")) {
                bare.make_object().insert("spec", spec.clone());
            }
            (types.clone(), object, bare)
        })
    })
}

/// The types of a random schema, and two objects that may have much in common.
pub fn pairs() -> impl Strategy<Value = (TypeSchema, Value, Value)> {
    let schemas = (schema(), schema()).prop_map(|(spec, status)| root(spec, status));
    schemas.prop_flat_map(|schema| {
        let types = TypeSchema::of_custom_resource(&schema, false);
        let objects = (value_of(&schema), value_of(&schema), [metadata(), metadata()], any::<[bool; 3]>());
        objects.prop_map(move |(mut one, other, [metadata, old_metadata], [differs, is_other_status, is_open])| {
            let mut changed = one.clone();
            let differ = [differs, is_other_status];
            if let Value::Object(fields) = &mut one {
                fields.insert("metadata", old_metadata);
                if let (true, Some(Value::Object(spec))) = (is_open && differs, fields.get_mut("spec")) {
                    spec.insert("undeclared", Value::Bool(true));
                }
            }
            for (name, differs) in ["spec", "status"].into_iter().zip(differ) {
                if let (true, Value::Object(_), Some(field)) = (differs, &changed, other.get(name)) {
                    changed.make_object().insert(name, field.clone());
                }
            }
            changed.make_object().insert("metadata", metadata);
            (types.clone(), one, changed)
        })
    })
}
