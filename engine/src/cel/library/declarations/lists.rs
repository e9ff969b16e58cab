//! Lists, as Kubernetes extends them: sums, order, places of elements.

use crate::cel::env::{Expressions, FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, Bool, Bytes, Double, Duration, Dyn, Int, String, Timestamp, Uint};

/// `list(T).min() -> T` for all types with an order.
macro_rules! extreme {
    ($name:literal) => {
        FunctionDecl::new(
            $name,
            [
                extreme!($name, "int", Int),
                extreme!($name, "uint", Uint),
                extreme!($name, "double", Double),
                extreme!($name, "bool", Bool),
                extreme!($name, "duration", Duration),
                extreme!($name, "timestamp", Timestamp),
                extreme!($name, "string", String),
                extreme!($name, "bytes", Bytes),
            ],
        )
    };
    ($name:literal, $of:literal, $type:ident) => {
        OverloadDecl::member(concat!("list_", $of, "_", $name, "_", $of), [Type::list($type)], $type)
    };
}

pub fn functions(expressions: Expressions) -> Vec<FunctionDecl> {
    let (list, element) = (Type::list(Type::param("A")), Type::param("A"));
    let is_sorted = |id, of| OverloadDecl::member(id, [Type::list(of)], Bool);
    let mut functions = vec![
        FunctionDecl::new(
            "isSorted",
            [
                is_sorted("list_int_is_sorted_bool", Int),
                is_sorted("list_uint_is_sorted_bool", Uint),
                is_sorted("list_double_is_sorted_bool", Double),
                is_sorted("list_bool_is_sorted_bool", Bool),
                is_sorted("list_duration_is_sorted_bool", Duration),
                is_sorted("list_timestamp_is_sorted_bool", Timestamp),
                is_sorted("list_string_is_sorted_bool", String),
                is_sorted("list_bytes_is_sorted_bool", Bytes),
            ],
        ),
        FunctionDecl::new(
            "sum",
            [
                extreme!("sum", "int", Int),
                extreme!("sum", "uint", Uint),
                extreme!("sum", "double", Double),
                extreme!("sum", "duration", Duration),
            ],
        ),
        extreme!("max"),
        extreme!("min"),
        FunctionDecl::new(
            "indexOf",
            [OverloadDecl::member("list_a_index_of_int", [list.clone(), element.clone()], Int)],
        ),
        FunctionDecl::new("lastIndexOf", [OverloadDecl::member("list_a_last_index_of_int", [list, element], Int)]),
    ];
    if expressions == Expressions::Stored {
        let includes = OverloadDecl::member("list_includes_dyn_dyn", [Dyn, Dyn], Bool);
        functions.push(FunctionDecl::new("includes", [includes]));
    }
    functions
}
