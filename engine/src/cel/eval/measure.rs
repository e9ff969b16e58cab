//! The sizes of values, for the cost model.

use super::value::Value;

impl<'a> Value<'a> {
    /// The result of `size()` for strings, bytes, lists, maps, objects, IP addresses and networks; 1 for any other
    /// value.
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

    /// The same for the content of an optional.
    pub fn content_size(&self) -> u64 {
        match self {
            Value::Optional(Some(value)) => value.content_size(),
            other => other.size(),
        }
    }

    /// The length of a string or of `bytes` in bytes; `None` for other values.
    pub fn text_bytes(&self) -> Option<u64> {
        match self {
            Value::String(text) => Some(text.len() as u64),
            Value::Bytes(bytes) => Some(bytes.len() as u64),
            _ => None,
        }
    }

    /// Visits every element of a list, or every key and value of a map or object. Returns false, without any visit, for
    /// other values.
    pub fn for_each(&self, visit: &mut dyn FnMut(&Value<'a>)) -> bool {
        // A value that does not fit its schema is an error; each of these counts as a scalar.
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
