//! The one fallback: from a path to what answers it.

use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::http::Response;

use crate::auth::{Attributes, Authorizer, Decision};
use crate::meta::Status;
use crate::registry::Registry;

use super::exchange::Exchange;
use super::path::{self, BAD_REQUEST_TEXT, NOT_FOUND_TEXT, Target};
use super::{answer, documents, resources};

/// How long a request may take. A watch is answered at once and then goes on.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(60);

/// What requests are answered from.
pub struct App {
    pub registry: Arc<Registry>,
    pub authorizer: Arc<dyn Authorizer>,
    pub(super) documents: documents::Documents,
}

impl App {
    pub fn new(registry: Arc<Registry>, authorizer: Arc<dyn Authorizer>) -> Self {
        App { registry, authorizer, documents: documents::Documents::default() }
    }
}

/// Everything that is served.
pub fn router(app: App) -> Router {
    Router::new().fallback(handle).with_state(Arc::new(app))
}

async fn handle(State(app): State<Arc<App>>, request: Request) -> Response<Body> {
    let (exchange, body) = Exchange::read(request);
    match tokio::time::timeout(REQUEST_TIMEOUT, answer(&app, &exchange, body)).await {
        Ok(response) => response,
        Err(_) => answer::status(&exchange, &Status::timeout("request did not complete within the allowed duration")),
    }
}

async fn answer(app: &App, exchange: &Exchange, body: Body) -> Response<Body> {
    let Ok(target) = path::parse(&exchange.path) else { return answer::text(exchange, 400, BAD_REQUEST_TEXT) };
    if let Target::Resource(path) = target {
        return resources::serve(app, exchange, path, body).await;
    }
    if let Target::Probe { .. } = target {
        return answer::text(exchange, 200, "ok");
    }
    let verb = exchange.method.as_str().to_lowercase();
    let attributes = Attributes::Path { verb: &verb, path: &exchange.path };
    if let Decision::Deny { reason } = app.authorizer.authorize(&exchange.user, &attributes) {
        let why = attributes.refusal(&exchange.user, &reason);
        return answer::status(exchange, &Status::forbidden_path(&why));
    }
    match target {
        Target::Undetermined => answer::text(exchange, 500, path::undetermined(&exchange.uri)),
        Target::Unknown => answer::text(exchange, 404, NOT_FOUND_TEXT),
        target => documents::serve(app, exchange, &target).await,
    }
}
