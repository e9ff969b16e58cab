//! DELETE of one object.

use axum::body::Body;
use axum::http::Response;

use crate::auth::{Attributes, ResourceAttributes};
use crate::meta::Status;
use crate::meta::gate::Gate;
use crate::registry::{DeleteRequest, Deletion, Target, Warnings};
use crate::value::{Value, json, yaml};

use super::super::answer::{self, AnswerContent};
use super::super::app::App;
use super::super::delete_options;
use super::super::exchange::Exchange;
use super::super::negotiate::{AnswerFormat, Encoding, body_encoding};
use super::refusal::RequestRefusal;
use super::{negotiate, object};

pub(super) async fn delete(
    app: &App,
    exchange: &Exchange,
    target: &Target,
    body: Body,
) -> Result<Response<Body>, RequestRefusal> {
    let (format, shape) = negotiate(app, exchange, target)?;
    let options = delete_options(app, exchange, target, body).await?;
    if options.ignore_store_read_error == Some(true) {
        authorize_unsafe_delete(app, exchange, target).await?;
    }
    let mut warnings = Warnings::default();
    let outcome = app.registry.delete(target, &exchange.user, &deletion(&options), &mut warnings).await;
    exchange.warn(warnings);
    match outcome? {
        Deletion::Gone(status) => {
            // The reference creates that Status elsewhere, with its code.
            let code = (options.ignore_store_read_error == Some(true)).then_some(200);
            Ok(success(exchange, format, &status, code))
        }
        Deletion::Removed(value) => object(exchange, target, 200, format, &shape, AnswerContent::Value(value)),
        Deletion::Stays(value) => {
            let code = if options.orphan_dependents == Some(false) { 202 } else { 200 };
            object(exchange, target, code, format, &shape, AnswerContent::Value(value))
        }
    }
}

/// The answer of a deletion that shows no objects; some have a `code` in their Status.
pub(super) fn success(exchange: &Exchange, format: AnswerFormat, status: &Status, code: Option<i64>) -> Response<Body> {
    let format = AnswerFormat { transform: None, ..format };
    let mut status = status.to_value();
    if let Some(code) = code {
        status.make_object().insert("code", Value::Int(code));
    }
    answer::content(exchange, 200, format, AnswerContent::Value(status))
}

/// The options of a DELETE: in the body, or in the query if there is no body.
pub(super) async fn delete_options(
    app: &App,
    exchange: &Exchange,
    target: &Target,
    body: Body,
) -> Result<delete_options::DeleteOptions, RequestRefusal> {
    let bytes = exchange.read_body(&app.registry.memory, body).await?;
    let mut options = if bytes.is_empty() {
        delete_options::DeleteOptions::decode(&exchange.query)?
    } else {
        let encoding = body_encoding(&exchange.content_type)
            .map_err(|error| Status::unsupported_media_type(&error.to_string()))?;
        let decoded = match encoding {
            Encoding::Json => json::decode(&bytes).map_err(delete_options::DeleteOptionsError::from),
            Encoding::Yaml => yaml::decode(&bytes).map_err(delete_options::DeleteOptionsError::from),
            Encoding::Protobuf => delete_options::DeleteOptions::open(&bytes, &target.version),
        };
        let options = decoded.and_then(|body| delete_options::DeleteOptions::from_body(&body, &target.version));
        let options = options.map_err(|error| Status::bad_request(&error.to_string()))?;
        exchange.observe(|observed| observed.sent(logged(&options)));
        options
    };
    if !app.registry.definitions.minor.opens(Gate::AllowUnsafeMalformedObjectDeletion) {
        options.ignore_store_read_error = None;
    }
    options.validate()?;
    Ok(options)
}

/// The options of a body, as the reference logs them: converted to its internal version.
fn logged(options: &delete_options::DeleteOptions) -> Value {
    let mut logged = options.encode();
    let fields = logged.make_object();
    fields.insert("kind", Value::from("DeleteOptions"));
    fields.insert("apiVersion", Value::from("meta.k8s.io/__internal"));
    logged
}

pub(super) fn deletion(options: &delete_options::DeleteOptions) -> DeleteRequest {
    DeleteRequest {
        uid: options.precondition_uid.clone(),
        resource_version: options.precondition_resource_version.clone(),
        propagation_policy: options.propagation_policy.clone(),
        orphan_dependents: options.orphan_dependents,
        grace_period_s: options.grace_period_seconds,
        dry_run: !options.dry_run.is_empty(),
        ignore_store_read_error: options.ignore_store_read_error == Some(true),
        options: options.encode(),
    }
}

/// Deleting an object that can't be read needs a separate right, and is recorded in the audit log.
async fn authorize_unsafe_delete(app: &App, exchange: &Exchange, target: &Target) -> Result<(), RequestRefusal> {
    exchange.observe(|observed| observed.annotate("apiserver.k8s.io/unsafe-delete-ignore-read-error", ""));
    let version = &target.version;
    let attributes = Attributes::Resource(ResourceAttributes {
        verb: "unsafe-delete-ignore-read-errors",
        group: &version.group,
        version: &version.version,
        resource: &version.names.plural,
        subresource: "",
        namespace: &target.namespace,
        name: &target.name,
        ..ResourceAttributes::default()
    });
    let decision = app.authorizer.authorize(&exchange.user, &attributes).await;
    if decision.is_allowed() {
        return Ok(());
    }
    let why = if decision.error.is_empty() {
        format!("not permitted to do \"unsafe-delete-ignore-read-errors\", reason: {}", decision.reason)
    } else {
        format!("error while checking permission for \"unsafe-delete-ignore-read-errors\", {}", decision.error)
    };
    Err(Status::forbidden(&version.group, &version.names.plural, &target.name, &why).into())
}
