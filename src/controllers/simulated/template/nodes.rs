//! The nodes of a template, and its limits.

use super::super::query::text_of;
use crate::value::Value;

/// The size limit of a text and of everything that functions produce for it; and the limit of executed actions.
pub(super) const BYTES_MAX: usize = 1 << 20;
pub(super) const STEPS_MAX: usize = 100_000;
/// How deep parentheses and blocks may be nested.
pub(super) const DEPTH_MAX: usize = 50;

/// Go's, and kwok's.
pub(super) const FUNCTIONS: [&str; 23] = [
    "and",
    "default",
    "dict",
    "eq",
    "index",
    "len",
    "ne",
    "not",
    "or",
    "printf",
    "Now",
    "NodeConditions",
    "NodeIP",
    "NodeIPs",
    "NodeIPWith",
    "NodeIPsWith",
    "NodeName",
    "NodePort",
    "PodIPWith",
    "PodIPsWith",
    "Quote",
    "Version",
    "YAML",
];

/// Why a template can't be parsed, or not be rendered.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum TemplateError {
    #[error("the template has {{{{ without }}}}")]
    Open,
    #[error("the template has {{{{ {0} }}}} without a beginning")]
    NoBeginning(String),
    #[error("the template has {{{{ {0} }}}} without an end")]
    NoEnd(String),
    #[error("the template has {{{{ else {0} }}}}, which is not known")]
    UnknownElse(String),
    #[error("the template is nested more than {DEPTH_MAX} deep")]
    Depth,
    #[error("{{{{ range }}}} takes two variables at most")]
    Variables,
    #[error("`{0}` is not a variable of a template")]
    NotVariable(String),
    #[error("the action `{0}` of the template is not understood")]
    Action(String),
    #[error("an action is empty")]
    EmptyAction,
    #[error("a template has the functions {known}, and not `{0}`", known = FUNCTIONS.join(", "))]
    UnknownFunction(String),
    #[error("the template has no variable ${0}")]
    UnknownVariable(String),
    #[error("a template may make {BYTES_MAX} bytes in {STEPS_MAX} steps at most")]
    Bound,
    #[error("the length of {} is not known", text_of(.0))]
    Length(Value),
    #[error("of the verbs of printf, %s, %v and %d are understood, and not `%{0}`")]
    Verb(String),
    #[error("a range can't go over {}", text_of(.0))]
    Range(Value),
}

#[derive(Clone, Debug, PartialEq)]
pub(super) enum TemplateNode {
    Text(String),
    Print(Pipe),
    /// A variable, and whether it is a new one.
    Set(String, bool, Pipe),
    If {
        of: Pipe,
        then: Vec<TemplateNode>,
        otherwise: Vec<TemplateNode>,
    },
    With {
        of: Pipe,
        then: Vec<TemplateNode>,
        otherwise: Vec<TemplateNode>,
    },
    Range {
        of: Pipe,
        index: Option<String>,
        item: Option<String>,
        then: Vec<TemplateNode>,
        otherwise: Vec<TemplateNode>,
    },
}

/// Commands, each of which gets what the one before made.
pub(super) type Pipe = Vec<Vec<Operand>>;

#[derive(Clone, Debug, PartialEq)]
pub(super) enum Operand {
    Literal(Value),
    Function(String),
    /// A path behind the dot.
    Dot(Vec<String>),
    Variable(String, Vec<String>),
    Group(Pipe, Vec<String>),
}
