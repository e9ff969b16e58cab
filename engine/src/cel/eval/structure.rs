//! The structs of mutations: `Object{…}` and its parts, and `JSONPatch{…}`.
//!
//! The fields of an object are not part of its value. A selection from a value that the checker knows to be an object
//! returns Go's native value, in which parts of objects are maps; to code that does not know its type, an object is as
//! opaque as a number.

use std::sync::Arc;

use super::error::EvalError;
use super::map::Map;
use super::show::{go_type, show};
use super::value::{Value, type_name};
use crate::cel::mutation;
use crate::cel::types::Type;
use crate::work;

/// A struct. Clones are cheap.
#[derive(Clone, Debug)]
pub struct Struct<'a>(Arc<StructParts<'a>>);

#[derive(Debug)]
struct StructParts<'a> {
    ty: Type,
    fields: Vec<(Arc<str>, Value<'a>)>,
}

impl<'a> Struct<'a> {
    /// Makes a struct of the type `ty` with these fields; of a repeated one the last value is kept.
    ///
    /// # Errors
    /// A field of a JSON patch that must be a string is not one.
    pub(super) fn new(ty: &Type, fields: Vec<(&str, Value<'a>)>) -> Result<Self, EvalError> {
        let mut set: Vec<(Arc<str>, Value<'a>)> = Vec::with_capacity(fields.len());
        for (name, value) in fields {
            if ty.runtime_name() == mutation::JSON_PATCH && !is_member(name, &value) {
                let got = native_type(&value);
                return Err(match name {
                    "op" | "path" | "from" => {
                        EvalError::new(format!("unexpected type {got} for JSONPatchType '{name}' field"))
                    }
                    _ => EvalError::new(format!("unexpected JSONPatchType field: {name}")),
                });
            }
            match set.iter_mut().find(|(known, _)| **known == *name) {
                Some((_, known)) => *known = value,
                None => set.push((name.into(), value)),
            }
        }
        Ok(Struct(Arc::new(StructParts { ty: ty.clone(), fields: set })))
    }

    pub fn ty(&self) -> &Type {
        &self.0.ty
    }

    /// The name of its type: `Object.spec`.
    pub fn name(&self) -> &str {
        self.0.ty.runtime_name()
    }

    /// Whether it is an operation of a JSON patch, instead of a part of an object.
    pub fn is_json_patch(&self) -> bool {
        self.name() == mutation::JSON_PATCH
    }

    /// The fields that were set.
    pub fn fields(&self) -> impl Iterator<Item = (&str, &Value<'a>)> {
        self.0.fields.iter().map(|(name, value)| (&**name, value))
    }

    /// The field `name`, if it was set.
    pub fn field(&self, name: &str) -> Option<&Value<'a>> {
        self.fields().find(|(known, _)| *known == name).map(|(_, value)| value)
    }

    /// The result of a selection from a value that the checker knows to be an object; `None` if the field was not set.
    pub(super) fn select(&self, name: &str) -> Result<Option<Value<'a>>, EvalError> {
        let unreadable = |_| EvalError::new(format!("cannot get field \"{name}\""));
        self.field(name).map(native).transpose().map_err(unreadable)
    }

    /// The value at `key` of an operation of a JSON patch; `None` only if it `may_miss`.
    pub(super) fn member(&self, key: &Value<'_>, may_miss: bool) -> Result<Option<Value<'a>>, EvalError> {
        let what = if may_miss { "field" } else { "indexer" };
        let unsupported = || EvalError::new(format!("unsupported {what}: {}", show(key)));
        let name = key.as_str().ok_or_else(unsupported)?;
        let value = self.field(name).cloned();
        match name {
            "op" | "path" | "from" => {
                let is_empty = value.as_ref().and_then(Value::as_str).is_none_or(str::is_empty);
                if may_miss && is_empty { Ok(None) } else { Ok(Some(value.unwrap_or_else(|| Value::string("")))) }
            }
            "value" if may_miss => Ok(value),
            "value" => Ok(Some(value.unwrap_or_default())),
            _ => Err(unsupported()),
        }
    }

    /// Whether no field was set.
    pub fn is_empty(&self) -> bool {
        self.0.fields.is_empty()
    }

    /// Evaluates `self == other`.
    ///
    /// # Errors
    /// The values of two operations cannot be compared.
    pub(super) fn equals(&self, other: &Struct<'a>) -> Result<bool, EvalError> {
        if !self.is_json_patch() || !other.is_json_patch() {
            return Ok(self.is_identical(other));
        }
        let text =
            |side: &Struct<'a>, name: &str| side.field(name).and_then(Value::as_str).unwrap_or_default().to_owned();
        if ["op", "path", "from"].iter().any(|name| text(self, name) != text(other, name)) {
            return Ok(false);
        }
        match (self.field("value"), other.field("value")) {
            (None, None) => Ok(true),
            (Some(value), Some(its)) => value.equals(its),
            _ => Ok(false),
        }
    }

    /// Equality like Go's deep equality, which compares how values are made.
    fn is_identical(&self, other: &Struct<'a>) -> bool {
        work::step();
        Arc::ptr_eq(&self.0, &other.0)
            || self.ty() == other.ty()
                && self.0.fields.len() == other.0.fields.len()
                && self.fields().all(|(name, value)| other.field(name).is_some_and(|its| is_identical(value, its)))
    }

    pub(super) fn into_static(self) -> Struct<'static> {
        let fields = self.fields().map(|(name, value)| (Arc::from(name), value.clone().into_static())).collect();
        Struct(Arc::new(StructParts { ty: self.0.ty.clone(), fields }))
    }
}

/// Whether an operation of a JSON patch has a field `name` that accepts `value`.
fn is_member(name: &str, value: &Value<'_>) -> bool {
    match name {
        "op" | "path" | "from" => matches!(value, Value::String(_) | Value::Type(_)),
        "value" => true,
        _ => false,
    }
}

/// Whether two values are made of the same parts: for lists Go cannot tell.
fn is_identical<'a>(left: &Value<'a>, right: &Value<'a>) -> bool {
    match (left, right) {
        (Value::List(_), _) | (_, Value::List(_)) => false,
        (Value::Struct(left), Value::Struct(right)) => left.is_identical(right),
        (Value::Map(left), Value::Map(right)) => {
            let matches = |(key, value): (Value<'a>, Result<Value<'a>, EvalError>)| match (value, right.find(&key)) {
                (Ok(value), Ok(Some(its))) => is_identical(&value, &its),
                _ => false,
            };
            left.len() == right.len() && left.entries().into_iter().all(matches)
        }
        (Value::Optional(Some(left)), Value::Optional(Some(right))) => is_identical(left, right),
        _ => left.type_of() == right.type_of() && left.is(right) == Ok(true),
    }
}

/// Converts `value` as Go converts it to a native value.
///
/// # Errors
/// A map has keys that are not strings.
fn native<'a>(value: &Value<'a>) -> Result<Value<'a>, EvalError> {
    work::step();
    Ok(match value {
        Value::Struct(object) if !object.is_json_patch() => {
            let mut fields = Vec::with_capacity(object.0.fields.len());
            for (name, value) in object.fields() {
                fields.push((Value::string(name), native(value)?));
            }
            Value::Map(Map::owned(fields))
        }
        Value::List(list) => {
            let items: Result<Vec<Value<'a>>, EvalError> = list.iter().map(|item| native(&item?)).collect();
            Value::list(items?)
        }
        Value::Map(map) => {
            let mut entries = Vec::with_capacity(map.len());
            for (key, value) in map.entries() {
                entries.push((key_of(key)?, native(&value?)?));
            }
            Value::Map(Map::owned(entries))
        }
        Value::Optional(content) => content.as_deref().map(native).transpose()?.unwrap_or_default(),
        Value::Type(ty) => Value::string(type_name(ty)),
        other => other.clone(),
    })
}

/// Checks that a key of a native map is a string.
fn key_of<'a>(key: Value<'a>) -> Result<Value<'a>, EvalError> {
    match key {
        Value::String(_) => Ok(key),
        other => Err(EvalError::new(not_a_string(&other))),
    }
}

/// The error message for a key of a native map that is not a string.
pub fn not_a_string(key: &Value<'_>) -> String {
    let shown = match key {
        Value::Int(_) | Value::Uint(_) | Value::Bool(_) | Value::Double(_) => quoted(key),
        other => crate::value::go_quote(&show(other)),
    };
    format!("map key {shown} is of type {}, not string", go_type(key))
}

/// Formats a scalar as Go's `%q` does.
fn quoted(key: &Value<'_>) -> String {
    match key {
        Value::Int(number) => quoted_letter(u32::try_from(*number).ok()),
        Value::Uint(number) => quoted_letter(u32::try_from(*number).ok()),
        Value::Bool(truth) => format!("%!q(types.Bool={truth})"),
        other => format!("%!q({}={})", go_type(other), show(other)),
    }
}

/// Formats a number as Go's `%q` does: the letter of that number.
fn quoted_letter(number: Option<u32>) -> String {
    match number.and_then(char::from_u32).unwrap_or(char::REPLACEMENT_CHARACTER) {
        '"' => "'\"'".to_owned(),
        '\'' => "'\\''".to_owned(),
        letter => format!("'{}'", crate::value::go_quote(&letter.to_string()).trim_matches('"')),
    }
}

/// The Go type of a value's native form.
fn native_type(value: &Value<'_>) -> &'static str {
    match value {
        Value::Null => "structpb.NullValue",
        Value::Bool(_) => "bool",
        Value::Int(_) => "int64",
        Value::Uint(_) => "uint64",
        Value::Double(_) => "float64",
        Value::String(_) | Value::Type(_) => "string",
        Value::Bytes(_) => "[]uint8",
        Value::Duration(_) => "time.Duration",
        Value::Timestamp(_) => "time.Time",
        Value::Struct(structure) if structure.is_json_patch() => "*mutation.JSONPatchVal",
        Value::Map(Map::Host { .. }) | Value::Struct(_) => "map[string]interface {}",
        Value::Map(_) => "map[ref.Val]ref.Val",
        Value::List(list) => match list.go_type() {
            "*types.baseList" => "[]ref.Val",
            _ => "[]interface {}",
        },
        other => go_type(other),
    }
}
