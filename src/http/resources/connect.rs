//! Connections to what an object represents: the logs of a container, a container, a service.

use axum::body::Body;
use axum::http::Response;

use crate::kinds::Action;
use crate::kinds::pod_object::connect::{self, LogOptions};
use crate::meta::{Status, time};
use crate::registry::{Target, Warnings};
use crate::value::Value;

use super::super::answer;
use super::super::app::App;
use super::super::exchange::Exchange;
use super::super::path;
use super::part;
use super::refusal::RequestRefusal;

/// Connects to what an object represents. Nothing here is really running: only the log of a simulated pod can be read.
pub(super) async fn connect(
    app: &App,
    exchange: &Exchange,
    (target, action): (&Target, Action),
) -> Result<Response<Body>, RequestRefusal> {
    let query = |name: &str| exchange.query.first(name).unwrap_or_default();
    let number = |name: &str| exchange.query.first(name).and_then(|text| text.parse().ok());
    let is_true = |name: &str| matches!(query(name), "1" | "t" | "T" | "true" | "TRUE" | "True");
    let registry = &app.registry;
    if action != Action::Log {
        if exchange.query.all("dryRun").next().is_some() {
            return Err(Status::bad_request("dryRun is not supported").into());
        }
        let mut warnings = Warnings::default();
        let options = connect_options(exchange, target);
        let admitted = registry.admit_connection(target, &exchange.user, options, &mut warnings).await;
        exchange.warn(warnings);
        admitted?;
    }
    match action {
        Action::Log => {
            let since = match query("sinceTime") {
                "" => None,
                text => time::normalize(text).map_err(|error| Status::bad_request(&error.to_string()))?,
            };
            let options = LogOptions {
                tail_lines: number("tailLines"),
                limit_bytes: number("limitBytes"),
                since_seconds: number("sinceSeconds"),
                since: since.and_then(|since| since.parse().ok()),
                timestamps: is_true("timestamps"),
                previous: is_true("previous"),
                stream: !query("stream").is_empty(),
            };
            let log = registry.log(target, query("container"), &options).await?;
            if !log.is_empty() {
                return Ok(answer::text(exchange, 200, &log));
            }
        }
        Action::Proxy => registry.proxy(target).await?,
        Action::ConnectService => registry.proxy_service(target).await?,
        Action::ConnectNode => registry.proxy_node(target).await?,
        _ => {
            let container = (target.subresource.name() != "portforward").then(|| query("container"));
            registry.connect(target, container, exchange.upgrade.is_some()).await?;
        }
    }
    Ok(answer::text(exchange, 204, ""))
}

/// The options of a connection, as the object that admission sees.
fn connect_options(exchange: &Exchange, target: &Target) -> Value {
    let kind = part(&target.version, target.subresource.name()).and_then(|part| part.kind);
    let texts = |name: &str| -> Vec<String> { exchange.query.all(name).map(str::to_owned).collect() };
    let first = |name: &str| match name {
        "path" => passed_on(exchange),
        name => exchange.query.first(name).unwrap_or_default().to_owned(),
    };
    kind.map_or(Value::Null, |kind| connect::options(kind.kind, &first, &texts))
}

/// The path behind the proxied object. The query parameter `path` does not count.
fn passed_on(exchange: &Exchange) -> String {
    let Ok(path::Target::Resource(path)) = path::parse(&exchange.path) else { return String::new() };
    let mut rest = path.rest.join("/");
    if !rest.is_empty() && !rest.starts_with('/') {
        rest.insert(0, '/');
    }
    if exchange.path.ends_with('/') && !rest.ends_with('/') {
        rest.push('/');
    }
    rest
}
