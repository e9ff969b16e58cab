//! One expression of a policy.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/cel/compile.go`, release 1.37.

use crate::cel::checker::CheckedExpr;
use crate::cel::env::Env;
use crate::cel::error::Issues;
use crate::cel::eval::Program;
use crate::cel::types::Type;
use crate::meta::field::{Error, ErrorSubject, ExpressionFault, Path};

/// A compiled expression. Its errors are reported when it is evaluated.
#[derive(Debug)]
pub struct Expression {
    /// The expression.
    pub text: String,
    /// The program, or an error if it does not compile.
    pub program: Result<Program, CompileError>,
}

/// Why an expression is not valid in a policy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CompileError {
    /// The environment does not accept it.
    #[error("{why}")]
    Unchecked {
        /// The message.
        why: String,
        /// The individual errors.
        faults: Vec<ExpressionFault>,
    },
    /// Another error of the author.
    #[error("{0}")]
    Invalid(String),
    /// An internal error of the reference.
    #[error("{0}")]
    Internal(String),
}

impl CompileError {
    /// The message for the status of the policy, and for requests that it decides on.
    pub fn text(&self) -> &str {
        match self {
            CompileError::Unchecked { why: text, .. } | CompileError::Invalid(text) | CompileError::Internal(text) => {
                text
            }
        }
    }

    /// The error for the field at `path`, which contains `text`.
    pub fn into_field_error(self, path: &Path<'_>, text: &str) -> Error {
        match self {
            CompileError::Unchecked { why, faults } => {
                Error::invalid(path, text, why).about(ErrorSubject::Expression(faults))
            }
            CompileError::Invalid(why) => Error::invalid(path, text, why),
            CompileError::Internal(why) => Error::internal(path, why),
        }
    }
}

impl From<Issues> for CompileError {
    fn from(issues: Issues) -> Self {
        CompileError::Unchecked { why: format!("compilation failed: {issues}"), faults: issues.faults() }
    }
}

impl Expression {
    /// About how much memory it takes, in bytes.
    pub fn bytes(&self) -> usize {
        let compiled = match &self.program {
            Ok(program) => program.bytes(),
            Err(error) => error.text().len(),
        };
        self.text.len() + compiled
    }

    /// Compiles an expression in `env` whose result must have one of the `wanted` types.
    pub fn new(text: &str, env: &Env, wanted: &[Type]) -> Self {
        Expression { text: text.to_owned(), program: compile(env, text, wanted).map(|(program, _)| program) }
    }
}

/// Compiles an expression, whose result must have one of the `wanted` types, if any are given. Returns its program and
/// its type.
///
/// # Errors
/// The error that Kubernetes reports for it.
pub fn compile(env: &Env, text: &str, wanted: &[Type]) -> Result<(Program, Type), CompileError> {
    let checked = env.compile(text)?;
    let found = checked.result_type();
    if !wanted.is_empty() && !wanted.contains(found) {
        let names: Vec<String> = wanted.iter().map(Type::go_name).collect();
        let found = found.go_name();
        let why = match names.as_slice() {
            [only] => format!("must evaluate to {only} but got {found}"),
            several => format!("must evaluate to one of [{}] but got {found}", several.join(" ")),
        };
        return Err(CompileError::Invalid(why));
    }
    Ok((instantiate(&checked, env)?, found.clone()))
}

/// Makes the program of an expression that has been checked in `env`.
///
/// # Errors
/// A constant in it cannot be evaluated.
pub(super) fn instantiate(checked: &CheckedExpr, env: &Env) -> Result<Program, CompileError> {
    Program::new(checked, env).map_err(|error| CompileError::Internal(format!("program instantiation failed: {error}")))
}
