//! Requests for resources: from the path to the verb, and from what the verb returns to the answer.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Method, Response};
use jiff::Timestamp;

use crate::auth::{Attributes, Decision, ResourceAttributes};
use crate::crd::ServedVersion;
use crate::kinds::pod_object::connect::{self, LogOptions};
use crate::kinds::{self, Action, Kind, Part, Review};
use crate::memory::Full;
use crate::meta::selector::{FieldSelector, LabelSelector};
use crate::meta::{Revision, Status, field, parse_uint};
use crate::object;
use crate::registry::{
    Body as RequestBody, CreateRequest, DeleteOptions, Deletion, Format as BodyFormat, IssuedToken, ListAt, ListPage,
    ListRequest, PatchRequest, PatchType, Reviewers, Start, Subresource, Target, UpdateRequest, Warnings, WatchRequest,
    Written, as_token_request,
};
use crate::store::continue_token::ContinueToken;
use crate::value::{Map, Value, json, yaml};

use super::answer::{self, Content};
use super::exchange::{Exchange, no_memory};
use super::list_pieces::ListPieces;
use super::negotiate::{self, Encoding, Endpoint, Format, Transform, TransformKind, built_in_route};
use super::observe::resource_route;
use super::path::{NOT_FOUND_TEXT, ResourcePath, Verb};
use super::query::{self, IncludeObject, ListOptions, QueryError, WriteOptions, default_field_manager};
use super::router::{App, Issuing};
use super::table::{self, Columns};
use super::watch_stream::{self, Frames};

/// A watch that names no timeout ends after this long, and up to twice that.
const WATCH_TIMEOUT_MIN: Duration = Duration::from_secs(30 * 60);

/// Why there is no object to answer.
pub(super) enum Refusal {
    Status(Box<Status>),
    /// The user may not do it.
    Denied(Box<Status>),
    /// Nothing is there, in plain text.
    NotFoundText,
}

impl From<Status> for Refusal {
    fn from(status: Status) -> Self {
        Refusal::Status(Box::new(status))
    }
}

impl From<QueryError> for Refusal {
    fn from(error: QueryError) -> Self {
        Refusal::from(match error {
            QueryError::BadRequest(message) => Status::bad_request(&message),
            QueryError::Invalid { kind, errors } => Status::invalid("meta.k8s.io", kind, "", &errors),
        })
    }
}

/// Answers a request for a resource.
pub(super) async fn serve(app: &App, exchange: &Exchange, path: ResourcePath, body: Body) -> Response<Body> {
    match route(app, exchange, &path, body).await {
        Ok(response) => response,
        Err(Refusal::Status(status)) => answer::status(exchange, &status),
        Err(Refusal::Denied(status)) => answer::denial(exchange, &status),
        Err(Refusal::NotFoundText) => answer::text(exchange, 404, NOT_FOUND_TEXT),
    }
}

async fn route(app: &App, exchange: &Exchange, path: &ResourcePath, body: Body) -> Result<Response<Body>, Refusal> {
    let verb = exchange.verb(path);
    // A read that names a revision makes do with what this process has seen, unless it goes on with another's page.
    let reads = matches!(verb, Verb::Get | Verb::List | Verb::Watch);
    let given = |name: &str| exchange.query.first(name).is_some_and(|value| !value.is_empty());
    let makes_do = reads && given("resourceVersion") && !given("continue");
    let operation = operation(verb);
    if !makes_do {
        app.registry.catch_up(&path.group, &path.resource, operation).await?;
    }
    app.authorizer.refresh().await?;
    authorize(app, exchange, path, verb)?;
    let mut resource = app.registry.resolve(&path.group, &path.resource).await?;
    if resource.is_none() && makes_do {
        app.registry.catch_up(&path.group, &path.resource, operation).await?;
        resource = app.registry.resolve(&path.group, &path.resource).await?;
    }
    let Some(resource) = resource else {
        return Err(match app.registry.definitions.is_built_in(&path.group) {
            true => Status::not_found_generic().into(),
            false => Refusal::NotFoundText,
        });
    };
    if !makes_do {
        app.registry.catch_up_apart(&resource, operation).await?;
    }
    let built_in = resource.definition.is_none();
    let Some(version) = resource.served(&path.version).cloned() else {
        return Err(match built_in {
            true => Status::not_found_generic().into(),
            false => Refusal::NotFoundText,
        });
    };
    let namespaced = version.is_namespaced();
    let is_namespaces = path.group.is_empty() && path.resource == "namespaces";
    if !is_namespaces && !path.fits_scope(namespaced, verb) {
        return Err(match built_in {
            true => Status::not_found_generic().into(),
            false => Refusal::NotFoundText,
        });
    }
    if built_in {
        check_built_in_route(exchange, path, &version, verb)?;
    }
    exchange.observe(|observed| observed.routed(resource_route(exchange, path, verb)));
    let subresource = match path.subresource.as_str() {
        "" => Subresource::Main,
        "status" if version.status => Subresource::Status,
        "scale" if version.scale.is_some() => Subresource::Scale,
        name if let Some(part) = part(&version, name) => Subresource::Part(part.name),
        _ if built_in => return Err(Status::not_found_generic().into()),
        _ => return Err(Status::not_found(&version.group, &version.names.plural, &path.name).into()),
    };
    if let Some(text) = &version.deprecation_warning {
        let mut warnings = Warnings::default();
        warnings.add(text.clone());
        exchange.warn(warnings);
        exchange.observe(|observed| observed.annotate("k8s.io/deprecated", "true"));
    }
    let target = Target {
        resource,
        version,
        subresource,
        namespace: if namespaced { path.namespace.clone() } else { String::new() },
        name: path.name.clone(),
    };
    if reads {
        exchange.ready().await?;
    }
    dispatch(app, exchange, target, verb, body).await
}

/// What a verb does to the store, in the reference's words.
const fn operation(verb: Verb) -> &'static str {
    match verb {
        Verb::Get | Verb::Proxy | Verb::Unsupported => "get",
        Verb::List | Verb::Watch => "list",
        Verb::Create => "create",
        Verb::Update | Verb::Patch => "update",
        Verb::Delete | Verb::DeleteCollection => "delete",
    }
}

async fn dispatch(
    app: &App,
    exchange: &Exchange,
    target: Target,
    verb: Verb,
    body: Body,
) -> Result<Response<Body>, Refusal> {
    if matches!(verb, Verb::Update | Verb::Patch | Verb::Delete) {
        note_stored(app, exchange, &target).await;
    }
    if is_computed(&target) && matches!(verb, Verb::Update | Verb::Patch | Verb::Delete) {
        app.registry.store_computed(&target).await?;
    }
    let unsupported = || Status::method_not_allowed(&target.version.group, &target.version.names.plural, verb.as_str());
    match (target.subresource, verb) {
        (Subresource::Main, Verb::List) if is_computed(&target) => list_computed(app, exchange, &target).await,
        (Subresource::Main, Verb::Get) if is_computed(&target) => get_computed(app, exchange, &target).await,
        (Subresource::Main, Verb::List) => list(app, exchange, &target).await,
        (Subresource::Main, Verb::Watch) => watch(app, exchange, target).await,
        (Subresource::Main, Verb::Create) => create(app, exchange, &target, body).await,
        (Subresource::Main, Verb::Delete) => delete(app, exchange, &target, body).await,
        (Subresource::Main, Verb::DeleteCollection) => delete_collection(app, exchange, &target, body).await,
        (Subresource::Part(name), verb) => match part(&target.version, name).map(|part| (part.action, verb)) {
            Some((Action::IssueToken, Verb::Create)) => create_token(app, exchange, &target, body).await,
            Some((action @ (Action::Bind | Action::Evict), Verb::Create)) => {
                act(app, exchange, (&target, action), body).await
            }
            Some((action @ (Action::Log | Action::Connect | Action::Proxy | Action::ConnectService), _)) => {
                connect(app, exchange, (&target, action)).await
            }
            Some((Action::Write, Verb::Get)) => get(app, exchange, &target).await,
            Some((Action::Write, Verb::Update)) => update(app, exchange, &target, body).await,
            Some((Action::Write, Verb::Patch)) => patch(app, exchange, &target, body).await,
            _ => Err(unsupported().into()),
        },
        (_, Verb::Get) => get(app, exchange, &target).await,
        (_, Verb::Update) => update(app, exchange, &target, body).await,
        (_, Verb::Patch) => patch(app, exchange, &target, body).await,
        _ => Err(unsupported().into()),
    }
}

/// Notes how long the object is that a request changes, which is decoded beside the request's body.
async fn note_stored(app: &App, exchange: &Exchange, target: &Target) {
    // What can't be read is told by the verb.
    if let Ok(Some(stored)) = app.registry.storage.get(&target.resource.collection, &target.key()).await {
        exchange.stored_bytes.store(stored.bytes.len(), Ordering::Relaxed);
    }
}

fn authorize(app: &App, exchange: &Exchange, path: &ResourcePath, verb: Verb) -> Result<(), Refusal> {
    let name = exchange.object_name(path, verb);
    let attributes = path.attributes(verb, &name);
    let decision = app.authorizer.authorize(&exchange.user, &attributes);
    exchange.observe(|observed| observed.decided(&decision));
    match decision {
        Decision::Allow { .. } => Ok(()),
        Decision::Deny { reason } => {
            let why = attributes.refusal(&exchange.user, &reason);
            Err(Refusal::Denied(Box::new(Status::forbidden(&path.group, &path.resource, &name, &why))))
        }
    }
}

/// The routes of built-in resources know their methods, and read some headers before the verb does.
fn check_built_in_route(
    exchange: &Exchange,
    path: &ResourcePath,
    version: &ServedVersion,
    verb: Verb,
) -> Result<(), Refusal> {
    let part = part(version, &path.subresource);
    let known = match path.subresource.as_str() {
        "" => true,
        "status" => version.status,
        "scale" if version.scale.is_some() => true,
        _ => part.is_some(),
    };
    let passes_on = part.is_some_and(|part| matches!(part.action, Action::Proxy | Action::ConnectService));
    if !known || (!path.rest.is_empty() && !passes_on) {
        return Err(Status::not_found_generic().into());
    }
    let allowed = match (path.subresource.is_empty(), path.name.is_empty()) {
        (true, true) => matches!(verb, Verb::List | Verb::Watch | Verb::Create | Verb::DeleteCollection),
        (false, _) if let Some(part) = part => part.verbs.contains(&verb.as_str()),
        (true, false) => matches!(verb, Verb::Get | Verb::Watch | Verb::Update | Verb::Patch | Verb::Delete),
        (false, _) => matches!(verb, Verb::Get | Verb::Update | Verb::Patch),
    };
    // HEAD has no route, and what is watched by its path is watched by GET.
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
    built_in(version).and_then(|kind| kind.part(name))
}

fn endpoint(target: &Target) -> Endpoint {
    match target.resource.definition.is_some() {
        true => Endpoint::Custom,
        false => Endpoint::BuiltIn,
    }
}

/// The form of the answer.
fn negotiate(exchange: &Exchange, target: &Target) -> Result<(Format, Shape), Refusal> {
    let format = negotiate::format(&exchange.accept, &exchange.user_agent, &exchange.query, endpoint(target))
        .map_err(|error| Status::not_acceptable(&error.to_string()))?;
    let is_table = format.transform.is_some_and(|transform| transform.kind == TransformKind::Table);
    let include = if is_table { IncludeObject::decode(&exchange.query)? } else { IncludeObject::default() };
    let columns = is_table.then(|| Arc::new(columns(target)));
    Ok((format, Shape { transform: format.transform, include, columns }))
}

fn columns(target: &Target) -> Columns {
    let resource = &target.resource;
    match (resource.definition.is_some(), resource.strategy.table()) {
        (is_custom, _) if target.subresource == Subresource::Scale => Columns::scale(!is_custom),
        (true, _) => Columns::custom(&target.version.columns),
        (false, Some(table)) => Columns::built_in(table, resource.strategy),
        (false, None) => Columns::definition(),
    }
}

/// What an answer makes of objects.
#[derive(Clone)]
pub(super) struct Shape {
    transform: Option<Transform>,
    include: IncludeObject,
    /// Of a Table.
    columns: Option<Arc<Columns>>,
}

impl Shape {
    /// Whether objects can't take the form, as it is that of lists.
    pub fn is_for_lists(&self) -> bool {
        self.transform.is_some_and(|transform| transform.kind == TransformKind::PartialObjectMetadataList)
    }

    /// Whether objects go out as they are.
    pub fn is_plain(&self) -> bool {
        self.transform.is_none()
    }

    /// One object, or the object of an event; column definitions go with the first event of a Table alone.
    pub fn object(&self, object: Value, with_definitions: bool) -> Value {
        match (self.transform, &self.columns) {
            (Some(transform), Some(columns)) => {
                let metadata = object.get("metadata").cloned().unwrap_or_default();
                table::table(columns, transform, &metadata, [&object], self.include, with_definitions, Timestamp::now())
            }
            (Some(transform), None) => table::partial(&object, transform),
            (None, _) => object,
        }
    }
}

/// What Go calls the type of objects, as messages name it.
fn go_type(target: &Target) -> String {
    let version = &target.version;
    let package = match (target.subresource, version.group.as_str()) {
        (Subresource::Scale, _) => return "v1.Scale".to_owned(),
        _ if target.resource.definition.is_some() => return "unstructured.Unstructured".to_owned(),
        (_, "" | "events.k8s.io") => "core",
        (_, group) => group.split('.').next().unwrap_or_default(),
    };
    format!("{package}.{}", version.names.kind)
}

/// Why one object is no `PartialObjectMetadataList`.
fn no_list(target: &Target) -> Status {
    match go_type(target).as_str() {
        // It could be one, as far as Go can tell, until it is looked into.
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
    format: Format,
    shape: &Shape,
    object: Content,
) -> Result<Response<Body>, Refusal> {
    let value = match (shape.transform.map(|transform| transform.kind), object) {
        (None, object) => return Ok(answer::content(exchange, code, format, object)),
        (Some(TransformKind::PartialObjectMetadataList), _) => {
            return Err(no_list(target).into());
        }
        (Some(_), Content::Value(value)) => value,
        (Some(_), Content::Json(bytes)) => json::decode(&bytes).unwrap_or_default(),
    };
    Ok(answer::content(exchange, code, format, Content::Value(shape.object(value, true))))
}

async fn get(app: &App, exchange: &Exchange, target: &Target) -> Result<Response<Body>, Refusal> {
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

/// A resourceVersion in a query; the error is Kubernetes' text.
fn resource_version(text: &str) -> Result<u64, String> {
    let path = field::Path::new("resourceVersion");
    parse_uint(text).map_err(|error| field::Error::invalid(&path, text, error).to_string())
}

fn revision(number: u64) -> Revision {
    Revision::new(i64::try_from(number).unwrap_or(i64::MAX))
}

/// The options of a list or watch, and the selectors in them.
fn list_options(exchange: &Exchange, target: &Target) -> Result<(ListOptions, ListRequest), Refusal> {
    let mut options = ListOptions::decode(&exchange.query)?;
    let labels = LabelSelector::parse(&options.label_selector).map_err(|error| Status::bad_request(&error))?;
    let fields = FieldSelector::parse(&options.field_selector).map_err(|error| Status::bad_request(&error))?;
    options.validate()?;
    for field in fields.fields() {
        let selectable = match field {
            "metadata.name" => true,
            "metadata.namespace" => target.version.is_namespaced() || target.resource.strategy.knows_namespace_label(),
            other => target.version.selectable_fields.iter().any(|path| path.strip_prefix('.') == Some(other)),
        };
        if !selectable {
            return Err(
                Status::bad_request(&target.resource.strategy.unknown_field_label(&target.version, field)).into()
            );
        }
    }
    let fields = match target.name.is_empty() {
        true => fields,
        false => match fields.requires_exact("metadata.name") {
            None if fields.is_empty() => FieldSelector::exactly("metadata.name", &target.name),
            Some(name) if name == target.name => fields,
            _ => return Err(Status::bad_request("fieldSelector metadata.name doesn't match requested name").into()),
        },
    };
    let limit = usize::try_from(options.limit).unwrap_or_default();
    Ok((options, ListRequest { at: ListAt::Newest, limit, labels, fields }))
}

/// Which revision a list shows. Source: the table of the Kubernetes documentation, "Resource versions".
fn list_at(options: &ListOptions, target: &Target) -> Result<ListAt, Status> {
    let text = options.resource_version.as_str();
    if !options.continue_token.is_empty() {
        let prefix = match target.version.is_namespaced() && !target.namespace.is_empty() {
            true => format!("{}/", target.namespace),
            false => String::new(),
        };
        let token = ContinueToken::decode(&options.continue_token, &prefix)
            .map_err(|error| Status::bad_request(&format!("invalid continue token: {error}")))?;
        return match text {
            "" | "0" => Ok(ListAt::Continue(token)),
            _ => Err(Status::bad_request("specifying resource version is not allowed when using continue")),
        };
    }
    let given = match text {
        "" => return Ok(ListAt::Newest),
        text => resource_version(text)
            .map_err(|error| Status::bad_request(&format!("invalid resource version: {error}")))?,
    };
    Ok(match options.resource_version_match.as_str() {
        "Exact" => ListAt::Exact(revision(given)),
        "NotOlderThan" => ListAt::AtLeast(revision(given)),
        _ if given > 0 && options.limit > 0 => ListAt::Exact(revision(given)),
        _ => ListAt::AtLeast(revision(given)),
    })
}

/// A list of more bytes goes out in pieces, as its items are in memory already.
const LIST_WHOLE_BYTES_MAX: usize = 128 << 10;
/// How often the text of a list is in memory that is made as a whole.
const LIST_TEXT_COPIES: usize = 2;
/// How much a list takes, in lengths of its text, whose items are decoded for it.
const LIST_DECODED_COPIES: usize = 12;

async fn list(app: &App, exchange: &Exchange, target: &Target) -> Result<Response<Body>, Refusal> {
    let (format, shape) = negotiate(exchange, target)?;
    let (options, mut request) = list_options(exchange, target)?;
    request.at = list_at(&options, target)?;
    let any_state = options.resource_version == "0" && options.resource_version_match != "Exact";
    if any_state || request.fields.requires_exact("metadata.name").is_some() {
        // Any state will do, or there is at most one object: the reference answers from memory, where it knows no pages.
        request.limit = 0;
    }
    let page = app.registry.list(target, &request).await?;
    answer_page(app, exchange, target, format, &shape, page).await
}

async fn answer_page(
    app: &App,
    exchange: &Exchange,
    target: &Target,
    format: Format,
    shape: &Shape,
    page: ListPage,
) -> Result<Response<Body>, Refusal> {
    let is_typed = target.resource.definition.is_none();
    let mut metadata = Map::new();
    metadata.insert("resourceVersion", Value::String(page.revision.to_string()));
    if !is_typed || !page.continue_token.is_empty() {
        metadata.insert("continue", Value::from(page.continue_token.as_str()));
    }
    if let Some(remaining) = page.remaining {
        metadata.insert("remainingItemCount", Value::Int(remaining as i64));
    }
    let metadata = Value::Object(metadata);
    let size_bytes: usize = page.items.iter().map(|(_, encoded)| encoded.len_max()).sum();
    let is_large = size_bytes > LIST_WHOLE_BYTES_MAX;
    if shape.is_plain() && !is_typed {
        if is_large && format.encoding == Encoding::Json && !format.pretty {
            return Ok(answer::pieces(exchange, ListPieces::new(target, &metadata, page)));
        }
        let reserved = app.registry.memory.for_work(size_bytes * LIST_TEXT_COPIES).await;
        exchange.hold(reserved.map_err(|Full| no_memory())?);
        let whole = ListPieces::new(target, &metadata, page).whole();
        return Ok(answer::content(exchange, 200, format, Content::Json(whole)));
    }
    let reserved = app.registry.memory.for_work(size_bytes * LIST_DECODED_COPIES).await;
    exchange.hold(reserved.map_err(|Full| no_memory())?);
    let items = page.items.iter().map(|(stored, encoded)| {
        let mut bytes = Vec::with_capacity(encoded.len_max());
        encoded.write_to(&mut bytes, stored.revision);
        json::decode(&bytes).unwrap_or_default()
    });
    answer_items(exchange, target, format, shape, metadata, items.collect())
}

fn answer_items(
    exchange: &Exchange,
    target: &Target,
    format: Format,
    shape: &Shape,
    metadata: Value,
    mut items: Vec<Value>,
) -> Result<Response<Body>, Refusal> {
    let Some(transform) = shape.transform else {
        for item in &mut items {
            // Go's lists hold the type once, for all items.
            let fields = item.make_object();
            fields.remove("apiVersion");
            fields.remove("kind");
        }
        let list = object! {
            "apiVersion" => target.version.api_version(),
            "items" => Value::Array(items),
            "kind" => target.version.names.list_kind.as_str(),
            "metadata" => metadata,
        };
        return Ok(answer::content(exchange, 200, format, Content::Value(list)));
    };
    let shaped = match (transform.kind, &shape.columns) {
        (TransformKind::Table, Some(columns)) => {
            table::table(columns, transform, &metadata, &items, shape.include, true, Timestamp::now())
        }
        (TransformKind::PartialObjectMetadata, _) => {
            let message = format!(
                "you requested PartialObjectMetadata, but the requested object is a list (*{}List)",
                go_type(target)
            );
            return Err(Status::not_acceptable(&message).into());
        }
        _ => table::partial_list(&metadata, &items, transform),
    };
    Ok(answer::content(exchange, 200, format, Content::Value(shaped)))
}

async fn watch(app: &App, exchange: &Exchange, target: Target) -> Result<Response<Body>, Refusal> {
    let (format, shape) = negotiate(exchange, &target)?;
    let (options, select) = list_options(exchange, &target)?;
    let format = negotiate::stream(format).map_err(|error| Status::not_acceptable(&error.to_string()))?;
    let given = match options.resource_version.as_str() {
        "" => None,
        text => Some(resource_version(text).map_err(|error| Status::plain(500, &error))?),
    };
    let start = match (options.send_initial_events, given) {
        (Some(true), given) => Start::State(given.filter(|given| *given > 0).map(revision)),
        (Some(false), None | Some(0)) => Start::Now,
        (None, None | Some(0)) => Start::State(None),
        (_, Some(given)) => Start::After(revision(given)),
    };
    let timeout = match options.timeout_seconds.and_then(|seconds| u64::try_from(seconds).ok()) {
        None | Some(0) => WATCH_TIMEOUT_MIN + WATCH_TIMEOUT_MIN.mul_f64(spread()),
        Some(seconds) => Duration::from_secs(seconds),
    };
    let request = WatchRequest {
        start,
        select,
        bookmarks: options.allow_watch_bookmarks,
        marks_initial_end: options.send_initial_events == Some(true),
        timeout,
    };
    let reserved = app.registry.memory.for_watch().map_err(|Full| no_memory())?;
    let watch = app.registry.watch(&target, &request).await?;
    let version = &target.version;
    let counters = app.observer.metrics.watch(&version.group, &version.version, &version.names.plural);
    let frames = Frames::new(exchange, format.encoding, shape, target, watch, counters, reserved);
    Ok(match &exchange.upgrade {
        Some(upgrade) => upgrade.answer(frames),
        None => watch_stream::answer(exchange, format, frames, options.is_watch_list()),
    })
}

/// A share between 0 and 1, so that watches that began together do not end together.
fn spread() -> f64 {
    let random = uuid::Uuid::new_v4().as_u128() as u32;
    f64::from(random) / f64::from(u32::MAX)
}

async fn request_body(app: &App, exchange: &Exchange, body: Body) -> Result<RequestBody, Refusal> {
    let format = match negotiate::body_encoding(&exchange.content_type) {
        Ok(Encoding::Json) => BodyFormat::Json,
        Ok(Encoding::Yaml) => BodyFormat::Yaml,
        Ok(Encoding::Protobuf) => BodyFormat::Protobuf,
        Err(error) => return Err(Status::unsupported_media_type(&error.to_string()).into()),
    };
    Ok(RequestBody { bytes: exchange.read_body(&app.registry.memory, body).await?, format })
}

fn manager(exchange: &Exchange, options: &WriteOptions) -> String {
    match options.field_manager.is_empty() {
        true => default_field_manager(&exchange.user_agent),
        false => options.field_manager.clone(),
    }
}

/// Whether some objects are not stored before they are changed.
fn is_computed(target: &Target) -> bool {
    built_in(&target.version).is_some_and(|kind| kind.is_computed)
}

fn built_in(version: &ServedVersion) -> Option<&'static Kind> {
    kinds::find(&version.group, &version.names.plural)
}

async fn get_computed(app: &App, exchange: &Exchange, target: &Target) -> Result<Response<Body>, Refusal> {
    let (format, shape) = negotiate(exchange, target)?;
    let (services, _) = app.registry.api_services().await?;
    let found = services.into_iter().find(|service| service.str_at(&["metadata", "name"]) == target.name);
    let (group, plural) = (&target.version.group, &target.version.names.plural);
    let service = found.ok_or_else(|| Status::not_found(group, plural, &target.name))?;
    object(exchange, target, 200, format, &shape, Content::Value(service))
}

async fn list_computed(app: &App, exchange: &Exchange, target: &Target) -> Result<Response<Body>, Refusal> {
    let (format, shape) = negotiate(exchange, target)?;
    let (_, request) = list_options(exchange, target)?;
    let (mut services, revision) = app.registry.api_services().await?;
    services.retain(|service| {
        let label = |name: &str| service.at(&["metadata", "labels", name]).and_then(Value::as_str);
        let name = |_: &str| service.str_at(&["metadata", "name"]).to_owned();
        request.labels.matches(label) && request.fields.matches(name)
    });
    let metadata = object! { "resourceVersion" => revision.to_string() };
    answer_items(exchange, target, format, &shape, metadata, services)
}

async fn create(app: &App, exchange: &Exchange, target: &Target, body: Body) -> Result<Response<Body>, Refusal> {
    let review = built_in(&target.version).and_then(|kind| kind.review);
    if review == Some(Review::Binding) {
        return act(app, exchange, (target, Action::Bind), body).await;
    }
    let (format, shape) = negotiate(exchange, target)?;
    let request = create_request(app, exchange, body).await?;
    let mut warnings = Warnings::default();
    let result = match review {
        Some(review) => {
            let reviewers = Reviewers { authorizer: &*app.authorizer, tokens: &app.tokens };
            app.registry.review((target, review), &exchange.user, &request, &reviewers, &mut warnings).await
        }
        None => {
            let written = app.registry.create(target, &exchange.user, &request, &mut warnings).await;
            settled(app, target, written).await.map(|written| written.object)
        }
    };
    exchange.warn(warnings);
    object(exchange, target, 201, format, &shape, Content::Value(result?))
}

/// What was written, once it can be used.
async fn settled(app: &App, target: &Target, written: Result<Written, Status>) -> Result<Written, Status> {
    let written = written?;
    app.registry.settle(target, &written.object).await;
    Ok(written)
}

async fn create_token(app: &App, exchange: &Exchange, target: &Target, body: Body) -> Result<Response<Body>, Refusal> {
    let answered = as_token_request(target);
    let (format, shape) = negotiate(exchange, &answered)?;
    let request = create_request(app, exchange, body).await?;
    let mut warnings = Warnings::default();
    let Some(Issuing { issuer, .. }) = &app.issuing else { return Err(Status::not_found_generic().into()) };
    let result = app.registry.create_token(issuer, (target, &exchange.user), &request, &mut warnings).await;
    exchange.warn(warnings);
    let IssuedToken { request, credential_id } = result?;
    exchange.observe(|observed| observed.annotate("authentication.kubernetes.io/issued-credential-id", &credential_id));
    object(exchange, &answered, 201, format, &shape, Content::Value(request))
}

/// Does something to an object, of which the answer only says that it is done.
async fn act(
    app: &App,
    exchange: &Exchange,
    (target, action): (&Target, Action),
    body: Body,
) -> Result<Response<Body>, Refusal> {
    let (format, _) = negotiate(exchange, target)?;
    let request = create_request(app, exchange, body).await?;
    let mut warnings = Warnings::default();
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
    Ok(answer::content(exchange, 201, Format { transform: None, ..format }, Content::Value(status)))
}

/// Speaks with what an object stands for, which nothing here does: an empty answer is all that can come of it.
async fn connect(
    app: &App,
    exchange: &Exchange,
    (target, action): (&Target, Action),
) -> Result<Response<Body>, Refusal> {
    let query = |name: &str| exchange.query.first(name).unwrap_or_default();
    let number = |name: &str| exchange.query.first(name).and_then(|text| text.parse().ok());
    let registry = &app.registry;
    if action != Action::Log {
        let mut warnings = Warnings::default();
        let options = connect_options(exchange, target);
        let admitted = registry.admit_connection(target, &exchange.user, options, &mut warnings).await;
        exchange.warn(warnings);
        admitted?;
    }
    match action {
        Action::Log => {
            let options = LogOptions {
                tail_lines: number("tailLines"),
                limit_bytes: number("limitBytes"),
                since_seconds: number("sinceSeconds"),
                since_time: !query("sinceTime").is_empty(),
                stream: !query("stream").is_empty(),
            };
            registry.log(target, query("container"), &options).await?;
        }
        Action::Proxy => registry.proxy(target).await?,
        Action::ConnectService => registry.proxy_service(target).await?,
        _ => {
            let container = (target.subresource.name() != "portforward").then(|| query("container"));
            registry.connect(target, container, exchange.upgrade.is_some()).await?;
        }
    }
    Ok(answer::text(exchange, 204, ""))
}

/// What a client says of a connection, as the object that admission sees.
fn connect_options(exchange: &Exchange, target: &Target) -> Value {
    let kind = part(&target.version, target.subresource.name()).and_then(|part| part.kind);
    let texts = |name: &str| -> Vec<String> { exchange.query.all(name).map(str::to_owned).collect() };
    let first = |name: &str| exchange.query.first(name).unwrap_or_default().to_owned();
    kind.map_or(Value::Null, |kind| connect::options(kind.kind, &first, &texts))
}

async fn create_request(app: &App, exchange: &Exchange, body: Body) -> Result<CreateRequest, Refusal> {
    let body = request_body(app, exchange, body).await?;
    let options = WriteOptions::create(&exchange.query)?;
    Ok(CreateRequest {
        body,
        field_validation: options.field_validation,
        manager: manager(exchange, &options),
        dry_run: options.dry_run,
        options: options.encoded,
    })
}

async fn update(app: &App, exchange: &Exchange, target: &Target, body: Body) -> Result<Response<Body>, Refusal> {
    if target.name.is_empty() {
        return Err(Status::bad_request("name must be provided").into());
    }
    let (format, shape) = negotiate(exchange, target)?;
    let bytes = request_body(app, exchange, body).await?;
    let options = WriteOptions::update(&exchange.query)?;
    let request = UpdateRequest {
        body: bytes,
        field_validation: options.field_validation,
        manager: manager(exchange, &options),
        dry_run: options.dry_run,
        options: options.encoded,
    };
    let mut warnings = Warnings::default();
    let result = match target.subresource {
        Subresource::Scale => app.registry.update_scale(target, &exchange.user, &request, &mut warnings).await,
        _ => app.registry.update(target, &exchange.user, &request, &mut warnings).await,
    };
    exchange.warn(warnings);
    let written = settled(app, target, result).await?;
    let code = if written.created { 201 } else { 200 };
    object(exchange, target, code, format, &shape, Content::Value(written.object))
}

async fn patch(app: &App, exchange: &Exchange, target: &Target, body: Body) -> Result<Response<Body>, Refusal> {
    let supported = match target.resource.definition.is_some() {
        true => negotiate::PatchType::CUSTOM,
        false => negotiate::PatchType::BUILT_IN,
    };
    let patch_type = negotiate::PatchType::decode(&exchange.content_type, supported)
        .map_err(|error| Status::unsupported_media_type(&error.to_string()))?;
    if target.name.is_empty() {
        return Err(Status::bad_request("name must be provided").into());
    }
    let (format, shape) = negotiate(exchange, target)?;
    let bytes = exchange.read_body(&app.registry.memory, body).await?;
    let options = WriteOptions::patch(&exchange.query, patch_type == negotiate::PatchType::Apply)?;
    let request = PatchRequest {
        patch_type: match patch_type {
            negotiate::PatchType::Json => PatchType::Json,
            negotiate::PatchType::Merge => PatchType::Merge,
            negotiate::PatchType::Strategic => PatchType::StrategicMerge,
            negotiate::PatchType::Apply => PatchType::Apply,
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
    object(exchange, target, code, format, &shape, Content::Value(written.object))
}

/// The options of a DELETE: in the body, or in the query where there is none.
async fn delete_options(app: &App, exchange: &Exchange, body: Body) -> Result<query::DeleteOptions, Refusal> {
    let bytes = exchange.read_body(&app.registry.memory, body).await?;
    let options = match bytes.is_empty() {
        true => query::DeleteOptions::decode(&exchange.query)?,
        false => {
            let encoding = negotiate::body_encoding(&exchange.content_type)
                .map_err(|error| Status::unsupported_media_type(&error.to_string()))?;
            let decoded = match encoding {
                Encoding::Json => json::decode(&bytes)
                    .map_err(|error| format!("couldn't get version/kind; json parse error: {error}")),
                Encoding::Yaml => yaml::decode(&bytes).map_err(|error| error.to_string()),
                Encoding::Protobuf => query::DeleteOptions::open(&bytes),
            };
            let options = decoded.and_then(|body| query::DeleteOptions::from_body(&body));
            options.map_err(|error| Status::bad_request(&error))?
        }
    };
    options.validate()?;
    Ok(options)
}

fn deletion(options: &query::DeleteOptions) -> DeleteOptions {
    DeleteOptions {
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

/// Deleting what can't be read takes a right of its own, and is told in the audit log.
fn authorize_unsafe_delete(app: &App, exchange: &Exchange, target: &Target) -> Result<(), Refusal> {
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
    });
    match app.authorizer.authorize(&exchange.user, &attributes) {
        Decision::Allow { .. } => Ok(()),
        Decision::Deny { reason } => {
            let why = format!("not permitted to do \"unsafe-delete-ignore-read-errors\", reason: {reason}");
            Err(Status::forbidden(&version.group, &version.names.plural, &target.name, &why).into())
        }
    }
}

async fn delete(app: &App, exchange: &Exchange, target: &Target, body: Body) -> Result<Response<Body>, Refusal> {
    let (format, shape) = negotiate(exchange, target)?;
    let options = delete_options(app, exchange, body).await?;
    if options.ignore_store_read_error == Some(true) {
        authorize_unsafe_delete(app, exchange, target)?;
    }
    let mut warnings = Warnings::default();
    let outcome = app.registry.delete(target, &exchange.user, &deletion(&options), &mut warnings).await;
    exchange.warn(warnings);
    match outcome? {
        Deletion::Gone(status) => {
            let format = Format { transform: None, ..format };
            let mut status = status.to_value();
            if options.ignore_store_read_error == Some(true) {
                // The reference makes this one elsewhere, with its code.
                status.make_object().insert("code", Value::Int(200));
            }
            Ok(answer::content(exchange, 200, format, Content::Value(status)))
        }
        Deletion::Removed(value) => object(exchange, target, 200, format, &shape, Content::Value(value)),
        Deletion::Stays(value) => {
            let code = if options.orphan_dependents == Some(false) { 202 } else { 200 };
            object(exchange, target, code, format, &shape, Content::Value(value))
        }
    }
}

async fn delete_collection(
    app: &App,
    exchange: &Exchange,
    target: &Target,
    body: Body,
) -> Result<Response<Body>, Refusal> {
    let (format, shape) = negotiate(exchange, target)?;
    let (mut options, mut request) = list_options(exchange, target)?;
    if options.limit == 0 {
        // The reference goes through the collection by pages, and so has it at the revision that is named.
        options.limit = i64::MAX;
    }
    request.at = list_at(&options, target)?;
    let options = delete_options(app, exchange, body).await?;
    if options.ignore_store_read_error == Some(true) {
        let path = field::Path::new("ignoreStoreReadErrorWithClusterBreakingPotential");
        let detail = "is not allowed with DELETECOLLECTION, try again after removing the option";
        let error = field::Error::invalid(&path, true, detail);
        return Err(Status::invalid("meta.k8s.io", "DeleteOptions", "", &error.into()).into());
    }
    let mut warnings = Warnings::default();
    let deletion = deletion(&options);
    let page = app.registry.delete_collection(target, &exchange.user, &request, &deletion, &mut warnings).await;
    exchange.warn(warnings);
    answer_page(app, exchange, target, format, &shape, page?).await
}
