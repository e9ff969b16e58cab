//! The syntax tree of an expression.
//!
//! Every node and every map or struct entry has an id that is unique in its tree; positions, types and references are
//! kept beside the tree by id. Macros are expanded while parsing, so `all` and its kin appear as [`Comprehension`].
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
    pub expr: Expr,
    pub source: SourceInfo,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    pub id: ExprId,
    pub kind: ExprKind,
}

#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    Constant(Constant),
    /// A variable, a type name or an enum value; a leading dot stands for the root of the name space.
    Ident(String),
    Select(Box<Select>),
    Call(Box<Call>),
    List(List),
    Map(Vec<MapEntry>),
    Struct(Box<Struct>),
    Comprehension(Box<Comprehension>),
}

impl Expr {
    /// The nodes right below, in the order of the text where they come from it.
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
    Null,
    Bool(bool),
    Int(i64),
    Uint(u64),
    Double(f64),
    String(String),
    Bytes(Vec<u8>),
}

impl Constant {
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

/// `operand.field`, or `has(operand.field)` where `test_only`.
#[derive(Clone, Debug, PartialEq)]
pub struct Select {
    pub operand: Expr,
    pub field: String,
    pub test_only: bool,
}

/// `function(args)` or `target.function(args)`. Operators are functions with names as in [`operators`].
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    pub function: String,
    pub target: Option<Expr>,
    pub args: Vec<Expr>,
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct List {
    pub elements: Vec<Expr>,
    /// Indices of the elements written `?x`, rising.
    pub optional: Vec<usize>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct MapEntry {
    pub id: ExprId,
    pub key: Expr,
    pub value: Expr,
    /// Written `?key: value`.
    pub optional: bool,
}

/// `type_name{field: value}`.
#[derive(Clone, Debug, PartialEq)]
pub struct Struct {
    pub type_name: String,
    pub fields: Vec<StructField>,
}

#[derive(Clone, Debug, PartialEq)]
pub struct StructField {
    pub id: ExprId,
    pub name: String,
    pub value: Expr,
    pub optional: bool,
}

/// What a macro over a list or a map expands to: a fold.
///
/// `accu_var` starts as `accu_init`; for each element of `iter_range`, while `loop_condition` holds, it becomes
/// `loop_step`; the value is `result`. Over a map, `iter_var` is the key. With `iter_var2`, `iter_var` is the index or
/// key, and `iter_var2` the element or value.
#[derive(Clone, Debug, PartialEq)]
pub struct Comprehension {
    pub iter_range: Expr,
    pub iter_var: String,
    pub iter_var2: Option<String>,
    pub accu_var: String,
    pub accu_init: Expr,
    pub loop_condition: Expr,
    pub loop_step: Expr,
    pub result: Expr,
}

/// Names of operators as functions.
pub mod operators {
    pub const CONDITIONAL: &str = "_?_:_";
    pub const LOGICAL_AND: &str = "_&&_";
    pub const LOGICAL_OR: &str = "_||_";
    pub const LOGICAL_NOT: &str = "!_";
    pub const EQUALS: &str = "_==_";
    pub const NOT_EQUALS: &str = "_!=_";
    pub const LESS: &str = "_<_";
    pub const LESS_EQUALS: &str = "_<=_";
    pub const GREATER: &str = "_>_";
    pub const GREATER_EQUALS: &str = "_>=_";
    pub const ADD: &str = "_+_";
    pub const SUBTRACT: &str = "_-_";
    pub const MULTIPLY: &str = "_*_";
    pub const DIVIDE: &str = "_/_";
    pub const MODULO: &str = "_%_";
    pub const NEGATE: &str = "-_";
    pub const INDEX: &str = "_[_]";
    pub const OPTIONAL_INDEX: &str = "_[?_]";
    pub const OPTIONAL_SELECT: &str = "_?._";
    pub const IN: &str = "@in";
    pub const NOT_STRICTLY_FALSE: &str = "@not_strictly_false";
    /// A map with an entry more, or with those of another map.
    pub const MAP_INSERT: &str = "cel.@mapInsert";
}

/// The variable that accumulates in the comprehensions that the standard macros make.
pub const ACCUMULATOR: &str = "@result";

/// A half-open range of the source, in code points.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Range {
    pub start: u32,
    pub end: u32,
}

/// Where nodes stand in the text.
#[derive(Clone, Debug, Default)]
pub struct SourceInfo {
    /// The text, as code points.
    pub text: Vec<char>,
    /// Ranges by id.
    ranges: Vec<Option<Range>>,
    /// The calls that macros replaced, by the id of what replaced them; kept only on demand, for printing.
    pub macro_calls: HashMap<ExprId, Expr>,
}

/// A place in the text: lines from 1, columns from 0 in code points.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Location {
    /// -1 where the place is not known.
    pub line: i32,
    pub column: i32,
}

impl Location {
    /// No place at all.
    pub const NONE: Location = Location { line: -1, column: -1 };
}

impl SourceInfo {
    pub fn new(text: &str) -> Self {
        SourceInfo { text: text.chars().collect(), ..SourceInfo::default() }
    }

    pub fn range(&self, id: ExprId) -> Option<Range> {
        self.ranges.get(id.0 as usize).copied().flatten()
    }

    pub fn set_range(&mut self, id: ExprId, range: Range) {
        let at = id.0 as usize;
        if self.ranges.len() <= at {
            self.ranges.resize(at + 1, None);
        }
        self.ranges[at] = Some(range);
    }

    pub fn clear_range(&mut self, id: ExprId) {
        if let Some(range) = self.ranges.get_mut(id.0 as usize) {
            *range = None;
        }
    }

    /// Where `id` starts; [`Location::NONE`] if that is not known.
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
