//! Events of controllers: recorded in the background, and counted if they repeat.
//!
//! What becomes of an event that is told often is in [`correlator`]. Source: the event recorder of client-go 0.37.

mod correlator;
mod event;
mod recent;

use std::sync::{Arc, Weak};

use futures_util::stream::{FuturesUnordered, StreamExt as _};
use jiff::Timestamp;
use tokio::sync::mpsc;

use self::correlator::{CorrelatedEvent, Correlator};
pub(super) use self::event::RecordedEvent;
use super::identity::CONTROLLER_MANAGER;
use crate::meta::{Status, time};
use crate::object;
use crate::registry::{FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings};
use crate::value::{Value, json};

/// How many events wait to be written; further ones are dropped.
const WAITING_MAX: usize = 10_000;
/// How many events are written at once.
const AT_ONCE: usize = 64;

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
    let mut correlator = Correlator::default();
    let mut under_way = FuturesUnordered::new();
    loop {
        tokio::select! {
            recorded = waiting.recv(), if under_way.len() < AT_ONCE => {
                let (Some(recorded), Some(registry)) = (recorded, registry.upgrade()) else { return };
                let now = registry.clock.now();
                if let Some(event) = correlator.take(recorded, now) {
                    under_way.push(carry_out(registry, manager, EventWrite::of(event, now)));
                }
            }
            Some(outcome) = under_way.next() => {
                if let Err(status) = outcome {
                    tracing::debug!(message = status.message, "an event could not be recorded");
                }
            }
        }
    }
}

/// The write of an event, in its namespace.
#[derive(Debug, PartialEq)]
struct EventWrite {
    namespace: String,
    /// What changes if the event exists.
    patch: Option<Value>,
    event: Value,
}

impl EventWrite {
    fn of(correlated: CorrelatedEvent, now: Timestamp) -> Self {
        // Of an object in cluster scope, the event is in the default namespace.
        let namespace = match correlated.recorded.involved.str_at(&["namespace"]) {
            "" => "default".to_owned(),
            namespace => namespace.to_owned(),
        };
        let patch = (correlated.count > 1).then(|| repeated(&correlated, now));
        EventWrite { event: event(correlated, &namespace, now), patch, namespace }
    }
}

/// Writes an event. One that was told before, but is gone or was never written, is created.
async fn carry_out(registry: Arc<Registry>, manager: &'static str, write: EventWrite) -> Result<(), Status> {
    let EventWrite { namespace, patch, event } = write;
    if let Some(patch) = patch {
        let name = event.str_at(&["metadata", "name"]).to_owned();
        match patch_event((&registry, manager), (namespace.clone(), name), &patch).await {
            Err(status) if status.code == 404 => {}
            outcome => return outcome,
        }
    }
    registry.create_own("", "events", &namespace, manager, event).await
}

fn event(correlated: CorrelatedEvent, namespace: &str, now: Timestamp) -> Value {
    let CorrelatedEvent { recorded, name, first, count, is_combined } = correlated;
    let mut event = object! {
        "metadata" => object! { "name" => name, "namespace" => namespace },
        "involvedObject" => recorded.involved,
        "reason" => recorded.reason.into_owned(),
        "message" => recorded.message,
        "type" => recorded.type_,
        // A combined event has none, in client-go either.
        "reportingComponent" => if is_combined { "" } else { recorded.component },
    };
    let fields = event.make_object();
    if let Some(action) = recorded.action {
        fields.insert("action", Value::from(action));
        fields.insert("eventTime", Value::String(micro(first)));
        fields.insert("reportingInstance", Value::from(recorded.component));
        if count > 1 {
            fields.insert("series", object! { "count" => count, "lastObservedTime" => micro(now) });
        }
        return event;
    }
    fields.insert("source", object! { "component" => recorded.component });
    fields.insert("firstTimestamp", Value::String(time::format_seconds(first)));
    fields.insert("lastTimestamp", Value::String(time::format_seconds(now)));
    fields.insert("count", Value::Int(count));
    fields.insert("reportingInstance", Value::from(""));
    event
}

/// The changes of an event that was told before.
fn repeated(correlated: &CorrelatedEvent, now: Timestamp) -> Value {
    let count = correlated.count;
    if correlated.recorded.action.is_some() {
        return object! { "series" => object! { "count" => count, "lastObservedTime" => micro(now) } };
    }
    let mut patch = object! { "count" => count, "lastTimestamp" => time::format_seconds(now) };
    if correlated.is_combined {
        patch.make_object().insert("message", Value::from(correlated.recorded.message.as_str()));
    }
    patch
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
        let mut correlator = Correlator::default();
        let mut write = |message: &str, now: Timestamp| {
            EventWrite::of(correlator.take(tell(message), now).expect("it is written"), now)
        };
        let first = write("one", Timestamp::UNIX_EPOCH);
        assert_eq!((first.namespace.as_str(), first.event.str_at(&["involvedObject", "uid"])), ("d", "u"));
        assert_eq!(first.patch, None);
        let later = Timestamp::UNIX_EPOCH.checked_add(jiff::SignedDuration::from_secs(1)).expect("a time");
        let again = write("one", later);
        let counted = object! { "count" => 2_i64, "lastTimestamp" => "1970-01-01T00:00:01Z" };
        assert_eq!(again.patch, Some(counted));
        // If it is gone, it is made again as it would be now.
        assert_eq!(again.event.at(&["metadata", "name"]), first.event.at(&["metadata", "name"]));
        assert_eq!(again.event.str_at(&["firstTimestamp"]), "1970-01-01T00:00:00Z");
        assert_eq!(again.event.at(&["count"]).and_then(Value::as_i64), Some(2));
        assert_eq!(write("other", later).patch, None);
    }

    #[test]
    fn what_is_combined_has_the_newest_text() {
        let object = object! { "kind" => "Pod", "metadata" => object! { "name" => "p", "uid" => "u" } };
        let mut correlator = Correlator::default();
        let mut write = |at: i32| {
            let told = RecordedEvent::new("c", &object, "Normal", "R".into(), at.to_string());
            let now = Timestamp::UNIX_EPOCH;
            EventWrite::of(correlator.take(told, now).expect("it is written"), now)
        };
        (1..10).for_each(|at| assert_eq!(write(at).patch, None));
        let first = write(10);
        assert_eq!(first.event.str_at(&["message"]), "(combined from similar events): 10");
        assert_eq!((first.patch, first.event.str_at(&["source", "component"])), (None, "c"));
        let second = write(11);
        assert_eq!(second.event.at(&["metadata", "name"]), first.event.at(&["metadata", "name"]));
        let patch = second.patch.expect("it is known");
        assert_eq!(patch.str_at(&["message"]), "(combined from similar events): 11");
    }

    #[test]
    fn what_is_told_during_an_action_is_told_in_the_newer_form() {
        let object =
            object! { "kind" => "Pod", "metadata" => object! { "name" => "p", "namespace" => "d", "uid" => "u" } };
        let tell = || RecordedEvent::new("c", &object, "Normal", "R".into(), "m".to_owned()).during("Binding");
        let mut correlator = Correlator::default();
        let mut write = || {
            let now = Timestamp::UNIX_EPOCH;
            EventWrite::of(correlator.take(tell(), now).expect("it is written"), now)
        };
        let EventWrite { event, .. } = write();
        assert_eq!(event.str_at(&["eventTime"]), "1970-01-01T00:00:00.000000Z");
        assert_eq!((event.str_at(&["action"]), event.str_at(&["reportingInstance"])), ("Binding", "c"));
        assert_eq!((event.get("source"), event.get("count"), event.get("firstTimestamp")), (None, None, None));
        let patch = write().patch.expect("it is known");
        assert_eq!(patch.at(&["series", "count"]).and_then(Value::as_i64), Some(2));
    }
}
