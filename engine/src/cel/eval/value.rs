//! Values of expressions.
//!
//! A [`Value`] borrows if it can: strings, lists and maps of the object under validation are read in place, through the
//! [`HostForm`](super::host::HostForm) that its schema gives them; only values that an expression makes are owned.
//! Clones are cheap. Errors are not values: an operation that may fail returns a `Result`. The only exception is an item that
//! does not fit its schema: lists and optionals that are made with it contain its error.

use std::any::Any;
use std::collections::HashMap;
use std::fmt;
use std::sync::Arc;

use super::error::EvalError;
use super::list::List;
use super::map::Map;
use super::structure::Struct;
use crate::cel::types::Type;
use crate::meta::pattern::{self, Pattern};
use crate::meta::time::Moment;
use crate::value::Value as Json;

/// The value of an expression, for the lifetime of the object, the program and the forms that it reads.
#[derive(Clone, Debug, Default)]
pub enum Value<'a> {
    /// `null`
    #[default]
    Null,
    /// `bool`
    Bool(bool),
    /// `int`
    Int(i64),
    /// `uint`
    Uint(u64),
    /// `double`
    Double(f64),
    /// `string`
    String(TextValue<'a>),
    /// `bytes`
    Bytes(Arc<[u8]>),
    /// `google.protobuf.Duration`
    Duration(Duration),
    /// `google.protobuf.Timestamp`
    Timestamp(Timestamp),
    /// `list`
    List(List<'a>),
    /// A map, or an object of the host: at run time these are the same.
    Map(Map<'a>),
    /// A type, such as `int`.
    Type(Arc<Type>),
    /// `optional.of(…)`, or `optional.none()`.
    Optional(Option<Arc<Value<'a>>>),
    /// An object or a JSON patch of a mutation.
    Struct(Struct<'a>),
    /// A value of a library's own type.
    Opaque(Arc<dyn Opaque>),
    /// A value that no schema describes: it can only be compared for equality.
    Preserved(&'a Json),
    /// An item of the host that does not fit its schema, in a list or an optional that was made with it. Reading it there
    /// gives the error.
    Unfit(Arc<EvalError>),
}

/// A string: part of the host's object or of the program, or made by the expression.
#[derive(Clone)]
pub enum TextValue<'a> {
    /// Text of the object under evaluation, or of the program.
    Borrowed(&'a str),
    /// Text that the evaluation made, or that the program contains.
    Shared(Arc<str>),
}

/// A span of time in nanoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Duration(pub i64);

/// A point in time, and the zone in which it is printed and split into parts. Equality and order ignore the zone.
#[derive(Clone, Copy, Debug, Default)]
pub struct Timestamp {
    /// Seconds since 1970-01-01T00:00:00Z.
    pub seconds: i64,
    /// Nanoseconds, 0 to 999,999,999.
    pub nanos: u32,
    /// The zone's offset, in seconds east of UTC.
    pub offset_seconds: i32,
}

/// A value of a type that CEL itself does not have: a quantity, a URL, a named format.
pub trait Opaque: fmt::Debug + Any + Send + Sync {
    /// Its type, as `type()` returns it.
    fn ty(&self) -> Type;

    /// Whether `other` equals it; `None` if they cannot be compared, for example because the types differ.
    fn equals(&self, other: &dyn Opaque) -> Option<bool>;

    /// Its Go type, which a few errors show.
    fn go_type(&self) -> &'static str;

    /// Its native form in Go: the type, and the value as `%#v` prints it.
    fn native(&self) -> (&'static str, String) {
        (self.go_type(), self.shown())
    }

    /// The value as messages show it.
    fn shown(&self) -> String {
        type_name(&self.ty())
    }

    /// How the value is identified as a key of a map.
    fn as_key(&self) -> KeyKind {
        KeyKind::Identity
    }

    /// Whether it is a message, which has no fields: it differs from everything that is not one, and reports that each
    /// field is missing.
    fn is_message(&self) -> bool {
        false
    }

    /// Its size in the cost model.
    fn size(&self) -> u64 {
        1
    }

    /// The length of a named format's longest regular expression, in characters; `None` for other values.
    fn format_regex_size(&self) -> Option<u64> {
        None
    }
}

/// Formats a pointer as Go's `%#v` does, with the address 0x0: addresses differ between runs.
pub fn pointer_syntax(go_type: &str) -> String {
    format!("({go_type})(0x0)")
}

/// When a value is the same map key as another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyKind {
    /// If it has the same text.
    Content,
    /// Never: it differs from all others.
    Identity,
    /// It cannot be a key: the reference fails.
    Unhashable,
}

/// The state that a function can use besides its arguments.
#[derive(Debug, Default)]
pub struct CallScope<'p> {
    /// The argument of the current call that is a regular expression, if it is a constant.
    pub(super) constant_pattern: Option<&'p Arc<Pattern>>,
    /// The other regular expressions, compiled during the evaluation.
    patterns: HashMap<String, Arc<Pattern>>,
}

impl CallScope<'_> {
    /// The regular expression `source`, compiled once: a constant with the program, any other for the evaluation.
    ///
    /// # Errors
    /// The expression is invalid; the message is Go's.
    pub fn pattern(&mut self, source: &str) -> Result<Arc<Pattern>, pattern::PatternError> {
        const PATTERNS_MAX: usize = 64;
        if let Some(constant) = self.constant_pattern.filter(|constant| constant.source() == source) {
            return Ok(constant.clone());
        }
        if let Some(known) = self.patterns.get(source) {
            return Ok(known.clone());
        }
        let pattern = Arc::new(Pattern::new(source)?);
        if self.patterns.len() >= PATTERNS_MAX {
            self.patterns.clear();
        }
        self.patterns.insert(source.to_owned(), pattern.clone());
        Ok(pattern)
    }
}

impl<'a> Value<'a> {
    /// Makes a string that is owned by the value.
    pub fn string(text: impl Into<Arc<str>>) -> Self {
        Value::String(TextValue::Shared(text.into()))
    }

    /// Makes a string that borrows its text.
    pub fn borrowed(text: &'a str) -> Self {
        Value::String(TextValue::Borrowed(text))
    }

    /// A value of type `bytes`.
    pub fn bytes(bytes: impl Into<Arc<[u8]>>) -> Self {
        Value::Bytes(bytes.into())
    }

    /// A value of type `list`.
    pub fn list(items: Vec<Value<'a>>) -> Self {
        Value::List(List::owned(items))
    }

    /// A value of type `list`, with the strings that a function made.
    pub fn texts(items: Vec<Value<'a>>) -> Self {
        Value::List(List::texts(items))
    }

    /// JSON that no schema describes, read in place: maps, lists and scalars as in a literal.
    pub fn json(json: &'a Json) -> Self {
        match json {
            Json::Null => Value::Null,
            Json::Bool(truth) => Value::Bool(*truth),
            Json::Int(number) => Value::Int(*number),
            Json::Float(number) => Value::Double(*number),
            Json::String(text) => Value::borrowed(text),
            Json::Array(items) => Value::List(List::Json(items)),
            Json::Object(fields) => Value::Map(Map::Json(fields)),
        }
    }

    /// A type as a value.
    pub fn ty(ty: Type) -> Self {
        Value::Type(Arc::new(ty))
    }

    /// `optional.of(value)`.
    pub fn optional_of(value: Value<'a>) -> Self {
        Value::Optional(Some(Arc::new(value)))
    }

    /// `optional.none()`.
    pub const OPTIONAL_NONE: Value<'static> = Value::Optional(None);

    /// A value of a library's own type.
    pub fn opaque(value: impl Opaque) -> Self {
        Value::Opaque(Arc::new(value))
    }

    /// The value, if it is a `bool`.
    pub fn as_bool(&self) -> Option<bool> {
        match self {
            Value::Bool(truth) => Some(*truth),
            _ => None,
        }
    }

    /// The value, if it is an `int`.
    pub fn as_int(&self) -> Option<i64> {
        match self {
            Value::Int(number) => Some(*number),
            _ => None,
        }
    }

    /// The value, if it is a `string`.
    pub fn as_str(&self) -> Option<&str> {
        match self {
            Value::String(text) => Some(text.as_str()),
            _ => None,
        }
    }

    /// The value, if it is a `list`.
    pub fn as_list(&self) -> Option<&List<'a>> {
        match self {
            Value::List(list) => Some(list),
            _ => None,
        }
    }

    /// The value, if it is a `map`.
    pub fn as_map(&self) -> Option<&Map<'a>> {
        match self {
            Value::Map(map) => Some(map),
            _ => None,
        }
    }

    /// The value of a library's type `T`.
    pub fn as_opaque<T: Opaque>(&self) -> Option<&T> {
        match self {
            Value::Opaque(value) => (value.as_ref() as &dyn Any).downcast_ref(),
            _ => None,
        }
    }

    /// The type, as `type()` returns it; without the element types of lists and maps.
    pub fn type_of(&self) -> Type {
        match self {
            Value::Null => Type::Null,
            Value::Bool(_) => Type::Bool,
            Value::Int(_) => Type::Int,
            Value::Uint(_) => Type::Uint,
            Value::Double(_) => Type::Double,
            Value::String(_) => Type::String,
            Value::Bytes(_) => Type::Bytes,
            Value::Duration(_) => Type::Duration,
            Value::Timestamp(_) => Type::Timestamp,
            Value::List(_) => Type::list(Type::Dyn),
            Value::Map(_) => Type::map(Type::Dyn, Type::Dyn),
            Value::Type(_) => Type::Type(None),
            Value::Optional(_) => Type::optional(Type::Dyn),
            Value::Struct(value) => value.ty().clone(),
            Value::Opaque(value) => value.ty(),
            Value::Preserved(_) => Type::opaque("unknown", Vec::new()),
            Value::Unfit(_) => Type::opaque("error", Vec::new()),
        }
    }

    /// The name of the type, without its parameters: `list`, `google.protobuf.Duration`.
    pub fn type_name(&self) -> String {
        type_name(&self.type_of())
    }

    /// The same value without borrowed parts. Values that no schema describes, or that do not fit their schema, become
    /// null.
    pub fn into_static(self) -> Value<'static> {
        match self {
            Value::Null | Value::Preserved(_) | Value::Unfit(_) => Value::Null,
            Value::Bool(truth) => Value::Bool(truth),
            Value::Int(number) => Value::Int(number),
            Value::Uint(number) => Value::Uint(number),
            Value::Double(number) => Value::Double(number),
            Value::String(TextValue::Shared(text)) => Value::String(TextValue::Shared(text)),
            Value::String(TextValue::Borrowed(text)) => Value::string(text),
            Value::Bytes(bytes) => Value::Bytes(bytes),
            Value::Duration(duration) => Value::Duration(duration),
            Value::Timestamp(timestamp) => Value::Timestamp(timestamp),
            Value::List(list) => Value::list(list.iter().map(|item| item.unwrap_or_default().into_static()).collect()),
            Value::Map(map) => {
                let entry = |(key, value): (Value<'a>, Result<Value<'a>, EvalError>)| {
                    (key.into_static(), value.unwrap_or_default().into_static())
                };
                Value::Map(Map::owned(map.entries().into_iter().map(entry)))
            }
            Value::Type(ty) => Value::Type(ty),
            Value::Optional(content) => {
                Value::Optional(content.map(|content| Arc::new((*content).clone().into_static())))
            }
            Value::Struct(value) => Value::Struct(value.into_static()),
            Value::Opaque(value) => Value::Opaque(value),
        }
    }

    /// The value as an item of a list: an error takes the place of the item.
    pub fn kept(read: Result<Value<'a>, EvalError>) -> Value<'a> {
        read.unwrap_or_else(|error| Value::Unfit(Arc::new(error)))
    }

    /// Reads the value where it was kept.
    ///
    /// # Errors
    /// It does not fit its schema.
    pub fn read(self) -> Result<Value<'a>, EvalError> {
        match self {
            Value::Unfit(error) => Err((*error).clone()),
            value => Ok(value),
        }
    }

    /// The same value, borrowed from `self` without counting references.
    pub(crate) fn lend(&'a self) -> Value<'a> {
        match self {
            Value::String(text) => Value::String(TextValue::Borrowed(text.as_str())),
            Value::List(list) => Value::List(list.lend()),
            Value::Map(map) => Value::Map(map.lend()),
            other => other.clone(),
        }
    }
}

/// The name of a type at run time, at which its parameters are unknown.
pub fn type_name(ty: &Type) -> String {
    match ty {
        Type::Null => "null_type".to_owned(),
        Type::List(_) => "list".to_owned(),
        Type::Map(_) => "map".to_owned(),
        Type::Any => "google.protobuf.Any".to_owned(),
        Type::Duration => "google.protobuf.Duration".to_owned(),
        Type::Timestamp => "google.protobuf.Timestamp".to_owned(),
        Type::Type(_) => "type".to_owned(),
        Type::Wrapper(scalar) => type_name(&scalar.as_type()),
        Type::Opaque(opaque) => opaque.name.clone(),
        other => other.to_string(),
    }
}

impl<'a> TextValue<'a> {
    /// The text.
    pub fn as_str(&self) -> &str {
        match self {
            TextValue::Borrowed(text) => text,
            TextValue::Shared(text) => text,
        }
    }

    /// The number of characters.
    pub fn characters(&self) -> u64 {
        self.as_str().chars().count() as u64
    }
}

impl std::ops::Deref for TextValue<'_> {
    type Target = str;

    fn deref(&self) -> &str {
        self.as_str()
    }
}

impl fmt::Debug for TextValue<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.as_str().fmt(formatter)
    }
}

impl From<Moment> for Timestamp {
    fn from(moment: Moment) -> Self {
        let Moment { unix_seconds, nanos, offset_seconds } = moment;
        Timestamp { seconds: unix_seconds, nanos, offset_seconds }
    }
}

impl Timestamp {
    /// The moment, independent of the zone.
    fn moment(self) -> (i64, u32) {
        (self.seconds, self.nanos)
    }
}

impl PartialEq for Timestamp {
    fn eq(&self, other: &Self) -> bool {
        self.moment() == other.moment()
    }
}

impl Eq for Timestamp {}

impl PartialOrd for Timestamp {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Timestamp {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.moment().cmp(&other.moment())
    }
}

impl From<bool> for Value<'_> {
    fn from(truth: bool) -> Self {
        Value::Bool(truth)
    }
}

impl From<i64> for Value<'_> {
    fn from(number: i64) -> Self {
        Value::Int(number)
    }
}
