//! POST: an object, a review, a token, or an action on an object.

use axum::body::Body;
use axum::http::Response;
use futures_util::FutureExt as _;

use crate::kinds::{Action, Review};
use crate::meta::Status;
use crate::object;
use crate::registry::{Body as RequestBody, CreateRequest, IssuedToken, Reviewers, Target, as_sent};

use super::super::answer::{self, AnswerContent};
use super::super::app::{App, Issuing};
use super::super::exchange::Exchange;
use super::super::negotiate::AnswerFormat;
use super::super::query::WriteOptions;
use super::refusal::RequestRefusal;
use super::sent::{body_format, content, manager, settled};
use super::{built_in, negotiate, object};

pub(super) async fn create(
    app: &App,
    exchange: &Exchange,
    target: &Target,
    body: Body,
) -> Result<Response<Body>, RequestRefusal> {
    let review = built_in(&target.version).and_then(|kind| kind.review);
    if review == Some(Review::Binding) {
        return act(app, exchange, (target, Action::Bind), body).await;
    }
    let (format, shape) = negotiate(app, exchange, target)?;
    let request = create_request(app, exchange, body).await?;
    let mut warnings = exchange.warnings_of_object();
    let result = match review {
        Some(review) => {
            let reserve = |bytes| exchange.reserve_instead(&app.registry.memory, bytes).boxed();
            let reviewers = Reviewers { authorizer: &*app.authorizer, tokens: &app.tokens, reserve: &reserve };
            let reviewed = app.registry.review((target, review), &exchange.user, &request, &reviewers, &mut warnings);
            reviewed.await.map(AnswerContent::Value)
        }
        None => {
            let written = app.registry.create(target, &exchange.user, &request, &mut warnings).await;
            settled(app, target, written).await.map(|written| content(format, &shape, written))
        }
    };
    exchange.warn(warnings);
    object(exchange, target, 201, format, &shape, result?)
}

pub(super) async fn create_token(
    app: &App,
    exchange: &Exchange,
    target: &Target,
    body: Body,
) -> Result<Response<Body>, RequestRefusal> {
    let answered = as_sent(target)?;
    let (format, shape) = negotiate(app, exchange, &answered)?;
    let request = create_request(app, exchange, body).await?;
    let mut warnings = exchange.warnings_of_object();
    let Some(Issuing { issuer, .. }) = &app.issuing else { return Err(Status::not_found_generic().into()) };
    let result = app.registry.create_token(issuer, (target, &exchange.user), &request, &mut warnings).await;
    exchange.warn(warnings);
    let IssuedToken { request, credential_id } = result?;
    exchange.observe(|observed| observed.annotate("authentication.kubernetes.io/issued-credential-id", &credential_id));
    object(exchange, &answered, 201, format, &shape, AnswerContent::Value(request))
}

/// Performs an action on an object; the answer only says that it was done.
pub(super) async fn act(
    app: &App,
    exchange: &Exchange,
    (target, action): (&Target, Action),
    body: Body,
) -> Result<Response<Body>, RequestRefusal> {
    let (format, _) = negotiate(app, exchange, target)?;
    let request = create_request(app, exchange, body).await?;
    let mut warnings = exchange.warnings_of_object();
    let (registry, user) = (&app.registry, &exchange.user);
    let done = match action {
        Action::Evict => registry.create_eviction(target, user, &request, &mut warnings).await,
        _ => registry.create_binding(target, user, &request, &mut warnings).await,
    };
    exchange.warn(warnings);
    done?;
    let status = object! {
        "kind" => "Status", "apiVersion" => "v1", "metadata" => object! {}, "status" => "Success", "code" => 201,
    };
    Ok(answer::content(exchange, 201, AnswerFormat { transform: None, ..format }, AnswerContent::Value(status)))
}

async fn create_request(app: &App, exchange: &Exchange, body: Body) -> Result<CreateRequest, RequestRefusal> {
    let format = body_format(exchange)?;
    let body = RequestBody { bytes: exchange.read_body(&app.registry.memory, body).await?, format };
    let options = WriteOptions::create(&exchange.query)?;
    Ok(CreateRequest {
        body,
        field_validation: options.field_validation,
        manager: manager(exchange, &options),
        dry_run: options.dry_run,
        options: options.encoded,
    })
}
