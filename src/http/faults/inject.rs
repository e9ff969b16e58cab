//! Applies a fault to a request.

use std::future::Future;

use axum::body::Body;
use axum::http::Response;

use crate::audit::FAULT;

use super::super::answer;
use super::super::app::App;
use super::super::exchange::Exchange;
use super::super::path::Target;
use super::error;
use super::fault::{Effect, Lost};
use super::matching::FaultSubject;

/// Marks an answer that is not sent: as one of its extensions, it makes the server cut the connection.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("the connection is cut, as a fault asks for it")]
pub struct Cut;

/// Answers a request by `serve`, unless a fault applies.
pub async fn answer<'a, F>(
    app: &'a App,
    exchange: &'a Exchange,
    target: Target,
    body: Body,
    serve: impl FnOnce(Target, Body) -> F,
) -> Response<Body>
where
    F: Future<Output = Response<Body>>,
{
    let met = match target {
        // Faults can always be removed, and health checks are not misled.
        Target::Skiff(_) | Target::Probe { .. } => None,
        _ => app.faults.meet(|| FaultSubject::of(exchange, &target)),
    };
    let Some(met) = met else { return serve(target, body).await };
    exchange.observe(|observed| observed.annotate(FAULT, &met.label()));
    if !met.fault.delay.is_zero() {
        tokio::time::sleep(met.fault.delay).await;
    }
    match &met.fault.effect {
        Some(Effect::Error(failure)) => {
            let status = error::status(app, exchange, &target, failure, body).await;
            if status.code == 403 { answer::denial(exchange, &status) } else { answer::status(exchange, &status) }
        }
        Some(Effect::Lose(Lost::Request)) => cut(answer::text(exchange, 500, "")),
        Some(Effect::Lose(Lost::Answer)) => cut(serve(target, body).await),
        Some(Effect::Stale(changes)) => {
            // It is set only here.
            _ = exchange.stale_by.set(*changes);
            serve(target, body).await
        }
        Some(Effect::Conflict) => {
            if let Target::Resource(path) = &target
                && let Err(status) = app.registry.touch(&path.group, &path.resource, &path.namespace, &path.name).await
            {
                return answer::status(exchange, &status);
            }
            serve(target, body).await
        }
        // Faults of watches take effect while the watches are open.
        Some(Effect::Watch { .. }) | None => serve(target, body).await,
    }
}

fn cut(mut answer: Response<Body>) -> Response<Body> {
    answer.extensions_mut().insert(Cut);
    answer
}
