//! Conditions that kube-apiserver itself sets on objects, right after they are written: `Dangling` of a FlowSchema, and
//! `Available` of an APIService.
//!
//! Source: `k8s.io/apiserver/pkg/util/flowcontrol` and `k8s.io/kube-aggregator/pkg/controllers/status`, release 1.37.

use crate::kinds;
use crate::kinds::api_groups::available_here;
use crate::kinds::flow_control;
use crate::meta::Status;
use crate::object;
use crate::store::{At, Collection};
use crate::value::{Value, go_quote, json};

use super::identity::own_user;
use super::{FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings, store_failed};

const SCHEMAS: &str = "flowschemas";
const REGISTRATION: &str = "apiregistration.k8s.io";
const SERVICES: &str = "apiservices";
const SCHEMA_MANAGER: &str = "api-priority-and-fairness-config-consumer-v1";
const SERVICE_MANAGER: &str = "kube-apiserver";
/// Priority levels that exist even if they are not stored.
const MANDATORY_LEVELS: [&str; 2] = ["exempt", "catch-all"];

impl Registry {
    /// Sets the conditions that follow from a write to the object `name` of the resource of `target`, or to its status.
    /// If that fails, they are set after the next write.
    pub(super) async fn follow_up(&self, target: &Target, name: &str) {
        let version = &target.version;
        let has_conditions = matches!(
            (version.group.as_str(), version.names.plural.as_str()),
            (flow_control::GROUP, SCHEMAS) | (REGISTRATION, SERVICES)
        );
        if target.subresource == Subresource::Status && !has_conditions {
            return;
        }
        let set = match (version.group.as_str(), version.names.plural.as_str()) {
            (flow_control::GROUP, SCHEMAS) => self.set_dangling(name).await,
            (flow_control::GROUP, "prioritylevelconfigurations") => self.set_all_dangling(name).await,
            (REGISTRATION, SERVICES) => self.see_to_api_service(name).await,
            ("", "services") => self.set_available_through(&target.namespace, |by| by == name).await,
            // The service of a deleted slice is not known.
            ("discovery.k8s.io", "endpointslices") => self.set_available_through(&target.namespace, |_| true).await,
            _ => return,
        };
        if let Err(status) = set {
            tracing::debug!(message = status.message, name, "a condition could not be set");
        }
    }

    async fn see_to_api_service(&self, name: &str) -> Result<(), Status> {
        self.register_version(name).await?;
        self.set_available(name).await
    }

    /// Sets `Dangling` of the schemas that refer to a priority level.
    async fn set_all_dangling(&self, level: &str) -> Result<(), Status> {
        let snapshot = self.storage.snapshot(&Collection::new(flow_control::GROUP, SCHEMAS), At::Newest).await;
        let snapshot = snapshot.map_err(|_| Status::internal_error("the FlowSchemas can't be read"))?;
        for stored in snapshot.range("", None) {
            let Ok(schema) = json::decode(&stored.bytes) else { continue };
            if schema.str_at(&["spec", "priorityLevelConfiguration", "name"]) == level {
                self.set_dangling(&stored.key).await?;
            }
        }
        Ok(())
    }

    async fn set_dangling(&self, name: &str) -> Result<(), Status> {
        let target = self.own_target(flow_control::GROUP, SCHEMAS, name).await?;
        let Some(schema) = self.found(&target).await? else { return Ok(()) };
        let level = schema.str_at(&["spec", "priorityLevelConfiguration", "name"]);
        let is_there = MANDATORY_LEVELS.contains(&level)
            || self.has(flow_control::GROUP, "prioritylevelconfigurations", level).await?;
        let (status, reason, end) = if is_there {
            ("False", "Found", "and it exists")
        } else {
            ("True", "NotFound", "but there is no such object")
        };
        let quoted = go_quote(level);
        let message = format!("This FlowSchema references the PriorityLevelConfiguration object named {quoted} {end}");
        let condition = condition("Dangling", status, reason, &message, &self.now());
        if is_set(&schema, &condition) {
            return Ok(());
        }
        self.patch_status(target, vec![condition], PatchType::Apply, SCHEMA_MANAGER).await
    }

    /// Sets `Dangling` of the schemas that have not been written since the server created them.
    pub(super) async fn set_initial_conditions(&self) -> Result<(), Status> {
        let objects = kinds::deferred_objects();
        let schemas = objects.iter().filter(|(group, plural, _)| (*group, *plural) == (flow_control::GROUP, SCHEMAS));
        let names: Vec<String> =
            schemas.map(|(_, _, schema)| schema.str_at(&["metadata", "name"]).to_owned()).collect();
        for name in names {
            self.set_dangling(&name).await?;
        }
        Ok(())
    }

    /// Sets `Available` of the APIServices that are served by a service of the namespace, if `is_meant` is true of its
    /// name.
    async fn set_available_through(&self, namespace: &str, is_meant: impl Fn(&str) -> bool) -> Result<(), Status> {
        let snapshot = self.storage.snapshot(&Collection::new(REGISTRATION, SERVICES), At::Newest).await;
        let snapshot = snapshot.map_err(|_| Status::internal_error("the APIServices can't be read"))?;
        for stored in snapshot.range("", None) {
            let Ok(service) = json::decode(&stored.bytes) else { continue };
            let by = |name: &str| service.str_at(&["spec", "service", name]);
            if by("namespace") == namespace && !by("name").is_empty() && is_meant(by("name")) {
                self.set_available(&stored.key).await?;
            }
        }
        Ok(())
    }

    async fn set_available(&self, name: &str) -> Result<(), Status> {
        let target = self.own_target(REGISTRATION, SERVICES, name).await?;
        let Some(service) = self.found(&target).await? else { return Ok(()) };
        let now = self.now();
        let mut available = match service.at(&["spec", "service"]) {
            None => available_here(&now),
            Some(by) => {
                let (reason, message) = self.why_unavailable(by).await?;
                condition("Available", "False", reason, &message, &now)
            }
        };
        if is_set(&service, &available) {
            return Ok(());
        }
        let mut conditions = service.items_at(&["status", "conditions"]).to_vec();
        match conditions.iter_mut().find(|condition| condition.str_at(&["type"]) == "Available") {
            Some(known) => {
                if known.get("status") == available.get("status") {
                    let since = known.get("lastTransitionTime").cloned().unwrap_or_default();
                    available.make_object().insert("lastTransitionTime", since);
                }
                *known = available;
            }
            None => conditions.push(available),
        }
        self.patch_status(target, conditions, PatchType::Merge, SERVICE_MANAGER).await
    }

    /// The reason and the message of an APIService that is served by the service `by`.
    async fn why_unavailable(&self, by: &Value) -> Result<(&'static str, String), Status> {
        let (namespace, name) = (by.str_at(&["namespace"]), by.str_at(&["name"]));
        let port = by.get("port").and_then(Value::as_i64).unwrap_or(443);
        let called = format!("service/{name} in {}", go_quote(namespace));
        let Some(service) = self.read_object("", "services", &format!("{namespace}/{name}")).await? else {
            return Ok(("ServiceNotFound", format!("{called} is not present")));
        };
        if service.str_at(&["spec", "type"]) == "ClusterIP" {
            let ports = service.items_at(&["spec", "ports"]);
            let listens = |listening: &&Value| listening.get("port").and_then(Value::as_i64) == Some(port);
            let Some(found) = ports.iter().find(listens) else {
                return Ok(("ServicePortError", format!("{called} is not listening on port {port}")));
            };
            let slices = self.slices(namespace, name).await?;
            if slices.is_empty() {
                return Ok(("EndpointsNotFound", format!("cannot find endpointslices for {called}")));
            }
            let port_name = found.str_at(&["name"]);
            if !slices.iter().any(|slice| has_endpoint(slice, port_name)) {
                let quoted = go_quote(port_name);
                let message = format!("endpointslices for {called} have no addresses with port name {quoted}");
                return Ok(("MissingEndpoints", message));
            }
        }
        Ok(("FailedDiscoveryCheck", "this server does not send requests on to others".to_owned()))
    }

    /// The slices of a service's endpoints.
    async fn slices(&self, namespace: &str, service: &str) -> Result<Vec<Value>, Status> {
        let snapshot = self.storage.snapshot(&Collection::new("discovery.k8s.io", "endpointslices"), At::Newest).await;
        let snapshot = snapshot.map_err(|_| Status::internal_error("the EndpointSlices can't be read"))?;
        let prefix = format!("{namespace}/");
        let stored = snapshot.range(&prefix, None).take_while(|stored| stored.key.starts_with(&prefix));
        let own = stored.filter(|stored| stored.label("kubernetes.io/service-name") == Some(service));
        Ok(own.filter_map(|stored| json::decode(&stored.bytes).ok()).collect())
    }

    async fn has(&self, group: &str, plural: &str, key: &str) -> Result<bool, Status> {
        self.read_object(group, plural, key).await.map(|found| found.is_some())
    }

    /// A stored object, in its stored form.
    async fn read_object(&self, group: &str, plural: &str, key: &str) -> Result<Option<Value>, Status> {
        let collection = Collection::new(group, plural);
        let stored = self.storage.get(&collection, key).await;
        let stored = stored.map_err(|error| store_failed(&collection, "get", error))?;
        Ok(stored.and_then(|stored| json::decode(&stored.bytes).ok()))
    }

    async fn patch_status(
        &self,
        target: Target,
        conditions: Vec<Value>,
        patch_type: PatchType,
        manager: &str,
    ) -> Result<(), Status> {
        let target = Target { subresource: Subresource::Status, ..target };
        let body = object! {
            "apiVersion" => target.version.api_version(),
            "kind" => target.version.names.kind.as_str(),
            "metadata" => object! { "name" => target.name.as_str() },
            "status" => object! { "conditions" => conditions },
        };
        let request = PatchRequest {
            force: patch_type == PatchType::Apply,
            patch_type,
            bytes: json::encode(&body).into(),
            field_validation: FieldValidation::Ignore,
            manager: manager.to_owned(),
            dry_run: false,
            options: Value::Null,
        };
        // What the server writes itself has no follow-up: there is no recursion.
        self.patch(&target, &own_user(), &request, &mut Warnings::default()).await.map(drop)
    }
}

fn condition(kind: &str, status: &str, reason: &str, message: &str, now: &str) -> Value {
    object! {
        "type" => kind,
        "status" => status,
        "lastTransitionTime" => now,
        "reason" => reason,
        "message" => message,
    }
}

/// Whether the object has the condition, regardless of its time.
fn is_set(object: &Value, condition: &Value) -> bool {
    let text =
        |condition: &Value| ["type", "status", "reason", "message"].map(|name| condition.str_at(&[name]).to_owned());
    object.items_at(&["status", "conditions"]).iter().any(|known| text(known) == text(condition))
}

/// Whether there is a ready endpoint, and a port of this name that has a number.
fn has_endpoint(slice: &Value, port_name: &str) -> bool {
    let is_ready = |endpoint: &Value| endpoint.at(&["conditions", "ready"]).and_then(Value::as_bool).unwrap_or(true);
    let is_meant =
        |port: &Value| port.str_at(&["name"]) == port_name && port.get("port").is_some_and(|number| !number.is_null());
    slice.items_at(&["endpoints"]).iter().any(is_ready) && slice.items_at(&["ports"]).iter().any(is_meant)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::registry::{DeleteRequest, ListRequest, fixture};
    use crate::value::yaml;

    fn yaml(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("the test is YAML")
    }

    #[test]
    fn an_endpoint_needs_a_port_with_a_number_and_no_address() {
        let has = |slice: &str| has_endpoint(&yaml(slice), "https");
        assert!(has("{endpoints: [{}], ports: [{name: https, port: 443}]}"));
        assert!(has(
            "{endpoints: [{conditions: {ready: true}, addresses: [10.0.0.1]}], ports: [{name: https, port: 1}]}"
        ));
        assert!(!has("{endpoints: [{addresses: [10.0.0.1]}], ports: [{name: https}]}"));
        assert!(!has("{endpoints: [{addresses: [10.0.0.1]}], ports: [{name: other, port: 443}]}"));
        assert!(!has("{endpoints: [{conditions: {ready: false}}], ports: [{name: https, port: 443}]}"));
    }

    #[tokio::test]
    async fn conditions_that_a_client_has_set_are_set_right() {
        let registry = fixture::registry().await;
        registry.make_deferred_objects().await;
        for (group, plural, name, condition) in [
            (flow_control::GROUP, SCHEMAS, "probes", "{type: Dangling, status: 'True', reason: r, message: m}"),
            (REGISTRATION, SERVICES, "v1.apps", "{type: Available, status: 'False', reason: r, message: m}"),
        ] {
            let target = registry.own_target(group, plural, name).await.expect("it is built in");
            registry.store_computed(&target).await.expect("nothing stands in the way");
            let status = Target { subresource: Subresource::Status, ..target.clone() };
            registry
                .patch_status(status.clone(), vec![yaml(condition)], PatchType::Merge, "test")
                .await
                .expect("it is valid");
            let found = async || registry.found(&target).await.expect("the store works").expect("it is there");
            let status_of =
                |object: &Value| object.items_at(&["status", "conditions"])[0].str_at(&["reason"]).to_owned();
            assert_eq!(status_of(&found().await), "r");
            registry.settle(&status, &found().await).await;
            assert_ne!(status_of(&found().await), "r", "{plural}");
        }
    }

    #[tokio::test]
    async fn levels_that_are_deleted_as_a_collection_leave_their_schemas_dangling() {
        let registry = fixture::registry().await;
        registry.make_deferred_objects().await;
        let levels = registry.own_target(flow_control::GROUP, "prioritylevelconfigurations", "").await;
        let levels = levels.expect("it is built in");
        let (list, options) = (ListRequest::default(), DeleteRequest::default());
        let mut warnings = Warnings::default();
        registry.delete_collection(&levels, &own_user(), list, &options, &mut warnings).await.expect("it may");
        for (name, expected) in [("system-nodes", "True"), ("probes", "False")] {
            let target = registry.own_target(flow_control::GROUP, SCHEMAS, name).await.expect("it is built in");
            let schema = registry.found(&target).await.expect("the store works").expect("it is there");
            assert_eq!(schema.items_at(&["status", "conditions"])[0].str_at(&["status"]), expected, "{name}");
        }
    }
}
