//! Why an expression cannot change an object.

use super::native::NativeError;
use crate::apply::TypeErrors;
use crate::cel::eval::EvalError;
use crate::patch::PatchError;
use crate::value::json;

/// Why an expression cannot change an object, with Kubernetes' message.
#[derive(Debug, thiserror::Error)]
pub enum MutationError {
    /// The result of an apply configuration is not an object.
    #[error("unsupported return type from ApplyConfiguration expression: {0}")]
    ReturnType(String),
    /// A part of it cannot be represented outside CEL.
    #[error("invalid return type: *dynamic.ObjectVal")]
    NotNative(#[source] NativeError),
    /// The paths of parts whose types are not those of the fields.
    #[error("type mismatch: {}", .0.join("\n"))]
    Names(Vec<String>),
    /// The configuration does not fit the types of the kind.
    #[error("error applying patch: failed to convert patch object to typed object: {0}")]
    Patch(String),
    /// The paths of lists, maps or structs that can only be replaced as a whole.
    #[error(
        "error applying patch: invalid ApplyConfiguration: may not mutate atomic arrays, maps or structs: {}",
        .0.join(", ")
    )]
    Atomics(Vec<String>),
    /// The object does not fit the types of its kind.
    #[error("error applying patch: failed to convert original object to typed object: {0}")]
    Original(TypeErrors),
    /// The result of a JSON patch is not a list.
    #[error("type mismatch: JSONPatchType.expression should evaluate to array")]
    NotList,
    /// An item of the list is not an operation.
    #[error("type mismatch: JSONPatchType.expression should evaluate to array of JSONPatch")]
    NotOperations,
    /// An item of the list failed to evaluate.
    #[error(transparent)]
    Eval(#[from] EvalError),
    /// The value of an operation cannot be represented as JSON.
    #[error("JSONPath valueExpression evaluated to a type that could not marshal to JSON: {0}")]
    Value(#[from] JsonValueError),
    /// The patch does not apply.
    #[error("JSON Patch: {0}")]
    JsonPatch(#[from] PatchError),
    /// The result of the patch cannot be decoded.
    #[error(transparent)]
    Json(#[from] json::JsonError),
}

/// Why a value cannot be represented as JSON, with the messages of cel-go and of Go's protobuf.
#[derive(Debug, thiserror::Error)]
pub enum JsonValueError {
    #[error("type conversion error from '{0}' to '*structpb.Value'")]
    NoConversion(String),
    #[error("optional.none() dereference")]
    NoneDereferenced,
    #[error("cannot convert to native type: *structpb.Value")]
    NotNative,
    #[error("type conversion not supported for 'type'")]
    Type,
    #[error(
        "json: error calling MarshalJSON for type *structpb.Value: proto:\u{a0}google.protobuf.Value.number_value: \
         invalid {0} value"
    )]
    Number(&'static str),
    #[error("type conversion error from {0} to 'string'")]
    Key(String),
    #[error("unsupported type conversion from '{0}' to string")]
    IntegerKey(&'static str),
    #[error("proto:\u{a0}invalid type: {0}")]
    Foreign(String),
    #[error(transparent)]
    Native(#[from] NativeError),
    #[error(transparent)]
    Eval(#[from] EvalError),
}
