//! Fields that stay JSON until one is accessed.

use std::sync::{Arc, OnceLock};

use smol_str::SmolStr;

use super::{Value, json};
use crate::work;

/// The text of an object, and its fields once they are read.
#[derive(Debug)]
pub(super) struct Unread<V> {
    text: Box<str>,
    read: fn(&str) -> Vec<(SmolStr, V)>,
    fields: OnceLock<Vec<(SmolStr, V)>>,
}

impl Unread<Value> {
    /// `text` is compact JSON of an object, with sorted fields.
    pub fn new(text: Box<str>) -> Self {
        Unread { text, read, fields: OnceLock::new() }
    }
}

impl<V> Unread<V> {
    pub fn text(&self) -> &str {
        &self.text
    }

    pub fn fields(&self) -> &Vec<(SmolStr, V)> {
        self.fields.get_or_init(|| (self.read)(&self.text))
    }

    /// Takes the fields to change them; other owners of the text keep them.
    pub fn take(unread: &mut Arc<Self>) -> Vec<(SmolStr, V)> {
        let known = Arc::get_mut(unread).and_then(|unread| unread.fields.take());
        known.unwrap_or_else(|| (unread.read)(&unread.text))
    }
}

/// Empty if the text is not an object.
fn read(text: &str) -> Vec<(SmolStr, Value)> {
    // Others may be waiting for the fields, so the budget of the first request must not abort reading.
    match work::essential(|| json::decode(text.as_bytes())) {
        Ok(Value::Object(fields)) => fields.into_iter().collect(),
        _ => Vec::new(),
    }
}
