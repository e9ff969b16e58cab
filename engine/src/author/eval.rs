//! An expression, evaluated for its author.
//!
//! In: variables, each with a value and perhaps the node of a schema that declares it, and an expression. Out: what it comes
//! to, its type, what it costs, and the values of its parts; or what is wrong with it.

use crate::cel::ast::SourceInfo;
use crate::cel::cost::{self, model::CALL_LIMIT};
use crate::cel::declared::{DeclType, Shape};
use crate::cel::env::{Env, Expressions};
use crate::cel::eval::host::Form;
use crate::cel::eval::show::literal;
use crate::cel::eval::{Binding, Program, Value as Cel};
use crate::cel::types::Type;
use crate::cel::{checker, parser};
use crate::schema::declare::declare;
use crate::schema::form::form;
use crate::schema::rules::trace::{PartValue, Trace};
use crate::schema::structural::Structural;
use crate::value::Value;

/// What an expression may name.
pub struct Variable {
    name: String,
    value: Value,
    declared: Option<Declared>,
}

/// What a schema says of a variable.
struct Declared {
    decl: DeclType,
    form: Form,
}

impl Variable {
    /// A variable that no schema declares: an expression sees what its value has.
    pub fn untyped(name: &str, value: Value) -> Variable {
        Variable { name: name.to_owned(), value, declared: None }
    }

    /// A variable as a rule at a node of a schema sees it. What a schema leaves open is seen as in [`Variable::untyped`].
    pub fn of_node(name: &str, value: Value, node: &Structural, is_resource: bool) -> Variable {
        let declared = declare(node, is_resource);
        let declared = declared.map(|decl| Declared { decl: decl.named(name), form: form(node, is_resource) });
        Variable { name: name.to_owned(), value, declared }
    }

    fn ty(&self) -> Type {
        self.declared.as_ref().map_or(Type::Dyn, |declared| declared.decl.ty.clone())
    }

    fn binding(&self) -> Binding<'_> {
        Some(match &self.declared {
            Some(declared) => Cel::host(&self.value, &declared.form),
            None => Ok(Cel::json(&self.value)),
        })
    }
}

/// What came of an expression.
pub struct Evaluated {
    /// The type that is known beforehand.
    pub ty: String,
    /// Its value as an expression, or why there is none.
    pub value: Result<String, String>,
    /// What this evaluation cost.
    pub cost: u64,
    /// The most that one evaluation may cost, whatever the values; only known where schemas declare the variables.
    pub cost_max: Option<u64>,
    /// What its parts came to.
    pub parts: Vec<PartValue>,
}

/// Expressions over the same variables.
pub struct Evaluator {
    env: Env,
    variables: Vec<Variable>,
}

impl Evaluator {
    /// Of variables of the same name the last counts.
    pub fn new(mut variables: Vec<Variable>) -> Evaluator {
        let mut seen = Vec::new();
        variables.reverse();
        variables.retain(|variable| {
            let is_new = !seen.contains(&variable.name);
            seen.push(variable.name.clone());
            is_new
        });
        let env = Env::kubernetes(Expressions::Stored);
        let env = variables.iter().fold(env, |env, variable| env.with_variable(&variable.name, variable.ty()));
        Evaluator { env, variables }
    }

    /// Evaluates `text`.
    ///
    /// # Errors
    /// What is wrong with it, as a server tells it.
    pub fn evaluate(&self, text: &str) -> Result<Evaluated, String> {
        let ast = parser::parse_keeping_macros(SourceInfo::new(text), &self.env.library);
        let checked = ast.and_then(|ast| checker::check(ast, &self.env)).map_err(|issues| issues.to_string())?;
        let program = Program::new(&checked, &self.env).map_err(|error| error.to_string())?;
        let bindings: Vec<Binding<'_>> = self.variables.iter().map(Variable::binding).collect();
        let evaluation = program.evaluate(&bindings, CALL_LIMIT);
        let parts = Trace::of(&checked, &self.env).values(&bindings).into_iter().skip(1);
        // All variables count as declared alike: where they are not, there is no estimate.
        let root = self.variables.first().and_then(|variable| variable.declared.as_ref());
        let is_alike =
            |variable: &Variable| variable.declared.is_some() && ["self", "oldSelf"].contains(&variable.name.as_str());
        let root = root.filter(|_| self.variables.iter().all(is_alike));
        Ok(Evaluated {
            ty: checked.result_type().to_string(),
            value: evaluation.result.map(|value| literal(&value)).map_err(|error| error.to_string()),
            cost: evaluation.cost,
            cost_max: root.map(|root| cost::estimate(&checked, &root.decl).max),
            parts: parts.collect(),
        })
    }

    /// What may stand where `text` ends: where the last word begins, and the names that go on from there.
    pub fn complete(&self, text: &str) -> (usize, Vec<String>) {
        let is_name = |character: char| character.is_alphanumeric() || character == '_';
        let start = text
            .rfind(|character| !is_name(character))
            .map_or(0, |at| at + text[at..].chars().next().map_or(0, char::len_utf8));
        let (before, word) = text.split_at(start);
        let fits = |name: &String| name.starts_with(word) && name.starts_with(|first: char| first.is_alphabetic());
        let mut names: Vec<String> = match before.strip_suffix('.') {
            Some(before) => self.below(before),
            None => self.variables.iter().map(|variable| variable.name.clone()).collect(),
        };
        names.retain(fits);
        // Behind an object, its fields say more than all functions.
        if names.is_empty() || !before.ends_with('.') {
            names.extend(self.env.library.names().map(str::to_owned).filter(fits));
        }
        names.sort();
        names.dedup();
        (start, names)
    }

    /// The fields of the value at the end of `text`, as far as that is a path: `self.spec.ports[0]`.
    fn below(&self, text: &str) -> Vec<String> {
        let is_of_path = |character: char| character.is_alphanumeric() || "_.[]\"'".contains(character);
        let start = text
            .rfind(|character| !is_of_path(character))
            .map_or(0, |at| at + text[at..].chars().next().map_or(0, char::len_utf8));
        let mut steps = text[start..].split('.');
        let name = steps.next().unwrap_or_default();
        let Some(variable) =
            self.variables.iter().find(|variable| variable.name == name.split('[').next().unwrap_or(name))
        else {
            return Vec::new();
        };
        let Some(declared) = &variable.declared else { return fields_of(&variable.value, steps) };
        let mut decl = within(&declared.decl, name);
        for step in steps {
            let Shape::Object(object) = &decl.shape else { return Vec::new() };
            let Some(field) = object.field(step.split('[').next().unwrap_or(step)) else { return Vec::new() };
            decl = within(&field.decl, step);
        }
        match &decl.shape {
            Shape::Object(object) => object.fields.keys().cloned().collect(),
            _ => Vec::new(),
        }
    }
}

/// The items of a list, or the entries of a map, where a step has an index.
fn within<'d>(decl: &'d DeclType, step: &str) -> &'d DeclType {
    let mut decl = decl;
    for _ in step.matches('[') {
        decl = match &decl.shape {
            Shape::List(items) => items,
            Shape::Map { value, .. } => value,
            _ => return decl,
        };
    }
    decl
}

/// The fields of what no schema declares.
fn fields_of<'t>(value: &Value, mut steps: impl Iterator<Item = &'t str>) -> Vec<String> {
    match steps.next() {
        Some(step) => value.get(step).map_or_else(Vec::new, |below| fields_of(below, steps)),
        None => value.as_object().into_iter().flat_map(|fields| fields.keys()).map(str::to_owned).collect(),
    }
}

/// The value at a path of an object, as errors name it: `spec.ports[0]`, `metadata.labels[a]`.
pub fn value_at<'v>(object: &'v Value, path: &str) -> Option<&'v Value> {
    let mut value = object;
    for step in path.split(['.', '[', ']']).filter(|step| !step.is_empty()) {
        value = match value.as_array() {
            Some(items) => items.get(step.parse::<usize>().ok()?)?,
            None => value.get(step)?,
        };
    }
    Some(value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::convert::to_structural;
    use crate::schema::json_schema;
    use crate::value::yaml;

    fn evaluator() -> Evaluator {
        let schema = yaml::decode(
            b"
type: object
properties:
  min: {type: integer}
  names: {type: array, maxItems: 4, items: {type: object, properties: {first: {type: string, maxLength: 8}}}}
",
        );
        let schema = json_schema::decode(&schema.expect("the test is YAML")).expect("and a schema").0;
        let schema = to_structural(&schema).expect("a structural one");
        let object = yaml::decode(b"{min: 2, names: [{first: ann}]}").expect("the test is YAML");
        Evaluator::new(vec![Variable::of_node("self", object, &schema, false)])
    }

    #[test]
    fn an_expression_has_a_type_a_value_a_cost_and_parts() {
        let found = evaluator().evaluate("self.names.all(n, n.first.size() > self.min)").expect("it compiles");
        assert_eq!((found.ty.as_str(), found.value.as_deref()), ("bool", Ok("true")));
        assert!(found.cost > 0 && found.cost_max.is_some_and(|max| max >= found.cost), "{}", found.cost);
        let parts: Vec<String> = found.parts.iter().map(|part| format!("{} = {}", part.text, part.value)).collect();
        assert_eq!(parts, ["self.names = [{\"first\": \"ann\"}]"]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let fault = evaluator().evaluate("self.mni + 1").err().unwrap_or_default();
        assert!(fault.contains("undefined field 'mni'"), "{fault}");
        let found = evaluator().evaluate("1 / (self.min - 2)").expect("it compiles");
        assert_eq!(found.value, Err("division by zero".to_owned()));
    }

    #[test]
    fn variables_by_hand_need_no_schema() {
        let value = yaml::decode(b"{a: [1, 2]}").expect("the test is YAML");
        let by_hand = Evaluator::new(vec![Variable::untyped("x", value)]);
        let found = by_hand.evaluate("x.a.map(i, i * 2)").expect("it compiles");
        assert_eq!((found.value.as_deref(), found.cost_max), (Ok("[2, 4]"), None));
        assert_eq!(by_hand.complete("x.").1.first().map(String::as_str), Some("a"));
    }

    #[test]
    fn names_are_completed() {
        let evaluator = evaluator();
        assert_eq!(evaluator.complete("1 < sel"), (4, vec!["self".to_owned()]));
        assert_eq!(evaluator.complete("self.mi").1, ["min"]);
        assert_eq!(evaluator.complete("self.names[0].fir").1, ["first"]);
    }
}
