//! Paths of JSON patches; known where mutations are made.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::String;

pub fn functions() -> Vec<FunctionDecl> {
    let escape_key = OverloadDecl::global("string_jsonpatch_escapeKey_string", [String], String);
    vec![FunctionDecl::new("jsonpatch.escapeKey", [escape_key])]
}
