//! The messages of `google.protobuf` that CEL converts to its own values.
//!
//! `google.protobuf.Int64Value{value: 1}` is a number that may be null. Only `google.protobuf.Empty{}` remains a
//! message; there are no other messages.

use super::ast::Constant;
use super::types::Type;

/// The value of the enum constant called `name`.
pub fn constant(name: &str) -> Option<Constant> {
    (name == "google.protobuf.NullValue.NULL_VALUE").then_some(Constant::Int(0))
}

/// The type of a message called `name` that expressions can construct; the names of CEL's own types are not among them.
pub fn message(name: &str) -> Option<Type> {
    match name {
        "duration" => Some(Type::Duration),
        "timestamp" => Some(Type::Timestamp),
        "list" | "null_type" => Type::named(name),
        _ if name.starts_with("google.protobuf.") => Type::named(name),
        _ => None,
    }
}

/// The type of a field of such a message.
pub fn field(message: &Type, name: &str) -> Option<Type> {
    Some(match (message, name) {
        (Type::Wrapper(scalar), "value") => scalar.as_type(),
        (Type::Duration | Type::Timestamp, "seconds" | "nanos") => Type::Int,
        (Type::Any, "type_url") => Type::String,
        (Type::Any, "value") => Type::Bytes,
        (Type::Map(_), "fields") | (Type::Dyn, "struct_value") => Type::map(Type::String, Type::Dyn),
        (Type::List(_), "values") | (Type::Dyn, "list_value") => Type::list(Type::Dyn),
        (Type::Dyn, "null_value") => Type::Int,
        (Type::Dyn, "number_value") => Type::Double,
        (Type::Dyn, "string_value") => Type::String,
        (Type::Dyn, "bool_value") => Type::Bool,
        _ => return None,
    })
}
