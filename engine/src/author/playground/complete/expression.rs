//! Names in expressions of rules and policies.

use super::Choice;
use crate::author::Catalog;
use crate::author::eval::{Evaluator, Variable};
use crate::cel::env::{Env, Expressions};
use crate::cel::function::Function;
use crate::schema::convert::to_structural;
use crate::schema::json_schema;
use crate::schema::structural::Structural;
use crate::value::Value;

/// Macros over lists and maps.
const MACROS: [(&str, &str); 6] = [
    ("all", "all(x, condition): whether it holds for each"),
    ("exists", "exists(x, condition): whether it holds for one or more"),
    ("exists_one", "exists_one(x, condition): whether it holds for exactly one"),
    ("filter", "filter(x, condition): those for which it holds"),
    ("map", "map(x, expression): what becomes of each"),
    ("sortBy", "sortBy(x, key): in the order of their keys"),
];
/// How many macros may stand within each other.
const NESTED_MAX: usize = 4;

/// What may stand at the end of a rule at `path` of a definition.
pub fn of_rule(definition: &Value, path: &[&str], text: &str) -> (usize, Vec<Choice>) {
    let node = path.iter().position(|step| *step == "openAPIV3Schema").and_then(|at| {
        let steps = &path[at + 1..path.iter().position(|step| *step == "x-kubernetes-validations")?];
        let versions = definition.items_at(&["spec", "versions"]).iter();
        versions.filter_map(|version| version.at(&["schema", "openAPIV3Schema"])).find_map(|schema| node(schema, steps))
    });
    let variables = ["self", "oldSelf"].map(|name| match &node {
        Some((node, is_root)) => Variable::of_node(name, Value::Null, node, *is_root),
        None => Variable::untyped(name, Value::Null),
    });
    names(variables.into(), text)
}

/// The node at `steps` below a schema, and whether it is the root.
fn node(schema: &Value, steps: &[&str]) -> Option<(Structural, bool)> {
    let mut found = schema.at(steps)?.clone();
    // A rule that is half written is none of the node's values.
    found.as_object_mut()?.remove("x-kubernetes-validations");
    let (decoded, _) = json_schema::decode(&found).ok()?;
    Some((to_structural(&decoded).ok()?, steps.is_empty()))
}

/// What may stand at the end of an expression of a policy, over objects of the first kind.
pub fn of_policy(catalog: &Catalog, text: &str) -> (usize, Vec<Choice>) {
    let version = catalog.kinds().next().and_then(|kind| kind.versions.iter().find(|version| version.storage));
    let of_kind = |name: &str| match version {
        Some(version) => Variable::of_node(name, Value::Null, &version.structural, true),
        None => Variable::untyped(name, Value::Null),
    };
    let others = ["request", "params", "namespaceObject", "authorizer", "variables"];
    let mut variables = vec![of_kind("object"), of_kind("oldObject")];
    variables.extend(others.map(|name| Variable::untyped(name, Value::Null)));
    names(variables, text)
}

fn names(variables: Vec<Variable>, text: &str) -> (usize, Vec<Choice>) {
    let bound = bound_in(text);
    let text = with_items(text);
    let evaluator = Evaluator::new(variables);
    let (start, found) = evaluator.complete(&text);
    let (before, word) = text.split_at(start);
    let choices = match before.strip_suffix('.') {
        Some(target) => members(&evaluator, target, word),
        None => free(found, bound, word),
    };
    (word.chars().count(), choices)
}

fn keyword(name: &str, info: &str) -> Choice {
    Choice { info: info.to_owned(), ..Choice::new("keyword", name) }
}

/// What may stand behind a value: the fields of an object, or else the macros and functions of its type.
fn members(evaluator: &Evaluator, target: &str, word: &str) -> Vec<Choice> {
    let fields = evaluator.below(target);
    if !fields.is_empty() {
        let fields = fields.into_iter().filter(|name| name.starts_with(word));
        return fields.map(|name| Choice::new("property", name)).collect();
    }
    let ty = type_of(evaluator, target);
    let has_macros = ["list", "map", "dyn", ""].contains(&ty.as_str());
    let macros = MACROS.iter().filter(|(name, _)| has_macros && name.starts_with(word));
    let macros = macros.map(|(name, info)| keyword(name, info));
    macros.chain(functions(Some(&ty), word)).collect()
}

/// What may stand by itself: `found` has the variables, and functions of all kinds.
fn free(found: Vec<String>, bound: Vec<String>, word: &str) -> Vec<Choice> {
    let library = Env::kubernetes(Expressions::Stored).library;
    let variables = found.into_iter().filter(|name| library.function(name).is_none());
    let bound = bound.into_iter().filter(|name| name.starts_with(word));
    let has = "has".starts_with(word).then(|| keyword("has", "has(self.field): whether the field is there"));
    bound.chain(variables).map(|name| Choice::new("variable", name)).chain(has).chain(functions(None, word)).collect()
}

/// The functions that can be called on a value of a type, or by themselves, in the order of their names.
fn functions(target: Option<&str>, word: &str) -> Vec<Choice> {
    let library = Env::kubernetes(Expressions::Stored).library;
    let is_word = |name: &&str| name.starts_with(word) && name.chars().all(char::is_alphanumeric);
    let mut names: Vec<&str> = library.names().filter(is_word).collect();
    names.sort_unstable();
    names.retain(|name| library.function(name).is_some_and(|function| fits(function, target)));
    names.into_iter().map(|name| Choice::new("function", name)).collect()
}

/// The name of the type of the path that ends a text; empty where it is not known.
fn type_of(evaluator: &Evaluator, text: &str) -> String {
    let found = evaluator.evaluate(receiver(text)).map(|found| found.ty).unwrap_or_default();
    head(&found).to_owned()
}

/// `list` of `list(string)`.
fn head(ty: &str) -> &str {
    ty.split('(').next().unwrap_or_default()
}

/// Whether a function can be called: on a value of that type (empty for any), or by itself.
fn fits(function: &Function, target: Option<&str>) -> bool {
    function.overloads.iter().any(|overload| match (target, overload.params.first()) {
        (None, _) => !overload.is_member,
        (Some(_), None) => false,
        (Some(target), Some(first)) => {
            let first = first.to_string();
            let is_any = ["", "dyn", "any"].contains(&target);
            let is_parameter = overload.type_params.iter().any(|name| **name == *first);
            overload.is_member && (is_any || is_parameter || head(&first) == target)
        }
    })
}

/// A macro over a list: its receiver, the name that it gives to items, and where its body begins.
fn macros(text: &str) -> Vec<(&str, &str, usize)> {
    let mut found = Vec::new();
    for (name, _) in MACROS {
        let call = format!(".{name}(");
        for (at, _) in text.match_indices(&call) {
            let rest = &text[at + call.len()..];
            if let Some((item, _)) = rest.split_once(',').filter(|(item, _)| is_name(item.trim())) {
                found.push((receiver(&text[..at]), item.trim(), at + call.len() + item.len() + 1));
            }
        }
    }
    found.sort_by_key(|(_, _, at)| *at);
    found
}

/// The names that macros give to items.
fn bound_in(text: &str) -> Vec<String> {
    let mut names: Vec<String> = macros(text).into_iter().map(|(_, item, _)| item.to_owned()).collect();
    names.sort();
    names.dedup();
    names
}

/// The path that ends a text: `self.spec.ports`.
fn receiver(text: &str) -> &str {
    let is_of_path = |character: char| character.is_alphanumeric() || "_.[]".contains(character);
    let start = text.char_indices().rev().take_while(|(_, character)| is_of_path(*character)).last();
    start.map_or("", |(at, _)| &text[at..])
}

/// The text with the item of a macro at its end written as what it is an item of: `self.ports.all(p, p.` ends in
/// `self.ports[0].`.
fn with_items(text: &str) -> String {
    let mut text = text.to_owned();
    for _ in 0..NESTED_MAX {
        let path = receiver(&text).to_owned();
        let Some((name, rest)) = path.split_once('.') else { break };
        let bound = macros(&text).into_iter().rev().find(|(_, item, _)| *item == name);
        let Some((of, _, body)) = bound.filter(|(of, _, body)| !of.is_empty() && *body <= text.len() - path.len())
        else {
            break;
        };
        // What stands before the macro is all that the names in its receiver can come from.
        let head = text[..body].rfind(of).map_or("", |at| &text[..at]);
        text = format!("{head}{of}[0].{rest}");
    }
    text
}

fn is_name(text: &str) -> bool {
    text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && text.chars().all(|character| character.is_ascii_alphanumeric() || character == '_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_of_macros_have_the_fields_of_items() {
        assert_eq!(with_items("self.ports.all(p, p.na"), "self.ports[0].na");
        assert_eq!(with_items("self.a.all(x, x.b.exists(y, y."), "self.a[0].b[0].");
        assert_eq!(with_items("has(self.a) && self.b"), "has(self.a) && self.b");
        assert_eq!(bound_in("self.a.all(x, x.b.exists(y, y."), ["x", "y"]);
    }
}
