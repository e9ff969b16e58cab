//! A ValidatingAdmissionPolicy: its decision about a request.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/validating/{plugin,validator}.go`, release 1.37.

use super::conditions::ConditionsError;
use super::evaluation::{Activation, BUDGET, EvaluationError, OUT_OF_BUDGET, OutOfBudget, PolicyInput};
use super::expression::Expression;
use super::{Head, Policy};
use crate::cel::env::Expressions;
use crate::cel::eval::Value as Cel;
use crate::cel::types::Type;
use crate::meta::minor::Minor;
use crate::value::Value;

/// The maximum length of an expression's message, in bytes.
const MESSAGE_BYTES_MAX: usize = 5 * 1024;
/// The reason of a refusal unless a validation has its own.
pub(super) const INVALID: &str = "Invalid";

/// A compiled policy.
#[derive(Debug)]
pub struct Validating {
    /// The part that all policies have.
    pub head: Head,
    validations: Vec<PolicyValidation>,
    annotations: Vec<Annotation>,
}

#[derive(Debug)]
struct PolicyValidation {
    expression: Expression,
    message: String,
    message_expression: Option<Expression>,
    reason: String,
}

#[derive(Debug)]
struct Annotation {
    key: String,
    value: Expression,
}

/// The verdict of a policy on a request, with one parameter.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyVerdict {
    /// One decision per validation, in order; or a single one about why they were not evaluated.
    pub decisions: Vec<ValidationDecision>,
    /// Audit annotations that the policy adds.
    pub annotations: Vec<Annotated>,
}

/// The decision of one validation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ValidationDecision {
    /// The validation is true.
    Admitted,
    /// The validation is false.
    Denied {
        /// The message.
        message: String,
        /// The reason: `Invalid` unless the validation has its own.
        reason: String,
    },
    /// It failed. The failure policy decides whether that refuses the request.
    Failed {
        /// The message.
        message: String,
        /// Whether the failure policy refuses the request because of it.
        denies: bool,
    },
}

/// The result of one audit annotation; there is none if its value is null or blank, or its failure is ignored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Annotated {
    /// An annotation of the audit event.
    Value {
        /// The key, which follows the policy's name.
        key: String,
        /// Its text.
        value: String,
    },
    /// The expression failed.
    Failed {
        /// The message.
        message: String,
    },
}

/// The results of a policy's expressions other than its validations.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Beside {
    /// By validation: whether its expression made the message of the refusal; an error if it failed.
    pub messages: Vec<(usize, Result<bool, EvaluationError>)>,
    /// Whether each audit annotation has a value; an error if its expression failed.
    pub annotations: Vec<Result<bool, EvaluationError>>,
    /// The variables that were used, by index, and whether each had a value.
    pub variables: Vec<(usize, bool)>,
}

impl Policy for Validating {
    const POLICIES: &'static str = "validatingadmissionpolicies";
    const BINDINGS: &'static str = "validatingadmissionpolicybindings";

    fn decode(policy: &Value, minor: Minor) -> Self {
        let head = Head::decode(policy, minor);
        let env = head.environment();
        let message_env = head.declared.without_authorizer().environment(Expressions::Stored);
        let text = |value: &Value, name: &str| value.str_at(&[name]).to_owned();
        let validation = |validation: &Value| PolicyValidation {
            expression: Expression::new(&text(validation, "expression"), &env, &[Type::Bool]),
            message: text(validation, "message"),
            message_expression: Some(text(validation, "messageExpression"))
                .filter(|text| !text.is_empty())
                .map(|text| Expression::new(&text, &message_env, &[Type::String])),
            reason: Some(text(validation, "reason"))
                .filter(|text| !text.is_empty())
                .unwrap_or_else(|| INVALID.to_owned()),
        };
        let annotation = |annotation: &Value| Annotation {
            key: text(annotation, "key"),
            value: Expression::new(&text(annotation, "valueExpression"), &env, &[Type::String, Type::Null]),
        };
        Validating {
            validations: policy.items_at(&["spec", "validations"]).iter().map(validation).collect(),
            annotations: policy.items_at(&["spec", "auditAnnotations"]).iter().map(annotation).collect(),
            head,
        }
    }

    fn head(&self) -> &Head {
        &self.head
    }

    fn expression_bytes(&self) -> usize {
        let validations = self
            .validations
            .iter()
            .flat_map(|validation| [Some(&validation.expression), validation.message_expression.as_ref()]);
        let annotations = self.annotations.iter().map(|annotation| Some(&annotation.value));
        let own: usize = validations.chain(annotations).flatten().map(Expression::bytes).sum();
        self.head.expression_bytes() + own
    }
}

impl Validating {
    /// The number of validations.
    pub fn validations_count(&self) -> usize {
        self.validations.len()
    }

    /// Evaluates the policy for a request, with one parameter or none.
    pub fn evaluate(&self, input: &PolicyInput<'_>) -> PolicyVerdict {
        self.evaluate_after(self.head.match_conditions(input).hold, input)
    }

    /// Does the same, given the result of its match conditions.
    pub fn evaluate_after(&self, conditions: Result<bool, ConditionsError>, input: &PolicyInput<'_>) -> PolicyVerdict {
        match conditions {
            Ok(true) => {}
            Ok(false) => return PolicyVerdict::default(),
            Err(error) => return self.failed(error.to_string()),
        }
        let mut activation = self.head.activation(input, BUDGET);
        let outcomes: Result<Vec<_>, OutOfBudget> =
            self.validations.iter().map(|validation| activation.evaluate(&validation.expression)).collect();
        let Ok(outcomes) = outcomes else { return self.failed(OUT_OF_BUDGET.to_owned()) };
        let unauthorized = PolicyInput { authorizer: None, ..input.clone() };
        let messages = self.messages(&mut self.head.activation(&unauthorized, activation.left()));
        let decide =
            |(at, (validation, outcome)): (usize, (&PolicyValidation, Result<Cel<'_>, EvaluationError>))| match (
                outcome, &messages,
            ) {
                (Err(error), _) => self.failure(error.to_string()),
                (Ok(_), Err(OutOfBudget)) => self.failure(format!("failed messageExpression: {OUT_OF_BUDGET}")),
                (Ok(Cel::Bool(true)), Ok(_)) => ValidationDecision::Admitted,
                (Ok(_), Ok(messages)) => ValidationDecision::Denied {
                    message: validation.message(messages.get(at).and_then(Option::as_ref)),
                    reason: validation.reason.clone(),
                },
            };
        let decisions = self.validations.iter().zip(outcomes).enumerate().map(decide).collect();
        match self.annotate(&mut self.head.activation(&unauthorized, BUDGET)) {
            Ok(annotations) => PolicyVerdict { decisions, annotations },
            Err(OutOfBudget) => self.failed(OUT_OF_BUDGET.to_owned()),
        }
    }

    /// Evaluates the message expressions; those that fail have no message.
    fn messages<'a>(&'a self, activation: &mut Activation<'a>) -> Result<Vec<Option<Cel<'a>>>, OutOfBudget> {
        let message = |validation: &'a PolicyValidation| match &validation.message_expression {
            None => Ok(None),
            Some(expression) => activation.evaluate(expression).map(Result::ok),
        };
        self.validations.iter().map(message).collect()
    }

    fn annotate<'a>(&'a self, activation: &mut Activation<'a>) -> Result<Vec<Annotated>, OutOfBudget> {
        let mut annotated = Vec::new();
        for Annotation { key, value } in &self.annotations {
            match activation.evaluate(value)? {
                Ok(Cel::String(text)) if !text.trim().is_empty() => {
                    annotated.push(Annotated::Value { key: key.clone(), value: text.trim().to_owned() });
                }
                Ok(_) => {}
                Err(_) if self.head.ignores_failures => {}
                Err(error) => annotated.push(Annotated::Failed { message: error.to_string() }),
            }
        }
        Ok(annotated)
    }

    /// Evaluates the other expressions for a request that the policy applies to, for tools that debug policies.
    /// Messages are evaluated for validations that are false.
    pub fn beside(&self, input: &PolicyInput<'_>) -> Beside {
        let mut beside = Beside::default();
        let mut activation = self.head.activation(input, BUDGET);
        let mut refused = Vec::new();
        for (at, validation) in self.validations.iter().enumerate() {
            let Ok(outcome) = activation.evaluate(&validation.expression) else { break };
            if let (Ok(Cel::Bool(false)), Some(expression)) = (outcome, &validation.message_expression) {
                refused.push((at, expression));
            }
        }
        beside.variables.extend(activation.read());
        let unauthorized = PolicyInput { authorizer: None, ..input.clone() };
        let mut activation = self.head.activation(&unauthorized, activation.left());
        for (at, expression) in refused {
            let Ok(outcome) = activation.evaluate(expression) else { break };
            beside.messages.push((at, outcome.map(|value| fit_message(&value).is_some())));
        }
        beside.variables.extend(activation.read());
        let mut activation = self.head.activation(&unauthorized, BUDGET);
        for annotation in &self.annotations {
            let Ok(outcome) = activation.evaluate(&annotation.value) else { break };
            let has_value = |value: Cel<'_>| value.as_str().is_some_and(|text| !text.trim().is_empty());
            beside.annotations.push(outcome.map(has_value));
        }
        beside.variables.extend(activation.read());
        beside
    }

    fn failure(&self, message: String) -> ValidationDecision {
        ValidationDecision::Failed { message, denies: !self.head.ignores_failures }
    }

    fn failed(&self, message: String) -> PolicyVerdict {
        PolicyVerdict { decisions: vec![self.failure(message)], annotations: Vec::new() }
    }
}

impl PolicyValidation {
    /// The message of a refusal: that of the message expression, unless it is blank, too long or has several lines.
    fn message(&self, computed: Option<&Cel<'_>>) -> String {
        match (computed.and_then(fit_message), self.message.trim()) {
            (Some(message), _) => message,
            (None, "") => format!("failed expression: {}", self.expression.text.trim()),
            (None, message) => message.to_owned(),
        }
    }
}

/// The result of a message expression, unless it is blank, too long or has several lines.
fn fit_message(computed: &Cel<'_>) -> Option<String> {
    let text = computed.as_str()?.trim();
    let is_fit = !text.is_empty() && text.len() <= MESSAGE_BYTES_MAX && !text.contains('\n');
    is_fit.then(|| text.to_owned())
}
