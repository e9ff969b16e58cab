//! APIService, apiregistration.k8s.io/v1.
//!
//! There is one for each version of each group, and only the server makes them: nothing is aggregated here.

use crate::crd::{Column, Scope, ServedVersion};
use crate::meta::field::ErrorList;
use crate::object;
use crate::value::Value;

use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Kind, READING_VERBS};

const GROUP: &str = "apiregistration.k8s.io";

/// What tells who made it: it follows what is served.
const MANAGED_LABEL: &str = "kube-aggregator.kubernetes.io/automanaged";

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "apiservices",
    singular: "apiservice",
    categories: &["api-extensions"],
    scope: Scope::Cluster,
    verbs: READING_VERBS,
    is_computed: true,
    example: r"
metadata: {name: v1.apps}
spec: {group: apps, version: v1, groupPriorityMinimum: 17800, versionPriority: 15}
",
    ..Kind::new(GROUP, "v1", "APIService", &ApiService)
}];

/// The object for a version of a group that this server serves itself. `now` is RFC 3339.
pub fn local(group: &str, version: &str, is_built_in: bool, now: &str) -> Value {
    let (group_priority, version_priority) = priorities(group, version, is_built_in);
    let mut spec = object! {
        "version" => version,
        "groupPriorityMinimum" => group_priority,
        "versionPriority" => version_priority,
    };
    if !group.is_empty() {
        spec.make_object().insert("group", Value::from(group));
    }
    let condition = object! {
        "type" => "Available",
        "status" => "True",
        "lastTransitionTime" => now,
        "reason" => "Local",
        "message" => "Local APIServices are always available",
    };
    let managed = if is_built_in { "onstart" } else { "true" };
    object! {
        "apiVersion" => format!("{GROUP}/v1"),
        "kind" => "APIService",
        "metadata" => object! {
            "name" => format!("{version}.{group}"),
            "labels" => object! { MANAGED_LABEL => managed },
        },
        "spec" => spec,
        "status" => object! { "conditions" => vec![condition] },
    }
}

/// Where a group stands among others, and its version in it. Source: kube-apiserver 1.37.
fn priorities(group: &str, version: &str, is_built_in: bool) -> (i64, i64) {
    const STABLE: i64 = 15;
    match group {
        "" => (18_000, 1),
        "apps" => (17_800, STABLE),
        "events.k8s.io" => (17_750, STABLE),
        "authentication.k8s.io" => (17_700, STABLE),
        "authorization.k8s.io" => (17_600, STABLE),
        "autoscaling" if version == "v2" => (17_500, 30),
        "autoscaling" => (17_500, STABLE),
        "batch" => (17_400, STABLE),
        "certificates.k8s.io" => (17_300, STABLE),
        "networking.k8s.io" => (17_200, STABLE),
        "policy" => (17_100, STABLE),
        "rbac.authorization.k8s.io" => (17_000, STABLE),
        "storage.k8s.io" => (16_800, STABLE),
        "admissionregistration.k8s.io" | "apiextensions.k8s.io" => (16_700, STABLE),
        "scheduling.k8s.io" => (16_600, STABLE),
        "coordination.k8s.io" => (16_500, STABLE),
        "node.k8s.io" => (16_300, STABLE),
        "discovery.k8s.io" => (16_200, STABLE),
        "resource.k8s.io" => (16_200, 21),
        "flowcontrol.apiserver.k8s.io" => (16_100, 21),
        _ if is_built_in => (16_000, STABLE),
        _ => (1_000, 100),
    }
}

struct ApiService;

impl Strategy for ApiService {
    fn validate_create(&self, _: &ServedVersion, _: &Value) -> ErrorList {
        ErrorList::new()
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, _: &Value, _: &Value) -> ErrorList {
        ErrorList::new()
    }

    fn table(&self) -> Option<Table> {
        let columns = vec![
            Column::string("Service", "The reference to the service that hosts this API endpoint."),
            Column::string("Available", "Whether this service is available."),
        ];
        Some(Table::named(columns, |service| {
            let by = match service.at(&["spec", "service"]) {
                Some(by) => format!("{}/{}", by.str_at(&["namespace"]), by.str_at(&["name"])),
                None => "Local".to_owned(),
            };
            let conditions = service.at(&["status", "conditions"]).and_then(Value::as_array).unwrap_or_default();
            let available = conditions.iter().find(|condition| condition.str_at(&["type"]) == "Available");
            let shown = match available.map(|condition| (condition.str_at(&["status"]), condition.str_at(&["reason"])))
            {
                None => "Unknown".to_owned(),
                Some(("True", _)) => "True".to_owned(),
                Some((status, reason)) => format!("{status} ({reason})"),
            };
            Cell::named(service, vec![Cell::text(&by), Cell::text(&shown)])
        }))
    }
}
