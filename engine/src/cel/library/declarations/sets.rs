//! Lists as sets.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, Bool};

pub fn functions() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new(
            "sets.contains",
            [OverloadDecl::global(
                "list_sets_contains_list",
                [Type::list(Type::param("T")), Type::list(Type::param("T"))],
                Bool,
            )],
        ),
        FunctionDecl::new(
            "sets.equivalent",
            [OverloadDecl::global(
                "list_sets_equivalent_list",
                [Type::list(Type::param("T")), Type::list(Type::param("T"))],
                Bool,
            )],
        ),
        FunctionDecl::new(
            "sets.intersects",
            [OverloadDecl::global(
                "list_sets_intersects_list",
                [Type::list(Type::param("T")), Type::list(Type::param("T"))],
                Bool,
            )],
        ),
    ]
}
