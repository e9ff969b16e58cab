//! The types that merging works on: which lists are atomic, sets or maps, which maps are owned whole.
//!
//! In: a structural schema. Out: a [`TypeSchema`], made once per version. It knows no value validation.
//!
//! Source: kube-openapi's `schemaconv` over the OpenAPI v3 that apiextensions-apiserver 1.37 builds of a definition.

use std::sync::{Arc, LazyLock};

use crate::meta::minor::Minor;
use crate::schema::structural::{Structural, StructuralOrBool};
use crate::types::Message;
use crate::value::{Value, go_quote};
use crate::work;

/// The types of one version of a resource.
#[derive(Clone, Debug)]
pub struct TypeSchema {
    /// The types that every version has; ids count these first.
    common: &'static [Type],
    types: Vec<Type>,
    root: TypeId,
}

/// A type in its [`TypeSchema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeId(u32);

/// What values of a type may be; several at once where the schema gives no type.
#[derive(Clone, Debug, Default)]
pub(super) struct Type {
    pub scalar: Option<Scalar>,
    pub list: Option<ListType>,
    pub map: Option<MapType>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Scalar {
    Numeric,
    String,
    Boolean,
    /// Any scalar.
    Untyped,
}

#[derive(Clone, Debug)]
pub(super) struct ListType {
    pub element: TypeId,
    pub items: Items,
}

/// How items of a list are told apart.
#[derive(Clone, Debug)]
pub(super) enum Items {
    /// Not at all: the list is owned whole.
    Atomic,
    /// By their values.
    Set,
    /// By these fields.
    Map {
        /// Sorted by name.
        keys: Vec<ListKey>,
        /// Their names as messages have them, in the order of the schema.
        declared_keys: String,
        of_maps: bool,
    },
}

/// A key field of a list map, and what it counts as when absent.
#[derive(Clone, Debug)]
pub(super) struct ListKey {
    pub name: Arc<str>,
    pub default: Option<Value>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct MapType {
    /// Declared fields, sorted by name.
    pub fields: Vec<(Arc<str>, TypeId)>,
    /// The type of every other field; `None` where none is allowed.
    pub element: Option<TypeId>,
    /// Owned whole.
    pub atomic: bool,
    /// The metadata of the object itself. Its managedFields are passed over: nobody owns them.
    pub is_own_metadata: bool,
}

impl MapType {
    /// The declared field `name`: its name, to be shared, and its type.
    pub fn field(&self, name: &str) -> Option<(&Arc<str>, TypeId)> {
        if self.passes_over(name) {
            return None;
        }
        let found = match self.fields.len() {
            // Among few names the lengths alone rule out most.
            0..=8 => self.fields.iter().find(|(field, _)| **field == *name),
            _ => self.fields.binary_search_by(|(field, _)| (**field).cmp(name)).ok().map(|at| &self.fields[at]),
        };
        found.map(|(name, id)| (name, *id))
    }

    /// The type of the field `name`, declared or not.
    pub fn value(&self, name: &str) -> Option<TypeId> {
        if self.passes_over(name) {
            return None;
        }
        self.field(name).map(|(_, id)| id).or(self.element)
    }

    /// Whether the field may be there but is never looked at.
    pub fn passes_over(&self, name: &str) -> bool {
        self.is_own_metadata && name == "managedFields"
    }
}

pub(super) const STRING: TypeId = TypeId(0);
pub(super) const NUMERIC: TypeId = TypeId(1);
pub(super) const BOOLEAN: TypeId = TypeId(2);
pub(super) const SCALAR: TypeId = TypeId(3);
/// Anything, owned whole.
pub(super) const ATOMIC: TypeId = TypeId(4);
/// Anything: maps are owned field by field, lists whole.
pub(super) const DEDUCED: TypeId = TypeId(5);
/// The metadata of an embedded object.
pub(super) const OBJECT_META: TypeId = TypeId(6);
pub(super) const OWN_METADATA: TypeId = TypeId(7);

impl TypeSchema {
    /// The types of a custom resource, with `apiVersion`, `kind` and `metadata`.
    ///
    /// `preserve_unknown_fields` is the field of that name of a definition from v1beta1 days.
    pub fn of_custom_resource(schema: &Structural, preserve_unknown_fields: bool) -> Self {
        let mut builder = Builder::new(preserve_unknown_fields);
        let root = builder.structural(schema, preserve_unknown_fields, true);
        builder.finish(root)
    }

    /// The types of a built-in kind, whose objects are structs in the reference.
    pub fn of_message(message: &'static Message) -> Self {
        Self::of_message_in(Minor::NEWEST, message)
    }

    /// The same with the fields that a version of Kubernetes knows.
    pub fn of_message_in(minor: Minor, message: &'static Message) -> Self {
        let mut builder = super::of_message::Structs::new(minor, Builder::new(false));
        let root = builder.root(message);
        builder.finish().finish(root)
    }

    /// The types of `apiextensions.k8s.io/v1` CustomResourceDefinition.
    pub fn of_custom_resource_definition() -> Self {
        let mut builder = Builder::new(false);
        let root = builder.custom_resource_definition();
        builder.finish(root)
    }

    pub(super) fn get(&self, id: TypeId) -> &Type {
        find(self.common, &self.types, id)
    }

    pub(super) const fn root(&self) -> TypeId {
        self.root
    }

    /// Whether this stands for a map of which nothing is declared. Such maps have no say in whether they are atomic.
    pub(super) fn is_undeclared(&self, map: &MapType) -> bool {
        let untyped = |id: TypeId| id == DEDUCED || self.get(id).scalar == Some(Scalar::Untyped);
        map.fields.is_empty() && map.element.is_some_and(untyped)
    }
}

/// The type `id` of those in `common`, which count first, and `types`.
fn find<'t>(common: &'t [Type], types: &'t [Type], id: TypeId) -> &'t Type {
    let at = id.0 as usize;
    common.get(at).unwrap_or_else(|| &types[at - common.len()])
}

/// The types that every version has, by whether metadata may have fields that nobody knows.
static COMMON: [LazyLock<Vec<Type>>; 2] = [
    LazyLock::new(|| work::essential(|| common_types(None))),
    LazyLock::new(|| work::essential(|| common_types(Some(DEDUCED)))),
];

fn common_types(unknown: Option<TypeId>) -> Vec<Type> {
    let scalar = |scalar| Type { scalar: Some(scalar), ..Type::default() };
    let anything = |map: TypeId, atomic| Type {
        scalar: Some(Scalar::Untyped),
        list: Some(ListType { element: ATOMIC, items: Items::Atomic }),
        map: Some(MapType { element: Some(map), atomic, ..MapType::default() }),
    };
    let types = vec![
        scalar(Scalar::String),
        scalar(Scalar::Numeric),
        scalar(Scalar::Boolean),
        scalar(Scalar::Untyped),
        anything(ATOMIC, true),
        anything(DEDUCED, false),
        Type::default(),
        Type::default(),
    ];
    let mut builder = Builder { common: &[], types };
    let metadata = builder.object_meta(unknown);
    let own = MapType { is_own_metadata: true, ..metadata.clone() };
    builder.types[OBJECT_META.0 as usize].map = Some(metadata);
    builder.types[OWN_METADATA.0 as usize].map = Some(own);
    builder.types
}

pub(super) struct Builder {
    common: &'static [Type],
    types: Vec<Type>,
}

impl Builder {
    fn new(preserve_unknown_fields: bool) -> Self {
        Builder { common: &COMMON[usize::from(preserve_unknown_fields)], types: Vec::new() }
    }

    /// Says what a type is that was added before that was known.
    pub(super) fn set(&mut self, id: TypeId, type_: Type) {
        if let Some(known) = self.types.get_mut((id.0 as usize).saturating_sub(self.common.len())) {
            *known = type_;
        }
    }

    pub(super) fn finish(mut self, root: TypeId) -> TypeSchema {
        self.types.shrink_to_fit();
        TypeSchema { common: self.common, types: self.types, root }
    }

    pub(super) fn add(&mut self, type_: Type) -> TypeId {
        // A schema of 3 MiB has far fewer nodes than u32 has values.
        let id = TypeId(u32::try_from(self.common.len() + self.types.len()).unwrap_or(DEDUCED.0));
        self.types.push(type_);
        id
    }

    fn structural(&mut self, schema: &Structural, preserve_inherited: bool, is_root: bool) -> TypeId {
        let preserve = preserve_inherited || schema.extensions.preserve_unknown_fields;
        let format = schema.value_validation.as_ref().map(|validation| validation.format.as_str()).unwrap_or_default();
        match schema.generic.type_.as_str() {
            "integer" | "number" => NUMERIC,
            "boolean" => BOOLEAN,
            "string" if matches!(format, "" | "byte") => STRING,
            "string" => SCALAR,
            "object" => {
                let map = Some(self.map(schema, preserve, is_root));
                self.add(Type { map, ..Type::default() })
            }
            "array" => {
                let list = Some(self.list(schema, preserve));
                self.add(Type { list, ..Type::default() })
            }
            _ => {
                let list = self.list(schema, preserve);
                let map = self.map(schema, preserve, is_root);
                let plain_list = list.element == ATOMIC && matches!(list.items, Items::Atomic);
                if plain_list && map.fields.is_empty() && map.element == Some(DEDUCED) && !map.atomic {
                    return DEDUCED;
                }
                self.add(Type { scalar: Some(Scalar::Untyped), list: Some(list), map: Some(map) })
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
                keyed_by(names, names.iter().map(key).collect(), find(self.common, &self.types, element).map.is_some())
            }
            _ => Items::Atomic,
        };
        ListType { element, items }
    }

    fn object(&mut self, fields: Vec<(&str, TypeId)>) -> TypeId {
        let map = map_of(fields);
        self.add(Type { map: Some(map), ..Type::default() })
    }

    fn resource(&mut self, mut fields: Vec<(&str, TypeId)>) -> TypeId {
        fields.extend(resource_fields(OWN_METADATA));
        self.object(fields)
    }

    fn map_to(&mut self, element: TypeId) -> TypeId {
        let map = MapType { element: Some(element), ..MapType::default() };
        self.add(Type { map: Some(map), ..Type::default() })
    }

    fn list_of(&mut self, element: TypeId, items: Items) -> TypeId {
        self.add(Type { list: Some(ListType { element, items }), ..Type::default() })
    }

    fn atomic_list(&mut self, element: TypeId) -> TypeId {
        self.list_of(element, Items::Atomic)
    }

    fn object_meta(&mut self, unknown: Option<TypeId>) -> MapType {
        let owner = [
            ("apiVersion", STRING),
            ("kind", STRING),
            ("name", STRING),
            ("uid", STRING),
            ("controller", BOOLEAN),
            ("blockOwnerDeletion", BOOLEAN),
        ];
        let owner = MapType { atomic: true, element: unknown, ..map_of(owner.to_vec()) };
        let owner = self.add(Type { map: Some(owner), ..Type::default() });
        let owners = self.list_of(owner, keyed_by_text("uid"));
        let entry = [
            ("manager", STRING),
            ("operation", STRING),
            ("apiVersion", STRING),
            ("time", SCALAR),
            ("fieldsType", STRING),
            ("fieldsV1", DEDUCED),
            ("subresource", STRING),
        ];
        let entry = MapType { element: unknown, ..map_of(entry.to_vec()) };
        let entry = self.add(Type { map: Some(entry), ..Type::default() });
        let entries = self.atomic_list(entry);
        let texts = self.map_to(STRING);
        let finalizers = self.list_of(STRING, Items::Set);
        let fields = vec![
            ("name", STRING),
            ("generateName", STRING),
            ("namespace", STRING),
            ("selfLink", STRING),
            ("uid", STRING),
            ("resourceVersion", STRING),
            ("generation", NUMERIC),
            ("creationTimestamp", SCALAR),
            ("deletionTimestamp", SCALAR),
            ("deletionGracePeriodSeconds", NUMERIC),
            ("labels", texts),
            ("annotations", texts),
            ("ownerReferences", owners),
            ("finalizers", finalizers),
            ("managedFields", entries),
        ];
        MapType { element: unknown, ..map_of(fields) }
    }

    fn custom_resource_definition(&mut self) -> TypeId {
        let texts = self.atomic_list(STRING);
        let names = self.object(vec![
            ("plural", STRING),
            ("singular", STRING),
            ("shortNames", texts),
            ("kind", STRING),
            ("listKind", STRING),
            ("categories", texts),
        ]);
        let service = self.object(vec![("namespace", STRING), ("name", STRING), ("path", STRING), ("port", NUMERIC)]);
        let client = self.object(vec![("url", STRING), ("service", service), ("caBundle", STRING)]);
        let webhook = self.object(vec![("clientConfig", client), ("conversionReviewVersions", texts)]);
        let conversion = self.object(vec![("strategy", STRING), ("webhook", webhook)]);
        let json_schema = self.json_schema(texts);
        let validation = self.object(vec![("openAPIV3Schema", json_schema)]);
        let status = self.map_to(DEDUCED);
        let scale = self.object(vec![
            ("specReplicasPath", STRING),
            ("statusReplicasPath", STRING),
            ("labelSelectorPath", STRING),
        ]);
        let subresources = self.object(vec![("status", status), ("scale", scale)]);
        let column = self.object(vec![
            ("name", STRING),
            ("type", STRING),
            ("format", STRING),
            ("description", STRING),
            ("priority", NUMERIC),
            ("jsonPath", STRING),
        ]);
        let columns = self.atomic_list(column);
        let selectable_field = self.object(vec![("jsonPath", STRING)]);
        let selectable_fields = self.atomic_list(selectable_field);
        let version = self.object(vec![
            ("name", STRING),
            ("served", BOOLEAN),
            ("storage", BOOLEAN),
            ("deprecated", BOOLEAN),
            ("deprecationWarning", STRING),
            ("schema", validation),
            ("subresources", subresources),
            ("additionalPrinterColumns", columns),
            ("selectableFields", selectable_fields),
        ]);
        let versions = self.atomic_list(version);
        let spec = self.object(vec![
            ("group", STRING),
            ("names", names),
            ("scope", STRING),
            ("versions", versions),
            ("conversion", conversion),
            ("preserveUnknownFields", BOOLEAN),
        ]);
        let condition = self.object(vec![
            ("type", STRING),
            ("status", STRING),
            ("lastTransitionTime", SCALAR),
            ("reason", STRING),
            ("message", STRING),
            ("observedGeneration", NUMERIC),
        ]);
        let conditions = self.list_of(condition, keyed_by_text("type"));
        let status = self.object(vec![
            ("conditions", conditions),
            ("acceptedNames", names),
            ("storedVersions", texts),
            ("observedGeneration", NUMERIC),
        ]);
        self.resource(vec![("spec", spec), ("status", status)])
    }

    fn json_schema(&mut self, texts: TypeId) -> TypeId {
        // Reserved first, as the type holds itself.
        let id = self.add(Type::default());
        let schemas = self.atomic_list(id);
        let named_schemas = self.map_to(id);
        let named_values = self.map_to(DEDUCED);
        let values = self.atomic_list(DEDUCED);
        let external_docs = self.object(vec![("description", STRING), ("url", STRING)]);
        let rule = self.object(vec![
            ("rule", STRING),
            ("message", STRING),
            ("messageExpression", STRING),
            ("reason", STRING),
            ("fieldPath", STRING),
            ("optionalOldSelf", BOOLEAN),
        ]);
        let rules = self.list_of(rule, keyed_by_text("rule"));
        let mut fields: Vec<(&str, TypeId)> = vec![
            ("required", texts),
            ("x-kubernetes-list-map-keys", texts),
            ("not", id),
            ("allOf", schemas),
            ("oneOf", schemas),
            ("anyOf", schemas),
            ("properties", named_schemas),
            ("patternProperties", named_schemas),
            ("definitions", named_schemas),
            ("dependencies", named_values),
            ("enum", values),
            ("externalDocs", external_docs),
            ("x-kubernetes-validations", rules),
        ];
        let strings = [
            "id",
            "$schema",
            "$ref",
            "description",
            "type",
            "format",
            "title",
            "pattern",
            "x-kubernetes-list-type",
            "x-kubernetes-map-type",
        ];
        let numbers = [
            "maximum",
            "minimum",
            "maxLength",
            "minLength",
            "maxItems",
            "minItems",
            "multipleOf",
            "maxProperties",
            "minProperties",
        ];
        let booleans = [
            "exclusiveMaximum",
            "exclusiveMinimum",
            "uniqueItems",
            "nullable",
            "x-kubernetes-preserve-unknown-fields",
            "x-kubernetes-embedded-resource",
            "x-kubernetes-int-or-string",
        ];
        let anything = ["default", "example", "items", "additionalProperties", "additionalItems"];
        fields.extend(strings.map(|name| (name, STRING)));
        fields.extend(numbers.map(|name| (name, NUMERIC)));
        fields.extend(booleans.map(|name| (name, BOOLEAN)));
        fields.extend(anything.map(|name| (name, DEDUCED)));
        self.types[id.0 as usize - self.common.len()].map = Some(map_of(fields));
        id
    }
}

/// What every resource has, whatever its schema says about it.
const fn resource_fields(metadata: TypeId) -> [(&'static str, TypeId); 3] {
    [("apiVersion", STRING), ("kind", STRING), ("metadata", metadata)]
}

fn is_resource_field(name: &str) -> bool {
    resource_fields(OBJECT_META).iter().any(|(field, _)| *field == name)
}

fn map_of(fields: Vec<(&str, TypeId)>) -> MapType {
    let mut fields: Vec<(Arc<str>, TypeId)> = fields.into_iter().map(|(name, id)| (name.into(), id)).collect();
    fields.sort_by(|a, b| a.0.cmp(&b.0));
    MapType { fields, ..MapType::default() }
}

/// A list map with these keys, whose `names` come in the order of the schema.
pub(super) fn keyed_by(names: &[String], mut keys: Vec<ListKey>, of_maps: bool) -> Items {
    keys.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<String> = names.iter().map(|name| go_quote(name)).collect();
    Items::Map { keys, declared_keys: names.join(" "), of_maps }
}

/// A list map whose key counts as `""` when absent.
fn keyed_by_text(name: &str) -> Items {
    let key = ListKey { name: name.into(), default: Some(Value::from("")) };
    keyed_by(&[name.to_owned()], vec![key], true)
}
