//! The types with which policies express mutations: `Object`, `Object.spec` and so on, and `JSONPatch`.
//!
//! An expression such as `Object{spec: Object.spec{replicas: 3}}` names a type by the path of its field. Every field of
//! every such type accepts any value: whether names and paths agree is only checked when the value is used.
//!
//! Source: `k8s.io/apiserver/pkg/cel/mutation`, release 1.37.

use super::types::Type;

/// The type of an apply configuration as a whole.
pub const OBJECT: &str = "Object";

/// The type of an operation of a JSON patch.
pub const JSON_PATCH: &str = "JSONPatch";

/// Whether `name` is the type name of an object or of a part of one.
pub fn is_object(name: &str) -> bool {
    name.strip_prefix(OBJECT).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

/// The type called `name`, if it is one of these.
pub fn named(name: &str) -> Option<Type> {
    (name == JSON_PATCH || is_object(name)).then(|| Type::object(name))
}

/// The type of a field of the type called `name`, which is one of these.
pub fn field(name: &str, field: &str) -> Type {
    match (name, field) {
        (JSON_PATCH, "op" | "path" | "from") => Type::String,
        (JSON_PATCH, "value") => Type::Dyn,
        // The reference has such a field, but no type for it.
        (JSON_PATCH, _) => Type::opaque("", Vec::new()),
        _ => Type::Dyn,
    }
}
