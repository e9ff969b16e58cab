//! The order of fields in the JSON of a type: their declaration order, `kind` first.

use super::{Codec, Field, FieldKind, Message, Shape};
use crate::value::json::{FieldOrder, Layout};

impl FieldOrder for Message {
    fn find(&self, name: &str) -> Option<(usize, Layout)> {
        self.member_of_name(name).map(|member| (member.place, member.field.layout()))
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
        let FieldKind::Message(message) = self.kind else { return Layout::Sorted };
        let message = message.get();
        match (message.codec, self.shape) {
            (Codec::Object, Shape::Map) => Layout::DeclaredMap(message),
            (Codec::Object, _) => Layout::Declared(message),
            // A schema, or several.
            (Codec::SchemaOrArray | Codec::SchemaOrBool | Codec::SchemaOrStringArray, shape) => {
                message.fields.iter().map(Field::layout).find(|layout| matches!(layout, Layout::Declared(_))).map_or(
                    Layout::Sorted,
                    |layout| match (layout, shape) {
                        (Layout::Declared(schema), Shape::Map) => Layout::DeclaredMap(schema),
                        (layout, _) => layout,
                    },
                )
            }
            _ => Layout::Sorted,
        }
    }
}
