//! GET of one object.

use axum::body::Body;
use axum::http::Response;

use crate::meta::Status;
use crate::registry::{Subresource, Target};

use super::super::answer::Content;
use super::super::app::App;
use super::super::exchange::Exchange;
use super::super::query;
use super::refusal::Refusal;
use super::revision::{resource_version, revision};
use super::{negotiate, object};

pub(super) async fn get(app: &App, exchange: &Exchange, target: &Target) -> Result<Response<Body>, Refusal> {
    let (format, shape) = negotiate(exchange, target)?;
    let options = query::GetOptions::decode(&exchange.query)?;
    let revision = match options.resource_version.as_str() {
        "" => None,
        text => Some(revision(resource_version(text).map_err(|error| Status::plain(500, &error))?)),
    };
    let content = match target.subresource {
        Subresource::Scale => Content::Value(app.registry.get_value(target, revision).await?),
        _ => {
            let (stored, encoded) = app.registry.get(target, revision).await?;
            let mut bytes = Vec::with_capacity(encoded.len_max());
            encoded.write_to(&mut bytes, stored.revision);
            Content::Json(bytes)
        }
    };
    object(exchange, target, 200, format, &shape, content)
}

pub(super) async fn get_computed(app: &App, exchange: &Exchange, target: &Target) -> Result<Response<Body>, Refusal> {
    let (format, shape) = negotiate(exchange, target)?;
    let (services, _) = app.registry.api_services().await?;
    let found = services.into_iter().find(|service| service.str_at(&["metadata", "name"]) == target.name);
    let (group, plural) = (&target.version.group, &target.version.names.plural);
    let service = found.ok_or_else(|| Status::not_found(group, plural, &target.name))?;
    object(exchange, target, 200, format, &shape, Content::Value(service))
}
