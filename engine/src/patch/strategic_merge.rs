//! Strategic merge patch: a merge patch that knows which lists are merged, and by which key.
//!
//! Input: an object of a built-in kind, a patch, and the schema of the kind with its patch keys. Output: the patched
//! object, which is not validated yet. Directives in the patch: `$patch` (`replace`, `delete`), `$retainKeys`,
//! `$deleteFromPrimitiveList/FIELD`, `$setElementOrder/FIELD`.
//!
//! Source: Kubernetes documentation, "Strategic merge patch"; `k8s.io/apimachinery/pkg/util/strategicpatch`, 1.37.

mod left;
mod go_type;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, HashMap, HashSet};

use go_type::{GoType, Merging};

use super::PatchError;
use crate::types::Message;
use crate::value::{Key, Map, Value, go_print, go_type, json};
use crate::work;

const DIRECTIVE: &str = "$patch";
const RETAIN_KEYS: &str = "$retainKeys";
const DELETE_PREFIX: &str = "$deleteFromPrimitiveList";
const ORDER_PREFIX: &str = "$setElementOrder";

/// Why a patch was not applied.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MergeError {
    /// 400: a directive is malformed.
    Malformed(&'static str),
    /// 422: the patch can't be merged into any object.
    Unprocessable,
    /// 500: it does not fit this object. The text is the reference's.
    Failed(String),
}

const BAD_PRIMITIVE_LIST: MergeError = MergeError::Malformed("invalid patch format of primitive list");
const BAD_RETAIN_KEYS: MergeError = MergeError::Malformed("invalid patch format of retainKeys");
const BAD_ORDER: MergeError = MergeError::Malformed("invalid patch format of setElementOrder list");

/// A strategic merge patch.
#[derive(Clone, Debug, PartialEq)]
pub struct StrategicMergePatch(Map);

impl StrategicMergePatch {
    /// Reads a patch; with `strict`, also reports duplicate fields.
    ///
    /// # Errors
    ///
    /// It is not a JSON object.
    pub fn decode(bytes: &[u8], strict: bool) -> Result<(StrategicMergePatch, Vec<String>), PatchError> {
        let decoded =
            if strict { json::decode_strict(bytes) } else { json::decode(bytes).map(|value| (value, Vec::new())) };
        let (value, repeated) = decoded.map_err(|error| PatchError::Malformed(error.to_string()))?;
        let unfit = |found: &str| {
            let text = format!("json: cannot unmarshal {found} into Go value of type map[string]interface {{}}");
            Err(PatchError::Malformed(text))
        };
        match value {
            Value::Object(fields) => {
                Ok((StrategicMergePatch(fields), repeated.iter().map(ToString::to_string).collect()))
            }
            Value::Null => Ok((StrategicMergePatch(Map::new()), Vec::new())),
            Value::Bool(_) => unfit("bool"),
            Value::Int(_) | Value::Float(_) => unfit("number"),
            Value::String(_) => unfit("string"),
            Value::Array(_) => unfit("array"),
        }
    }

    /// Go's print of the patch after it was merged into `live`, for messages: its merge removes parts of the patch.
    pub fn printed(&self, live: &Value, message: &'static Message) -> String {
        go_print(&Value::Object(left::of(self.0.clone(), live, GoType::Struct(message))))
    }

    /// `live` with this patch merged into it. `message` is its type.
    ///
    /// # Errors
    ///
    /// A directive or a list that can't be merged.
    pub fn apply(&self, live: &Value, message: &'static Message) -> Result<Value, MergeError> {
        let live = live.as_object().cloned().unwrap_or_default();
        merge_fields(live, self.0.clone(), GoType::Struct(message)).map(Value::Object)
    }
}

/// Fields that are being merged: a tree, as fields are taken out and put back one by one.
type MergingFields = BTreeMap<Key, Value>;

fn merge_fields(original: Map, patch: Map, types: GoType) -> Result<Map, MergeError> {
    work::steps(original.len());
    let mut fields = original.into_iter().collect();
    merge_map(&mut fields, patch, types)?;
    Ok(fields.into_iter().collect())
}

fn merge_map(original: &mut MergingFields, patch: Map, types: GoType) -> Result<(), MergeError> {
    work::steps(patch.len());
    if let Some(directive) = patch.get(DIRECTIVE) {
        *original = match directive.as_str() {
            Some("replace") => patch.into_iter().filter(|(name, _)| name != DIRECTIVE).collect(),
            Some("delete") => MergingFields::new(),
            _ => return Err(unknown_directive(&directive.clone(), patch)),
        };
        return Ok(());
    }
    let mut patch: MergingFields = patch.into_iter().collect();
    retain_keys(original, &mut patch)?;
    merge_ordered(original, &mut patch, types)?;
    for (name, change) in patch {
        let deletes = name.starts_with(DELETE_PREFIX);
        let name = if deletes { without_prefix(&name, DELETE_PREFIX).ok_or(BAD_PRIMITIVE_LIST)?.into() } else { name };
        if change.is_null() {
            original.remove(&name);
            continue;
        }
        let merged = match (original.remove(&name), change) {
            (Some(Value::Object(present)), Value::Object(change)) => {
                let merging = types.field(&name)?;
                Some(Value::Object(match merging.strategy {
                    "replace" => change,
                    _ => merge_fields(present, change, merging.types)?,
                }))
            }
            (Some(Value::Array(present)), Value::Array(change)) => {
                let merging = types.list(&name)?;
                Some(Value::Array(if merging.strategy == "merge" || deletes {
                    merge_list(present, change, &merging, deletes)?
                } else {
                    change
                }))
            }
            // Deleting from an absent list does nothing.
            (present, change) if deletes => match (&present, &change) {
                (Some(present), change) if same_type(present, change) => without_directives(change.clone()),
                _ => present,
            },
            (_, change) => without_directives(without_nulls(change)),
        };
        if let Some(merged) = merged {
            original.insert(name, merged);
        }
    }
    Ok(())
}

/// `$retainKeys`: removes fields that are not named.
fn retain_keys(original: &mut MergingFields, patch: &mut MergingFields) -> Result<(), MergeError> {
    let Some(retained) = patch.remove(RETAIN_KEYS) else { return Ok(()) };
    let Value::Array(retained) = retained else { return Err(BAD_RETAIN_KEYS) };
    let retained: HashSet<&str> = retained.iter().filter_map(Value::as_str).collect();
    let is_directive = |name: &str| name.starts_with(DELETE_PREFIX) || name.starts_with(ORDER_PREFIX);
    if patch.iter().any(|(name, value)| !value.is_null() && !is_directive(name) && !retained.contains(name.as_str())) {
        return Err(BAD_RETAIN_KEYS);
    }
    original.retain(|name, _| retained.contains(name.as_str()));
    Ok(())
}

/// `$setElementOrder/FIELD`: the list is merged and brought into the order given.
fn merge_ordered(original: &mut MergingFields, patch: &mut MergingFields, types: GoType) -> Result<(), MergeError> {
    let directives: Vec<Key> = patch.keys().filter(|name| name.starts_with(ORDER_PREFIX)).cloned().collect();
    for directive in directives {
        let order = patch.remove(&directive).unwrap_or_default();
        let order = list_of(order)?;
        let name = without_prefix(&directive, ORDER_PREFIX).ok_or(BAD_ORDER)?;
        let present = original.get(name).cloned().map(list_of).transpose()?;
        let change = patch.get(name).cloned().map(list_of).transpose()?;
        let merging = types.list(name)?;
        check_order(change.as_deref().unwrap_or_default(), &order, merging.key)?;
        let merged = match (&present, &change) {
            (None, None) => continue,
            (Some(present), None) => present.clone(),
            (None, Some(change)) => change.iter().cloned().filter_map(without_directives).collect(),
            (Some(present), Some(change)) if merging.strategy == "merge" => {
                merge_list(present.clone(), change.clone(), &merging, false)?
            }
            (Some(_), Some(change)) => change.clone(),
        };
        let (present, change) = (present.unwrap_or_default(), change.unwrap_or_default());
        let (patched, rest) = partition(merged, &order, merging.key)?;
        let of_maps = element_type(&[&present, &change])? == ElementType::Map;
        let both = in_order(patched, rest, &order, &present, merging.key, of_maps)?;
        original.insert(name.into(), Value::Array(both));
        patch.remove(name);
    }
    Ok(())
}

/// The items of the patch must be in the order that the patch demands.
fn check_order(change: &[Value], order: &[Value], key: &str) -> Result<(), MergeError> {
    if change.is_empty() || order.is_empty() {
        return Ok(());
    }
    let mut ordered = order.iter();
    for item in change {
        let directive = if key.is_empty() { None } else { fields_of(item)?.get(DIRECTIVE) };
        // Items to be deleted have no position; others with a directive need a further position, but don't consume it.
        match directive {
            Some(directive) if directive.as_str() == Some("delete") || !ordered.as_slice().is_empty() => continue,
            _ => {}
        }
        let mut found = false;
        let wanted = if ordered.as_slice().is_empty() { String::new() } else { identity(item, key)? };
        for candidate in ordered.by_ref() {
            if identity(candidate, key)? == wanted {
                found = true;
                break;
            }
        }
        if !found {
            let text = format!(
                "The order in patch list:\n{}\n doesn't match {ORDER_PREFIX} list:\n{}\n",
                go_print(&Value::Array(change.to_vec())),
                go_print(&Value::Array(order.to_vec())),
            );
            return Err(MergeError::Failed(text));
        }
    }
    Ok(())
}

fn merge_list(
    original: Vec<Value>,
    patch: Vec<Value>,
    merging: &Merging,
    deletes: bool,
) -> Result<Vec<Value>, MergeError> {
    if original.is_empty() && patch.is_empty() {
        return Ok(original);
    }
    let key = merging.key;
    if element_type(&[&original, &patch])? == ElementType::Scalar {
        if deletes {
            let gone: HashSet<String> = patch.iter().map(json::encode_to_string).collect();
            return Ok(original.into_iter().filter(|item| !gone.contains(&json::encode_to_string(item))).collect());
        }
        let merged = deduplicate([original.clone(), patch.clone()].concat());
        let (patched, rest) = partition(merged, &patch, key)?;
        return in_order(patched, rest, &patch, &original, key, false);
    }
    if key.is_empty() {
        let items = merging.types.kind();
        return Err(MergeError::Failed(format!("cannot merge lists without merge key for {items}")));
    }
    let (original, patch) = apply_directives(original, patch, key)?;
    let count = original.len();
    let mut places = places_of(&original, key);
    let mut merged: Vec<Merged> = original.into_iter().map(Merged::Whole).collect();
    for item in &patch {
        let wanted = identity(item, key)?;
        match places.get(&wanted) {
            Some(&at) => merge_map(merged[at].open()?, fields_of(item)?.clone(), merging.types)?,
            None => {
                places.insert(wanted, merged.len());
                merged.push(Merged::Whole(item.clone()));
            }
        }
    }
    let merged: Vec<Value> = merged.into_iter().map(Merged::into_value).collect();
    let original = merged[..count].to_vec();
    let (patched, rest) = partition(merged, &patch, key)?;
    in_order(patched, rest, &patch, &original, key, true)
}

/// An item of a list that is being merged. A patch may have many items with the same key.
enum Merged {
    Whole(Value),
    Open(MergingFields),
}

impl Merged {
    fn open(&mut self) -> Result<&mut MergingFields, MergeError> {
        if let Merged::Whole(item) = self {
            fields_of(item)?;
            work::step();
            let fields = std::mem::take(item.make_object());
            *self = Merged::Open(fields.into_iter().collect());
        }
        match self {
            Merged::Open(fields) => Ok(fields),
            Merged::Whole(item) => Err(unexpected("map[string]interface {}", item)),
        }
    }

    fn into_value(self) -> Value {
        match self {
            Merged::Whole(item) => item,
            Merged::Open(fields) => Value::Object(fields.into_iter().collect()),
        }
    }
}

/// Applies the items with `$patch`, and returns the list and the patch without them.
fn apply_directives(
    original: Vec<Value>,
    patch: Vec<Value>,
    key: &str,
) -> Result<(Vec<Value>, Vec<Value>), MergeError> {
    let mut rest = Vec::with_capacity(patch.len());
    let mut replaces = false;
    let mut gone: HashSet<String> = HashSet::new();
    for item in patch {
        let fields = fields_of(&item)?;
        match fields.get(DIRECTIVE) {
            None => rest.push(item),
            Some(Value::String(directive)) if directive == "delete" => {
                gone.insert(identity(&item, key)?);
            }
            Some(Value::String(directive)) if directive == "replace" => replaces = true,
            Some(Value::String(directive)) if directive == "merge" => {
                return Err(MergeError::Failed("merging lists cannot yet be specified in the patch".to_owned()));
            }
            Some(directive) => return Err(unknown_directive(directive, fields.clone())),
        }
    }
    if replaces {
        return Ok((rest, Vec::new()));
    }
    let stays = |item: &Value| optional_identity(item, key).is_none_or(|identity| !gone.contains(&identity));
    Ok((original.into_iter().filter(stays).collect(), rest))
}

/// Splits the items into those that `by` has, too, and the others.
fn partition(items: Vec<Value>, by: &[Value], key: &str) -> Result<(Vec<Value>, Vec<Value>), MergeError> {
    if !key.is_empty() {
        // Every item must have the key.
        items.iter().try_for_each(|item| identity(item, key).map(drop))?;
    }
    let known = places_of(by, key);
    let is_known = |item: &Value| optional_identity(item, key).is_some_and(|identity| known.contains_key(&identity));
    Ok(items.into_iter().partition(is_known))
}

/// Merges both lists into one: the patch's items in the patch's order, the others in their own order, and both
/// interleaved by their old order.
fn in_order(
    patched: Vec<Value>,
    rest: Vec<Value>,
    patch_order: &[Value],
    present_order: &[Value],
    key: &str,
    of_maps: bool,
) -> Result<Vec<Value>, MergeError> {
    let present = places_of(present_order, if of_maps { key } else { "" });
    let place =
        |item: &Value| optional_identity(item, if of_maps { key } else { "" }).and_then(|item| present.get(&item));
    let placed = |items: Vec<Value>| items.into_iter().map(|item| (place(&item), item)).peekable();
    let mut patched = placed(sorted_by(patched, patch_order, key, of_maps)?);
    let mut rest = placed(sorted_by(rest, present_order, key, of_maps)?);
    let mut both = Vec::new();
    loop {
        let rest_is_first = match (rest.peek(), patched.peek()) {
            (None, None) => return Ok(both),
            (Some(_), None) => true,
            (None, Some(_)) => false,
            (Some((left, _)), Some((right, _))) => {
                matches!((left, right), (Some(left), Some(right)) if left < right)
            }
        };
        let next = if rest_is_first { rest.next() } else { patched.next() };
        both.extend(next.map(|(_, item)| item));
    }
}

/// `items` in the order of `order`; those that are to be deleted come last.
fn sorted_by(items: Vec<Value>, order: &[Value], key: &str, of_maps: bool) -> Result<Vec<Value>, MergeError> {
    let mut deleted = Vec::new();
    let mut kept = items;
    if of_maps {
        kept.iter().chain(order).try_for_each(|item| identity(item, key).map(drop))?;
        (deleted, kept) = kept.into_iter().partition(|item| item.str_at(&[DIRECTIVE]) == "delete");
    }
    let places = places_of(order, if of_maps { key } else { "" });
    let place =
        |item: &Value| optional_identity(item, if of_maps { key } else { "" }).and_then(|item| places.get(&item));
    let mut placed: Vec<(Option<usize>, Value)> = kept.into_iter().map(|item| (place(&item).copied(), item)).collect();
    if placed.len() <= SMALL_LIST && placed.iter().any(|(place, _)| place.is_none()) {
        sort_with_unplaced(&mut placed)
    } else {
        placed.sort_by_key(|(place, _)| *place)
    }
    Ok(placed.into_iter().map(|(_, item)| item).chain(deleted).collect())
}

/// Up to this length, Go uses insertion sort.
const SMALL_LIST: usize = 20;

/// The reference's order is inconsistent if an item has no position: each such item goes before its neighbour.
fn sort_with_unplaced(items: &mut [(Option<usize>, Value)]) {
    for last in 1..items.len() {
        for at in (1..=last).rev() {
            let goes_before = match (items[at].0, items[at - 1].0) {
                (Some(place), Some(before)) => place < before,
                _ => true,
            };
            if !goes_before {
                break;
            }
            items.swap(at, at - 1);
        }
    }
}

/// Removes duplicate items. The last item takes the position of a removed one, as in the reference.
fn deduplicate(items: Vec<Value>) -> Vec<Value> {
    let mut first: HashMap<String, usize> = HashMap::with_capacity(items.len());
    let mut kept = items;
    let mut at = 0;
    while at < kept.len() {
        let text = json::encode_to_string(&kept[at]);
        match first.get(&text) {
            Some(_) => _ = kept.swap_remove(at),
            None => {
                first.insert(text, at);
                at += 1;
            }
        }
    }
    kept
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ElementType {
    Map,
    Scalar,
}

/// The items of merged lists must all have one type.
fn element_type(lists: &[&[Value]]) -> Result<ElementType, MergeError> {
    let mut items = lists.iter().copied().flatten();
    let Some(first) = items.next() else {
        return Err(MergeError::Failed("no elements in any of the given slices".to_owned()));
    };
    if first.as_array().is_some() {
        return Err(MergeError::Unprocessable);
    }
    if items.any(|item| !same_type(first, item)) || first.is_null() {
        let shown: Vec<Value> = lists.iter().map(|list| Value::Array(list.to_vec())).collect();
        let text = format!("list element types are not identical: {}", go_print(&Value::Array(shown)));
        return Err(MergeError::Failed(text));
    }
    Ok(if first.as_object().is_some() { ElementType::Map } else { ElementType::Scalar })
}

fn same_type(left: &Value, right: &Value) -> bool {
    std::mem::discriminant(left) == std::mem::discriminant(right)
}

/// The first position of each item.
fn places_of(items: &[Value], key: &str) -> HashMap<String, usize> {
    let mut places = HashMap::with_capacity(items.len());
    for (at, item) in items.iter().enumerate() {
        if let Some(identity) = optional_identity(item, key) {
            places.entry(identity).or_insert(at);
        }
    }
    places
}

/// The identity of an item: the value of its key, or itself if there is no key.
fn optional_identity(item: &Value, key: &str) -> Option<String> {
    work::step();
    match key {
        "" => Some(json::encode_to_string(item)),
        key => item.as_object()?.get(key).map(json::encode_to_string),
    }
}

fn identity(item: &Value, key: &str) -> Result<String, MergeError> {
    if !key.is_empty() {
        fields_of(item)?;
    }
    optional_identity(item, key).ok_or_else(|| {
        MergeError::Failed(format!("map: {} does not contain declared merge key: {key}", go_print(item)))
    })
}

fn fields_of(item: &Value) -> Result<&Map, MergeError> {
    item.as_object().ok_or_else(|| unexpected("map[string]interface {}", item))
}

fn list_of(value: Value) -> Result<Vec<Value>, MergeError> {
    match value {
        Value::Array(items) => Ok(items),
        other => Err(unexpected("[]interface {}", &other)),
    }
}

fn unexpected(expected: &str, found: &Value) -> MergeError {
    let found = if found.is_null() { "%!s(<nil>)" } else { go_type(found) };
    MergeError::Failed(format!("expected a {expected}, but received a {found}"))
}

fn unknown_directive(directive: &Value, fields: Map) -> MergeError {
    let fields = go_print(&Value::Object(fields));
    // Go's print of a value that should be a text and is not.
    let printed = match directive {
        Value::Null => "%!s(<nil>)".to_owned(),
        Value::Bool(value) => format!("%!s(bool={value})"),
        Value::Int(number) => format!("%!s(int64={number})"),
        Value::Float(_) => format!("%!s(float64={})", go_print(directive)),
        other => go_print(other),
    };
    MergeError::Failed(format!("unknown patch type: {printed} in map: {fields}"))
}

/// The field after a directive's prefix: `$setElementOrder/FIELD`.
fn without_prefix<'n>(name: &'n str, prefix: &str) -> Option<&'n str> {
    name.strip_prefix(prefix)?.strip_prefix('/')
}

/// New values lose their nulls.
fn without_nulls(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, field)| !field.is_null());
            Value::Object(kept.map(|(name, field)| (name, without_nulls(field))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

/// New values lose their directives: a map that has one is removed as a whole.
fn without_directives(value: Value) -> Option<Value> {
    match value {
        Value::Object(fields) if fields.contains_key(DIRECTIVE) => None,
        Value::Object(fields) => {
            let kept = fields.into_iter().filter_map(|(name, field)| Some((name, without_directives(field)?)));
            Some(Value::Object(kept.collect()))
        }
        Value::Array(items) => Some(Value::Array(items.into_iter().filter_map(without_directives).collect())),
        other => Some(other),
    }
}
