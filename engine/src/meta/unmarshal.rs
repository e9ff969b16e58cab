//! Why Go's decoder can't read a value: an error that is only formatted when it is shown.
//!
//! Source: `UnmarshalTypeError` of `encoding/json`.

use std::fmt;

use thiserror::Error;

/// An error of a decoder.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum UnmarshalError {
    /// A value of the wrong type.
    #[error("{0}")]
    Type(TypeMismatch),
    /// The error of a type that decodes itself, in its own words; Go shows it without a position.
    #[error("{0}")]
    Other(String),
}

/// A value whose type differs from that of its field.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeMismatch {
    /// `string`, `number 1.5`.
    pub found: String,
    /// `None` if a type that decodes itself has no position.
    pub position: Option<Position>,
    /// `[]v1.OwnerReference`.
    pub go_type: String,
}

/// The position of a field, as Go reports it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Position {
    /// The innermost struct: `OwnerReference`.
    pub structure: String,
    /// The fields on the path, without keys and indices: `metadata.ownerReferences.uid`.
    pub fields: String,
}

impl UnmarshalError {
    /// The error of a type that decodes itself.
    pub fn other(error: impl fmt::Display) -> Self {
        UnmarshalError::Other(error.to_string())
    }

    /// A value of the wrong type, without a position.
    pub fn of_type(found: impl Into<String>, go_type: impl Into<String>) -> Self {
        UnmarshalError::Type(TypeMismatch { found: found.into(), position: None, go_type: go_type.into() })
    }

    /// The fields on the path to the value, if Go reports them.
    pub fn fields(&self) -> &str {
        match self {
            UnmarshalError::Type(TypeMismatch { position: Some(position), .. }) => &position.fields,
            _ => "",
        }
    }

    /// The same error with a number that does not fit its type quoted as it is written; other errors stay as they are.
    pub fn of_number(mut self, written: &str) -> Self {
        if let UnmarshalError::Type(mismatch) = &mut self
            && mismatch.found.starts_with("number ")
        {
            mismatch.found = format!("number {written}");
        }
        self
    }

    /// The same error, in the decoder of a struct that has the value at `fields`.
    pub fn below(self, structure: &str, fields: &str) -> Self {
        let UnmarshalError::Type(mismatch) = self else { return self };
        let position = match mismatch.position {
            Some(inner) => Position { fields: format!("{fields}.{}", inner.fields), ..inner },
            None => Position { structure: structure.to_owned(), fields: fields.to_owned() },
        };
        UnmarshalError::Type(TypeMismatch { position: Some(position), ..mismatch })
    }
}

impl fmt::Display for TypeMismatch {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let TypeMismatch { found, position, go_type } = self;
        match position {
            None => write!(out, "json: cannot unmarshal {found} into Go value of type {go_type}"),
            Some(Position { structure, fields }) => write!(
                out,
                "json: cannot unmarshal {found} into Go struct field {structure}.{fields} of type {go_type}"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_error_tells_the_innermost_struct_and_the_whole_way() {
        let bare = UnmarshalError::of_type("number", "types.UID");
        assert_eq!(bare.to_string(), "json: cannot unmarshal number into Go value of type types.UID");
        let inner = bare.below("OwnerReference", "ownerReferences.uid");
        let expected = "json: cannot unmarshal number into Go struct field OwnerReference.metadata.ownerReferences.uid of type types.UID";
        assert_eq!(inner.below("ConfigMap", "metadata").to_string(), expected);
    }

    #[test]
    fn what_a_type_says_of_itself_has_no_position() {
        let error = UnmarshalError::Other("into Go value".to_owned());
        assert_eq!(error.below("ConfigMap", "metadata").to_string(), "into Go value");
    }
}
