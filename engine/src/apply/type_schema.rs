//! The types that merging works on: which lists are atomic, sets or maps, and which maps are atomic.
//!
//! A [`TypeSchema`] is made once per version: from a structural schema (`of_structural`), or from the Go type of a
//! built-in kind (`of_message`). It has no value validation.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::value::{InOrder, Value, go_quote, place_of};

/// The id that was given last.
static LAST_ID: AtomicU64 = AtomicU64::new(0);

/// The types of one version of a resource.
#[derive(Clone, Debug)]
pub struct TypeSchema {
    /// Unique in the process, but for copies; not 0.
    id: u64,
    /// The types that every version has; their ids come first.
    common: &'static [SchemaType],
    types: Vec<SchemaType>,
    root: TypeId,
}

/// The id of a type in its [`TypeSchema`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TypeId(u32);

/// The kinds of values a type allows; several at once if the schema gives no type.
#[derive(Clone, Debug, Default)]
pub(super) struct SchemaType {
    pub scalar: Option<ScalarType>,
    pub list: Option<ListType>,
    pub map: Option<MapType>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ScalarType {
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

/// How items of a list are identified.
#[derive(Clone, Debug)]
pub(super) enum Items {
    /// They are not: the list is owned as a whole.
    Atomic,
    /// By their values.
    Set,
    /// By these fields.
    Map {
        /// Sorted by name.
        keys: Vec<ListKey>,
        /// The names of the key fields as messages print them, in the order of the schema.
        declared_keys: String,
        of_maps: bool,
    },
}

/// A key field of a list map, and its default when absent.
#[derive(Clone, Debug)]
pub(super) struct ListKey {
    pub name: Arc<str>,
    pub default: Option<Value>,
}

#[derive(Clone, Debug, Default)]
pub(super) struct MapType {
    /// Declared fields, sorted by name.
    pub fields: Vec<(Arc<str>, TypeId)>,
    /// The type of every other field; `None` if no others are allowed.
    pub element: Option<TypeId>,
    /// Owned whole.
    pub atomic: bool,
    /// The metadata of the object itself. Its managedFields are passed over: nobody owns them.
    pub is_own_metadata: bool,
}

impl MapType {
    /// The declared field `name`: its shared name and its type.
    pub fn field(&self, name: &str) -> Option<(&Arc<str>, TypeId)> {
        if self.passes_over(name) {
            return None;
        }
        let at = place_of(&self.fields, name, |(field, _)| field)?;
        let (name, id) = &self.fields[at];
        Some((name, *id))
    }

    /// The type of the field `name`, declared or not.
    pub fn value(&self, name: &str) -> Option<TypeId> {
        if self.passes_over(name) {
            return None;
        }
        self.field(name).map(|(_, id)| id).or(self.element)
    }

    /// For looking up the fields of an object.
    pub fn in_order(&self) -> TypesInOrder<'_> {
        TypesInOrder { map: self, declared: InOrder::new(&self.fields) }
    }

    /// Whether the field is allowed but always skipped.
    pub fn passes_over(&self, name: &str) -> bool {
        self.is_own_metadata && name == "managedFields"
    }
}

/// The types of a map's fields, which are looked up in order.
pub(super) struct TypesInOrder<'t> {
    map: &'t MapType,
    declared: InOrder<'t, Arc<str>, TypeId>,
}

impl TypesInOrder<'_> {
    /// [`MapType::value`], and whether the field is declared.
    pub fn value(&mut self, name: &str) -> Option<(TypeId, bool)> {
        if self.map.passes_over(name) {
            return None;
        }
        match self.declared.get(name) {
            Some(id) => Some((*id, true)),
            None => self.map.element.map(|id| (id, false)),
        }
    }
}

pub(super) const STRING: TypeId = TypeId(0);
pub(super) const NUMERIC: TypeId = TypeId(1);
pub(super) const BOOLEAN: TypeId = TypeId(2);
pub(super) const SCALAR: TypeId = TypeId(3);
/// Anything, owned whole.
pub(super) const ATOMIC: TypeId = TypeId(4);
/// Any value: maps are owned field by field, lists as a whole.
pub(super) const DEDUCED: TypeId = TypeId(5);
/// The metadata of an embedded object.
pub(super) const OBJECT_META: TypeId = TypeId(6);
pub(super) const OWN_METADATA: TypeId = TypeId(7);

impl TypeSchema {
    /// Whether the value at the end of `way` is within an atomic list; a `None` step leads to an item.
    pub(super) fn is_in_whole_list<'w>(&self, way: impl Iterator<Item = Option<&'w str>>) -> bool {
        let (mut at, mut is_whole) = (self.root, false);
        for step in way {
            let type_ = self.get(at);
            let next = match (step, &type_.map, &type_.list) {
                (Some(name), Some(map), _) => {
                    is_whole |= map.atomic;
                    map.value(name)
                }
                (None, _, Some(list)) if is_whole || matches!(list.items, Items::Atomic) => return true,
                (None, _, Some(list)) => Some(list.element),
                _ => None,
            };
            let Some(next) = next else { return false };
            at = next;
        }
        false
    }

    pub(super) fn get(&self, id: TypeId) -> &SchemaType {
        find(self.common, &self.types, id)
    }

    /// Identifies these types in the process: others are never the same.
    pub(super) const fn id(&self) -> u64 {
        self.id
    }

    pub(super) const fn root(&self) -> TypeId {
        self.root
    }

    /// Whether this map has no declared fields. Such maps can't declare whether they are atomic.
    pub(super) fn is_undeclared(&self, map: &MapType) -> bool {
        let untyped = |id: TypeId| id == DEDUCED || self.get(id).scalar == Some(ScalarType::Untyped);
        map.fields.is_empty() && map.element.is_some_and(untyped)
    }
}

/// The type `id`; ids count `common` first, then `types`.
fn find<'t>(common: &'t [SchemaType], types: &'t [SchemaType], id: TypeId) -> &'t SchemaType {
    let at = id.0 as usize;
    common.get(at).unwrap_or_else(|| &types[at - common.len()])
}

pub(super) struct Builder {
    common: &'static [SchemaType],
    types: Vec<SchemaType>,
}

impl Builder {
    /// Makes a builder that adds to the types that every version has.
    pub(super) const fn beside(common: &'static [SchemaType]) -> Self {
        Builder { common, types: Vec::new() }
    }

    /// The schema of the types that every version has.
    pub(super) const fn of_common(types: Vec<SchemaType>) -> Self {
        Builder { common: &[], types }
    }

    pub(super) fn into_types(self) -> Vec<SchemaType> {
        self.types
    }

    pub(super) fn get(&self, id: TypeId) -> &SchemaType {
        find(self.common, &self.types, id)
    }

    /// Sets a type that was added as a placeholder.
    pub(super) fn set(&mut self, id: TypeId, type_: SchemaType) {
        if let Some(known) = self.types.get_mut((id.0 as usize).saturating_sub(self.common.len())) {
            *known = type_;
        }
    }

    pub(super) fn finish(mut self, root: TypeId) -> TypeSchema {
        self.types.shrink_to_fit();
        let id = LAST_ID.fetch_add(1, Ordering::Relaxed) + 1;
        TypeSchema { id, common: self.common, types: self.types, root }
    }

    pub(super) fn add(&mut self, type_: SchemaType) -> TypeId {
        // A schema of 3 MiB has far fewer nodes than u32 has values.
        let id = TypeId(u32::try_from(self.common.len() + self.types.len()).unwrap_or(DEDUCED.0));
        self.types.push(type_);
        id
    }
}

/// A list map with these keys; `names` are in the order of the schema.
pub(super) fn keyed_by(names: &[String], mut keys: Vec<ListKey>, of_maps: bool) -> Items {
    keys.sort_by(|a, b| a.name.cmp(&b.name));
    let names: Vec<String> = names.iter().map(|name| go_quote(name)).collect();
    Items::Map { keys, declared_keys: names.join(" "), of_maps }
}
