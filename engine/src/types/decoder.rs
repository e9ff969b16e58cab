//! Decoding of a [`Value`] into typed fields, as Go's `encoding/json` does it for structs.
//!
//! Input: a value and the fields of each type. Output: the fields, the paths of unknown ones, or Go's own error text. A
//! value of the wrong type does not stop the decoding; the first such error is reported at the end. `null` leaves a
//! field as it was. The paths of unknown fields and of values that Go keeps raw are recorded, for strict decoding.
//!
//! Source: `sigs.k8s.io/json`, answers recorded from apiextensions-apiserver 1.37.

use std::fmt::{Display, Write};

use crate::meta::minor::Minor;
use crate::meta::unmarshal::UnmarshalError;
use crate::value::{Key, Map, Value, json};
use crate::work;

/// The most bytes of unknown paths recorded for a value, and of the paths of empty lists and maps: in deeply nested
/// values, the paths are longer than the value. At most a hundred unknown fields are reported in any case.
const PATHS_BYTES_MAX: usize = 32 << 20;

/// An error that ends decoding at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stop(pub UnmarshalError);

impl Stop {
    /// The error of a type that decodes itself, in its own words.
    pub fn other(text: impl Into<String>) -> Self {
        Stop(UnmarshalError::Other(text.into()))
    }
}

/// The most errors recorded for a value; Go reports one of them, and which one depends on the order of the text.
const FAULTS_MAX: usize = 64;

/// An error, and where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldDecodeError {
    /// `spec.versions[0].name`.
    pub path: String,
    /// What Go's decoder says.
    pub error: UnmarshalError,
    /// Whether Go stops reading there, as the type decodes itself: then this error takes precedence over all others.
    pub stops: bool,
}

/// A decoding in progress: its position and its findings so far.
#[derive(Debug, Default)]
pub struct TypedDecoder<'v> {
    /// The version of Kubernetes that the types are from.
    minor: Minor,
    steps: Vec<PathSegment<'v>>,
    struct_name: &'v str,
    /// Inside a type that decodes itself, the struct that it is a field of: Go's errors name that one.
    frozen: Option<&'v str>,
    saved: Option<UnmarshalError>,
    faults: Vec<FieldDecodeError>,
    unknown: Vec<String>,
    opaque: Vec<String>,
    empty: Vec<Empty>,
    /// The bytes of the paths in `unknown` and `opaque`.
    path_bytes: usize,
    /// The bytes of the paths in `empty`, which have their own limit: not every caller uses them.
    way_bytes: usize,
}

/// The results of decoding besides the fields.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Findings {
    /// Paths of fields that the types don't have, in the order of the walk: `spec.versions[0].colour`.
    pub unknown: Vec<String>,
    /// Paths of values that Go decodes separately: strict decoding reports nothing within them.
    pub opaque: Vec<String>,
    /// Lists and maps that were sent empty, up to a limit.
    pub empty: Vec<Empty>,
}

/// The most empty lists and maps recorded for a value: more than a ResourceSlice of 128 devices has.
const EMPTY_MAX: usize = 1_024;

/// A list or a map that was sent empty: Go distinguishes it from an absent one, but does not write it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Empty {
    way: Vec<ValueStep>,
    is_list: bool,
    /// Whether it shows in errors, which print some types as JSON.
    pub is_shown: bool,
}

/// A step to a part of a value.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ValueStep {
    Name(String),
    Index(usize),
}

impl Empty {
    /// The steps from the object to it; `None` is a list item.
    pub fn names(&self) -> impl Iterator<Item = Option<&str>> {
        self.way.iter().map(|step| match step {
            ValueStep::Name(name) => Some(name.as_str()),
            ValueStep::Index(_) => None,
        })
    }

    /// Whether its path is `path`, where `*` stands for any item of a list or any key of a map.
    pub fn is_at(&self, path: &[&str]) -> bool {
        self.way.len() == path.len() && self.ends_with(path)
    }

    /// The sibling map `name`, as one that was sent empty, too.
    pub fn beside(&self, name: &str) -> Self {
        let mut way = self.way.clone();
        way.pop();
        way.push(ValueStep::Name(name.to_owned()));
        Empty { way, is_list: false, is_shown: self.is_shown }
    }

    /// Whether its path ends with `path`, where `*` stands for any item of a list or any key of a map.
    pub fn ends_with(&self, path: &[&str]) -> bool {
        let Some(from) = self.way.len().checked_sub(path.len()) else { return false };
        self.names().skip(from).zip(path).all(|(step, wanted)| *wanted == "*" || step == Some(*wanted))
    }

    /// Whether `object` has no value at its path.
    pub fn is_missing_in(&self, object: &Value) -> bool {
        let found = self.way.iter().try_fold(object, |at, step| match (at, step) {
            (Value::Object(fields), ValueStep::Name(name)) => fields.get(name),
            (Value::Array(items), ValueStep::Index(index)) => items.get(*index),
            _ => None,
        });
        found.is_none()
    }

    /// Puts it back into `object`, from which it was dropped, unless its parent is gone.
    pub fn restore(&self, object: &mut Value) {
        let Some((ValueStep::Name(last), way)) = self.way.split_last() else { return };
        let mut at = Some(object);
        for step in way {
            at = match (at, step) {
                (Some(Value::Object(fields)), ValueStep::Name(name)) => fields.get_mut(name),
                (Some(Value::Array(items)), ValueStep::Index(index)) => items.get_mut(*index),
                _ => None,
            };
        }
        if let Some(Value::Object(fields)) = at
            && !fields.contains_key(last)
        {
            let empty = if self.is_list { Value::Array(Vec::new()) } else { Value::Object(Map::new()) };
            fields.insert(last, empty);
        }
    }
}

#[derive(Clone, Copy, Debug)]
enum PathSegment<'v> {
    Field(&'v str),
    /// A struct embedded in the current one, by its Go name: only errors show it.
    Embedded(&'static str),
    Key(&'v str),
    Index(usize),
}

impl PathSegment<'_> {
    fn way(&self) -> Option<ValueStep> {
        match self {
            PathSegment::Field(name) | PathSegment::Key(name) => Some(ValueStep::Name((*name).to_owned())),
            PathSegment::Index(index) => Some(ValueStep::Index(*index)),
            PathSegment::Embedded(_) => None,
        }
    }
}

impl ValueStep {
    fn len(&self) -> usize {
        match self {
            ValueStep::Name(name) => name.len(),
            ValueStep::Index(_) => size_of::<usize>(),
        }
    }
}

impl<'v> TypedDecoder<'v> {
    /// Runs `decode` and returns its findings, or the error that Go would report.
    ///
    /// # Errors
    ///
    /// The error that Go's decoder would report.
    pub fn run<T>(decode: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<(T, Findings), UnmarshalError> {
        TypedDecoder::run_in(Minor::NEWEST, decode)
    }

    /// [`TypedDecoder::run`] with the types of that version of Kubernetes.
    ///
    /// # Errors
    ///
    /// See [`TypedDecoder::run`].
    pub fn run_in<T>(
        minor: Minor,
        decode: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<(T, Findings), UnmarshalError> {
        let mut typed = TypedDecoder { minor, ..TypedDecoder::default() };
        let value = decode(&mut typed).map_err(|Stop(error)| error)?;
        match (typed.faults.into_iter().find(|fault| fault.stops), typed.saved) {
            (Some(fault), _) => Err(fault.error),
            (None, Some(error)) => Err(error),
            (None, None) => Ok((value, Findings { unknown: typed.unknown, opaque: typed.opaque, empty: typed.empty })),
        }
    }

    /// The version of Kubernetes that the types are from.
    pub fn minor(&self) -> Minor {
        self.minor
    }

    /// The errors that `decode` encounters, up to a limit, in the order of the walk.
    ///
    /// # Errors
    ///
    /// An error that ends the decoding at once.
    pub fn faults<T>(decode: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Vec<FieldDecodeError> {
        let mut typed = TypedDecoder::default();
        // An error that stops it is recorded, too, or has no position.
        let _ = decode(&mut typed);
        typed.faults
    }

    /// Decodes the fields of `value` into a struct `name` of a package `v1`; `field` returns whether it knows a field.
    ///
    /// # Errors
    ///
    /// An error that ends the decoding at once.
    pub fn structure(
        &mut self,
        value: &'v Value,
        name: &'v str,
        field: impl FnMut(&mut Self, &'v str, &'v Value) -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        self.structure_in("v1", value, name, field)
    }

    /// As [`TypedDecoder::structure`], for a struct of any package.
    ///
    /// # Errors
    ///
    /// An error that ends the decoding at once.
    pub fn structure_in(
        &mut self,
        package: &str,
        value: &'v Value,
        name: &'v str,
        mut field: impl FnMut(&mut Self, &'v str, &'v Value) -> Result<bool, Stop>,
    ) -> Result<(), Stop> {
        let Value::Object(fields) = value else {
            self.mismatch::<()>(value, &format!("{package}.{name}"));
            return Ok(());
        };
        let outer = self.struct_name;
        for (key, value) in fields.iter() {
            work::step();
            self.steps.push(PathSegment::Field(key));
            self.struct_name = name;
            let known = field(self, key, value)?;
            if !known && self.frozen.is_none() {
                let path = self.noted_path();
                self.unknown.extend(path);
            }
            self.steps.pop();
            self.struct_name = outer;
        }
        Ok(())
    }

    /// Decodes the items of an array; `null` gives no list.
    ///
    /// # Errors
    ///
    /// An error that ends the decoding at once.
    pub fn list<T>(
        &mut self,
        value: &'v Value,
        go_type: impl Display,
        mut item: impl FnMut(&mut Self, &'v Value) -> Result<T, Stop>,
    ) -> Result<Option<Vec<T>>, Stop> {
        let Value::Array(items) = value else {
            return Ok(self.mismatch(value, &go_type.to_string()));
        };
        let mut list = Vec::with_capacity(items.len());
        for (index, value) in items.iter().enumerate() {
            work::step();
            self.steps.push(PathSegment::Index(index));
            list.push(item(self, value)?);
            self.steps.pop();
        }
        Ok(Some(list))
    }

    /// Decodes the entries of a map from strings.
    ///
    /// # Errors
    ///
    /// An error that ends the decoding at once.
    pub fn map<T>(
        &mut self,
        value: &'v Value,
        go_type: impl Display,
        mut entry: impl FnMut(&mut Self, &'v Value) -> Result<T, Stop>,
    ) -> Result<Option<Map<T>>, Stop> {
        let Value::Object(fields) = value else {
            return Ok(self.mismatch(value, &go_type.to_string()));
        };
        let mut entries = Vec::with_capacity(fields.len());
        for (key, value) in fields.iter() {
            work::step();
            self.steps.push(PathSegment::Key(key));
            entries.push((Key::new(key), entry(self, value)?));
            self.steps.pop();
        }
        Ok(Some(Map::from_fields(entries)))
    }

    /// Decodes a field of a struct embedded in the current one, given the Go names of the structs on the path to it.
    ///
    /// # Errors
    ///
    /// An error that ends the decoding at once.
    pub fn embedded<T>(
        &mut self,
        structs: &[&'static str],
        decode: impl FnOnce(&mut Self) -> Result<T, Stop>,
    ) -> Result<T, Stop> {
        let field = self.steps.pop();
        let length = self.steps.len();
        self.steps.extend(structs.iter().map(|name| PathSegment::Embedded(name)));
        self.steps.extend(field);
        let outcome = decode(self)?;
        self.steps.truncate(length);
        self.steps.extend(field);
        Ok(outcome)
    }

    /// Decodes inside a type that decodes itself in Go: its errors stop everything, and strictness ends here.
    ///
    /// # Errors
    ///
    /// An error that ends the decoding at once.
    pub fn own<T>(&mut self, decode: impl FnOnce(&mut Self) -> Result<T, Stop>) -> Result<T, Stop> {
        self.opaque();
        let outer_frozen = self.frozen;
        let outer_saved = self.saved.take();
        self.frozen = outer_frozen.or(Some(self.struct_name));
        let value = decode(self)?;
        self.frozen = outer_frozen;
        match std::mem::replace(&mut self.saved, outer_saved) {
            Some(error) => Err(Stop(error)),
            None => Ok(value),
        }
    }

    /// Marks the current value as one that is kept raw.
    pub fn opaque(&mut self) {
        if self.frozen.is_none() {
            let path = self.noted_path();
            self.opaque.extend(path);
        }
    }

    /// Marks the current list or map as one that was sent empty.
    pub fn empty(&mut self, is_list: bool, is_shown: bool) {
        if self.empty.len() >= EMPTY_MAX || self.way_bytes >= PATHS_BYTES_MAX {
            return;
        }
        let way: Vec<ValueStep> = self.steps.iter().filter_map(PathSegment::way).collect();
        self.way_bytes = self.way_bytes.saturating_add(way.iter().map(ValueStep::len).sum());
        self.empty.push(Empty { way, is_list, is_shown });
    }

    /// Marks those of the fields `names` of the current struct that were sent empty, unless that struct is a top-level
    /// field of the object. Its maps show in errors.
    pub fn empty_within(&mut self, value: &'v Value, names: &[&'v str]) {
        if self.steps.len() < 2 {
            return;
        }
        for name in names {
            let is_list = match value.get(name) {
                Some(Value::Object(fields)) if fields.is_empty() => false,
                Some(Value::Array(items)) if items.is_empty() => true,
                _ => continue,
            };
            self.steps.push(PathSegment::Field(name));
            self.empty(is_list, !is_list);
            self.steps.pop();
        }
    }

    /// A string, under the name of its Go type.
    pub fn string_as(&mut self, value: &Value, go_type: &str) -> Option<String> {
        match value {
            Value::String(text) => {
                work::bytes(text.len());
                Some(text.clone())
            }
            _ => self.mismatch(value, go_type),
        }
    }

    /// A string; `None` for null and for another type, which is noted.
    pub fn string(&mut self, value: &Value) -> Option<String> {
        self.string_as(value, "string")
    }

    /// A list of strings; `None` for null and for another type, which is noted.
    ///
    /// # Errors
    ///
    /// An error that ends the decoding at once.
    pub fn strings(&mut self, value: &'v Value) -> Result<Option<Vec<String>>, Stop> {
        self.list(value, "[]string", |typed, item| Ok(typed.string(item).unwrap_or_default()))
    }

    /// A boolean; `None` for null and for another type, which is noted.
    pub fn boolean(&mut self, value: &Value) -> Option<bool> {
        match value {
            Value::Bool(truth) => Some(*truth),
            _ => self.mismatch(value, "bool"),
        }
    }

    /// An integer of 64 bits; `None` for null and for another type, which is noted.
    pub fn int64(&mut self, value: &Value) -> Option<i64> {
        match value {
            Value::Int(number) => Some(*number),
            Value::Float(_) => self.unfit_number(value, "int64"),
            _ => self.mismatch(value, "int64"),
        }
    }

    /// An integer from 0 to 255; `None` for null and for another type, which is noted.
    pub fn uint8(&mut self, value: &Value) -> Option<u8> {
        match value {
            Value::Int(number) => match u8::try_from(*number) {
                Ok(number) => Some(number),
                Err(_) => self.unfit_number(value, "uint8"),
            },
            Value::Float(_) => self.unfit_number(value, "uint8"),
            _ => self.mismatch(value, "uint8"),
        }
    }

    /// An integer of 32 bits; `None` for null and for another type, which is noted.
    pub fn int32(&mut self, value: &Value) -> Option<i32> {
        match value {
            Value::Int(number) => match i32::try_from(*number) {
                Ok(number) => Some(number),
                Err(_) => self.unfit_number(value, "int32"),
            },
            Value::Float(_) => self.unfit_number(value, "int32"),
            _ => self.mismatch(value, "int32"),
        }
    }

    /// A number; `None` for null and for another type, which is noted.
    pub fn float64(&mut self, value: &Value) -> Option<f64> {
        match value {
            Value::Int(number) => Some(*number as f64),
            Value::Float(number) => Some(*number),
            _ => self.mismatch(value, "float64"),
        }
    }

    /// Records an error that is not a type mismatch; Go shows it without a position.
    pub fn save(&mut self, text: String) {
        self.save_error(UnmarshalError::Other(text), false);
    }

    fn save_error(&mut self, error: UnmarshalError, stops: bool) {
        self.note(&error, stops);
        self.saved.get_or_insert(error);
    }

    /// Records an error with its position.
    fn note(&mut self, error: &UnmarshalError, stops: bool) {
        if self.faults.len() < FAULTS_MAX && self.frozen.is_none() {
            let path = self.noted_path();
            self.faults.extend(path.map(|path| FieldDecodeError { path, error: error.clone(), stops }));
        }
    }

    /// Takes over the result of another decoder for the current value: unknown fields below it, or its error.
    pub fn adopt<T>(&mut self, outcome: Result<(T, Vec<String>), UnmarshalError>) -> Option<T> {
        match outcome {
            Ok((value, unknown)) => {
                let path = self.path();
                for field in unknown {
                    let path = format!("{path}.{field}");
                    if self.has_room(&path) {
                        self.unknown.push(path);
                    }
                }
                Some(value)
            }
            Err(error) => {
                // The fields of metadata are those of a struct; all other types here decode themselves.
                let stops = !is_in_metadata(&error);
                let (structure, fields) = self.position();
                self.save_error(error.below(structure, &fields), stops);
                None
            }
        }
    }

    fn unfit_number<T>(&mut self, value: &Value, go_type: &str) -> Option<T> {
        self.save_mismatch(&format!("number {}", json::encode_to_string(value)), go_type);
        None
    }

    /// Records that `value` is not of `go_type`, unless it is null.
    fn mismatch<T>(&mut self, value: &Value, go_type: &str) -> Option<T> {
        let word = match value {
            Value::Null => return None,
            Value::Bool(_) => "bool",
            Value::Int(_) | Value::Float(_) => "number",
            Value::String(_) => "string",
            Value::Array(_) => "array",
            Value::Object(_) => "object",
        };
        self.save_mismatch(word, go_type);
        None
    }

    fn save_mismatch(&mut self, word: &str, go_type: &str) {
        if self.saved.is_some() && self.faults.len() >= FAULTS_MAX {
            return;
        }
        let (name, fields) = self.position();
        let mismatch = UnmarshalError::of_type(word, go_type);
        let error = if name.is_empty() && fields.is_empty() { mismatch } else { mismatch.below(name, &fields) };
        self.save_error(error, false);
    }

    /// The innermost struct and the fields on the path, without keys and indices.
    fn position(&self) -> (&'v str, String) {
        let name = self.frozen.unwrap_or(self.struct_name);
        let fields: Vec<&str> = self
            .steps
            .iter()
            .filter_map(|step| match step {
                PathSegment::Field(field) | PathSegment::Embedded(field) => Some(*field),
                PathSegment::Key(_) | PathSegment::Index(_) => None,
            })
            .collect();
        (name, fields.join("."))
    }

    /// The current path, if there is room for it.
    fn noted_path(&mut self) -> Option<String> {
        if self.path_bytes >= PATHS_BYTES_MAX {
            return None;
        }
        Some(self.path()).filter(|path| self.has_room(path))
    }

    fn has_room(&mut self, path: &str) -> bool {
        work::bytes(path.len());
        self.path_bytes = self.path_bytes.saturating_add(path.len());
        self.path_bytes <= PATHS_BYTES_MAX
    }

    fn path(&self) -> String {
        let mut path = String::new();
        for step in &self.steps {
            match step {
                PathSegment::Field(name) | PathSegment::Key(name) if path.is_empty() => path.push_str(name),
                PathSegment::Field(name) | PathSegment::Key(name) => {
                    path.push('.');
                    path.push_str(name);
                }
                PathSegment::Index(index) => {
                    // Writing to a String can't fail.
                    let _ = write!(path, "[{index}]");
                }
                PathSegment::Embedded(_) => {}
            }
        }
        path
    }
}

/// Whether a field of ObjectMeta itself has the wrong type.
fn is_in_metadata(error: &UnmarshalError) -> bool {
    let UnmarshalError::Type(mismatch) = error else { return false };
    mismatch.position.as_ref().is_some_and(|position| position.structure == "ObjectMeta")
}
