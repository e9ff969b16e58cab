//! The compiled form of an expression: no names are left to look up.

use std::collections::HashSet;
use std::sync::Arc;

use super::value::Value;
use crate::cel::cost::Cost;
use crate::cel::function::{Implementation, Mismatch, Overload};
use crate::cel::types::Type;
use crate::meta::pattern::Pattern;

/// A step of the evaluation.
#[derive(Debug)]
pub(super) enum PlanNode {
    Constant(Value<'static>),
    /// A variable of the activation, by its place.
    Variable(usize),
    /// A name that there is not.
    Undeclared(String),
    /// A variable of a comprehension, by its slot.
    Local(usize),
    Attribute(Box<Attribute>),
    And(Box<[PlanNode; 2]>),
    Or(Box<[PlanNode; 2]>),
    Compare(Box<[PlanNode; 2]>, Comparison),
    NotStrictlyFalse(Box<PlanNode>),
    OptionalOr(Box<[PlanNode; 2]>, NoOptional),
    OptionalOrValue(Box<[PlanNode; 2]>, NoOptional),
    Call(Box<CallNode>),
    Membership(Box<Membership>),
    List(Vec<Element>),
    Map(Vec<MapEntryNode>),
    Message(Box<MessageNode>),
    Fold(Box<Fold>),
    Quantifier(Box<Quantifier>),
    /// `accumulator + [element]` in the step of a comprehension.
    Append(Box<Append>),
    /// `cel.@mapInsert(accumulator, key, value)` in the step of a comprehension.
    Insert(Box<Insert>),
    /// `cel.@mapInsert(accumulator, entries)` in the step of a comprehension.
    Merge(Box<Merge>),
}

/// What `or` and `orValue` make of a value that is not an optional. Only values without a type can be.
#[derive(Clone, Copy, Debug)]
pub(super) enum NoOptional {
    /// There is no such overload.
    Fails,
    /// The value itself.
    IsKept,
}

/// How two values are compared.
#[derive(Clone, Copy, Debug)]
pub(super) struct Comparison {
    /// `==`, not `!=`.
    pub is_equals: bool,
    /// Whether values of the libraries' own types cost as much as their sizes.
    pub is_by_size: bool,
}

/// A value, and the way from there to what is asked for.
#[derive(Debug)]
pub(super) struct Attribute {
    pub root: Root,
    pub qualifiers: Vec<Qualifier>,
}

#[derive(Debug)]
pub(super) enum Root {
    Variable(usize),
    Local(usize),
    Node(PlanNode),
    Conditional(Box<Conditional>),
}

/// `condition ? truthy : falsy`.
#[derive(Debug)]
pub(super) struct Conditional {
    pub condition: PlanNode,
    pub truthy: Attribute,
    pub falsy: Attribute,
}

/// A step to a field, an entry or an item.
#[derive(Debug)]
pub(super) struct Qualifier {
    pub key: AccessKey,
    /// Written `.?` or `[?]`.
    pub optional: bool,
    /// Only whether it is there is asked for: `has()`.
    pub presence: bool,
}

#[derive(Debug)]
pub(super) enum AccessKey {
    /// A name as the expression has it, and the property that it stands for.
    Field {
        written: Value<'static>,
        property: Option<Box<str>>,
    },
    /// A field of what the checker knows to be part of an object.
    Part(Box<str>),
    Constant(Value<'static>),
    Dynamic(Attribute),
}

/// A call of a function.
#[derive(Debug)]
pub(super) struct CallNode {
    pub function: String,
    pub arguments: Vec<PlanNode>,
    /// What may be called, in the order in which it is tried.
    pub overloads: Vec<Candidate>,
    pub cost: Cost,
    /// What the evaluator knows to do itself where the arguments are of the commonest types.
    pub shortcut: Option<Shortcut>,
    /// Whether an argument that fails ends the call, without the arguments after it and without a cost.
    pub stops_at_failure: bool,
    /// The argument that is a regular expression, where it is a constant.
    pub pattern: Option<Arc<Pattern>>,
    /// How a call is answered that no overload takes.
    pub mismatch: Mismatch,
}

/// What is done often enough to be done without looking for an overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortcut {
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
    Not,
    Size,
}

/// What an overload takes and does.
#[derive(Debug)]
pub(super) struct Candidate {
    pub declaration: Arc<Overload>,
    pub implementation: Implementation,
}

/// `element in [constants]`.
#[derive(Debug)]
pub(super) struct Membership {
    pub element: PlanNode,
    pub set: ConstantSet,
}

/// Scalars. A number is in it in each type that can hold it.
#[derive(Debug, Default)]
pub(super) struct ConstantSet {
    pub bools: [bool; 2],
    pub ints: HashSet<i64>,
    pub uints: HashSet<u64>,
    /// By their bits.
    pub doubles: HashSet<u64>,
    pub strings: HashSet<Box<str>>,
}

#[derive(Debug)]
pub(super) struct Element {
    pub value: PlanNode,
    /// Written `?value`.
    pub optional: bool,
}

#[derive(Debug)]
pub(super) struct MapEntryNode {
    pub key: PlanNode,
    pub value: PlanNode,
    /// Written `?key: value`.
    pub optional: bool,
}

/// A message of `google.protobuf` that stands for a value of the language, or a struct of which a mutation is made.
#[derive(Debug)]
pub(super) struct MessageNode {
    /// As `google.protobuf.Duration`.
    pub name: String,
    /// The type of the struct.
    pub mutation: Option<Type>,
    pub fields: Vec<(String, Element)>,
}

/// A comprehension. The variables live in slots.
#[derive(Debug)]
pub(super) struct Fold {
    pub range: PlanNode,
    pub first: usize,
    pub second: Option<usize>,
    pub accumulator: usize,
    pub init: PlanNode,
    pub condition: PlanNode,
    pub step: PlanNode,
    pub result: PlanNode,
}

/// A comprehension that is `all` or `exists`: its accumulator is a truth value, which needs no slot.
#[derive(Debug)]
pub(super) struct Quantifier {
    pub range: PlanNode,
    pub first: usize,
    pub second: Option<usize>,
    pub predicate: PlanNode,
    /// What the predicate must be once to decide: false for `all`, true for `exists`.
    pub decisive: bool,
}

#[derive(Debug)]
pub(super) struct Append {
    pub accumulator: usize,
    pub element: PlanNode,
    /// Of the list of one element that it stands for.
    pub cost: u64,
}

#[derive(Debug)]
pub(super) struct Insert {
    pub accumulator: usize,
    pub key: PlanNode,
    pub value: PlanNode,
}

#[derive(Debug)]
pub(super) struct Merge {
    pub accumulator: usize,
    pub entries: PlanNode,
}
