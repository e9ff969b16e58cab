//! The common part of validating and mutating policies.

use super::conditions;
use super::environment::{self, Declarations};
use super::evaluation::{Activation, BUDGET, CONDITIONS_BUDGET, EvaluationError, PolicyInput, Variables};
use super::expression::{self, Expression};
use super::matching::Criteria;
use crate::cel::env::{Env, Expressions};
use crate::cel::types::Type;
use crate::meta::api_version::{group_of, group_version};
use crate::meta::minor::Minor;
use crate::schema::rules::trace::{PartValue, Trace};
use crate::value::Value;

/// The part of a policy that is the same for validating and mutating ones.
#[derive(Debug)]
pub struct Head {
    /// The name of the policy.
    pub name: String,
    /// Whether requests continue if the policy fails.
    pub ignores_failures: bool,
    /// The kind of its parameters.
    pub param_kind: Option<ParamKind>,
    /// The requests that it applies to.
    pub criteria: Criteria,
    /// The environment of its expressions.
    pub declared: Declarations,
    variables: Variables,
    conditions: Vec<Expression>,
}

/// The kind of a policy's parameters.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamKind {
    /// The apiVersion of the parameters.
    pub api_version: String,
    /// The kind of the parameters.
    pub kind: String,
}

/// The error that no resource is served for the kind of the parameters.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("failed to find resource referenced by paramKind: '{group}/{version}, Kind={kind}'")]
pub struct ParamKindError {
    group: String,
    version: String,
    kind: String,
}

impl ParamKind {
    /// The API group; empty for the core group.
    pub fn group(&self) -> &str {
        group_of(&self.api_version)
    }

    /// The version without its group.
    pub fn version(&self) -> &str {
        group_version(&self.api_version).1
    }

    /// The error that the kind is not served.
    pub fn not_found(&self) -> ParamKindError {
        let (group, version) = (self.group().to_owned(), self.version().to_owned());
        ParamKindError { group, version, kind: self.kind.clone() }
    }
}

impl Head {
    /// Decodes a policy that has been validated, for that version of Kubernetes.
    pub fn decode(policy: &Value, minor: Minor) -> Self {
        let spec = policy.get("spec").unwrap_or(&Value::Null);
        let param_kind = spec.get("paramKind").filter(|kind| !kind.is_null()).map(|kind| ParamKind {
            api_version: kind.str_at(&["apiVersion"]).to_owned(),
            kind: kind.str_at(&["kind"]).to_owned(),
        });
        let mut declared = Declarations {
            params: param_kind.as_ref().map(|_| Type::Dyn),
            variables: Some(environment::no_variables()),
            minor,
            ..Declarations::default()
        };
        let variables = decode_variables(spec, &mut declared);
        Head {
            name: policy.str_at(&["metadata", "name"]).to_owned(),
            ignores_failures: spec.str_at(&["failurePolicy"]) == "Ignore",
            param_kind,
            criteria: Criteria::decode(spec.get("matchConstraints").unwrap_or(&Value::Null)),
            conditions: conditions::decode(spec, &declared.environment(Expressions::Stored)),
            declared,
            variables,
        }
    }

    /// About how much memory its expressions take, in bytes.
    pub(super) fn expression_bytes(&self) -> usize {
        self.variables.expressions().chain(&self.conditions).map(Expression::bytes).sum()
    }

    /// The environment of the policy's expressions.
    pub fn environment(&self) -> Env {
        self.declared.environment(Expressions::Stored)
    }

    /// Makes an activation for a group of expressions and a request; together they may cost `budget`.
    pub fn activation<'a>(&'a self, input: &PolicyInput<'a>, budget: u64) -> Activation<'a> {
        Activation::new(input, &self.declared, Some(&self.variables), budget)
    }

    /// Evaluates whether the policy applies to a request. If that is unknown, the failure policy decides. Match
    /// conditions never see the namespace, and their `request.resource` is the one that the request named.
    pub fn match_conditions(&self, input: &PolicyInput<'_>) -> conditions::MatchResult {
        if self.conditions.is_empty() {
            return conditions::MatchResult { hold: Ok(true), errors: 0 };
        }
        let request = conditions::request(input.request);
        let input = PolicyInput { namespace: &Value::Null, request: &request, ..input.clone() };
        conditions::evaluate_all(&self.conditions, &mut self.activation(&input, CONDITIONS_BUDGET))
    }
}

impl Head {
    /// The result of each match condition by itself, for tools that debug conditions.
    pub fn condition_outcomes(&self, input: &PolicyInput<'_>) -> Vec<Result<bool, EvaluationError>> {
        let request = conditions::request(input.request);
        let input = PolicyInput { namespace: &Value::Null, request: &request, ..input.clone() };
        let mut activation = self.activation(&input, CONDITIONS_BUDGET);
        let mut outcomes = Vec::with_capacity(self.conditions.len());
        for condition in &self.conditions {
            let Ok(outcome) = activation.evaluate(condition) else { break };
            outcomes.push(outcome.map(|value| value.as_bool() == Some(true)));
        }
        outcomes
    }

    /// The values of the parts of one of the policy's expressions, for the same tools. `env` is that of the expression.
    pub fn parts(&self, text: &str, env: &Env, input: &PolicyInput<'_>) -> Vec<PartValue> {
        let Some(trace) = Trace::of_text(text, env) else { return Vec::new() };
        self.activation(input, BUDGET).parts(&trace)
    }
}

/// Decodes the variables and declares each for those after it.
fn decode_variables(spec: &Value, declared: &mut Declarations) -> Variables {
    let mut variables = Variables::default();
    for variable in spec.items_at(&["variables"]) {
        let (name, text) = (variable.str_at(&["name"]), variable.str_at(&["expression"]));
        let compiled = expression::compile(&declared.environment(Expressions::Stored), text, &[]);
        declared.add_variable(name, compiled.as_ref().ok().map(|(_, ty)| ty));
        let program = compiled.map(|(program, _)| program);
        variables.add(name, Expression { text: text.to_owned(), program });
    }
    variables
}
