//! The fields that one manager owns, in the form that they were read in until they change.
//!
//! Most of managedFields does not change in a write. So the checks that a write makes for every manager run on the text
//! of `fieldsV1`, without decoding it into a [`FieldSet`].

use std::borrow::Cow;

use super::field_set::FieldSet;
use super::fields_text::FieldsText;
use super::path::PathElementError;
use super::type_schema::TypeSchema;
use crate::value::{Map, Value, json};
use crate::work;

/// A set of fields.
#[derive(Clone, Debug)]
pub(super) enum OwnedFields<'a> {
    /// With the map that the text was read from, as long as they agree.
    Text(FieldsText<'a>, Option<&'a Map>),
    Set(FieldSet),
}

impl<'a> OwnedFields<'a> {
    pub const NONE: OwnedFields<'static> = OwnedFields::Set(FieldSet::new());

    /// # Errors
    ///
    /// An element that can't be read; Go's text.
    pub fn decode(fields: &'a Value) -> Result<Self, PathElementError> {
        let unread = fields.as_object().and_then(|map| Some((map, map.json_text()?)));
        let text = unread.map_or_else(|| Cow::Owned(json::encode_to_string(fields)), |(_, text)| Cow::Borrowed(text));
        match FieldsText::read(text) {
            Some(text) => Ok(OwnedFields::Text(text, unread.map(|(map, _)| map))),
            None => FieldSet::decode(fields).map(OwnedFields::Set),
        }
    }

    pub fn encode(self) -> Value {
        match self {
            OwnedFields::Text(_, Some(map)) => Value::Object(map.clone()),
            OwnedFields::Text(fields, None) => Value::Object(Map::of_json(fields.into_text())),
            OwnedFields::Set(set) => set.encode(),
        }
    }

    pub fn is_empty(&self) -> bool {
        match self {
            OwnedFields::Text(fields, _) => fields.root().is_empty(),
            OwnedFields::Set(set) => set.is_empty(),
        }
    }

    /// Whether it is kept as this text.
    pub fn is_text(&self, text: &str) -> bool {
        matches!(self, OwnedFields::Text(fields, _) if fields.text() == text)
    }

    pub fn set(&self) -> Cow<'_, FieldSet> {
        match self {
            OwnedFields::Text(fields, _) => Cow::Owned(fields.root().set()),
            OwnedFields::Set(set) => Cow::Borrowed(set),
        }
    }

    /// Takes the set, leaving an empty one.
    pub fn take(&mut self) -> FieldSet {
        match std::mem::replace(self, OwnedFields::NONE) {
            OwnedFields::Set(set) => set,
            text => text.set().into_owned(),
        }
    }

    /// Adapts the set to the current schema.
    pub fn reconcile(&mut self, types: &TypeSchema) {
        match self {
            OwnedFields::Text(fields, _) if fields.is_settled(types.id()) => work::steps(fields.step_count()),
            OwnedFields::Text(fields, _) if !types.may_reconcile(fields.root()) => fields.settle(types.id()),
            _ => {
                let mut set = self.take();
                types.reconcile(&mut set);
                *self = OwnedFields::Set(set);
            }
        }
    }

    /// Whether every member is in `set`.
    pub fn is_subset(&self, set: &FieldSet) -> bool {
        match self {
            OwnedFields::Text(fields, _) => fields.root().is_within(set),
            OwnedFields::Set(owned) => owned.is_subset(set),
        }
    }

    /// The members that are also in `sought`.
    pub fn intersection(&self, sought: &FieldSet) -> FieldSet {
        match self {
            OwnedFields::Text(fields, _) => fields.root().common(sought),
            OwnedFields::Set(owned) => owned.intersection(sought),
        }
    }

    /// Keeps its text if that holds the same fields as `set`; otherwise becomes `set`.
    pub fn or_set(self, set: FieldSet) -> Self {
        match self {
            OwnedFields::Text(fields, map) if fields.root().is_within(&set) && fields.root().holds(&set) => {
                OwnedFields::Text(fields, map)
            }
            _ => OwnedFields::Set(set),
        }
    }

    /// The union with `set`, which may be contained already: a manager often writes the same fields again.
    pub fn united(self, set: FieldSet) -> Self {
        match self {
            OwnedFields::Text(fields, map) if fields.root().holds(&set) => OwnedFields::Text(fields, map),
            fields => OwnedFields::Set(set.united(fields.set().into_owned())),
        }
    }

    /// Removes the members of `set`.
    pub fn subtract(&mut self, set: &FieldSet) {
        if set.is_empty() {
            return;
        }
        *self = match self {
            OwnedFields::Text(fields, _) => OwnedFields::Text(fields.without(set), None),
            OwnedFields::Set(owned) => OwnedFields::Set(owned.difference(set)),
        };
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::apply::field_set::arbitrary::sets;

    proptest! {
        #[test]
        fn the_same_set_keeps_its_text(owned in sets(), other in sets()) {
            let stored = owned.encode();
            let decoded = || OwnedFields::decode(&stored).expect("it is what is written");
            let read = decoded().take();
            prop_assert!(matches!(decoded().or_set(read.clone()), OwnedFields::Text(..)));
            let mut replaced = decoded().or_set(other.clone());
            prop_assert_eq!(matches!(replaced, OwnedFields::Text(..)), read == other);
            prop_assert_eq!(replaced.take(), other);
        }
    }
}
