//! The lints of policies, with their reasons.

use super::entry::{Lint, Severity};

pub(in crate::author) const POLICY_REFUSED: Lint = Lint {
    id: "policy-refused",
    severity: Severity::Error,
    finds: "The server does not take the policy or the binding.",
    reason: "what has a fault is not stored",
    remedy: "correct what the server says",
    is_fixed: false,
};

pub(in crate::author) const POLICY_TYPES: Lint = Lint {
    id: "policy-types",
    severity: Severity::Warning,
    finds: "An expression of a policy does not fit the schema of a kind that it matches.",
    reason: "it ends in an error for objects of that kind; a cluster says so of validations in `status.typeChecking`",
    remedy: "name fields that the kind has, or match other kinds",
    is_fixed: false,
};

pub(in crate::author) const VALIDATION_NEVER_FAILS: Lint = Lint {
    id: "validation-never-fails",
    severity: Severity::Warning,
    finds: "A validation holds for every object, by constants or by what the schemas of its kinds promise.",
    reason: "the validation checks nothing",
    remedy: "remove the validation, or correct it",
    is_fixed: true,
};

pub(in crate::author) const MATCH_NEVER: Lint = Lint {
    id: "match-never",
    severity: Severity::Warning,
    finds: "A rule, a selector or a match condition lets nothing pass.",
    reason: "the policy is never asked there",
    remedy: "name what is served, or leave the rule out",
    is_fixed: true,
};

pub(in crate::author) const BINDING_WITHOUT_POLICY: Lint = Lint {
    id: "binding-without-policy",
    severity: Severity::Warning,
    finds: "A binding names a policy that is not among the files.",
    reason: "a binding to nothing does nothing, and the server does not report it",
    remedy: "correct the name, or add the policy",
    is_fixed: false,
};

pub(in crate::author) const POLICY_WITHOUT_BINDING: Lint = Lint {
    id: "policy-without-binding",
    severity: Severity::Warning,
    finds: "No binding among the files uses the policy.",
    reason: "a policy without a binding does nothing",
    remedy: "add a binding",
    is_fixed: false,
};

pub(in crate::author) const BINDING_PARAMS: Lint = Lint {
    id: "binding-params",
    severity: Severity::Warning,
    finds: "A policy takes parameters and its binding names none, or the other way round.",
    reason: "`params` is null then, or the reference is left aside",
    remedy: "give both a paramKind and a paramRef, or neither",
    is_fixed: true,
};

pub(in crate::author) const VARIABLE_UNREAD: Lint = Lint {
    id: "variable-unread",
    severity: Severity::Warning,
    finds: "No expression reads a variable.",
    reason: "variables are only evaluated when they are read",
    remedy: "remove the variable",
    is_fixed: true,
};

pub(in crate::author) const CONDITION_ALWAYS: Lint = Lint {
    id: "condition-always-holds",
    severity: Severity::Warning,
    finds: "A match condition holds for every request.",
    reason: "the condition leaves nothing out",
    remedy: "remove the condition",
    is_fixed: true,
};
