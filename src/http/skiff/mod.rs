//! `/skiff/v1/…`: features for tests that Kubernetes has no API for: other control planes of the process, the clock,
//! and faults of requests.
//!
//! Input: JSON, out: JSON, and a `Status` for what can't be done. A user needs permission for the path and the method,
//! as for any path that is not a resource. None of it is in discovery, as Kubernetes clients have no use for it.

mod clock;
mod faults;
mod planes;

use axum::body::Body;
use axum::http::{Method, Response};

use super::answer;
use super::app::App;
use super::exchange::Exchange;
use crate::meta::Status;
use crate::value::{Map, Value, json};

/// An answer with its code and its JSON, or an error Status.
type SkiffAnswer = Result<(u16, Value), Status>;

/// Answers a request for `path`, without the prefix [`SKIFF_PREFIX`](super::path::SKIFF_PREFIX).
pub(super) async fn serve(app: &App, exchange: &Exchange, path: &str, body: Body) -> Response<Body> {
    match answer(app, exchange, path, body).await {
        Ok((code, value)) => {
            let mut bytes = json::encode(&value);
            bytes.push(b'\n');
            answer::body(exchange, code, "application/json", bytes)
        }
        Err(status) => answer::status(exchange, &status),
    }
}

async fn answer(app: &App, exchange: &Exchange, path: &str, body: Body) -> SkiffAnswer {
    let method = &exchange.method;
    let mut parts = path.split('/').filter(|part| !part.is_empty());
    match (parts.next(), parts.next(), parts.next()) {
        (Some("clock"), None, _) if *method == Method::GET => Ok(clock::show(app)),
        (Some("clock"), None, _) if *method == Method::PUT => {
            clock::set(app, &fields(app, exchange, body, &clock::FIELDS).await?)
        }
        (Some("faults"), id, None) => faults::serve(app, exchange, id, body).await,
        (Some("planes"), None, _) if *method == Method::GET => planes::list(app),
        (Some("planes"), None, _) if *method == Method::POST => {
            // If no control planes can be created, that is the answer, even if the body is invalid.
            let all = planes::all(app)?;
            planes::create(all, &fields(app, exchange, body, &planes::FIELDS).await?).await
        }
        (Some("planes"), Some(name), None) if *method == Method::GET => planes::get(app, name),
        (Some("planes"), Some(name), None) if *method == Method::DELETE => planes::delete(app, name).await,
        (Some("clock"), None, _) => Err(Status::method_not_allowed_generic()),
        (Some("planes"), _, None) if app.planes.is_some() => Err(Status::method_not_allowed_generic()),
        _ => Err(Status::not_found_generic()),
    }
}

/// The fields of a body that is a JSON object, or empty; each is one of `known`.
async fn fields(app: &App, exchange: &Exchange, body: Body, known: &[&str]) -> Result<Map, Status> {
    let bytes = exchange.read_body(&app.registry.memory, body).await?;
    if bytes.is_empty() {
        return Ok(Map::default());
    }
    let body = json::decode(&bytes).map_err(|error| Status::bad_request(&format!("the body is not JSON: {error}")))?;
    let Value::Object(fields) = body else { return Err(Status::bad_request("the body is not a JSON object")) };
    if let Some((unknown, _)) = fields.iter().find(|(name, _)| !known.contains(name)) {
        let unknown = crate::value::go_quote(unknown);
        return Err(Status::bad_request(&format!("unknown field {unknown}; known are: {}", known.join(", "))));
    }
    Ok(fields)
}

/// A field that is text; `None` where it is absent or null.
fn text<'f>(fields: &'f Map, name: &str) -> Result<Option<&'f str>, Status> {
    match fields.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(text)) => Ok(Some(text)),
        Some(_) => Err(Status::bad_request(&format!("the field `{name}` is not a string"))),
    }
}
