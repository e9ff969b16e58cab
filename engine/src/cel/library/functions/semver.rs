//! Semantic versions: `semver(…)`, `isSemver(…)`, their order and parts.

use std::cmp::Ordering;

use super::arguments::{boolean, opaque, text};
use super::network::downcast;
use crate::cel::eval::value::{KeyKind, Opaque};
use crate::cel::eval::{EvalError, Function, Value};
use crate::cel::types::Type;
use crate::meta::semver::Semver;

pub fn implementation(id: &str) -> Option<Function> {
    Some(match id {
        "string_to_semver" => |_, arguments| new(Semver::parse(text(arguments, 0)?)),
        "string_bool_to_semver" => |_, arguments| new(parse(arguments)?),
        "is_semver_string" => |_, arguments| Ok(Value::Bool(Semver::parse(text(arguments, 0)?).is_ok())),
        "is_semver_string_bool" => |_, arguments| Ok(Value::Bool(parse(arguments)?.is_ok())),
        "semver_is_greater_than" => |_, arguments| Ok(Value::Bool(order(arguments)?.is_gt())),
        "semver_is_less_than" => |_, arguments| Ok(Value::Bool(order(arguments)?.is_lt())),
        "semver_compare_to" => |_, arguments| Ok(Value::Int(order(arguments)? as i64)),
        // Numbers beyond 63 bits turn negative.
        "semver_major" => |_, arguments| Ok(Value::Int(version(arguments, 0)?.major as i64)),
        "semver_minor" => |_, arguments| Ok(Value::Int(version(arguments, 0)?.minor as i64)),
        "semver_patch" => |_, arguments| Ok(Value::Int(version(arguments, 0)?.patch as i64)),
        _ => return None,
    })
}

/// `kubernetes.Semver`
#[derive(Debug)]
struct SemverValue(Semver);

impl Opaque for SemverValue {
    fn ty(&self) -> Type {
        Type::object("kubernetes.Semver")
    }

    fn equals(&self, other: &dyn Opaque) -> Option<bool> {
        let SemverValue(other) = downcast(other)?;
        Some(self.0 == *other)
    }

    fn go_type(&self) -> &'static str {
        "cel.Semver"
    }

    fn shown(&self) -> String {
        self.0.to_string()
    }

    fn as_key(&self) -> KeyKind {
        KeyKind::Unhashable
    }
}

/// Reads the first argument, tolerantly if the second one says so.
fn parse(arguments: &[Value<'_>]) -> Result<Result<Semver, String>, EvalError> {
    let (text, tolerant) = (text(arguments, 0)?, boolean(arguments, 1)?);
    Ok(if tolerant { Semver::parse_tolerant(text) } else { Semver::parse(text) })
}

fn new<'a>(parsed: Result<Semver, String>) -> Result<Value<'a>, EvalError> {
    parsed.map(|version| Value::opaque(SemverValue(version))).map_err(EvalError::new)
}

fn version<'v>(arguments: &'v [Value<'_>], at: usize) -> Result<&'v Semver, EvalError> {
    opaque::<SemverValue>(arguments, at).map(|SemverValue(version)| version)
}

fn order(arguments: &[Value<'_>]) -> Result<Ordering, EvalError> {
    Ok(version(arguments, 0)?.cmp(version(arguments, 1)?))
}
