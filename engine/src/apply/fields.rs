//! What one manager owns, in the form that it came in until it has to change.
//!
//! Most of what is in managedFields stays as it is through a write. So the questions that a write asks of every manager
//! are answered on `fieldsV1` itself, without making a [`FieldSet`] of it.

use std::borrow::Cow;

use super::field_set::{FieldSet, FieldSetNode};
use super::path::{PathElement, PathElementError};
use super::type_schema::TypeSchema;
use crate::value::{Map, Value};
use crate::work;

/// A set of fields.
#[derive(Clone, Debug)]
pub(super) enum OwnedFields<'a> {
    // INVARIANT: canonical, so each element has one text.
    Encoded(Cow<'a, Value>),
    Set(FieldSet),
}

impl<'a> OwnedFields<'a> {
    pub const NONE: OwnedFields<'static> = OwnedFields::Set(FieldSet::new());

    /// # Errors
    ///
    /// An element that can't be read; Go's text.
    pub fn decode(fields: &'a Value) -> Result<Self, PathElementError> {
        if is_canonical(fields)? {
            Ok(OwnedFields::Encoded(Cow::Borrowed(fields)))
        } else {
            FieldSet::decode(fields).map(OwnedFields::Set)
        }
    }

    pub fn encode(self) -> Value {
        match self {
            OwnedFields::Encoded(fields) => fields.into_owned(),
            OwnedFields::Set(set) => set.encode(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            OwnedFields::Encoded(fields) => fields.as_object().is_none_or(Map::is_empty),
            OwnedFields::Set(set) => set.is_empty(),
        }
    }

    pub fn set(&self) -> Cow<'_, FieldSet> {
        match self {
            // What is canonical can be decoded.
            OwnedFields::Encoded(fields) => Cow::Owned(FieldSet::decode(fields).unwrap_or_default()),
            OwnedFields::Set(set) => Cow::Borrowed(set),
        }
    }

    /// The set; none is left.
    pub fn take(&mut self) -> FieldSet {
        match std::mem::replace(self, OwnedFields::NONE) {
            OwnedFields::Set(set) => set,
            encoded => encoded.set().into_owned(),
        }
    }

    /// Fits the set to the schema of today.
    pub fn reconcile(&mut self, types: &TypeSchema) {
        match self {
            OwnedFields::Encoded(fields) if !types.may_reconcile(fields) => {}
            _ => {
                let mut set = self.take();
                types.reconcile(&mut set);
                *self = OwnedFields::Set(set);
            }
        }
    }

    /// Whether every member is one of `set`.
    pub fn is_subset(&self, set: &FieldSet) -> bool {
        match self {
            OwnedFields::Encoded(fields) if set.has_plain_texts() => holds(set, object(fields)),
            _ => self.set().is_subset(set),
        }
    }

    /// What is also in `sought`.
    pub fn intersection(&self, sought: &Sought) -> FieldSet {
        match self {
            OwnedFields::Encoded(fields) if sought.has_plain_texts => common(&sought.set, object(fields)),
            _ => self.set().intersection(&sought.set),
        }
    }

    /// Takes out what is in `set`.
    pub fn subtract(&mut self, set: &FieldSet) {
        match self {
            OwnedFields::Encoded(fields) if set.has_plain_texts() => {
                if let Value::Object(fields) = fields.to_mut() {
                    take(set, fields);
                }
            }
            _ => *self = OwnedFields::Set(self.set().difference(set)),
        }
    }
}

/// Whether [`FieldSet::encode`] of what `fields` decodes to gives `fields` again. Fails where decoding fails.
fn is_canonical(fields: &Value) -> Result<bool, PathElementError> {
    let fields = match fields {
        Value::Object(fields) => fields,
        _ => return FieldSet::decode(fields).map(|_| false),
    };
    let mut canonical = true;
    for (name, below) in fields.iter() {
        work::bytes(name.len());
        if name == "." {
            canonical &= fields.len() > 1 && below.as_object().is_some_and(Map::is_empty);
            continue;
        }
        match PathElement::is_canonical(name) {
            Ok(name_is_canonical) => canonical &= name_is_canonical,
            Err(PathElementError::UnknownKind) => {
                canonical = false;
                continue;
            }
            Err(malformed) => return Err(malformed),
        }
        canonical &= is_canonical(below)?;
    }
    Ok(canonical)
}

/// The nodes of `set` that `fields` has as well, each with what stands below it there.
///
/// The smaller side is looked up in the larger one: of many managers each may own little of what has changed.
fn shared<'s, 'f>(set: &'s FieldSet, fields: &'f Map) -> Vec<(&'s FieldSetNode, &'f Map)> {
    work::steps(fields.len().min(set.nodes().len()));
    if fields.len() < set.nodes().len() {
        let node = |name: &str| set.node(&PathElement::decode(name).ok()?);
        let shared = fields.iter().filter_map(|(name, below)| Some((node(name)?, object(below))));
        let mut shared: Vec<_> = shared.collect();
        shared.sort_by(|(a, _), (b, _)| a.element.cmp(&b.element));
        return shared;
    }
    let mut text = String::new();
    let below = |node: &FieldSetNode| {
        text.clear();
        node.element.encode_into(&mut text);
        fields.get(&text).map(object)
    };
    set.nodes().iter().zip(set.nodes().iter().map(below)).filter_map(|(node, below)| Some((node, below?))).collect()
}

/// A set that the fields of many managers are compared with.
#[derive(Clone, Debug)]
pub(super) struct Sought {
    set: FieldSet,
    has_plain_texts: bool,
}

impl Sought {
    pub fn new(set: FieldSet) -> Self {
        let has_plain_texts = set.has_plain_texts();
        Sought { set, has_plain_texts }
    }

    pub fn into_set(self) -> FieldSet {
        self.set
    }
}

/// Whether the field above `below` is a member.
fn is_member(below: &Map) -> bool {
    below.is_empty() || below.contains_key(".")
}

fn object(fields: &Value) -> &Map {
    const NOTHING: &Map = &Map::new();
    fields.as_object().unwrap_or(NOTHING)
}

fn holds(set: &FieldSet, fields: &Map) -> bool {
    let mut held = usize::from(fields.contains_key("."));
    for (node, below) in shared(set, fields) {
        if (is_member(below) && !node.member) || !holds(&node.children, below) {
            return false;
        }
        held += 1;
    }
    held == fields.len()
}

fn common(set: &FieldSet, fields: &Map) -> FieldSet {
    let nodes = shared(set, fields).into_iter().filter_map(|(node, below)| {
        let member = node.member && is_member(below);
        let children = common(&node.children, below);
        if !member && children.is_empty() {
            return None;
        }
        Some(FieldSetNode { element: node.element.as_decoded(), member, children })
    });
    FieldSet::from_sorted(nodes.collect())
}

fn take(set: &FieldSet, fields: &mut Map) {
    let mut is_gone = false;
    for node in set.nodes() {
        let Some(below_value) = fields.get_mut(&node.element.encode()) else { continue };
        let Value::Object(below) = below_value else { continue };
        let member = is_member(below) && !node.member;
        take(&node.children, below);
        if !member || below.len() == 1 {
            // A member without children is written without its dot.
            below.remove(".");
        }
        if !member && below.is_empty() {
            *below_value = Value::Null;
            is_gone = true;
        }
    }
    if is_gone {
        fields.retain(|_, below| !below.is_null());
    }
}
