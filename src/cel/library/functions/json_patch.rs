//! Paths of JSON patches: `jsonpatch.escapeKey(…)`.

use super::arguments::text;
use crate::cel::eval::{Function, Value};

pub fn implementation(id: &str) -> Option<Function> {
    match id {
        "string_jsonpatch_escapeKey_string" => Some(|_, arguments| Ok(Value::string(escape(text(arguments, 0)?)))),
        _ => None,
    }
}

/// `key` as a step of a JSON pointer.
fn escape(key: &str) -> String {
    key.replace('~', "~0").replace('/', "~1")
}
