//! What an environment knows of the language: functions, macros, and the rules that go with them.

use std::collections::HashMap;
use std::sync::Arc;

use super::function::Function;
use super::types::Type;
use crate::meta::minor::Minor;

/// A set of functions and macros with the rules of the language that go with it.
#[derive(Clone, Debug)]
pub struct Library {
    pub(super) functions: HashMap<&'static str, Arc<Function>>,
    /// Literals of lists and maps have elements of one type.
    pub homogeneous_literals: bool,
    /// Names of fields in backquotes.
    pub quoted_names: bool,
    /// `?.`, `[?]`, optional entries and the macros of optionals.
    pub optionals: bool,
    /// `all(k, v, …)` and the like.
    pub two_variable_comprehensions: bool,
    /// The macro `list.sortBy(x, key)`.
    pub sort_by: bool,
    /// The checks of literals that Kubernetes adds: durations, timestamps, regular expressions.
    pub literal_validators: bool,
    /// The types of mutations: `Object{…}` and `JSONPatch{…}`.
    pub mutations: bool,
    /// The version of Kubernetes whose texts and prices these are.
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
    /// The name in expressions.
    pub name: String,
    /// The declared type.
    pub ty: Type,
}

impl Library {
    /// The names of all functions, in no order; operators have names that no expression can use.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.functions.keys().copied()
    }

    /// The function `name`, if there is one.
    pub fn function(&self, name: &str) -> Option<&Arc<Function>> {
        self.functions.get(name)
    }
}
