//! Strings, as version 2 of cel-go's extension has them.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, Dyn, Int, String};

pub fn functions() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new("charAt", [OverloadDecl::member("string_char_at_int", [String, Int], String)]),
        FunctionDecl::new("format", [OverloadDecl::member("string_format", [String, Type::list(Dyn)], String)]),
        FunctionDecl::new(
            "indexOf",
            [
                OverloadDecl::member("string_index_of_string", [String, String], Int),
                OverloadDecl::member("string_index_of_string_int", [String, String, Int], Int),
            ],
        ),
        FunctionDecl::new(
            "join",
            [
                OverloadDecl::member("list_join", [Type::list(String)], String),
                OverloadDecl::member("list_join_string", [Type::list(String), String], String),
            ],
        ),
        FunctionDecl::new(
            "lastIndexOf",
            [
                OverloadDecl::member("string_last_index_of_string", [String, String], Int),
                OverloadDecl::member("string_last_index_of_string_int", [String, String, Int], Int),
            ],
        ),
        FunctionDecl::new("lowerAscii", [OverloadDecl::member("string_lower_ascii", [String], String)]),
        FunctionDecl::new(
            "replace",
            [
                OverloadDecl::member("string_replace_string_string", [String, String, String], String),
                OverloadDecl::member("string_replace_string_string_int", [String, String, String, Int], String),
            ],
        ),
        FunctionDecl::new(
            "split",
            [
                OverloadDecl::member("string_split_string", [String, String], Type::list(String)),
                OverloadDecl::member("string_split_string_int", [String, String, Int], Type::list(String)),
            ],
        ),
        FunctionDecl::new("strings.quote", [OverloadDecl::global("strings_quote", [String], String)]),
        FunctionDecl::new(
            "substring",
            [
                OverloadDecl::member("string_substring_int", [String, Int], String),
                OverloadDecl::member("string_substring_int_int", [String, Int, Int], String),
            ],
        ),
        FunctionDecl::new("trim", [OverloadDecl::member("string_trim", [String], String)]),
        FunctionDecl::new("upperAscii", [OverloadDecl::member("string_upper_ascii", [String], String)]),
    ]
}
