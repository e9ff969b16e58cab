//! Records every request: in metrics, and in lines of the audit log.
//!
//! An [`Observed`] accompanies its request and, for a watch, its stream. It records the end of the request when it is
//! dropped, so requests that their clients gave up are recorded, too.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::{Duration, Instant};

use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;

use crate::admission::WebhookTimes;
use crate::audit::{AuditEvent, AuditLevel, AuditStage, Extent, Log};
use crate::auth::{Decision, Verdict};
use crate::meta::Status;
use crate::meta::duration::print_go;
use crate::value::{Value, json, yaml};

use super::impersonation::Impersonated;
use super::limits::RequestKind;
use super::metrics::{Metrics, Route};

/// The annotation of the audit log with the reason why a request is allowed or not.
const REASON: &str = "authorization.k8s.io/reason";

/// The audit log tells how long parts of a request took if it took longer than this.
const LATENCY_TOLD_MIN: Duration = Duration::from_millis(500);

/// Where requests are recorded.
#[derive(Clone)]
pub(super) struct Observer {
    pub metrics: Arc<Metrics>,
    pub logs: Arc<[Log]>,
}

/// One request, observed.
pub(super) struct Observed {
    observer: Observer,
    kind: RequestKind,
    begun: Instant,
    dry_run: &'static str,
    /// `None` without a log.
    event: Option<Mutex<AuditEvent>>,
    /// How much of the request each log has.
    extents: Vec<Extent>,
    route: OnceLock<(Route, Option<Gauge>)>,
    answer: OnceLock<ObservedAnswer>,
    /// Set for a deprecated version, to the release without it; empty if there is none.
    deprecated: OnceLock<String>,
    latencies: Mutex<Latencies>,
}

/// How long parts of a request took.
#[derive(Debug, Default)]
pub(super) struct Latencies {
    pub webhooks: WebhookTimes,
    pub authorization: Duration,
    pub impersonation: Duration,
}

impl Latencies {
    /// The annotations of the audit log: each part that took any time, and the whole.
    ///
    /// Source: `AuditAnnotationsFromLatencyTrackers` of apiserver 1.37.
    fn annotations(&self, total: Duration) -> impl Iterator<Item = (Cow<'static, str>, String)> {
        let parts = [
            ("apiserver.latency.k8s.io/authorization", self.authorization),
            ("apiserver.latency.k8s.io/impersonation", self.impersonation),
            ("apiserver.latency.k8s.io/mutating-webhook", self.webhooks.mutating),
            ("apiserver.latency.k8s.io/total", total),
            ("apiserver.latency.k8s.io/validating-webhook", self.webhooks.validating),
        ];
        let text = |took: Duration| print_go(i64::try_from(took.as_nanos()).unwrap_or(i64::MAX));
        parts.into_iter().filter(|(_, took)| !took.is_zero()).map(move |(name, took)| (name.into(), text(took)))
    }
}

#[derive(Clone, Copy)]
struct ObservedAnswer {
    code: u16,
    size_bytes: Option<u64>,
}

impl Observed {
    /// Begins to observe a request; the first line of the audit log is written. `event` is called only if there is a
    /// log.
    pub fn begin(
        observer: &Observer,
        kind: RequestKind,
        dry_run: &'static str,
        event: impl FnOnce() -> AuditEvent,
    ) -> Arc<Self> {
        let event = (!observer.logs.is_empty()).then(event);
        let extents = event.iter().flat_map(|event| observer.logs.iter().map(|log| log.extent(event))).collect();
        let observed = Observed {
            observer: observer.clone(),
            kind,
            begun: Instant::now(),
            dry_run,
            event: event.map(Mutex::new),
            extents,
            route: OnceLock::new(),
            answer: OnceLock::new(),
            deprecated: OnceLock::new(),
            latencies: Mutex::default(),
        };
        observed.write(AuditStage::RequestReceived);
        Arc::new(observed)
    }

    pub fn kind(&self) -> RequestKind {
        self.kind
    }

    /// The request is for something that is served.
    pub fn routed(&self, route: Route) {
        let gauge = (self.kind == RequestKind::LongRunning).then(|| self.observer.metrics.long_running(&route));
        if let Some(gauge) = &gauge {
            gauge.inc();
        }
        if let Err((_, Some(gauge))) = self.route.set((route, gauge)) {
            gauge.dec();
        }
    }

    /// The request is made as another user.
    pub fn impersonated(&self, impersonated: &Impersonated) {
        self.with_event(|event| {
            event.impersonated = Some(impersonated.user.clone());
            event.impersonation_constraint.clone_from(&impersonated.constraint);
        });
    }

    /// The request is authorized or refused.
    pub fn decided(&self, decision: &Decision) {
        let (decided, reason) = match decision {
            Decision { verdict: Verdict::Allow, reason, .. } => ("allow", reason),
            Decision { reason, error, .. } if error.is_empty() => ("forbid", reason),
            _ => return self.annotate(REASON, "internal error"),
        };
        self.annotate("authorization.k8s.io/decision", decided);
        self.annotate(REASON, reason);
    }

    /// Adds an annotation to the last line of the audit log.
    pub fn annotate(&self, name: impl Into<Cow<'static, str>>, text: &str) {
        self.with_event(|event| event.annotations.push((name.into(), text.to_owned())));
    }

    /// Adds an annotation to lines of the level `Request` and above.
    pub fn annotate_requests(&self, name: impl Into<Cow<'static, str>>, text: &str) {
        self.with_event(|event| event.request_annotations.push((name.into(), text.to_owned())));
    }

    /// The version that the request asks for is deprecated, and release `removed` does not have it any more.
    pub fn deprecated(&self, removed: Option<u32>) {
        _ = self.deprecated.set(removed.map(|minor| format!("1.{minor}")).unwrap_or_default());
    }

    /// Parts of the request took some time.
    pub fn took(&self, add: impl FnOnce(&mut Latencies)) {
        add(&mut self.latencies.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Whether a log records the request at `level` or above.
    pub fn is_logged(&self, level: AuditLevel) -> bool {
        self.extents.iter().any(|extent| extent.level >= level)
    }

    /// The object of the request is known: it tells more about what the request is for.
    pub fn sent(&self, object: Value) {
        let keeps = self.is_logged(AuditLevel::Request);
        self.with_event(|event| {
            if let Some(reference) = &mut event.object {
                let fill = |text: &mut String, name: &str| {
                    if text.is_empty() {
                        text.push_str(object.str_at(&["metadata", name]));
                    }
                };
                fill(&mut reference.namespace, "namespace");
                fill(&mut reference.name, "name");
                fill(&mut reference.uid, "uid");
                fill(&mut reference.resource_version, "resourceVersion");
            }
            event.bodies.request = Some(object).filter(|_| keeps);
        });
    }

    /// The patch of the request is known. A patch that can't be read is not recorded; `may_be_yaml` tells whether it may
    /// be YAML.
    pub fn sent_patch(&self, patch: &[u8], may_be_yaml: bool) {
        if self.is_logged(AuditLevel::Request) {
            let read = json::decode(patch).ok();
            let read = read.or_else(|| may_be_yaml.then(|| yaml::decode(patch).ok()).flatten());
            self.with_event(|event| event.bodies.request = read);
        }
    }

    /// The content of the answer is known.
    pub fn answers(&self, answer: &Value) {
        let keeps = self.is_logged(AuditLevel::RequestResponse);
        self.with_event(|event| event.bodies.answer(answer, keeps));
    }

    /// The request is refused.
    pub fn refused(&self, status: &Status) {
        self.with_event(|event| event.failure = Some(status.clone()));
    }

    /// The server cut the request short, or did not begin it.
    pub fn terminated(&self, code: u16) {
        let route = self.route.get().map(|(route, _)| route.clone());
        self.observer.metrics.terminated(route.unwrap_or_default(), code);
    }

    /// The head of the answer is known; for a watch or a connection, the second line of the audit log is
    /// written.
    pub fn answered(&self, code: u16, size_bytes: Option<u64>) {
        // The first answer counts.
        _ = self.answer.set(ObservedAnswer { code, size_bytes });
        self.with_event(|event| event.code = code);
        if self.kind == RequestKind::LongRunning {
            self.write(AuditStage::ResponseStarted);
        }
    }

    fn with_event(&self, change: impl FnOnce(&mut AuditEvent)) {
        if let Some(event) = &self.event {
            change(&mut event.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn write(&self, stage: AuditStage) {
        self.with_event(|event| {
            let now = Timestamp::now();
            let logs = self.observer.logs.iter().zip(&self.extents);
            logs.for_each(|(log, extent)| log.write(event, extent, stage, now));
        });
    }
}

impl Observed {
    /// Adds the annotations that only the last line of the audit log has.
    fn annotate_end(&self) {
        if let Some(removed) = self.deprecated.get() {
            self.annotate("k8s.io/deprecated", "true");
            if !removed.is_empty() {
                self.annotate("k8s.io/removed-release", removed);
            }
        }
        let total = self.begun.elapsed();
        if total > LATENCY_TOLD_MIN {
            let latencies = self.latencies.lock().unwrap_or_else(PoisonError::into_inner);
            self.with_event(|event| event.annotations.extend(latencies.annotations(total)));
        }
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        /// The audit log's message for a client that did not wait for its answer.
        const CLOSED_EARLY: &str = "Connection closed early";
        if self.answer.get().is_none() {
            self.with_event(|event| {
                event.code = 200;
                event.failure = Some(Status::plain(200, CLOSED_EARLY));
            });
        }
        self.annotate_end();
        self.write(AuditStage::ResponseComplete);
        let Some((route, gauge)) = self.route.take() else { return };
        if let Some(removed) = self.deprecated.get() {
            self.observer.metrics.deprecated(&route, removed);
        }
        if let Some(gauge) = gauge {
            gauge.dec();
        }
        if let Some(ObservedAnswer { code, size_bytes }) = self.answer.get().copied() {
            self.observer.metrics.answered(route, self.dry_run, code, self.begun.elapsed(), size_bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::{self, Write};

    use super::*;
    use crate::audit::{ObjectReference, Policy};
    use crate::meta::minor::Minor;
    use crate::object;

    /// Keeps what was written, for a test to read.
    #[derive(Clone, Default)]
    struct Sheet(Arc<Mutex<Vec<u8>>>);

    impl Write for Sheet {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.lock().expect("nobody panics").extend_from_slice(bytes);
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// The event at the end of a request for ConfigMaps, with a policy that logs all requests as `level` and `more`
    /// say.
    fn logged(level: &str, more: &str, tell: impl FnOnce(&Observed)) -> Value {
        let policy = format!(
            "{{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], \
             rules: [{{level: {level}{more}}}]}}"
        );
        let sheet = Sheet::default();
        let log = Log::to(sheet.clone()).of(Policy::parse(policy.as_bytes()).expect("it is a policy"));
        let observer = Observer { metrics: Arc::new(Metrics::new(Minor::default())), logs: Arc::new([log]) };
        let reference = ObjectReference { resource: "configmaps".into(), ..ObjectReference::default() };
        let event = || AuditEvent { verb: "create".into(), object: Some(reference), ..AuditEvent::default() };
        tell(&Observed::begin(&observer, RequestKind::Mutating, "", event));
        let line = sheet.0.lock().expect("nobody panics").clone();
        json::decode(&line).expect("it is one event")
    }

    fn config_map() -> Value {
        let metadata = object! {
            "name" => "a", "uid" => "u", "resourceVersion" => "7", "managedFields" => Value::Array(vec![object! {}]),
        };
        object! { "kind" => "ConfigMap", "apiVersion" => "v1", "metadata" => metadata }
    }

    fn written(observed: &Observed) {
        observed.sent(config_map());
        observed.answers(&config_map());
        observed.answered(201, None);
    }

    #[test]
    fn a_log_has_the_objects_that_its_level_names() {
        let objects = |level| {
            let event = logged(level, "", written);
            assert_eq!(event.str_at(&["level"]), level);
            assert_eq!(event.str_at(&["objectRef", "name"]), "a");
            assert_eq!(event.str_at(&["objectRef", "uid"]), "u");
            assert_eq!(event.str_at(&["objectRef", "resourceVersion"]), "7");
            ["requestObject", "responseObject"].map(|name| event.get(name).cloned())
        };
        assert_eq!(objects("Metadata"), [None, None]);
        assert_eq!(objects("Request"), [Some(config_map()), None]);
        assert_eq!(objects("RequestResponse"), [Some(config_map()), Some(config_map())]);
    }

    #[test]
    fn what_was_slow_is_told_in_gos_durations_and_its_parts_only_if_they_took_time() {
        let mut latencies = Latencies { authorization: Duration::from_micros(1_500), ..Latencies::default() };
        let slow = WebhookTimes { mutating: Duration::from_millis(300), validating: Duration::from_millis(200) };
        latencies.webhooks.add(slow);
        latencies.webhooks.add(slow);
        let told = latencies.annotations(Duration::from_millis(1_250));
        let told: Vec<String> = told.map(|(name, text)| format!("{} {text}", &name[25..])).collect();
        assert_eq!(told, ["authorization 1.5ms", "mutating-webhook 600ms", "total 1.25s", "validating-webhook 200ms"]);
    }

    #[test]
    fn a_quick_request_has_no_latencies_and_a_deprecated_one_says_so() {
        let event = logged("Metadata", "", |observed| observed.deprecated(Some(38)));
        let annotations = object! { "k8s.io/deprecated" => "true", "k8s.io/removed-release" => "1.38" };
        assert_eq!(event.get("annotations"), Some(&annotations));
        let event = logged("Metadata", "", |observed| observed.deprecated(None));
        assert_eq!(event.get("annotations"), Some(&object! { "k8s.io/deprecated" => "true" }));
    }

    #[test]
    fn patches_of_webhooks_are_told_from_the_level_request_on() {
        let annotations = |level| {
            let event = logged(level, "", |observed| observed.annotate_requests("patch", "[]"));
            event.get("annotations").cloned()
        };
        assert_eq!(annotations("Metadata"), None);
        assert_eq!(annotations("Request"), Some(object! { "patch" => "[]" }));
    }

    #[test]
    fn a_request_is_received_when_it_is_logged() {
        let sheet = Sheet::default();
        let observer =
            Observer { metrics: Arc::new(Metrics::new(Minor::default())), logs: Arc::new([Log::to(sheet.clone())]) };
        let event = || AuditEvent { received: Timestamp::UNIX_EPOCH, ..AuditEvent::default() };
        let observed = Observed::begin(&observer, RequestKind::ReadOnly, "", event);
        let line = sheet.0.lock().expect("nobody panics").clone();
        let event = json::decode(&line).expect("it is one event");
        assert_eq!(event.get("stageTimestamp"), event.get("requestReceivedTimestamp"));
        drop(observed);
    }

    #[test]
    fn managed_fields_are_left_out_where_a_rule_says_so() {
        let list = object! { "kind" => "List", "items" => Value::Array(vec![config_map()]) };
        let row = object! { "object" => config_map() };
        let table = object! { "kind" => "Table", "rows" => Value::Array(vec![row]) };
        for answer in [config_map(), list, table] {
            let event = logged("RequestResponse", ", omitManagedFields: true", |observed| {
                observed.sent(config_map());
                observed.answers(&answer);
            });
            let text = String::from_utf8_lossy(&json::encode(&event)).into_owned();
            assert!(text.contains("responseObject") && !text.contains("managedFields"), "{text}");
        }
    }

    #[test]
    fn a_status_that_is_answered_is_the_events_own() {
        let status = object! { "kind" => "Status", "apiVersion" => "v1", "status" => "Success" };
        let event = logged("Metadata", "", |observed| {
            observed.answers(&status);
            observed.answered(200, None);
        });
        assert_eq!(event.str_at(&["responseStatus", "status"]), "Success");
        assert_eq!(event.at(&["responseStatus", "code"]), Some(&Value::Int(200)));
    }

    #[test]
    fn a_patch_that_can_not_be_read_leaves_its_event_without_it() {
        let sent = |patch: &[u8], may_be_yaml| {
            logged("Request", "", |observed| observed.sent_patch(patch, may_be_yaml)).get("requestObject").cloned()
        };
        assert_eq!(sent(br#"{"a":1}"#, false), Some(object! { "a" => Value::Int(1) }));
        assert_eq!(sent(b"a: 1\n", true), Some(object! { "a" => Value::Int(1) }));
        assert_eq!(sent(b"a: 1\n", false), None);
    }
}
