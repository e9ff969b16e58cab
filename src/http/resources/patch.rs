//! PATCH.

use axum::body::Body;
use axum::http::Response;

use crate::meta::Status;
use crate::meta::minor::Minor;
use crate::registry::{PatchRequest, PatchType, Target, Warnings};

use super::super::app::App;
use super::super::exchange::Exchange;
use super::super::negotiate::PatchMediaType;
use super::super::query::WriteOptions;
use super::refusal::RequestRefusal;
use super::sent::{content, manager, settled};
use super::{negotiate, object};

pub(super) async fn patch(
    app: &App,
    exchange: &Exchange,
    target: &Target,
    body: Body,
) -> Result<Response<Body>, RequestRefusal> {
    let supported =
        if target.resource.definition.is_some() { PatchMediaType::CUSTOM } else { PatchMediaType::BUILT_IN };
    let patch_type = PatchMediaType::decode(&exchange.content_type, supported)
        .map_err(|error| Status::unsupported_media_type(&error.to_string()))?;
    if target.name.is_empty() {
        return Err(Status::bad_request("name must be provided").into());
    }
    let (format, shape) = negotiate(app, exchange, target)?;
    let bytes = exchange.read_body(&app.registry.memory, body).await?;
    let options = WriteOptions::patch(&exchange.query, patch_type == PatchMediaType::Apply)?;
    // Before 1.37, Kubernetes lost the event of an apply in YAML.
    let may_be_yaml = patch_type == PatchMediaType::Apply && target.version.minor >= Minor::of(37);
    exchange.observe(|observed| observed.sent_patch(&bytes, may_be_yaml));
    let request = PatchRequest {
        patch_type: match patch_type {
            PatchMediaType::Json => PatchType::Json,
            PatchMediaType::Merge => PatchType::Merge,
            PatchMediaType::Strategic => PatchType::StrategicMerge,
            PatchMediaType::Apply => PatchType::Apply,
        },
        bytes,
        field_validation: options.field_validation,
        manager: manager(exchange, &options),
        force: options.force,
        dry_run: options.dry_run,
        options: options.encoded,
    };
    let mut warnings = Warnings::default();
    let result = app.registry.patch(target, &exchange.user, &request, &mut warnings).await;
    exchange.warn(warnings);
    let written = settled(app, target, result).await?;
    let code = if written.created { 201 } else { 200 };
    let content = content(format, &shape, written);
    object(exchange, target, code, format, &shape, content)
}
