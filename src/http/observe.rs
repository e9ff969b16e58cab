//! What is kept of every request: figures, and lines of the audit log.
//!
//! An [`Observed`] goes along with its request and, where that is a watch, with its stream. What is known at its end is
//! told when it is dropped; so a request that its client gave up is told, too.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;

use crate::audit::{Event, Log, ObjectReference, Stage};
use crate::auth::Decision;
use crate::meta::Status;

use super::exchange::Exchange;
use super::impersonation::Impersonated;
use super::limits::Kind;
use super::metrics::{Metrics, Route};
use super::path::{ResourcePath, Target, Verb};

/// Whom it is told.
#[derive(Clone)]
pub(super) struct Observer {
    pub metrics: Arc<Metrics>,
    pub logs: Arc<[Log]>,
}

/// One request, observed.
pub(super) struct Observed {
    observer: Observer,
    kind: Kind,
    begun: Instant,
    dry_run: &'static str,
    /// `None` without a log.
    event: Option<Mutex<Event>>,
    route: OnceLock<(Route, Option<Gauge>)>,
    answer: OnceLock<Answer>,
}

#[derive(Clone, Copy)]
struct Answer {
    code: u16,
    size_bytes: Option<u64>,
}

impl Observed {
    /// Begins to observe a request; the first line of the audit log is written.
    pub fn begin(observer: &Observer, exchange: &Exchange, target: Option<&Target>) -> Arc<Self> {
        let observed = Observed {
            observer: observer.clone(),
            kind: kind(exchange, target),
            begun: Instant::now(),
            dry_run: dry_run(exchange),
            event: (!observer.logs.is_empty()).then(|| Mutex::new(event(exchange, target))),
            route: OnceLock::new(),
            answer: OnceLock::new(),
        };
        observed.write(Stage::RequestReceived);
        Arc::new(observed)
    }

    pub fn kind(&self) -> Kind {
        self.kind
    }

    /// The request is for something that is served.
    pub fn routed(&self, route: Route) {
        let gauge = (self.kind == Kind::LongRunning).then(|| self.observer.metrics.long_running(&route));
        if let Some(gauge) = &gauge {
            gauge.inc();
        }
        if let Err((_, Some(gauge))) = self.route.set((route, gauge)) {
            gauge.dec();
        }
    }

    /// The request is sent in another's name.
    pub fn impersonated(&self, impersonated: &Impersonated) {
        self.with_event(|event| {
            event.impersonated = Some(impersonated.user.clone());
            event.impersonation_constraint.clone_from(&impersonated.constraint);
        });
    }

    /// Whether the user may do it.
    pub fn decided(&self, decision: &Decision) {
        let (decided, reason) = match decision {
            Decision::Allow { reason } => ("allow", reason),
            Decision::Deny { reason } => ("forbid", reason),
        };
        self.annotate("authorization.k8s.io/decision", decided);
        self.annotate("authorization.k8s.io/reason", reason);
    }

    /// Adds an annotation to the last line of the audit log.
    pub fn annotate(&self, name: impl Into<Cow<'static, str>>, text: &str) {
        self.with_event(|event| event.annotations.push((name.into(), text.to_owned())));
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

    /// The head of the answer is known; of a watch, the second line of the audit log is written.
    pub fn answered(&self, code: u16, size_bytes: Option<u64>) {
        // The first answer counts.
        _ = self.answer.set(Answer { code, size_bytes });
        self.with_event(|event| event.code = code);
        if self.kind == Kind::LongRunning {
            self.write(Stage::ResponseStarted);
        }
    }

    fn with_event(&self, change: impl FnOnce(&mut Event)) {
        if let Some(event) = &self.event {
            change(&mut event.lock().unwrap_or_else(PoisonError::into_inner));
        }
    }

    fn write(&self, stage: Stage) {
        let now = Timestamp::now();
        self.with_event(|event| self.observer.logs.iter().for_each(|log| log.write(event, stage, now)));
    }
}

impl Drop for Observed {
    fn drop(&mut self) {
        /// What the audit log says of a client that did not wait for its answer.
        const CLOSED_EARLY: &str = "Connection closed early";
        if self.answer.get().is_none() {
            self.with_event(|event| {
                event.code = 200;
                event.failure = Some(Status::plain(200, CLOSED_EARLY));
            });
        }
        self.write(Stage::ResponseComplete);
        let Some((route, gauge)) = self.route.take() else { return };
        if let Some(gauge) = gauge {
            gauge.dec();
        }
        if let Some(Answer { code, size_bytes }) = self.answer.get().copied() {
            self.observer.metrics.answered(route, self.dry_run, code, self.begun.elapsed(), size_bytes);
        }
    }
}

fn kind(exchange: &Exchange, target: Option<&Target>) -> Kind {
    match target {
        Some(Target::Resource(path)) => match exchange.verb(path) {
            Verb::Watch | Verb::Proxy => Kind::LongRunning,
            Verb::Get | Verb::List => Kind::ReadOnly,
            _ => Kind::Mutating,
        },
        // A document is read, whatever the method; no more than that is behind it.
        _ => Kind::ReadOnly,
    }
}

fn event(exchange: &Exchange, target: Option<&Target>) -> Event {
    let (verb, object) = match target {
        Some(Target::Resource(path)) => {
            let verb = exchange.verb(path);
            let object = ObjectReference {
                group: path.group.clone(),
                version: path.version.clone(),
                resource: path.resource.clone(),
                subresource: path.subresource.clone(),
                namespace: path.namespace.clone(),
                name: exchange.object_name(path, verb).into_owned(),
            };
            (verb.as_str().to_owned(), Some(object))
        }
        _ => (exchange.method.as_str().to_lowercase(), None),
    };
    Event {
        id: exchange.audit_id.clone(),
        uri: exchange.uri.clone(),
        verb,
        user: exchange.user.clone(),
        source_ips: exchange.source_ips.clone(),
        user_agent: exchange.user_agent.clone(),
        object,
        received: Timestamp::now(),
        ..Event::default()
    }
}

/// `All` for what is not to be done, `invalid` for what can't be told.
fn dry_run(exchange: &Exchange) -> &'static str {
    match exchange.query.all("dryRun").map(|value| value == "All").reduce(|one, other| one && other) {
        None => "",
        Some(true) => "All",
        Some(false) => "invalid",
    }
}

/// The labels of a request for a resource that is served.
pub(super) fn resource_route(exchange: &Exchange, path: &ResourcePath, verb: Verb) -> Route {
    let verb_label = match verb {
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Watch => "WATCH",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch if exchange.content_type == "application/apply-patch+yaml" => "APPLY",
        Verb::Patch => "PATCH",
        Verb::Delete | Verb::DeleteCollection => "DELETE",
        Verb::Proxy | Verb::Unsupported => "other",
    };
    let scope = match (path.name.is_empty() && verb != Verb::Create, path.namespace.is_empty()) {
        (false, _) => "resource",
        (true, false) => "namespace",
        (true, true) => "cluster",
    };
    Route {
        verb: verb_label,
        group: path.group.clone(),
        version: path.version.clone(),
        resource: path.resource.clone(),
        subresource: path.subresource.clone(),
        scope,
        ..Route::default()
    }
}

/// The labels of a request for a document that there is.
pub(super) fn document_route(target: &Target) -> Route {
    use super::path::Probe;
    let (group, version, path) = match target {
        Target::Group(group) => (group.clone(), String::new(), ""),
        Target::GroupVersion { group, version } => (group.clone(), version.clone(), ""),
        Target::Probe { probe: Probe::Healthz, .. } => (String::new(), String::new(), "/healthz"),
        Target::Probe { probe: Probe::Livez, .. } => (String::new(), String::new(), "/livez"),
        Target::Probe { probe: Probe::Readyz, .. } => (String::new(), String::new(), "/readyz"),
        Target::Version => (String::new(), String::new(), "/version"),
        Target::Metrics => (String::new(), String::new(), "/metrics"),
        Target::Issuer => (String::new(), String::new(), "/.well-known/openid-configuration"),
        Target::IssuerKeys => (String::new(), String::new(), "/openid/v1/jwks"),
        Target::OpenApiV2 => (String::new(), String::new(), "/openapi/v2"),
        Target::OpenApiV3Index | Target::OpenApiV3(_) => (String::new(), String::new(), "/openapi/v3"),
        Target::CoreVersions => (String::new(), String::new(), "/api"),
        Target::Groups => (String::new(), String::new(), "/apis"),
        Target::Root | Target::Resource(_) | Target::Undetermined | Target::Unknown => Default::default(),
    };
    Route { verb: "GET", group, version, subresource: path.to_owned(), ..Route::default() }
}
