//! Events of controllers: recorded in the background, and counted if they repeat.
//!
//! Source: the event recorder of client-go 0.37, without its limits of rate.

use std::borrow::Cow;
use std::collections::HashMap;
use std::collections::hash_map::Entry as Slot;
use std::sync::{Arc, Weak};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use jiff::Timestamp;
use tokio::sync::mpsc;

use super::identity::CONTROLLER_MANAGER;
use crate::meta::{Status, time};
use crate::object;
use crate::registry::{FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings};
use crate::value::{Value, json};

/// How many events wait to be written; further ones are dropped.
const WAITING_MAX: usize = 10_000;
/// How many events are remembered, so that the next of the same kind is counted.
const REMEMBERED_MAX: usize = 4_096;
/// How many events are written at once.
const AT_ONCE: usize = 64;

/// An event about an object.
pub(super) struct RecordedEvent {
    component: &'static str,
    /// `involvedObject`.
    involved: Value,
    type_: &'static str,
    reason: Cow<'static, str>,
    message: String,
    /// The action; set by controllers that use the form of `events.k8s.io`.
    action: Option<&'static str>,
}

impl RecordedEvent {
    pub fn new(
        component: &'static str,
        object: &Value,
        type_: &'static str,
        reason: Cow<'static, str>,
        message: String,
    ) -> Self {
        let metadata = |field: &str| object.str_at(&["metadata", field]);
        let mut involved = object! {
            "kind" => object.str_at(&["kind"]),
            "apiVersion" => object.str_at(&["apiVersion"]),
            "name" => metadata("name"),
            "uid" => metadata("uid"),
        };
        for field in ["namespace", "resourceVersion"] {
            if !metadata(field).is_empty() {
                involved.make_object().insert(field, Value::from(metadata(field)));
            }
        }
        RecordedEvent { component, involved, type_, reason, message, action: None }
    }

    /// The same in the form of `events.k8s.io`.
    pub fn during(mut self, action: &'static str) -> Self {
        self.action = Some(action);
        self
    }
}

/// Takes events; cheap to clone. The task that writes them ends with the last clone.
#[derive(Clone)]
pub(super) struct Recorder(mpsc::Sender<RecordedEvent>);

impl Recorder {
    pub fn start(registry: &Arc<Registry>) -> Self {
        Recorder::start_by(registry, CONTROLLER_MANAGER)
    }

    /// Starts one whose events have this manager of their fields.
    pub fn start_by(registry: &Arc<Registry>, manager: &'static str) -> Self {
        let (sender, waiting) = mpsc::channel(WAITING_MAX);
        tokio::spawn(write_all(Arc::downgrade(registry), manager, waiting));
        Recorder(sender)
    }

    pub fn record(&self, recorded: RecordedEvent) {
        if self.0.try_send(recorded).is_err() {
            tracing::debug!("an event is left out, as too many wait");
        }
    }
}

/// Writes events, several at a time, until there are no more senders. An event that can't be written is dropped.
async fn write_all(registry: Weak<Registry>, manager: &'static str, mut waiting: mpsc::Receiver<RecordedEvent>) {
    let mut known = RecordedEvents::default();
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            recorded = waiting.recv(), if under_way.len() < AT_ONCE => {
                let (Some(recorded), Some(registry)) = (recorded, registry.upgrade()) else { return };
                let now = registry.clock.now();
                let write = known.write_of(recorded, now);
                under_way.push(carry_out(registry, manager, write));
            }
            Some(outcome) = under_way.next() => {
                if let Err(status) = outcome {
                    tracing::debug!(message = status.message, "an event could not be recorded");
                }
            }
        }
    }
}

/// The key of like events: the object, the reason and the message.
type EventKey = (String, Cow<'static, str>, String);

/// The events that were recorded before: the name of each, and how often.
#[derive(Default)]
struct RecordedEvents {
    events: HashMap<EventKey, (String, i64)>,
    count: i128,
}

/// The write of an event, in its namespace.
#[derive(Debug, PartialEq)]
enum EventWrite {
    Create(String, Value),
    /// It exists; this is the patch.
    Again(String, String, Value),
}

impl RecordedEvents {
    fn write_of(&mut self, recorded: RecordedEvent, now: Timestamp) -> EventWrite {
        if self.events.len() >= REMEMBERED_MAX {
            self.events.clear();
        }
        self.count += 1;
        let like = (recorded.involved.str_at(&["uid"]).to_owned(), recorded.reason.clone(), recorded.message.clone());
        // Of an object in cluster scope, the event is in the default namespace.
        let namespace = match recorded.involved.str_at(&["namespace"]) {
            "" => "default".to_owned(),
            namespace => namespace.to_owned(),
        };
        match self.events.entry(like) {
            Slot::Occupied(mut known) => {
                let (name, count) = known.get_mut();
                *count += 1;
                EventWrite::Again(namespace, name.clone(), repeated(&recorded, *count, now))
            }
            Slot::Vacant(place) => {
                let name = recorded.involved.str_at(&["name"]);
                let name = format!("{name}.{:x}", now.as_nanosecond().wrapping_add(self.count));
                place.insert((name.clone(), 1));
                EventWrite::Create(namespace.clone(), event(recorded, &name, &namespace, now))
            }
        }
    }
}

async fn carry_out(registry: Arc<Registry>, manager: &'static str, write: EventWrite) -> Result<(), Status> {
    match write {
        EventWrite::Create(namespace, event) => registry.create_own("", "events", &namespace, manager, event).await,
        EventWrite::Again(namespace, name, patch) => patch_event((&registry, manager), (namespace, name), &patch).await,
    }
}

fn event(recorded: RecordedEvent, name: &str, namespace: &str, now: Timestamp) -> Value {
    let mut event = object! {
        "metadata" => object! { "name" => name, "namespace" => namespace },
        "involvedObject" => recorded.involved,
        "reason" => recorded.reason.into_owned(),
        "message" => recorded.message,
        "type" => recorded.type_,
        "reportingComponent" => recorded.component,
    };
    let fields = event.make_object();
    if let Some(action) = recorded.action {
        fields.insert("action", Value::from(action));
        fields.insert("eventTime", Value::String(micro(now)));
        fields.insert("reportingInstance", Value::from(recorded.component));
        return event;
    }
    let at = time::format_seconds(now);
    fields.insert("source", object! { "component" => recorded.component });
    fields.insert("firstTimestamp", Value::from(at.as_str()));
    fields.insert("lastTimestamp", Value::String(at));
    fields.insert("count", Value::Int(1));
    fields.insert("reportingInstance", Value::from(""));
    event
}

/// The changes of an event that has now been recorded `count` times.
fn repeated(recorded: &RecordedEvent, count: i64, now: Timestamp) -> Value {
    match recorded.action {
        Some(_) => object! { "series" => object! { "count" => count, "lastObservedTime" => micro(now) } },
        None => object! { "count" => count, "lastTimestamp" => time::format_seconds(now) },
    }
}

/// A time as `MicroTime` is written.
fn micro(time: Timestamp) -> String {
    time.strftime("%Y-%m-%dT%H:%M:%S%.6fZ").to_string()
}

async fn patch_event(
    (registry, manager): (&Registry, &str),
    (namespace, name): (String, String),
    patch: &Value,
) -> Result<(), Status> {
    let resource = registry.resolve("", "events").await?.ok_or_else(Status::not_found_generic)?;
    let version = Arc::clone(resource.storage());
    let target = Target { resource, version, subresource: Subresource::Main, namespace, name };
    let request = PatchRequest {
        patch_type: PatchType::Merge,
        bytes: json::encode(patch).into(),
        field_validation: FieldValidation::Ignore,
        manager: manager.to_owned(),
        force: false,
        dry_run: false,
        options: Value::Null,
    };
    registry.patch(&target, &super::identity::user(), &request, &mut Warnings::default()).await.map(drop)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_repeats_is_counted() {
        let object = object! {
            "kind" => "Pod",
            "apiVersion" => "v1",
            "metadata" => object! { "name" => "p", "namespace" => "d", "uid" => "u" },
        };
        let tell = |message: &str| RecordedEvent::new("c", &object, "Normal", "R".into(), message.to_owned());
        let mut known = RecordedEvents::default();
        let EventWrite::Create(namespace, event) = known.write_of(tell("one"), Timestamp::UNIX_EPOCH) else {
            panic!("it is new")
        };
        assert_eq!((namespace.as_str(), event.str_at(&["involvedObject", "uid"])), ("d", "u"));
        let name = event.str_at(&["metadata", "name"]).to_owned();
        let again = known.write_of(tell("one"), Timestamp::UNIX_EPOCH);
        let counted = object! { "count" => 2_i64, "lastTimestamp" => "1970-01-01T00:00:00Z" };
        assert_eq!(again, EventWrite::Again("d".to_owned(), name, counted));
        assert!(matches!(known.write_of(tell("other"), Timestamp::UNIX_EPOCH), EventWrite::Create(..)));
    }

    #[test]
    fn what_is_told_during_an_action_is_told_in_the_newer_form() {
        let object =
            object! { "kind" => "Pod", "metadata" => object! { "name" => "p", "namespace" => "d", "uid" => "u" } };
        let tell = || RecordedEvent::new("c", &object, "Normal", "R".into(), "m".to_owned()).during("Binding");
        let mut known = RecordedEvents::default();
        let EventWrite::Create(_, event) = known.write_of(tell(), Timestamp::UNIX_EPOCH) else { panic!("it is new") };
        assert_eq!(event.str_at(&["eventTime"]), "1970-01-01T00:00:00.000000Z");
        assert_eq!((event.str_at(&["action"]), event.str_at(&["reportingInstance"])), ("Binding", "c"));
        assert_eq!((event.get("source"), event.get("count"), event.get("firstTimestamp")), (None, None, None));
        let EventWrite::Again(_, _, patch) = known.write_of(tell(), Timestamp::UNIX_EPOCH) else {
            panic!("it is known")
        };
        assert_eq!(patch.at(&["series", "count"]).and_then(Value::as_i64), Some(2));
    }
}
