//! Hostile inputs of any size.

use kubeskiff::value::{Value, json};

pub use crate::schemas::{SCHEMAS, definition, definition_of};
pub use crate::widgets::{METADATA, SCHEMA, SPECS, structural, widget};

/// The name of a shape, and the input of so many items that has it.
pub type Shape = (&'static str, fn(usize) -> String);
/// Makes an input of so many items.
pub type Make<T> = Box<dyn Fn(usize) -> T + Send + Sync>;

/// What `item` makes of each number, with commas between.
pub fn items(count: usize, item: impl Fn(usize) -> String) -> String {
    (0..count).map(item).collect::<Vec<_>>().join(",")
}

/// A JSON object or list of such items.
pub fn fields(count: usize, item: impl Fn(usize) -> String) -> String {
    format!("{{{}}}", items(count, item))
}

pub fn list(count: usize, item: impl Fn(usize) -> String) -> String {
    format!("[{}]", items(count, item))
}

/// The value of a JSON text.
pub fn value(text: &str) -> Value {
    json::decode(text.as_bytes()).expect("the input is JSON")
}

/// The JSON texts that any reader of JSON is tried with.
pub const SHAPES: [Shape; 10] = [
    ("many keys", |size| fields(size, |at| format!(r#""k{at}":{at}"#))),
    ("keys in reverse order", |size| fields(size, |at| format!(r#""k{:09}":1"#, size - at))),
    ("one key many times", |size| fields(size, |at| format!(r#""k":{at}"#))),
    ("every key twice", |size| fields(size, |at| format!(r#""k{}":1"#, at / 2))),
    ("keys that begin alike", |size| fields(size, |at| format!(r#""{}{at}":1"#, "x".repeat(50)))),
    ("many items", |size| list(size, |at| at.to_string())),
    ("many objects", |size| list(size, |at| format!(r#"{{"name":"n{at}","value":[{at}]}}"#))),
    ("a long string", |size| format!(r#"{{"k":"{}"}}"#, "a\\n".repeat(size))),
    ("a long key", |size| format!(r#"{{"{}":1}}"#, "x".repeat(size))),
    ("nested lists", |size| format!("{}{}", "[".repeat(size), "]".repeat(size))),
];

/// What `line` makes of each number, each with its line feed.
pub fn lines(count: usize, line: impl Fn(usize) -> String) -> String {
    (0..count).map(|at| line(at) + "\n").collect()
}
