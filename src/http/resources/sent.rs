//! What the changing verbs read from a request, and what they wait for.

use crate::meta::Status;
use crate::registry::{Format as BodyFormat, Target, Written};

use super::super::answer::AnswerContent;
use super::super::app::App;
use super::super::exchange::Exchange;
use super::super::negotiate::{AnswerFormat, Encoding, body_encoding};
use super::super::query::{WriteOptions, default_field_manager};
use super::super::shape::AnswerShape;
use super::refusal::RequestRefusal;

/// The format of a body, by the type that the client gives.
pub(super) fn body_format(exchange: &Exchange) -> Result<BodyFormat, RequestRefusal> {
    match body_encoding(&exchange.content_type) {
        Ok(Encoding::Json) => Ok(BodyFormat::Json),
        Ok(Encoding::Yaml) => Ok(BodyFormat::Yaml),
        Ok(Encoding::Protobuf) => Ok(BodyFormat::Protobuf),
        Err(error) => Err(Status::unsupported_media_type(&error.to_string()).into()),
    }
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
