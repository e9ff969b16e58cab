//! Searching for regular expressions.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, Int, String};

pub fn functions() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new("find", [OverloadDecl::member("string_find_string", [String, String], String)]),
        FunctionDecl::new(
            "findAll",
            [
                OverloadDecl::member("string_find_all_string", [String, String], Type::list(String)),
                OverloadDecl::member("string_find_all_string_int", [String, String, Int], Type::list(String)),
            ],
        ),
    ]
}
