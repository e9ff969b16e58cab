//! EndpointSlices: the addresses of the pods behind each service.
//!
//! Source: `pkg/controller/endpointslice` and `k8s.io/endpointslice` of Kubernetes 1.37.

use std::sync::Arc;

use super::client::{Client, Kind, PODS, is_going};
use super::family::reference;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::services::{self, Member, SERVICES, Services, is_headless};
use super::workload::{Means, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{Collection, Entry};
use crate::value::{Map, Value};

const SLICES: Kind = Kind("discovery.k8s.io", "endpointslices");
const SERVICE_NAME: &str = "kubernetes.io/service-name";
const MANAGED_BY: &str = "endpointslice.kubernetes.io/managed-by";
const MANAGER: &str = "endpointslice-controller.k8s.io";
const HEADLESS: &str = "service.kubernetes.io/headless";
/// How many endpoints a slice has at most.
const ENDPOINTS_MAX: usize = 100;

struct EndpointSlices {
    client: Client,
    services: Services,
}

impl Reconciler for EndpointSlices {
    const TASK: &str = "slicing endpoints";

    fn collections(&self) -> Vec<Collection> {
        vec![SERVICES.collection(), PODS.collection()]
    }

    fn forget(&self) {
        self.services.forget();
    }

    fn note(&self, change: &Entry) -> Vec<String> {
        if !SLICES.is(&change.collection) {
            return self.services.note(change);
        }
        // One that somebody else has changed is mended.
        let namespace = change.key.split_once('/').map_or("", |(namespace, _)| namespace);
        let stored = change.stored.as_ref().filter(|stored| stored.label(MANAGED_BY) == Some(MANAGER));
        let service = stored.and_then(|stored| stored.label(SERVICE_NAME));
        service.map(|name| format!("{namespace}/{name}")).into_iter().collect()
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(service) = self.client.get(SERVICES, key).await? else { return Ok(Progress::Done) };
        if services::selector(&service).is_none() || is_going(&service) {
            return Ok(Progress::Done);
        }
        let members = services::members(&self.client, &service).await?;
        let name = service.str_at(&["metadata", "name"]).to_owned();
        let namespace = service.str_at(&["metadata", "namespace"]);
        let is_ours = |stored: &crate::store::Stored| {
            stored.label(SERVICE_NAME) == Some(&name) && stored.label(MANAGED_BY) == Some(MANAGER)
        };
        let there = self.client.list(SLICES, namespace, is_ours).await?;
        let changes = compared(&service, slices_of(&service, &members), there);
        for slice in &changes.create {
            self.client.create(SLICES, slice).await?;
        }
        for slice in &changes.update {
            self.client.update(SLICES, slice).await?;
        }
        for slice in &changes.delete {
            self.client.delete(SLICES, slice, None).await?;
        }
        Ok(Progress::Done)
    }
}

/// What a slice is to say: its family, its ports and its endpoints.
#[derive(Clone, Debug, PartialEq)]
struct Content {
    family: String,
    ports: Vec<Value>,
    endpoints: Vec<Value>,
}

/// The slices of a service: for each family and each set of ports, so many endpoints each.
fn slices_of(service: &Value, members: &[Member]) -> Vec<Content> {
    let mut slices: Vec<Content> = Vec::new();
    for family in service.items_at(&["spec", "ipFamilies"]).iter().filter_map(Value::as_str) {
        let first = slices.len();
        for member in members {
            let is_of = |address: &&String| address.contains(':') == (family == "IPv6");
            let Some(address) = member.addresses.iter().find(is_of) else { continue };
            let fits = |slice: &&mut Content| slice.ports == member.ports && slice.endpoints.len() < ENDPOINTS_MAX;
            let endpoint = endpoint(member, address);
            match slices[first..].iter_mut().find(fits) {
                Some(slice) => slice.endpoints.push(endpoint),
                None => slices.push(Content {
                    family: family.to_owned(),
                    ports: member.ports.clone(),
                    endpoints: vec![endpoint],
                }),
            }
        }
        if slices.len() == first {
            slices.push(Content { family: family.to_owned(), ports: Vec::new(), endpoints: Vec::new() });
        }
    }
    slices
}

fn endpoint(member: &Member, address: &str) -> Value {
    let mut endpoint = object! {
        "addresses" => vec![Value::from(address)],
        "conditions" => object! {
            "ready" => member.is_ready,
            "serving" => member.serves,
            "terminating" => member.is_going,
        },
        "targetRef" => member.target.clone(),
    };
    for (name, text) in [("nodeName", &member.node), ("zone", &member.zone), ("hostname", &member.hostname)] {
        if !text.is_empty() {
            endpoint.make_object().insert(name, Value::from(text.as_str()));
        }
    }
    endpoint
}

/// What is to be written.
#[derive(Debug, Default, PartialEq)]
struct Changes {
    create: Vec<Value>,
    update: Vec<Value>,
    delete: Vec<Value>,
}

/// Compares the slices that are wanted with those that are there. One that fits is kept, others are filled anew.
fn compared(service: &Value, wanted: Vec<Content>, mut there: Vec<Value>) -> Changes {
    let mut changes = Changes::default();
    let labels = labels_of(service);
    let mut unmet = Vec::new();
    for content in wanted {
        let says_so = |slice: &Value| {
            slice.str_at(&["addressType"]) == content.family
                && slice.items_at(&["endpoints"]) == content.endpoints
                && slice.items_at(&["ports"]) == content.ports
                && slice.at(&["metadata", "labels"]).and_then(Value::as_object) == Some(&labels)
        };
        match there.iter().position(says_so) {
            Some(at) => _ = there.remove(at),
            None => unmet.push(content),
        }
    }
    for content in unmet {
        let same_family = |slice: &Value| slice.str_at(&["addressType"]) == content.family;
        let reused = there.iter().position(same_family).map(|at| there.remove(at));
        let is_new = reused.is_none();
        let mut slice = reused.unwrap_or_else(|| new_slice(service, &content.family));
        let fields = slice.make_object();
        fields.insert("endpoints", Value::Array(content.endpoints));
        fields.insert("ports", Value::Array(content.ports));
        fields.entry("metadata").make_object().insert("labels", labels.clone().into());
        if is_new { changes.create.push(slice) } else { changes.update.push(slice) }
    }
    changes.delete = there;
    changes
}

fn labels_of(service: &Value) -> Map {
    let mut labels = service.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
    labels.insert(SERVICE_NAME, Value::from(service.str_at(&["metadata", "name"])));
    labels.insert(MANAGED_BY, Value::from(MANAGER));
    if is_headless(service) {
        _ = labels.insert(HEADLESS, Value::from(""));
    } else {
        _ = labels.remove(HEADLESS);
    }
    labels
}

fn new_slice(service: &Value, family: &str) -> Value {
    let prefix = format!("{}-", service.str_at(&["metadata", "name"]));
    object! {
        "apiVersion" => "discovery.k8s.io/v1",
        "kind" => "EndpointSlice",
        "addressType" => family,
        "metadata" => object! {
            "generateName" => prefix,
            "namespace" => service.str_at(&["metadata", "namespace"]),
            "ownerReferences" => vec![reference(("v1", "Service"), service)],
        },
    }
}

/// Starts it.
pub(super) fn start(means: &Means) -> Running {
    let slices = EndpointSlices { client: means.client("endpointslice-controller"), services: Services::default() };
    Box::pin(super::reconcile::run(Arc::clone(&means.registry), slices))
}

#[cfg(test)]
mod tests {
    use super::super::client::int_at;
    use super::super::services::tests::{a_member, read};
    use super::*;

    fn service() -> Value {
        read(
            "metadata: {name: s, namespace: d, labels: {a: b}}\n\
             spec: {clusterIP: None, ipFamilies: [IPv4], ports: [{name: http, port: 80, targetPort: web, protocol: TCP}]}",
        )
    }

    #[test]
    fn each_slice_has_so_many_endpoints() {
        let service = service();
        let members: Vec<Member> = (0..150)
            .filter_map(|number| a_member(&service, &format!("p{number}"), &format!("10.0.0.{number}"), number > 0))
            .collect();
        let slices = slices_of(&service, &members);
        assert_eq!(slices.iter().map(|slice| slice.endpoints.len()).collect::<Vec<_>>(), [100, 50]);
        let first = &slices[0].endpoints[0];
        assert_eq!(first.at(&["conditions", "ready"]), Some(&Value::Bool(false)));
        assert_eq!((first.str_at(&["zone"]), int_at(&slices[0].ports[0], &["port"])), ("z", 8080));
        let none = slices_of(&service, &[]);
        assert!(none.len() == 1 && none[0].endpoints.is_empty());
    }

    #[test]
    fn slices_that_say_it_already_stay() {
        let service = service();
        let members: Vec<Member> = a_member(&service, "p", "10.0.0.1", true).into_iter().collect();
        let made = compared(&service, slices_of(&service, &members), Vec::new());
        assert_eq!((made.create.len(), made.update.len(), made.delete.len()), (1, 0, 0));
        let slice = made.create[0].clone();
        assert_eq!(slice.str_at(&["metadata", "labels", HEADLESS]), "");
        assert_eq!(compared(&service, slices_of(&service, &members), made.create), Changes::default());
        let fewer = compared(&service, slices_of(&service, &[]), vec![slice.clone(), slice]);
        assert_eq!((fewer.create.len(), fewer.update.len(), fewer.delete.len()), (0, 1, 1));
    }
}
