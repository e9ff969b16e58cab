//! `/log`, `/exec` and others of a pod, which a kubelet would answer: here they fail at the point where a kubelet would
//! be called. Pods on simulated nodes have simulated logs.
//!
//! Source: `LogREST`, `ExecREST` and others of `pkg/registry/core/pod/rest`, release 1.36.

use crate::admission::Operation;
use crate::admission::plugins::Charges;
use crate::auth::UserInfo;
use crate::kinds::pod_object::connect::{self, LogOptions};
use crate::kinds::pod_object::simulated;
use crate::meta::Status;
use crate::store::Collection;
use crate::value::{Value, json};

use super::admit::Admitted;
use super::{Registry, Target, Warnings, store_failed};

impl Registry {
    /// Asks admission about a connection; `options` are those that the client sent.
    pub async fn admit_connection(
        &self,
        target: &Target,
        user: &UserInfo,
        options: Value,
        warnings: &mut Warnings,
    ) -> Result<(), Status> {
        let write = Admitted {
            operation: Operation::Connect,
            target,
            name: &target.name,
            old: None,
            user,
            dry_run: false,
            options: &Value::Null,
            charges: &Charges::default(),
        };
        let mut options = options;
        self.admit_mutating(&write, &mut options, warnings).await?;
        self.admit_validating(&write, &options, warnings).await
    }

    /// The log of a container of the pod: empty while the pod has no node.
    ///
    /// Errors: 400 for a container that does not exist or has not run, 404, 422 for contradictory options, 500 if a
    /// kubelet would be needed.
    pub async fn log(&self, target: &Target, container: &str, options: &LogOptions) -> Result<String, Status> {
        connect::check_log_options(options, &target.name)?;
        let pod = self.get_value(target, None).await?;
        let container = connect::container(&pod, container)?;
        if pod.str_at(&["spec", "nodeName"]).is_empty() {
            return Ok(String::new());
        }
        let node = self.node_of(&pod).await?;
        if simulated::is_simulated(&node) {
            return simulated::log(&pod, container, options, self.clock.now());
        }
        let kubelet = connect::kubelet(&node)?;
        let path = format!("/containerLogs/{}/{}/{container}", target.namespace, target.name);
        let why = connect::refused(&kubelet);
        Err(Status::plain(500, &format!("Get \"https://{kubelet}{path}\": {why}")))
    }

    /// Connects to a container of the pod, or with the pod itself if `container` is `None`.
    ///
    /// Errors: 400 for a container that does not exist, a pod without a node or a request that is not an upgrade; 404;
    /// 500.
    pub async fn connect(&self, target: &Target, container: Option<&str>, upgrades: bool) -> Result<(), Status> {
        let pod = self.get_value(target, None).await?;
        if let Some(container) = container {
            connect::container(&pod, container)?;
        }
        let node = self.node_of(&pod).await?;
        if simulated::is_simulated(&node) {
            return Err(simulated::unreachable(&pod, target.subresource.name()));
        }
        let kubelet = connect::kubelet(&node)?;
        if !upgrades {
            return Err(Status::bad_request("Upgrade request required"));
        }
        Err(Status::internal_error(&format!("error dialing backend: {}", connect::refused(&kubelet))))
    }

    /// Passes a request on to the pod, which `target` names as `[SCHEME:]NAME[:PORT]`.
    ///
    /// Errors: 400 for a pod without an address, 404, 503 as it does not answer.
    pub async fn proxy(&self, target: &Target) -> Result<(), Status> {
        let proxied = connect::proxied(&target.name, "pod")?;
        let pod = Target { name: proxied.name.to_owned(), ..target.clone() };
        let pod = self.get_value(&pod, None).await?;
        let address = connect::proxy_address(&pod, proxied.port)?;
        Err(Status::service_unavailable(&format!("error trying to reach service: {}", connect::refused(&address))))
    }

    /// Passes a request on to the node, which `target` names as `[SCHEME:]NAME[:PORT]`: without a port, to its kubelet.
    ///
    /// Errors: 400 for an address that is nobody else's, 404, 500 for a node without an address, 503 as it does not answer.
    pub async fn proxy_node(&self, target: &Target) -> Result<(), Status> {
        let proxied = connect::proxied(&target.name, "node")?;
        let node = Target { name: proxied.name.to_owned(), ..target.clone() };
        let node = self.get_value(&node, None).await?;
        let address = connect::node_address(&node, proxied.port)?;
        Err(Status::service_unavailable(&format!("error trying to reach service: {}", connect::refused(&address))))
    }

    /// The node that a pod is on.
    async fn node_of(&self, pod: &Value) -> Result<Value, Status> {
        let name = connect::node(pod)?;
        let collection = Collection::new("", "nodes");
        let stored = self.storage.get(&collection, name).await;
        let stored = stored.map_err(|error| store_failed(&collection, "get", error))?;
        // The reference names the resource of the request.
        let stored = stored.ok_or_else(|| Status::not_found("", "pods", name))?;
        json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))
    }
}
