//! Checks the format of `'…'.format([…])` against its arguments, if both are literals.

use thiserror::Error;

use super::CheckedExpr;
use crate::cel::ast::{Call, Constant, Expr, ExprId, ExprKind};
use crate::cel::types::Type;

/// The error of a call, and the part that it is about.
pub(super) struct FormatCallError {
    pub at: ExprId,
    pub message: String,
}

/// The error of the call `id` of `format`; `None` if there is no error, or it is another call.
pub(super) fn fault(checked: &CheckedExpr, id: ExprId, call: &Call) -> Option<FormatCallError> {
    let Some(Expr { kind: ExprKind::Constant(Constant::String(format)), .. }) = &call.target else { return None };
    let [Expr { kind: ExprKind::List(list), .. }] = call.args.as_slice() else { return None };
    if call.function != "format" {
        return None;
    }
    match clauses(checked, format.as_bytes(), &list.elements) {
        Err(Wrong::Clause(message)) => Some(FormatCallError { at: id, message }),
        Err(Wrong::Argument(at, message)) => {
            Some(FormatCallError { at, message: format!("error during formatting: {message}") })
        }
        Ok(used) if list.elements.len() > used => {
            let given = list.elements.len();
            let message = format!("too many arguments supplied to string.format (expected {used}, got {given})");
            Some(FormatCallError { at: id, message })
        }
        Ok(_) => None,
    }
}

enum Wrong {
    Clause(String),
    Argument(ExprId, String),
}

/// Parses all clauses; returns their number.
fn clauses(checked: &CheckedExpr, format: &[u8], args: &[Expr]) -> Result<usize, Wrong> {
    let mut used = 0;
    let mut rest = format;
    while let Some(at) = rest.iter().position(|byte| *byte == b'%') {
        rest = &rest[at + 1..];
        if let [b'%', after @ ..] = rest {
            rest = after;
            continue;
        }
        if rest.is_empty() {
            return Err(Wrong::Clause("unexpected end of string".to_owned()));
        }
        let Some(arg) = args.get(used) else {
            return Err(Wrong::Clause(format!("index {used} out of range")));
        };
        let could_not = |why: String| Wrong::Clause(format!("could not parse formatting clause: {why}"));
        rest = precision(rest).map_err(|error| could_not(format!("error while parsing precision: {error}")))?;
        let Some((clause, after)) = rest.split_first() else {
            return Err(could_not("unexpected end of string".to_owned()));
        };
        match *clause {
            b's' => string(checked, arg)?,
            clause @ (b'd' | b'f' | b'e' | b'b' | b'x' | b'X' | b'o') => number(checked, clause, arg)?,
            other => return Err(could_not(format!("unrecognized formatting clause \"{}\"", char::from(other)))),
        }
        rest = after;
        used += 1;
    }
    Ok(used)
}

/// Why the precision of a clause can't be parsed.
#[derive(Debug, Error)]
enum PrecisionError {
    #[error("could not find end of precision specifier")]
    Unended,
    #[error("error while converting precision to integer: strconv.Atoi: parsing \"{text}\": {why}")]
    NotANumber { text: String, why: &'static str },
}

/// The text after the precision of a clause, if it has one.
fn precision(clause: &[u8]) -> Result<&[u8], PrecisionError> {
    let Some(digits) = clause.strip_prefix(b".") else { return Ok(clause) };
    let Some(end) = digits.iter().position(|byte| !byte.is_ascii_digit()) else {
        return Err(PrecisionError::Unended);
    };
    let text: String = digits[..end].iter().map(|digit| char::from(*digit)).collect();
    let why = match text.parse::<i64>() {
        Ok(_) => return Ok(&digits[end..]),
        Err(_) if text.is_empty() => "invalid syntax",
        Err(_) => "value out of range",
    };
    Err(PrecisionError::NotANumber { text, why })
}

fn number(checked: &CheckedExpr, clause: u8, arg: &Expr) -> Result<(), Wrong> {
    let ty = &type_of(checked, arg);
    let (fits, rule) = match clause {
        b'd' => (matches!(ty, Type::Int | Type::Uint), "decimal clause can only be used on integers"),
        b'f' => (matches!(ty, Type::Double | Type::String), "fixed-point clause can only be used on doubles"),
        b'e' => (matches!(ty, Type::Double | Type::String), "scientific clause can only be used on doubles"),
        b'b' => {
            (matches!(ty, Type::Int | Type::Uint | Type::Bool), "only integers and bools can be formatted as binary")
        }
        b'o' => (matches!(ty, Type::Int | Type::Uint), "octal clause can only be used on integers"),
        _ => (
            matches!(ty, Type::Int | Type::Uint | Type::String | Type::Bytes),
            "only integers, byte buffers, and strings can be formatted as hex",
        ),
    };
    if fits || *ty == Type::Dyn { Ok(()) } else { Err(unfit(arg.id, rule, ty)) }
}

fn string(checked: &CheckedExpr, arg: &Expr) -> Result<(), Wrong> {
    let ty = &type_of(checked, arg);
    let fits = matches!(
        ty,
        Type::List(_)
            | Type::Map(_)
            | Type::Int
            | Type::Uint
            | Type::Double
            | Type::Bool
            | Type::String
            | Type::Timestamp
            | Type::Bytes
            | Type::Duration
            | Type::Type(_)
            | Type::Null
            | Type::Dyn
    );
    if !fits {
        let rule = "string clause can only be used on strings, bools, bytes, ints, doubles, maps, lists, types, \
                    durations, and timestamps";
        return Err(unfit(arg.id, rule, ty));
    }
    match &arg.kind {
        ExprKind::List(list) => list.elements.iter().try_for_each(|element| string(checked, element)),
        ExprKind::Map(entries) => entries.iter().try_for_each(|entry| {
            string(checked, &entry.key)?;
            string(checked, &entry.value)
        }),
        _ => Ok(()),
    }
}

/// The type of an argument; a wrapper counts as the type it wraps.
fn type_of(checked: &CheckedExpr, arg: &Expr) -> Type {
    match checked.ty(arg.id) {
        Type::Wrapper(scalar) => scalar.as_type(),
        ty => ty.clone(),
    }
}

fn unfit(at: ExprId, rule: &str, ty: &Type) -> Wrong {
    Wrong::Argument(at, format!("{rule}, was given {}", ty.runtime_name()))
}
