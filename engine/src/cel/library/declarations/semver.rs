//! Semantic versions.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, Bool, Int, String};

pub fn functions() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new("compareTo", [OverloadDecl::member("semver_compare_to", [semver(), semver()], Int)]),
        FunctionDecl::new(
            "isGreaterThan",
            [OverloadDecl::member("semver_is_greater_than", [semver(), semver()], Bool)],
        ),
        FunctionDecl::new("isLessThan", [OverloadDecl::member("semver_is_less_than", [semver(), semver()], Bool)]),
        FunctionDecl::new(
            "isSemver",
            [
                OverloadDecl::global("is_semver_string", [String], Bool),
                OverloadDecl::global("is_semver_string_bool", [String, Bool], Bool),
            ],
        ),
        FunctionDecl::new("major", [OverloadDecl::member("semver_major", [semver()], Int)]),
        FunctionDecl::new("minor", [OverloadDecl::member("semver_minor", [semver()], Int)]),
        FunctionDecl::new("patch", [OverloadDecl::member("semver_patch", [semver()], Int)]),
        FunctionDecl::new(
            "semver",
            [
                OverloadDecl::global("string_to_semver", [String], semver()),
                OverloadDecl::global("string_bool_to_semver", [String, Bool], semver()),
            ],
        ),
    ]
}

fn semver() -> Type {
    Type::object("kubernetes.Semver")
}
