//! The compiled form of an expression, in which all names are resolved.

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
    /// A variable of the activation, by its index.
    Variable(usize),
    /// A name that is not declared.
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

/// The result of `or` and `orValue` for a value that is not an optional. Only values of dynamic type can be.
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
    /// Whether this is `==`, not `!=`.
    pub is_equals: bool,
    /// Whether values of the libraries' own types cost as much as their sizes.
    pub is_by_size: bool,
}

/// A value, and the path from it to a part of it.
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
    /// Whether it is written `.?` or `[?]`.
    pub optional: bool,
    /// Whether only the presence is tested: `has()`.
    pub presence: bool,
}

#[derive(Debug)]
pub(super) enum AccessKey {
    /// A name as written in the expression, and the property that it refers to.
    Field {
        written: Value<'static>,
        property: Option<Box<str>>,
    },
    /// A field of a value that the checker knows to be part of an object.
    Part(Box<str>),
    Constant(Value<'static>),
    Dynamic(Attribute),
}

/// A call of a function.
#[derive(Debug)]
pub(super) struct CallNode {
    pub function: String,
    pub arguments: Vec<PlanNode>,
    /// The overloads that may be called, in the order in which they are tried.
    pub overloads: Vec<Candidate>,
    pub cost: Cost,
    /// The operation that the evaluator executes itself if the arguments have the most frequent types.
    pub shortcut: Option<Shortcut>,
    /// Whether an argument that fails ends the call, without the arguments after it and without a cost.
    pub stops_at_failure: bool,
    /// The argument that is a regular expression, if it is a constant.
    pub pattern: Option<Arc<Pattern>>,
    /// The error of a call that no overload accepts.
    pub mismatch: Mismatch,
}

/// An operation that is frequent enough to be executed without searching for an overload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Shortcut {
    Less,
    LessEquals,
    Greater,
    GreaterEquals,
    Not,
    Size,
}

/// An overload and its implementation.
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

/// A set of scalars. A number is in it in each type that can hold it.
#[derive(Debug, Default)]
pub(super) struct ConstantSet {
    pub bools: [bool; 2],
    pub ints: HashSet<i64>,
    pub uints: HashSet<u64>,
    /// The doubles, by their bits.
    pub doubles: HashSet<u64>,
    pub strings: HashSet<Box<str>>,
}

#[derive(Debug)]
pub(super) struct Element {
    pub value: PlanNode,
    /// Whether it is written `?value`.
    pub optional: bool,
}

#[derive(Debug)]
pub(super) struct MapEntryNode {
    pub key: PlanNode,
    pub value: PlanNode,
    /// Whether it is written `?key: value`.
    pub optional: bool,
}

/// A message of `google.protobuf` that becomes a CEL value, or a struct of a mutation.
#[derive(Debug)]
pub(super) struct MessageNode {
    /// The message's name, such as `google.protobuf.Duration`.
    pub name: String,
    /// The type of the struct, for a mutation.
    pub mutation: Option<Type>,
    pub fields: Vec<(String, Element)>,
}

/// A comprehension. The variables are in slots.
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

/// A comprehension that is `all` or `exists`: its accumulator is a boolean, which needs no slot.
#[derive(Debug)]
pub(super) struct Quantifier {
    pub range: PlanNode,
    pub first: usize,
    pub second: Option<usize>,
    pub predicate: PlanNode,
    /// The value of the predicate that decides the result: false for `all`, true for `exists`.
    pub decisive: bool,
}

#[derive(Debug)]
pub(super) struct Append {
    pub accumulator: usize,
    pub element: PlanNode,
    /// The cost of the list with one element that it replaces.
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
