//! Documents: discovery, OpenAPI, the version.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Instant;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};

use crate::crd::ServedVersion;
use crate::kinds::{self, layout};
use crate::memory;
use crate::meta::Status;
use crate::meta::minor::Minor;
use crate::object;
use crate::protobuf;
use crate::registry::Resource;
use crate::value::json::Layout;
use crate::value::{Value, json};
use crate::work;

use super::answer::{self, AnswerContent};
use super::app::App;
use super::discovery::AggregatedForm;
use super::document_cache::CachedDocument;
use super::exchange::{Exchange, no_memory};
use super::known_document::names_tag;
use super::negotiate::{self, AnswerFormat, Encoding, Endpoint, built_in_route};
use super::path::{NOT_FOUND_TEXT, Target};
use super::{discovery, openapi, version_of};

/// The paths that are always served, whatever resources are defined.
const ROOT_PATHS: [&str; 11] = [
    "/.well-known/openid-configuration",
    "/api",
    "/apis",
    "/healthz",
    "/livez",
    "/metrics",
    "/openapi/v2",
    "/openapi/v3",
    "/openid/v1/jwks",
    "/readyz",
    "/version",
];

/// A version that is served, and what its documents depend on.
struct DocumentedVersion {
    version: Arc<ServedVersion>,
    resource: Arc<Resource>,
    /// Its index among the versions of its resource.
    at: usize,
    /// Changes whenever the definition does; control planes share documents.
    mark: String,
}

/// Answers a request for a document.
pub(super) async fn serve(app: &App, exchange: &Exchange, target: &Target) -> Response<Body> {
    match document(app, exchange, target).await {
        Ok(response) => response,
        Err(status) => answer::status(exchange, &status),
    }
}

async fn document(app: &App, exchange: &Exchange, target: &Target) -> Result<Response<Body>, Status> {
    let served = served(app).await?;
    if let Target::GroupVersion { group, version } = target
        && app.registry.definitions.is_built_in(group)
        && discovery::group_version(group, version, &resources(&served)).is_none()
    {
        return Err(Status::not_found_generic());
    }
    if exchange.method != Method::GET && is_route(app, target) {
        return Err(Status::method_not_allowed_generic());
    }
    if let Some(message) = not_offered(app, &exchange.accept, target) {
        return Err(Status::not_acceptable_route(&message));
    }
    let not_found = || answer::text(exchange, 404, NOT_FOUND_TEXT);
    Ok(match target {
        Target::Root => raw_json(exchange, &object! { "paths" => root_paths(&served) }, Layout::Sorted),
        Target::Version => raw_json(exchange, &discovery::version(app.registry.definitions.minor), layout::VERSION),
        Target::CoreVersions | Target::Groups => {
            let resources = resources(&served);
            let core = *target == Target::CoreVersions;
            // `/apis/` is a different path, and its handler only knows the plain form.
            let is_other = !core && exchange.path.ends_with('/');
            let form = discovery::wants_aggregated(&exchange.accept, app.registry.definitions.minor);
            match form.filter(|_| !is_other) {
                Some(form) => aggregated(exchange, form, discovery::aggregated(core, form.version, &resources)),
                None if core => value(exchange, discovery::core_versions(&app.address))?,
                None => value(exchange, discovery::groups(&resources))?,
            }
        }
        Target::Group(group) => match discovery::group(group, &resources(&served)) {
            Some(found) => value(exchange, found)?,
            None => not_found(),
        },
        Target::GroupVersion { group, version } => {
            match discovery::group_version(group, version, &resources(&served)) {
                Some(found) => value(exchange, found)?,
                None => not_found(),
            }
        }
        Target::OpenApiV2 => Box::pin(open_api_v2(app, exchange, &served)).await?,
        Target::OpenApiV3Index => {
            let documents = v3_documents(&served, app.registry.definitions.minor);
            let index = documents.iter().map(|(path, document)| (path.as_str(), document.hash()));
            // As recorded: the content type is text, and there is no tag.
            answer::text(exchange, 200, json::encode_to_string(&openapi::v3_index(index)))
        }
        Target::OpenApiV3(path) => Box::pin(open_api_v3(app, exchange, &served, path)).await?,
        _ => not_found(),
    })
}

fn root_paths(served: &[DocumentedVersion]) -> Vec<Value> {
    let mut paths = ROOT_PATHS.map(str::to_owned).to_vec();
    paths.extend(served.iter().map(|served| format!("/{}", document_path(&served.version))));
    paths.sort();
    paths.dedup();
    paths.into_iter().map(Value::String).collect()
}

/// Whether the document's route is for GET only. Other routes answer any method as they answer GET.
fn is_route(app: &App, target: &Target) -> bool {
    match target {
        Target::Version | Target::CoreVersions => true,
        Target::GroupVersion { group, .. } => app.registry.definitions.is_built_in(group),
        _ => false,
    }
}

/// The answer of a document's route to a client that accepts nothing that the route offers. `/apis` and the groups have
/// no such check.
fn not_offered(app: &App, accept: &str, target: &Target) -> Option<String> {
    match target {
        Target::Version => built_in_route::not_offered(accept, &[Encoding::Json.content_type()]),
        Target::CoreVersions => built_in_route::not_acceptable(accept, false),
        Target::GroupVersion { group, .. } if app.registry.definitions.is_built_in(group) => {
            built_in_route::not_acceptable(accept, false)
        }
        _ => None,
    }
}

/// A document in the encoding that the client accepts.
fn value(exchange: &Exchange, value: Value) -> Result<Response<Body>, Status> {
    let format = negotiate::format(&exchange.accept, &exchange.user_agent, &exchange.query, Endpoint::Plain)
        .map_err(|error| Status::not_acceptable(&error.to_string()))?;
    Ok(answer::content(exchange, 200, format, AnswerContent::Value(value)))
}

/// Aggregated discovery, whose tag is the same in each of its forms and versions.
fn aggregated(exchange: &Exchange, form: AggregatedForm, list: Value) -> Response<Body> {
    let tag = CachedDocument::new(json::encode(list.get("items").unwrap_or(&Value::Null))).tag;
    let pretty = form.pretty || negotiate::wants_pretty(&exchange.user_agent, &exchange.query);
    let format =
        AnswerFormat { encoding: form.encoding, pretty: pretty && form.encoding == Encoding::Json, transform: None };
    // Unlike for other documents, the header is compared with the tag as a whole.
    if exchange.if_none_match == tag {
        let mut known = without_content(StatusCode::NOT_MODIFIED, &["Accept"]);
        known.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
        add_tag(&mut known, &tag);
        return known;
    }
    let mut response = answer::content(exchange, 200, format, AnswerContent::Value(list));
    if let Ok(content_type) = HeaderValue::from_str(&form.content_type()) {
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    let compressed = response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    if let Some(compressed) = compressed {
        response.headers_mut().append(header::VARY, compressed);
    }
    add_tag(&mut response, &tag);
    response
}

fn add_tag(response: &mut Response<Body>, tag: &str) {
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
}

/// An answer with headers alone.
fn without_content(code: StatusCode, vary: &[&'static str]) -> Response<Body> {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = code;
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
    set_vary(&mut response, vary);
    response
}

fn set_vary(response: &mut Response<Body>, vary: &[&'static str]) {
    response.headers_mut().remove(header::VARY);
    for name in vary {
        response.headers_mut().append(header::VARY, HeaderValue::from_static(name));
    }
}

/// Pretty JSON, whatever the client accepts.
fn raw_json(exchange: &Exchange, value: &Value, layout: Layout) -> Response<Body> {
    let bytes = json::indent(&json::encode_as(value, layout));
    answer::body(exchange, 200, Encoding::Json.content_type(), bytes)
}

/// What the answers to requests for OpenAPI documents depend on.
const V2_VARY: [&str; 2] = ["Accept-Encoding", "Accept"];
const V3_VARY: [&str; 1] = ["Accept"];

/// A document with a tag: a client that already has it gets 304, or 412 if the method is not a read.
async fn tagged(
    exchange: &Exchange,
    content_type: &'static str,
    document: &CachedDocument,
    vary: &[&'static str],
) -> Response<Body> {
    let mut response = match exchange.method {
        _ if !names_tag(&exchange.if_none_match, &document.tag) => {
            answer::document(exchange, content_type, document).await
        }
        Method::GET | Method::HEAD => without_content(StatusCode::NOT_MODIFIED, vary),
        _ => typed(without_content(StatusCode::PRECONDITION_FAILED, vary), content_type),
    };
    set_vary(&mut response, vary);
    add_tag(&mut response, &document.tag);
    response
}

fn typed(mut response: Response<Body>, content_type: &'static str) -> Response<Body> {
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(content_type));
    response
}

/// The length of the paths of a version in a document, in bytes: more than most have. In v2 they share parameters.
const V2_PATHS_BYTES: usize = 16 << 10;
const V3_PATHS_BYTES: usize = 64 << 10;
/// How much memory a definition takes while its schemas are published, as a multiple of its text.
const PUBLISHED_TIMES: usize = 12;

/// How much memory it takes to build a document of these versions, beside what built-in kinds take: its text is there
/// twice for a moment, and each definition is read by itself.
fn building_bytes<'s>(versions: impl IntoIterator<Item = &'s DocumentedVersion>, paths_bytes: usize) -> usize {
    let (mut text_bytes, mut largest_bytes) = (0, 0);
    let mut last = None;
    for one in versions {
        let Some(definition) = &one.resource.definition else { continue };
        text_bytes += paths_bytes;
        if last.replace(Arc::as_ptr(&one.resource)) != Some(Arc::as_ptr(&one.resource)) {
            text_bytes += definition.text_bytes;
            largest_bytes = largest_bytes.max(definition.text_bytes);
        }
    }
    2 * text_bytes.min(openapi::DOCUMENT_BYTES_MAX) + PUBLISHED_TIMES * largest_bytes
}

/// The versions with their schemas. Those that are made for this are dropped with the last version of their resource.
fn with_schemas<'s>(
    versions: impl IntoIterator<Item = &'s DocumentedVersion>,
) -> impl Iterator<Item = Arc<ServedVersion>> {
    let mut own: Option<(&Arc<Resource>, Vec<Arc<ServedVersion>>)> = None;
    versions.into_iter().map(move |one| {
        if let Some((of, versions)) = &own
            && Arc::ptr_eq(of, &one.resource)
        {
            return Arc::clone(&versions[one.at]);
        }
        own = None;
        if one.resource.definition.is_none() || one.resource.has_schemas() {
            return Arc::clone(&one.version);
        }
        let (_, versions) = own.insert((&one.resource, one.resource.without_schemas().versions));
        Arc::clone(&versions[one.at])
    })
}

/// A document, built unless it is kept.
///
/// Errors: 429 if there are not so many bytes of memory to build it.
async fn kept(
    (app, exchange): (&App, &Exchange),
    (name, hash): (&str, &str),
    building_bytes: usize,
    make: impl FnOnce() -> Vec<u8>,
) -> Result<Arc<CachedDocument>, Status> {
    let memory = &app.registry.memory;
    let asked = Instant::now();
    let made = async {
        // Those who waited while another one found no memory don't wait for it again.
        if asked.elapsed() > memory::WAIT {
            return Err(no_memory());
        }
        if building_bytes > 0 {
            exchange.reserve_answer(memory, building_bytes.min(memory.answer_bytes_max())).await?;
        }
        Ok(make())
    };
    app.documents.get((name, hash), memory.documents_bytes_max(), made).await
}

async fn open_api_v2(app: &App, exchange: &Exchange, served: &[DocumentedVersion]) -> Result<Response<Body>, Status> {
    let Some(encoding) = negotiate::open_api_v2(&exchange.accept) else {
        return Ok(without_content(StatusCode::NOT_ACCEPTABLE, &V2_VARY));
    };
    let hash = served.iter().map(|served| served.mark.as_str()).collect::<Vec<_>>().join(",");
    let versions = || served.iter().filter(|served| served.version.served);
    let make = || openapi::v2_document(with_schemas(versions()), app.registry.definitions.minor);
    let building_bytes = building_bytes(versions(), V2_PATHS_BYTES);
    if encoding == Encoding::Protobuf {
        let make = || protobuf::encode_json(&protobuf::messages::OPEN_API_V2, &make());
        let document = kept((app, exchange), ("v2-protobuf", &hash), 2 * building_bytes, make).await?;
        return Ok(tagged(exchange, negotiate::OPEN_API_V2_PROTOBUF, &document, &V2_VARY).await);
    }
    let document = kept((app, exchange), ("v2", &hash), building_bytes, make).await?;
    Ok(tagged(exchange, Encoding::Json.content_type(), &document, &V2_VARY).await)
}

async fn open_api_v3(
    app: &App,
    exchange: &Exchange,
    served: &[DocumentedVersion],
    path: &str,
) -> Result<Response<Body>, Status> {
    let minor = app.registry.definitions.minor;
    let documents = v3_documents(served, minor);
    let Some(document) = documents.get(path) else { return Ok(without_content(StatusCode::NOT_FOUND, &[])) };
    if negotiate::open_api_v3(&exchange.accept).is_none() {
        return Ok(without_content(StatusCode::NOT_ACCEPTABLE, &V3_VARY));
    }
    let hash = document.hash();
    let made = match document {
        V3Document::Discovery { path: discovery, .. } => {
            kept((app, exchange), (path, hash), 0, || openapi::v3_discovery_document(discovery, minor)).await?
        }
        V3Document::Versions { versions, .. } => {
            let versions = || versions.iter().copied().filter(|one| one.version.served);
            if versions().next().is_none() {
                return Ok(without_content(StatusCode::OK, &[]));
            }
            let make = || openapi::v3_document(with_schemas(versions()), minor);
            kept((app, exchange), (path, hash), building_bytes(versions(), V3_PATHS_BYTES), make).await?
        }
    };
    // DIFFERS: clients that accept only protobuf get JSON, too.
    let content_type = Encoding::Json.content_type();
    if exchange.query.first("hash").is_some_and(|asked| !asked.is_empty() && asked != hash) {
        let mut moved = typed(without_content(StatusCode::MOVED_PERMANENTLY, &V3_VARY), content_type);
        if let Ok(location) = HeaderValue::from_str(&openapi::v3_url(path, hash)) {
            moved.headers_mut().insert(header::LOCATION, location);
        }
        add_tag(&mut moved, &made.tag);
        return Ok(moved);
    }
    Ok(tagged(exchange, content_type, &made, &V3_VARY).await)
}

/// A v3 document before it is built. Clients cache documents by the hash. Another version of the server has other
/// documents, so the server's version is part of the hash.
enum V3Document<'s> {
    /// For a group and version; empty if the version is declared but not served.
    Versions { hash: String, versions: Vec<&'s DocumentedVersion> },
    /// For a path of discovery.
    Discovery { hash: String, path: openapi::DiscoveryPath },
}

impl V3Document<'_> {
    fn hash(&self) -> &str {
        match self {
            V3Document::Versions { hash, .. } | V3Document::Discovery { hash, .. } => hash,
        }
    }
}

/// The v3 documents, by their paths.
fn v3_documents(served: &[DocumentedVersion], minor: Minor) -> BTreeMap<String, V3Document<'_>> {
    let hash_of = |marks: &str| openapi::etag(format!("{}:{marks}", version_of(minor)).as_bytes());
    let mut by_path: BTreeMap<String, (String, Vec<&DocumentedVersion>)> = BTreeMap::new();
    for one in served {
        let (marks, versions) = by_path.entry(document_path(&one.version)).or_default();
        marks.push_str(&one.mark);
        versions.push(one);
    }
    let discovery = openapi::discovery_paths(served.iter().map(|one| &*one.version))
        .into_iter()
        .map(|path| (path.path.clone(), V3Document::Discovery { hash: hash_of(&path.path), path }));
    let of_versions = by_path
        .into_iter()
        .map(|(path, (marks, versions))| (path, V3Document::Versions { hash: hash_of(&marks), versions }));
    discovery.chain(of_versions).collect()
}

fn document_path(version: &ServedVersion) -> String {
    openapi::document_path(&version.group, &version.version)
}

async fn served(app: &App) -> Result<Vec<DocumentedVersion>, Status> {
    // If the database is unreachable, the answer shows what is already known.
    _ = app.registry.storage.catch_up().await;
    let mut served = Vec::new();
    for resource in app.registry.resources().await? {
        // Requests for its objects are answered all the same.
        if resource.definition.as_ref().is_some_and(|definition| !definition.established) {
            continue;
        }
        // A kind in two groups is stored in one of them; another resource serves it in the other.
        let own = |(_, version): &(usize, &Arc<ServedVersion>)| version.group == resource.first().group;
        for (at, version) in resource.versions.iter().enumerate().filter(own) {
            work::step();
            let digest = resource.definition.as_ref().map(|definition| definition.digest).unwrap_or_default();
            served.push(DocumentedVersion {
                version: Arc::clone(version),
                resource: Arc::clone(&resource),
                at,
                mark: format!("{}/{}@{digest:x}", version.qualified_plural(), version.version),
            });
        }
    }
    Ok(served)
}

fn resources(served: &[DocumentedVersion]) -> Vec<discovery::DiscoveredResource> {
    let resources = served.iter().map(|served| {
        let version = Arc::clone(&served.version);
        match &served.resource.definition {
            Some(definition) => discovery::DiscoveredResource::custom(version, definition.terminating),
            None => {
                let verbs = kinds::find(&version.group, &version.names.plural).map_or(&[][..], |kind| kind.verbs);
                discovery::DiscoveredResource::built_in(version, verbs)
            }
        }
    });
    resources.collect()
}
