//! JSON Merge Patch.
//!
//! Source: RFC 7386; answers recorded from Kubernetes 1.37, which keeps nulls in arrays.

use super::written::{StrictErrors, WrittenContent, WrittenNode, WrittenValue};
use super::{PatchError, text_of};
use crate::value::json::{self, Layout};
use crate::value::{Key, Map, Value};
use crate::work;

/// A merge patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MergePatch {
    text: String,
    written: WrittenNode,
}

impl MergePatch {
    /// Reads a patch; with `strict`, also reports duplicate fields.
    ///
    /// # Errors
    ///
    /// It is not a JSON object.
    pub fn decode(bytes: &[u8], strict: bool) -> Result<(MergePatch, Vec<String>), PatchError> {
        let text = text_of(bytes)?;
        let written = WrittenNode::read(&text);
        let mut errors = StrictErrors::default();
        if strict {
            let of_type = |kind: &str| format!("into Go value of type {kind}");
            let fault = match &written.content {
                WrittenContent::Object(_) => {
                    written.out_of_range(&text).map(|number| format!("number {number} {}", of_type("float64")))
                }
                WrittenContent::Null => None,
                other => Some(format!("{} {}", other.go_name(), of_type("map[string]interface {}"))),
            };
            if let Some(fault) = fault {
                return Err(PatchError::decode(format_args!("json: cannot unmarshal {fault}")));
            }
            written.note_repeated(true, &mut errors);
        }
        match written.content {
            WrittenContent::Object(_) | WrittenContent::Array(_) => Ok((MergePatch { text, written }, errors.texts)),
            _ => Err(PatchError::Malformed("Invalid JSON Patch".to_owned())),
        }
    }

    /// The text of `target` with this patch merged into it. If the patch is a list, it replaces the target. `layout` is
    /// the target's, and shows in unchanged parts.
    pub fn apply(&self, target: &Value, layout: Layout) -> String {
        let patch = WrittenValue::written(&self.text, &self.written);
        match self.written.content {
            WrittenContent::Object(_) => merge(WrittenValue::live(target, layout), patch).to_text(),
            _ => without_nulls(patch).to_text(),
        }
    }
}

/// The result of [`MergePatch::apply`] of the patch in `bytes` to `target`, as a value. `None` if its text has details
/// that a value lacks: fractional numbers and duplicate fields.
pub fn merged(target: &Value, bytes: &[u8]) -> Option<Value> {
    str::from_utf8(bytes).ok()?;
    let (patch, repeated) = json::decode_strict(bytes).ok()?;
    let is_plain = repeated.is_empty() && patch.as_object().is_some() && !has_doubles(&patch);
    is_plain.then(|| merge_values(target, patch))
}

fn has_doubles(value: &Value) -> bool {
    work::step();
    match value {
        Value::Float(_) => true,
        Value::Array(items) => items.iter().any(has_doubles),
        Value::Object(fields) => fields.values().any(has_doubles),
        _ => false,
    }
}

/// As [`merge`], on values.
fn merge_values(target: &Value, patch: Value) -> Value {
    let Value::Object(present) = target else { return value_without_nulls(patch) };
    let changes = match patch {
        Value::Object(changes) => changes,
        other => return other,
    };
    let mut merged = Vec::with_capacity(present.len() + changes.len());
    let mut present = present.iter().peekable();
    let copied = |(name, value): (&str, &Value)| (Key::new(name), value.clone());
    for (name, change) in changes {
        work::step();
        while let Some(field) = present.next_if(|(before, _)| *before < name.as_str()) {
            merged.push(copied(field));
        }
        let same = present.next_if(|(same, _)| *same == name.as_str());
        match (same, change) {
            (_, Value::Null) => {}
            (None | Some((_, Value::Null)), change) => merged.push((name, value_without_nulls(change))),
            (Some((_, value)), change) => merged.push((name, merge_values(value, change))),
        }
    }
    merged.extend(present.map(copied));
    Value::Object(Map::from_fields(merged))
}

fn value_without_nulls(value: Value) -> Value {
    work::step();
    match value {
        Value::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, field)| !field.is_null());
            Value::Object(kept.map(|(name, field)| (name, value_without_nulls(field))).collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(value_without_nulls).collect()),
        other => other,
    }
}

/// `target` with `patch` merged into it; neither is null.
fn merge<'p>(target: WrittenValue<'p>, patch: WrittenValue<'p>) -> WrittenValue<'p> {
    let WrittenValue::Object(mut fields) = target.opened() else { return without_nulls(patch) };
    let changes = match patch.opened() {
        WrittenValue::Object(changes) => changes,
        other => return other,
    };
    for (name, change) in changes {
        work::step();
        if change.is_null() {
            fields.remove(&name);
            continue;
        }
        let merged = match fields.remove(&name) {
            None | Some(WrittenValue::Null) => without_nulls(change),
            Some(present) => merge(present, change),
        };
        fields.insert(name, merged);
    }
    WrittenValue::Object(fields)
}

/// New values lose their nulls, except for those in lists.
fn without_nulls(patch: WrittenValue<'_>) -> WrittenValue<'_> {
    work::step();
    match patch.opened() {
        WrittenValue::Object(fields) => {
            let kept = fields.into_iter().filter(|(_, field)| !field.is_null());
            WrittenValue::Object(kept.map(|(name, field)| (name, without_nulls(field))).collect())
        }
        WrittenValue::Array(items) => WrittenValue::Array(items.into_iter().map(without_nulls).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::value::arbitrary;

    #[track_caller]
    fn check(target: &str, patch: &str, expect: &str) {
        let target = json::decode(target.as_bytes()).expect("the test is JSON");
        let (patch, _) = MergePatch::decode(patch.as_bytes(), true).expect("the test is a patch");
        assert_eq!(patch.apply(&target, Layout::Sorted), expect);
    }

    proptest! {
        #[test]
        fn values_merge_as_texts_do(target in arbitrary::value(), patch in arbitrary::value()) {
            // Like stored objects when they are read: whole numbers are integers.
            let target = json::decode(&json::encode(&target)).expect("it is JSON");
            let bytes = json::encode(&patch);
            if let Some(merged) = merged(&target, &bytes) {
                let (patch, _) = MergePatch::decode(&bytes, true).expect("it is an object");
                let text = patch.apply(&target, Layout::Sorted);
                prop_assert_eq!(json::decode(text.as_bytes()), Ok(merged));
            }
        }
    }

    #[test]
    fn what_only_a_text_says_is_merged_as_text() {
        let target = json::decode(br#"{"a":1}"#).expect("it is JSON");
        for patch in [r#"{"a":1.5}"#, r#"{"a":[{"b":1e3}]}"#, r#"{"a":1,"a":2}"#, "[]", "null", "{"] {
            assert_eq!(merged(&target, patch.as_bytes()), None, "{patch}");
        }
    }

    #[track_caller]
    fn check_error(patch: &str, strict: bool, error: &str) {
        let found = MergePatch::decode(patch.as_bytes(), strict).map_err(|error| error.to_string());
        assert_eq!(found, Err(error.to_owned()));
    }

    #[test]
    fn null_removes_and_objects_merge() {
        check(r#"{"a":{"x":1,"y":2}}"#, r#"{"a":{"x":null,"z":3}}"#, r#"{"a":{"y":2,"z":3}}"#);
        check(r#"{"a":null}"#, r#"{"a":{"x":null,"z":3}}"#, r#"{"a":{"z":3}}"#);
    }

    #[test]
    fn nulls_stay_in_lists_alone() {
        check(r#"{"l":["c"]}"#, r#"{"l":[null,{"a":null}]}"#, r#"{"l":[null,{}]}"#);
        check(r#"{"m":"text"}"#, r#"{"m":{"deep":{"gone":null,"kept":1}}}"#, r#"{"m":{"deep":{"kept":1}}}"#);
    }

    #[test]
    fn a_list_in_place_of_an_object_stays_as_it_is_written() {
        check(r#"{"m":{}}"#, r#"{"m": [ {"b":1.0,"a":null} ]}"#, r#"{"m":[{"b":1.0,"a":null}]}"#);
    }

    #[test]
    fn repeated_fields_are_told() {
        let (_, errors) = MergePatch::decode(br#"{"a":[{"b":1,"b":2}],"a":1}"#, true).expect("the test is a patch");
        assert_eq!(errors, [r#"duplicate field "a[0].b""#, r#"duplicate field "a""#]);
    }

    #[test]
    fn only_objects_merge() {
        check_error(
            "[1]",
            true,
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
        );
        check_error(
            r#"{"a":1e400}"#,
            true,
            "error decoding patch: json: cannot unmarshal number 1e400 into Go value of type float64",
        );
        check_error("null", true, "Invalid JSON Patch");
        check_error("1", false, "Invalid JSON Patch");
    }
}
