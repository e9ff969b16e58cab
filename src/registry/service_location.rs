//! Chooses the endpoint of a service for a request that is proxied through the server.
//!
//! Source: `ResourceLocation` in `pkg/registry/core/service/storage/storage.go`, release 1.37.

use std::sync::Arc;

use crate::kinds::pod_object::connect;
use crate::meta::Status;
use crate::store::{Collection, Stored};
use crate::value::{Value, json};

use super::{Registry, Target, store_failed};

impl Registry {
    /// Proxies a request to an endpoint of a service.
    ///
    /// Errors: those of [`Registry::service_location`], and 503 as it does not answer.
    pub async fn proxy_service(&self, target: &Target) -> Result<(), Status> {
        let address = self.service_location(target).await?;
        Err(Status::service_unavailable(&format!("error trying to reach service: {}", connect::refused(&address))))
    }

    /// The address and port of an endpoint of the service that `target` names, as `name`, `name:port` or
    /// `scheme:name:port`.
    ///
    /// Errors: 400 for another name, 404, 503 if no endpoint is a pod with that port.
    async fn service_location(&self, target: &Target) -> Result<String, Status> {
        let id = &target.name;
        let (name, port) =
            parse_id(id).ok_or_else(|| Status::bad_request(&format!("invalid service request {id:?}")))?;
        let not_found = || Status::not_found("", "services", name);
        let mut port = port.to_owned();
        if let Ok(number) = port.parse::<i64>() {
            let service = self.read("services", &target.namespace, name).await?.ok_or_else(not_found)?;
            let mut ports = service.items_at(&["spec", "ports"]).iter();
            let found = ports.find(|port| port.get("port").and_then(Value::as_i64) == Some(number));
            let missing =
                || Status::service_unavailable(&format!("no service port {number} found for service {name:?}"));
            port = found.ok_or_else(missing)?.str_at(&["name"]).to_owned();
        }
        let endpoints = self.read("endpoints", &target.namespace, name).await?.ok_or_else(not_found)?;
        let subsets = endpoints.items_at(&["subsets"]);
        if subsets.is_empty() {
            return Err(Status::service_unavailable(&format!("no endpoints available for service {name:?}")));
        }
        for subset in subsets {
            let mut ports = subset.items_at(&["ports"]).iter();
            let Some(port) = ports.find(|known| known.str_at(&["name"]) == port) else { continue };
            for address in subset.items_at(&["addresses"]) {
                if self.is_pod(&target.namespace, address).await? {
                    let number = port.get("port").and_then(Value::as_i64).unwrap_or_default();
                    return Ok(format!("{}:{number}", address.str_at(&["ip"])));
                }
            }
        }
        Err(Status::service_unavailable(&format!("no endpoints available for service {id:?}")))
    }

    /// Whether an address is that of a pod in the namespace: requests are proxied only to pods.
    async fn is_pod(&self, namespace: &str, address: &Value) -> Result<bool, Status> {
        let reference = |name: &str| address.str_at(&["targetRef", name]);
        if reference("namespace") != namespace || reference("name").is_empty() {
            return Ok(false);
        }
        let pod = self.read("pods", namespace, reference("name")).await?;
        let has_it = |pod: Value| {
            let mut ips = pod.items_at(&["status", "podIPs"]).iter();
            ips.any(|ip| ip.str_at(&["ip"]) == address.str_at(&["ip"]))
        };
        Ok(pod.is_some_and(has_it))
    }

    /// An object of the core group as it is stored.
    async fn read(&self, plural: &str, namespace: &str, name: &str) -> Result<Option<Value>, Status> {
        let collection = Collection::new("", plural);
        let stored = self.storage.get(&collection, &format!("{namespace}/{name}")).await;
        let stored = stored.map_err(|error| store_failed(&collection, "get", error))?;
        let decode = |stored: Arc<Stored>| {
            json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))
        };
        stored.map(decode).transpose()
    }
}

/// The name and the port, which may be empty, of `name`, `name:port` or `scheme:name:port`.
fn parse_id(id: &str) -> Option<(&str, &str)> {
    let parts: Vec<&str> = id.split(':').collect();
    let (scheme, name, port) = match parts.as_slice() {
        [name] => ("", *name, ""),
        [name, port] => ("", *name, *port),
        [scheme, name, port] => (*scheme, *name, *port),
        _ => return None,
    };
    (matches!(scheme, "" | "http" | "https") && !name.is_empty()).then_some((name, port))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{Advertised, fixture};

    #[test]
    fn a_service_is_named_with_or_without_scheme_and_port() {
        assert_eq!(parse_id("a"), Some(("a", "")));
        assert_eq!(parse_id("a:http"), Some(("a", "http")));
        assert_eq!(parse_id("https:a:"), Some(("a", "")));
        for id in ["", ":80", "ftp:a:80", "a:b:c:d"] {
            assert_eq!(parse_id(id), None, "{id}");
        }
    }

    #[tokio::test]
    async fn requests_go_to_pods_alone() {
        let registry = fixture::registry().await;
        let here = Advertised { ip: Some([192, 0, 2, 2].into()), port: 6443 };
        registry.make_kubernetes_service(here).await.expect("nothing stands in the way");
        let services = fixture::target(&registry, "", "services").await;
        for (name, message) in [
            ("kubernetes", "no endpoints available for service \"kubernetes\""),
            ("https:kubernetes:443", "no endpoints available for service \"https:kubernetes:443\""),
            ("kubernetes:77", "no service port 77 found for service \"kubernetes\""),
            ("none", "services \"none\" not found"),
            ("a:b:c:d", "invalid service request \"a:b:c:d\""),
        ] {
            let target = Target { namespace: "default".to_owned(), name: name.to_owned(), ..services.clone() };
            let told = registry.service_location(&target).await.map_err(|status| status.message);
            assert_eq!(told, Err(message.to_owned()));
        }
    }
}
