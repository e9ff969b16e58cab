//! `/skiff/v1/faults`: makes, shows and removes faults of this control plane.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Method;

use crate::meta::Status;
use crate::object;
use crate::value::{Value, json};

use super::super::app::App;
use super::super::exchange::Exchange;
use super::super::faults::{self, Active, FAULTS_MAX, TooMany};
use super::SkiffAnswer;

const JSON: &str = "application/json";
/// How long the text of a fault may be: all faults are kept in memory, and every request is compared with them.
const FAULT_BYTES_MAX: usize = 16 << 10;
/// What a fault takes beside its texts.
const FAULT_BYTES: usize = 512;

pub(super) async fn serve(app: &App, exchange: &Exchange, id: Option<&str>, body: Body) -> SkiffAnswer {
    match (&exchange.method, id) {
        (&Method::POST, None) => {
            let (text_bytes, value) = read(app, exchange, body).await?;
            let fault = faults::decode(&value);
            let fault = fault.map_err(|why| Status::bad_request(&format!("the fault is invalid: {why}")))?;
            let too_many = |TooMany| Status::bad_request(&format!("there are {FAULTS_MAX} faults, which is the most"));
            let counted = app.registry.memory.for_fault(FAULT_BYTES + text_bytes)?;
            Ok((201, show(&*app.faults.add(fault, counted).map_err(too_many)?)))
        }
        (&Method::GET, None) => Ok((200, items(&app.faults.list()))),
        (&Method::DELETE, None) => Ok((200, items(&app.faults.remove(|_| true)))),
        (&Method::GET, Some(id)) => {
            let found = number(id).and_then(|number| app.faults.get(number)).ok_or_else(|| not_found(id))?;
            Ok((200, show(&found)))
        }
        (&Method::DELETE, Some(id)) => {
            let removed = number(id).map(|number| app.faults.remove(|active| active.id() == number));
            let removed = removed.and_then(|removed| removed.into_iter().next()).ok_or_else(|| not_found(id))?;
            Ok((200, show(&removed)))
        }
        _ => Err(Status::method_not_allowed_generic()),
    }
}

/// The length of the body of a request, and its value: JSON in which no name is given twice.
async fn read(app: &App, exchange: &Exchange, body: Body) -> Result<(usize, Value), Status> {
    let media_type = exchange.content_type.split(';').next().unwrap_or_default().trim();
    if !matches!(media_type, "" | JSON) {
        return Err(Status::unsupported_media_type(&format!("the body must be {JSON}, not {media_type}")));
    }
    let bytes = exchange.read_body(&app.registry.memory, body).await?;
    if bytes.len() > FAULT_BYTES_MAX {
        return Err(Status::request_entity_too_large(&format!("limit is {FAULT_BYTES_MAX}")));
    }
    let (value, repeated) =
        json::decode_strict(&bytes).map_err(|error| Status::bad_request(&format!("the body is not JSON: {error}")))?;
    if repeated.is_empty() { Ok((bytes.len(), value)) } else { Err(Status::bad_request("the body has a field twice")) }
}

fn items(all: &[Arc<Active>]) -> Value {
    object! { "items" => Value::Array(all.iter().map(|active| show(active)).collect()) }
}

/// The fault, its id and how often it took effect.
fn show(active: &Active) -> Value {
    let mut value = active.fault().to_value();
    let fields = value.make_object();
    fields.insert("id", Value::from(active.id().to_string()));
    fields.insert("hits", Value::Int(i64::try_from(active.hits()).unwrap_or(i64::MAX)));
    value
}

/// An id exactly as it was issued: no other spelling names a fault.
fn number(id: &str) -> Option<u64> {
    id.parse().ok().filter(|number: &u64| number.to_string() == id)
}

fn not_found(id: &str) -> Status {
    Status::not_found("skiff.kubeskiff.dev", "faults", id)
}
