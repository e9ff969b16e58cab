//! What is kept of every request: figures, and lines of the audit log.
//!
//! An [`Observed`] goes along with its request and, where that is a watch, with its stream. What is known at its end is
//! told when it is dropped; so a request that its client gave up is told, too.

use std::borrow::Cow;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Instant;

use jiff::Timestamp;
use prometheus_client::metrics::gauge::Gauge;

use crate::audit::{Event, Log, Stage};
use crate::auth::Decision;
use crate::meta::Status;

use super::impersonation::Impersonated;
use super::limits::RequestKind;
use super::metrics::{Metrics, Route};

/// Whom it is told.
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
    /// Begins to observe a request; the first line of the audit log is written. `event` is asked for where there is a log.
    pub fn begin(
        observer: &Observer,
        kind: RequestKind,
        dry_run: &'static str,
        event: impl FnOnce() -> Event,
    ) -> Arc<Self> {
        let observed = Observed {
            observer: observer.clone(),
            kind,
            begun: Instant::now(),
            dry_run,
            event: (!observer.logs.is_empty()).then(|| Mutex::new(event())),
            route: OnceLock::new(),
            answer: OnceLock::new(),
        };
        observed.write(Stage::RequestReceived);
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
        if self.kind == RequestKind::LongRunning {
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
