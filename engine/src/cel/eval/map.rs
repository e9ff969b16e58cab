//! Maps: objects and maps of the host's object, and those that an expression makes.

use std::collections::HashMap;
use std::sync::Arc;

use super::error::EvalError;
use super::host::MapForm;
use super::show::{go_type, show};
use super::value::{Duration, KeyKind, TextValue, Timestamp, Value};
use crate::cel::escape::unescape;
use crate::value::Map as JsonMap;

/// A map of values. Clones are cheap.
#[derive(Clone, Debug)]
pub enum Map<'a> {
    /// An object or a map of the host's object, read in place.
    Host {
        /// The fields of the object.
        fields: &'a JsonMap,
        /// The form that its schema gives them.
        form: &'a MapForm,
    },
    /// An object of JSON without a schema, treated as if the expression had made it.
    Json(&'a JsonMap),
    /// The variables of a policy, which are evaluated on use. Only an access to one of them returns a value.
    Variables,
    /// A map that the expression made.
    Owned(Arc<OwnedMap<'a>>),
    /// A map that is part of the program.
    Lent(&'a OwnedMap<'a>),
}

/// A map that contains its entries, in the order in which they were added.
#[derive(Clone, Debug, Default)]
pub struct OwnedMap<'a> {
    entries: Vec<(Value<'a>, Value<'a>)>,
    /// The indices of entries by their keys, once there are many.
    places: HashMap<ComparedKey<'a>, usize>,
}

/// The maximum number of entries that are searched one by one.
const SEARCHED_ENTRIES_MAX: usize = 8;

/// The part of a key that is compared. Strings, numbers and booleans are the keys that an index can reach; for other
/// keys the reference compares pointers, or whatever they are made of.
#[derive(Clone, Debug)]
enum ComparedKey<'a> {
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(u64),
    String(TextValue<'a>),
    Null,
    Duration(Duration),
    Timestamp(Timestamp),
    /// A type, an address or a network, by its text.
    Shown(Arc<str>),
    /// A key that equals no other.
    Other,
}

impl ComparedKey<'_> {
    /// The kind of the key, its numbers or bits, and its text.
    fn parts(&self) -> (u8, [u64; 3], &str) {
        match self {
            ComparedKey::Bool(truth) => (0, [u64::from(*truth), 0, 0], ""),
            ComparedKey::Int(number) => (1, [number.cast_unsigned(), 0, 0], ""),
            ComparedKey::Uint(number) => (2, [*number, 0, 0], ""),
            ComparedKey::Double(bits) => (3, [*bits, 0, 0], ""),
            ComparedKey::String(text) => (4, [0; 3], text.as_str()),
            ComparedKey::Null => (5, [0; 3], ""),
            ComparedKey::Duration(duration) => (6, [duration.0.cast_unsigned(), 0, 0], ""),
            ComparedKey::Timestamp(Timestamp { seconds, nanos, offset_seconds }) => {
                (7, [seconds.cast_unsigned(), u64::from(*nanos), u64::from(offset_seconds.cast_unsigned())], "")
            }
            ComparedKey::Shown(text) => (8, [0; 3], text),
            ComparedKey::Other => (9, [0; 3], ""),
        }
    }
}

impl PartialEq for ComparedKey<'_> {
    fn eq(&self, other: &Self) -> bool {
        self.parts() == other.parts() && !matches!(self, ComparedKey::Other)
    }
}

impl Eq for ComparedKey<'_> {}

impl std::hash::Hash for ComparedKey<'_> {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.parts().hash(state);
    }
}

impl<'a> ComparedKey<'a> {
    fn of(value: &Value<'a>) -> ComparedKey<'a> {
        match value {
            Value::Bool(truth) => ComparedKey::Bool(*truth),
            Value::Int(number) => ComparedKey::Int(*number),
            Value::Uint(number) => ComparedKey::Uint(*number),
            Value::Double(number) if !number.is_nan() => ComparedKey::Double((number + 0.0).to_bits()),
            Value::String(text) => ComparedKey::String(text.clone()),
            Value::Null => ComparedKey::Null,
            Value::Duration(duration) => ComparedKey::Duration(*duration),
            Value::Timestamp(timestamp) => ComparedKey::Timestamp(*timestamp),
            Value::Type(_) | Value::Optional(None) => ComparedKey::Shown(show(value).into()),
            Value::Opaque(opaque) if opaque.as_key() == KeyKind::Content => ComparedKey::Shown(opaque.shown().into()),
            _ => ComparedKey::Other,
        }
    }
}

/// Checks that `key` can be a key, or be searched for in a map that is not empty: otherwise the reference panics.
pub(super) fn check_hashable(key: &Value<'_>) -> Result<(), EvalError> {
    if is_hashable(key) {
        return Ok(());
    }
    Err(EvalError::Internal(format!("runtime error: hash of unhashable type {}", go_type(key)).into()))
}

fn is_hashable(key: &Value<'_>) -> bool {
    match key {
        Value::Bytes(_) => false,
        Value::Opaque(opaque) => opaque.as_key() != KeyKind::Unhashable,
        _ => true,
    }
}

impl<'a> OwnedMap<'a> {
    fn place(&self, key: &Value<'_>) -> Option<usize> {
        if self.places.is_empty() {
            let wanted = ComparedKey::of(key);
            return self.entries.iter().position(|(known, _)| ComparedKey::of(known) == wanted);
        }
        self.places.get(&ComparedKey::of(key)).copied()
    }

    fn find(&self, key: &Value<'_>) -> Option<&Value<'a>> {
        let place = self.place(key).or_else(|| match key {
            // Numbers of different types may be equal keys.
            Value::Int(number) => self.place(&Value::Uint(u64::try_from(*number).ok()?)),
            Value::Uint(number) => self.place(&Value::Int(i64::try_from(*number).ok()?)),
            Value::Double(number) => {
                let int = *number as i64;
                let uint = *number as u64;
                let as_int = (int as f64 == *number && int != i64::MAX).then_some(Value::Int(int));
                let as_uint = (uint as f64 == *number && uint != u64::MAX).then_some(Value::Uint(uint));
                as_int.and_then(|key| self.place(&key)).or_else(|| as_uint.and_then(|key| self.place(&key)))
            }
            _ => None,
        });
        place.map(|at| &self.entries[at].1)
    }

    pub(super) fn text_key(&self, key: &str) -> Option<&Value<'a>> {
        self.find(&Value::borrowed(key))
    }

    fn insert(&mut self, key: Value<'a>, value: Value<'a>) {
        match self.place(&key) {
            Some(at) => self.entries[at].1 = value,
            None => {
                self.entries.push((key, value));
                let at = self.entries.len() - 1;
                if !self.places.is_empty() {
                    self.places.insert(ComparedKey::of(&self.entries[at].0), at);
                } else if self.entries.len() > SEARCHED_ENTRIES_MAX {
                    let keys = self.entries.iter().enumerate();
                    self.places = keys.map(|(at, (key, _))| (ComparedKey::of(key), at)).collect();
                }
            }
        }
    }

    fn remove(&mut self, key: &Value<'a>) {
        if let Some(at) = self.place(key) {
            self.entries.remove(at);
            self.places.clear();
        }
    }
}

impl<'a> Map<'a> {
    /// Makes a map of entries whose keys are hashable; of a repeated key the last value is kept.
    pub fn owned(entries: impl IntoIterator<Item = (Value<'a>, Value<'a>)>) -> Self {
        let mut map = OwnedMap::default();
        for (key, value) in entries {
            map.insert(key, value);
        }
        Map::Owned(Arc::new(map))
    }

    /// The number of entries.
    pub fn len(&self) -> usize {
        match self {
            Map::Host { fields, .. } => fields.len(),
            Map::Json(fields) => fields.len(),
            Map::Variables => 0,
            Map::Owned(map) => map.entries.len(),
            Map::Lent(map) => map.entries.len(),
        }
    }

    /// Whether it has no entries.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The value at `key`, if there is one. A field that is null counts as absent.
    ///
    /// # Errors
    /// The host's value does not fit its schema, or `key` is not a string for a map of the host.
    pub fn find(&self, key: &Value<'_>) -> Result<Option<Value<'a>>, EvalError> {
        match self {
            Map::Host { .. } => match key {
                Value::String(name) => self.find_text(name.as_str()),
                _ => Err(EvalError::no_such_overload()),
            },
            Map::Json(fields) => Ok(key.as_str().and_then(|name| fields.get(name)).map(Value::json)),
            Map::Variables => Ok(None),
            Map::Owned(map) => Ok(map.find(key).cloned()),
            Map::Lent(map) => Ok(map.find(key).map(Value::lend)),
        }
    }

    /// The value at the key `name`; for an object, the field with that escaped name.
    ///
    /// # Errors
    /// The host's value does not fit its schema.
    pub fn find_text(&self, name: &str) -> Result<Option<Value<'a>>, EvalError> {
        match self {
            Map::Host { fields, form } => match form {
                MapForm::Fields(_) => match unescape(name) {
                    Some(name) => self.field(&name),
                    None => Ok(None),
                },
                MapForm::Values(form) => fields.get(name).map(|value| Value::host(value, form)).transpose(),
                MapForm::Bare => Ok(None),
            },
            Map::Json(fields) => Ok(fields.get(name).map(Value::json)),
            Map::Variables => Ok(None),
            Map::Owned(map) => Ok(map.text_key(name).cloned()),
            Map::Lent(map) => Ok(map.text_key(name).map(Value::lend)),
        }
    }

    /// The field of a host's object by the property's own name; for a map, the value at that key.
    ///
    /// # Errors
    /// The host's value does not fit its schema.
    fn field(&self, name: &str) -> Result<Option<Value<'a>>, EvalError> {
        let Map::Host { fields, form: MapForm::Fields(declared) } = self else { return self.find_text(name) };
        let Some(value) = fields.get(name).filter(|value| !value.is_null()) else { return Ok(None) };
        declared.get(name).map(|field| Value::host(value, &field.form)).transpose()
    }

    /// The value of the field `written` in the expression; for an object, that of the property `property`.
    ///
    /// # Errors
    /// The host's value does not fit its schema.
    pub(super) fn property(&self, property: &str, written: &Value<'_>) -> Result<Option<Value<'a>>, EvalError> {
        match self {
            Map::Host { form: MapForm::Fields(_), .. } => self.field(property),
            _ => self.find(written),
        }
    }

    /// The entries in order. A value that does not fit its schema is an error.
    pub fn entries(&self) -> Vec<(Value<'a>, Result<Value<'a>, EvalError>)> {
        match self {
            Map::Host { .. } => {
                let entry = |key: Value<'a>| {
                    let value = self.find(&key).map(Option::unwrap_or_default);
                    (key, value)
                };
                self.keys().into_iter().map(entry).collect()
            }
            Map::Json(fields) => {
                fields.iter().map(|(name, value)| (Value::borrowed(name), Ok(Value::json(value)))).collect()
            }
            Map::Variables => Vec::new(),
            Map::Owned(map) => map.entries.iter().map(|(key, value)| (key.clone(), Ok(value.clone()))).collect(),
            Map::Lent(map) => map.entries.iter().map(|(key, value)| (key.lend(), Ok(value.lend()))).collect(),
        }
    }

    /// Whether there is an entry at `key`.
    ///
    /// # Errors
    /// `key` is not hashable.
    pub fn contains(&self, key: &Value<'_>) -> Result<bool, EvalError> {
        if !matches!(self, Map::Host { .. }) && !self.is_empty() {
            check_hashable(key)?;
        }
        self.find(key).map(|value| value.is_some())
    }

    /// The keys. For an object they are escaped names, and null for each field that the schema does not specify.
    pub fn keys(&self) -> Vec<Value<'a>> {
        match self {
            Map::Host { fields, form } => {
                let known: Vec<Value<'a>> = match form {
                    MapForm::Fields(declared) => {
                        let known = fields.keys().filter_map(|name| declared.get(name));
                        known.map(|field| Value::borrowed(&field.escaped)).collect()
                    }
                    MapForm::Values(_) => fields.keys().map(Value::borrowed).collect(),
                    MapForm::Bare => Vec::new(),
                };
                let unknown = fields.len() - known.len();
                known.into_iter().chain(std::iter::repeat_n(Value::Null, unknown)).collect()
            }
            Map::Json(fields) => fields.keys().map(Value::borrowed).collect(),
            Map::Variables => Vec::new(),
            Map::Owned(map) => map.entries.iter().map(|(key, _)| key.clone()).collect(),
            Map::Lent(map) => map.entries.iter().map(|(key, _)| key.lend()).collect(),
        }
    }

    /// Adds an entry. A map that nothing else references is extended in place.
    ///
    /// # Errors
    /// `key` is not hashable, or the host's values do not fit their schema.
    pub fn insert(self, key: Value<'a>, value: Value<'a>) -> Result<Map<'a>, EvalError> {
        check_hashable(&key)?;
        let mut map = self.into_owned()?;
        Arc::make_mut(&mut map).insert(key, value);
        Ok(Map::Owned(map))
    }

    /// Removes the entry at `key`.
    ///
    /// # Errors
    /// The same as for [`Map::insert`].
    pub(super) fn remove(self, key: &Value<'a>) -> Result<Map<'a>, EvalError> {
        if self.is_empty() && !is_hashable(key) {
            return Err(EvalError::Internal(format!("hash of unhashable type: {}", go_type(key)).into()));
        }
        check_hashable(key)?;
        let mut map = self.into_owned()?;
        Arc::make_mut(&mut map).remove(key);
        Ok(Map::Owned(map))
    }

    fn into_owned(self) -> Result<Arc<OwnedMap<'a>>, EvalError> {
        Ok(match self {
            Map::Owned(map) => map,
            Map::Lent(map) => Arc::new(map.clone()),
            Map::Host { .. } | Map::Json(_) | Map::Variables => {
                let mut map = OwnedMap::default();
                for (key, value) in self.entries() {
                    map.insert(key, value?);
                }
                Arc::new(map)
            }
        })
    }

    pub(super) fn lend(&'a self) -> Map<'a> {
        match self {
            Map::Owned(map) => Map::Lent(map),
            other => other.clone(),
        }
    }

    /// Whether the maps have equal entries.
    ///
    /// # Errors
    /// Values cannot be compared, or do not fit their schema.
    pub fn equals(&self, other: &Map<'a>) -> Result<bool, EvalError> {
        if self.len() != other.len() {
            return Ok(false);
        }
        let Map::Host { fields, form } = self else {
            for key in self.keys() {
                let (Ok(Some(value)), Ok(Some(its))) = (self.find(&key), other.find(&key)) else { return Ok(false) };
                // Values that cannot be compared do not make literals differ.
                if value.is(&its) == Ok(false) {
                    return Ok(false);
                }
            }
            return Ok(true);
        };
        for (name, json) in fields.iter() {
            let (known, nulls_differ) = match form {
                MapForm::Fields(declared) => {
                    let field = declared.get(name);
                    (field.is_some(), field.is_some_and(|field| field.form.nulls_differ))
                }
                MapForm::Values(_) => (true, false),
                MapForm::Bare => (false, false),
            };
            if known {
                match (self.find_text(name)?, other.find_text(name)?) {
                    (Some(value), Some(its)) if value.equals(&its)? => {}
                    (None, None) if !nulls_differ => {}
                    _ => return Ok(false),
                }
            } else {
                let Map::Host { fields: its, .. } = other else { return Err(EvalError::no_such_overload()) };
                if its.get(name).is_some_and(|its| its != json) {
                    return Ok(false);
                }
            }
        }
        Ok(true)
    }
}
