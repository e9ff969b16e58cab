//! Semantic versions: `semver(…)`, `isSemver(…)`, their order and their parts.

use std::cmp::Ordering;

use super::arguments::{boolean, opaque, text};
use super::network::downcast;
use super::since;
use crate::cel::cost::Cost;
use crate::cel::cost::formula::PARSE;
use crate::cel::eval::value::{KeyKind, Opaque};
use crate::cel::eval::{EvalError, Value};
use crate::cel::function::{Function, Overload};
use crate::cel::types::Type::{self, Bool, Int};
use crate::meta::semver::{Semver, SemverError};

pub(super) fn functions() -> Vec<Function> {
    let versions = || [semver_type(), semver_type()];
    let functions = vec![
        Function::new(
            "compareTo",
            [Overload::member("semver_compare_to", versions(), Int, Cost::One, |_, arguments| {
                Ok(Value::Int(order(arguments)? as i64))
            })],
        ),
        Function::new(
            "isGreaterThan",
            [Overload::member("semver_is_greater_than", versions(), Bool, Cost::One, |_, arguments| {
                Ok(Value::Bool(order(arguments)?.is_gt()))
            })],
        ),
        Function::new(
            "isLessThan",
            [Overload::member("semver_is_less_than", versions(), Bool, Cost::One, |_, arguments| {
                Ok(Value::Bool(order(arguments)?.is_lt()))
            })],
        ),
        Function::new(
            "isSemver",
            [
                Overload::global("is_semver_string", [Type::String], Bool, PARSE, |_, arguments| {
                    Ok(Value::Bool(Semver::parse(text(arguments, 0)?).is_ok()))
                }),
                Overload::global("is_semver_string_bool", [Type::String, Bool], Bool, PARSE, |_, arguments| {
                    Ok(Value::Bool(parse(arguments)?.is_ok()))
                }),
            ],
        ),
        // Numbers of more than 63 bits become negative.
        Function::new(
            "major",
            [Overload::member("semver_major", [semver_type()], Int, Cost::One, |_, arguments| {
                Ok(Value::Int(version(arguments, 0)?.major as i64))
            })],
        ),
        Function::new(
            "minor",
            [Overload::member("semver_minor", [semver_type()], Int, Cost::One, |_, arguments| {
                Ok(Value::Int(version(arguments, 0)?.minor as i64))
            })],
        ),
        Function::new(
            "patch",
            [Overload::member("semver_patch", [semver_type()], Int, Cost::One, |_, arguments| {
                Ok(Value::Int(version(arguments, 0)?.patch as i64))
            })],
        ),
        Function::new(
            "semver",
            [
                Overload::global("string_to_semver", [Type::String], semver_type(), PARSE, |_, arguments| {
                    new(Semver::parse(text(arguments, 0)?))
                }),
                Overload::global(
                    "string_bool_to_semver",
                    [Type::String, Bool],
                    semver_type(),
                    PARSE,
                    |_, arguments| new(parse(arguments)?),
                ),
            ],
        ),
    ];
    since(33, functions)
}

fn semver_type() -> Type {
    Type::object("kubernetes.Semver")
}

/// `kubernetes.Semver`
#[derive(Debug)]
struct SemverValue(Semver);

impl Opaque for SemverValue {
    fn ty(&self) -> Type {
        semver_type()
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let SemverValue(other) = downcast(other)?;
        Some(self.0 == *other)
    }

    fn go_type(&self) -> &'static str {
        "cel.Semver"
    }

    fn native(&self) -> (&'static str, String) {
        ("semver.Version", self.0.go_syntax())
    }

    fn shown(&self) -> String {
        self.0.to_string()
    }

    fn as_key(&self) -> KeyKind {
        KeyKind::Unhashable
    }
}

/// Parses the first argument, tolerantly if the second one is true.
fn parse(arguments: &[Value<'_>]) -> Result<Result<Semver, SemverError>, EvalError> {
    let (text, tolerant) = (text(arguments, 0)?, boolean(arguments, 1)?);
    Ok(if tolerant { Semver::parse_tolerant(text) } else { Semver::parse(text) })
}

fn new<'a>(parsed: Result<Semver, SemverError>) -> Result<Value<'a>, EvalError> {
    parsed.map(|version| Value::opaque(SemverValue(version))).map_err(|error| EvalError::new(error.to_string()))
}

fn version<'v>(arguments: &'v [Value<'_>], at: usize) -> Result<&'v Semver, EvalError> {
    opaque::<SemverValue>(arguments, at).map(|SemverValue(version)| version)
}

fn order(arguments: &[Value<'_>]) -> Result<Ordering, EvalError> {
    Ok(version(arguments, 0)?.cmp(version(arguments, 1)?))
}
