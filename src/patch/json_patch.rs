//! JSON Patch.
//!
//! Source: RFC 6902, and answers recorded from Kubernetes 1.37, which is lenient: a replaced key may be missing, so may a
//! copied one and a value; a path needs no leading slash; indices may be negative.

use std::collections::BTreeMap;

use super::written::{Content, Node, StrictErrors, Written};
use super::{PatchError, text_of};
use crate::value::Value;

/// How many operations a patch may have.
pub const OPERATIONS_MAX: usize = 10_000;
/// How many bytes copies may add in sum, so that a small patch can't make a huge object.
pub const COPIED_BYTES_MAX: usize = 3 << 20;

/// A patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    text: String,
    operations: Vec<Operation>,
}

/// An operation; what is null or of a wrong type is missing, but for the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Operation {
    name: Option<String>,
    path: Option<String>,
    from: Option<String>,
    value: Option<Written>,
}

impl Patch {
    /// Reads a patch; with `strict`, types are checked, and it tells which fields of an operation are unknown or stand
    /// twice.
    pub fn decode(bytes: &[u8], strict: bool) -> Result<(Patch, Vec<String>), PatchError> {
        let text = text_of(bytes)?;
        let refuse = |what: &str, wanted: &str, loosely: &str| match strict {
            true => {
                Err(PatchError::decode(format_args!("json: cannot unmarshal {what} into Go value of type {wanted}")))
            }
            false => Err(PatchError::Decode(format!("json: cannot unmarshal {what} into Go value of type {loosely}"))),
        };
        let items = match Written::read(&text).content {
            Content::Null => Vec::new(),
            Content::Array(items) => items,
            other => return refuse(other.go_name(), "[]handlers.jsonPatchOp", "jsonpatch.Patch"),
        };
        let mut errors = StrictErrors::default();
        let mut operations = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let fields = match item.content {
                Content::Null => Vec::new(),
                Content::Object(fields) => fields,
                other => return refuse(other.go_name(), "handlers.jsonPatchOp", "jsonpatch.Operation"),
            };
            if strict {
                check_fields(&text, index, &fields, &mut errors)?;
            }
            operations.push(Operation::of(&text, fields));
        }
        if operations.len() > OPERATIONS_MAX {
            let count = operations.len();
            return Err(PatchError::TooManyOperations(format!(
                "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {count}"
            )));
        }
        let errors = errors.0.into_iter().map(|error| format!("json patch {error}")).collect();
        Ok((Patch { text, operations }, errors))
    }

    /// The text of `object` after all operations; none of them has happened if one fails.
    pub fn apply(&self, object: &Value) -> Result<String, PatchError> {
        let mut document = Node::live(object);
        let mut copied_bytes = 0;
        for operation in &self.operations {
            operation.apply(&self.text, &mut document, &mut copied_bytes).map_err(PatchError::Apply)?;
        }
        Ok(document.to_text())
    }
}

/// Checks the types of an operation's fields, and notes what a strict reader minds.
fn check_fields(
    text: &str,
    index: usize,
    fields: &[(String, Written)],
    errors: &mut StrictErrors,
) -> Result<(), PatchError> {
    let mut seen: Vec<&str> = Vec::new();
    for (name, field) in fields {
        let path = format!("[{index}].{name}");
        let fault = match (name.as_str(), &field.content) {
            ("value", _) => field.out_of_range(text).map(|number| (format!("number {number}"), "float64")),
            ("op" | "path" | "from", Content::String | Content::Null) => None,
            ("op" | "path" | "from", other) => Some((other.go_name().to_owned(), "string")),
            _ => {
                errors.note("unknown field", &path);
                continue;
            }
        };
        if let Some((what, wanted)) = fault {
            return Err(PatchError::decode(format_args!(
                "json: cannot unmarshal {what} into Go struct field jsonPatchOp.{name} of type {wanted}"
            )));
        }
        if seen.contains(&name.as_str()) {
            errors.note("duplicate field", &path);
        }
        seen.push(name);
        field.note_repeated(Some(&path), errors);
    }
    Ok(())
}

/// A key in a container.
enum Place<'n, 'p> {
    Field(&'n mut BTreeMap<String, Node<'p>>, String),
    Item(&'n mut Vec<Node<'p>>, String),
}

impl Operation {
    fn of(text: &str, fields: Vec<(String, Written)>) -> Self {
        let mut operation = Operation::default();
        for (name, field) in fields {
            match name.as_str() {
                "op" => operation.name = field.as_string(text),
                "path" => operation.path = field.as_string(text),
                "from" => operation.from = field.as_string(text),
                "value" => operation.value = Some(field),
                _ => {}
            }
        }
        operation
    }

    fn apply<'p>(&'p self, text: &'p str, document: &mut Node<'p>, copied_bytes: &mut usize) -> Result<(), String> {
        let path = self.path.as_deref().ok_or("the operation has no path");
        let from = self.from.as_deref().ok_or("the operation has no from");
        let value = self.value.as_ref().map(|value| Node::written(text, value));
        match self.name.as_deref().unwrap_or("unknown") {
            "add" => find(document, path?)?.add(value.unwrap_or(Node::Null)),
            "remove" => find(document, path?)?.remove().map(drop),
            "replace" if path == Ok("") => match value.map(Node::opened) {
                Some(whole @ (Node::Array(_) | Node::Object(_))) => {
                    *document = whole;
                    Ok(())
                }
                _ => Err("the value must be an object or array".to_owned()),
            },
            "replace" => find(document, path?)?.set(value.unwrap_or(Node::Null)),
            "move" => {
                let moved = find(document, from?)?.remove()?;
                find(document, path?)?.add(moved)
            }
            "copy" => {
                let copied = find(document, from?)?.get()?.cloned().unwrap_or(Node::Null);
                if !copied.is_null() {
                    *copied_bytes += copied.to_text().len();
                }
                let place = find(document, path?)?;
                if *copied_bytes > COPIED_BYTES_MAX {
                    return Err(format!("copies add more than {COPIED_BYTES_MAX} bytes"));
                }
                place.add(copied)
            }
            "test" => {
                let path = path?;
                let is_equal = match path {
                    "" => value.is_some_and(|value| document.equals(&value)),
                    _ => match (find(document, path)?.get()?, value) {
                        (None | Some(Node::Null), value) => value.is_none_or(|value| value.is_null()),
                        (Some(present), value) => value.is_some_and(|value| present.equals(&value)),
                    },
                };
                if is_equal { Ok(()) } else { Err(format!("testing value {path} failed")) }
            }
            other => Err(format!("unexpected kind: {other}")),
        }
    }
}

/// The container that `path` ends in, and its last key. What stands before the first slash is not looked at.
fn find<'n, 'p>(document: &'n mut Node<'p>, path: &str) -> Result<Place<'n, 'p>, String> {
    let missing = || format!("the object has no path {path}");
    let parts: Vec<&str> = path.split('/').collect();
    let [_, way @ .., key] = parts.as_slice() else { return Err(missing()) };
    let mut container = document;
    for part in way {
        let key = unescape(part);
        container = match container.open() {
            Node::Object(fields) => fields.get_mut(&key),
            Node::Array(items) => index(&key, items.len()).ok().and_then(|at| items.get_mut(at)),
            _ => None,
        }
        .ok_or_else(missing)?;
    }
    match container.open() {
        Node::Object(fields) => Ok(Place::Field(fields, unescape(key))),
        Node::Array(items) => Ok(Place::Item(items, unescape(key))),
        _ => Err(missing()),
    }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// An index within `length` items; a negative one counts from the end.
fn index(key: &str, length: usize) -> Result<usize, String> {
    let fault = || format!("no such index: {key}");
    let number: i64 = key.parse().map_err(|_| fault())?;
    let length = i64::try_from(length).map_err(|_| fault())?;
    let at = if number < 0 { number + length } else { number };
    usize::try_from(at).ok().filter(|_| at < length).ok_or_else(fault)
}

impl<'n, 'p> Place<'n, 'p> {
    fn get(&self) -> Result<Option<&Node<'p>>, String> {
        match self {
            Place::Field(fields, key) => Ok(fields.get(key)),
            Place::Item(items, key) => Ok(items.get(index(key, items.len())?)),
        }
    }

    fn set(self, value: Node<'p>) -> Result<(), String> {
        match self {
            Place::Field(fields, key) => {
                fields.insert(key, value);
            }
            Place::Item(items, key) => {
                let at = index(&key, items.len())?;
                items[at] = value;
            }
        }
        Ok(())
    }

    fn add(self, value: Node<'p>) -> Result<(), String> {
        match self {
            Place::Field(fields, key) => {
                fields.insert(key, value);
            }
            Place::Item(items, key) if key == "-" => items.push(value),
            Place::Item(items, key) => {
                // One more place than there are items: behind the last.
                let at = index(&key, items.len() + 1)?;
                items.insert(at, value);
            }
        }
        Ok(())
    }

    fn remove(self) -> Result<Node<'p>, String> {
        match self {
            Place::Field(fields, key) => fields.remove(&key).ok_or_else(|| format!("no such key: {key}")),
            Place::Item(items, key) => {
                let at = index(&key, items.len())?;
                Ok(items.remove(at))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::json;

    #[track_caller]
    fn check(object: &str, patch: &str, expect: Option<&str>) {
        let object = json::decode(object.as_bytes()).expect("the test is JSON");
        let (patch, _) = Patch::decode(patch.as_bytes(), true).expect("the test is a patch");
        assert_eq!(patch.apply(&object).ok().as_deref(), expect);
    }

    #[track_caller]
    fn check_error(patch: &str, strict: bool, error: &str) {
        assert_eq!(Patch::decode(patch.as_bytes(), strict), Err(PatchError::Decode(error.to_owned())));
    }

    #[test]
    fn operations_change_objects_and_arrays() {
        check(r#"{"a":[1,2]}"#, r#"[{"op":"add","path":"/a/-","value":3}]"#, Some(r#"{"a":[1,2,3]}"#));
        check(r#"{"a":[1,2]}"#, r#"[{"op":"add","path":"/a/-1","value":3}]"#, Some(r#"{"a":[1,2,3]}"#));
        check(r#"{"a":[1,2]}"#, r#"[{"op":"remove","path":"/a/-1"}]"#, Some(r#"{"a":[1]}"#));
        check(r#"{"a":1}"#, r#"[{"op":"move","from":"/a","path":"/b"}]"#, Some(r#"{"b":1}"#));
        check(r#"{"a/b":1}"#, r#"[{"op":"test","path":"/a~1b","value":1}]"#, Some(r#"{"a/b":1}"#));
        check(r#"{"a":1}"#, r#"[{"op":"replace","path":"","value":{"b":1}}]"#, Some(r#"{"b":1}"#));
        check(r#"{"a":1}"#, r#"[{"op":"add","path":"x/b","value":2}]"#, Some(r#"{"a":1,"b":2}"#));
    }

    #[test]
    fn what_is_missing_is_often_taken_as_null() {
        check("{}", r#"[{"op":"replace","path":"/a","value":1}]"#, Some(r#"{"a":1}"#));
        check("{}", r#"[{"op":"copy","from":"/x","path":"/a"}]"#, Some(r#"{"a":null}"#));
        check("{}", r#"[{"op":"test","path":"/a","value":null}]"#, Some("{}"));
        check("{}", r#"[{"op":"remove","path":"/a"}]"#, None);
        check("{}", r#"[{"op":"move","from":"/a","path":"/b"}]"#, None);
        check("{}", r#"[{"path":"/a","value":1}]"#, None);
        check(r#"{"a":null}"#, r#"[{"op":"add","path":"/a/b","value":1}]"#, None);
    }

    #[test]
    fn a_test_compares_how_scalars_are_written() {
        check(r#"{"a":1}"#, r#"[{"op":"test","path":"/a","value":1.0}]"#, None);
        check(
            r#"{"a":{"b":[1,"x"]}}"#,
            r#"[{"op":"test","path":"/a","value":{"b": [1, "x"]}}]"#,
            Some(r#"{"a":{"b":[1,"x"]}}"#),
        );
        check(r#"{"a":"x"}"#, r#"[{"op":"test","path":"/a","value":"\u0078"}]"#, None);
    }

    #[test]
    fn what_a_patch_adds_stays_as_it_is_written() {
        check(
            r#"{"a":"<"}"#,
            r#"[{"op":"add","path":"/b","value": { "z":1.0, "y": "<", "y": 2 }}]"#,
            Some(r#"{"a":"\u003c","b":{"z":1.0,"y":"\u003c","y":2}}"#),
        );
        check(
            "{}",
            r#"[{"op":"add","path":"/b","value":{"z":1,"y":2}},{"op":"add","path":"/b/x","value":3}]"#,
            Some(r#"{"b":{"x":3,"y":2,"z":1}}"#),
        );
    }

    #[test]
    fn unknown_and_repeated_fields_of_operations_are_told() {
        let patch = br#"[{"op":"add","extra":1,"path":"/a","value":{"b":1,"b":2},"value":2}]"#;
        let (_, errors) = Patch::decode(patch, true).expect("the test is a patch");
        let expected = [
            r#"json patch unknown field "[0].extra""#,
            r#"json patch duplicate field "[0].value.b""#,
            r#"json patch duplicate field "[0].value""#,
        ];
        assert_eq!(errors, expected);
    }

    #[test]
    fn what_is_no_patch_is_refused_in_the_words_of_go() {
        check_error(
            "{}",
            true,
            "error decoding patch: json: cannot unmarshal object into Go value of type []handlers.jsonPatchOp",
        );
        check_error("{}", false, "json: cannot unmarshal object into Go value of type jsonpatch.Patch");
        check_error("[1]", false, "json: cannot unmarshal number into Go value of type jsonpatch.Operation");
        check_error(
            r#"[{"op":1}]"#,
            true,
            "error decoding patch: json: cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
        );
    }
}
