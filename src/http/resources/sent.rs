//! What the changing verbs read from a request, and what they wait for.

use axum::body::Body;

use crate::meta::Status;
use crate::registry::{Body as RequestBody, Format as BodyFormat, Target, Written};

use super::super::answer::AnswerContent;
use super::super::app::App;
use super::super::exchange::Exchange;
use super::super::negotiate::{AnswerFormat, Encoding, body_encoding};
use super::super::query::{WriteOptions, default_field_manager};
use super::super::shape::AnswerShape;
use super::refusal::RequestRefusal;

pub(super) async fn request_body(app: &App, exchange: &Exchange, body: Body) -> Result<RequestBody, RequestRefusal> {
    let format = match body_encoding(&exchange.content_type) {
        Ok(Encoding::Json) => BodyFormat::Json,
        Ok(Encoding::Yaml) => BodyFormat::Yaml,
        Ok(Encoding::Protobuf) => BodyFormat::Protobuf,
        Err(error) => return Err(Status::unsupported_media_type(&error.to_string()).into()),
    };
    Ok(RequestBody { bytes: exchange.read_body(&app.registry.memory, body).await?, format })
}

pub(super) fn manager(exchange: &Exchange, options: &WriteOptions) -> String {
    if options.field_manager.is_empty() {
        default_field_manager(&exchange.user_agent)
    } else {
        options.field_manager.clone()
    }
}

/// The written object, in the form of the answer.
pub(super) fn content(format: AnswerFormat, shape: &AnswerShape, written: Written) -> AnswerContent {
    match written.encoded {
        Some((encoded, revision)) if shape.transform.is_none() && format.encoding == Encoding::Json => {
            AnswerContent::Json(encoded.to_bytes(revision))
        }
        _ => AnswerContent::Value(written.object),
    }
}

/// The written object, once it can be used.
pub(super) async fn settled(app: &App, target: &Target, written: Result<Written, Status>) -> Result<Written, Status> {
    let written = written?;
    app.registry.settle(target, &written.object).await;
    Ok(written)
}
