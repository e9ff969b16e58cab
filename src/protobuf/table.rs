//! The words in which a message is described: one description drives reading and writing.
//!
//! A description follows the Go type, for that decides on both forms: its tags name the field's number and its JSON name,
//! a value that is no pointer is always on the wire, and `omitempty` leaves its zero out of the JSON.

use crate::value::Value;

/// A message.
pub struct Message {
    /// The name of its Go type, which errors tell.
    pub name: &'static str,
    /// In the order of their numbers.
    pub fields: &'static [Field],
    pub codec: Codec,
}

/// How a message looks in JSON.
#[derive(Clone, Copy)]
pub enum Codec {
    /// An object with a member for each field.
    Object,
    /// `2026-01-02T03:04:05Z`, or null. Its fields are seconds and nanoseconds; the latter are not read.
    Time,
    /// `2026-01-02T03:04:05.000006Z`, or null.
    MicroTime,
    /// Any JSON; its one field holds the text.
    Json,
    /// As [`Codec::Json`], but what is no JSON is told later, by those who know what fields are.
    FieldsV1,
    /// An array; its one field holds the items.
    List,
    /// Fields: a truth value, a schema. JSON: one or the other.
    SchemaOrBool,
    /// Fields: a schema, several. JSON: one or the other.
    SchemaOrArray,
    /// Fields: a schema, several texts. JSON: one or the other.
    SchemaOrStringArray,
    /// An object of any names; its one field is a map.
    Members,
    /// An array, or what would be its only item; its one field is a list.
    OneOrMore,
    /// Any JSON; its one field holds it as YAML.
    Any,
    /// What one of the fields is; given the JSON, the function tells which.
    Choice(fn(&Value) -> usize),
}

/// A field of a message.
pub struct Field {
    pub number: u32,
    /// Its name in JSON; empty in messages that are no objects there.
    pub json: &'static str,
    go: Option<&'static str>,
    pub kind: Kind,
    pub shape: Shape,
    /// Whether JSON has the field when it is zero.
    pub always: bool,
}

/// What a field holds.
#[derive(Clone, Copy)]
pub enum Kind {
    Bool,
    Int32,
    Int64,
    Double,
    String,
    /// Base64 in JSON.
    Bytes,
    Message(&'static Message),
}

/// How often a field holds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shape {
    /// Once: what is not on the wire is zero, and a zero is on the wire.
    Value,
    /// Once or never.
    Pointer,
    List,
    /// By a name.
    Map,
    /// By a name that begins with the field's own; in JSON these are members of the object itself.
    Extensions,
}

impl Message {
    /// A message that is an object in JSON.
    pub const fn new(name: &'static str, fields: &'static [Field]) -> Self {
        Message { name, fields, codec: Codec::Object }
    }

    /// The same fields, with another look.
    pub const fn codec(self, codec: Codec) -> Self {
        Message { codec, ..self }
    }
}

/// A field that is a value in Go, and is not in JSON when it is zero. A struct is never zero.
pub const fn field(number: u32, json: &'static str, kind: Kind) -> Field {
    let always = matches!(kind, Kind::Message(_));
    Field { number, json, go: None, kind, shape: Shape::Value, always }
}

/// A field that is a struct.
pub const fn message(number: u32, json: &'static str, message: &'static Message) -> Field {
    field(number, json, Kind::Message(message))
}

impl Field {
    /// Gives the name in Go where it is not the JSON name with a capital.
    pub const fn go(self, name: &'static str) -> Self {
        Field { go: Some(name), ..self }
    }

    /// In JSON also when it is zero: no `omitempty`.
    pub const fn always(self) -> Self {
        Field { always: true, ..self }
    }

    /// Not in JSON when it is zero, though it is a struct: `omitzero`.
    pub const fn omit_zero(self) -> Self {
        Field { always: false, ..self }
    }

    pub const fn pointer(self) -> Self {
        Field { shape: Shape::Pointer, always: false, ..self }
    }

    pub const fn list(self) -> Self {
        Field { shape: Shape::List, always: false, ..self }
    }

    pub const fn map(self) -> Self {
        Field { shape: Shape::Map, always: false, ..self }
    }

    pub const fn extensions(self) -> Self {
        Field { shape: Shape::Extensions, always: false, ..self }
    }

    /// The field's name in Go.
    pub fn go_name(&self) -> String {
        if let Some(name) = self.go {
            return name.to_owned();
        }
        let mut name = self.json.to_owned();
        if let Some(first) = name.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        name
    }
}
