//! What the cost model asks of values.

use super::value::Value;
use crate::cel::cost::Measure;

impl Measure for Value<'_> {
    fn size(&self) -> u64 {
        match self {
            Value::String(text) => text.characters(),
            Value::Bytes(bytes) => bytes.len() as u64,
            Value::List(list) => list.len() as u64,
            Value::Map(map) => map.len() as u64,
            Value::Opaque(value) => value.size(),
            _ => 1,
        }
    }

    fn content_size(&self) -> u64 {
        match self {
            Value::Optional(Some(value)) => value.content_size(),
            other => other.size(),
        }
    }

    fn text_bytes(&self) -> Option<u64> {
        match self {
            Value::String(text) => Some(text.len() as u64),
            Value::Bytes(bytes) => Some(bytes.len() as u64),
            _ => None,
        }
    }

    fn for_each(&self, visit: &mut dyn FnMut(&Self)) -> bool {
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

    fn begins_with_text(&self) -> bool {
        let Value::List(list) = self else { return false };
        matches!(list.get(0), Some(Ok(Value::String(_) | Value::Bytes(_))))
    }

    fn as_int(&self) -> Option<i64> {
        Value::as_int(self)
    }

    fn is_compared_at_once(&self) -> bool {
        matches!(self, Value::Opaque(_))
    }

    fn format_regex_size(&self) -> Option<u64> {
        match self {
            Value::Opaque(value) => value.format_regex_size(),
            _ => None,
        }
    }
}
