//! The messages of `google.protobuf` that the language takes for values of its own.
//!
//! `google.protobuf.Int64Value{value: 1}` is a number that may be null; there are no other messages.

use super::types::Type;

/// The type that a message called `name` has, and may be made as; the names of the language's own types are not among
/// them.
pub fn message(name: &str) -> Option<Type> {
    let is_message = name.starts_with("google.protobuf.") || matches!(name, "list" | "null_type");
    if is_message { Type::named(name) } else { None }
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
