//! Attributes: a value, and the path from it to a part of it.

use super::{Machine, StepResult, is_over};
use crate::cel::cost::model;
use crate::cel::eval::attribute;
use crate::cel::eval::error::EvalError;
use crate::cel::eval::map::Map;
use crate::cel::eval::node::{AccessKey, Attribute, Qualifier, Root};
use crate::cel::eval::value::Value;

impl<'a> Machine<'a, '_> {
    #[inline(never)]
    pub(super) fn attribute(&mut self, attribute: &'a Attribute) -> StepResult<'a> {
        let mut value = self.resolve(attribute);
        let presence = attribute.qualifiers.last().is_some_and(|last| last.presence);
        match (&attribute.root, presence) {
            (Root::Conditional(_), true) if !is_over(&value) => self.cost = self.cost.saturating_sub(model::SELECT),
            (Root::Conditional(_), _) | (_, true) => {}
            (_, false) => self.charge_for(&mut value, model::SELECT),
        }
        // In a branch of a conditional, and as a key, `has(a.?b)` stays the optional value.
        if let (Ok(Value::Optional(content)), true) = (&value, presence) {
            value = Ok(Value::Bool(content.is_some()));
        }
        value.and_then(Value::read)
    }

    /// Resolves an attribute. Its qualifiers have a cost, and so do its root and its keys; the attribute itself only
    /// has one if it is used by itself.
    fn resolve(&mut self, attribute: &'a Attribute) -> StepResult<'a> {
        let mut value = match &attribute.root {
            Root::Variable(place) => self.variable(*place)?,
            Root::Local(slot) => self.local(*slot, 0)?,
            Root::Node(node) => self.evaluate(node)?,
            Root::Conditional(conditional) => match self.evaluate(&conditional.condition)? {
                Value::Bool(true) => self.resolve(&conditional.truthy)?,
                Value::Bool(false) => self.resolve(&conditional.falsy)?,
                _ => return Err(EvalError::no_such_overload()),
            },
        };
        if attribute.qualifiers.is_empty() {
            return Ok(value);
        }
        let mut is_optional = false;
        if let Value::Optional(content) = value {
            let Some(content) = content else { return Ok(Value::OPTIONAL_NONE) };
            value = Value::clone(&content).read()?;
            is_optional = true;
        }
        for qualifier in &attribute.qualifiers {
            is_optional |= qualifier.optional;
            let found = match self.qualify(&value, qualifier, is_optional || qualifier.presence) {
                Err(error) if is_optional || error.is_final() => return Err(error),
                Ok(None) if is_optional => return Ok(Value::OPTIONAL_NONE),
                found => found,
            };
            self.charge(model::SELECT)?;
            value = match found? {
                found if qualifier.presence && !is_optional => Value::Bool(found.is_some()),
                Some(found) => found,
                None => return Err(EvalError::no_such_overload()),
            };
        }
        Ok(if is_optional { Value::optional_of(value) } else { value })
    }

    /// The part of `value` at `qualifier`; `None` only if it `may_miss`.
    fn qualify(
        &mut self,
        value: &Value<'a>,
        qualifier: &'a Qualifier,
        may_miss: bool,
    ) -> Result<Option<Value<'a>>, EvalError> {
        match &qualifier.key {
            AccessKey::Field { written, property } => match (value, property) {
                (Value::Map(Map::Variables), _) => self.composed(written, may_miss),
                (Value::Map(map @ Map::Host { .. }), Some(property)) => match map.property(property, written)? {
                    None if !may_miss => Err(attribute::no_such_key(written)),
                    found => Ok(found),
                },
                _ => attribute::qualify(value, written, may_miss),
            },
            AccessKey::Part(name) => part(value, name, may_miss),
            AccessKey::Constant(key) if matches!(value, Value::Map(Map::Variables)) => self.composed(key, may_miss),
            AccessKey::Constant(key) => attribute::qualify(value, key, may_miss),
            AccessKey::Dynamic(dynamic) => {
                let key = self.resolve(dynamic)?.read()?;
                attribute::check_key(&key)?;
                match value {
                    Value::Map(Map::Variables) => self.composed(&key, may_miss),
                    _ => attribute::qualify(value, &key, may_miss),
                }
            }
        }
    }

    fn composed(&self, name: &Value<'_>, may_miss: bool) -> Result<Option<Value<'a>>, EvalError> {
        let composed = || self.composed?.value(name.as_str()?);
        match composed().transpose()? {
            None if !may_miss => Err(attribute::no_such_key(name)),
            found => Ok(found),
        }
    }
}

/// The field `name` of a part of an object; null if it was not set.
fn part<'a>(value: &Value<'a>, name: &str, may_miss: bool) -> Result<Option<Value<'a>>, EvalError> {
    let found = match value {
        Value::Struct(object) => object.select(name),
        _ => Err(EvalError::new(format!("cannot get field \"{name}\""))),
    };
    if may_miss { Ok(found.ok().flatten()) } else { found.map(|found| Some(found.unwrap_or_default())) }
}
