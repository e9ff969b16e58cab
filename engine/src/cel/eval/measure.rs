//! What the cost model asks of values.

use super::value::Value;

impl<'a> Value<'a> {
    /// `size()` of strings, bytes, lists, maps, objects, IP addresses and networks; 1 for any other value.
    pub fn size(&self) -> u64 {
        match self {
            Value::String(text) => text.characters(),
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::List(list) => list.len() as u64,
            Value::Map(map) => map.len() as u64,
            Value::Opaque(value) => value.size(),
            _ => 1,
        }
    }

    /// The same, of what an optional holds where this is one.
    pub fn content_size(&self) -> u64 {
        match self {
            Value::Optional(Some(value)) => value.content_size(),
            other => other.size(),
        }
    }

    /// Bytes of a string, or of bytes; `None` for other values.
    pub fn text_bytes(&self) -> Option<u64> {
        match self {
            Value::String(text) => Some(text.len() as u64),
            Value::Bytes(bytes) => Some(bytes.len() as u64),
            _ => None,
        }
    }

    /// Shows every element of a list, or every key and value of a map or object; false, and none, for other values.
    pub fn for_each(&self, visit: &mut dyn FnMut(&Value<'a>)) -> bool {
        // What does not fit its schema is an error; of these each counts as a scalar does.
        match self {
            Value::List(list) => list.iter().for_each(|item| visit(&item.unwrap_or_default())),
            Value::Map(map) => {
                for (key, value) in map.entries() {
                    visit(&key);
                    visit(&value.unwrap_or_default());
                }
            }
            _ => return false,
        }
        true
    }
}
