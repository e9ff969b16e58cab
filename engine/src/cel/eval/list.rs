//! Lists: those of the host's object, and those that an expression makes.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::error::EvalError;
use super::host::{ListForm, ListKeys, ListKind};
use super::map::Map;
use super::value::{Duration, Timestamp, Value};
use crate::meta::OBJECT_BYTES_MAX;
use crate::value::Value as Json;
use crate::work;

/// The maximum number of items of a sum of lists, of a flattened list, and of what `format` writes: as many as an object
/// can hold. In the cost model a sum is one step however long it is, so variables that double a list cost next to nothing.
pub const SUM_ITEMS_MAX: usize = OBJECT_BYTES_MAX / 2;

/// The error of a list that would have more than [`SUM_ITEMS_MAX`] items.
pub fn too_many_items() -> EvalError {
    EvalError::new(format!("list of more than {SUM_ITEMS_MAX} items"))
}

/// A list of values. Clones are cheap.
#[derive(Clone, Debug)]
pub enum List<'a> {
    /// A list of the host's object.
    Host { items: &'a Vec<Json>, form: &'a ListForm },
    /// A list of JSON without a schema, treated as if the expression had made it.
    Json(&'a [Json]),
    /// A list that the expression made.
    Owned(Arc<OwnedList<'a>>),
    /// A list that is part of the program.
    Lent(&'a OwnedList<'a>),
}

/// A list that contains its items.
#[derive(Clone, Debug, Default)]
pub struct OwnedList<'a> {
    items: Vec<Value<'a>>,
    kind: ListType<'a>,
}

/// The same as [`ListKind`]: the sum of the host's lists keeps their kind.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
enum ListType<'a> {
    #[default]
    Atomic,
    /// The sum of two lists of the expression. It only differs from other lists in the name of its Go type.
    Sum,
    /// Strings that a function made, which Go keeps as such. It differs from other lists in its Go types.
    Texts,
    Set,
    Map(&'a ListKeys),
}

impl<'a> ListType<'a> {
    fn of(kind: &'a ListKind) -> Self {
        match kind {
            ListKind::Atomic => ListType::Atomic,
            ListKind::Set => ListType::Set,
            ListKind::Map(keys) => ListType::Map(keys),
        }
    }
}

impl<'a> List<'a> {
    pub fn owned(items: Vec<Value<'a>>) -> Self {
        List::Owned(Arc::new(OwnedList { items, kind: ListType::Atomic }))
    }

    /// The strings that a function made.
    pub fn texts(items: Vec<Value<'a>>) -> Self {
        List::Owned(Arc::new(OwnedList { items, kind: ListType::Texts }))
    }

    pub fn len(&self) -> usize {
        match self {
            List::Host { items, .. } => items.len(),
            List::Json(items) => items.len(),
            List::Owned(list) => list.items.len(),
            List::Lent(list) => list.items.len(),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether it is a list of the host's object.
    pub(super) fn is_host(&self) -> bool {
        matches!(self, List::Host { .. })
    }

    /// Whether it is the sum of two lists of the expression.
    pub fn is_sum(&self) -> bool {
        self.kind() == ListType::Sum
    }

    /// Whether it has the strings that a function made.
    pub fn is_texts(&self) -> bool {
        self.kind() == ListType::Texts
    }

    /// The item at `index`, if there is one; an error if the host's item does not fit its schema.
    pub fn get(&self, index: usize) -> Option<Result<Value<'a>, EvalError>> {
        match self {
            List::Host { items, form } => items.get(index).map(|item| Value::host(item, &form.item)),
            List::Json(items) => items.get(index).map(|item| Ok(Value::json(item))),
            List::Owned(list) => list.items.get(index).cloned().map(Value::read),
            List::Lent(list) => list.items.get(index).map(|item| item.lend().read()),
        }
    }

    /// The item at `index`, which is below the length.
    pub(super) fn item(&self, index: usize) -> Result<Value<'a>, EvalError> {
        let none = || Err(EvalError::new(format!("index out of bounds: {index}")));
        match self {
            List::Host { items, form } => items.get(index).map_or_else(none, |item| Value::host(item, &form.item)),
            List::Json(items) => items.get(index).map_or_else(none, |item| Ok(Value::json(item))),
            List::Owned(list) => list.items.get(index).map_or_else(none, |item| item.clone().read()),
            List::Lent(list) => list.items.get(index).map_or_else(none, |item| item.lend().read()),
        }
    }

    /// The items in order, each as [`List::get`] returns it.
    pub fn iter(&self) -> impl Iterator<Item = Result<Value<'a>, EvalError>> + '_ {
        (0..self.len()).filter_map(|index| self.get(index))
    }

    /// The items in order, to make another list of: those that do not fit their schema are [`Value::Unfit`].
    pub fn values(&self) -> impl Iterator<Item = Value<'a>> + '_ {
        self.iter().map(Value::kept)
    }

    fn to_values(&self) -> Vec<Value<'a>> {
        work::steps(self.len());
        self.values().collect()
    }

    pub(super) fn lend(&'a self) -> List<'a> {
        match self {
            List::Owned(list) => List::Lent(list),
            other => other.clone(),
        }
    }

    /// The name of its Go type, which a few errors show.
    pub(super) fn go_type(&self) -> &'static str {
        match (self.kind(), self.is_host()) {
            (ListType::Atomic | ListType::Sum | ListType::Texts, true) => "*common.unstructuredList",
            (ListType::Set, true) => "*common.unstructuredSetList",
            (ListType::Map(_), true) => "*common.unstructuredMapList",
            (ListType::Atomic, false) => "*types.baseList",
            (ListType::Sum, false) => "*types.concatList",
            (ListType::Texts, false) => "*types.stringList",
            (ListType::Set, false) => "*common.refValSetList",
            (ListType::Map(_), false) => "*common.refValMapList",
        }
    }

    fn kind(&self) -> ListType<'a> {
        match self {
            List::Host { form, .. } => ListType::of(&form.kind),
            List::Json(_) => ListType::Atomic,
            List::Owned(list) => list.kind,
            List::Lent(list) => list.kind,
        }
    }

    fn into_values(self) -> Vec<Value<'a>> {
        match self {
            List::Owned(list) => {
                let copy = |shared: Arc<OwnedList<'a>>| {
                    work::steps(shared.items.len());
                    shared.items.clone()
                };
                Arc::try_unwrap(list).map_or_else(copy, |list| list.items)
            }
            other => other.to_values(),
        }
    }

    /// Evaluates `self + other`; the kind of `self` decides whether that is a concatenation, a union or a merge. A list
    /// that nothing else references is extended in place.
    ///
    /// # Errors
    /// Items of a set are not scalars, or there are more than [`SUM_ITEMS_MAX`].
    pub fn concat(self, other: &List<'a>) -> Result<List<'a>, EvalError> {
        let mut kind = self.kind();
        if matches!(kind, ListType::Atomic | ListType::Sum | ListType::Texts) && !self.is_host() {
            if self.is_empty() {
                return Ok(other.clone());
            }
            if other.is_empty() {
                return Ok(self);
            }
            kind = ListType::Sum;
        }
        let count = self.len().saturating_add(other.len());
        if count > SUM_ITEMS_MAX {
            return Err(too_many_items());
        }
        work::steps(other.len());
        let mut items = self.into_values();
        match kind {
            ListType::Atomic | ListType::Sum | ListType::Texts => items.extend(other.values()),
            ListType::Set => union(&mut items, other)?,
            ListType::Map(keys) => merge(&mut items, other, keys)?,
        }
        Ok(List::Owned(Arc::new(OwnedList { items, kind })))
    }

    /// Adds an item to a list that an expression is collecting.
    pub(super) fn push(self, item: Value<'a>) -> Result<List<'a>, EvalError> {
        let mut items = match self {
            List::Owned(mut list) => match Arc::get_mut(&mut list) {
                Some(own) => {
                    own.items.push(item);
                    return Ok(List::Owned(list));
                }
                None => list.items.clone(),
            },
            other => other.into_values(),
        };
        items.push(item);
        Ok(List::owned(items))
    }

    /// Whether an item equals `value`.
    ///
    /// # Errors
    /// No item equals it, and one of the host's could not be compared or read.
    pub fn contains(&self, value: &Value<'a>) -> Result<bool, EvalError> {
        if let (List::Host { .. }, Value::Unfit(error)) = (self, value) {
            return Err((**error).clone());
        }
        let (is_host, is_sum) = (self.is_host(), self.is_sum());
        let mut failed = None;
        for item in self.iter() {
            let is_unfit = item.is_err();
            match item.and_then(|item| if is_host { item.equals(value) } else { value.equals(&item) }) {
                Ok(true) => return Ok(true),
                // What does not fit in a sum comes from one of the host's lists.
                Err(error) if is_host || (is_sum && is_unfit) => {
                    failed.get_or_insert(error);
                }
                _ => {}
            }
        }
        failed.map_or(Ok(false), Err)
    }

    /// Whether the lists are equal, by the kind of `self`.
    ///
    /// # Errors
    /// Items cannot be compared, or do not fit their schema.
    pub fn equals(&self, other: &List<'a>) -> Result<bool, EvalError> {
        if self.len() != other.len() {
            return Ok(false);
        }
        match self.kind() {
            ListType::Atomic if self.is_host() => {
                for (item, its) in self.iter().zip(other.iter()) {
                    if !item?.equals(&its?)? {
                        return Ok(false);
                    }
                }
                Ok(true)
            }
            ListType::Atomic | ListType::Sum | ListType::Texts => {
                // Items that cannot be compared do not make literals differ.
                let differs = |(item, its): (Result<Value<'a>, EvalError>, Result<Value<'a>, EvalError>)| matches!((item, its), (Ok(item), Ok(its)) if item.is(&its) == Ok(false));
                Ok(!self.iter().zip(other.iter()).any(differs))
            }
            ListType::Set => self.same_set(other),
            ListType::Map(keys) => self.same_entries(other, keys),
        }
    }

    fn same_set(&self, other: &List<'a>) -> Result<bool, EvalError> {
        let items = self.to_values();
        let set = items.iter().map(ScalarKey::of).collect::<Result<HashSet<_>, _>>()?;
        let others = other.to_values();
        let mut seen = HashSet::with_capacity(others.len());
        for item in &others {
            let key = ScalarKey::of(item)?;
            if !set.contains(&key) {
                return Ok(false);
            }
            seen.insert(key);
        }
        Ok(seen.len() == set.len())
    }

    fn same_entries(&self, other: &List<'a>, keys: &ListKeys) -> Result<bool, EvalError> {
        let items = self.to_values();
        let others = other.to_values();
        let raw = matches!(self, List::Host { .. });
        let entries: HashMap<EntryKey<'_>, &Value<'a>> =
            items.iter().map(|item| (entry_key(item, keys, raw), item)).collect();
        let mut seen = HashSet::with_capacity(others.len());
        for item in &others {
            let key = entry_key(item, keys, raw);
            let Some(entry) = entries.get(&key) else { return Ok(false) };
            if !entry.equals(item)? {
                return Ok(false);
            }
            seen.insert(key);
        }
        Ok(seen.len() == entries.len())
    }
}

impl<'a> From<Vec<Value<'a>>> for List<'a> {
    fn from(items: Vec<Value<'a>>) -> Self {
        List::owned(items)
    }
}

fn union<'a>(items: &mut Vec<Value<'a>>, other: &List<'a>) -> Result<(), EvalError> {
    let others = other.to_values();
    let mut known = items.iter().map(ScalarKey::of).collect::<Result<HashSet<_>, _>>()?;
    let mut news = Vec::new();
    for item in &others {
        if known.insert(ScalarKey::of(item)?) {
            news.push(item.clone());
        }
    }
    items.extend(news);
    Ok(())
}

fn merge<'a>(items: &mut Vec<Value<'a>>, other: &List<'a>, keys: &ListKeys) -> Result<(), EvalError> {
    let others = other.to_values();
    let (mut replaced, mut news) = (Vec::new(), Vec::new());
    let places: HashMap<EntryKey<'_>, usize> =
        items.iter().enumerate().map(|(at, item)| (entry_key(item, keys, false), at)).collect();
    for item in &others {
        match places.get(&entry_key(item, keys, false)) {
            Some(at) => replaced.push((*at, item.clone())),
            None => news.push(item.clone()),
        }
    }
    for (at, item) in replaced {
        items[at] = item;
    }
    items.extend(news);
    Ok(())
}

const HOUR_SECONDS: i32 = 60 * 60;

/// Whether Go has one zone for all times with this offset. Other times get a zone each, and equal no other, as Go compares
/// zones by their addresses.
fn is_known_zone(offset_seconds: i32) -> bool {
    offset_seconds % HOUR_SECONDS == 0 && (-12..=14).contains(&(offset_seconds / HOUR_SECONDS))
}

/// A scalar that identifies items. Numbers of different types differ.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum ScalarKey<'v> {
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(u64),
    String(&'v str),
    Bytes(&'v [u8]),
    Duration(Duration),
    /// Its seconds, nanoseconds and the hours of its zone.
    Timestamp(i64, u32, i32),
    /// Equal to nothing but itself.
    Other(usize),
}

/// The values of the keys of an item.
type EntryKey<'v> = Vec<ScalarKey<'v>>;

impl<'v> ScalarKey<'v> {
    fn of(value: &'v Value<'_>) -> Result<ScalarKey<'v>, EvalError> {
        match value {
            Value::List(_) | Value::Map(_) => {
                Err(EvalError::new("listSet operations are only supported on lists of scalar values"))
            }
            scalar => Ok(ScalarKey::scalar(scalar)),
        }
    }

    fn scalar(value: &'v Value<'_>) -> ScalarKey<'v> {
        match value {
            Value::Null => ScalarKey::Null,
            Value::Bool(truth) => ScalarKey::Bool(*truth),
            Value::Int(number) => ScalarKey::Int(*number),
            Value::Uint(number) => ScalarKey::Uint(*number),
            Value::Double(number) => ScalarKey::double(*number),
            Value::String(text) => ScalarKey::String(text.as_str()),
            Value::Bytes(bytes) => ScalarKey::Bytes(bytes),
            Value::Duration(duration) => ScalarKey::Duration(*duration),
            Value::Timestamp(Timestamp { seconds, nanos, offset_seconds }) if is_known_zone(*offset_seconds) => {
                ScalarKey::Timestamp(*seconds, *nanos, *offset_seconds / HOUR_SECONDS)
            }
            other => ScalarKey::Other(std::ptr::from_ref(other).addr()),
        }
    }

    fn double(number: f64) -> ScalarKey<'v> {
        // Both zeros are the same.
        ScalarKey::Double((number + 0.0).to_bits())
    }

    fn raw(json: &'v Json) -> ScalarKey<'v> {
        match json {
            Json::Null => ScalarKey::Null,
            Json::Bool(truth) => ScalarKey::Bool(*truth),
            Json::Int(number) => ScalarKey::Int(*number),
            Json::Float(number) => ScalarKey::double(*number),
            Json::String(text) => ScalarKey::String(text),
            other @ (Json::Array(_) | Json::Object(_)) => ScalarKey::Other(std::ptr::from_ref(other).addr()),
        }
    }
}

/// The keys of `item`. If they are `raw`, they are the host's own, and items that an expression made have none.
fn entry_key<'v>(item: &'v Value<'_>, keys: &ListKeys, raw: bool) -> EntryKey<'v> {
    let Value::Map(map) = item else { return vec![ScalarKey::Other(std::ptr::from_ref(item).addr())] };
    match map {
        Map::Host { fields, .. } => {
            let keys = if raw { &keys.escaped } else { &keys.of_sums };
            keys.iter().map(|key| fields.get(key).map_or(ScalarKey::Null, ScalarKey::raw)).collect()
        }
        Map::Json(_) | Map::Owned(_) | Map::Lent(_) if raw => vec![ScalarKey::Other(std::ptr::from_ref(item).addr())],
        Map::Json(fields) => {
            keys.escaped.iter().map(|key| fields.get(key).map_or(ScalarKey::Null, ScalarKey::raw)).collect()
        }
        Map::Variables => Vec::new(),
        Map::Owned(entries) => {
            keys.escaped.iter().map(|key| entries.text_key(key).map_or(ScalarKey::Null, ScalarKey::scalar)).collect()
        }
        Map::Lent(entries) => {
            keys.escaped.iter().map(|key| entries.text_key(key).map_or(ScalarKey::Null, ScalarKey::scalar)).collect()
        }
    }
}
