//! Match conditions: expressions that must all be true for a webhook to be called, or a policy to be evaluated.
//!
//! Input: conditions, and a request as expressions see it. Output: the errors of a condition when it is written; later,
//! whether all conditions are true. The authorizer behind `authorizer` comes with the request.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/cel` and `plugin/webhook/matchconditions`, release 1.37.

use std::borrow::Cow;
use std::sync::LazyLock;

use thiserror::Error;

use super::environment::Declarations;
use super::evaluation::{Activation, EvaluationError, OUT_OF_BUDGET, OutOfBudget};
use super::expression::{self, CompileError, Expression};
use crate::cel::env::{Env, Expressions};
use crate::cel::types::Type;
use crate::meta::minor::Minor;
use crate::value::Value;
use crate::work;

static STORED: LazyLock<Env> =
    LazyLock::new(|| work::essential(|| Declarations::default().environment(Expressions::Stored)));

/// The error that this version of Kubernetes reports for a condition of a webhook.
pub fn fault(minor: Minor, text: &str, expressions: Expressions) -> Option<CompileError> {
    let env = Declarations { minor, ..Declarations::default() }.environment(expressions);
    expression::compile(&env, text, &[Type::Bool]).err()
}

/// Decodes the conditions of a webhook.
pub fn of_webhook(webhook: &Value) -> Vec<Expression> {
    decode(webhook, &STORED)
}

/// Decodes the conditions in `spec`, and compiles them in `env`.
pub fn decode(spec: &Value, env: &Env) -> Vec<Expression> {
    let conditions = spec.items_at(&["matchConditions"]).iter();
    conditions.map(|condition| Expression::new(condition.str_at(&["expression"]), env, &[Type::Bool])).collect()
}

/// Why it is unknown whether all match conditions are true.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum ConditionsError {
    /// They cost too much.
    #[error("{OUT_OF_BUDGET}")]
    OutOfBudget,
    /// The conditions that failed; each error occurs once.
    #[error("{}", listed(.0))]
    Failed(Vec<EvaluationError>),
}

/// Formats a single error as it is, and several as Go prints a list.
fn listed(errors: &[EvaluationError]) -> String {
    match errors {
        [only] => only.to_string(),
        several => format!("[{}]", several.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")),
    }
}

/// The result of match conditions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchResult {
    /// Whether all are true, or why that is unknown: all conditions that failed, or that they cost too much.
    pub hold: Result<bool, ConditionsError>,
    /// The number of conditions that failed before the first false one.
    pub errors: usize,
}

/// The AdmissionRequest as match conditions see it: `kind` is what the rules matched, as for other expressions, but
/// `resource` is what the request named.
pub fn request(request: &Value) -> Cow<'_, Value> {
    match (request.get("resource"), request.get("requestResource")) {
        (matched, Some(named)) if matched != Some(named) => {
            let (mut request, named) = (request.clone(), named.clone());
            request.make_object().insert("resource", named);
            Cow::Owned(request)
        }
        _ => Cow::Borrowed(request),
    }
}

/// Evaluates whether all of `conditions` are true. If one is false, the result is false, whatever the others are.
pub fn evaluate_all<'a>(conditions: &'a [Expression], activation: &mut Activation<'a>) -> MatchResult {
    let mut outcomes = Vec::with_capacity(conditions.len());
    for condition in conditions {
        match activation.evaluate(condition) {
            Ok(outcome) => outcomes.push(outcome.map(|value| value.as_bool() == Some(true))),
            Err(OutOfBudget) => return MatchResult { hold: Err(ConditionsError::OutOfBudget), errors: 0 },
        }
    }
    let before_false = outcomes.iter().take_while(|outcome| **outcome != Ok(false));
    let errors = before_false.filter(|outcome| outcome.is_err()).count();
    MatchResult { hold: joined(outcomes), errors }
}

fn joined(outcomes: Vec<Result<bool, EvaluationError>>) -> Result<bool, ConditionsError> {
    if outcomes.contains(&Ok(false)) {
        return Ok(false);
    }
    let mut errors: Vec<EvaluationError> = Vec::new();
    for error in outcomes.into_iter().filter_map(Result::err) {
        if !errors.contains(&error) {
            errors.push(error);
        }
    }
    if errors.is_empty() { Ok(true) } else { Err(ConditionsError::Failed(errors)) }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::cel::library::authorizer::{AuthorizerAnswer, AuthorizerCheck, CheckedResource, RuleAuthorizer};
    use crate::policy::evaluation::{CONDITIONS_BUDGET, PolicyInput};
    use crate::value::yaml;

    /// Allows Jane to read.
    #[derive(Debug)]
    struct OnlyReading(&'static str);

    impl RuleAuthorizer for OnlyReading {
        fn decide(&self, check: &AuthorizerCheck) -> AuthorizerAnswer {
            let (AuthorizerCheck::Path { verb, .. } | AuthorizerCheck::Resource { verb, .. }) = check;
            let reason = format!("{} asked", self.0);
            AuthorizerAnswer { allowed: verb == "get" && self.0 == "jane", reason, ..AuthorizerAnswer::default() }
        }

        fn service_account(&self, _: &str, _: &str) -> Arc<dyn RuleAuthorizer> {
            Arc::new(OnlyReading("account"))
        }
    }

    fn evaluate(expressions: &[&str]) -> Result<bool, String> {
        let read = |text: &str| yaml::decode(text.as_bytes()).expect("the test is YAML");
        let (object, request) = (
            read("{metadata: {name: a, labels: {team: x}}, spec: {count: 3, f: 1.5, list: [1, 2]}}"),
            read("{name: a, operation: CREATE, userInfo: {username: jane, groups: [dev]}, dryRun: false}"),
        );
        let input = PolicyInput {
            object: &object,
            old_object: &Value::Null,
            request: &request,
            namespace: &Value::Null,
            params: &Value::Null,
            authorizer: Some(Arc::new(OnlyReading("jane"))),
            request_resource: &CheckedResource { resource: "widgets".to_owned(), ..CheckedResource::default() },
        };
        let compile = |text: &&str| Expression::new(text, &STORED, &[Type::Bool]);
        let conditions: Vec<_> = expressions.iter().map(compile).collect();
        let mut activation = Activation::new(&input, &Declarations::default(), None, CONDITIONS_BUDGET);
        evaluate_all(&conditions, &mut activation).hold.map_err(|error| error.to_string())
    }

    #[track_caller]
    fn check(expression: &str, expected: Result<bool, &str>) {
        assert_eq!(evaluate(&[expression]), expected.map_err(str::to_owned), "{expression}");
    }

    #[test]
    fn conditions_see_the_request_and_its_objects() {
        check("object.metadata.labels.team == 'x' && object.spec.count + 1 == 4 && object.spec.f < 2.0", Ok(true));
        check("oldObject == null && namespaceObject == null", Ok(true));
        check("request.operation == 'CREATE' && 'dev' in request.userInfo.groups && !request.dryRun", Ok(true));
        check("has(request.namespace)", Ok(false));
        check("object.spec.list.all(x, x > 1)", Ok(false));
    }

    #[test]
    fn conditions_ask_what_somebody_may_do() {
        check("authorizer.group('g').resource('widgets').namespace('n').check('get').allowed()", Ok(true));
        check("authorizer.requestResource.check('delete').allowed()", Ok(false));
        check("authorizer.path('/healthz').check('get').reason() == 'jane asked'", Ok(true));
        check("authorizer.serviceAccount('n', 'a').path('/x').check('get').allowed()", Ok(false));
        check(
            "authorizer.serviceAccount('n', 'A').path('/x').check('get').errored()",
            Err(
                "expression 'authorizer.serviceAccount('n', 'A').path('/x').check('get').errored()' resulted in error: \
                 Invalid service account name",
            ),
        );
        let checks = vec!["authorizer.path('/x').check('get').allowed()"; 8];
        assert_eq!(
            evaluate(&checks),
            Err("validation failed due to running out of cost budget, no further validation rules will be run"
                .to_owned())
        );
    }

    #[test]
    fn what_is_false_decides_and_errors_are_told_together() {
        let missing = "object.metadata.missing == 'x'";
        assert_eq!(evaluate(&[missing, "false"]), Ok(false));
        let why = format!("expression '{missing}' resulted in error: no such key: missing");
        assert_eq!(evaluate(&[missing, "true", missing]), Err(why.clone()));
        let other = "object.other";
        let found = evaluate(&[missing, &format!("{other} == 1")]);
        assert_eq!(
            found,
            Err(format!("[{why}, expression 'object.other == 1' resulted in error: no such key: other]"))
        );
    }

    #[test]
    fn an_expression_must_compile_to_a_bool() {
        let check = |expression: &str, expected: &str| {
            let found = fault(Minor::NEWEST, expression, Expressions::New);
            assert_eq!(found.as_ref().map(CompileError::text), Some(expected));
        };
        check("request.name", "must evaluate to bool but got string");
        check(
            "request.object == null",
            "compilation failed: ERROR: <input>:1:8: undefined field 'object'\n | request.object == null\n | .......^",
        );
        check(
            "params.x",
            "compilation failed: ERROR: <input>:1:1: undeclared reference to 'params' (in container '')\n | params.x\n | ^",
        );
    }

    #[test]
    fn a_constant_without_a_value_is_an_error_inside() {
        let found = fault(Minor::NEWEST, "int('x') == 1", Expressions::New);
        let why = "program instantiation failed: type conversion error from 'string' to 'int'";
        assert_eq!(found, Some(CompileError::Internal(why.to_owned())));
    }
}
