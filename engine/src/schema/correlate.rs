//! Which old value belongs to which new one.
//!
//! Input: the new and the old form of a value, and its schema. Output: a [`Correlated`] pair that leads on to fields
//! and list items. Fields belong together by name, items of lists of type `map` by their keys; items of other lists
//! never do. Source: Kubernetes documentation, "Validation ratcheting" and "Transition rules"; answers recorded from
//! apiextensions-apiserver 1.37.

use std::cell::{Cell, OnceCell, RefCell};
use std::collections::{HashMap, HashSet};
use std::rc::Rc;

use super::structural::{Structural, StructuralOrBool};
use crate::value::{Map, Value};
use crate::work;

/// A value before and after an update.
#[derive(Debug)]
pub struct Correlated<'v> {
    /// The new value.
    pub new: &'v Value,
    /// The old value that belongs to it.
    pub old: &'v Value,
    /// The schema of both.
    pub schema: &'v Structural,
    verdict: RatchetVerdict<'v>,
    /// The lists and objects found unchanged so far, anywhere in the object.
    unchanged: Rc<RefCell<HashSet<*const Value>>>,
    old_items: OnceCell<OldItems<'v>>,
}

/// The items of an old list, to be found by their keys.
#[derive(Debug, Default)]
pub struct OldItems<'v> {
    items: KeyedItems<'v>,
    key_names: &'v [String],
}

/// Items by their keys; the first one if several have the same keys.
#[derive(Debug)]
enum KeyedItems<'v> {
    /// Few enough to be searched one by one.
    Few(Vec<(ItemIdentity<'v>, &'v Value)>),
    Many(HashMap<ItemIdentity<'v>, &'v Value>),
}

impl Default for KeyedItems<'_> {
    fn default() -> Self {
        KeyedItems::Few(Vec::new())
    }
}

impl<'v> OldItems<'v> {
    /// Indexes the items of `old` by the fields `key_names`; without key names, none can be found.
    pub fn new(old: &'v [Value], key_names: &'v [String]) -> Self {
        const FEW: usize = 16;
        if key_names.is_empty() {
            return OldItems::default();
        }
        work::steps(old.len() * key_names.len());
        let keyed = old.iter().filter_map(|item| Some((key_of(item.as_object()?, key_names)?, item)));
        let items = if old.len() <= FEW {
            KeyedItems::Few(keyed.collect())
        } else {
            let mut items = HashMap::with_capacity(old.len());
            keyed.for_each(|(key, item)| _ = items.entry(key).or_insert(item));
            KeyedItems::Many(items)
        };
        OldItems { items, key_names }
    }

    /// The old item with the keys of `item`.
    pub fn get(&self, item: &Value) -> Option<&'v Value> {
        match &self.items {
            KeyedItems::Few(items) if items.is_empty() => None,
            KeyedItems::Few(items) => {
                let key = key_of(item.as_object()?, self.key_names)?;
                items.iter().find(|(known, _)| *known == key).map(|(_, item)| *item)
            }
            KeyedItems::Many(items) => items.get(&key_of(item.as_object()?, self.key_names)?).copied(),
        }
    }
}

/// Whether a value is known to be unchanged, and the verdict on its parent.
#[derive(Debug, Default)]
struct RatchetVerdict<'v> {
    unchanged: Cell<Option<bool>>,
    parent: Option<&'v RatchetVerdict<'v>>,
}

/// The identity of an item in a list of type `map`.
#[derive(Debug, PartialEq, Eq, Hash)]
enum ItemIdentity<'v> {
    Bool(bool),
    Int(i64),
    Float(u64),
    String(&'v str),
    /// Several keys in a row.
    Composite(String),
}

impl<'v> Correlated<'v> {
    /// The whole of an object before and after.
    pub fn new(new: &'v Value, old: &'v Value, schema: &'v Structural) -> Self {
        Correlated {
            new,
            old,
            schema,
            verdict: RatchetVerdict::default(),
            unchanged: Rc::default(),
            old_items: OnceCell::new(),
        }
    }

    fn child<'c>(&'c self, new: &'c Value, old: &'c Value, schema: &'c Structural) -> Correlated<'c> {
        let verdict = RatchetVerdict { parent: Some(&self.verdict), ..RatchetVerdict::default() };
        Correlated { new, old, schema, verdict, unchanged: Rc::clone(&self.unchanged), old_items: OnceCell::new() }
    }

    /// The field `name`, if both objects have it and the schema specifies it.
    pub fn field(&self, name: &str) -> Option<Correlated<'_>> {
        let new = self.new.get(name)?;
        let old = self.old.get(name)?;
        let schema = match self.schema.properties.get(name) {
            Some(property) => property,
            None => self.schema.additional_properties.as_ref().and_then(StructuralOrBool::structural)?,
        };
        Some(self.child(new, old, schema))
    }

    /// The item at `index` of the new list, if the lists are of type `map` and the old one has an item with its keys.
    pub fn item(&self, index: usize) -> Option<Correlated<'_>> {
        let new = self.new.as_array()?.get(index)?;
        let old = self.old_items()?.get(new)?;
        Some(self.child(new, old, self.schema.items.as_deref()?))
    }

    /// `None` unless both are lists of type `map`.
    fn old_items(&self) -> Option<&OldItems<'v>> {
        let (Value::Array(_), Value::Array(old)) = (self.new, self.old) else { return None };
        if self.schema.extensions.list_type.as_deref() != Some("map") {
            return None;
        }
        Some(self.old_items.get_or_init(|| match self.schema.generic.type_.as_str() {
            "array" => OldItems::new(old, &self.schema.extensions.list_map_keys),
            _ => OldItems::default(),
        }))
    }

    /// Whether the update left the value as it was. Items of lists of type `map` may change places; objects with fields
    /// that the schema does not specify always count as changed.
    pub fn is_unchanged(&self) -> bool {
        if let Some(unchanged) = self.verdict.unchanged.get() {
            return unchanged;
        }
        // What was compared before is not compared again.
        let known = self.unchanged.borrow().contains(&std::ptr::from_ref(self.new));
        let unchanged = known || self.compare();
        self.verdict.unchanged.set(Some(unchanged));
        if unchanged && !known && matches!(self.new, Value::Array(_) | Value::Object(_)) {
            self.unchanged.borrow_mut().insert(self.new);
        }
        if !unchanged {
            // The parent of a changed value is changed, and need not be compared again.
            let mut parent = self.verdict.parent;
            while let Some(changed) = parent {
                changed.unchanged.set(Some(false));
                parent = changed.parent;
            }
        }
        unchanged
    }

    fn compare(&self) -> bool {
        work::step();
        match (self.new, self.old) {
            (Value::Array(new), Value::Array(old)) => {
                if new.len() != old.len() {
                    return false;
                }
                match self.old_items() {
                    None => {
                        count_values(new);
                        new == old
                    }
                    Some(_) => (0..new.len()).all(|index| self.item(index).is_some_and(|item| item.is_unchanged())),
                }
            }
            (Value::Object(new), Value::Object(old)) => {
                new.len() == old.len()
                    && new.keys().all(|name| self.field(name).is_some_and(|field| field.is_unchanged()))
            }
            (new, old) => new == old,
        }
    }
}

/// Counts what is compared at once.
fn count_values(values: &[Value]) {
    work::steps(values.len());
    for value in values {
        match value {
            Value::Array(items) => count_values(items),
            Value::Object(fields) => fields.values().for_each(|field| count_values(std::slice::from_ref(field))),
            Value::String(text) => work::bytes(text.len()),
            _ => {}
        }
    }
}

/// The identity of `item`, if it has all keys and these are scalars.
fn key_of<'v>(item: &'v Map, key_names: &[String]) -> Option<ItemIdentity<'v>> {
    if let [name] = key_names {
        return match item.get(name)? {
            Value::Bool(truth) => Some(ItemIdentity::Bool(*truth)),
            Value::Int(number) => Some(ItemIdentity::Int(*number)),
            Value::Float(number) => Some(ItemIdentity::Float((number + 0.0).to_bits())),
            Value::String(text) => Some(ItemIdentity::String(text)),
            Value::Null | Value::Array(_) | Value::Object(_) => None,
        };
    }
    let mut composite = String::new();
    for name in key_names {
        composite.push('\0');
        match item.get(name)? {
            Value::Bool(truth) => composite.push_str(&truth.to_string()),
            Value::Int(number) => composite.push_str(&number.to_string()),
            // Go compares doubles by six decimal places here.
            Value::Float(number) => composite.push_str(&format!("{number:.6}")),
            Value::String(text) => composite.push_str(&crate::value::go_quote(text)),
            Value::Null | Value::Array(_) | Value::Object(_) => return None,
        }
    }
    Some(ItemIdentity::Composite(composite))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::object;

    #[test]
    fn old_items_are_found_by_their_keys_among_few_and_many() {
        let names = ["name".to_owned()];
        for count in [0, 1, 16, 17, 40] {
            let item = |at: i64, of: &str| object! { "name" => format!("i{at}"), "of" => of };
            let old: Vec<Value> =
                (0..count).map(|at| item(at, "first")).chain((0..count).map(|at| item(at, "again"))).collect();
            let items = OldItems::new(&old, &names);
            for at in 0..count {
                assert_eq!(items.get(&item(at, "new")), Some(&item(at, "first")), "of the same the first counts");
            }
            assert_eq!(items.get(&item(count, "new")), None);
            assert_eq!(items.get(&object! { "of" => "none" }), None);
            assert_eq!(OldItems::new(&old, &[]).get(&item(0, "new")), None);
        }
    }
}
