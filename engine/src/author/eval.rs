//! An expression, evaluated for its author.
//!
//! Input: variables, each with a value and perhaps the node of a schema that declares it, and an expression. Output: what it comes
//! to, its type, what it costs, and the values of its parts; or what is wrong with it.

use thiserror::Error;

use crate::author::editor::names::{Name, names};
use crate::cel::ast::SourceInfo;
use crate::cel::cost::{self, model::CALL_LIMIT};
use crate::cel::declared::{DeclField, DeclType, ObjectType};
use crate::cel::env::{Env, Expressions};
use crate::cel::error::Issues;
use crate::cel::escape::escape;
use crate::cel::eval::host::HostForm;
use crate::cel::eval::show::literal;
use crate::cel::eval::{BoundValue, EvalError, Program, Value as Cel};
use crate::cel::types::Type;
use crate::cel::{checker, parser};
use crate::schema::declare::declare;
use crate::schema::form::form;
use crate::schema::rules::trace::{PartValue, Trace};
use crate::schema::structural::Structural;
use crate::value::Value;

/// What an expression may name.
pub struct EvalVariable {
    name: String,
    value: Value,
    declared: Option<Declared>,
}

/// What a schema says of a variable.
struct Declared {
    decl: DeclType,
    form: HostForm,
}

impl EvalVariable {
    /// A variable that no schema declares: an expression sees what its value has.
    pub fn untyped(name: &str, value: Value) -> EvalVariable {
        EvalVariable { name: name.to_owned(), value, declared: None }
    }

    /// A variable as a rule at a node of a schema sees it. What a schema leaves open is seen as in [`EvalVariable::untyped`].
    pub fn of_node(name: &str, value: Value, node: &Structural, is_resource: bool) -> EvalVariable {
        let declared = declare(node, is_resource);
        let declared = declared.map(|decl| Declared { decl: decl.named(name), form: form(node, is_resource) });
        EvalVariable { name: name.to_owned(), value, declared }
    }

    /// The type of what it holds, where nothing declares it.
    fn shown(&self) -> Type {
        self.declared
            .as_ref()
            .map_or_else(|| shown_type(&self.value).named(&self.name).ty, |declared| declared.decl.ty.clone())
    }

    fn ty(&self) -> Type {
        self.declared.as_ref().map_or(Type::Dyn, |declared| declared.decl.ty.clone())
    }

    fn binding(&self) -> BoundValue<'_> {
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
    pub value: Result<String, EvalError>,
    /// What this evaluation cost.
    pub cost: u64,
    /// The most that one evaluation may cost, whatever the values; only known where schemas declare the variables.
    pub cost_max: Option<u64>,
    /// What its parts came to.
    pub parts: Vec<PartValue>,
}

/// The errors of an expression, as a server tells it.
#[derive(Debug, Error)]
pub enum ExpressionError {
    /// It does not compile.
    #[error(transparent)]
    Compile(#[from] Issues),
    /// It can't be run.
    #[error(transparent)]
    Program(#[from] EvalError),
}

/// Expressions over the same variables.
pub struct Evaluator {
    env: Env,
    /// The same where what no schema declares has the types that its values show: completion goes by them.
    shown: Env,
    variables: Vec<EvalVariable>,
}

impl Evaluator {
    /// Of variables of the same name the last counts.
    pub fn new(mut variables: Vec<EvalVariable>) -> Evaluator {
        let mut seen = Vec::new();
        variables.reverse();
        variables.retain(|variable| {
            let is_new = !seen.contains(&variable.name);
            seen.push(variable.name.clone());
            is_new
        });
        let env_of = |ty: fn(&EvalVariable) -> Type| {
            let env = Env::kubernetes(Expressions::Stored);
            variables.iter().fold(env, |env, variable| env.with_variable(&variable.name, ty(variable)))
        };
        Evaluator { env: env_of(EvalVariable::ty), shown: env_of(EvalVariable::shown), variables }
    }

    /// Evaluates `text`.
    ///
    /// # Errors
    /// It does not compile, or can't be run.
    pub fn evaluate(&self, text: &str) -> Result<Evaluated, ExpressionError> {
        let ast = parser::parse_keeping_macros(SourceInfo::new(text), &self.env.library);
        let checked = ast.and_then(|ast| checker::check(ast, &self.env))?;
        let program = Program::new(&checked, &self.env)?;
        let bindings: Vec<BoundValue<'_>> = self.variables.iter().map(EvalVariable::binding).collect();
        let evaluation = program.evaluate(&bindings, CALL_LIMIT);
        let parts = Trace::of(&checked, &self.env).values(&bindings).into_iter().skip(1);
        // All variables count as declared alike: where they are not, there is no estimate.
        let root = self.variables.first().and_then(|variable| variable.declared.as_ref());
        let is_alike = |variable: &EvalVariable| {
            variable.declared.is_some() && ["self", "oldSelf"].contains(&variable.name.as_str())
        };
        let root = root.filter(|_| self.variables.iter().all(is_alike));
        Ok(Evaluated {
            ty: checked.result_type().to_string(),
            value: evaluation.result.map(|value| literal(&value)),
            cost: evaluation.cost,
            cost_max: root.map(|root| cost::estimate(&checked, &root.decl).max),
            parts: parts.collect(),
        })
    }

    /// What may be written where `text` ends: the byte where the last word begins, and what goes on from there, as in an editor.
    pub fn complete(&self, text: &str) -> (usize, Vec<Name>) {
        let signs: Vec<char> = text.chars().collect();
        let Some((written, mut offered)) = names(&signs, &self.shown) else { return (text.len(), Vec::new()) };
        let word: String = signs[written].iter().collect();
        offered.retain(|name| name.label.starts_with(&word));
        (text.len() - word.len(), offered)
    }
}

/// The type that a value shows, for what no schema declares.
fn shown_type(value: &Value) -> DeclType {
    let scalar = |ty| DeclType::scalar(ty, 0, 0);
    match value {
        Value::Null => scalar(Type::Dyn),
        Value::Bool(_) => scalar(Type::Bool),
        Value::Int(_) => scalar(Type::Int),
        Value::Float(_) => scalar(Type::Double),
        Value::String(_) => scalar(Type::String),
        Value::Array(items) => DeclType::list(items.first().map_or_else(|| scalar(Type::Dyn), shown_type), 0),
        Value::Object(fields) => {
            let fields = fields.iter().filter_map(|(name, value)| {
                Some((escape(name)?.into_owned(), DeclField { decl: shown_type(value), required: false }))
            });
            DeclType::object(ObjectType { fields: fields.collect(), ..ObjectType::new("object") }, 0)
        }
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
        Evaluator::new(vec![EvalVariable::of_node("self", object, &schema, false)])
    }

    #[test]
    fn an_expression_has_a_type_a_value_a_cost_and_parts() {
        let found = evaluator().evaluate("self.names.all(n, n.first.size() > self.min)").expect("it compiles");
        assert_eq!((found.ty.as_str(), found.value), ("bool", Ok("true".to_owned())));
        assert!(found.cost > 0 && found.cost_max.is_some_and(|max| max >= found.cost), "{}", found.cost);
        let parts: Vec<String> = found.parts.iter().map(|part| format!("{} = {}", part.text, part.value)).collect();
        assert_eq!(parts, ["self.names = [{\"first\": \"ann\"}]"]);
    }

    #[test]
    fn what_is_wrong_is_told() {
        let fault = evaluator().evaluate("self.mni + 1").err().map(|error| error.to_string()).unwrap_or_default();
        assert!(fault.contains("undefined field 'mni'"), "{fault}");
        let found = evaluator().evaluate("1 / (self.min - 2)").expect("it compiles");
        assert_eq!(found.value.map_err(|error| error.to_string()), Err("division by zero".to_owned()));
    }

    #[test]
    fn variables_by_hand_need_no_schema() {
        let value = yaml::decode(b"{a: [1, 2]}").expect("the test is YAML");
        let by_hand = Evaluator::new(vec![EvalVariable::untyped("x", value)]);
        let found = by_hand.evaluate("x.a.map(i, i * 2)").expect("it compiles");
        assert_eq!((found.value.as_deref(), found.cost_max), (Ok("[2, 4]"), None));
        assert_eq!(by_hand.complete("x.").1.first().map(|name| name.label.as_str()), Some("a"));
        assert_eq!(by_hand.complete("x.a.exi").1.len(), 3, "macros of lists, as `a` is one");
    }

    #[test]
    fn names_are_completed() {
        let evaluator = evaluator();
        let check = |text: &str, start: usize, expected: &[&str]| {
            let (found, names) = evaluator.complete(text);
            assert_eq!(
                (found, names.iter().map(|name| name.with.as_str()).collect::<Vec<_>>()),
                (start, expected.to_vec())
            );
        };
        check("1 < sel", 4, &["self"]);
        check("self.mi", 5, &["min"]);
        check("self.names[0].fir", 14, &["first"]);
        check("self.names.all(n, n.fir", 20, &["first"]);
        check("self.names.all(n, n.first.startsW", 26, &["startsWith("]);
        check("self.min == 'se", 15, &[]);
    }
}
