//! Paths of JSON patches: `jsonpatch.escapeKey(…)`, available in expressions of mutations.

use super::arguments::text;
use crate::cel::cost::formula::TRAVERSE;
use crate::cel::eval::Value;
use crate::cel::function::{Function, Overload};
use crate::cel::types::Type::String;

pub(in crate::cel) fn functions() -> Vec<Function> {
    let id = "string_jsonpatch_escapeKey_string";
    let escape_key =
        Overload::global(id, [String], String, TRAVERSE, |_, arguments| Ok(Value::string(escape(text(arguments, 0)?))));
    vec![Function::new("jsonpatch.escapeKey", [escape_key])]
}

/// Escapes `key` as a segment of a JSON pointer.
fn escape(key: &str) -> std::string::String {
    key.replace('~', "~0").replace('/', "~1")
}
