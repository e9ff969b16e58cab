//! The types of built-in kinds, from the tables of their Go types.
//!
//! A struct is made once, however many fields hold it, and may hold itself.
//!
//! Source: kube-openapi's `schemaconv` over the OpenAPI documents of Kubernetes 1.37.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use super::type_schema::{
    ATOMIC, BOOLEAN, Builder, DEDUCED, Items, ListKey, ListType, MapType, NUMERIC, OBJECT_META, OWN_METADATA, SCALAR,
    STRING, ScalarType, SchemaType, TypeId, TypeSchema, keyed_by,
};
use crate::meta::minor::Minor;
use crate::types::{self, Codec, Field, FieldKind, Message, Shape};
use crate::value::{Value, json};
use crate::work;

impl TypeSchema {
    /// The types of a built-in kind, whose objects are structs in the reference.
    pub fn of_message(message: &'static Message) -> Self {
        Self::of_message_in(Minor::NEWEST, message)
    }

    /// The same with the fields that a version of Kubernetes knows.
    pub fn of_message_in(minor: Minor, message: &'static Message) -> Self {
        let mut structs = Structs::new(minor, Builder::beside(common(false)), None);
        let root = structs.root(message);
        structs.builder.finish(root)
    }
}

/// The types that every version has; `with_unknown` if metadata may have unknown fields.
pub(super) fn common(with_unknown: bool) -> &'static [SchemaType] {
    static COMMON: [LazyLock<Vec<SchemaType>>; 2] = [
        LazyLock::new(|| work::essential(|| common_types(None))),
        LazyLock::new(|| work::essential(|| common_types(Some(DEDUCED)))),
    ];
    &COMMON[usize::from(with_unknown)]
}

fn common_types(unknown: Option<TypeId>) -> Vec<SchemaType> {
    let scalar = |scalar| SchemaType { scalar: Some(scalar), ..SchemaType::default() };
    let anything = |map: TypeId, atomic| SchemaType {
        scalar: Some(ScalarType::Untyped),
        list: Some(ListType { element: ATOMIC, items: Items::Atomic }),
        map: Some(MapType { element: Some(map), atomic, ..MapType::default() }),
    };
    let types = vec![
        scalar(ScalarType::String),
        scalar(ScalarType::Numeric),
        scalar(ScalarType::Boolean),
        scalar(ScalarType::Untyped),
        anything(ATOMIC, true),
        anything(DEDUCED, false),
        SchemaType::default(),
        SchemaType::default(),
    ];
    let mut structs = Structs::new(Minor::NEWEST, Builder::of_common(types), unknown);
    let metadata = structs.map(types::object_meta(), OBJECT_META, false);
    let own = MapType { is_own_metadata: true, ..metadata.clone() };
    structs.builder.set(OBJECT_META, SchemaType { map: Some(metadata), ..SchemaType::default() });
    structs.builder.set(OWN_METADATA, SchemaType { map: Some(own), ..SchemaType::default() });
    structs.builder.into_types()
}

/// Makes types of messages.
struct Structs {
    builder: Builder,
    /// The version of Kubernetes that decides which fields exist.
    minor: Minor,
    /// By the message and whether it is atomic.
    known: HashMap<(*const Message, bool), TypeId>,
    /// The type of fields that a struct does not have; `None` if it may not have any.
    unknown: Option<TypeId>,
}

impl Structs {
    fn new(minor: Minor, builder: Builder, unknown: Option<TypeId>) -> Self {
        Structs { builder, minor, known: HashMap::new(), unknown }
    }

    /// The type of a whole object.
    fn root(&mut self, message: &'static Message) -> TypeId {
        let map = self.map(message, OWN_METADATA, message.is_atomic);
        self.builder.add(SchemaType { map: Some(map), ..SchemaType::default() })
    }

    /// The type of a message; a field may override whether it is atomic.
    fn message(&mut self, message: &'static Message, is_atomic: Option<bool>) -> TypeId {
        work::step();
        match message.codec {
            Codec::Object if message.is_object_meta() => OBJECT_META,
            Codec::Object => self.structure(message, is_atomic.unwrap_or(message.is_atomic)),
            Codec::Time | Codec::MicroTime | Codec::Quantity => SCALAR,
            // The published schema gives no type: any value, atomic.
            Codec::IntOrString => ATOMIC,
            Codec::Duration => STRING,
            Codec::List => {
                let element = message.fields.first().map_or(ATOMIC, |field| self.one(field, None));
                let list = Some(ListType { element, items: Items::Atomic });
                self.builder.add(SchemaType { list, ..SchemaType::default() })
            }
            // Go does not look into it.
            Codec::Json if message.name == "RawExtension" => ATOMIC,
            // A value of two possible types: the published schema gives none.
            Codec::Json | Codec::SchemaOrArray | Codec::SchemaOrBool => DEDUCED,
            _ => {
                let map = Some(MapType { element: Some(DEDUCED), ..MapType::default() });
                self.builder.add(SchemaType { map, ..SchemaType::default() })
            }
        }
    }

    fn structure(&mut self, message: &'static Message, is_atomic: bool) -> TypeId {
        let key = (std::ptr::from_ref(message), is_atomic);
        if let Some(id) = self.known.get(&key) {
            return *id;
        }
        let id = self.builder.add(SchemaType::default());
        self.known.insert(key, id);
        let map = Some(self.map(message, OBJECT_META, is_atomic));
        self.builder.set(id, SchemaType { map, ..SchemaType::default() });
        id
    }

    fn map(&mut self, message: &'static Message, metadata: TypeId, is_atomic: bool) -> MapType {
        let mut fields: Vec<(Arc<str>, TypeId)> = Vec::new();
        let minor = self.minor;
        for field in message.members().filter(|field| field.is_known_in(minor)) {
            let is_metadata = matches!(field.kind, FieldKind::Message(inner) if inner.is_object_meta());
            let id = if is_metadata { metadata } else { self.field(field) };
            fields.push((field.json.into(), id));
        }
        fields.sort_by(|a, b| a.0.cmp(&b.0));
        let element = if fields.is_empty() { Some(DEDUCED) } else { self.unknown };
        MapType { fields, element, atomic: is_atomic, is_own_metadata: false }
    }

    fn field(&mut self, field: &'static Field) -> TypeId {
        let is_atomic = field.items.map_type.map(|map_type| map_type == "atomic");
        match field.shape {
            Shape::Value | Shape::Pointer | Shape::Inline => self.one(field, is_atomic),
            Shape::List => {
                let element = self.one(field, None);
                let list = Some(ListType { element, items: items(field) });
                self.builder.add(SchemaType { list, ..SchemaType::default() })
            }
            Shape::Map | Shape::Extensions => {
                let element = Some(self.one(field, None));
                let atomic = is_atomic.unwrap_or_default();
                let map = Some(MapType { element, atomic, ..MapType::default() });
                self.builder.add(SchemaType { map, ..SchemaType::default() })
            }
        }
    }

    /// The type of a single value of a field.
    fn one(&mut self, field: &'static Field, is_atomic: Option<bool>) -> TypeId {
        match field.kind {
            FieldKind::Bool => BOOLEAN,
            FieldKind::Int32 | FieldKind::Int64 | FieldKind::Double => NUMERIC,
            FieldKind::String | FieldKind::Bytes => STRING,
            FieldKind::Message(message) => self.message(message.get(), is_atomic),
        }
    }
}

/// How the items of a list are identified.
fn items(field: &'static Field) -> Items {
    match field.items.list_type {
        Some("set") => Items::Set,
        Some("map") => {
            let names: Vec<String> = field.items.map_keys.iter().map(|&name| name.to_owned()).collect();
            let of = match field.kind {
                FieldKind::Message(message) => Some(message.get()),
                _ => None,
            };
            let key = |name: &String| ListKey { name: name.as_str().into(), default: default_of(of, name) };
            keyed_by(&names, names.iter().map(key).collect(), of.is_some())
        }
        _ => Items::Atomic,
    }
}

/// The default of a key field that is absent. A struct always has the fields that its JSON always has.
fn default_of(item: Option<&'static Message>, name: &str) -> Option<Value> {
    let key = item?.member(name)?;
    if let Some(default) = key.default.and_then(|text| json::decode(text.as_bytes()).ok()) {
        return Some(default);
    }
    match key.kind {
        _ if !key.always || key.shape != Shape::Value => None,
        FieldKind::String => Some(Value::from("")),
        FieldKind::Int32 | FieldKind::Int64 => Some(Value::Int(0)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_or_a_text_may_be_anything_as_a_whole() {
        let schema = TypeSchema::of_message(types::message_of_kind("policy", "v1", "PodDisruptionBudget"));
        let field = |id: TypeId, name: &str| {
            let map = schema.get(id).map.as_ref().expect("it is a struct");
            map.fields.iter().find(|(known, _)| **known == *name).expect("it has the field").1
        };
        assert!(field(field(schema.root(), "spec"), "maxUnavailable") == ATOMIC);
    }

    #[test]
    fn a_key_that_json_always_has_counts_as_zero_where_it_is_absent() {
        let default = |message: &str, key: &str| default_of(Some(types::message_named("core.v1", message)), key);
        assert_eq!(default("ServicePort", "port"), Some(Value::Int(0)));
        assert_eq!(default("ServicePort", "protocol"), Some(Value::from("TCP")));
        assert_eq!(default("ServicePort", "name"), None);
        assert_eq!(default("PodCondition", "type"), Some(Value::from("")));
    }
}
