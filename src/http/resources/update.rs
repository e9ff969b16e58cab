//! PUT.

use axum::body::Body;
use axum::http::Response;

use crate::meta::Status;
use crate::registry::{Subresource, Target, UpdateRequest};

use super::super::app::App;
use super::super::exchange::Exchange;
use super::super::query::WriteOptions;
use super::refusal::RequestRefusal;
use super::sent::{content, manager, request_body, settled};
use super::{negotiate, object};

pub(super) async fn update(
    app: &App,
    exchange: &Exchange,
    target: &Target,
    body: Body,
) -> Result<Response<Body>, RequestRefusal> {
    if target.name.is_empty() {
        return Err(Status::bad_request("name must be provided").into());
    }
    let (format, shape) = negotiate(app, exchange, target)?;
    let bytes = request_body(app, exchange, body).await?;
    let options = WriteOptions::update(&exchange.query)?;
    let request = UpdateRequest {
        body: bytes,
        field_validation: options.field_validation,
        manager: manager(exchange, &options),
        dry_run: options.dry_run,
        options: options.encoded,
    };
    let mut warnings = exchange.warnings_of_object();
    let result = match target.subresource {
        Subresource::Scale => app.registry.update_scale(target, &exchange.user, &request, &mut warnings).await,
        _ => app.registry.update(target, &exchange.user, &request, &mut warnings).await,
    };
    exchange.warn(warnings);
    let written = settled(app, target, result).await?;
    let code = if written.created { 201 } else { 200 };
    let content = content(format, &shape, written);
    object(exchange, target, code, format, &shape, content)
}
