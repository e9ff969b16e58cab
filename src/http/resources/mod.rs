//! Requests for resources: from the path to the verb, with a file for each verb, and from the verb's result to the
//! answer.

mod after_events;
mod connect;
mod create;
mod delete;
mod delete_collection;
mod get;
mod list;
mod patch;
mod refusal;
mod revision;
mod sent;
mod update;
mod watch;

use std::sync::Arc;
use std::sync::atomic::Ordering;

use axum::body::Body;
use axum::http::{Method, Response};
use futures_util::future::BoxFuture;

use crate::apply::PASSED_ON;
use crate::crd::ServedVersion;
use crate::kinds::{self, Action, Kind, Part};
use crate::meta::Status;
use crate::registry::{Resource, Subresource, Target, Warnings};
use crate::types;
use crate::value::json;

use super::answer::{self, AnswerContent};
use super::app::App;
use super::authorization;
use super::classify::resource_route;
use super::exchange::Exchange;
use super::negotiate::{self as negotiation, AnswerFormat, Endpoint, TransformKind, built_in_route};
use super::path::{NOT_FOUND_TEXT, ResourcePath, Verb};
use super::query::IncludeObject;
use super::shape::{self, AnswerShape, go_type};

use after_events::after_events;
use refusal::RequestRefusal;

/// Answers a request for a resource.
pub(super) async fn serve(app: &App, exchange: &Exchange, path: ResourcePath, body: Body) -> Response<Body> {
    match route(app, exchange, &path, body).await {
        Ok(response) => response,
        Err(RequestRefusal::Status(status)) => answer::status(exchange, &status),
        Err(RequestRefusal::Denied(status)) => answer::denial(exchange, &status),
        Err(RequestRefusal::Undecided(why)) => answer::failed_authorization(exchange, &why),
        Err(RequestRefusal::NotFoundText) => answer::text(exchange, 404, NOT_FOUND_TEXT),
    }
}

async fn route(
    app: &App,
    exchange: &Exchange,
    path: &ResourcePath,
    body: Body,
) -> Result<Response<Body>, RequestRefusal> {
    let verb = exchange.verb(path);
    // A read with a revision is served from what this process has seen, unless it has a continue token, which another
    // process may have issued.
    let reads = matches!(verb, Verb::Get | Verb::List | Verb::Watch);
    let given = |name: &str| exchange.query.first(name).is_some_and(|value| !value.is_empty());
    let makes_do = reads && given("resourceVersion") && !given("continue");
    let operation = operation(verb);
    if !makes_do {
        app.registry.catch_up(&path.group, &path.resource, operation).await?;
    }
    app.authorizer.refresh().await?;
    authorize(app, exchange, path, verb).await?;
    let resource = find(app, path, operation, makes_do).await?;
    if !makes_do {
        app.registry.catch_up_apart(&resource, operation).await?;
    }
    let version = routed_version(&resource, path, verb)?;
    if resource.conversion.fault().is_some() {
        return Err(Status::internal_error("error resolving resource").into());
    }
    if resource.definition.is_none() {
        check_built_in_route(exchange, path, &version, verb)?;
    }
    exchange.observe(|observed| observed.routed(resource_route(exchange, path, verb)));
    warn_of_deprecation(exchange, &version);
    let subresource = subresource(&resource, &version, path)?;
    if version.deprecation_warning.is_some() {
        exchange.observe(|observed| observed.deprecated(removed(&resource, &version)));
    }
    let namespace = if version.is_namespaced() { path.namespace.clone() } else { String::new() };
    let target = Target { resource, version, subresource, namespace, name: path.name.clone() };
    if reads {
        exchange.ready().await?;
        return dispatch(app, exchange, target, verb, body).await;
    }
    let resource = Arc::clone(&target.resource);
    let collection = (&app.registry.storage, &resource.collection);
    after_events(collection, app.limits.answer_delay, dispatch(app, exchange, target, verb, body)).await
}

/// The resource of a path. A read that is served from what this process has seen looks for it once more if it is not
/// found.
async fn find(
    app: &App,
    path: &ResourcePath,
    operation: &'static str,
    makes_do: bool,
) -> Result<Arc<Resource>, RequestRefusal> {
    if kinds::is_deferred(&path.group) {
        app.registry.make_deferred_objects().await;
    }
    let mut resource = app.registry.resolve(&path.group, &path.resource).await?;
    if resource.is_none() && makes_do {
        app.registry.catch_up(&path.group, &path.resource, operation).await?;
        resource = app.registry.resolve(&path.group, &path.resource).await?;
    }
    resource.ok_or_else(|| not_routed(app.registry.definitions.is_built_in(&path.group)))
}

/// The version of a path, if the path is one of its resource.
fn routed_version(resource: &Resource, path: &ResourcePath, verb: Verb) -> Result<Arc<ServedVersion>, RequestRefusal> {
    let built_in = resource.definition.is_none();
    let version = resource.served(&path.version).ok_or_else(|| not_routed(built_in))?;
    // A watch of one object has no route in all namespaces.
    let is_watch_of_one = built_in && version.is_namespaced() && path.namespace.is_empty() && !path.name.is_empty();
    if path.fits_scope(version.is_namespaced(), verb) && !is_watch_of_one {
        Ok(Arc::clone(version))
    } else if built_in && is_list_of_all_namespaces(path, version) {
        Err(Status::method_not_allowed_generic().into())
    } else {
        Err(not_routed(built_in))
    }
}

/// The error for paths without a route: built-in groups have their own router.
fn not_routed(built_in: bool) -> RequestRefusal {
    if built_in { Status::not_found_generic().into() } else { RequestRefusal::NotFoundText }
}

fn subresource(
    resource: &Resource,
    version: &ServedVersion,
    path: &ResourcePath,
) -> Result<Subresource, RequestRefusal> {
    match path.subresource.as_str() {
        "" => Ok(Subresource::Main),
        "status" if version.status => Ok(Subresource::Status),
        "scale" if version.scale.is_some() => Ok(Subresource::Scale),
        name if let Some(part) = part(version, name) => Ok(Subresource::Part(part.name)),
        _ if resource.definition.is_none() => Err(not_routed(true)),
        _ => Err(Status::not_found(&version.group, &version.names.plural, &path.name).into()),
    }
}

fn warn_of_deprecation(exchange: &Exchange, version: &ServedVersion) {
    let Some(text) = &version.deprecation_warning else { return };
    let mut warnings = Warnings::default();
    warnings.add(text.clone());
    exchange.warn(warnings);
}

/// The minor of Kubernetes that does not have a deprecated version of a built-in kind any more.
fn removed(resource: &Resource, version: &ServedVersion) -> Option<u32> {
    let of_kind = || types::of_kind(&version.group, &version.version, &version.names.kind);
    resource.definition.is_none().then(of_kind)??.removed()
}

/// The storage operation of a verb, as the reference names it.
const fn operation(verb: Verb) -> &'static str {
    match verb {
        Verb::Get | Verb::Proxy | Verb::Unsupported => "get",
        Verb::List | Verb::Watch => "list",
        Verb::Create => "create",
        Verb::Update | Verb::Patch => "update",
        Verb::Delete | Verb::DeleteCollection => "delete",
    }
}

/// Executes the verb.
async fn dispatch(
    app: &App,
    exchange: &Exchange,
    target: Target,
    verb: Verb,
    body: Body,
) -> Result<Response<Body>, RequestRefusal> {
    if matches!(verb, Verb::Update | Verb::Patch | Verb::Delete) {
        note_stored(app, exchange, &target).await;
    }
    let computed = built_in(&target.version).and_then(|kind| kind.computed);
    if computed.is_some() && matches!(verb, Verb::Update | Verb::Patch | Verb::Delete) {
        app.registry.store_computed(&target).await?;
    }
    let unsupported = || Status::method_not_allowed(&target.version.group, &target.version.names.plural, verb.as_str());
    // Boxed, as each future is as large as its longest path: the outer futures would carry and move all of it, whatever
    // the verb.
    let answered: BoxFuture<'_, Result<Response<Body>, RequestRefusal>> = match (target.subresource, verb) {
        (Subresource::Main, Verb::List) if let Some(of) = computed => {
            Box::pin(list::list_computed(app, exchange, (&target, of)))
        }
        (Subresource::Main, Verb::Get) if let Some(of) = computed => {
            Box::pin(get::get_computed(app, exchange, (&target, of)))
        }
        (Subresource::Main, Verb::List) => Box::pin(list::list(app, exchange, &target)),
        (Subresource::Main, Verb::Watch) => Box::pin(watch::watch(app, exchange, target)),
        (Subresource::Main, Verb::Create) => Box::pin(create::create(app, exchange, &target, body)),
        (Subresource::Main, Verb::Delete) => Box::pin(delete::delete(app, exchange, &target, body)),
        (Subresource::Main, Verb::DeleteCollection) => {
            Box::pin(delete_collection::delete_collection(app, exchange, &target, body))
        }
        (Subresource::Part(name), verb) => match part(&target.version, name).map(|part| (part.action, verb)) {
            Some((Action::IssueToken, Verb::Create)) => Box::pin(create::create_token(app, exchange, &target, body)),
            Some((action @ (Action::Bind | Action::Evict), Verb::Create)) => {
                Box::pin(create::act(app, exchange, (&target, action), body))
            }
            Some((
                action @ (Action::Log | Action::Connect | Action::Proxy | Action::ConnectService | Action::ConnectNode),
                _,
            )) => Box::pin(connect::connect(app, exchange, (&target, action))),
            Some((Action::Write, Verb::Get)) => Box::pin(get::get(app, exchange, &target)),
            Some((Action::Write, Verb::Update)) => Box::pin(update::update(app, exchange, &target, body)),
            Some((Action::Write, Verb::Patch)) => Box::pin(patch::patch(app, exchange, &target, body)),
            _ => return Err(unsupported().into()),
        },
        (_, Verb::Get) => Box::pin(get::get(app, exchange, &target)),
        (_, Verb::Update) => Box::pin(update::update(app, exchange, &target, body)),
        (_, Verb::Patch) => Box::pin(patch::patch(app, exchange, &target, body)),
        _ => return Err(unsupported().into()),
    };
    answered.await
}

/// Records the length of the object that a request changes, as it is decoded along with the request's body.
async fn note_stored(app: &App, exchange: &Exchange, target: &Target) {
    // The verb itself reports read errors.
    if let Ok(Some(stored)) = app.registry.storage.get(&target.resource.collection, &target.key()).await {
        exchange.stored_bytes.store(stored.bytes.len(), Ordering::Relaxed);
    }
}

async fn authorize(app: &App, exchange: &Exchange, path: &ResourcePath, verb: Verb) -> Result<(), RequestRefusal> {
    let name = exchange.object_name(path, verb);
    let selected = exchange.selected(path, verb);
    let attributes = path.attributes(verb, &name, &selected);
    let decision = authorization::decide(app, exchange, &attributes).await;
    if decision.is_allowed() {
        return Ok(());
    }
    if !decision.error.is_empty() {
        return Err(RequestRefusal::Undecided(decision.error));
    }
    let why = attributes.refusal(&exchange.user, &decision.reason);
    Err(RequestRefusal::Denied(Box::new(Status::forbidden(&path.group, &path.resource, &name, &why))))
}

/// Whether a path without a namespace is a route of a namespaced built-in resource: such routes only exist for lists.
fn is_list_of_all_namespaces(path: &ResourcePath, version: &ServedVersion) -> bool {
    let is_collection = path.namespace.is_empty() && path.name.is_empty();
    version.is_namespaced() && is_collection && built_in(version).is_some_and(|kind| kind.can("list"))
}

/// The routes of built-in resources check the method and some headers before the verb does.
fn check_built_in_route(
    exchange: &Exchange,
    path: &ResourcePath,
    version: &ServedVersion,
    verb: Verb,
) -> Result<(), RequestRefusal> {
    let part = part(version, &path.subresource);
    let known = match path.subresource.as_str() {
        "" => true,
        "status" => version.status,
        "scale" if version.scale.is_some() => true,
        _ => part.is_some(),
    };
    let passes_on =
        part.is_some_and(|part| matches!(part.action, Action::Proxy | Action::ConnectService | Action::ConnectNode));
    if !known || (!path.rest.is_empty() && !passes_on) {
        return Err(Status::not_found_generic().into());
    }
    // Proxied requests have any of the usual methods, and bodies and answers of any type.
    const PASSED_ON: [&str; 7] = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"];
    if passes_on && PASSED_ON.contains(&exchange.method.as_str()) {
        return Ok(());
    }
    let allowed = match (path.subresource.is_empty(), path.name.is_empty()) {
        (true, true) => matches!(verb, Verb::List | Verb::Watch | Verb::Create | Verb::DeleteCollection),
        (false, _) if let Some(part) = part => part.verbs.contains(&verb.as_str()),
        (true, false) => matches!(verb, Verb::Get | Verb::Watch | Verb::Update | Verb::Patch | Verb::Delete),
        (false, _) => matches!(verb, Verb::Get | Verb::Update | Verb::Patch),
    };
    // HEAD has no route, and a watch by path is a GET.
    let reads = matches!(verb, Verb::Get | Verb::List | Verb::Watch);
    let can = !path.subresource.is_empty() || built_in(version).is_some_and(|kind| kind.can(verb.as_str()));
    if !allowed || !can || (reads && exchange.method != Method::GET) {
        return Err(Status::method_not_allowed_generic().into());
    }
    if verb == Verb::Patch && !built_in_route::takes_patch(&exchange.content_type) {
        return Err(Status::unsupported_media_type_route(built_in_route::UNSUPPORTED_MEDIA_TYPE).into());
    }
    let streams = matches!(verb, Verb::List | Verb::Watch);
    match built_in_route::not_acceptable(&exchange.accept, streams) {
        Some(message) => Err(Status::not_acceptable_route(&message).into()),
        None => Ok(()),
    }
}

/// The subresource `name` of a built-in kind, beside `/status`.
fn part(version: &ServedVersion, name: &str) -> Option<&'static Part> {
    built_in(version).and_then(|kind| kind.part(name)).filter(|part| part.is_in(version.minor))
}

fn built_in(version: &ServedVersion) -> Option<&'static Kind> {
    kinds::find(&version.group, &version.names.plural)
}

fn endpoint(target: &Target) -> Endpoint {
    match target.resource.definition {
        Some(_) => Endpoint::Custom,
        None if shape::has_table(target) => Endpoint::BuiltIn,
        None => Endpoint::WithoutTables,
    }
}

/// The form of the answer.
fn negotiate(app: &App, exchange: &Exchange, target: &Target) -> Result<(AnswerFormat, AnswerShape), RequestRefusal> {
    let format = negotiation::format(&exchange.accept, &exchange.user_agent, &exchange.query, endpoint(target))
        .map_err(|error| Status::not_acceptable(&error.to_string()))?;
    let is_table = format.transform.is_some_and(|transform| transform.kind == TransformKind::Table);
    let include = if is_table { IncludeObject::decode(&exchange.query) } else { Ok(IncludeObject::default()) };
    let fault = include.as_ref().err().cloned();
    let include = include.unwrap_or_default();
    let columns = is_table.then(|| Arc::new(shape::columns(target)));
    Ok((
        format,
        AnswerShape { transform: format.transform, include, fault, columns, clock: app.registry.clock.clone() },
    ))
}

/// Why one object is not a `PartialObjectMetadataList`.
fn no_list(target: &Target) -> Status {
    match go_type(target).as_str() {
        // Go can't tell before it looks into the content.
        "unstructured.Unstructured" => Status::plain(500, "content is not a list"),
        other => Status::not_acceptable(&format!(
            "you requested PartialObjectMetadataList, but the requested object is not a list (*{other})"
        )),
    }
}

/// Answers one object.
fn object(
    exchange: &Exchange,
    target: &Target,
    code: u16,
    format: AnswerFormat,
    shape: &AnswerShape,
    object: AnswerContent,
) -> Result<Response<Body>, RequestRefusal> {
    shape.check()?;
    let value = match (shape.transform.map(|transform| transform.kind), object) {
        (None, object) => return Ok(answer::content(exchange, code, format, object)),
        (Some(TransformKind::PartialObjectMetadataList), _) => {
            return Err(no_list(target).into());
        }
        (Some(_), AnswerContent::Value(value)) => value,
        (Some(_), AnswerContent::Json(bytes)) => json::decode_leaving(&bytes, PASSED_ON).unwrap_or_default(),
    };
    Ok(answer::content(exchange, code, format, AnswerContent::Value(shape.object(value, true, shape.clock.now()))))
}
