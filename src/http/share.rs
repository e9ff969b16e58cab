//! A request's share of the processors: how much it is expected to take, and the answer if it is ended.

use std::borrow::Cow;
use std::future::Future;
use std::panic::resume_unwind;
use std::sync::Arc;
use std::task::Poll;

use axum::body::{Body, HttpBody as _};
use axum::http::{HeaderValue, Response, header};
use tokio::task::JoinHandle;

use super::answer;
use super::app::App;
use super::around::around;
use super::exchange::Exchange;
use super::limits::{RequestKind, TOO_MANY_REQUESTS};
use super::observe::Observed;
use super::path::Target;
use crate::meta::Status;
use crate::processor::{BUDGET, ExpectedWork, Share, StreamTurn, meter, stream_meter};
use crate::work::{Broken, Ended};

/// How many seconds clients are told to wait.
const RETRY_AFTER: &str = "1";
/// The message of kube-apiserver for a request that panics.
const PANICKED: &str = "This request caused apiserver to panic. Look in the logs for details.\n";
/// Why a body ends before it is whole.
const BROKEN_OFF: &str = "the answer took too long to make";
/// From this length on, bodies of unknown content are expected to take long.
const LONG_BODY_BYTES: usize = 32 << 10;

/// The share of a request.
pub(super) fn of(app: &App, exchange: &Exchange, target: Option<&Target>, kind: RequestKind) -> Arc<Share> {
    let processor = &app.processor;
    let guess = if exchange.content_length >= LONG_BODY_BYTES { ExpectedWork::Long } else { ExpectedWork::Short };
    let method = exchange.method.as_str();
    let user = &user(app, exchange);
    match target {
        Some(Target::Resource(path)) if kind == RequestKind::Mutating => {
            let size_class = exchange.content_length.checked_ilog2();
            let kind = (method, &path.group, &path.resource, &path.subresource, size_class);
            processor.share_of_change(user, kind, guess)
        }
        _ => {
            let kind = (method, told_apart_by(exchange, target), &exchange.accept, &exchange.accept_encoding);
            processor.share(user, kind, guess)
        }
    }
}

/// The user whose share of the processors a request takes. Users with the same name in two control planes are different
/// users.
fn user<'e>(app: &App, exchange: &'e Exchange) -> Cow<'e, str> {
    match &*app.plane {
        "" => Cow::Borrowed(exchange.user.sharer()),
        plane => Cow::Owned(format!("{plane}/{}", exchange.user.sharer())),
    }
}

/// The turns of an answer that is made while it is sent.
pub(super) fn stream_turn(app: &App, exchange: &Exchange) -> StreamTurn {
    app.processor.stream_turn(&user(app, exchange))
}

/// What tells apart the reads of a user that may take different times: a document is the same whatever its query is.
fn told_apart_by<'e>(exchange: &'e Exchange, target: Option<&Target>) -> &'e str {
    match target {
        Some(Target::Resource(_) | Target::Skiff(_)) => &exchange.uri,
        _ => &exchange.path,
    }
}

/// Runs the work on a request in a task of its own, which is cancelled when nobody waits for it any more.
pub(super) async fn apart(
    share: Arc<Share>,
    work: impl Future<Output = Response<Body>> + Send + 'static,
) -> Response<Body> {
    let mut task = AbortOnDrop { share, work: tokio::spawn(work) };
    match (&mut task.work).await {
        Ok(response) => response,
        Err(error) => match error.try_into_panic() {
            Ok(payload) => resume_unwind(payload),
            // The server is stopping.
            Err(_) => Response::new(Body::empty()),
        },
    }
}

struct AbortOnDrop {
    share: Arc<Share>,
    work: JoinHandle<Response<Body>>,
}

impl Drop for AbortOnDrop {
    fn drop(&mut self) {
        self.share.cancel();
        self.work.abort();
    }
}

/// The answer to a request that was broken off; `is_change` is whether it changes one object.
pub(super) fn broken_off(exchange: &Exchange, observed: &Observed, is_change: bool, broken: Broken) -> Response<Body> {
    match broken {
        Broken::Ended(Ended::Overload) => too_many_requests(exchange, observed),
        Broken::Ended(Ended::Budget) => {
            observed.terminated(504);
            let why = format!("request did not complete within {} s of processor time", BUDGET.as_secs());
            answer::status(exchange, &Status::timeout(&why))
        }
        Broken::Ended(Ended::Deadline) => out_of_time(exchange, observed, is_change),
        // Nobody gets it, and it is not counted.
        Broken::Ended(Ended::Cancelled) => answer::timed_out(exchange),
        Broken::Panicked(_) => {
            tracing::error!(audit_id = exchange.audit_id, "a request panicked");
            answer::text(exchange, 500, PANICKED)
        }
    }
}

/// The answer to a request that was not answered in time; `is_change` is whether it changes one object: then the verb
/// itself tells so.
pub(super) fn out_of_time(exchange: &Exchange, observed: &Observed, is_change: bool) -> Response<Body> {
    const CHANGE_ENDED: &str = "request did not complete within requested timeout - context deadline exceeded";
    observed.terminated(504);
    if is_change { answer::status(exchange, &Status::timeout(CHANGE_ENDED)) } else { answer::timed_out(exchange) }
}

/// The answer if there is no room for a request.
pub(super) fn too_many_requests(exchange: &Exchange, observed: &Observed) -> Response<Body> {
    observed.terminated(429);
    let mut refusal = answer::text(exchange, 429, format!("{TOO_MANY_REQUESTS}\n"));
    refusal.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static(RETRY_AFTER));
    refusal.headers_mut().insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    refusal
}

/// An answer whose body is made while it is sent: where that takes long, it leaves its thread, and it has a budget of its
/// own, unless it goes on for long by its nature. Before a part, it waits for a turn if others took long. One that is
/// ended breaks off, so that its client sees that it is not whole.
pub(super) fn while_sent(app: &App, of: &Share, kind: RequestKind, response: Response<Body>) -> Response<Body> {
    if response.body().size_hint().exact().is_some() {
        return response;
    }
    let mut meter = match kind {
        RequestKind::LongRunning => stream_meter(),
        RequestKind::ReadOnly | RequestKind::Mutating => meter(&app.processor.share_of_body(of)),
    };
    let mut turn = app.processor.stream_turn(of.user());
    around(response, move |body, context| {
        turn.poll(context, |context| match meter.run(|| body.poll_frame(context)) {
            Ok(polled) => polled,
            Err(Broken::Panicked(payload)) => resume_unwind(payload),
            Err(Broken::Ended(_)) => Poll::Ready(Some(Err(axum::Error::new(BROKEN_OFF)))),
        })
    })
}

#[cfg(test)]
mod tests {
    use axum::http::Request;

    use super::super::path;
    use super::*;

    #[test]
    fn documents_are_not_told_apart_by_their_queries() {
        let told = |uri: &str| {
            let request = Request::builder().uri(uri).body(Body::empty()).expect("it is a request");
            let (exchange, _) = Exchange::read(request);
            told_apart_by(&exchange, path::parse(&exchange.path).ok().as_ref()).to_owned()
        };
        for path in ["/openapi/v2", "/openapi/v3", "/openapi/v3/apis/apps/v1", "/apis", "/apis/apps/v1", "/nope"] {
            assert_eq!(told(&format!("{path}?x=1")), path);
        }
        for uri in ["/api/v1/pods?limit=1", "/skiff/v1/export?kind=Pod"] {
            assert_eq!(told(uri), uri);
        }
    }
}
