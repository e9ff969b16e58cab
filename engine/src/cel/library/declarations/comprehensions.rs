//! What the macros of two variables call.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type;

pub fn functions() -> Vec<FunctionDecl> {
    vec![FunctionDecl::new(
        "cel.@mapInsert",
        [
            OverloadDecl::global(
                "@mapInsert_map_key_value",
                [Type::map(Type::param("K"), Type::param("V")), Type::param("K"), Type::param("V")],
                Type::map(Type::param("K"), Type::param("V")),
            ),
            OverloadDecl::global(
                "@mapInsert_map_map",
                [Type::map(Type::param("K"), Type::param("V")), Type::map(Type::param("K"), Type::param("V"))],
                Type::map(Type::param("K"), Type::param("V")),
            ),
        ],
    )]
}
