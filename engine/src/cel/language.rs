//! The contents of an environment: functions, macros, and the rules that go with them.

use std::collections::HashMap;
use std::sync::Arc;

use super::function::Function;
use super::types::Type;
use crate::meta::minor::Minor;

/// A set of functions and macros with the rules of the language that go with it.
#[derive(Clone, Debug)]
pub struct Library {
    pub(super) functions: HashMap<&'static str, Arc<Function>>,
    /// Whether all elements of a list or map literal must have one type.
    pub homogeneous_literals: bool,
    /// Whether names of fields may be in backquotes.
    pub quoted_names: bool,
    /// Whether there are `?.`, `[?]`, optional entries and the macros of optionals.
    pub optionals: bool,
    /// Whether there are macros with two variables, such as `all(k, v, …)`.
    pub two_variable_comprehensions: bool,
    /// Whether there is the macro `list.sortBy(x, key)`.
    pub sort_by: bool,
    /// Whether Kubernetes' checks of literals apply: of durations, timestamps and regular expressions.
    pub literal_validators: bool,
    /// Whether there are the types of mutations: `Object{…}` and `JSONPatch{…}`.
    pub mutations: bool,
    /// The version of Kubernetes whose messages and costs apply.
    pub minor: Minor,
}

/// A library and declared variables.
#[derive(Clone, Debug)]
pub struct Env {
    /// The functions and macros that expressions may use.
    pub library: Arc<Library>,
    /// The variables that expressions may use.
    pub variables: Vec<Variable>,
}

/// A variable of an environment.
#[derive(Clone, Debug)]
pub struct Variable {
    /// The name in expressions; programs share it.
    pub name: Arc<str>,
    /// The declared type.
    pub ty: Type,
}

impl Library {
    /// The names of all functions, in no particular order; operators have names that no expression can use.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.functions.keys().copied()
    }

    /// The function `name`, if there is one.
    pub fn function(&self, name: &str) -> Option<&Arc<Function>> {
        self.functions.get(name)
    }
}
