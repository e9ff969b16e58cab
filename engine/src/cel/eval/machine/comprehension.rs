//! Comprehensions: iterations over a list or a map, with variables in slots.

use super::{Local, Machine, StepResult, is_over};
use crate::cel::cost::model;
use crate::cel::eval::error::EvalError;
use crate::cel::eval::list::List;
use crate::cel::eval::map::Map;
use crate::cel::eval::node::{Append, Fold, Insert, Merge, Quantifier};
use crate::cel::eval::show::go_type;
use crate::cel::eval::show::show;
use crate::cel::eval::value::Value;

impl<'a> Machine<'a, '_> {
    #[inline(never)]
    pub(super) fn fold(&mut self, fold: &'a Fold) -> StepResult<'a> {
        let range = self.evaluate(&fold.range)?;
        self.locals[fold.accumulator] = Local::Pending(&fold.init);
        self.each(&range, fold.first, fold.second, |machine| {
            match machine.evaluate(&fold.condition) {
                Ok(Value::Bool(false)) => return Ok(false),
                Err(error) if error.is_final() => return Err(error),
                _ => {}
            }
            match machine.evaluate(&fold.step) {
                Err(error) if error.is_final() => return Err(error),
                step => machine.locals[fold.accumulator] = Local::Set(step),
            }
            Ok(true)
        })?;
        self.evaluate(&fold.result)
    }

    /// Evaluates `all` and `exists`, with the costs of the comprehensions that they are: the accumulator is read before
    /// each iteration to see whether it is decided, in the iteration, and in the end.
    #[inline(never)]
    pub(super) fn quantify(&mut self, quantifier: &'a Quantifier) -> StepResult<'a> {
        let range = self.evaluate(&quantifier.range)?;
        let decisive = quantifier.decisive;
        // `exists` negates the accumulator before testing it.
        let condition_steps = if decisive { 3 } else { 2 };
        let (mut decided, mut failed) = (false, None);
        self.each(&range, quantifier.first, quantifier.second, |machine| {
            machine.charge_steps(condition_steps)?;
            if decided {
                return Ok(false);
            }
            machine.charge(model::SELECT)?;
            match machine.evaluate(&quantifier.predicate) {
                Ok(Value::Bool(truth)) => decided = truth == decisive,
                Ok(_) => _ = failed.get_or_insert_with(EvalError::no_such_overload),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => _ = failed.get_or_insert(error),
            }
            Ok(true)
        })?;
        self.charge(model::SELECT)?;
        match failed {
            Some(error) if !decided => Err(error),
            _ => Ok(Value::Bool(decided == decisive)),
        }
    }

    /// Runs `round` with each item or entry of `range` in the slots, until it returns false.
    fn each(
        &mut self,
        range: &Value<'a>,
        first: usize,
        second: Option<usize>,
        mut round: impl FnMut(&mut Self) -> Result<bool, EvalError>,
    ) -> Result<(), EvalError> {
        match (range, second) {
            (Value::List(list), None) => {
                for index in 0..list.len() {
                    self.set_item(first, list, index);
                    if !round(self)? {
                        break;
                    }
                }
            }
            (Value::List(list), Some(second)) => {
                for index in 0..list.len() {
                    self.locals[first] = Local::Set(Ok(Value::Int(index as i64)));
                    self.set_item(second, list, index);
                    if !round(self)? {
                        break;
                    }
                }
            }
            (Value::Map(map), None) => {
                for key in map.keys() {
                    self.locals[first] = Local::Set(Ok(key));
                    if !round(self)? {
                        break;
                    }
                }
            }
            (Value::Map(map), Some(second)) => {
                for (key, value) in map.entries() {
                    self.locals[first] = Local::Set(Ok(key));
                    self.locals[second] = Local::Set(value);
                    if !round(self)? {
                        break;
                    }
                }
            }
            (other, None) => {
                return Err(EvalError::new(format!("got '{}', expected iterable type", go_type(other))));
            }
            (other, Some(_)) => {
                return Err(EvalError::new(format!("unsupported comprehension range type: {}", go_type(other))));
            }
        }
        Ok(())
    }

    fn set_item(&mut self, slot: usize, list: &List<'a>, index: usize) {
        match &mut self.locals[slot] {
            // Only the index changes between iterations.
            Local::Item { index: place, .. } if index > 0 => *place = index,
            local => *local = Local::Item { list: list.clone(), index },
        }
    }

    /// Takes the accumulator out of its slot, so that nothing else references it.
    fn take_accumulator(&mut self, slot: usize) -> StepResult<'a> {
        match std::mem::take(&mut self.locals[slot]) {
            Local::Set(value) => value,
            Local::Pending(init) => self.evaluate(init),
            Local::Item { .. } | Local::Unset => Err(EvalError::no_such_overload()),
        }
    }

    #[inline(never)]
    pub(super) fn append(&mut self, append: &'a Append) -> StepResult<'a> {
        let mut accumulator = self.take_accumulator(append.accumulator);
        self.charge_for(&mut accumulator, model::SELECT);
        if is_over(&accumulator) {
            return accumulator;
        }
        let element = self.evaluate(&append.element);
        if is_over(&element) {
            return element;
        }
        self.charge(append.cost)?;
        self.charge(model::CALL)?;
        match (accumulator?, element?) {
            (Value::List(list), element) => list.push(element).map(Value::List),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    pub(super) fn insert(&mut self, insert: &'a Insert) -> StepResult<'a> {
        let mut accumulator = self.take_accumulator(insert.accumulator);
        self.charge_for(&mut accumulator, model::SELECT);
        let Value::Map(map) = accumulator? else { return Err(EvalError::no_such_overload()) };
        let key = self.evaluate(&insert.key)?;
        let mut value = self.evaluate(&insert.value);
        self.charge_for(&mut value, model::CALL);
        insert_new(map, key, value?).map(Value::Map)
    }

    pub(super) fn merge(&mut self, merge: &'a Merge) -> StepResult<'a> {
        let mut accumulator = self.take_accumulator(merge.accumulator);
        self.charge_for(&mut accumulator, model::SELECT);
        if is_over(&accumulator) {
            return accumulator;
        }
        let mut entries = self.evaluate(&merge.entries);
        self.charge_for(&mut entries, model::CALL);
        let (Value::Map(mut map), Value::Map(entries)) = (accumulator?, entries?) else {
            return Err(EvalError::no_such_overload());
        };
        for (key, value) in entries.entries() {
            map = insert_new(map, key, value?)?;
        }
        Ok(Value::Map(map))
    }
}

/// Adds an entry to `map`, with a key that it does not have yet.
fn insert_new<'a>(map: Map<'a>, key: Value<'a>, value: Value<'a>) -> Result<Map<'a>, EvalError> {
    if map.contains(&key)? {
        return Err(EvalError::new(format!("insert failed: key {} already exists", show(&key))));
    }
    map.insert(key, value)
}
