//! GET of a collection's changes.

use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::http::Response;

use crate::memory::Full;
use crate::meta::Status;
use crate::meta::gate::Gate;
use crate::registry::{Start, Target, WatchRequest};

use super::super::app::App;
use super::super::exchange::{Exchange, no_memory};
use super::super::faults::FaultSubject;
use super::super::negotiate::stream;
use super::super::share;
use super::super::watch_stream::{self, Frames};
use super::list::{list_options, past};
use super::negotiate;
use super::refusal::RequestRefusal;
use super::revision::{resource_version, revision};

/// A watch that names no timeout ends after this long, and up to twice that.
const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(30 * 60);

/// A hundred years: the end of a longer watch could not be expressed.
const WATCH_TIMEOUT_MAX: Duration = Duration::from_hours(100 * 365 * 24);

pub(super) async fn watch(app: &App, exchange: &Exchange, target: Target) -> Result<Response<Body>, RequestRefusal> {
    let (format, shape) = negotiate(app, exchange, &target)?;
    let (options, select) = list_options(exchange, &target)?;
    let given = match options.resource_version.as_str() {
        "" => None,
        text => Some(resource_version(text).map_err(|error| Status::plain(500, &error.to_string()))?),
    };
    // The reference decides on the form of the answer once the watch has begun.
    shape.check()?;
    let format = stream(format).map_err(|error| Status::not_acceptable(&error.to_string()))?;
    let start = match (options.send_initial_events, given) {
        (Some(true), given) => Start::State(given.filter(|given| *given > 0).map(revision)),
        (Some(false), None | Some(0)) => Start::Now,
        (None, None | Some(0)) => Start::State(None),
        (_, Some(given)) => Start::After(revision(given)),
    };
    let start = match start {
        Start::State(None) if given == Some(0) => past(app, exchange, &target).await?.map_or(start, Start::Past),
        start => start,
    };
    let timeout = match options.timeout_seconds {
        None | Some(0) => WATCH_TIMEOUT_MIN + WATCH_TIMEOUT_MIN.mul_f64(spread()),
        // A negative one has passed already.
        Some(seconds) => Duration::from_secs(u64::try_from(seconds).unwrap_or_default()).min(WATCH_TIMEOUT_MAX),
    };
    let request = WatchRequest {
        start,
        select,
        bookmarks: options.allow_watch_bookmarks,
        marks_initial_end: options.send_initial_events == Some(true),
        timeout,
        user: exchange.limited_user().map(Arc::from),
    };
    let selectors_bytes = request.select.labels.size_bytes() + request.select.fields.size_bytes();
    let reserved =
        app.registry.memory.for_watch(exchange.limited_user(), selectors_bytes).map_err(|Full| no_memory())?;
    let watch = app.registry.watch(&target, &request).await?.read_by(exchange.limited_user());
    let version = &target.version;
    let counters = app.observer.metrics.watch(&version.group, &version.version, &version.names.plural);
    let faults = app.faults.follow(FaultSubject {
        verb: "watch".to_owned(),
        group: version.group.clone(),
        resource: version.names.plural.clone(),
        namespace: target.namespace.clone(),
        name: request.select.fields.requires_exact("metadata.name").unwrap_or_default().to_owned(),
        user: exchange.user.name.clone(),
        path: exchange.path.clone(),
        ..FaultSubject::default()
    });
    let compresses = options.is_watch_list() && version.minor.opens(Gate::WatchListCompression);
    let frames = Frames::new(exchange, format.encoding, shape, target, watch, (counters, faults), reserved);
    Ok(match &exchange.upgrade {
        Some(upgrade) => upgrade.answer(frames, share::stream_turn(app, exchange)),
        None => watch_stream::answer(exchange, format, frames, compresses),
    })
}

/// A random fraction between 0 and 1, so that watches that began together do not end together.
fn spread() -> f64 {
    let random = uuid::Uuid::new_v4().as_u128() as u32;
    f64::from(random) / f64::from(u32::MAX)
}
