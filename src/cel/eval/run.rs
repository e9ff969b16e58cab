//! The interpreter: walks the compiled form and counts what it costs.
//!
//! Costs are counted as the reference counts them, step by step, and whether or not a step fails: a part of an
//! expression that is not evaluated costs nothing, and an evaluation stops as soon as it costs more than its limit.
//! Source: cel-go 0.29, `interpreter/runtimecost.go`, with the options of Kubernetes (constants folded, presence tests free).

use super::attribute;
use super::dispatch::{go_type, is_adder};
use super::error::EvalError;
use super::list::List;
use super::map::{Map, check_hashable};
use super::message;
use super::node::{
    Append, Attribute, Call, ConstantSet, Element, Entry, Fold, Insert, Key, Merge, Message, Node, Qualifier,
    Quantifier, Root, Shortcut,
};
use super::show::show;
use super::value::{Scope, Value};
use crate::cel::cost::{CallCost, model};

/// What a step comes to.
pub(super) type Outcome<'a> = Result<Value<'a>, EvalError>;

/// What a variable is: nothing, if the activation has none of it; an error, if the host's value does not fit its form.
pub type Binding<'a> = Option<Result<Value<'a>, EvalError>>;

/// The state of an evaluation.
pub(super) struct Machine<'a, 'm> {
    names: &'a [String],
    variables: &'m [Binding<'a>],
    locals: Vec<Local<'a>>,
    scope: Scope<'a>,
    cost: u64,
    limit: u64,
}

/// A variable of a comprehension.
#[derive(Default)]
enum Local<'a> {
    #[default]
    Unset,
    /// The start of an accumulator: evaluated when it is first asked for, if ever.
    Pending(&'a Node),
    Set(Outcome<'a>),
    /// An item of the range; it is read when it is asked for.
    Item {
        list: List<'a>,
        index: usize,
    },
}

impl<'a, 'm> Machine<'a, 'm> {
    /// `names` are those of `variables`.
    pub(super) fn new(names: &'a [String], variables: &'m [Binding<'a>], slots: usize, limit: u64) -> Self {
        let locals = std::iter::repeat_with(Local::default).take(slots).collect();
        Machine { names, variables, locals, scope: Scope::default(), cost: 0, limit }
    }

    pub(super) fn cost(&self) -> u64 {
        self.cost
    }

    fn charge(&mut self, cost: u64) -> Result<(), EvalError> {
        self.cost = self.cost.saturating_add(cost);
        if self.cost > self.limit { Err(EvalError::CostLimitExceeded) } else { Ok(()) }
    }

    /// Charges steps of cost 1, which end with the first that is too much.
    fn charge_steps(&mut self, steps: u64) -> Result<(), EvalError> {
        self.charge(steps).inspect_err(|_| self.cost = self.limit.saturating_add(1))
    }

    pub(super) fn evaluate(&mut self, node: &'a Node) -> Outcome<'a> {
        match node {
            Node::Constant(value) => Ok(value.lend()),
            Node::Local(slot) => {
                let value = settle(self.local(*slot))?;
                self.charge(model::SELECT)?;
                value
            }
            Node::Attribute(attribute) => self.attribute(attribute),
            Node::And(terms) => self.logical(terms, false),
            Node::Or(terms) => self.logical(terms, true),
            Node::Equal(sides) => self.compare(sides, true),
            Node::NotEqual(sides) => self.compare(sides, false),
            Node::Call(call) if call.shortcut.is_some() => self.call_shortly(call),
            Node::Call(call) => match call.arguments.len() {
                1 => self.call(call, [const { Value::Null }; 1]),
                2 => self.call(call, [const { Value::Null }; 2]),
                count => self.call(call, vec![Value::Null; count]),
            },
            Node::Quantifier(quantifier) => self.quantify(quantifier),
            Node::Fold(fold) => self.fold(fold),
            Node::Append(append) => self.append(append),
            rare => self.evaluate_rare(rare),
        }
    }

    /// Kept apart, so that the common steps need little of the stack.
    #[inline(never)]
    fn evaluate_rare(&mut self, node: &'a Node) -> Outcome<'a> {
        match node {
            Node::Variable(place) => {
                self.charge(model::SELECT)?;
                self.variable(*place)
            }
            Node::NotStrictlyFalse(argument) => {
                let value = settle(self.evaluate(argument))?;
                self.charge(model::CALL)?;
                Ok(Value::Bool(!matches!(value, Ok(Value::Bool(false)))))
            }
            Node::OptionalOr(sides) => match self.evaluate(&sides[0])? {
                Value::Optional(None) => self.evaluate(&sides[1]),
                value @ Value::Optional(Some(_)) => Ok(value),
                _ => Err(EvalError::no_such_overload()),
            },
            Node::OptionalOrValue(sides) => match self.evaluate(&sides[0])? {
                Value::Optional(None) => self.evaluate(&sides[1]),
                Value::Optional(Some(value)) => Ok((*value).clone()),
                _ => Err(EvalError::no_such_overload()),
            },
            Node::Membership(membership) => {
                let element = self.evaluate(&membership.element)?;
                check_hashable(&element)?;
                Ok(Value::Bool(membership.set.contains(&element)))
            }
            Node::List(elements) => {
                let list = settle(self.list(elements))?;
                self.charge(model::MAKE_LIST)?;
                list
            }
            Node::Map(entries) => {
                let map = settle(self.map(entries))?;
                self.charge(model::MAKE_MAP)?;
                map
            }
            Node::Message(message) => {
                let value = settle(self.message(message))?;
                self.charge(model::MAKE_STRUCT)?;
                value
            }
            Node::Insert(insert) => self.insert(insert),
            Node::Merge(merge) => self.merge(merge),
            common => self.evaluate(common),
        }
    }

    fn attribute(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let value = settle(self.resolve(attribute))?;
        let presence = attribute.qualifiers.last().is_some_and(|last| last.presence);
        match (&attribute.root, presence) {
            (Root::Conditional(_), true) => self.cost = self.cost.saturating_sub(model::SELECT),
            (Root::Conditional(_), false) | (_, true) => {}
            (_, false) => self.charge(model::SELECT)?,
        }
        match value {
            // In a branch of a conditional, and as a key, `has(a.?b)` stays the optional value.
            Ok(Value::Optional(content)) if presence => Ok(Value::Bool(content.is_some())),
            value => value,
        }
    }

    fn variable(&self, place: usize) -> Outcome<'a> {
        match self.variables.get(place) {
            Some(Some(value)) => value.clone(),
            Some(None) | None => {
                let name = self.names.get(place).map_or("", String::as_str);
                Err(EvalError::new(format!("no such attribute(s): {name}")))
            }
        }
    }

    fn local(&mut self, slot: usize) -> Outcome<'a> {
        match &self.locals[slot] {
            Local::Set(value) => value.clone(),
            Local::Item { list, index } => list.item(*index),
            Local::Pending(init) => {
                let value = self.evaluate(init);
                self.locals[slot] = Local::Set(value.clone());
                value
            }
            Local::Unset => Err(EvalError::new("no such attribute(s): ")),
        }
    }

    /// `&&`, which `false` decides, or `||`, which `true` does. Errors count only if nothing decides.
    fn logical(&mut self, terms: &'a [Node; 2], decisive: bool) -> Outcome<'a> {
        let mut failed = None;
        for term in terms {
            match self.evaluate(term) {
                Ok(Value::Bool(truth)) if truth == decisive => return Ok(Value::Bool(decisive)),
                Ok(Value::Bool(_)) => {}
                Ok(_) => _ = failed.get_or_insert_with(EvalError::no_such_overload),
                Err(error) if error.is_final() => return Err(error),
                Err(error) => _ = failed.get_or_insert(error),
            }
        }
        failed.map_or(Ok(Value::Bool(!decisive)), Err)
    }

    fn compare(&mut self, sides: &'a [Node; 2], is_equals: bool) -> Outcome<'a> {
        let left = settle(self.evaluate(&sides[0]))?;
        let right = settle(self.evaluate(&sides[1]))?;
        let (values, failed) = match (left, right) {
            (Ok(left), Ok(right)) => ([left, right], None),
            (Ok(left), Err(error)) => ([left, Value::Null], Some(error)),
            (Err(error), right) => ([Value::Null, right.unwrap_or_default()], Some(error)),
        };
        self.charge(CallCost::Compare { is_equals }.actual(&values, &Value::Null))?;
        if let Some(error) = failed {
            return Err(error);
        }
        let equal = values[0].is(&values[1]);
        // What can't be compared is not equal.
        if is_equals { equal.map(Value::Bool) } else { Ok(Value::Bool(equal != Ok(true))) }
    }

    /// A call that is most often one of a few: these are done here, where the values just lie.
    fn call_shortly(&mut self, call: &'a Call) -> Outcome<'a> {
        match (call.arguments.as_slice(), call.shortcut) {
            ([argument], Some(shortcut)) => {
                let value = self.evaluate(argument);
                let short = match (shortcut, &value) {
                    (Shortcut::Not, Ok(Value::Bool(truth))) => Value::Bool(!truth),
                    (Shortcut::Size, Ok(Value::String(text))) => Value::Int(text.characters() as i64),
                    (Shortcut::Size, Ok(Value::List(list))) => Value::Int(list.len() as i64),
                    _ => return self.complete(call, [value]),
                };
                self.charge(model::CALL)?;
                Ok(short)
            }
            ([left, right], Some(shortcut)) => {
                let left = self.evaluate(left);
                if left.as_ref().is_err_and(EvalError::is_final) {
                    return left;
                }
                let right = self.evaluate(right);
                if let (Ok(Value::Int(left)), Ok(Value::Int(right))) = (&left, &right)
                    && let Some(truth) = shortcut.compare(*left, *right)
                {
                    self.charge(model::CALL)?;
                    return Ok(Value::Bool(truth));
                }
                self.complete(call, [left, right])
            }
            (arguments, _) => self.call(call, vec![Value::Null; arguments.len()]),
        }
    }

    /// Calls with arguments that were evaluated already.
    fn complete<const N: usize>(&mut self, call: &'a Call, arguments: [Outcome<'a>; N]) -> Outcome<'a> {
        let mut values = [const { Value::Null }; N];
        let (mut failed, mut failed_at) = (None, None);
        for (place, (argument, value)) in arguments.into_iter().zip(&mut values).enumerate() {
            match argument {
                Ok(argument) => *value = argument,
                Err(error) if error.is_final() => return Err(error),
                // The cost is lost unless all arguments were looked at.
                Err(error) if call.stops_at_failure && place + 1 < N => return Err(error),
                Err(error) => {
                    failed_at = Some(place);
                    failed.get_or_insert(error);
                }
            }
        }
        self.invoke(call, &values, failed, failed_at)
    }

    fn call<A: AsRef<[Value<'a>]> + AsMut<[Value<'a>]>>(&mut self, call: &'a Call, mut values: A) -> Outcome<'a> {
        let (mut failed, mut failed_at) = (None, None);
        for (place, (argument, value)) in call.arguments.iter().zip(values.as_mut()).enumerate() {
            match self.evaluate(argument) {
                Ok(argument) => *value = argument,
                Err(error) if error.is_final() => return Err(error),
                Err(error) if call.stops_at_failure && place + 1 < call.arguments.len() => return Err(error),
                Err(error) => {
                    failed_at = Some(place);
                    failed.get_or_insert(error);
                }
            }
        }
        self.invoke(call, values.as_ref(), failed, failed_at)
    }

    /// Calls with `values`, unless an argument `failed`, the last of these at a place, and charges for it.
    fn invoke(
        &mut self,
        call: &'a Call,
        values: &[Value<'a>],
        failed: Option<EvalError>,
        failed_at: Option<usize>,
    ) -> Outcome<'a> {
        let result = match failed {
            Some(error) => Err(error),
            None => {
                self.scope.constant_pattern = call.pattern.as_ref();
                call.invoke(&mut self.scope, values)
            }
        };
        match call.cost {
            _ if result.as_ref().is_err_and(EvalError::is_final) => return result,
            CallCost::One => self.charge(model::CALL)?,
            cost => {
                check_priceable(cost, values, failed_at)?;
                let nothing = Value::Null;
                self.charge(cost.actual(values, result.as_ref().unwrap_or(&nothing)))?;
            }
        }
        result
    }

    fn list(&mut self, elements: &'a [Element]) -> Outcome<'a> {
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

    fn map(&mut self, entries: &'a [Entry]) -> Outcome<'a> {
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

    fn message(&mut self, message: &'a Message) -> Outcome<'a> {
        let mut fields = Vec::with_capacity(message.fields.len());
        for (name, field) in &message.fields {
            match (self.evaluate(&field.value)?, field.optional) {
                (value, false) => fields.push((name.as_str(), value)),
                (Value::Optional(None), true) => fields.retain(|(known, _)| *known != name.as_str()),
                (Value::Optional(Some(value)), true) => fields.push((name.as_str(), (*value).clone())),
                (value, true) => return Err(no_optional_entry(name, &value)),
            }
        }
        message::value(&message.name, fields)
    }

    fn fold(&mut self, fold: &'a Fold) -> Outcome<'a> {
        let range = self.evaluate(&fold.range)?;
        self.locals[fold.accumulator] = Local::Pending(&fold.init);
        self.each(&range, fold.first, fold.second, |machine| {
            if let Ok(Value::Bool(false)) = settle(machine.evaluate(&fold.condition))? {
                return Ok(false);
            }
            let step = settle(machine.evaluate(&fold.step))?;
            machine.locals[fold.accumulator] = Local::Set(step);
            Ok(true)
        })?;
        self.evaluate(&fold.result)
    }

    /// `all` and `exists`, with the costs of the comprehensions that they are: the accumulator is read before each round
    /// to see whether it is decided, in the round, and in the end.
    fn quantify(&mut self, quantifier: &'a Quantifier) -> Outcome<'a> {
        let range = self.evaluate(&quantifier.range)?;
        let decisive = quantifier.decisive;
        // `exists` negates the accumulator before it looks at it.
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

    /// Runs `round` with each item or entry of `range` in the slots, until it says that it was the last.
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
            // Only the index changes from round to round.
            Local::Item { index: place, .. } if index > 0 => *place = index,
            local => *local = Local::Item { list: list.clone(), index },
        }
    }

    /// Takes the accumulator out of its slot, so that nothing else holds it.
    fn take_accumulator(&mut self, slot: usize) -> Outcome<'a> {
        match std::mem::take(&mut self.locals[slot]) {
            Local::Set(value) => value,
            Local::Pending(init) => self.evaluate(init),
            Local::Item { .. } | Local::Unset => Err(EvalError::no_such_overload()),
        }
    }

    fn append(&mut self, append: &'a Append) -> Outcome<'a> {
        let accumulator = settle(self.take_accumulator(append.accumulator))?;
        self.charge(model::SELECT)?;
        let element = settle(self.evaluate(&append.element))?;
        self.charge(append.cost)?;
        self.charge(model::CALL)?;
        match (accumulator?, element?) {
            (Value::List(list), element) => list.push(element).map(Value::List),
            _ => Err(EvalError::no_such_overload()),
        }
    }

    fn insert(&mut self, insert: &'a Insert) -> Outcome<'a> {
        let accumulator = settle(self.take_accumulator(insert.accumulator))?;
        self.charge(model::SELECT)?;
        let Value::Map(map) = accumulator? else { return Err(EvalError::no_such_overload()) };
        let key = self.evaluate(&insert.key)?;
        let value = settle(self.evaluate(&insert.value))?;
        self.charge(model::CALL)?;
        insert_new(map, key, value?).map(Value::Map)
    }

    fn merge(&mut self, merge: &'a Merge) -> Outcome<'a> {
        let accumulator = settle(self.take_accumulator(merge.accumulator))?;
        self.charge(model::SELECT)?;
        let entries = settle(self.evaluate(&merge.entries))?;
        self.charge(model::CALL)?;
        let (Value::Map(mut map), Value::Map(entries)) = (accumulator?, entries?) else {
            return Err(EvalError::no_such_overload());
        };
        for (key, value) in entries.entries() {
            map = insert_new(map, key, value?)?;
        }
        Ok(Value::Map(map))
    }

    /// Follows an attribute. Its qualifiers cost, and what its root and its keys cost on their own; the attribute itself
    /// costs only where it stands for itself.
    fn resolve(&mut self, attribute: &'a Attribute) -> Outcome<'a> {
        let mut value = match &attribute.root {
            Root::Variable(place) => self.variable(*place)?,
            Root::Local(slot) => self.local(*slot)?,
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
            value = (*content).clone();
            is_optional = true;
        }
        for qualifier in &attribute.qualifiers {
            is_optional |= qualifier.optional;
            let found = settle(self.qualify(&value, qualifier, is_optional || qualifier.presence))?;
            if is_optional {
                match found? {
                    Some(found) => {
                        self.charge(model::SELECT)?;
                        value = found;
                    }
                    None => return Ok(Value::OPTIONAL_NONE),
                }
            } else {
                self.charge(model::SELECT)?;
                value = match found? {
                    found if qualifier.presence => Value::Bool(found.is_some()),
                    Some(found) => found,
                    None => return Err(EvalError::no_such_overload()),
                };
            }
        }
        Ok(if is_optional { Value::optional_of(value) } else { value })
    }

    /// What `qualifier` leads to from `value`; nothing only if that `may_miss`.
    fn qualify(
        &mut self,
        value: &Value<'a>,
        qualifier: &'a Qualifier,
        may_miss: bool,
    ) -> Result<Option<Value<'a>>, EvalError> {
        match &qualifier.key {
            Key::Field { written, property } => match (value, property) {
                (Value::Map(map @ Map::Host { .. }), Some(property)) => match map.property(property, written)? {
                    None if !may_miss => Err(attribute::no_such_key(written)),
                    found => Ok(found),
                },
                _ => attribute::qualify(value, written, may_miss),
            },
            Key::Constant(key) => attribute::qualify(value, key, may_miss),
            Key::Dynamic(dynamic) => {
                let key = self.resolve(dynamic)?;
                attribute::check_key(&key)?;
                attribute::qualify(value, &key, may_miss)
            }
        }
    }
}

/// Whether the reference can price a call at all: it insists on lists where it goes through them. `failed_at` is the
/// last argument without a value.
fn check_priceable(cost: CallCost, values: &[Value<'_>], failed_at: Option<usize>) -> Result<(), EvalError> {
    let (place, wanted) = match cost {
        CallCost::Distinct => (0, None),
        CallCost::Sort { by_keys, .. } => (usize::from(by_keys), None),
        CallCost::Flatten if values.len() == 2 => (1, Some("types.Int")),
        _ => return Ok(()),
    };
    let given = match values.get(place) {
        _ if failed_at == Some(place) => None,
        Some(Value::List(_)) if wanted.is_none() => return Ok(()),
        Some(Value::Int(_)) if wanted.is_some() => return Ok(()),
        given => given,
    };
    let ty = given.map_or("*types.Err", go_type);
    Err(EvalError::Internal(match wanted {
        Some(wanted) => format!("interface conversion: ref.Val is {ty}, not {wanted}").into(),
        None => {
            let lacks = if given.is_some_and(is_adder) { "Contains" } else { "Add" };
            format!("interface conversion: {ty} is not traits.Lister: missing method {lacks}").into()
        }
    }))
}

fn no_optional_entry(key: &str, value: &Value<'_>) -> EvalError {
    EvalError::new(format!("cannot initialize optional entry '{key}' from non-optional value {}", show(value)))
}

/// `map` with one more entry, of a key that it does not have yet.
fn insert_new<'a>(map: Map<'a>, key: Value<'a>, value: Value<'a>) -> Result<Map<'a>, EvalError> {
    if map.contains(&key)? {
        return Err(EvalError::new(format!("insert failed: key {} already exists", show(&key))));
    }
    map.insert(key, value)
}

/// Sets the failure of a step apart from the end of the evaluation.
fn settle<T>(outcome: Result<T, EvalError>) -> Result<Result<T, EvalError>, EvalError> {
    match outcome {
        Err(error) if error.is_final() => Err(error),
        outcome => Ok(outcome),
    }
}

impl ConstantSet {
    fn contains(&self, value: &Value<'_>) -> bool {
        match value {
            Value::Bool(truth) => self.bools[usize::from(*truth)],
            Value::Int(number) => self.ints.contains(number),
            Value::Uint(number) => self.uints.contains(number),
            Value::Double(number) => !number.is_nan() && self.doubles.contains(&(number + 0.0).to_bits()),
            Value::String(text) => self.strings.contains(text.as_str()),
            _ => false,
        }
    }
}
