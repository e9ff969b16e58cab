//! Service, core/v1. Its fields are handled in [`crate::kinds::services`].
//!
//! Source: `pkg/registry/core/service` of Kubernetes 1.37.

use crate::crd::ServedVersion;
use crate::kinds::features::{self, Feature};
use crate::kinds::network::ingress_warnings;
use crate::kinds::strategy::{Strategy, Subresource, Table};
use crate::kinds::{Action, CONNECTING_VERBS, Kind, Part, services};
use crate::meta::field::ErrorList;
use crate::meta::gate::Gate;
use crate::object;
use crate::value::Value;

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "services",
    singular: "service",
    short_names: &["svc"],
    categories: &["all"],
    status: true,
    parts: &[Part::new("proxy", CONNECTING_VERBS, Some(&PROXY_OPTIONS), Action::ConnectService)],
    selectable_fields: &[".spec.clusterIP", ".spec.type"],
    example: "metadata: {name: example}\nspec: {selector: {app: web}, ports: [{name: http, port: 80, targetPort: http}]}",
    ..Kind::new("", "v1", "Service", &Service)
}];

/// The query options of `/proxy`.
static PROXY_OPTIONS: Kind = Kind::new("", "v1", "ServiceProxyOptions", &crate::kinds::strategy::Unchecked);

const FEATURES: [Feature; 2] = [
    Feature::new(Gate::ServiceTrafficDistribution, &["spec.trafficDistribution"]),
    Feature::new(Gate::LoadBalancerIpMode, &["status.loadBalancer.ingress.*.ipMode"]),
];

struct Service;

impl Strategy for Service {
    fn set_typed_defaults(&self, object: &mut Value) {
        services::set_defaults(object);
    }

    fn align(&self, new: &mut Value, old: Option<&Value>) {
        services::align(new, old);
    }

    fn prepare_create(&self, version: &ServedVersion, object: &mut Value) {
        features::drop_fields(&FEATURES, version.minor, object, None);
        object.make_object().insert("status", new_status());
    }

    fn validate_create(&self, version: &ServedVersion, object: &Value) -> ErrorList {
        services::validate_create(version.minor, object)
    }

    fn prepare_update(&self, version: &ServedVersion, subresource: Subresource, new: &mut Value, old: &Value) {
        features::drop_fields(&FEATURES, version.minor, new, Some(old));
        if subresource == Subresource::Status {
            new.make_object().insert("spec", old.get("spec").cloned().unwrap_or_default());
            return;
        }
        let status = old.get("status").cloned().unwrap_or_else(new_status);
        new.make_object().insert("status", status);
        services::drop_dependent_fields(new, old);
        if new.str_at(&["spec", "type"]) != "LoadBalancer" {
            new.make_object().entry("status").make_object().insert("loadBalancer", object! {});
        }
    }

    fn validate_update(
        &self,
        version: &ServedVersion,
        subresource: Subresource,
        new: &Value,
        old: &Value,
    ) -> ErrorList {
        match subresource {
            Subresource::Status => services::validate_status_update(version.minor, new, old),
            _ => services::validate_update(version.minor, new, old),
        }
    }

    fn warnings(&self, _: &ServedVersion, subresource: Subresource, new: &Value, _: Option<&Value>) -> Vec<String> {
        match subresource {
            Subresource::Status => ingress_warnings(new),
            _ => services::warnings(new),
        }
    }

    fn stored_as(&self) -> Option<&'static str> {
        Some("services/specs")
    }

    fn complete(&self, object: &mut Value) {
        services::complete(object);
    }

    fn lists_field_labels(&self) -> bool {
        true
    }

    fn table(&self) -> Option<Table> {
        Some(services::table())
    }

    fn creates_on_update(&self) -> bool {
        true
    }

    fn returns_deleted(&self) -> bool {
        true
    }
}

fn new_status() -> Value {
    object! { "loadBalancer" => object! {} }
}
