//! Optional values: `optional.of`, `.value()`, `?.` and their kin.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, Bool, Dyn, Int, String};

pub fn functions() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new(
            "_?._",
            [OverloadDecl::global("select_optional_field", [Dyn, String], Type::optional(Type::param("V")))],
        ),
        FunctionDecl::new(
            "_[?_]",
            [
                OverloadDecl::global(
                    "list_optindex_optional_int",
                    [Type::list(Type::param("V")), Int],
                    Type::optional(Type::param("V")),
                ),
                OverloadDecl::global(
                    "optional_list_optindex_optional_int",
                    [Type::optional(Type::list(Type::param("V"))), Int],
                    Type::optional(Type::param("V")),
                ),
                OverloadDecl::global(
                    "map_optindex_optional_value",
                    [Type::map(Type::param("K"), Type::param("V")), Type::param("K")],
                    Type::optional(Type::param("V")),
                ),
                OverloadDecl::global(
                    "optional_map_optindex_optional_value",
                    [Type::optional(Type::map(Type::param("K"), Type::param("V"))), Type::param("K")],
                    Type::optional(Type::param("V")),
                ),
            ],
        ),
        FunctionDecl::new(
            "_[_]",
            [
                OverloadDecl::global(
                    "optional_list_index_int",
                    [Type::optional(Type::list(Type::param("V"))), Int],
                    Type::optional(Type::param("V")),
                ),
                OverloadDecl::global(
                    "optional_map_index_value",
                    [Type::optional(Type::map(Type::param("K"), Type::param("V"))), Type::param("K")],
                    Type::optional(Type::param("V")),
                ),
            ],
        ),
        FunctionDecl::new(
            "first",
            [OverloadDecl::member("list_first", [Type::list(Type::param("V"))], Type::optional(Type::param("V")))],
        ),
        FunctionDecl::new(
            "hasValue",
            [OverloadDecl::member("optional_hasValue", [Type::optional(Type::param("V"))], Bool)],
        ),
        FunctionDecl::new(
            "last",
            [OverloadDecl::member("list_last", [Type::list(Type::param("V"))], Type::optional(Type::param("V")))],
        ),
        FunctionDecl::new(
            "optional.none",
            [OverloadDecl::global("optional_none", [], Type::optional(Type::param("V")))],
        ),
        FunctionDecl::new(
            "optional.of",
            [OverloadDecl::global("optional_of", [Type::param("V")], Type::optional(Type::param("V")))],
        ),
        FunctionDecl::new(
            "optional.ofNonZeroValue",
            [OverloadDecl::global("optional_ofNonZeroValue", [Type::param("V")], Type::optional(Type::param("V")))],
        ),
        FunctionDecl::new(
            "optional.unwrap",
            [OverloadDecl::global(
                "optional_unwrap",
                [Type::list(Type::optional(Type::param("V")))],
                Type::list(Type::param("V")),
            )],
        ),
        FunctionDecl::new(
            "or",
            [OverloadDecl::member(
                "optional_or_optional",
                [Type::optional(Type::param("V")), Type::optional(Type::param("V"))],
                Type::optional(Type::param("V")),
            )],
        ),
        FunctionDecl::new(
            "orValue",
            [OverloadDecl::member(
                "optional_orValue_value",
                [Type::optional(Type::param("V")), Type::param("V")],
                Type::param("V"),
            )],
        ),
        FunctionDecl::new(
            "unwrapOpt",
            [OverloadDecl::member(
                "optional_unwrapOpt",
                [Type::list(Type::optional(Type::param("V")))],
                Type::list(Type::param("V")),
            )],
        ),
        FunctionDecl::new(
            "value",
            [OverloadDecl::member("optional_value", [Type::optional(Type::param("V"))], Type::param("V"))],
        ),
    ]
}
