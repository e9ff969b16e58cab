//! What cases have tried of policies: their match conditions, variables, validations with their messages, audit annotations and
//! mutations.

use std::collections::BTreeMap;

use super::{Note, Policies, PolicyExpression, PolicyOutcome};
use crate::author::PartValue;

/// What cases have tried.
#[derive(Default)]
pub struct Coverage {
    /// By the kind and the name of the policy.
    policies: BTreeMap<(&'static str, String), BTreeMap<PolicyExpression, Tried>>,
    /// Whether it is kept what the parts of expressions come to.
    is_tracing: bool,
}

/// How often what came of an expression.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Tried {
    /// The expression.
    pub text: String,
    /// How often it was true, changed the object, made a text, or had a value.
    pub held: u64,
    /// How often it was false, changed nothing, or made no text that is used.
    pub failed: u64,
    /// How often it ended in an error.
    pub broke: u64,
    /// What its parts came to when it first did not hold, or else when it first did; of a coverage that traces.
    pub parts: Vec<PartValue>,
}

impl Tried {
    /// Whether it has come to both; of others than decisions, whether it has done what it is for.
    pub fn is_covered(&self, place: PolicyExpression) -> bool {
        self.gaps(place).is_empty()
    }

    /// What no case has tried.
    pub fn gaps(&self, place: PolicyExpression) -> Vec<&'static str> {
        let is_never = self.held + self.failed + self.broke == 0;
        match place {
            _ if is_never => vec!["never evaluated"],
            PolicyExpression::Mutation(_) if self.held == 0 => vec!["never changed anything"],
            PolicyExpression::Variable(_) if self.held == 0 => vec!["never had a value"],
            PolicyExpression::Message(_) if self.held == 0 => vec!["never made a message"],
            PolicyExpression::Annotation(_) if self.held == 0 => vec!["never made a value"],
            PolicyExpression::Mutation(_)
            | PolicyExpression::Variable(_)
            | PolicyExpression::Message(_)
            | PolicyExpression::Annotation(_) => Vec::new(),
            PolicyExpression::Condition(_) | PolicyExpression::Validation(_) => {
                let [never_held, never_failed] = [self.held == 0, self.failed + self.broke == 0];
                let gaps = [(never_held, "never true"), (never_failed, "never false")];
                gaps.into_iter().filter(|(is_gap, _)| *is_gap).map(|(_, gap)| gap).collect()
            }
        }
    }
}

impl PolicyExpression {
    /// Whether the policy decides by it, or changes objects: what it decides about a request follows from these.
    pub fn decides(self) -> bool {
        matches!(self, PolicyExpression::Condition(_) | PolicyExpression::Validation(_) | PolicyExpression::Mutation(_))
    }

    /// `validations[0]`.
    pub fn shown(self) -> String {
        match self {
            PolicyExpression::Condition(at) => format!("matchConditions[{at}]"),
            PolicyExpression::Variable(at) => format!("variables[{at}]"),
            PolicyExpression::Validation(at) => format!("validations[{at}]"),
            PolicyExpression::Message(at) => format!("validations[{at}].messageExpression"),
            PolicyExpression::Annotation(at) => format!("auditAnnotations[{at}]"),
            PolicyExpression::Mutation(at) => format!("mutations[{at}]"),
        }
    }
}

impl Coverage {
    /// Nothing yet; of the policies, it is kept what the parts of each expression come to.
    pub fn tracing(policies: &Policies) -> Self {
        let mut coverage = Coverage { is_tracing: true, ..Coverage::default() };
        coverage.expect(policies);
        coverage
    }

    /// All expressions of the policies, none of which has been tried yet.
    pub fn expect(&mut self, policies: &Policies) {
        for listed in policies.listed() {
            let tried = self.policies.entry((listed.kind, listed.name.clone())).or_default();
            for (place, text) in &listed.expressions {
                text.clone_into(&mut tried.entry(*place).or_default().text);
            }
        }
    }

    /// Takes in what came of an expression.
    pub fn note(&mut self, note: Note<'_>) {
        let (kind, name) = note.policy;
        let tried = self.policies.entry((kind, name.to_owned())).or_default().entry(note.place).or_default();
        let is_telling = tried.held + tried.failed + tried.broke == 0
            || (note.outcome != PolicyOutcome::Held && tried.failed + tried.broke == 0);
        if self.is_tracing && is_telling {
            tried.parts = note.parts(&tried.text);
        }
        match note.outcome {
            PolicyOutcome::Held => tried.held += 1,
            PolicyOutcome::Failed => tried.failed += 1,
            PolicyOutcome::Broke => tried.broke += 1,
        }
    }

    /// Adds what other cases have tried.
    pub fn merge(&mut self, other: Coverage) {
        for (policy, places) in other.policies {
            let known = self.policies.entry(policy).or_default();
            for (place, tried) in places {
                let sum = known.entry(place).or_default();
                if sum.text.is_empty() {
                    sum.text = tried.text;
                }
                sum.held += tried.held;
                sum.failed += tried.failed;
                sum.broke += tried.broke;
            }
        }
    }

    /// By the kinds and the names of policies.
    pub fn policies(&self) -> impl Iterator<Item = (&'static str, &str, &BTreeMap<PolicyExpression, Tried>)> {
        self.policies.iter().map(|((kind, name), places)| (*kind, name.as_str(), places))
    }
}
