//! The possible results of a rule for any object, as far as its schema tells.
//!
//! Input: a checked rule and the node that it is about. Output: whether it may be true, may be false and may end in an
//! error, and which optional fields it reads without testing for them first. Known about a value are its bounds, its
//! enum, and whether it is required or has a default. Little is known about the results of functions, so most rules may
//! have any result.
//!
//! INVARIANT: the result of a rule for an object that its schema accepts is among the results reported here. Too many
//! may be reported, never too few: a test checks that for the objects of the corpus.

mod facts;
mod known;

use std::collections::{BTreeSet, HashSet};
use std::rc::Rc;

use crate::cel::ast::{ACCUMULATOR, Call, Comprehension, Expr, ExprKind, Select, operators};
use crate::cel::escape::unescape;
use crate::crd::validate::expressions::SchemaStep;
use crate::schema::rules::compile::SELF;
use crate::schema::structural::{NestedValueValidation, Structural, StructuralOrBool, ValueValidation};
use crate::value::Value;
use facts::{DecisionScope, Fact, facts, index_of};
use known::{
    FieldPath, KnownValue, SchemaCursor, Truth, ValueAccess, apply, constant_value, integers, joined, size, text,
};

/// The maximum number of nodes that are visited. A part of a condition is visited again for each fact that may precede
/// it.
const STEPS_MAX: usize = 20_000;

/// The possible results of a rule.
#[derive(Debug)]
pub struct RuleDecision {
    /// Whether some value makes it true.
    pub may_hold: bool,
    /// Whether some value makes it false.
    pub may_fail: bool,
    /// Whether some value makes its evaluation fail.
    pub may_break: bool,
    /// The optional fields, as expressions, whose absence makes the evaluation fail.
    pub absent: BTreeSet<String>,
    /// The paths in the schema of the values that the rule reads.
    pub read: Vec<Vec<SchemaStep>>,
}

/// Determines the possible results of `rule`, an expression with its macros expanded, at a node that is `steps` below
/// the root of its schema.
pub fn decide(rule: &Expr, node: &Structural, is_resource: bool, steps: &[SchemaStep]) -> RuleDecision {
    decide_without(rule, node, is_resource, steps, &HashSet::new())
}

/// Does the same if there are no values at the paths `never`, given as steps from the root.
pub fn decide_without(
    rule: &Expr,
    node: &Structural,
    is_resource: bool,
    steps: &[SchemaStep],
    never: &HashSet<Vec<SchemaStep>>,
) -> RuleDecision {
    let access = ValueAccess { path: vec![SELF.to_owned()], steps: steps.to_vec() };
    decide_on(rule, (node, is_resource), access, never)
}

/// Determines the possible results of an expression that reads a resource as `variable`; nothing is known about other
/// variables.
pub fn decide_named(expr: &Expr, variable: &str, root: &Structural) -> RuleDecision {
    let access = ValueAccess { path: vec![variable.to_owned()], steps: Vec::new() };
    decide_on(expr, (root, true), access, &HashSet::new())
}

/// Determines the possible results of an expression that reads a node as the variable at the start of `access`.
fn decide_on(
    expr: &Expr,
    (node, is_resource): (&Structural, bool),
    access: ValueAccess,
    never: &HashSet<Vec<SchemaStep>>,
) -> RuleDecision {
    let mut walk = DecisionWalk { steps_left: STEPS_MAX, read: Vec::new(), never };
    let variable = access.path.concat();
    let own = walk.value_of(node, is_resource, access);
    let scope = DecisionScope { variables: vec![(variable, own)], facts: Vec::new() };
    let outcome = walk.outcome(expr, &scope);
    let truth = outcome.truth();
    RuleDecision {
        may_hold: truth.may_hold,
        may_fail: truth.may_fail,
        may_break: outcome.may_break(),
        absent: outcome.absent.iter().map(|path| path.join(".")).collect(),
        read: walk.read,
    }
}

/// The possible results of an expression.
#[derive(Clone, Debug)]
struct PossibleResults<'s> {
    known: KnownValue<'s>,
    /// Whether it may end in an error for a reason other than an absent field.
    breaks: bool,
    /// The fields whose absence makes it end in an error.
    absent: BTreeSet<FieldPath>,
}

impl<'s> PossibleResults<'s> {
    fn sure(known: KnownValue<'s>) -> Self {
        PossibleResults { known, breaks: false, absent: BTreeSet::new() }
    }

    fn truth(&self) -> Truth {
        match self.known {
            KnownValue::Truth(truth) => truth,
            _ => Truth::EITHER,
        }
    }

    fn may_break(&self) -> bool {
        self.breaks || !self.absent.is_empty()
    }

    /// Adds the errors of `others`, the arguments: functions are strict.
    fn after(mut self, others: &[PossibleResults<'s>]) -> Self {
        for other in others {
            self.breaks |= other.breaks;
            self.absent.extend(other.absent.iter().cloned());
        }
        self
    }
}

struct DecisionWalk<'n> {
    steps_left: usize,
    read: Vec<Vec<SchemaStep>>,
    /// The paths at which there cannot be a value.
    never: &'n HashSet<Vec<SchemaStep>>,
}

impl DecisionWalk<'_> {
    fn value_of<'s>(&mut self, schema: &'s Structural, is_resource: bool, access: ValueAccess) -> KnownValue<'s> {
        if !self.read.contains(&access.steps) {
            self.read.push(access.steps.clone());
        }
        // Values that may be null, or that have several types, are not analysed.
        if schema.generic.nullable || schema.extensions.int_or_string {
            return KnownValue::Nothing;
        }
        let none = ValueValidation::default();
        let values = schema.value_validation.as_deref().unwrap_or(&none);
        match schema.generic.type_.as_str() {
            "boolean" => {
                let allows = |truth| values.enum_.is_empty() || values.enum_.contains(&Value::Bool(truth));
                KnownValue::Truth(Truth { may_hold: allows(true), may_fail: allows(false) })
            }
            "integer" => integers(values),
            "number" => KnownValue::Double {
                min: values.bounds.minimum.unwrap_or(f64::NEG_INFINITY),
                max: values.bounds.maximum.unwrap_or(f64::INFINITY),
            },
            "string" if !["byte", "duration", "date", "date-time"].contains(&values.format.as_str()) => {
                KnownValue::Text(text(values))
            }
            "object" | "array" => KnownValue::Node(Rc::new(SchemaCursor { schema, is_resource, access })),
            _ => KnownValue::Nothing,
        }
    }

    fn outcome<'s>(&mut self, expr: &Expr, scope: &DecisionScope<'s>) -> PossibleResults<'s> {
        let Some(left) = self.steps_left.checked_sub(1) else {
            return PossibleResults { breaks: true, ..PossibleResults::sure(KnownValue::Nothing) };
        };
        self.steps_left = left;
        match &expr.kind {
            ExprKind::Constant(constant) => PossibleResults::sure(constant_value(constant)),
            ExprKind::Ident(name) => {
                PossibleResults::sure(scope.variable(name).cloned().unwrap_or(KnownValue::Nothing))
            }
            ExprKind::Select(select) if select.test_only => self.has(select, scope),
            ExprKind::Select(select) => self.select(select, scope),
            ExprKind::Call(call) => self.call(call, scope),
            ExprKind::List(list) if list.optional.is_empty() => {
                let elements: Vec<PossibleResults<'_>> =
                    list.elements.iter().map(|item| self.outcome(item, scope)).collect();
                let known = elements.iter().map(|element| element.known.clone()).collect();
                PossibleResults::sure(KnownValue::List(Rc::new(known))).after(&elements)
            }
            ExprKind::Comprehension(fold) => self.fold(fold, scope),
            ExprKind::List(_) | ExprKind::Map(_) | ExprKind::Struct(_) => {
                let parts: Vec<PossibleResults<'_>> =
                    expr.children().into_iter().map(|part| self.outcome(part, scope)).collect();
                PossibleResults { breaks: true, ..PossibleResults::sure(KnownValue::Nothing) }.after(&parts)
            }
        }
    }

    fn has<'s>(&mut self, select: &Select, scope: &DecisionScope<'s>) -> PossibleResults<'s> {
        let holder = self.outcome(&select.operand, scope);
        let Some(property) = property(&holder.known, &select.field) else {
            let breaks = !matches!(holder.known, KnownValue::Node(_));
            return PossibleResults { breaks, ..PossibleResults::sure(KnownValue::Truth(Truth::EITHER)) }
                .after(&[holder]);
        };
        let truth = match scope.is_present(&property.access.path) {
            _ if self.never.contains(&property.access.steps) => Truth::of(false),
            Some(is_present) => Truth::of(is_present),
            None if property.is_always_there && !property.schema.generic.nullable => Truth::of(true),
            None => Truth::EITHER,
        };
        PossibleResults::sure(KnownValue::Truth(truth)).after(&[holder])
    }

    fn select<'s>(&mut self, select: &Select, scope: &DecisionScope<'s>) -> PossibleResults<'s> {
        let holder = self.outcome(&select.operand, scope);
        let Some(property) = property(&holder.known, &select.field) else {
            return PossibleResults { breaks: true, ..PossibleResults::sure(KnownValue::Nothing) }.after(&[holder]);
        };
        let is_present = scope.is_present(&property.access.path).unwrap_or(property.is_always_there);
        let is_present = is_present && !self.never.contains(&property.access.steps);
        let absent = if is_present { BTreeSet::new() } else { BTreeSet::from([property.access.path.clone()]) };
        let is_resource = property.schema.extensions.embedded_resource;
        let known = self.value_of(property.schema, is_resource, property.access);
        PossibleResults { known, breaks: false, absent }.after(&[holder])
    }

    fn call<'s>(&mut self, call: &Call, scope: &DecisionScope<'s>) -> PossibleResults<'s> {
        match (call.function.as_str(), call.args.as_slice()) {
            (operators::LOGICAL_OR, [left, right]) => self.junction([left, right], true, scope),
            (operators::LOGICAL_AND, [left, right]) => self.junction([left, right], false, scope),
            (operators::LOGICAL_NOT, [operand]) => {
                let outcome = self.outcome(operand, scope);
                PossibleResults { known: KnownValue::Truth(outcome.truth().not()), ..outcome }
            }
            (operators::CONDITIONAL, [condition, then, otherwise]) => {
                self.conditional(condition, [then, otherwise], scope)
            }
            _ => {
                let parts = call.target.iter().chain(&call.args).map(|part| self.outcome(part, scope));
                let parts: Vec<PossibleResults<'_>> = parts.collect();
                let known: Vec<&KnownValue<'_>> = parts.iter().map(|part| &part.known).collect();
                let applied = match call.function.as_str() {
                    operators::OPTIONAL_SELECT | operators::OPTIONAL_INDEX => Some((KnownValue::Nothing, false)),
                    operators::INDEX => Some((self.indexed(known[0], &call.args[1]), true)),
                    name => apply(name, &known),
                };
                let (known, breaks) = applied.unwrap_or((KnownValue::Nothing, true));
                PossibleResults { breaks, ..PossibleResults::sure(known) }.after(&parts)
            }
        }
    }

    /// The results of `left || right`, which a true operand decides, or `left && right`, which a false one decides,
    /// whatever the other's result is, even an error.
    fn junction<'s>(&mut self, operands: [&Expr; 2], decisive: bool, scope: &DecisionScope<'s>) -> PossibleResults<'s> {
        let [left, right] = operands;
        let decides = |outcome: &PossibleResults<'_>| outcome.truth().may_be(decisive);
        let is_open = |outcome: &PossibleResults<'_>| outcome.truth().may_be(!decisive);
        let first = self.outcome(left, scope);
        let (mut may_decide, mut may_end) = (decides(&first), false);
        let (mut breaks, mut absent) = (false, BTreeSet::new());
        if is_open(&first) {
            let second = self.outcome(right, &scope.with(facts(left, !decisive, scope)));
            may_decide |= decides(&second);
            may_end |= is_open(&second);
            breaks |= second.breaks;
            absent.extend(second.absent);
        }
        for path in &first.absent {
            let fact = Fact::Presence { path: path.clone(), is_present: false };
            let second = self.outcome(right, &scope.with(vec![fact]));
            may_decide |= decides(&second);
            if is_open(&second) || second.may_break() {
                absent.insert(path.clone());
            }
        }
        if first.breaks {
            let second = self.outcome(right, scope);
            may_decide |= decides(&second);
            breaks |= is_open(&second) || second.may_break();
        }
        let truth = Truth { may_hold: may_decide, may_fail: may_end };
        PossibleResults { known: KnownValue::Truth(if decisive { truth } else { truth.not() }), breaks, absent }
    }

    fn conditional<'s>(
        &mut self,
        condition: &Expr,
        branches: [&Expr; 2],
        scope: &DecisionScope<'s>,
    ) -> PossibleResults<'s> {
        let decided = self.outcome(condition, scope);
        let truth = decided.truth();
        let mut outcome: Option<PossibleResults<'_>> = None;
        for (branch, is_taken, holds) in [(branches[0], truth.may_hold, true), (branches[1], truth.may_fail, false)] {
            if !is_taken {
                continue;
            }
            let taken = self.outcome(branch, &scope.with(facts(condition, holds, scope)));
            outcome = Some(match outcome {
                None => taken,
                Some(before) => PossibleResults::sure(joined(&before.known, &taken.known)).after(&[before, taken]),
            });
        }
        outcome.unwrap_or(PossibleResults::sure(KnownValue::Truth(Truth::NEITHER))).after(&[decided])
    }

    /// The results of a macro: `all` and `exists` are analysed; for others only what they read.
    fn fold<'s>(&mut self, fold: &Comprehension, scope: &DecisionScope<'s>) -> PossibleResults<'s> {
        let range = self.outcome(&fold.iter_range, scope);
        let is_binding = matches!(&fold.iter_range.kind, ExprKind::List(list) if list.elements.is_empty());
        if is_binding && fold.accu_var != ACCUMULATOR {
            let bound = self.outcome(&fold.accu_init, scope);
            let within = scope.with_variable(&fold.accu_var, bound.known.clone());
            return self.outcome(&fold.result, &within).after(&[bound]);
        }
        let within = self.with_elements(fold, &range.known, scope);
        let (size_min, size_max) = size(&range.known).unwrap_or((0, i128::MAX));
        let step = match &fold.loop_step.kind {
            ExprKind::Call(step) if is_accumulator(step.args.first()) => Some(step),
            _ => None,
        };
        if let Some(condition) = condition_of(&fold.loop_step) {
            let tested = self.outcome(condition, &within);
            if size_max == 0 || !tested.truth().may_hold {
                // Nothing is ever added to the accumulator.
                let start = self.outcome(&fold.accu_init, scope);
                let ended = scope.with_variable(&fold.accu_var, start.known.clone());
                return self.outcome(&fold.result, &ended).after(&[range, tested, start]);
            }
        }
        let quantifier = step.map(|step| (step.function.as_str(), &step.args[1]));
        let outcome = match quantifier {
            Some((operators::LOGICAL_AND, test)) => {
                let tested = self.outcome(test, &within);
                let truth = Truth {
                    may_hold: size_min == 0 || tested.truth().may_hold,
                    may_fail: size_max > 0 && tested.truth().may_fail,
                };
                PossibleResults { known: KnownValue::Truth(truth), ..tested }
            }
            Some((operators::LOGICAL_OR, test)) => {
                let tested = self.outcome(test, &within);
                let truth = Truth {
                    may_hold: size_max > 0 && tested.truth().may_hold,
                    may_fail: size_min == 0 || tested.truth().may_fail,
                };
                PossibleResults { known: KnownValue::Truth(truth), ..tested }
            }
            _ => {
                let within = within.with_variable(&fold.accu_var, KnownValue::Nothing);
                let step = self.outcome(&fold.loop_step, &within);
                PossibleResults { known: KnownValue::Nothing, breaks: true, absent: step.absent }
            }
        };
        outcome.after(&[range])
    }

    fn with_elements<'s>(
        &mut self,
        fold: &Comprehension,
        range: &KnownValue<'s>,
        scope: &DecisionScope<'s>,
    ) -> DecisionScope<'s> {
        let is_map = matches!(range, KnownValue::Node(node) if node.schema.items.is_none());
        let names = std::iter::once(&fold.iter_var).chain(&fold.iter_var2);
        let element = fold.iter_var2.as_ref().or(Some(&fold.iter_var).filter(|_| !is_map));
        names.fold(scope.clone(), |scope, name| {
            let known = match (range, element == Some(name)) {
                (KnownValue::Node(node), true) => self.element_called(node, vec![name.clone()]),
                _ => KnownValue::Nothing,
            };
            scope.with_variable(name, known)
        })
    }

    /// The value at an index; nothing is known about a computed one.
    fn indexed<'s>(&mut self, holder: &KnownValue<'s>, index: &Expr) -> KnownValue<'s> {
        match (holder, index_of(index)) {
            (KnownValue::Node(node), Some(step)) => {
                let path = [&node.access.path[..], &[step]].concat();
                self.element_called(node, path)
            }
            _ => KnownValue::Nothing,
        }
    }

    fn element_called<'s>(&mut self, node: &SchemaCursor<'s>, path: FieldPath) -> KnownValue<'s> {
        let values = node.schema.additional_properties.as_ref().and_then(StructuralOrBool::structural);
        let (below, step) = match (node.schema.items.as_deref(), values) {
            (Some(items), _) => (items, SchemaStep::Items),
            (None, Some(values)) => (values, SchemaStep::Values),
            (None, None) => return KnownValue::Nothing,
        };
        let mut steps = node.access.steps.clone();
        steps.push(step);
        self.value_of(below, below.extensions.embedded_resource, ValueAccess { path, steps })
    }
}

/// The condition of a step that otherwise leaves the accumulator unchanged, as in `filter` and `exists_one`.
fn condition_of(step: &Expr) -> Option<&Expr> {
    match &step.kind {
        ExprKind::Call(call) if call.function == operators::CONDITIONAL && is_accumulator(call.args.last()) => {
            call.args.first()
        }
        _ => None,
    }
}

fn is_accumulator(argument: Option<&Expr>) -> bool {
    argument.is_some_and(|argument| matches!(&argument.kind, ExprKind::Ident(name) if name == ACCUMULATOR))
}

/// A property that an object declares.
struct Property<'s> {
    schema: &'s Structural,
    access: ValueAccess,
    /// Whether it is required or has a default.
    is_always_there: bool,
}

/// The property that expressions call `field`; `None` if nothing is known about it.
fn property<'s>(holder: &KnownValue<'s>, field: &str) -> Option<Property<'s>> {
    let KnownValue::Node(node) = holder else { return None };
    let name = unescape(field)?;
    // The server knows more about these than the schema does.
    if node.is_resource && ["apiVersion", "kind", "metadata"].contains(&name.as_ref()) {
        return None;
    }
    let schema = node.schema.properties.get(name.as_ref())?;
    let has_default = schema.generic.default.as_deref().is_some_and(|default| !default.is_null());
    let is_always_there =
        has_default || node.schema.value_validation.as_deref().is_some_and(|values| requires(values, &name));
    Some(Property {
        schema,
        access: node.access.below(field, SchemaStep::Property(name.into_owned())),
        is_always_there,
    })
}

/// Whether every valid value has the field `name`.
fn requires(values: &ValueValidation, name: &str) -> bool {
    let all_require = |nested: &[NestedValueValidation]| {
        !nested.is_empty() && nested.iter().all(|nested| requires(&nested.value_validation, name))
    };
    values.required.iter().any(|required| required == name)
        || values.junctors.all_of.iter().any(|nested| requires(&nested.value_validation, name))
        || all_require(&values.junctors.any_of)
        || all_require(&values.junctors.one_of)
}

#[cfg(test)]
mod tests;
