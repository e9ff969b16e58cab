//! Lists, maps and messages that an expression constructs.

use super::{Machine, StepResult};
use crate::cel::eval::error::EvalError;
use crate::cel::eval::map::Map;
use crate::cel::eval::message;
use crate::cel::eval::node::{Element, MapEntryNode, MessageNode};
use crate::cel::eval::show::show;
use crate::cel::eval::structure::Struct;
use crate::cel::eval::value::Value;

impl<'a> Machine<'a, '_> {
    pub(super) fn list(&mut self, elements: &'a [Element]) -> StepResult<'a> {
        let mut items = Vec::with_capacity(elements.len());
        for element in elements {
            match (self.evaluate(&element.value)?, element.optional) {
                (value, false) => items.push(value),
                (Value::Optional(None), true) => {}
                (Value::Optional(Some(value)), true) => items.push((*value).clone()),
                (value, true) => {
                    return Err(EvalError::new(format!(
                        "cannot initialize optional list element from non-optional value {}",
                        show(&value)
                    )));
                }
            }
        }
        Ok(Value::list(items))
    }

    pub(super) fn map(&mut self, entries: &'a [MapEntryNode]) -> StepResult<'a> {
        let mut map = Map::owned([]);
        for entry in entries {
            let key = self.evaluate(&entry.key)?;
            match (self.evaluate(&entry.value)?, entry.optional) {
                (value, false) => map = map.insert(key, value)?,
                (Value::Optional(None), true) => map = map.remove(&key)?,
                (Value::Optional(Some(value)), true) => map = map.insert(key, (*value).clone())?,
                (value, true) => return Err(no_optional_entry(&show(&key), &value)),
            }
        }
        Ok(Value::Map(map))
    }

    pub(super) fn message(&mut self, message: &'a MessageNode) -> StepResult<'a> {
        let mut fields = Vec::with_capacity(message.fields.len());
        for (name, field) in &message.fields {
            match (self.evaluate(&field.value)?, field.optional) {
                (value, false) => fields.push((name.as_str(), value)),
                (Value::Optional(None), true) => fields.retain(|(known, _)| *known != name.as_str()),
                (Value::Optional(Some(value)), true) => fields.push((name.as_str(), (*value).clone())),
                (value, true) => return Err(no_optional_entry(name, &value)),
            }
        }
        match &message.mutation {
            Some(ty) => Struct::new(ty, fields).map(Value::Struct),
            None => message::value(&message.name, fields),
        }
    }
}

fn no_optional_entry(key: &str, value: &Value<'_>) -> EvalError {
    EvalError::new(format!("cannot initialize optional entry '{key}' from non-optional value {}", show(value)))
}
