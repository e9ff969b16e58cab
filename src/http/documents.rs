//! Documents: discovery, OpenAPI, the version.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::body::Body;
use axum::http::{HeaderValue, Method, Response, StatusCode, header};

use crate::crd::ServedVersion;
use crate::kinds::{self, layout};
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
use super::exchange::Exchange;
use super::negotiate::{self, AnswerFormat, Encoding, Endpoint, built_in_route};
use super::path::{NOT_FOUND_TEXT, Target};
use super::{discovery, openapi, version_of};

/// The paths that are served whatever is defined.
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
    /// Changes whenever the definition does.
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
            match discovery::wants_aggregated(&exchange.accept, app.registry.definitions.minor) {
                Some(form) => aggregated(exchange, form, discovery::aggregated(core, form.version, &resources)),
                None if core => value(exchange, discovery::core_versions(""))?,
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
        Target::OpenApiV2 => open_api_v2(app, exchange, &served),
        Target::OpenApiV3Index => {
            let documents = v3_documents(&served, app.registry.definitions.minor);
            let index = documents.iter().map(|(path, document)| (path.as_str(), document.hash()));
            let index = CachedDocument::new(json::encode(&openapi::v3_index(index)));
            tagged(exchange, Encoding::Json.content_type(), &index)
        }
        Target::OpenApiV3(path) => open_api_v3(app, exchange, &served, path),
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

/// Whether a document is behind a route for GET. Others answer any method as they answer GET.
fn is_route(app: &App, target: &Target) -> bool {
    match target {
        Target::Version | Target::CoreVersions | Target::Groups => true,
        Target::Group(group) | Target::GroupVersion { group, .. } => app.registry.definitions.is_built_in(group),
        _ => false,
    }
}

/// What the route of a document says to a client that accepts nothing which it offers. `/apis` and the groups have none.
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
    let mut response = if is_known(exchange, &tag) {
        answer::body(exchange, 304, &form.content_type(), Vec::new())
    } else {
        answer::content(exchange, 200, format, AnswerContent::Value(list))
    };
    if let Ok(content_type) = HeaderValue::from_str(&form.content_type()) {
        response.headers_mut().insert(header::CONTENT_TYPE, content_type);
    }
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("public"));
    add_tag(&mut response, &tag);
    response
}

/// Whether the client has what that tag is of.
fn is_known(exchange: &Exchange, tag: &str) -> bool {
    exchange.if_none_match.split(',').any(|known| known.trim() == tag)
}

fn add_tag(response: &mut Response<Body>, tag: &str) {
    if let Ok(tag) = HeaderValue::from_str(tag) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
}

/// Pretty JSON, whatever the client accepts.
fn raw_json(exchange: &Exchange, value: &Value, layout: Layout) -> Response<Body> {
    let bytes = json::indent(&json::encode_as(value, layout));
    answer::body(exchange, 200, Encoding::Json.content_type(), bytes)
}

/// JSON with a tag: a client that has it already gets 304.
fn tagged(exchange: &Exchange, content_type: &str, document: &CachedDocument) -> Response<Body> {
    let mut response = if is_known(exchange, &document.tag) {
        answer::body(exchange, 304, content_type, Vec::new())
    } else {
        answer::document(exchange, content_type, document)
    };
    add_tag(&mut response, &document.tag);
    response
}

fn open_api_v2(app: &App, exchange: &Exchange, served: &[DocumentedVersion]) -> Response<Body> {
    let Some(encoding) = negotiate::open_api_v2(&exchange.accept) else {
        let mut refused = Response::new(Body::empty());
        *refused.status_mut() = StatusCode::NOT_ACCEPTABLE;
        refused.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
        return refused;
    };
    let hash = served.iter().map(|served| served.mark.as_str()).collect::<Vec<_>>().join(",");
    let document = || {
        let versions: Vec<_> = served.iter().map(|served| Arc::clone(&served.version)).collect();
        openapi::v2_document(&versions, app.registry.definitions.minor)
    };
    if encoding == Encoding::Protobuf {
        let make = || protobuf::encode(&protobuf::messages::OPEN_API_V2, &document());
        return tagged(exchange, negotiate::OPEN_API_V2_PROTOBUF, &app.documents.get("v2-protobuf", &hash, make));
    }
    let document = app.documents.get("v2", &hash, || json::encode(&document()));
    tagged(exchange, Encoding::Json.content_type(), &document)
}

fn open_api_v3(app: &App, exchange: &Exchange, served: &[DocumentedVersion], path: &str) -> Response<Body> {
    let minor = app.registry.definitions.minor;
    let documents = v3_documents(served, minor);
    let Some(document) = documents.get(path) else { return answer::text(exchange, 404, NOT_FOUND_TEXT) };
    let hash = document.hash();
    if exchange.query.first("hash").is_some_and(|asked| !asked.is_empty() && asked != hash) {
        let mut moved = answer::text(exchange, 301, "");
        if let Ok(location) = HeaderValue::from_str(&openapi::v3_url(path, hash)) {
            moved.headers_mut().insert(header::LOCATION, location);
        }
        return moved;
    }
    let made = match document {
        V3Document::Discovery { path: discovery, .. } => {
            app.documents.get(path, hash, || json::encode(&openapi::v3_discovery_document(discovery, minor)))
        }
        V3Document::Versions { versions, .. } => {
            let served: Vec<_> = versions.iter().filter(|version| version.served).cloned().collect();
            if served.is_empty() {
                let mut empty = Response::new(Body::empty());
                empty.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache, private"));
                return empty;
            }
            app.documents.get(path, hash, || json::encode(&openapi::v3_document(&served)))
        }
    };
    tagged(exchange, Encoding::Json.content_type(), &made)
}

/// A v3 document before it is made. Clients keep documents by the hash. Another version of the server has others, so it is
/// part of it.
enum V3Document {
    /// Of a group and version, which is empty where it is declared but not served.
    Versions { hash: String, versions: Vec<Arc<ServedVersion>> },
    /// Of a path of discovery.
    Discovery { hash: String, path: openapi::DiscoveryPath },
}

impl V3Document {
    fn hash(&self) -> &str {
        match self {
            V3Document::Versions { hash, .. } | V3Document::Discovery { hash, .. } => hash,
        }
    }
}

/// The v3 documents there are, by their paths.
fn v3_documents(served: &[DocumentedVersion], minor: Minor) -> BTreeMap<String, V3Document> {
    let hash_of = |marks: &str| openapi::etag(format!("{}:{marks}", version_of(minor)).as_bytes());
    let mut by_path: BTreeMap<String, (String, Vec<Arc<ServedVersion>>)> = BTreeMap::new();
    for one in served {
        let (marks, versions) = by_path.entry(document_path(&one.version)).or_default();
        marks.push_str(&one.mark);
        versions.push(Arc::clone(&one.version));
    }
    let versions: Vec<_> = served.iter().map(|one| Arc::clone(&one.version)).collect();
    let discovery = openapi::discovery_paths(&versions)
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
    // Where the database is away, what is known is told.
    _ = app.registry.storage.catch_up().await;
    let mut served = Vec::new();
    for resource in app.registry.resources().await? {
        // A kind in two groups is stored in one of them, and served in the other by another resource.
        let own = |version: &&Arc<ServedVersion>| version.group == resource.first().group;
        for version in resource.versions.iter().filter(own) {
            work::step();
            let revision = resource.definition.as_ref().map(|definition| definition.revision);
            served.push(DocumentedVersion {
                version: Arc::clone(version),
                resource: Arc::clone(&resource),
                mark: format!("{}/{}@{}", version.qualified_plural(), version.version, revision.unwrap_or_default()),
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
