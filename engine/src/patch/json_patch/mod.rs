//! JSON Patch.
//!
//! Source: RFC 6902, and answers recorded from Kubernetes 1.37, which is lenient: a replaced key may be missing, and so
//! may a copied one, and a value; a path needs no leading slash; indices may be negative.

use std::collections::{BTreeMap, HashSet};
use std::num::{IntErrorKind, ParseIntError};

use super::list::ChunkedList;
use super::written::{StrictErrors, WrittenContent, WrittenNode, WrittenValue};
use super::{PatchError, text_of};
use crate::value::json::Layout;
use crate::value::path_text::PathText;
use crate::value::{Value, go_quote};
use crate::work;

/// How many operations a patch may have.
pub const OPERATIONS_MAX: usize = 10_000;
/// How many bytes copies may add in sum, so that a small patch can't make a huge object.
pub const COPIED_BYTES_MAX: usize = 3 << 20;
/// DIFFERS: how many values copies may add in sum. Small ones take far more memory than their text.
pub const COPIED_VALUES_MAX: usize = 1 << 16;

/// The total of a patch's copies so far.
#[derive(Default)]
struct Copied {
    bytes: usize,
    values: usize,
}

impl Copied {
    fn add(&mut self, text: &str) {
        self.bytes += text.len();
        self.values += values_in(text);
    }

    /// Errors: the limit for copies is exceeded.
    fn check(&self) -> Result<(), OperationFailure> {
        let (what, sum, limit) = match self {
            Copied { bytes, .. } if *bytes > COPIED_BYTES_MAX => ("size increase of copy", *bytes, COPIED_BYTES_MAX),
            Copied { values, .. } if *values > COPIED_VALUES_MAX => {
                ("number of copied values", *values, COPIED_VALUES_MAX)
            }
            _ => return Ok(()),
        };
        let why = format!("Unable to complete the copy, the accumulated {what} is {sum}, exceeding the limit {limit}");
        Err(OperationFailure::Other(why))
    }
}

/// About how many values a JSON text has: one per separator, and one per container.
fn values_in(text: &str) -> usize {
    let (mut values, mut in_string, mut is_escaped) = (1, false, false);
    for byte in text.bytes() {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = true,
            b'"' => in_string = !in_string,
            b',' | b'{' | b'[' if !in_string => values += 1,
            _ => {}
        }
    }
    values
}

/// A patch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Patch {
    text: String,
    operations: Vec<JsonPatchOperation>,
}

/// An operation; a field that is null or of a wrong type counts as missing, except for the value.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct JsonPatchOperation {
    name: Option<String>,
    path: Option<String>,
    from: Option<String>,
    value: Option<WrittenNode>,
}

impl Patch {
    /// Reads a patch; with `strict`, also checks types and reports unknown and duplicate fields of operations.
    ///
    /// # Errors
    ///
    /// The patch is not a list of operations.
    pub fn decode(bytes: &[u8], strict: bool) -> Result<(Patch, Vec<String>), PatchError> {
        let text = text_of(bytes)?;
        let refuse = |what: &str, wanted: &str, loosely: &str| {
            if strict {
                Err(PatchError::decode(format_args!("json: cannot unmarshal {what} into Go value of type {wanted}")))
            } else {
                Err(PatchError::Malformed(format!("json: cannot unmarshal {what} into Go value of type {loosely}")))
            }
        };
        let items = match WrittenNode::read(&text).content {
            WrittenContent::Null => Vec::new(),
            WrittenContent::Array(items) => items,
            other => return refuse(other.go_name(), "[]handlers.jsonPatchOp", "jsonpatch.Patch"),
        };
        let mut errors = StrictErrors::default();
        let mut operations = Vec::with_capacity(items.len());
        for (index, item) in items.into_iter().enumerate() {
            let fields = match item.content {
                WrittenContent::Null => Vec::new(),
                WrittenContent::Object(fields) => fields,
                other => return refuse(other.go_name(), "handlers.jsonPatchOp", "jsonpatch.Operation"),
            };
            if strict {
                check_fields(&text, index, &fields, &mut errors)?;
            }
            operations.push(JsonPatchOperation::of(&text, fields));
        }
        if operations.len() > OPERATIONS_MAX {
            let count = operations.len();
            return Err(PatchError::TooManyOperations(format!(
                "The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {count}"
            )));
        }
        let errors = errors.texts.into_iter().map(|error| format!("json patch {error}")).collect();
        Ok((Patch { text, operations }, errors))
    }

    /// Whether it has no operations.
    pub fn is_empty(&self) -> bool {
        self.operations.is_empty()
    }

    /// The text of `object` after all operations; if one fails, none of them takes effect. `layout` is the object's,
    /// and shows in parts that no operation touches.
    ///
    /// # Errors
    ///
    /// An operation that fails, in Go's words.
    pub fn apply(&self, object: &Value, layout: Layout) -> Result<String, PatchError> {
        let mut document = WrittenValue::live(object, layout);
        let mut copied = Copied::default();
        for operation in &self.operations {
            work::step();
            operation.apply(&self.text, &mut document, &mut copied)?;
        }
        Ok(document.to_text())
    }
}

/// Checks the types of an operation's fields, and records strict errors.
fn check_fields(
    text: &str,
    index: usize,
    fields: &[(String, WrittenNode)],
    errors: &mut StrictErrors,
) -> Result<(), PatchError> {
    let mut seen: HashSet<&str> = HashSet::new();
    errors.path = PathText::default();
    errors.path.push_index(index);
    let end = errors.path.end();
    for (name, field) in fields {
        errors.path.truncate(end);
        errors.path.push_field(name);
        let fault = match (name.as_str(), &field.content) {
            ("value", _) => field.out_of_range(text).map(|number| (format!("number {number}"), "float64")),
            ("op" | "path" | "from", WrittenContent::String | WrittenContent::Null) => None,
            ("op" | "path" | "from", other) => Some((other.go_name().to_owned(), "string")),
            _ => {
                errors.note("unknown field");
                continue;
            }
        };
        if let Some((what, wanted)) = fault {
            return Err(PatchError::decode(format_args!(
                "json: cannot unmarshal {what} into Go struct field jsonPatchOp.{name} of type {wanted}"
            )));
        }
        if !seen.insert(name.as_str()) {
            errors.note("duplicate field");
        }
        field.note_repeated(false, errors);
    }
    Ok(())
}

/// Why an operation was not applied.
enum OperationFailure {
    Test(String),
    Other(String),
}

impl From<OperationError> for OperationFailure {
    fn from(error: OperationError) -> Self {
        OperationFailure::Other(error.to_string())
    }
}

impl From<OperationFailure> for PatchError {
    fn from(failure: OperationFailure) -> Self {
        match failure {
            OperationFailure::Test(why) => PatchError::Test(why),
            OperationFailure::Other(why) => PatchError::Apply(why),
        }
    }
}

/// A key in a container.
enum ContainerKey<'n, 'p> {
    Field(&'n mut BTreeMap<String, WrittenValue<'p>>, String),
    Item(&'n mut ChunkedList<WrittenValue<'p>>, String),
}

impl JsonPatchOperation {
    fn of(text: &str, fields: Vec<(String, WrittenNode)>) -> Self {
        let mut operation = JsonPatchOperation::default();
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

    fn path(&self, name: &'static str) -> Result<&str, OperationError> {
        self.path.as_deref().ok_or(OperationError::NoPath(name))
    }

    fn from(&self, name: &'static str) -> Result<&str, OperationError> {
        self.from.as_deref().ok_or(OperationError::NoFrom(name))
    }

    fn apply<'p>(
        &'p self,
        text: &'p str,
        document: &mut WrittenValue<'p>,
        copied: &mut Copied,
    ) -> Result<(), OperationFailure> {
        let value = || self.value.as_ref().map(|value| WrittenValue::written(text, value));
        let or_null = || value().unwrap_or(WrittenValue::Null);
        match self.name.as_deref().unwrap_or("unknown") {
            "add" => {
                let path = self.path("add")?;
                let place = find(document, path).ok_or_else(|| unreachable("add", "doc is", "path", &quoted(path)))?;
                Ok(place.add(or_null()).map_err(failed("add", "path", path))?)
            }
            "remove" => {
                let path = self.path("remove")?;
                let place =
                    find(document, path).ok_or_else(|| unreachable("remove", "doc is", "path", &quoted(path)))?;
                Ok(place.remove().map(drop).map_err(failed("remove", "path", path))?)
            }
            "replace" => Ok(self.replace(value(), document)?),
            "move" => self.move_value(document),
            "copy" => self.copy(document, copied),
            "test" => self.test(value(), document),
            other => Err(OperationFailure::Other(format!("Unexpected kind: {other}"))),
        }
    }

    fn move_value<'p>(&'p self, document: &mut WrittenValue<'p>) -> Result<(), OperationFailure> {
        let from = self.from("move")?;
        let place = find(document, from).ok_or_else(|| unreachable("move", "doc is", "from path", from))?;
        let key = place.key().to_owned();
        let moved = place.remove().map_err(failed("move", "path", &key))?;
        let path = self.path("move")?;
        let place = find(document, path).ok_or_else(|| unreachable("move", "doc is", "destination path", path))?;
        Ok(place.add(moved).map_err(failed("move", "path", path))?)
    }

    fn copy<'p>(&'p self, document: &mut WrittenValue<'p>, copied: &mut Copied) -> Result<(), OperationFailure> {
        let from = self.from("copy")?;
        let place = find(document, from).ok_or_else(|| unreachable("copy", "doc is", "from path", from))?;
        place.get().map_err(failed("copy", "from", from))?;
        let path = self.path("copy")?;
        let unreachable_path = || unreachable("copy", "doc is", "destination path", path);
        // What lies on this way is copied with its fields sorted, as Go writes what it has read.
        find(document, path).ok_or_else(unreachable_path)?;
        let place = find(document, from).ok_or_else(unreachable_path)?;
        let value = place.get().map_err(failed("copy", "from", from))?.cloned().unwrap_or(WrittenValue::Null);
        if !value.is_null() {
            copied.add(&value.to_text());
        }
        copied.check()?;
        let place = find(document, path).ok_or_else(unreachable_path)?;
        Ok(place.add(value).map_err(OperationError::Copied)?)
    }

    fn test<'p>(
        &'p self,
        value: Option<WrittenValue<'p>>,
        document: &mut WrittenValue<'p>,
    ) -> Result<(), OperationFailure> {
        let path = self.path("test")?;
        let is_equal = match path {
            "" => value.is_some_and(|value| document.equals(&value)),
            _ => {
                let place = find(document, path).ok_or_else(|| unreachable("test", "is", "path", path))?;
                let present = place.get().map_err(failed("test", "path", path))?;
                match (present, value) {
                    (None | Some(WrittenValue::Null), value) => value.is_none_or(|value| value.is_null()),
                    (Some(present), value) => value.is_some_and(|value| present.equals(&value)),
                }
            }
        };
        if is_equal { Ok(()) } else { Err(OperationFailure::Test(format!("testing value {path} failed: test failed"))) }
    }

    fn replace<'p>(
        &'p self,
        value: Option<WrittenValue<'p>>,
        document: &mut WrittenValue<'p>,
    ) -> Result<(), OperationError> {
        let path = self.path("replace")?;
        if path.is_empty() {
            return match value.map(WrittenValue::opened) {
                Some(whole @ (WrittenValue::Array(_) | WrittenValue::Object(_))) => {
                    *document = whole;
                    Ok(())
                }
                _ => Err(OperationError::Scalar),
            };
        }
        let place = find(document, path).ok_or_else(|| unreachable("replace", "doc is", "path", path))?;
        if place.get().is_err() {
            return Err(unreachable("replace", "doc is", "key", path));
        }
        place.set(value.unwrap_or(WrittenValue::Null)).map_err(failed("remove", "path", path))
    }
}

/// Go's text for a missing value.
const MISSING: &str = "missing value";

/// Why an operation does not apply, in Go's words.
#[derive(Debug, thiserror::Error)]
enum OperationError {
    #[error("{0} operation failed to decode path: {without}{MISSING}", without = without_path(.0))]
    NoPath(&'static str),
    #[error("{0} operation failed to decode from: operation, missing from field: {MISSING}")]
    NoFrom(&'static str),
    #[error("{operation} operation does not apply: {what} missing {missing}: {path}: {MISSING}")]
    Unreachable { operation: &'static str, what: &'static str, missing: &'static str, path: String },
    #[error("error in {operation} for {field}: '{path}': {source}")]
    Failed { operation: &'static str, field: &'static str, path: String, source: PlaceError },
    #[error("error while adding value during copy: {0}")]
    Copied(#[source] PlaceError),
    #[error("replace operation value must be object or array: %!w(<nil>)")]
    Scalar,
}

/// The suffix of some operations' messages if they have no path.
fn without_path(operation: &str) -> &'static str {
    match operation {
        "add" | "remove" | "copy" => "",
        _ => "operation missing path field: ",
    }
}

/// Why a position can't be read or written, in Go's words.
#[derive(Debug, thiserror::Error)]
enum PlaceError {
    #[error(transparent)]
    Index(#[from] IndexError),
    #[error("value was not a proper array index: '{key}': {source}")]
    NotIndex { key: String, source: IndexError },
    #[error("Unable to access invalid index: {0}: invalid index referenced")]
    Outside(i64),
    #[error("Unable to remove nonexistent key: {0}: {MISSING}")]
    Nonexistent(String),
}

/// A text that Go's `strconv.Atoi` refuses.
#[derive(Debug, thiserror::Error)]
#[error("strconv.Atoi: parsing {text}: {why}", text = go_quote(text))]
struct IndexError {
    text: String,
    why: &'static str,
}

fn unreachable(operation: &'static str, what: &'static str, missing: &'static str, path: &str) -> OperationError {
    OperationError::Unreachable { operation, what, missing, path: path.to_owned() }
}

fn failed(operation: &'static str, field: &'static str, path: &str) -> impl FnOnce(PlaceError) -> OperationError {
    move |source| OperationError::Failed { operation, field, path: path.to_owned(), source }
}

fn quoted(path: &str) -> String {
    format!("\"{path}\"")
}

/// The container that `path` ends in, and its last key. Anything before the first slash is ignored.
fn find<'n, 'p>(document: &'n mut WrittenValue<'p>, path: &str) -> Option<ContainerKey<'n, 'p>> {
    let parts: Vec<&str> = path.split('/').collect();
    let [_, way @ .., key] = parts.as_slice() else { return None };
    let mut container = document;
    for part in way {
        let key = unescape(part);
        container = match container.open() {
            WrittenValue::Object(fields) => fields.get_mut(&key),
            WrittenValue::Array(items) => index(&key, items.len()).ok().and_then(|at| items.get_mut(at)),
            _ => None,
        }?;
    }
    match container.open() {
        WrittenValue::Object(fields) => Some(ContainerKey::Field(fields, unescape(key))),
        WrittenValue::Array(items) => Some(ContainerKey::Item(items, unescape(key))),
        _ => None,
    }
}

fn unescape(part: &str) -> String {
    part.replace("~1", "/").replace("~0", "~")
}

/// An index into `length` items; a negative one counts from the end.
fn index(key: &str, length: usize) -> Result<usize, PlaceError> {
    let number: i64 = parse_index(key)?;
    let invalid = || PlaceError::Outside(number);
    let length = i64::try_from(length).map_err(|_| invalid())?;
    let at = if number < 0 { number + length } else { number };
    usize::try_from(at).ok().filter(|_| at < length).ok_or_else(invalid)
}

/// Go's `strconv.Atoi`.
fn parse_index(key: &str) -> Result<i64, IndexError> {
    key.parse().map_err(|error: ParseIntError| {
        let why = match error.kind() {
            IntErrorKind::PosOverflow | IntErrorKind::NegOverflow => "value out of range",
            _ => "invalid syntax",
        };
        IndexError { text: key.to_owned(), why }
    })
}

impl<'n, 'p> ContainerKey<'n, 'p> {
    fn key(&self) -> &str {
        match self {
            ContainerKey::Field(_, key) | ContainerKey::Item(_, key) => key,
        }
    }

    fn get(&self) -> Result<Option<&WrittenValue<'p>>, PlaceError> {
        match self {
            ContainerKey::Field(fields, key) => Ok(fields.get(key)),
            ContainerKey::Item(items, key) => Ok(items.get(index(key, items.len())?)),
        }
    }

    fn set(self, value: WrittenValue<'p>) -> Result<(), PlaceError> {
        match self {
            ContainerKey::Field(fields, key) => {
                fields.insert(key, value);
            }
            ContainerKey::Item(items, key) => {
                let at = index(&key, items.len())?;
                if let Some(item) = items.get_mut(at) {
                    *item = value;
                }
            }
        }
        Ok(())
    }

    fn add(self, value: WrittenValue<'p>) -> Result<(), PlaceError> {
        match self {
            ContainerKey::Field(fields, key) => {
                fields.insert(key, value);
            }
            ContainerKey::Item(items, key) if key == "-" => items.push(value),
            ContainerKey::Item(items, key) => {
                parse_index(&key).map_err(|source| PlaceError::NotIndex { key: key.clone(), source })?;
                // One position more than there are items: after the last.
                let at = index(&key, items.len() + 1)?;
                items.insert(at, value);
            }
        }
        Ok(())
    }

    fn remove(self) -> Result<WrittenValue<'p>, PlaceError> {
        match self {
            ContainerKey::Field(fields, key) => fields.remove(&key).ok_or(PlaceError::Nonexistent(key)),
            ContainerKey::Item(items, key) => {
                let at = index(&key, items.len())?;
                Ok(items.remove(at).unwrap_or(WrittenValue::Null))
            }
        }
    }
}

#[cfg(test)]
mod tests;
