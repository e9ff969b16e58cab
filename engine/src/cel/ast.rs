//! The syntax tree of an expression.
//!
//! Every node and every map or struct entry has an id that is unique in its tree; positions, types and references are
//! kept beside the tree by id. Macros are expanded while parsing, so `all` and the other macros appear as [`Comprehension`].
//! The parser bounds the depth of a tree, so that walking it recursively is safe.

use std::collections::HashMap;
use std::fmt;

use super::types::Type;

/// The identity of a node within its tree, from 1 on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ExprId(pub u32);

/// A parsed expression.
#[derive(Clone, Debug)]
pub struct Ast {
    /// The root of the tree.
    pub expr: Expr,
    /// The positions of its nodes in the text.
    pub source: SourceInfo,
}

/// A node of the tree.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its id, by which types, references and positions are kept.
    pub id: ExprId,
    /// Its kind.
    pub kind: ExprKind,
}

/// The kind of a node.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A literal.
    Constant(Constant),
    /// A variable, a type name or an enum value; a leading dot stands for the root of the name space.
    Ident(String),
    /// `operand.field`, or `has(operand.field)`.
    Select(Box<Select>),
    /// A call of a function, a method or an operator.
    Call(Box<Call>),
    /// `[a, b]`.
    List(ListExpr),
    /// `{a: b}`.
    Map(Vec<MapEntry>),
    /// `Type{field: value}`.
    Struct(Box<Struct>),
    /// A macro over a list or a map, expanded.
    Comprehension(Box<Comprehension>),
}

impl Expr {
    /// The child nodes, in the order of the text if they come from it.
    pub fn children(&self) -> Vec<&Expr> {
        match &self.kind {
            ExprKind::Constant(_) | ExprKind::Ident(_) => Vec::new(),
            ExprKind::Select(select) => vec![&select.operand],
            ExprKind::Call(call) => call.target.iter().chain(&call.args).collect(),
            ExprKind::List(list) => list.elements.iter().collect(),
            ExprKind::Map(entries) => entries.iter().flat_map(|entry| [&entry.key, &entry.value]).collect(),
            ExprKind::Struct(message) => message.fields.iter().map(|field| &field.value).collect(),
            ExprKind::Comprehension(fold) => {
                vec![&fold.iter_range, &fold.accu_init, &fold.loop_condition, &fold.loop_step, &fold.result]
            }
        }
    }
}

/// A literal.
#[derive(Clone, Debug, PartialEq)]
pub enum Constant {
    /// `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// `-1`.
    Int(i64),
    /// `1u`.
    Uint(u64),
    /// `1.0`.
    Double(f64),
    /// `'text'`.
    String(String),
    /// `b'bytes'`.
    Bytes(Vec<u8>),
}

impl Constant {
    /// The type of the literal.
    pub fn ty(&self) -> Type {
        match self {
            Constant::Null => Type::Null,
            Constant::Bool(_) => Type::Bool,
            Constant::Int(_) => Type::Int,
            Constant::Uint(_) => Type::Uint,
            Constant::Double(_) => Type::Double,
            Constant::String(_) => Type::String,
            Constant::Bytes(_) => Type::Bytes,
        }
    }
}

/// `operand.field`, or `has(operand.field)` if `test_only`.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    /// The operand of the selection.
    pub operand: Expr,
    /// The name of the field.
    pub field: String,
    /// Whether this only tests the presence of the field: `has(a.b)`.
    pub test_only: bool,
}

/// `function(args)` or `target.function(args)`. Operators are functions with names as in [`operators`].
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// The name of the function; operators have names of their own, see [`operators`].
    pub function: String,
    /// The target of a method call.
    pub target: Option<Expr>,
    /// The arguments in parentheses.
    pub args: Vec<Expr>,
}

/// A list that an expression constructs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct ListExpr {
    /// The items.
    pub elements: Vec<Expr>,
    /// Indices of the elements written `?x`, in ascending order.
    pub optional: Vec<usize>,
}

/// An entry of a map that an expression constructs.
#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    /// The id of the entry.
    pub id: ExprId,
    /// The key.
    pub key: Expr,
    /// The value.
    pub value: Expr,
    /// Whether it is written `?key: value`.
    pub optional: bool,
}

/// `type_name{field: value}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Struct {
    /// The name of the type.
    pub type_name: String,
    /// The fields that are set.
    pub fields: Vec<StructField>,
}

/// A field of an object that an expression constructs.
#[derive(Clone, Debug, PartialEq)]
pub struct StructField {
    /// The id of the field.
    pub id: ExprId,
    /// The name of the field.
    pub name: String,
    /// The value.
    pub value: Expr,
    /// Whether it is omitted if the value is `optional.none()`: `?field: value`.
    pub optional: bool,
}

/// What a macro over a list or a map expands to: a fold.
///
/// `accu_var` starts as `accu_init`; for each element of `iter_range`, while `loop_condition` holds, it becomes
/// `loop_step`; the value is `result`. Over a map, `iter_var` is the key. With `iter_var2`, `iter_var` is the index or
/// key, and `iter_var2` the element or value.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    /// The list or map that is iterated over.
    pub iter_range: Expr,
    /// The variable for the item, or for the key.
    pub iter_var: String,
    /// The variable for the value, in macros with two variables.
    pub iter_var2: Option<String>,
    /// The variable that the steps add to.
    pub accu_var: String,
    /// The initial value of the accumulator.
    pub accu_init: Expr,
    /// The iteration ends when this is false.
    pub loop_condition: Expr,
    /// The value of the accumulator after a step.
    pub loop_step: Expr,
    /// The value of the whole comprehension.
    pub result: Expr,
}

/// Names of operators as functions.
pub mod operators {
    /// `a ? b : c`
    pub const CONDITIONAL: &str = "_?_:_";
    /// `a && b`
    pub const LOGICAL_AND: &str = "_&&_";
    /// `a || b`
    pub const LOGICAL_OR: &str = "_||_";
    /// `!a`
    pub const LOGICAL_NOT: &str = "!_";
    /// `a == b`
    pub const EQUALS: &str = "_==_";
    /// `a != b`
    pub const NOT_EQUALS: &str = "_!=_";
    /// `a < b`
    pub const LESS: &str = "_<_";
    /// `a <= b`
    pub const LESS_EQUALS: &str = "_<=_";
    /// `a > b`
    pub const GREATER: &str = "_>_";
    /// `a >= b`
    pub const GREATER_EQUALS: &str = "_>=_";
    /// `a + b`
    pub const ADD: &str = "_+_";
    /// `a - b`
    pub const SUBTRACT: &str = "_-_";
    /// `a * b`
    pub const MULTIPLY: &str = "_*_";
    /// `a / b`
    pub const DIVIDE: &str = "_/_";
    /// `a % b`
    pub const MODULO: &str = "_%_";
    /// `-a`
    pub const NEGATE: &str = "-_";
    /// `a[b]`
    pub const INDEX: &str = "_[_]";
    /// `a[?b]`
    pub const OPTIONAL_INDEX: &str = "_[?_]";
    /// `a.?b`
    pub const OPTIONAL_SELECT: &str = "_?._";
    /// `a in b`
    pub const IN: &str = "@in";
    /// Lets `all` and `exists` end early.
    pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    /// A map with one more entry, or with the entries of another map.
    pub const MAP_INSERT: &str = "cel.@mapInsert";
}

/// The variable that accumulates in the comprehensions that the standard macros make.
pub const ACCUMULATOR: &str = "@result";

/// A half-open range of the source, in code points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    /// The first character, counted from 0.
    pub start: u32,
    /// The end, after the last character.
    pub end: u32,
}

/// The positions of nodes in the text.
#[derive(Clone, Debug, Default)]
pub struct SourceInfo {
    /// The text, as code points.
    pub text: Vec<char>,
    /// Ranges by id.
    ranges: Vec<Option<Range>>,
    /// The calls that macros replaced, by the id of the expansion; kept only on demand, for printing.
    pub macro_calls: HashMap<ExprId, Expr>,
}

/// A position in the text: lines from 1, columns from 0 in code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// The line, from 1; -1 if the position is unknown.
    pub line: i32,
    /// The column, counted from 0.
    pub column: i32,
}

impl Location {
    /// The location of something without a position.
    pub const NONE: Location = Location { line: -1, column: -1 };
}

impl SourceInfo {
    /// An empty table for a text.
    pub fn new(text: &str) -> Self {
        SourceInfo { text: text.chars().collect(), ..SourceInfo::default() }
    }

    /// The position of a node; `None` for nodes that macros created.
    pub fn range(&self, id: ExprId) -> Option<Range> {
        self.ranges.get(id.0 as usize).copied().flatten()
    }

    /// Sets the position of a node.
    pub fn set_range(&mut self, id: ExprId, range: Range) {
        let at = id.0 as usize;
        if self.ranges.len() <= at {
            self.ranges.resize(at + 1, None);
        }
        self.ranges[at] = Some(range);
    }

    /// Removes the position of a node.
    pub fn clear_range(&mut self, id: ExprId) {
        if let Some(range) = self.ranges.get_mut(id.0 as usize) {
            *range = None;
        }
    }

    /// The start of `id`; [`Location::NONE`] if that is unknown.
    pub fn location(&self, id: ExprId) -> Location {
        self.range(id).map_or(Location::NONE, |range| self.location_of(range.start))
    }

    /// The line and column of an offset.
    pub fn location_of(&self, offset: u32) -> Location {
        if self.text.is_empty() {
            return Location { line: 1, column: -1 };
        }
        let before = &self.text[..self.text.len().min(offset as usize)];
        let line = before.iter().filter(|character| **character == '\n').count();
        let line_start = before.iter().rposition(|character| *character == '\n').map_or(0, |at| at + 1);
        Location { line: line as i32 + 1, column: offset as i32 - line_start as i32 }
    }

    /// A line of the text without its end, by its number from 1.
    pub fn line(&self, number: i32) -> Option<String> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        self.text.split(|character| *character == '\n').nth(at).map(|line| line.iter().collect())
    }
}

impl fmt::Display for ExprId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(formatter)
    }
}
