//! The order of fields in the JSON of a type: as they are declared, `kind` first.

use super::{Codec, Field, Kind, Message, Shape};
use crate::value::json::{Fields, Layout};

impl Fields for Message {
    fn nth(&self, index: usize) -> Option<(&'static str, Layout)> {
        self.members().nth(index).map(|field| (field.json, field.layout()))
    }
}

impl Message {
    /// The layout of an object of this type.
    pub const fn layout(&'static self) -> Layout {
        Layout::Declared(self)
    }
}

impl Field {
    fn layout(&self) -> Layout {
        match (self.kind, self.shape) {
            (Kind::Message(message), Shape::Map) if matches!(message.codec, Codec::Object) => {
                Layout::DeclaredMap(message)
            }
            (Kind::Message(message), _) if matches!(message.codec, Codec::Object) => Layout::Declared(message),
            _ => Layout::Sorted,
        }
    }
}
