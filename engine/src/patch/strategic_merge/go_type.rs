//! The Go types that a strategic merge needs: how the fields of a struct are patched, and which types have no fields.
//!
//! Source: `LookupPatchMetadataForStruct` and `LookupPatchMetadataForSlice` of `k8s.io/apimachinery`, 1.37.

use super::MergeError;
use crate::types::{Codec, Field, FieldKind, Message, Shape};
use crate::value::go_quote;

/// The Go type of an object in JSON, or of the items of a list.
#[derive(Clone, Copy)]
pub(super) enum GoType {
    Struct(&'static Message),
    /// A struct behind a pointer.
    Pointer(&'static Message),
    /// Any other type, by the name of its kind in `reflect`.
    Other(&'static str),
}

/// How a field is patched.
pub(super) struct Merging {
    /// The type of the field, or of the items if it is a list.
    pub types: GoType,
    /// `merge`, `replace`, or empty.
    pub strategy: &'static str,
    /// Empty if there is none.
    pub key: &'static str,
}

impl GoType {
    /// The name of the type's kind in `reflect`.
    pub fn kind(self) -> &'static str {
        match self {
            GoType::Struct(_) => "struct",
            GoType::Pointer(_) => "ptr",
            GoType::Other(kind) => kind,
        }
    }

    /// How the field `name` is patched.
    ///
    /// # Errors
    ///
    /// There is no such field, or the type has none.
    pub fn field(self, name: &str) -> Result<Merging, MergeError> {
        let field = self.find(name)?;
        Ok(merging(field, of_field(field)))
    }

    /// How the list `name` is patched.
    ///
    /// # Errors
    ///
    /// As [`GoType::field`]; and the field is not a list.
    pub fn list(self, name: &str) -> Result<Merging, MergeError> {
        let field = self.find(name)?;
        let is_list = matches!(field.shape, Shape::List | Shape::Pointer) || matches!(field.kind, FieldKind::Bytes);
        if !is_list {
            return Err(MergeError::Failed(format!("expected slice or array type, but got: {}", self.kind())));
        }
        let items = match field.kind {
            FieldKind::Bytes => GoType::Other("uint8"),
            _ => of_kind(field),
        };
        Ok(merging(field, items))
    }

    fn find(self, name: &str) -> Result<&'static Field, MergeError> {
        let message = match self {
            GoType::Struct(message) | GoType::Pointer(message) => message,
            GoType::Other(kind) => {
                let text = format!("merging an object in json but data type is not struct, instead is: {kind}");
                return Err(MergeError::Failed(text));
            }
        };
        let folded = || message.members().find(|field| field.json.eq_ignore_ascii_case(name));
        message.member(name).or_else(folded).ok_or_else(|| {
            let (kind, quoted) = (message.name, go_quote(name));
            MergeError::Failed(format!("unable to find api field in struct {kind} for the json field {quoted}"))
        })
    }
}

fn merging(field: &'static Field, types: GoType) -> Merging {
    let strategies = field.items.strategy.unwrap_or_default();
    Merging {
        types,
        strategy: strategies.split(',').find(|strategy| *strategy != "retainKeys").unwrap_or_default(),
        key: field.items.merge_key.unwrap_or_default(),
    }
}

/// The type of a field that is an object in JSON.
fn of_field(field: &'static Field) -> GoType {
    match (field.shape, of_kind(field)) {
        (Shape::Map | Shape::Extensions, _) => GoType::Other("map"),
        (Shape::Pointer, GoType::Struct(message)) => GoType::Pointer(message),
        (_, plain) => plain,
    }
}

/// The type of one value of a field.
fn of_kind(field: &'static Field) -> GoType {
    match field.kind {
        FieldKind::Bool => GoType::Other("bool"),
        FieldKind::Int32 => GoType::Other("int32"),
        FieldKind::Int64 => GoType::Other("int64"),
        FieldKind::Double => GoType::Other("float64"),
        FieldKind::String => GoType::Other("string"),
        FieldKind::Bytes => GoType::Other("slice"),
        FieldKind::Message(inner) => match inner.codec {
            Codec::Members => GoType::Other("map"),
            Codec::List => GoType::Other("slice"),
            _ => GoType::Struct(inner.get()),
        },
    }
}
