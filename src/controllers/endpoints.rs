//! Endpoints: the older form of what is behind each service.
//!
//! Source: `pkg/controller/endpoint` of Kubernetes 1.37.

use std::sync::Arc;

use super::client::{Client, Kind, PODS, is_going, place};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::services::{self, Member, SERVICES, Services, is_headless};
use super::trigger_times::{self, TriggerTimes};
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::Value;

const ENDPOINTS: Kind = Kind("", "endpoints");
const MANAGED_BY: &str = "endpoints.kubernetes.io/managed-by";
const MANAGER: &str = "endpoint-controller";
const HEADLESS: &str = "service.kubernetes.io/headless";
/// How many addresses there are at most; further ones are left out.
const ADDRESSES_MAX: usize = 1_000;
const OVER_CAPACITY: &str = "endpoints.kubernetes.io/over-capacity";

struct Endpoints {
    client: Client,
    services: Services,
    times: TriggerTimes,
}

impl Reconciler for Endpoints {
    const TASK: &str = "keeping endpoints";

    fn collections(&self) -> Vec<Collection> {
        vec![SERVICES.collection(), PODS.collection()]
    }

    fn forget(&self) {
        self.services.forget();
        self.times.forget_all();
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        self.services.note(change)
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(service) = self.client.get(SERVICES, key).await? else {
            self.times.forget(key);
            if let Some(left) = self.client.get(ENDPOINTS, key).await? {
                self.client.delete(ENDPOINTS, &left, None).await?;
            }
            return Ok(Progress::Done);
        };
        if services::selector(&service).is_none() || is_going(&service) {
            return Ok(Progress::Done);
        }
        let members = self.services.members(&self.client, &service).await?;
        let there = self.client.get(ENDPOINTS, key).await?;
        let mut wanted = wanted(&service, &members, there.as_ref());
        let time = self.times.next(&service, &members);
        if there.as_ref() == Some(&wanted) {
            return Ok(Progress::Done);
        }
        trigger_times::note(&mut wanted, time);
        match there {
            Some(_) => _ = self.client.update(ENDPOINTS, &wanted).await?,
            None => _ = self.client.create(ENDPOINTS, &wanted).await?,
        }
        Ok(Progress::Done)
    }
}

/// The Endpoints of a service, based on the existing ones.
fn wanted(service: &Value, members: &[Member], there: Option<&Value>) -> Value {
    let (namespace, name) = place(service);
    let new = || {
        object! {
            "apiVersion" => "v1",
            "kind" => "Endpoints",
            "metadata" => object! { "name" => name, "namespace" => namespace },
        }
    };
    let mut endpoints = there.cloned().unwrap_or_else(new);
    let mut labels = service.at(&["metadata", "labels"]).and_then(Value::as_object).cloned().unwrap_or_default();
    labels.insert(MANAGED_BY, Value::from(MANAGER));
    if is_headless(service) {
        labels.insert(HEADLESS, Value::from(""));
    }
    let fields = endpoints.make_object();
    let metadata = fields.entry("metadata").make_object();
    metadata.insert("labels", labels.into());
    if members.len() > ADDRESSES_MAX {
        let annotations = metadata.entry("annotations").make_object();
        annotations.insert(OVER_CAPACITY, Value::from("truncated"));
    }
    let subsets = subsets_of(service, &members[..members.len().min(ADDRESSES_MAX)]);
    if subsets.is_empty() {
        _ = fields.remove("subsets");
    } else {
        _ = fields.insert("subsets", Value::Array(subsets));
    }
    endpoints
}

/// Groups addresses with the same ports.
fn subsets_of(service: &Value, members: &[Member]) -> Vec<Value> {
    let is_six = service.items_at(&["spec", "ipFamilies"]).first().and_then(Value::as_str) == Some("IPv6");
    let mut subsets: Vec<(Vec<Value>, [Vec<Value>; 2])> = Vec::new();
    // A pod that is being deleted is in neither list, unless the service also wants unready ones.
    for member in members.iter().filter(|member| !member.is_going || member.is_ready) {
        let Some(address) = member.addresses.iter().find(|address| address.contains(':') == is_six) else { continue };
        if member.ports.is_empty() && !is_headless(service) {
            continue;
        }
        let at = subsets.iter().position(|(ports, _)| *ports == member.ports).unwrap_or_else(|| {
            subsets.push((member.ports.clone(), Default::default()));
            subsets.len() - 1
        });
        subsets[at].1[usize::from(!member.is_ready)].push(address_of(member, address));
    }
    let written = subsets.into_iter().map(|(ports, lists)| {
        let mut subset = object! {};
        let fields = subset.make_object();
        for (name, list) in ["addresses", "notReadyAddresses"].into_iter().zip(lists) {
            if !list.is_empty() {
                fields.insert(name, Value::Array(list));
            }
        }
        let ports: Vec<Value> = ports.into_iter().map(without_empty_name).collect();
        if !ports.is_empty() {
            fields.insert("ports", Value::Array(ports));
        }
        subset
    });
    written.collect()
}

/// A port without a name, where that is empty.
fn without_empty_name(mut port: Value) -> Value {
    if port.str_at(&["name"]).is_empty() {
        port.make_object().remove("name");
    }
    port
}

fn address_of(member: &Member, address: &str) -> Value {
    let mut written = object! { "ip" => address, "targetRef" => member.target.clone() };
    for (name, text) in [("nodeName", &member.node), ("hostname", &member.hostname)] {
        if !text.is_empty() {
            written.make_object().insert(name, Value::from(text.as_str()));
        }
    }
    written
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let endpoints = Endpoints {
        client: context.client("endpoint-controller"),
        services: Services::default(),
        times: TriggerTimes::default(),
    };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), endpoints))
}

#[cfg(test)]
mod tests {
    use super::super::services::tests::{a_member, read};
    use super::*;

    #[test]
    fn ready_addresses_stand_apart_from_others() {
        let service = read(
            "metadata: {name: s, namespace: d}\n\
             spec: {ipFamilies: [IPv4], ports: [{port: 80, targetPort: web, protocol: TCP}]}",
        );
        let members: Vec<Member> = [("a", true), ("b", false)]
            .iter()
            .filter_map(|(name, ready)| a_member(&service, name, "10.0.0.1", *ready))
            .collect();
        let made = wanted(&service, &members, None);
        let subset = &made.items_at(&["subsets"])[0];
        let name = |list: &str| subset.items_at(&[list])[0].str_at(&["targetRef", "name"]).to_owned();
        assert_eq!((name("addresses").as_str(), name("notReadyAddresses").as_str()), ("a", "b"));
        assert_eq!(subset.items_at(&["ports"]), [object! { "port" => 8080, "protocol" => "TCP" }]);
        assert_eq!(wanted(&service, &members, Some(&made)), made);
        assert!(wanted(&service, &[], Some(&made)).get("subsets").is_none());
    }
}
