//! The structural schema of a type: what patches, server-side apply and OpenAPI work on.

use super::{Codec, Field, Kind, Message, Shape};
use crate::schema::structural::{Extensions, Generic, Structural, StructuralOrBool, ValueValidation};
use crate::value::json;

impl Message {
    /// The schema of an object of this type. Recursive types have none.
    pub fn structural(&'static self) -> Structural {
        if self.is_object_meta() {
            return of_type("object", "");
        }
        let properties = self.members().map(|field| (field.json.to_owned(), field.structural()));
        let required: Vec<String> =
            self.members().filter(|field| field.is_required).map(|field| field.json.to_owned()).collect();
        let validation = ValueValidation { required, ..ValueValidation::default() };
        Structural {
            properties: properties.collect(),
            generic: Generic { description: self.description.into(), ..generic("object") },
            extensions: Extensions { map_type: self.is_atomic.then(|| "atomic".to_owned()), ..Extensions::default() }
                .into(),
            value_validation: (!validation.required.is_empty()).then(|| Box::new(validation)),
            ..Structural::default()
        }
    }
}

impl Field {
    fn structural(&'static self) -> Structural {
        let one = self.kind.structural();
        let mut schema = match self.shape {
            Shape::Value | Shape::Pointer | Shape::Inline => one,
            Shape::List => Structural { items: Some(Box::new(one)), ..of_type("array", "") },
            Shape::Map | Shape::Extensions => {
                let values = StructuralOrBool::Structural(Box::new(one));
                Structural { additional_properties: Some(values), ..of_type("object", "") }
            }
        };
        if !self.description.is_empty() {
            schema.generic.description = self.description.into();
        }
        let items = &self.items;
        let extensions = Extensions {
            map_type: items.map_type.map(str::to_owned).or_else(|| schema.extensions.map_type.clone()),
            list_type: items.list_type.map(str::to_owned),
            list_map_keys: items.map_keys.iter().map(|&key| key.to_owned()).collect(),
            patch_merge_key: items.merge_key.map(str::to_owned),
            patch_strategy: items.strategy.map(str::to_owned),
            ..(*schema.extensions).clone()
        };
        schema.extensions = extensions.into();
        if let Some(default) = self.default.and_then(|text| json::decode(text.as_bytes()).ok()) {
            schema.generic.default = Some(default.into());
        }
        schema
    }
}

impl Kind {
    fn structural(self) -> Structural {
        match self {
            Kind::Bool => of_type("boolean", ""),
            Kind::Int32 => of_type("integer", "int32"),
            Kind::Int64 => of_type("integer", "int64"),
            Kind::Double => of_type("number", "double"),
            Kind::String => of_type("string", ""),
            Kind::Bytes => of_type("string", "byte"),
            Kind::Message(message) => match message.codec {
                Codec::Object => message.get().structural(),
                Codec::Time | Codec::MicroTime => of_type("string", "date-time"),
                Codec::Duration => of_type("string", ""),
                // A text or a number.
                Codec::Quantity | Codec::IntOrString => Structural {
                    extensions: Extensions { int_or_string: true, ..Extensions::default() }.into(),
                    ..of_type("", "")
                },
                Codec::List => {
                    Structural { items: Some(Box::new(message.fields[0].kind.structural())), ..of_type("array", "") }
                }
                _ => Structural {
                    extensions: Extensions { preserve_unknown_fields: true, ..Extensions::default() }.into(),
                    ..of_type("object", "")
                },
            },
        }
    }
}

fn of_type(type_: &str, format: &str) -> Structural {
    let validation = ValueValidation { format: format.to_owned(), ..ValueValidation::default() };
    Structural {
        generic: generic(type_),
        value_validation: (!format.is_empty()).then(|| Box::new(validation)),
        ..Structural::default()
    }
}

fn generic(type_: &str) -> Generic {
    Generic { type_: type_.to_owned(), ..Generic::default() }
}
