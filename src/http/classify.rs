//! How a request is classified for metrics and logs.

use std::sync::Arc;

use axum::http::Method;
use jiff::Timestamp;

use crate::audit::{AuditEvent, ObjectReference};

use super::exchange::Exchange;
use super::limits::RequestKind;
use super::metrics::Route;
use super::observe::{Observed, Observer};
use super::path::{ResourcePath, Target, Verb};

/// The subresources that stand for a connection: a request for one goes on for as long as it takes, in whatever group the
/// resource is.
///
/// Source: `CreateConfig` of `pkg/controlplane/apiserver`, and `validConnectRequests` of apiserver 1.37.
const CONNECTIONS: [&str; 5] = ["attach", "exec", "log", "portforward", "proxy"];

fn is_connection(path: &ResourcePath) -> bool {
    CONNECTIONS.contains(&path.subresource.as_str())
}

/// Begins to observe a request.
pub(super) fn begin(observer: &Observer, exchange: &Exchange, target: Option<&Target>) -> Arc<Observed> {
    Observed::begin(observer, kind(exchange, target), dry_run(exchange), || event(exchange, target))
}

/// What a request does, as far as the limits care.
pub(super) fn kind(exchange: &Exchange, target: Option<&Target>) -> RequestKind {
    match target {
        Some(Target::Resource(path)) => match exchange.verb(path) {
            Verb::Watch | Verb::Proxy => RequestKind::LongRunning,
            _ if is_connection(path) => RequestKind::LongRunning,
            Verb::Get | Verb::List => RequestKind::ReadOnly,
            _ => RequestKind::Mutating,
        },
        // Some of these change something.
        Some(Target::Skiff(_)) if exchange.method != Method::GET => RequestKind::Mutating,
        // A document is only read, whatever the method.
        _ => RequestKind::ReadOnly,
    }
}

/// What is known of a request before it is answered.
pub(super) fn event(exchange: &Exchange, target: Option<&Target>) -> AuditEvent {
    let (verb, object) = match target {
        Some(Target::Resource(path)) => {
            let verb = exchange.verb(path);
            let object = ObjectReference {
                group: path.group.clone(),
                version: path.version.clone(),
                resource: path.resource.clone(),
                subresource: path.subresource.clone(),
                namespace: path.namespace.clone(),
                name: exchange.object_name(path, verb).into_owned(),
                ..ObjectReference::default()
            };
            (verb.as_str().to_owned(), Some(object))
        }
        _ => (exchange.method.as_str().to_lowercase(), None),
    };
    let annotations = exchange.authentication.iter();
    AuditEvent {
        id: exchange.audit_id.clone(),
        uri: exchange.uri.clone(),
        verb,
        user: exchange.user.clone(),
        source_ips: exchange.source_ips(),
        user_agent: exchange.user_agent.clone(),
        object,
        received: Timestamp::now(),
        annotations: annotations.map(|(name, text)| ((*name).into(), text.clone())).collect(),
        ..AuditEvent::default()
    }
}

/// `All` for a dry run, `invalid` for any other value.
fn dry_run(exchange: &Exchange) -> &'static str {
    match exchange.query.all("dryRun").map(|value| value == "All").reduce(|one, other| one && other) {
        None => "",
        Some(true) => "All",
        Some(false) => "invalid",
    }
}

/// The labels of a request for a resource that is served.
pub(super) fn resource_route(exchange: &Exchange, path: &ResourcePath, verb: Verb) -> Route {
    let verb_label = match verb {
        Verb::Watch => "WATCH",
        _ if is_connection(path) => "CONNECT",
        Verb::Get => "GET",
        Verb::List => "LIST",
        Verb::Create => "POST",
        Verb::Update => "PUT",
        Verb::Patch if exchange.content_type == "application/apply-patch+yaml" => "APPLY",
        Verb::Patch => "PATCH",
        Verb::Delete | Verb::DeleteCollection => "DELETE",
        Verb::Proxy | Verb::Unsupported => "other",
    };
    let scope = match (path.name.is_empty() && verb != Verb::Create, path.namespace.is_empty()) {
        (false, _) => "resource",
        (true, false) => "namespace",
        (true, true) => "cluster",
    };
    Route {
        verb: verb_label,
        group: path.group.clone(),
        version: path.version.clone(),
        resource: path.resource.clone(),
        subresource: path.subresource.clone(),
        scope,
        ..Route::default()
    }
}

/// The labels of a request for a document that exists.
pub(super) fn document_route(target: &Target) -> Route {
    use super::path::Probe;
    let (group, version, path) = match target {
        Target::Group(group) => (group.clone(), String::new(), ""),
        Target::GroupVersion { group, version } => (group.clone(), version.clone(), ""),
        Target::Probe { probe: Probe::Healthz, .. } => (String::new(), String::new(), "/healthz"),
        Target::Probe { probe: Probe::Livez, .. } => (String::new(), String::new(), "/livez"),
        Target::Probe { probe: Probe::Readyz, .. } => (String::new(), String::new(), "/readyz"),
        Target::Version => (String::new(), String::new(), "/version"),
        Target::Metrics => (String::new(), String::new(), "/metrics"),
        Target::Issuer => (String::new(), String::new(), "/.well-known/openid-configuration"),
        Target::IssuerKeys => (String::new(), String::new(), "/openid/v1/jwks"),
        Target::OpenApiV2 => (String::new(), String::new(), "/openapi/v2"),
        Target::OpenApiV3Index | Target::OpenApiV3(_) => (String::new(), String::new(), "/openapi/v3"),
        Target::CoreVersions => (String::new(), String::new(), "/api"),
        Target::Groups => (String::new(), String::new(), "/apis"),
        Target::Root | Target::Skiff(_) | Target::Resource(_) | Target::Undetermined | Target::Unknown => {
            Default::default()
        }
    };
    Route { verb: "GET", group, version, subresource: path.to_owned(), ..Route::default() }
}
