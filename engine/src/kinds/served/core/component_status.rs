//! ComponentStatus, core/v1: the health of a cluster's components other than its API server.
//!
//! Nothing is stored. The only healthy component is this server's storage, reported as `etcd-0`. There is no scheduler
//! and no controller manager; they are reported as the reference reports components that do not run.
//!
//! Source: `pkg/registry/core/componentstatus` of Kubernetes 1.36.

use crate::crd::{Column, Scope, ServedVersion};
use crate::kinds::strategy::{Cell, Strategy, Subresource, Table};
use crate::kinds::{Computed, Kind};
use crate::meta::field::ErrorList;
use crate::object;
use crate::value::Value;

pub static KINDS: [&Kind; 1] = [&COMPONENT_STATUS];

static COMPONENT_STATUS: Kind = Kind {
    plural: "componentstatuses",
    singular: "componentstatus",
    short_names: &["cs"],
    scope: Scope::Cluster,
    verbs: &["get", "list"],
    computed: Some(Computed::Components(components)),
    example: "metadata: {name: example}\nconditions: [{type: Healthy, status: 'True', message: ok}]",
    deprecation: Some("v1 ComponentStatus is deprecated in v1.19+"),
    ..Kind::new("", "v1", "ComponentStatus", &ComponentStatus)
};

/// The components that do not exist, each with its health port.
const ABSENT: [(&str, u16); 2] = [("controller-manager", 10257), ("scheduler", 10259)];

/// Every component, sorted by name.
fn components() -> Vec<Value> {
    let absent = ABSENT.map(|(name, port)| {
        let address = format!("127.0.0.1:{port}");
        let why = format!("Get \"https://{address}/healthz\": dial tcp {address}: connect: connection refused");
        (name, "False", why)
    });
    let mut all: Vec<_> = absent.into_iter().chain([("etcd-0", "True", "ok".to_owned())]).collect();
    all.sort();
    let component = |(name, status, message): (&str, &str, String)| {
        let condition = object! { "type" => "Healthy", "status" => status, "message" => message };
        object! {
            "apiVersion" => COMPONENT_STATUS.version,
            "kind" => COMPONENT_STATUS.kind,
            "metadata" => object! { "name" => name },
            "conditions" => vec![condition],
        }
    };
    all.into_iter().map(component).collect()
}

struct ComponentStatus;

impl Strategy for ComponentStatus {
    fn validate_create(&self, _: &ServedVersion, _: &Value) -> ErrorList {
        ErrorList::new()
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, _: &Value, _: &Value) -> ErrorList {
        ErrorList::new()
    }

    fn table(&self) -> Option<Table> {
        let name = Column { format: "name".to_owned(), ..Column::string("Name", "") };
        let columns = ["Status", "Message", "Error"].map(|name| Column::string(name, ""));
        Some(Table { columns: [vec![name], columns.into()].concat(), cells })
    }
}

fn cells(object: &Value) -> Vec<Cell> {
    let mut conditions = object.items_at(&["conditions"]).iter();
    let healthy = conditions.find(|condition| condition.str_at(&["type"]) == "Healthy");
    let text = |name: &str| Cell::text(healthy.map_or("", |condition| condition.str_at(&[name])));
    let state = match healthy.map(|condition| condition.str_at(&["status"])) {
        None => "Unknown",
        Some("True") => "Healthy",
        Some(_) => "Unhealthy",
    };
    vec![Cell::text(object.str_at(&["metadata", "name"])), Cell::text(state), text("message"), text("error")]
}
