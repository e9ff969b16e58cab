//! What a fault is: which requests it is for, how often it occurs, and what it does.

use std::time::Duration;

use crate::meta::duration;
use crate::object;
use crate::value::{Map, Value};

use super::matching::{FaultSubject, Match};

/// A fault that a test injects.
#[derive(Clone, Debug, PartialEq)]
pub struct Fault {
    pub matching: Match,
    /// How many matching requests pass before the fault occurs.
    pub skip: u64,
    /// How many matching requests it applies to after that; `None` for all.
    pub times: Option<u64>,
    /// The probability that it hits each of them, from 0 to 1; `None` for always.
    pub probability: Option<f64>,
    /// The seed of the random sequence.
    pub seed: Option<u64>,
    /// How long the request waits before anything else.
    pub delay: Duration,
    /// `None` for a delay alone.
    pub effect: Option<Effect>,
}

/// What a fault does.
#[derive(Clone, Debug, PartialEq)]
pub enum Effect {
    /// The request is answered with an error, and nothing is done.
    Error(InjectedError),
    /// An open watch ends, or delivers nothing more.
    Watch { end: WatchEnd, after_events: u64, after: Duration },
    /// A list or watch at any revision (`resourceVersion=0`) begins with the state of that many changes ago.
    Stale(u64),
    /// The connection is cut in place of an answer.
    Lose(Lost),
    /// The object is written, as it is, before the request changes it.
    Conflict,
}

/// An error that Kubernetes answers with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InjectedError {
    pub code: u16,
    /// Empty for the default reason of the code.
    pub reason: String,
    /// `None` for the message of Kubernetes.
    pub message: Option<String>,
    /// `None` for the default of the code; 0 for no header.
    pub retry_after_seconds: Option<u32>,
}

/// How a watch ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WatchEnd {
    /// As at its timeout: the stream is complete.
    Closed,
    /// The connection breaks; in HTTP/2, the stream is reset.
    Cut,
    /// Nothing more is sent, and the connection stays open.
    Stalled,
    /// With an ERROR event: 410, as its revision is gone.
    Expired,
}

/// What is lost with a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lost {
    /// Nothing is done.
    Request,
    /// Everything is done.
    Answer,
}

impl WatchEnd {
    pub const ALL: [(&str, WatchEnd); 4] = [
        ("closed", WatchEnd::Closed),
        ("cut", WatchEnd::Cut),
        ("stalled", WatchEnd::Stalled),
        ("expired", WatchEnd::Expired),
    ];

    fn name(self) -> &'static str {
        WatchEnd::ALL.iter().find(|(_, end)| *end == self).map_or("", |(name, _)| name)
    }
}

impl Lost {
    pub const ALL: [(&str, Lost); 2] = [("request", Lost::Request), ("answer", Lost::Answer)];

    fn name(self) -> &'static str {
        Lost::ALL.iter().find(|(_, lost)| *lost == self).map_or("", |(name, _)| name)
    }
}

impl Fault {
    /// Whether the fault is for this request, and takes effect before the request is answered.
    pub fn meets_request(&self, subject: &FaultSubject) -> bool {
        let can = match self.effect {
            None | Some(Effect::Error(_) | Effect::Lose(_)) => true,
            Some(Effect::Watch { .. }) => false,
            Some(Effect::Stale(_)) => subject.takes_any_state && matches!(&*subject.verb, "list" | "watch"),
            Some(Effect::Conflict) => {
                matches!(&*subject.verb, "update" | "patch" | "delete") && !subject.name.is_empty()
            }
        };
        can && self.matching.fits(subject)
    }

    /// Whether the fault is for this watch, and takes effect while the watch is open.
    pub fn meets_watch(&self, subject: &FaultSubject) -> bool {
        matches!(self.effect, Some(Effect::Watch { .. })) && self.matching.fits(subject)
    }

    /// `error 409`, for logs.
    pub fn label(&self) -> String {
        let effect = match &self.effect {
            None => String::new(),
            Some(Effect::Error(failure)) => format!("error {}", failure.code),
            Some(Effect::Watch { end, .. }) => format!("watch {}", end.name()),
            Some(Effect::Stale(changes)) => format!("stale by {changes}"),
            Some(Effect::Lose(lost)) => format!("lost {}", lost.name()),
            Some(Effect::Conflict) => "conflict".to_owned(),
        };
        let delay = if self.delay.is_zero() { String::new() } else { format!("delay {}", go(self.delay)) };
        let parts: Vec<_> = [delay, effect].into_iter().filter(|part| !part.is_empty()).collect();
        parts.join(", ")
    }

    /// The fault as it was sent, without the fields that were not given.
    pub fn to_value(&self) -> Value {
        let mut fields = Map::new();
        let matching = self.matching.to_value();
        if matching.as_object().is_some_and(|matching| !matching.is_empty()) {
            fields.insert("match", matching);
        }
        if self.skip > 0 {
            fields.insert("skip", integer(self.skip));
        }
        if let Some(times) = self.times {
            fields.insert("times", integer(times));
        }
        if let Some(probability) = self.probability {
            fields.insert("probability", Value::Float(probability));
        }
        if let Some(seed) = self.seed {
            fields.insert("seed", integer(seed));
        }
        if !self.delay.is_zero() {
            fields.insert("delay", Value::from(go(self.delay)));
        }
        match &self.effect {
            None => {}
            Some(Effect::Error(failure)) => _ = fields.insert("error", failure.to_value()),
            Some(Effect::Watch { end, after_events, after }) => {
                let mut watch = object! { "end" => end.name() };
                if *after_events > 0 {
                    watch.make_object().insert("afterEvents", integer(*after_events));
                }
                if !after.is_zero() {
                    watch.make_object().insert("after", Value::from(go(*after)));
                }
                fields.insert("watch", watch);
            }
            Some(Effect::Stale(changes)) => _ = fields.insert("stale", integer(*changes)),
            Some(Effect::Lose(lost)) => _ = fields.insert("lose", Value::from(lost.name())),
            Some(Effect::Conflict) => _ = fields.insert("conflict", Value::Bool(true)),
        }
        Value::Object(fields)
    }
}

impl InjectedError {
    fn to_value(&self) -> Value {
        let mut value = object! { "code" => Value::Int(self.code.into()) };
        let fields = value.make_object();
        if !self.reason.is_empty() {
            fields.insert("reason", Value::from(self.reason.as_str()));
        }
        if let Some(message) = &self.message {
            fields.insert("message", Value::from(message.as_str()));
        }
        if let Some(seconds) = self.retry_after_seconds {
            fields.insert("retryAfterSeconds", Value::Int(seconds.into()));
        }
        value
    }
}

/// No number of a fault is beyond the range of JSON's integers.
fn integer(number: u64) -> Value {
    Value::Int(i64::try_from(number).unwrap_or(i64::MAX))
}

fn go(duration: Duration) -> String {
    duration::print_go(i64::try_from(duration.as_nanos()).unwrap_or(i64::MAX))
}
