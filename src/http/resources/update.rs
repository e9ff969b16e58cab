//! PUT.

use axum::body::Body;
use axum::http::Response;

use crate::meta::Status;
use crate::registry::{Body as RequestBody, Subresource, Target, UpdateRequest};

use super::super::app::App;
use super::super::exchange::Exchange;
use super::super::query::WriteOptions;
use super::refusal::RequestRefusal;
use super::sent::{body_format, content, manager, settled};
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
    let bytes = exchange.read_body(&app.registry.memory, body).await?;
    // Unlike a POST, a PUT is asked about its options before its type.
    let options = WriteOptions::update(&exchange.query)?;
    let request = UpdateRequest {
        body: RequestBody { bytes, format: body_format(exchange)? },
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
