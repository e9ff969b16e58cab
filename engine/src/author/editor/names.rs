//! Completions in an expression.
//!
//! Input: the text of an expression up to a position, and the environment in which it is checked. Output: the fields,
//! variables, functions and macros that can continue it. Editors, the playground and `skiff eval` offer these.

use std::ops::Range;

use super::types::{MACROS, Typed, fits, typed};
use crate::cel::env::Env;
use crate::cel::function::Function;
use crate::cel::types::Type;
use crate::schema::rules::compile::SELF_TYPE;

/// The sort of a completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Sign {
    /// A field.
    Field,
    /// A value.
    Value,
    /// A kind, or a version.
    Kind,
    /// A variable.
    Variable,
    /// A function.
    Function,
    /// A macro, or a keyword.
    Keyword,
}

/// A name that can be written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name {
    /// The text that is shown.
    pub label: String,
    /// Its sort.
    pub sign: Sign,
    /// Its type or its parameters.
    pub detail: String,
    /// The text that is inserted; with an opening parenthesis if it has parameters.
    pub with: String,
}

impl Name {
    fn new(label: &str, sign: Sign, detail: String) -> Name {
        Name { label: label.to_owned(), sign, detail, with: label.to_owned() }
    }

    fn called(label: &str, sign: Sign, detail: String) -> Name {
        Name { with: format!("{label}("), ..Name::new(label, sign, detail) }
    }
}

/// The names that can be written at the end of `text`, and the range of characters that they replace; `None` within a
/// string or a comment.
pub fn names(text: &[char], env: &Env) -> Option<(Range<usize>, Vec<Name>)> {
    let Typed { written, receiver, env } = typed(text, env)?;
    let mut offered = match &receiver {
        Some(Type::Object(object)) => {
            let fields = object.fields.iter();
            fields.map(|(name, field)| Name::new(name, Sign::Field, shown(&field.decl.ty))).collect()
        }
        Some(_) => Vec::new(),
        None => at_the_start(&env),
    };
    offered.extend(receiver.iter().flat_map(macros));
    let mut functions: Vec<&str> = env.library.names().filter(|name| is_name(name)).collect();
    functions.sort_unstable();
    offered.extend(functions.iter().filter_map(|name| env.library.function(name)).filter_map(|function| {
        let signature = signature(function, receiver.as_ref())?;
        Some(Name::called(function.name, Sign::Function, signature))
    }));
    Some((written, offered))
}

/// Variables and keywords.
fn at_the_start(env: &Env) -> Vec<Name> {
    let variables = env.variables.iter().filter(|variable| !variable.name.contains('.'));
    let mut names: Vec<Name> =
        variables.map(|variable| Name::new(&variable.name, Sign::Variable, shown(&variable.ty))).collect();
    names.push(Name::called("has", Sign::Keyword, "has(x.field): whether it is set".to_owned()));
    names.extend(["true", "false", "null"].map(|word| Name::new(word, Sign::Keyword, String::new())));
    names
}

/// The macros that can be called on a value of a type.
fn macros(receiver: &Type) -> Vec<Name> {
    let is_known = |name: &str| match receiver {
        Type::Dyn => true,
        Type::List(_) | Type::Map(_) | Type::Opaque(_) => {
            receiver.optional_content().is_some() == name.starts_with("opt")
        }
        _ => false,
    };
    let known = MACROS.iter().filter(|(name, _)| is_known(name));
    known.map(|(name, parameters)| Name::called(name, Sign::Keyword, format!("({parameters})"))).collect()
}

/// A signature of a function for a receiver, or without one; `None` if it cannot be called like that.
fn signature(function: &Function, receiver: Option<&Type>) -> Option<String> {
    signatures(function, receiver).next()
}

/// All signatures of a function for a receiver, or for a call without one.
pub fn signatures(function: &Function, receiver: Option<&Type>) -> impl Iterator<Item = String> {
    let fitting = function.overloads.iter().filter(move |overload| match receiver {
        Some(receiver) => overload.is_member && overload.params.first().is_some_and(|param| fits(param, receiver)),
        None => !overload.is_member,
    });
    fitting.map(|overload| {
        let skipped = usize::from(overload.is_member);
        let params: Vec<String> = overload.params.iter().skip(skipped).map(shown).collect();
        format!("({}): {}", params.join(", "), shown(&overload.result))
    })
}

/// Formats a type; an object type from a schema, whose name is made up, is shown as `object`.
pub fn shown(ty: &Type) -> String {
    match ty {
        Type::List(element) => format!("list({})", shown(element)),
        Type::Map(entry) => format!("map({}, {})", shown(&entry.0), shown(&entry.1)),
        Type::Object(object) if is_made_up(&object.name) => "object".to_owned(),
        Type::Opaque(opaque) if !opaque.params.is_empty() => {
            let params: Vec<String> = opaque.params.iter().map(shown).collect();
            format!("{}({})", opaque.name, params.join(", "))
        }
        ty => ty.to_string(),
    }
}

/// Whether a type's name was made up from its position in a schema.
fn is_made_up(name: &str) -> bool {
    name.starts_with(SELF_TYPE) || (name.contains('.') && !name.starts_with("kubernetes."))
}

/// Whether an expression can use the name: those of operators it cannot.
fn is_name(name: &str) -> bool {
    name.starts_with(|sign: char| sign.is_ascii_alphabetic())
        && name.chars().all(|sign| sign.is_ascii_alphanumeric() || "._".contains(sign))
}
