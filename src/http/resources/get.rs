//! GET of one object.

use axum::body::Body;
use axum::http::Response;

use crate::kinds::Computed;
use crate::meta::Status;
use crate::registry::{Subresource, Target};

use super::super::answer::{AnswerContent, UNCOUNTED_BYTES_MAX};
use super::super::app::App;
use super::super::exchange::Exchange;
use super::super::negotiate::Encoding;
use super::super::query;
use super::list::{DECODED_COPIES, TEXT_COPIES};
use super::refusal::RequestRefusal;
use super::revision::{resource_version, revision};
use super::{negotiate, object};

pub(super) async fn get(app: &App, exchange: &Exchange, target: &Target) -> Result<Response<Body>, RequestRefusal> {
    let (format, shape) = negotiate(app, exchange, target)?;
    let options = query::GetOptions::decode(&exchange.query)?;
    let revision = match options.resource_version.as_str() {
        "" => None,
        text => Some(revision(resource_version(text).map_err(|error| unread(target, &error.to_string()))?)),
    };
    let content = match target.subresource {
        Subresource::Scale => AnswerContent::Value(app.registry.get_value(target, revision).await?),
        _ => {
            let (stored, encoded) = app.registry.get(target, revision).await?;
            if encoded.len_max() > UNCOUNTED_BYTES_MAX {
                let is_decoded = format.encoding != Encoding::Json || format.pretty || !shape.is_plain();
                let copies = if is_decoded { DECODED_COPIES } else { TEXT_COPIES };
                exchange.reserve_answer(&app.registry.memory, encoded.len_max().saturating_mul(copies)).await?;
            }
            AnswerContent::Json(encoded.to_bytes(stored.revision))
        }
    };
    object(exchange, target, 200, format, &shape, content)
}

/// The error for a text that is not a revision: events are read from the store, other resources from a cache.
fn unread(target: &Target, error: &str) -> Status {
    match target.version.names.plural.as_str() {
        "events" if target.resource.definition.is_none() => {
            Status::bad_request(&format!("invalid resource version: {error}"))
        }
        _ => Status::plain(500, error),
    }
}

pub(super) async fn get_computed(
    app: &App,
    exchange: &Exchange,
    (target, of): (&Target, Computed),
) -> Result<Response<Body>, RequestRefusal> {
    let (format, shape) = negotiate(app, exchange, target)?;
    let options = query::GetOptions::decode(&exchange.query)?;
    if matches!(of, Computed::Services(_)) && !options.resource_version.is_empty() {
        resource_version(&options.resource_version).map_err(|error| Status::plain(500, &error.to_string()))?;
    }
    let (objects, _) = app.registry.computed(of).await?;
    let found = objects.into_iter().find(|object| object.str_at(&["metadata", "name"]) == target.name);
    // The error for a missing component names its kind.
    let (group, plural) = match of {
        Computed::Services(_) => (target.version.group.as_str(), target.version.names.plural.as_str()),
        Computed::Components(_) => ("", target.version.names.singular.as_str()),
    };
    let found = found.ok_or_else(|| Status::not_found(group, plural, &target.name))?;
    object(exchange, target, 200, format, &shape, AnswerContent::Value(found))
}
