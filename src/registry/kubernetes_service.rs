//! What a cluster has about itself from the start: the range of its cluster IPs, and the service `kubernetes` in
//! `default`, whose endpoints are its API servers.
//!
//! They are created if missing, and the endpoints are updated. A second start writes nothing.
//!
//! Source: `pkg/controlplane/controller/{defaultservicecidr,kubernetesservice}` and `pkg/controlplane/reconcilers`, release
//! 1.37.

use std::collections::BTreeSet;
use std::net::IpAddr;
use std::sync::Arc;

use futures_util::future::try_join4;

use crate::kinds::services::ranges;
use crate::meta::Status;
use crate::object;
use crate::value::{Value, json};

use super::identity::own_user;
use super::service_network::{GROUP, MANAGER};
use super::{
    DeleteRequest, FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings, store_failed,
};

/// The name of the service and its endpoints.
const NAME: &str = "kubernetes";
const NAMESPACE: &str = "default";
const PORT_NAME: &str = "https";
const SERVICE_PORT: i64 = 443;
/// The manager of the state of the first range.
const RANGE_MANAGER: &str = "kubernetes-service-cidr-controller";

/// The address at which other machines reach this server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advertised {
    /// Without one the service has no endpoints.
    pub ip: Option<IpAddr>,
    pub port: u16,
}

impl Registry {
    /// Creates the range and the service of the cluster if they are missing, and adds this server to the endpoints.
    pub async fn make_kubernetes_service(self: &Arc<Self>, advertised: Advertised) -> Result<(), Status> {
        let registry = Arc::clone(self);
        // In a task of their own, like the first namespaces: together they need only two disk writes.
        let made = tokio::spawn(async move {
            try_join4(
                registry.make_default_range(),
                registry.make_service(advertised.port),
                registry.make_endpoints(advertised),
                registry.make_endpoint_slice(advertised),
            )
            .await
        });
        made.await.map_err(|error| Status::internal_error(&error.to_string()))?.map(drop)
    }

    /// Removes this server from the endpoints when it stops, as other servers may continue.
    pub async fn leave_kubernetes_service(&self, advertised: Advertised) -> Result<(), Status> {
        if !self.storage.is_shared() {
            return Ok(());
        }
        let gone = Advertised { ip: None, ..advertised };
        let left = |addresses: &mut BTreeSet<String>| {
            if let Some(ip) = advertised.ip {
                addresses.remove(&ip.to_string());
            }
        };
        self.reconcile_endpoints(gone, &left).await?;
        self.reconcile_slice(gone, &left).await
    }

    /// Older minors have only the ranges from the flags.
    async fn make_default_range(&self) -> Result<(), Status> {
        if self.resolve(GROUP, "servicecidrs").await?.is_none() {
            return Ok(());
        }
        let target = self.own_target(GROUP, "servicecidrs", ranges::DEFAULT).await?;
        let ranges: Vec<Value> = self.network.ranges().iter().map(|range| Value::String(range.to_string())).collect();
        let Some(found) = self.found(&target).await? else {
            let range = object! {
                "metadata" => object! { "name" => ranges::DEFAULT },
                "spec" => object! { "cidrs" => ranges },
            };
            self.make_own(&target, range).await?;
            return self.declare_ready(&status_of(target)).await;
        };
        let known = found.items_at(&["spec", "cidrs"]);
        if let [known] = known
            && ranges.len() > 1
            && Some(known) == ranges.first()
        {
            // The service `kubernetes` is cared for all the same.
            if let Err(status) = self.add_ranges(&target, found, ranges).await {
                tracing::warn!(status.message, "the default range of cluster IPs can't get its second family");
            }
            return Ok(());
        }
        let is_deleted = found.at(&["metadata", "deletionTimestamp"]).is_some_and(|time| !time.is_null());
        let mut conditions = found.items_at(&["status", "conditions"]).iter();
        let ready = conditions.find(|condition| condition.str_at(&["type"]) == "Ready");
        let is_decided = ready.is_some_and(|ready| matches!(ready.str_at(&["status"]), "True" | "False"));
        if is_deleted || is_decided || known != ranges {
            return Ok(());
        }
        self.declare_ready(&status_of(target)).await
    }

    /// Gives the first range of a cluster that had one family the ranges of both.
    async fn add_ranges(&self, target: &Target, mut found: Value, ranges: Vec<Value>) -> Result<(), Status> {
        found.make_object().entry("spec").make_object().insert("cidrs", Value::Array(ranges));
        self.update_own(target, MANAGER, &found).await
    }

    /// Sets the condition that addresses can be allocated from the first range.
    async fn declare_ready(&self, target: &Target) -> Result<(), Status> {
        let ready = object! {
            "type" => "Ready",
            "status" => "True",
            "lastTransitionTime" => self.now(),
            "message" => "Kubernetes default Service CIDR is ready",
        };
        let applied = object! {
            "apiVersion" => target.version.api_version(),
            "kind" => target.version.names.kind.as_str(),
            "metadata" => object! { "name" => ranges::DEFAULT },
            "status" => object! { "conditions" => vec![ready] },
        };
        let request = PatchRequest {
            patch_type: PatchType::Apply,
            bytes: json::encode(&applied).into(),
            field_validation: FieldValidation::Ignore,
            manager: RANGE_MANAGER.to_owned(),
            force: true,
            dry_run: false,
            options: Value::Null,
        };
        self.patch(target, &own_user(), &request, &mut Warnings::default()).await.map(drop)
    }

    async fn make_service(&self, port: u16) -> Result<(), Status> {
        let target = self.target_in_default("", "services").await?;
        let Some(ip) = self.network.ranges().first().and_then(|range| range.first()) else { return Ok(()) };
        if self.found(&target).await?.is_some() {
            return Ok(());
        }
        let port = object! {
            "name" => PORT_NAME, "protocol" => "TCP", "port" => SERVICE_PORT, "targetPort" => i64::from(port),
        };
        let labels = object! { "component" => "apiserver", "provider" => "kubernetes" };
        let service = object! {
            "metadata" => object! { "name" => NAME, "labels" => labels },
            "spec" => object! {
                "clusterIP" => ip.to_string(),
                "ipFamilyPolicy" => "SingleStack",
                "ports" => vec![port],
                "sessionAffinity" => "None",
                "type" => "ClusterIP",
            },
        };
        self.make_own(&target, service).await
    }

    async fn make_endpoints(&self, advertised: Advertised) -> Result<(), Status> {
        self.reconcile_endpoints(advertised, &|addresses| self.join(addresses, advertised)).await
    }

    async fn make_endpoint_slice(&self, advertised: Advertised) -> Result<(), Status> {
        self.reconcile_slice(advertised, &|addresses| self.join(addresses, advertised)).await
    }

    /// The addresses of the API servers: this one, and others on the same database.
    fn join(&self, addresses: &mut BTreeSet<String>, advertised: Advertised) {
        if !self.storage.is_shared() {
            addresses.clear();
        }
        addresses.extend(advertised.ip.map(|ip| ip.to_string()));
    }

    async fn reconcile_endpoints(
        &self,
        advertised: Advertised,
        change: &(dyn Fn(&mut BTreeSet<String>) + Sync),
    ) -> Result<(), Status> {
        let target = self.target_in_default("", "endpoints").await?;
        let found = self.found(&target).await?;
        let subsets = found.as_ref().map(|found| found.items_at(&["subsets"])).unwrap_or_default();
        let items = subsets.iter().flat_map(|subset| subset.items_at(&["addresses"]));
        let mut addresses = items.map(|item| item.str_at(&["ip"]).to_owned()).collect();
        change(&mut addresses);
        let addresses: Vec<Value> = addresses.into_iter().map(|ip| object! { "ip" => ip }).collect();
        let ports = vec![port(advertised.port)];
        let subsets = if addresses.is_empty() {
            Vec::new()
        } else {
            vec![object! { "addresses" => addresses, "ports" => ports }]
        };
        let labels = object! { "endpointslice.kubernetes.io/skip-mirror" => "true" };
        self.reconcile_fields(&target, found, labels, object! { "subsets" => subsets }).await
    }

    async fn reconcile_slice(
        &self,
        advertised: Advertised,
        change: &(dyn Fn(&mut BTreeSet<String>) + Sync),
    ) -> Result<(), Status> {
        let target = self.target_in_default("discovery.k8s.io", "endpointslices").await?;
        let found = self.found(&target).await?;
        let endpoints = found.as_ref().map(|found| found.items_at(&["endpoints"])).unwrap_or_default();
        let items = endpoints.iter().flat_map(|endpoint| endpoint.items_at(&["addresses"]));
        let mut addresses: BTreeSet<String> = items.filter_map(Value::as_str).map(str::to_owned).collect();
        change(&mut addresses);
        let is_v6 = !addresses.is_empty() && addresses.iter().all(|ip| ip.contains(':'));
        let ready = object! { "ready" => true };
        let endpoint = |ip: String| object! { "addresses" => vec![Value::String(ip)], "conditions" => ready.clone() };
        let endpoints: Vec<Value> =
            addresses.into_iter().filter(|ip| ip.contains(':') == is_v6).map(endpoint).collect();
        let address_type = if is_v6 { "IPv6" } else { "IPv4" };
        let found = self.without_other_type(&target, found, address_type).await?;
        let fields = object! {
            "addressType" => address_type,
            "endpoints" => endpoints,
            "ports" => vec![port(advertised.port)],
        };
        self.reconcile_fields(&target, found, object! { "kubernetes.io/service-name" => NAME }, fields).await
    }

    /// Deletes a slice of another type of addresses, as the type of a slice can't change; returns what stays.
    async fn without_other_type(
        &self,
        target: &Target,
        found: Option<Value>,
        address_type: &str,
    ) -> Result<Option<Value>, Status> {
        if found.as_ref().is_none_or(|found| found.str_at(&["addressType"]) == address_type) {
            return Ok(found);
        }
        let (options, mut warnings) = (DeleteRequest::default(), Warnings::default());
        match self.delete(target, &own_user(), &options, &mut warnings).await {
            Ok(_) => Ok(None),
            Err(status) if status.code == 404 => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// Creates an object with these labels and fields, or updates them.
    async fn reconcile_fields(
        &self,
        target: &Target,
        found: Option<Value>,
        labels: Value,
        fields: Value,
    ) -> Result<(), Status> {
        let is_new = found.is_none();
        let mut object = found.clone().unwrap_or_else(|| object! { "metadata" => object! { "name" => NAME } });
        let entries = |value: Value| value.as_object().cloned().unwrap_or_default();
        for (name, value) in entries(fields) {
            match value.as_array() {
                Some([]) if name == "subsets" => _ = object.make_object().remove(&name),
                _ => _ = object.make_object().insert(name, value),
            }
        }
        let own = object.make_object().entry("metadata").make_object().entry("labels").make_object();
        for (name, value) in entries(labels) {
            own.insert(name, value);
        }
        if is_new {
            return self.make_own(target, object).await;
        }
        if found.as_ref() == Some(&object) {
            return Ok(());
        }
        self.update_own(target, MANAGER, &object).await
    }

    async fn target_in_default(&self, group: &str, plural: &str) -> Result<Target, Status> {
        let mut target = self.own_target(group, plural, NAME).await?;
        target.namespace = NAMESPACE.to_owned();
        Ok(target)
    }

    /// The stored object of a target, in its stored form.
    pub(super) async fn found(&self, target: &Target) -> Result<Option<Value>, Status> {
        let collection = &target.resource.collection;
        let stored = self.storage.get(collection, &target.key()).await;
        let stored = stored.map_err(|error| store_failed(collection, "get", error))?;
        let decode = |bytes: &[u8]| json::decode(bytes).map_err(|error| Status::internal_error(&error.to_string()));
        stored.map(|stored| decode(&stored.bytes)).transpose()
    }

    /// Creates an object of the server's own, unless another server was faster.
    async fn make_own(&self, target: &Target, object: Value) -> Result<(), Status> {
        let version = &target.version;
        match self.create_own(&version.group, &version.names.plural, &target.namespace, MANAGER, object).await {
            Err(status) if status.is_already_exists() => Ok(()),
            done => done,
        }
    }
}

fn status_of(target: Target) -> Target {
    Target { subresource: Subresource::Status, ..target }
}

fn port(number: u16) -> Value {
    object! { "name" => PORT_NAME, "port" => i64::from(number), "protocol" => "TCP" }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::kinds::services::allocate::PortRange;
    use crate::registry::fixture;
    use crate::registry::service_network::{ServiceNetwork, ServiceRanges};

    const HERE: Advertised = Advertised { ip: Some(IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2))), port: 6443 };

    #[tokio::test]
    async fn the_second_start_writes_nothing() {
        let registry = fixture::registry().await;
        registry.make_kubernetes_service(HERE).await.expect("nothing stands in the way");
        let before = (fixture::newest(&registry), registry.storage.counts());
        registry.make_kubernetes_service(HERE).await.expect("nothing stands in the way");
        assert_eq!(before, (fixture::newest(&registry), registry.storage.counts()));
    }

    #[tokio::test]
    async fn endpoints_follow_the_address_of_the_server() {
        let registry = fixture::registry().await;
        for port in [6443, 6444] {
            let here = Advertised { port, ..HERE };
            registry.make_kubernetes_service(here).await.expect("nothing stands in the way");
            let target = registry.target_in_default("", "endpoints").await.expect("it is built in");
            let endpoints = registry.found(&target).await.expect("the store works").expect("they are there");
            let subsets = json::encode_to_string(endpoints.get("subsets").expect("there is one"));
            let expected = format!(
                "[{{\"addresses\":[{{\"ip\":\"192.0.2.2\"}}],\"ports\":[{{\"name\":\"https\",\"port\":{port},\
                 \"protocol\":\"TCP\"}}]}}]"
            );
            assert_eq!(subsets, expected);
        }
    }

    #[tokio::test]
    async fn the_slice_is_made_anew_for_addresses_of_the_other_family() {
        let registry = fixture::registry().await;
        registry.make_kubernetes_service(HERE).await.expect("nothing stands in the way");
        let here = Advertised { ip: Some("2001:db8::2".parse().expect("it is an address")), ..HERE };
        registry.make_kubernetes_service(here).await.expect("the slice of the other family is deleted");
        let target = registry.target_in_default("discovery.k8s.io", "endpointslices").await.expect("it is built in");
        let slice = registry.found(&target).await.expect("the store works").expect("it is there");
        assert_eq!(slice.str_at(&["addressType"]), "IPv6");
        let addresses = slice.items_at(&["endpoints"])[0].items_at(&["addresses"]);
        assert_eq!(addresses, [Value::from("2001:db8::2")]);
    }

    #[tokio::test]
    async fn a_cluster_of_one_family_becomes_one_of_both() {
        let mut registry = fixture::registry().await;
        registry.make_kubernetes_service(HERE).await.expect("nothing stands in the way");
        let ranges: ServiceRanges = "10.0.0.0/24,fd00::/108".parse().expect("they are ranges");
        Arc::get_mut(&mut registry).expect("nobody else has it").network =
            ServiceNetwork::new(ranges, PortRange::default());
        registry.make_kubernetes_service(HERE).await.expect("a range may be added");
        let target = registry.own_target(GROUP, "servicecidrs", ranges::DEFAULT).await.expect("it is built in");
        let range = registry.found(&target).await.expect("the store works").expect("it is there");
        assert_eq!(ranges::ranges(&range), ["10.0.0.0/24", "fd00::/108"]);
    }

    #[tokio::test]
    async fn a_range_that_somebody_has_declared_unready_stays_so() {
        let registry = fixture::registry().await;
        registry.make_kubernetes_service(HERE).await.expect("nothing stands in the way");
        let target = registry.own_target(GROUP, "servicecidrs", ranges::DEFAULT).await.expect("it is built in");
        let status = async |status: &str| {
            let mut range = registry.found(&target).await.expect("the store works").expect("it is there");
            let ready = object! {
                "type" => "Ready", "status" => status, "reason" => "r", "message" => "m",
                "lastTransitionTime" => registry.now(),
            };
            range.make_object().insert("status", object! { "conditions" => vec![ready] });
            registry.update_own(&status_of(target.clone()), MANAGER, &range).await.expect("it is valid");
            registry.make_kubernetes_service(HERE).await.expect("nothing stands in the way");
            let range = registry.found(&target).await.expect("the store works").expect("it is there");
            range.items_at(&["status", "conditions"])[0].str_at(&["status"]).to_owned()
        };
        assert_eq!(status("False").await, "False");
        assert_eq!(status("Unknown").await, "True");
    }
}
