//! Compiles a checked expression.
//!
//! Names become indices, calls are bound to their implementations and costs, constant parts are evaluated. Errors that
//! only depend on constants are found here, before any evaluation.

use std::sync::Arc;

use super::error::EvalError;
use super::machine::{BoundValue, Compose, Machine};
use super::node::{
    AccessKey, Append, Attribute, CallNode, Candidate, Comparison, Conditional, ConstantSet, Element, Fold, Insert,
    MapEntryNode, Membership, Merge, MessageNode, NoOptional, PlanNode, Qualifier, Quantifier, Root, Shortcut,
};
use super::value::Value;
use crate::cel::ast::{self, Constant, Expr, ExprKind, operators};
use crate::cel::checked::{CheckedExpr, Reference};
use crate::cel::cost::{Cost, actual, model};
use crate::cel::env::Env;
use crate::cel::escape::unescape;
use crate::cel::function::{CalledBy, Calling, Mismatch, Overload};
use crate::cel::mutation;
use crate::cel::types::Type;
use crate::meta::minor::Minor;
use crate::meta::pattern::Pattern;
use crate::work;

/// The first version of Kubernetes in which `or` and `orValue` fail on a value that is not an optional.
const OPTIONALS_CHECKED_SINCE: Minor = Minor::of(37);
/// What a program takes beside its parts, and what a part takes, in bytes. Measured with tens of thousands.
const PROGRAM_BYTES: usize = 200;
const PART_BYTES: usize = 160;

/// An expression that is ready to run, any number of times and on any thread.
#[derive(Debug)]
pub struct Program {
    root: PlanNode,
    slots: usize,
    /// The maximum nesting of its parts.
    levels: usize,
    variables: Box<[Arc<str>]>,
    /// About how much memory its parts take.
    bytes: usize,
}

/// The result of an evaluation.
#[derive(Clone, Debug)]
pub struct Evaluation<'a> {
    /// The value, or why there is none.
    pub result: Result<Value<'a>, EvalError>,
    /// Its cost, even if it failed.
    pub cost: u64,
}

impl Program {
    /// Compiles `expr`, which was checked, or at least resolved, in `env`.
    ///
    /// # Errors
    /// A constant part of the expression cannot be evaluated, or a regular expression is invalid.
    pub fn new(expr: &CheckedExpr, env: &Env) -> Result<Program, EvalError> {
        Program::part(expr, env, &expr.ast.expr)
    }

    /// Compiles `part`, a part of `expr` outside its comprehensions.
    ///
    /// # Errors
    /// The same as for [`Program::new`].
    pub fn part(expr: &CheckedExpr, env: &Env, part: &Expr) -> Result<Program, EvalError> {
        let mut planner = Planner { expr, env, scope: Vec::new(), slots: 0, depth: 0, levels: 0, bytes: 0 };
        let root = planner.plan(part)?;
        let variables = env.variables.iter().map(|variable| Arc::clone(&variable.name)).collect();
        let Planner { slots, levels, bytes, .. } = planner;
        Ok(Program { root, slots, levels, variables, bytes: PROGRAM_BYTES + bytes })
    }

    /// The maximum nesting of the expression's parts, which decides how much stack its evaluation needs.
    pub fn levels(&self) -> usize {
        self.levels
    }

    /// About how much memory it takes, in bytes, with the automata of its patterns.
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// Evaluates the expression with the variables of its environment, in their order, until it costs more than
    /// `cost_limit`.
    pub fn evaluate<'a>(&'a self, variables: &[BoundValue<'a>], cost_limit: u64) -> Evaluation<'a> {
        self.evaluate_composed(variables, None, cost_limit)
    }

    /// Does the same as [`Program::evaluate`] if one of the variables is an object of others, `composed`, whose costs
    /// are counted separately.
    pub fn evaluate_composed<'a>(
        &'a self,
        variables: &[BoundValue<'a>],
        composed: Option<&dyn Compose<'a>>,
        cost_limit: u64,
    ) -> Evaluation<'a> {
        let machine = Machine::new(&self.variables, variables, self.slots, cost_limit);
        let mut machine = machine.with_composed(composed);
        let result = machine.evaluate(&self.root);
        Evaluation { result, cost: machine.cost() }
    }
}

/// Evaluates a constant part.
fn fold(node: &PlanNode) -> Result<Value<'_>, EvalError> {
    Machine::new(&[], &[], 0, u64::MAX).evaluate(node)
}

struct Planner<'p> {
    expr: &'p CheckedExpr,
    env: &'p Env,
    /// The variables of the enclosing comprehensions, the innermost last, with their slots.
    scope: Vec<(&'p str, usize)>,
    slots: usize,
    /// The number of nested parts that are being compiled.
    depth: usize,
    levels: usize,
    bytes: usize,
}

impl<'p> Planner<'p> {
    fn plan(&mut self, expr: &'p Expr) -> Result<PlanNode, EvalError> {
        self.depth += 1;
        self.levels = self.levels.max(self.depth);
        self.bytes += PART_BYTES;
        let node = self.plan_part(expr);
        self.depth -= 1;
        node
    }

    fn plan_part(&mut self, expr: &'p Expr) -> Result<PlanNode, EvalError> {
        work::steps(2);
        match &expr.kind {
            ExprKind::Constant(constant) => Ok(PlanNode::Constant(constant_value(constant))),
            ExprKind::Ident(name) => self.plan_name(expr, name),
            ExprKind::Select(select) => match self.expr.reference(expr.id) {
                Some(Reference::Ident { name, .. }) => self.plan_name(expr, name),
                _ => self.plan_select(select),
            },
            ExprKind::Call(call) => self.plan_call(expr, call),
            ExprKind::List(list) => self.plan_list(list),
            ExprKind::Map(entries) => self.plan_map(entries),
            ExprKind::Struct(message) => self.plan_message(message),
            ExprKind::Comprehension(comprehension) => self.plan_comprehension(comprehension),
        }
    }

    fn plan_name(&self, expr: &'p Expr, name: &str) -> Result<PlanNode, EvalError> {
        let reference = self.expr.reference(expr.id);
        if let Some(Reference::Ident { value: Some(value), .. }) = reference {
            return Ok(PlanNode::Constant(constant_value(value)));
        }
        let name = match reference {
            Some(Reference::Ident { name, .. }) => name.as_str(),
            _ => name,
        };
        if let Type::Type(_) = self.expr.ty(expr.id) {
            // A variable that contains a type counts as the name of one.
            let named = self.env.type_named(name.strip_prefix('.').unwrap_or(name));
            let undefined = || EvalError::new(format!("reference to undefined type: {name}"));
            return named.map(|ty| PlanNode::Constant(Value::ty(ty))).ok_or_else(undefined);
        }
        if let Some((_, slot)) = self.scope.iter().rev().find(|(local, _)| *local == name) {
            return Ok(PlanNode::Local(*slot));
        }
        let name = name.strip_prefix('.').unwrap_or(name);
        let place = self.env.variables.iter().position(|variable| *variable.name == *name);
        // In a checked expression, every name is declared.
        Ok(place.map_or_else(|| PlanNode::Undeclared(name.to_owned()), PlanNode::Variable))
    }

    fn plan_select(&mut self, select: &'p ast::Select) -> Result<PlanNode, EvalError> {
        let mut attribute = into_attribute(self.plan(&select.operand)?);
        let key = self.key_of(&select.operand, &select.field);
        attribute.qualifiers.push(Qualifier { key, optional: false, presence: select.test_only });
        Ok(PlanNode::Attribute(Box::new(attribute)))
    }

    /// The field that an expression calls `name`, of `operand`.
    fn key_of(&self, operand: &Expr, name: &str) -> AccessKey {
        match self.expr.ty(operand.id) {
            Type::Object(object) if mutation::is_object(&object.name) => AccessKey::Part(name.into()),
            _ => field(name),
        }
    }

    fn plan_call(&mut self, expr: &'p Expr, call: &'p ast::Call) -> Result<PlanNode, EvalError> {
        let function = call.function.as_str();
        if let [argument] = call.args.as_slice()
            && call.target.is_none()
            && function == operators::NOT_STRICTLY_FALSE
        {
            return Ok(PlanNode::NotStrictlyFalse(Box::new(self.plan(argument)?)));
        }
        let mut arguments = Vec::with_capacity(call.args.len() + 1);
        for argument in call.target.iter().chain(&call.args) {
            arguments.push(self.plan(argument)?);
        }
        match <[PlanNode; 2]>::try_from(arguments) {
            Ok(two) => self.plan_operator(expr, function, two),
            Err(mut arguments) => match (function, arguments.len()) {
                (operators::CONDITIONAL, 3) => {
                    let falsy = into_attribute(arguments.remove(2));
                    let truthy = into_attribute(arguments.remove(1));
                    let conditional = Conditional { condition: arguments.remove(0), truthy, falsy };
                    let root = Root::Conditional(Box::new(conditional));
                    Ok(PlanNode::Attribute(Box::new(Attribute { root, qualifiers: Vec::new() })))
                }
                _ => self.plan_function(expr, function, arguments),
            },
        }
    }

    fn plan_operator(
        &mut self,
        expr: &'p Expr,
        function: &str,
        arguments: [PlanNode; 2],
    ) -> Result<PlanNode, EvalError> {
        match function {
            operators::LOGICAL_AND => Ok(PlanNode::And(Box::new(arguments))),
            operators::LOGICAL_OR => Ok(PlanNode::Or(Box::new(arguments))),
            operators::EQUALS => {
                let is_by_size = self.env.minor() < actual::OWN_TYPES_SINCE;
                Ok(PlanNode::Compare(Box::new(arguments), Comparison { is_equals: true, is_by_size }))
            }
            operators::NOT_EQUALS => {
                Ok(PlanNode::Compare(Box::new(arguments), Comparison { is_equals: false, is_by_size: true }))
            }
            operators::INDEX => index(arguments, false),
            operators::OPTIONAL_SELECT => self.plan_optional_select(expr, arguments),
            operators::OPTIONAL_INDEX => index(arguments, true),
            "or" if self.calls(expr, "optional_or_optional") => {
                Ok(PlanNode::OptionalOr(Box::new(arguments), self.no_optional()))
            }
            "orValue" if self.calls(expr, "optional_orValue_value") => {
                Ok(PlanNode::OptionalOrValue(Box::new(arguments), self.no_optional()))
            }
            operators::IN if self.calls_only(expr, "in_list") => match membership(arguments) {
                Ok(node) => Ok(node),
                Err(arguments) => self.plan_function(expr, function, arguments.into()),
            },
            _ => self.plan_function(expr, function, arguments.into()),
        }
    }

    fn plan_optional_select(&self, expr: &'p Expr, [operand, key]: [PlanNode; 2]) -> Result<PlanNode, EvalError> {
        match (&expr.kind, &key) {
            (ExprKind::Call(call), PlanNode::Constant(Value::String(name))) if !call.args.is_empty() => {
                let mut attribute = into_attribute(operand);
                let key = self.key_of(&call.args[0], name);
                attribute.qualifiers.push(Qualifier { key, optional: true, presence: false });
                Ok(PlanNode::Attribute(Box::new(attribute)))
            }
            _ => index([operand, key], true),
        }
    }

    /// The treatment of a value that is not an optional.
    fn no_optional(&self) -> NoOptional {
        if self.env.minor() < OPTIONALS_CHECKED_SINCE { NoOptional::IsKept } else { NoOptional::Fails }
    }

    /// Whether a call may be one of the overload `id`.
    fn calls(&self, expr: &Expr, id: &str) -> bool {
        match self.expr.overloads(expr.id) {
            [only] => only.id == id,
            _ => true,
        }
    }

    fn calls_only(&self, expr: &Expr, id: &str) -> bool {
        matches!(self.expr.overloads(expr.id), [only] if only.id == id)
    }

    fn plan_function(
        &mut self,
        expr: &'p Expr,
        function: &str,
        arguments: Vec<PlanNode>,
    ) -> Result<PlanNode, EvalError> {
        let declared = self.env.library.function(function);
        let calling = declared.map_or(Calling::USUAL, |function| function.calling);
        let pattern = if calling.has_pattern { constant_pattern(&arguments)? } else { None };
        self.bytes += pattern.as_ref().map_or(0, |pattern| pattern.bytes());
        // If the types of the arguments leave more than one overload, the evaluation chooses among all overloads.
        let (overloads, cost, is_resolved) = match self.expr.overloads(expr.id) {
            [only] => (bind([only]), only.cost, true),
            _ => {
                let all = declared.map_or_else(Vec::new, |function| bind(&function.overloads));
                (all, declared.map_or(Cost::One, |function| function.unresolved_cost()), false)
            }
        };
        let dispatches = !is_resolved && !calling.is_single;
        let call = CallNode {
            function: function.to_owned(),
            cost,
            shortcut: Shortcut::of(function),
            // This is so for all functions to which the reference passes a list of arguments.
            stops_at_failure: arguments.len() > 2 || calling.stops_at_failure || dispatches || pattern.is_some(),
            mismatch: if pattern.is_some() { Mismatch::Bare } else { calling.mismatch },
            arguments,
            overloads,
            pattern,
        };
        let is_constant = matches!(call.arguments.as_slice(), [PlanNode::Constant(_)]);
        let node = PlanNode::Call(Box::new(call));
        if is_constant && calling.is_folded {
            return Ok(PlanNode::Constant(fold(&node)?.into_static()));
        }
        Ok(node)
    }

    fn plan_list(&mut self, list: &'p ast::ListExpr) -> Result<PlanNode, EvalError> {
        let mut elements = Vec::with_capacity(list.elements.len());
        for (place, element) in list.elements.iter().enumerate() {
            elements.push(Element { value: self.plan(element)?, optional: list.optional.contains(&place) });
        }
        let is_constant = elements.iter().all(|element| is_constant(&element.value));
        let node = PlanNode::List(elements);
        if is_constant { Ok(PlanNode::Constant(fold(&node)?.into_static())) } else { Ok(node) }
    }

    fn plan_map(&mut self, map: &'p [ast::MapEntry]) -> Result<PlanNode, EvalError> {
        let mut entries = Vec::with_capacity(map.len());
        for entry in map {
            let (key, value) = (self.plan(&entry.key)?, self.plan(&entry.value)?);
            entries.push(MapEntryNode { key, value, optional: entry.optional });
        }
        let is_constant = entries.iter().all(|entry| is_constant(&entry.key) && is_constant(&entry.value));
        let node = PlanNode::Map(entries);
        if is_constant { Ok(PlanNode::Constant(fold(&node)?.into_static())) } else { Ok(node) }
    }

    fn plan_message(&mut self, message: &'p ast::Struct) -> Result<PlanNode, EvalError> {
        let mut fields = Vec::with_capacity(message.fields.len());
        for field in &message.fields {
            fields.push((field.name.clone(), Element { value: self.plan(&field.value)?, optional: field.optional }));
        }
        let mutation = self.env.mutation(&message.type_name);
        Ok(PlanNode::Message(Box::new(MessageNode { name: message.type_name.clone(), mutation, fields })))
    }

    fn plan_comprehension(&mut self, fold: &'p ast::Comprehension) -> Result<PlanNode, EvalError> {
        let init = self.plan(&fold.accu_init)?;
        let range = self.plan(&fold.iter_range)?;
        let outside = self.scope.len();
        let accumulator = self.declare(&fold.accu_var);
        let first = self.declare(&fold.iter_var);
        let second = fold.iter_var2.as_deref().map(|name| self.declare(name));
        let condition = self.plan(&fold.loop_condition)?;
        let step = collect(self.plan(&fold.loop_step)?, accumulator);
        self.scope.truncate(outside + 1);
        let result = self.plan(&fold.result)?;
        self.scope.truncate(outside);
        Ok(quantifier(Fold { range, first, second, accumulator, init, condition, step, result }))
    }

    fn declare(&mut self, name: &'p str) -> usize {
        let slot = self.slots;
        self.slots += 1;
        self.scope.push((name, slot));
        slot
    }
}

fn bind<'d>(declarations: impl IntoIterator<Item = &'d Arc<Overload>>) -> Vec<Candidate> {
    let bound = declarations.into_iter().filter_map(|declaration| match declaration.run {
        CalledBy::Function(implementation) => Some(Candidate { declaration: declaration.clone(), implementation }),
        CalledBy::Evaluator => None,
    });
    bound.collect()
}

/// The compiled regular expression of a call that has a constant one.
fn constant_pattern(arguments: &[PlanNode]) -> Result<Option<Arc<Pattern>>, EvalError> {
    match arguments {
        [_, PlanNode::Constant(Value::String(source)), ..] => Pattern::new(source.as_str())
            .map(|pattern| Some(Arc::new(pattern)))
            .map_err(|error| EvalError::new(error.to_string())),
        _ => Ok(None),
    }
}

fn is_constant(node: &PlanNode) -> bool {
    matches!(node, PlanNode::Constant(_))
}

fn field(name: &str) -> AccessKey {
    AccessKey::Field { written: Value::string(name), property: unescape(name).map(Into::into) }
}

/// The node as the root of an attribute.
fn into_attribute(node: PlanNode) -> Attribute {
    let root = match node {
        PlanNode::Attribute(attribute) => return *attribute,
        PlanNode::Variable(place) => Root::Variable(place),
        PlanNode::Local(slot) => Root::Local(slot),
        node => Root::Node(node),
    };
    Attribute { root, qualifiers: Vec::new() }
}

fn index([operand, key]: [PlanNode; 2], optional: bool) -> Result<PlanNode, EvalError> {
    let mut attribute = into_attribute(operand);
    let key = match key {
        PlanNode::Constant(Value::String(name)) => field(name.as_str()),
        PlanNode::Constant(key) => {
            super::attribute::check_key(&key)?;
            AccessKey::Constant(key)
        }
        key => AccessKey::Dynamic(into_attribute(key)),
    };
    attribute.qualifiers.push(Qualifier { key, optional, presence: false });
    Ok(PlanNode::Attribute(Box::new(attribute)))
}

/// Compiles `element in [constants]` to a look-up in a set; returns the arguments if that is not possible.
fn membership([element, list]: [PlanNode; 2]) -> Result<PlanNode, [PlanNode; 2]> {
    let PlanNode::Constant(Value::List(constants)) = &list else { return Err([element, list]) };
    if constants.is_empty() {
        return Ok(PlanNode::Constant(Value::Bool(false)));
    }
    let mut set = ConstantSet::default();
    let only_scalars = constants.iter().all(|constant| constant.is_ok_and(|constant| set.insert(&constant)));
    if only_scalars { Ok(PlanNode::Membership(Box::new(Membership { element, set }))) } else { Err([element, list]) }
}

impl ConstantSet {
    /// Adds `value`, and the numbers of other types that equal it; returns false if it is not a scalar.
    fn insert(&mut self, value: &Value<'_>) -> bool {
        let bits = |number: f64| (number + 0.0).to_bits();
        match value {
            Value::Bool(truth) => self.bools[usize::from(*truth)] = true,
            Value::Int(number) => {
                self.ints.insert(*number);
                self.doubles.insert(bits(*number as f64));
                self.uints.extend(u64::try_from(*number).ok());
            }
            Value::Uint(number) => {
                self.uints.insert(*number);
                self.doubles.insert(bits(*number as f64));
                self.ints.extend(i64::try_from(*number).ok());
            }
            Value::Double(number) => {
                self.doubles.insert(bits(*number));
                let (int, uint) = (*number as i64, *number as u64);
                self.ints.extend((int as f64 == *number && int != i64::MAX).then_some(int));
                self.uints.extend((uint as f64 == *number && uint != u64::MAX).then_some(uint));
            }
            Value::String(text) => _ = self.strings.insert(text.as_str().into()),
            _ => return false,
        }
        true
    }
}

/// Converts a comprehension to a quantifier if it is one.
fn quantifier(fold: Fold) -> PlanNode {
    let is_accumulator = |node: &PlanNode| matches!(node, PlanNode::Local(slot) if *slot == fold.accumulator);
    let PlanNode::Constant(Value::Bool(start)) = fold.init else { return PlanNode::Fold(Box::new(fold)) };
    let goes_on = match &fold.condition {
        PlanNode::NotStrictlyFalse(condition) => match (condition.as_ref(), start) {
            (PlanNode::Call(call), false) => {
                call.function == operators::LOGICAL_NOT && call.arguments.iter().all(is_accumulator)
            }
            (condition, start) => start && is_accumulator(condition),
        },
        _ => false,
    };
    let steps = match (&fold.step, start) {
        (PlanNode::And(terms), true) | (PlanNode::Or(terms), false) => is_accumulator(&terms[0]),
        _ => false,
    };
    if !goes_on || !steps || !is_accumulator(&fold.result) {
        return PlanNode::Fold(Box::new(fold));
    }
    let Fold { range, first, second, step: PlanNode::And(terms) | PlanNode::Or(terms), .. } = fold else {
        unreachable!("the step is what was looked at");
    };
    let [_, predicate] = *terms;
    PlanNode::Quantifier(Box::new(Quantifier { range, first, second, predicate, decisive: !start }))
}

/// Converts the step of a comprehension that only adds to its accumulator to one that adds in place.
fn collect(step: PlanNode, accumulator: usize) -> PlanNode {
    match step {
        PlanNode::Attribute(mut attribute) => {
            if let Root::Conditional(conditional) = &mut attribute.root
                && attribute.qualifiers.is_empty()
            {
                for branch in [&mut conditional.truthy, &mut conditional.falsy] {
                    if let Root::Node(node) = &mut branch.root {
                        let added = std::mem::replace(node, PlanNode::Local(accumulator));
                        *node = collect(added, accumulator);
                    }
                }
            }
            PlanNode::Attribute(attribute)
        }
        PlanNode::Call(mut call) => match (call.function.as_str(), call.arguments.as_mut_slice()) {
            (operators::ADD, [PlanNode::Local(slot), PlanNode::List(elements)])
                if *slot == accumulator && matches!(elements.as_slice(), [Element { optional: false, .. }]) =>
            {
                let element = elements.remove(0).value;
                PlanNode::Append(Box::new(Append { accumulator, element, cost: model::MAKE_LIST }))
            }
            (operators::ADD, [PlanNode::Local(slot), PlanNode::Constant(Value::List(list))])
                if *slot == accumulator && list.len() == 1 =>
            {
                let element = PlanNode::Constant(list.get(0).and_then(Result::ok).unwrap_or_default().into_static());
                PlanNode::Append(Box::new(Append { accumulator, element, cost: 0 }))
            }
            ("cel.@mapInsert", [PlanNode::Local(slot), _, _]) if *slot == accumulator => {
                let value = call.arguments.remove(2);
                let key = call.arguments.remove(1);
                PlanNode::Insert(Box::new(Insert { accumulator, key, value }))
            }
            ("cel.@mapInsert", [PlanNode::Local(slot), _]) if *slot == accumulator => {
                PlanNode::Merge(Box::new(Merge { accumulator, entries: call.arguments.remove(1) }))
            }
            _ => PlanNode::Call(call),
        },
        step => step,
    }
}

fn constant_value(constant: &Constant) -> Value<'static> {
    match constant {
        Constant::Null => Value::Null,
        Constant::Bool(truth) => Value::Bool(*truth),
        Constant::Int(number) => Value::Int(*number),
        Constant::Uint(number) => Value::Uint(*number),
        Constant::Double(number) => Value::Double(*number),
        Constant::String(text) => Value::string(text.as_str()),
        Constant::Bytes(bytes) => Value::bytes(bytes.as_slice()),
    }
}
