//! What the writer of an object owns, written as `fieldsV1` in the walk that checks the types: no set is built.
//!
//! Input: types, and an object that is created or applied. Output: the text that [`FieldSet::encode`] gives for what its
//! writer owns, or `None` where the walk can't tell. Then the caller goes through sets, which finds the same or the
//! errors. The walk can't tell what is owned of
//!
//! - an object that does not conform, or has duplicate items in a set or list map,
//! - a list of a new object whose kind has items there before any field is set, or a value of another kind,
//! - an object whose root or metadata is atomic, or whose metadata is null,
//! - a field that is reset in part,
//! - texts that are too long.

use super::field_set::FieldSet;
use super::fields_text::{FieldsText, TextWriter};
use super::item::Item;
use super::managed_fields::is_identity;
use super::path::equal_values;
use super::type_schema::{Items, ListType, MapType, TypeId, TypeSchema};
use super::typed::{Candidates, TypeKind};
use crate::value::{Map, Value};
use crate::work;

/// Longer texts are not written here. Each item repeats the names and the defaults of its key, so a text may be much
/// longer than its object.
const TEXT_BYTES_MAX: usize = 32 << 20;

impl TypeSchema {
    /// What the manager owns that creates `object`: all that `empty` does not have, which is an object of its kind
    /// before any field is set. Nobody owns the fields of `reset`.
    pub(super) fn text_of_created(
        &self,
        object: &Value,
        empty: &Value,
        reset: Option<&FieldSet>,
    ) -> Option<FieldsText<'static>> {
        self.owned_text(object, Before::Value(empty), reset)
    }

    /// What the manager owns that applies `object`.
    pub(super) fn text_of_applied(&self, object: &Value, reset: Option<&FieldSet>) -> Option<FieldsText<'static>> {
        self.owned_text(object, Before::NotCompared, reset)
    }

    fn owned_text(&self, object: &Value, before: Before<'_>, reset: Option<&FieldSet>) -> Option<FieldsText<'static>> {
        let (Some(TypeKind::Map(map)), Value::Object(fields)) = (self.kind_of(self.root(), object), object) else {
            return None;
        };
        if map.atomic {
            return None;
        }
        let allow_duplicates = !matches!(before, Before::NotCompared);
        let mut walk = OwnedText { types: self, allow_duplicates, out: TextWriter::new() };
        walk.root(map, fields, before, reset)?;
        Some(walk.out.finish())
    }
}

/// The content that a field is written into.
#[derive(Clone, Copy)]
struct OpenContent {
    /// The start of the content in the text.
    start: usize,
    /// Whether the object or list itself is owned, too.
    is_member: bool,
}

/// What stood where a value now stands.
#[derive(Clone, Copy)]
enum Before<'v> {
    /// It does not matter: an applier owns what it sends.
    NotCompared,
    Nothing,
    Value(&'v Value),
}

impl<'v> Before<'v> {
    /// At the field `name`.
    fn field(self, name: &str) -> Before<'v> {
        match self {
            Before::NotCompared => Before::NotCompared,
            Before::Nothing => Before::Nothing,
            Before::Value(object) => object.get(name).map_or(Before::Nothing, Before::Value),
        }
    }

    /// Whether a field that is only owned as a whole is owned.
    fn is_leaf_owned(self, value: &Value) -> bool {
        match self {
            Before::NotCompared | Before::Nothing => true,
            Before::Value(before) => !equal_values(before, value),
        }
    }
}

struct OwnedText<'a> {
    types: &'a TypeSchema,
    /// Within what is reset or owned as a whole; elsewhere the walk ends at duplicates.
    allow_duplicates: bool,
    out: TextWriter,
}

// Each method returns `None` where the walk can't tell.
impl OwnedText<'_> {
    fn root(&mut self, map: &MapType, fields: &Map, before: Before<'_>, reset: Option<&FieldSet>) -> Option<()> {
        let around = self.open(false);
        let mut types = map.in_order();
        for (name, value) in fields.iter() {
            let (id, is_declared) = types.value(name)?;
            if let Some(reset) = reset.and_then(|reset| reset.field(name)) {
                (reset.member && self.conforms(id, value)).then_some(())?;
                continue;
            }
            match name {
                "apiVersion" | "kind" => self.identity(id, value)?,
                "metadata" => self.below(around, name, |walk| walk.metadata(id, value, before.field(name)))?,
                _ => self.field(around, name, (id, is_declared), value, before)?,
            }
        }
        self.out.close(around.start);
        Some(())
    }

    /// The object's own metadata, whose field and identity nobody owns.
    fn metadata(&mut self, id: TypeId, value: &Value, before: Before<'_>) -> Option<bool> {
        let (Some(TypeKind::Map(map)), Value::Object(fields)) = (self.types.kind_of(id, value), value) else {
            return None;
        };
        if map.atomic {
            return None;
        }
        let around = self.open(false);
        let mut types = map.in_order();
        for (name, value) in fields.iter().filter(|(name, _)| !map.passes_over(name)) {
            let (id, is_declared) = types.value(name)?;
            if is_identity(name) {
                self.identity(id, value)?;
            } else {
                self.field(around, name, (id, is_declared), value, before)?;
            }
        }
        Some(self.out.close(around.start))
    }

    /// A scalar that nobody owns.
    fn identity(&mut self, id: TypeId, value: &Value) -> Option<()> {
        match self.types.kind_of(id, value)? {
            TypeKind::Scalar(_) if self.conforms(id, value) => Some(()),
            _ => None,
        }
    }

    /// Whether a value conforms whose fields are not owned one by one.
    fn conforms(&self, id: TypeId, value: &Value) -> bool {
        self.types.validate_value(id, value, self.allow_duplicates).is_ok()
    }

    /// Writes a field of the object that stands where `before` stood; the type is the one of its value, with whether
    /// the field is declared.
    fn field(
        &mut self,
        around: OpenContent,
        name: &str,
        (id, is_declared): (TypeId, bool),
        value: &Value,
        before: Before<'_>,
    ) -> Option<()> {
        self.below(around, name, |walk| walk.value(id, value, before.field(name), !is_declared))
    }

    /// Writes the field `name` with what `value` writes, which returns whether any of it is owned.
    fn below(&mut self, around: OpenContent, name: &str, value: impl FnOnce(&mut Self) -> Option<bool>) -> Option<()> {
        let before = self.out.lengths();
        (before.0 <= TEXT_BYTES_MAX).then_some(())?;
        self.out.separate(around.start, around.is_member);
        let step = self.out.begin_field(name);
        if value(self)? {
            self.out.end(step);
        } else {
            self.out.truncate(before);
        }
        Some(())
    }

    /// Begins the content of a field.
    fn open(&mut self, is_member: bool) -> OpenContent {
        OpenContent { start: self.out.open(), is_member }
    }

    /// Writes what is owned of a value and returns whether anything is. `is_key` says whether its name is not declared,
    /// or it is an item: its applier owns it even if it has fields.
    fn value(&mut self, id: TypeId, value: &Value, before: Before<'_>, is_key: bool) -> Option<bool> {
        work::step();
        let type_ = self.types.get(id);
        let candidates = Candidates::of(type_, Some(value));
        if let Before::Value(before) = before
            && Candidates::of(type_, Some(before)) != candidates
        {
            return None;
        }
        match candidates.first(type_)? {
            TypeKind::Scalar(scalar) => scalar.validate(value).ok().map(|()| self.leaf(value, before)),
            TypeKind::Map(map) if map.atomic => self.conforms(id, value).then(|| self.leaf(value, before)),
            TypeKind::List(ListType { items: Items::Atomic, .. }) => {
                self.conforms(id, value).then(|| self.leaf(value, before))
            }
            TypeKind::Map(map) => self.map(map, value, before, is_key),
            TypeKind::List(list) => self.list(list, value, before, is_key),
        }
    }

    /// A field that is owned as a whole.
    fn leaf(&mut self, value: &Value, before: Before<'_>) -> bool {
        let start = self.out.open();
        self.out.close(start);
        before.is_leaf_owned(value)
    }

    fn map(&mut self, map: &MapType, value: &Value, before: Before<'_>, is_key: bool) -> Option<bool> {
        const NO_FIELDS: &Map = &Map::new();
        let fields = match value {
            Value::Object(fields) => fields,
            Value::Null => NO_FIELDS,
            _ => return None,
        };
        let is_member = match before {
            Before::NotCompared => is_key || fields.is_empty(),
            Before::Nothing => true,
            Before::Value(Value::Object(old)) if !old.is_empty() => false,
            Before::Value(_) if fields.is_empty() => return Some(self.leaf(value, before)),
            Before::Value(_) => false,
        };
        let around = self.open(is_member);
        let mut types = map.in_order();
        for (name, value) in fields.iter().filter(|(name, _)| !map.passes_over(name)) {
            let type_ = types.value(name)?;
            self.field(around, name, type_, value, before)?;
        }
        Some(self.out.close(around.start) || is_member)
    }

    fn list(&mut self, list: &ListType, value: &Value, before: Before<'_>, is_key: bool) -> Option<bool> {
        let values = match value {
            Value::Array(values) => values.as_slice(),
            Value::Null => &[],
            _ => return None,
        };
        let (is_member, before) = match before {
            Before::NotCompared => (is_key || value.is_null(), Before::NotCompared),
            Before::Nothing => (true, Before::Nothing),
            Before::Value(old) if old.as_array().is_some_and(|old| !old.is_empty()) => return None,
            Before::Value(_) if values.is_empty() => return Some(self.leaf(value, before)),
            // The list was there, but empty: its items are new.
            Before::Value(_) => (false, Before::Nothing),
        };
        let items = list.sorted_items(values);
        if items.len() != values.len() || items.windows(2).any(|pair| pair[0] == pair[1]) {
            return None;
        }
        let around = self.open(is_member);
        if items.iter().all(|item| item.is_plain()) {
            for item in items {
                self.item(around, item, before, |out| out.begin_plain_item(item))?;
            }
            return Some(self.out.close(around.start) || is_member);
        }
        let mut named: Vec<(String, Item<'_>)> = items.into_iter().map(|item| (item.encode(), item)).collect();
        // The order of the texts differs from that of the items.
        named.sort_by(|(left, _), (right, _)| left.cmp(right));
        if named.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return None;
        }
        for (name, item) in named {
            self.item(around, item, before, |out| out.begin_item(&name))?;
        }
        Some(self.out.close(around.start) || is_member)
    }

    /// Writes an item, which is owned whatever it holds; `begin` writes its name.
    fn item(
        &mut self,
        around: OpenContent,
        item: Item<'_>,
        before: Before<'_>,
        begin: impl FnOnce(&mut TextWriter) -> usize,
    ) -> Option<()> {
        (self.out.lengths().0 <= TEXT_BYTES_MAX).then_some(())?;
        self.out.separate(around.start, around.is_member);
        let step = begin(&mut self.out);
        self.value(item.list.element, item.value, before, true)?;
        self.out.end(step);
        Some(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::apply::arbitrary::{cases, list, root, typed};
    use crate::apply::managed_fields::without_identity;
    use crate::object;
    use crate::value::json;

    fn reset() -> impl Strategy<Value = Option<FieldSet>> {
        prop::option::of(prop_oneof![
            Just(FieldSet::of_fields(&[&["status"]])),
            Just(FieldSet::of_fields(&[&["metadata"], &["spec"]])),
            Just(FieldSet::of_fields(&[&["spec", "a"]])),
        ])
    }

    fn excluding(mut set: FieldSet, reset: Option<&FieldSet>) -> FieldSet {
        reset.into_iter().for_each(|reset| set.exclude(reset));
        without_identity(set)
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 300, max_global_rejects: 100_000, ..ProptestConfig::default() })]

        #[test]
        fn what_a_creator_owns_is_written_as_it_is_found((types, object, empty) in cases(), reset in reset()) {
            let written = types.text_of_created(&object, &empty, reset.as_ref());
            prop_assert!(written.is_none() || types.validate(&object, true).is_ok());
            prop_assume!(types.validate(&empty, true).is_ok());
            let Some(written) = written else { return Err(TestCaseError::reject("it can't tell")) };
            let found = types.compare(&empty, &object);
            let set = excluding(found.added.union(&found.modified), reset.as_ref());
            prop_assert_eq!(written.text(), set.encode_text());
            let read = FieldsText::read(written.text().to_owned().into()).expect("it is what is written");
            prop_assert_eq!(format!("{written:?}"), format!("{read:?}"));
        }

        #[test]
        fn what_an_applier_owns_is_written_as_it_is_found((types, object, _) in cases(), reset in reset()) {
            let written = types.text_of_applied(&object, reset.as_ref());
            prop_assert!(written.is_none() || types.validate(&object, false).is_ok());
            let Some(written) = written else { return Err(TestCaseError::reject("it can't tell")) };
            let set = excluding(types.field_set(&object), reset.as_ref());
            prop_assert_eq!(written.text(), set.encode_text());
        }

        #[test]
        fn what_conforms_without_duplicates_is_written((types, object, _) in cases()) {
            let has_metadata = object.get("metadata").is_some_and(|metadata| !metadata.is_null());
            prop_assume!(has_metadata && types.validate(&object, false).is_ok());
            prop_assert!(types.text_of_applied(&object, None).is_some());
            let bare = object! { "apiVersion" => "g/v", "kind" => "K" };
            prop_assert!(types.text_of_created(&object, &bare, None).is_some());
        }
    }

    #[test]
    fn an_applier_does_not_own_what_only_holds_fields() {
        let mut ports = typed("object");
        ports.properties =
            [("a", typed("string")), ("b", typed("integer"))].into_iter().map(|(n, s)| (n.to_owned(), s)).collect();
        let mut spec = typed("object");
        spec.properties = [("ports", list(ports, "map"))].into_iter().map(|(n, s)| (n.to_owned(), s)).collect();
        let types = TypeSchema::of_custom_resource(&root(spec, typed("object")), false);
        let object = br#"{"apiVersion":"g/v","kind":"K","metadata":{"name":"n"},"spec":{"ports":[{"a":"z","b":10},{"a":"z","b":9}]}}"#;
        let object = json::decode(object).expect("it is JSON");
        let empty = object! { "apiVersion" => "g/v", "kind" => "K" };
        let created = types.text_of_created(&object, &empty, None).expect("it conforms");
        let item = |b: u8| format!(r#""k:{{\"a\":\"z\",\"b\":{b}}}":{{".":{{}},"f:a":{{}},"f:b":{{}}}}"#);
        let items = format!("{},{}", item(10), item(9));
        assert_eq!(created.text(), format!(r#"{{"f:spec":{{".":{{}},"f:ports":{{".":{{}},{items}}}}}}}"#));
        let applied = types.text_of_applied(&object, None).expect("it conforms");
        assert_eq!(applied.text(), format!(r#"{{"f:spec":{{"f:ports":{{{items}}}}}}}"#));
    }
}
