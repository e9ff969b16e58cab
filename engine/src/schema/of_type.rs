//! The structural schema of a type, as expressions see it: the fields and types of its published definition.
//!
//! The schema is not used to validate values: nothing enforces what a definition requires or enumerates.
//!
//! Source: `k8s.io/apiserver/pkg/cel/openapi/resolver`, release 1.37: a type within itself is an object without fields
//! there, and expressions don't see a type whose JSON may be of several types.

use super::rare::Rare;
use super::structural::{Extensions, Generic, Structural, StructuralOrBool, ValueValidation};
use crate::meta::minor::Minor;
use crate::types::openapi::values_of;
use crate::types::{Codec, Field, FieldKind, Message, Shape, description_of, said_in};
use crate::value::{Map, Value, json};
use crate::work;

/// What expressions see of quantities, whose JSON may be a text or a number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Quantities {
    /// Nothing: the reference's check of types does not know fields that hold them.
    Hidden,
    /// A value of any type, as when expressions run.
    Shown,
}

/// The schema of `message`.
pub fn structural(message: &'static Message, quantities: Quantities) -> Structural {
    StructuralBuilder { open: Vec::new(), quantities, people: None }.message(message)
}

/// The same for people: with the descriptions, allowed values, defaults and required fields that this version of
/// Kubernetes publishes.
pub fn described(minor: Minor, message: &'static Message) -> Structural {
    StructuralBuilder { open: Vec::new(), quantities: Quantities::Shown, people: Some(minor) }.message(message)
}

struct StructuralBuilder {
    /// The types that are being converted, to detect recursion.
    open: Vec<&'static Message>,
    quantities: Quantities,
    /// The minor version that people ask about; `None` for expressions.
    people: Option<Minor>,
}

impl StructuralBuilder {
    fn message(&mut self, message: &'static Message) -> Structural {
        work::step();
        match message.codec {
            Codec::Object => self.object(message),
            Codec::Time | Codec::MicroTime => of_type("string", "date-time"),
            Codec::Duration => of_type("string", ""),
            Codec::Quantity if self.quantities == Quantities::Hidden => Structural::default(),
            Codec::IntOrString | Codec::Quantity => Structural {
                extensions: Rare::from(Extensions { int_or_string: true, ..Extensions::default() }),
                ..Structural::default()
            },
            Codec::List => message.fields.first().map_or_else(Structural::default, |items| self.field(items)),
            Codec::FieldsV1 => of_type("object", ""),
            // Any JSON is published as an object, except for the JSON within schemas.
            Codec::Json if message.name == "RawExtension" => of_type("object", ""),
            _ => Structural::default(),
        }
    }

    fn object(&mut self, message: &'static Message) -> Structural {
        let mut object = of_type("object", "");
        if self.open.iter().any(|open| std::ptr::eq(*open, message)) {
            return object;
        }
        self.open.push(message);
        let minor = self.people;
        let members = || message.members().filter(|member| minor.is_none_or(|minor| member.is_known_in(minor)));
        object.properties = members().map(|member| (member.json.to_owned(), self.member(member))).collect();
        self.open.pop();
        let required = members().filter(|member| minor.is_some_and(|minor| is_required(minor, member)));
        let required: Vec<String> = required.map(|member| member.json.to_owned()).collect();
        if !required.is_empty() {
            object.value_validation = Some(Box::new(ValueValidation { required, ..ValueValidation::default() }));
        }
        object
    }

    fn member(&mut self, field: &'static Field) -> Structural {
        let mut schema = self.field(field);
        if let Some(minor) = self.people {
            schema.generic.description = description_of(field).into();
            let default = said_in(minor, field, &["default"]).or(field.default);
            schema.generic.default = default.and_then(|text| json::decode(text.as_bytes()).ok()).map(Box::new);
        }
        schema
    }

    fn field(&mut self, field: &'static Field) -> Structural {
        match field.shape {
            Shape::Value | Shape::Pointer | Shape::Inline => self.one(field),
            Shape::List => Structural { items: Some(Box::new(self.one(field))), ..of_type("array", "") },
            Shape::Map | Shape::Extensions => Structural {
                additional_properties: Some(StructuralOrBool::Structural(Box::new(self.one(field)))),
                ..of_type("object", "")
            },
        }
    }

    fn one(&mut self, field: &'static Field) -> Structural {
        match field.kind {
            FieldKind::Bool => of_type("boolean", ""),
            FieldKind::Int32 => of_type("integer", "int32"),
            FieldKind::Int64 => of_type("integer", "int64"),
            FieldKind::Double => of_type("number", "double"),
            FieldKind::String => self.text(field),
            FieldKind::Bytes => of_type("string", "byte"),
            FieldKind::Message(message) => self.message(message.get()),
        }
    }

    /// A text; for people with its allowed values.
    fn text(&self, field: &Field) -> Structural {
        let values =
            self.people.map(|minor| said_in(minor, field, &["enum"]).unwrap_or(field.enums)).unwrap_or_default();
        let enum_: Vec<Value> = values_of(values).map(Value::from).collect();
        let values = ValueValidation { enum_, ..ValueValidation::default() };
        let value_validation = (!values.enum_.is_empty()).then(|| Box::new(values));
        Structural { value_validation, ..of_type("string", "") }
    }
}

/// Whether the published definition of that version of Kubernetes requires the field.
fn is_required(minor: Minor, field: &Field) -> bool {
    match said_in(minor, field, &["required", "optional"]) {
        Some("required") => true,
        Some(_) => false,
        None => field.is_required,
    }
}

fn of_type(name: &str, format: &str) -> Structural {
    let validation = ValueValidation { format: format.to_owned(), ..ValueValidation::default() };
    Structural {
        generic: Generic { type_: name.to_owned(), ..Generic::default() },
        properties: Map::new(),
        value_validation: (!format.is_empty()).then(|| Box::new(validation)),
        ..Structural::default()
    }
}
