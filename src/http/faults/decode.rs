//! Decodes a fault as it was sent: unknown fields and values that make no sense are refused.

use std::borrow::Cow;
use std::time::Duration;

use thiserror::Error;

use crate::meta::duration;
use crate::value::{Map, Value};

use super::error;
use super::fault::{Effect, Fault, InjectedError, Lost, WatchEnd};
use super::matching::Match;

/// The longest delay of a request, and the latest end of a watch.
const DELAY_MAX: Duration = Duration::from_secs(3600);
/// The known verbs, and the methods of paths that are not resources.
const VERBS: [&str; 13] = [
    "get",
    "list",
    "watch",
    "create",
    "update",
    "patch",
    "delete",
    "deletecollection",
    "proxy",
    "head",
    "options",
    "post",
    "put",
];
/// What a fault can do: one of these, or only a delay.
const EFFECTS: [&str; 5] = ["error", "watch", "stale", "lose", "conflict"];

/// Why a value is not a fault.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum FaultError {
    /// A field that faults do not have.
    #[error("unknown field `{0}`")]
    UnknownField(String),
    /// It does nothing.
    #[error("a fault does one of {}, or has a delay", EFFECTS.join(", "))]
    NoEffect,
    /// It does more than one thing.
    #[error("a fault does one thing, not {}", .0.join(" and "))]
    SeveralEffects(Vec<&'static str>),
    /// A field has a value that it can't have.
    #[error("{field}: {detail}")]
    Invalid { field: String, detail: Cow<'static, str> },
}

fn invalid(field: impl Into<String>, detail: impl Into<Cow<'static, str>>) -> FaultError {
    FaultError::Invalid { field: field.into(), detail: detail.into() }
}

/// Reads a fault.
///
/// # Errors
///
/// The first thing that is wrong.
pub fn decode(value: &Value) -> Result<Fault, FaultError> {
    const FIELDS: [&str; 6] = ["match", "skip", "times", "probability", "seed", "delay"];
    let fields = KnownFields::new("", value, &[&FIELDS[..], &EFFECTS[..]].concat())?;
    let matching = fields.get("match").map(decode_match).transpose()?.unwrap_or_default();
    let delay = fields.duration("delay")?.unwrap_or_default();
    let effect = decode_effect(&fields)?;
    if effect.is_none() && delay.is_zero() {
        return Err(FaultError::NoEffect);
    }
    let probability = match fields.get("probability") {
        None => None,
        Some(Value::Float(share)) if (0.0..=1.0).contains(share) => Some(*share),
        Some(Value::Int(share @ (0 | 1))) => Some(*share as f64),
        Some(_) => return Err(invalid("probability", "must be a number from 0 to 1")),
    };
    if probability.is_none() && fields.get("seed").is_some() {
        return Err(invalid("seed", "is for a probability"));
    }
    if matches!(effect, Some(Effect::Watch { .. })) && !delay.is_zero() {
        return Err(invalid("delay", "a watch has `after` in its place"));
    }
    let times = fields.integer("times")?;
    if times == Some(0) {
        return Err(invalid("times", "must be 1 at least"));
    }
    let skip = fields.integer("skip")?.unwrap_or_default();
    Ok(Fault { matching, skip, times, probability, seed: fields.integer("seed")?, delay, effect })
}

fn decode_match(value: &Value) -> Result<Match, FaultError> {
    const FIELDS: [&str; 8] = ["verbs", "group", "resource", "subresource", "namespace", "name", "user", "path"];
    let fields = KnownFields::new("match", value, &FIELDS)?;
    let mut verbs = Vec::new();
    if let Some(given) = fields.get("verbs") {
        let given = given.as_array().ok_or_else(|| invalid("match.verbs", "must be an array of texts"))?;
        for verb in given {
            let verb = verb.as_str().and_then(|verb| VERBS.into_iter().find(|known| *known == verb));
            let verb = verb.ok_or_else(|| invalid("match.verbs", format!("must be of {}", VERBS.join(", "))))?;
            if !verbs.contains(&verb) {
                verbs.push(verb);
            }
        }
    }
    let path = fields.text("path")?;
    if path.as_ref().is_some_and(|path| !path.starts_with('/')) {
        return Err(invalid("match.path", "must begin with a slash"));
    }
    Ok(Match {
        verbs,
        group: fields.text("group")?,
        resource: fields.text("resource")?,
        subresource: fields.text("subresource")?,
        namespace: fields.text("namespace")?,
        name: fields.text("name")?,
        user: fields.text("user")?,
        path,
    })
}

fn decode_effect(fields: &KnownFields<'_>) -> Result<Option<Effect>, FaultError> {
    let given: Vec<&'static str> = EFFECTS.into_iter().filter(|name| fields.get(name).is_some()).collect();
    match given[..] {
        [] => Ok(None),
        [name] => decode_one_effect(fields, name).map(Some),
        _ => Err(FaultError::SeveralEffects(given)),
    }
}

fn decode_one_effect(fields: &KnownFields<'_>, name: &str) -> Result<Effect, FaultError> {
    match name {
        "error" => decode_failure(fields.get(name).unwrap_or(&Value::Null)).map(Effect::Error),
        "watch" => decode_watch(fields.get(name).unwrap_or(&Value::Null)),
        "stale" => match fields.integer(name)? {
            Some(changes) if changes > 0 => Ok(Effect::Stale(changes)),
            _ => Err(invalid("stale", "must be 1 at least")),
        },
        "lose" => Ok(Effect::Lose(fields.word(name, &Lost::ALL)?)),
        _ if fields.get(name) == Some(&Value::Bool(true)) => Ok(Effect::Conflict),
        _ => Err(invalid(name, "must be true")),
    }
}

fn decode_failure(value: &Value) -> Result<InjectedError, FaultError> {
    let fields = KnownFields::new("error", value, &["code", "reason", "message", "retryAfterSeconds"])?;
    let code = fields.integer("code")?.ok_or_else(|| invalid("error.code", "is required"))?;
    let code = u16::try_from(code).ok().filter(|code| error::REASONS.iter().any(|(known, _)| known == code));
    let code = code.ok_or_else(|| {
        let mut codes: Vec<String> = error::REASONS.iter().map(|(code, _)| code.to_string()).collect();
        codes.dedup();
        invalid("error.code", format!("must be one of {}", codes.join(", ")))
    })?;
    let reason = fields.text("reason")?.unwrap_or_default();
    if !reason.is_empty() && !error::REASONS.contains(&(code, reason.as_str())) {
        let reasons: Vec<_> = error::REASONS.iter().filter(|(of, _)| *of == code).map(|(_, reason)| *reason).collect();
        return Err(invalid("error.reason", format!("with {code} it is one of {}", reasons.join(", "))));
    }
    let seconds = fields.integer("retryAfterSeconds")?;
    let seconds = seconds.map(u32::try_from).transpose();
    let retry_after_seconds = seconds.map_err(|_| invalid("error.retryAfterSeconds", "is too large"))?;
    Ok(InjectedError { code, reason, message: fields.text("message")?, retry_after_seconds })
}

fn decode_watch(value: &Value) -> Result<Effect, FaultError> {
    let fields = KnownFields::new("watch", value, &["end", "afterEvents", "after"])?;
    Ok(Effect::Watch {
        end: fields.word("end", &WatchEnd::ALL)?,
        after_events: fields.integer("afterEvents")?.unwrap_or_default(),
        after: fields.duration("after")?.unwrap_or_default(),
    })
}

/// The fields of an object, all of which are known.
struct KnownFields<'v> {
    /// The prefix of field names in errors.
    prefix: String,
    fields: &'v Map,
}

impl<'v> KnownFields<'v> {
    fn new(name: &str, value: &'v Value, known: &[&str]) -> Result<Self, FaultError> {
        let prefix = if name.is_empty() { String::new() } else { format!("{name}.") };
        let what = if name.is_empty() { "a fault" } else { name };
        let fields = value.as_object().ok_or_else(|| invalid(what, "must be an object"))?;
        match fields.keys().find(|field| !known.contains(field)) {
            Some(unknown) => Err(FaultError::UnknownField(format!("{prefix}{unknown}"))),
            None => Ok(KnownFields { prefix, fields }),
        }
    }

    fn get(&self, name: &str) -> Option<&'v Value> {
        self.fields.get(name).filter(|value| !value.is_null())
    }

    fn invalid(&self, name: &str, detail: impl Into<Cow<'static, str>>) -> FaultError {
        invalid(format!("{}{name}", self.prefix), detail)
    }

    fn text(&self, name: &str) -> Result<Option<String>, FaultError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let text = value.as_str().ok_or_else(|| self.invalid(name, "must be a text"))?;
        Ok(Some(text.to_owned()))
    }

    fn integer(&self, name: &str) -> Result<Option<u64>, FaultError> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let number = match value {
            Value::Int(number) => u64::try_from(*number).ok(),
            _ => None,
        };
        number.map(Some).ok_or_else(|| self.invalid(name, "must be a whole number, 0 or more"))
    }

    fn duration(&self, name: &str) -> Result<Option<Duration>, FaultError> {
        let Some(text) = self.text(name)? else { return Ok(None) };
        let nanoseconds = duration::parse_go(&text).map_err(|error| self.invalid(name, error.to_string()))?;
        let duration = u64::try_from(nanoseconds).map(Duration::from_nanos).ok();
        let duration = duration.filter(|duration| *duration <= DELAY_MAX);
        duration.map(Some).ok_or_else(|| self.invalid(name, "must be from 0s to 1h"))
    }

    fn word<T: Copy>(&self, name: &str, all: &[(&str, T)]) -> Result<T, FaultError> {
        let text = self.text(name)?.unwrap_or_default();
        let found = all.iter().find(|(word, _)| *word == text);
        found.map(|(_, meant)| *meant).ok_or_else(|| {
            let words: Vec<&str> = all.iter().map(|(word, _)| *word).collect();
            self.invalid(name, format!("must be one of {}", words.join(", ")))
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::value::json;

    use super::*;

    fn read(text: &str) -> Result<Fault, FaultError> {
        decode(&json::decode(text.as_bytes()).expect("it is JSON"))
    }

    #[test]
    fn a_fault_is_shown_as_it_was_sent() {
        for text in [
            r#"{"delay":"250ms"}"#,
            r#"{"error":{"code":429,"retryAfterSeconds":3},"match":{"resource":"pods","verbs":["list"]},"times":2}"#,
            r#"{"error":{"code":410,"message":"m","reason":"Gone"},"skip":1}"#,
            r#"{"match":{"group":"","path":"/api/*"},"probability":0.25,"seed":7,"stale":3}"#,
            r#"{"watch":{"after":"1s","afterEvents":2,"end":"stalled"}}"#,
            r#"{"delay":"1s","lose":"answer"}"#,
            r#"{"conflict":true,"match":{"name":"a","namespace":"b","subresource":"status","user":"c"}}"#,
        ] {
            let shown = json::encode_to_string(&read(text).expect("it is a fault").to_value());
            assert_eq!(shown, text);
        }
    }

    #[test]
    fn what_makes_no_sense_is_refused() {
        let check = |text: &str, expected: &str| assert_eq!(read(text).expect_err(text).to_string(), expected);
        check("[]", "a fault: must be an object");
        check("{}", "a fault does one of error, watch, stale, lose, conflict, or has a delay");
        check(r#"{"errors":{}}"#, "unknown field `errors`");
        check(r#"{"match":{"kind":"Pod"}}"#, "unknown field `match.kind`");
        check(r#"{"error":{"code":409},"conflict":true}"#, "a fault does one thing, not error and conflict");
        check(r#"{"error":{}}"#, "error.code: is required");
        check(r#"{"error":{"code":418}}"#, "error.code: must be one of 401, 403, 404, 409, 410, 429, 500, 503, 504");
        check(
            r#"{"error":{"code":409,"reason":"Gone"}}"#,
            "error.reason: with 409 it is one of Conflict, AlreadyExists",
        );
        check(r#"{"error":{"code":-1}}"#, "error.code: must be a whole number, 0 or more");
        check(r#"{"delay":"1"}"#, "delay: time: missing unit in duration \"1\"");
        check(r#"{"delay":"2h"}"#, "delay: must be from 0s to 1h");
        check(r#"{"delay":"1s","times":0}"#, "times: must be 1 at least");
        check(r#"{"delay":"1s","probability":2}"#, "probability: must be a number from 0 to 1");
        check(r#"{"delay":"1s","seed":2}"#, "seed: is for a probability");
        check(r#"{"watch":{"end":"gone"}}"#, "watch.end: must be one of closed, cut, stalled, expired");
        check(r#"{"watch":{"end":"cut"},"delay":"1s"}"#, "delay: a watch has `after` in its place");
        check(r#"{"lose":"nothing"}"#, "lose: must be one of request, answer");
        check(r#"{"stale":0}"#, "stale: must be 1 at least");
        check(r#"{"conflict":false}"#, "conflict: must be true");
        check(r#"{"delay":"1s","match":{"path":"apis"}}"#, "match.path: must begin with a slash");
    }
}
