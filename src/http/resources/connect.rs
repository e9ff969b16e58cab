//! What an object stands for: the logs of a container, a container, a service.

use axum::body::Body;
use axum::http::Response;

use crate::kinds::Action;
use crate::kinds::pod_object::connect::LogOptions;
use crate::registry::Target;

use super::super::answer;
use super::super::app::App;
use super::super::exchange::Exchange;
use super::refusal::Refusal;

/// Speaks with what an object stands for, which nothing here does: an empty answer is all that can come of it.
pub(super) async fn connect(
    app: &App,
    exchange: &Exchange,
    (target, action): (&Target, Action),
) -> Result<Response<Body>, Refusal> {
    let query = |name: &str| exchange.query.first(name).unwrap_or_default();
    let number = |name: &str| exchange.query.first(name).and_then(|text| text.parse().ok());
    let registry = &app.registry;
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
        Action::ConnectNode => registry.proxy_node(target).await?,
        _ => {
            let container = (target.subresource.name() != "portforward").then(|| query("container"));
            registry.connect(target, container, exchange.upgrade.is_some()).await?;
        }
    }
    Ok(answer::text(exchange, 204, ""))
}
