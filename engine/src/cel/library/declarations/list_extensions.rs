//! Lists, as version 3 of cel-go's extension has them.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, Bool, Bytes, Double, Duration, Dyn, Int, String, Timestamp, Uint};

pub fn functions() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new(
            "@sortByAssociatedKeys",
            [
                OverloadDecl::member(
                    "list_int_sortByAssociatedKeys",
                    [Type::list(Type::param("T")), Type::list(Int)],
                    Type::list(Type::param("T")),
                ),
                OverloadDecl::member(
                    "list_uint_sortByAssociatedKeys",
                    [Type::list(Type::param("T")), Type::list(Uint)],
                    Type::list(Type::param("T")),
                ),
                OverloadDecl::member(
                    "list_double_sortByAssociatedKeys",
                    [Type::list(Type::param("T")), Type::list(Double)],
                    Type::list(Type::param("T")),
                ),
                OverloadDecl::member(
                    "list_bool_sortByAssociatedKeys",
                    [Type::list(Type::param("T")), Type::list(Bool)],
                    Type::list(Type::param("T")),
                ),
                OverloadDecl::member(
                    "list_google.protobuf.Duration_sortByAssociatedKeys",
                    [Type::list(Type::param("T")), Type::list(Duration)],
                    Type::list(Type::param("T")),
                ),
                OverloadDecl::member(
                    "list_google.protobuf.Timestamp_sortByAssociatedKeys",
                    [Type::list(Type::param("T")), Type::list(Timestamp)],
                    Type::list(Type::param("T")),
                ),
                OverloadDecl::member(
                    "list_string_sortByAssociatedKeys",
                    [Type::list(Type::param("T")), Type::list(String)],
                    Type::list(Type::param("T")),
                ),
                OverloadDecl::member(
                    "list_bytes_sortByAssociatedKeys",
                    [Type::list(Type::param("T")), Type::list(Bytes)],
                    Type::list(Type::param("T")),
                ),
            ],
        ),
        FunctionDecl::new(
            "distinct",
            [OverloadDecl::member("list_distinct", [Type::list(Type::param("T"))], Type::list(Type::param("T")))],
        ),
        FunctionDecl::new(
            "flatten",
            [
                OverloadDecl::member(
                    "list_flatten",
                    [Type::list(Type::list(Type::param("T")))],
                    Type::list(Type::param("T")),
                ),
                OverloadDecl::member("list_flatten_int", [Type::list(Dyn), Int], Type::list(Dyn)),
            ],
        ),
        FunctionDecl::new("lists.range", [OverloadDecl::global("lists_range", [Int], Type::list(Int))]),
        FunctionDecl::new(
            "reverse",
            [OverloadDecl::member("list_reverse", [Type::list(Type::param("T"))], Type::list(Type::param("T")))],
        ),
        FunctionDecl::new(
            "slice",
            [OverloadDecl::member(
                "list_slice",
                [Type::list(Type::param("T")), Int, Int],
                Type::list(Type::param("T")),
            )],
        ),
        FunctionDecl::new(
            "sort",
            [
                OverloadDecl::member("list_int_sort", [Type::list(Int)], Type::list(Int)),
                OverloadDecl::member("list_uint_sort", [Type::list(Uint)], Type::list(Uint)),
                OverloadDecl::member("list_double_sort", [Type::list(Double)], Type::list(Double)),
                OverloadDecl::member("list_bool_sort", [Type::list(Bool)], Type::list(Bool)),
                OverloadDecl::member(
                    "list_google.protobuf.Duration_sort",
                    [Type::list(Duration)],
                    Type::list(Duration),
                ),
                OverloadDecl::member(
                    "list_google.protobuf.Timestamp_sort",
                    [Type::list(Timestamp)],
                    Type::list(Timestamp),
                ),
                OverloadDecl::member("list_string_sort", [Type::list(String)], Type::list(String)),
                OverloadDecl::member("list_bytes_sort", [Type::list(Bytes)], Type::list(Bytes)),
            ],
        ),
    ]
}
