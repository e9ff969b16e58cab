//! EndpointSlices: the addresses of the pods behind each service.
//!
//! Source: `pkg/controller/endpointslice` and `k8s.io/endpointslice` of Kubernetes 1.37.

mod hints;
mod layout;

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, PoisonError};

use self::hints::{Hints, Zones};
use super::client::{Client, NODES, PODS, is_going, key_of, place};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::services::{self, Member, SERVICES, Services};
use super::slices::{Changes, SLICES, Slices};
use super::trigger_times::{self, TriggerTimes};
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::store::{ChangeEvent, Collection};
use crate::value::{Value, json};

struct EndpointSlices {
    client: Client,
    services: Services,
    slices: Slices,
    times: TriggerTimes,
    topology: Mutex<Topology>,
}

/// What is known about zones, and which services want endpoints distributed over them.
#[derive(Default)]
struct Topology {
    zones: Zones,
    /// The services that want it.
    wanting: BTreeSet<String>,
    /// The services whose endpoints are distributed.
    hinted: BTreeSet<String>,
}

impl Reconciler for EndpointSlices {
    const TASK: &str = "slicing endpoints";

    fn collections(&self) -> Vec<Collection> {
        [NODES, SLICES, SERVICES, PODS].map(|kind| kind.collection()).into()
    }

    fn forget(&self) {
        self.services.forget();
        self.slices.forget();
        self.times.forget_all();
        *self.topology.lock().unwrap_or_else(PoisonError::into_inner) = Topology::default();
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        if SLICES.is(&change.collection) {
            // A slice that another client has changed is repaired.
            return self.slices.note(change);
        }
        if !NODES.is(&change.collection) {
            return self.services.note(change);
        }
        let node = change.stored.as_ref().and_then(|stored| json::decode(&stored.bytes).ok());
        let mut topology = self.topology.lock().unwrap_or_else(PoisonError::into_inner);
        let is_changed = topology.zones.take_in(&change.key, node.as_ref());
        if is_changed { topology.wanting.iter().cloned().collect() } else { Vec::new() }
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let service = self.client.get(SERVICES, key).await?;
        let Some(service) = service.filter(|it| services::selector(it).is_some() && !is_going(it)) else {
            self.forget_topology(key);
            self.times.forget(key);
            return Ok(Progress::Done);
        };
        let members = self.services.members(&self.client, &service).await?;
        let there = self.slices.of(&self.client, key).await?;
        let mut changes = self.changes(&service, &members, there);
        let time = self.times.next(&service, &members);
        changes.create.iter_mut().chain(&mut changes.update).for_each(|slice| trigger_times::note(slice, time));
        self.slices.write(&self.client, key, &changes).await?;
        Ok(self.tell_of_lost(&service, &members))
    }
}

impl EndpointSlices {
    fn forget_topology(&self, key: &str) {
        let mut topology = self.topology.lock().unwrap_or_else(PoisonError::into_inner);
        topology.wanting.remove(key);
        topology.hinted.remove(key);
    }

    /// Compares the wanted slices, family by family, with the existing ones.
    fn changes(&self, service: &Value, members: &[Member], mut there: Vec<Value>) -> Changes {
        let mut changes = Changes::default();
        let hints = Hints::of(service);
        for family in service.items_at(&["spec", "ipFamilies"]).iter().filter_map(Value::as_str) {
            let (of_family, others) = there.into_iter().partition(|slice| slice.str_at(&["addressType"]) == family);
            there = others;
            let mut layout = layout::of(service, family, members, of_family);
            match hints {
                Hints::ByProcessors => self.share_out(service, family, &mut layout.slices),
                _ => self.give_no_shares(service, family),
            }
            hints::point_nearby(hints, &mut layout.slices);
            layout.into_changes(service, &mut changes);
        }
        changes.delete.extend(there);
        changes
    }

    /// Distributes the endpoints of a service over the zones, and reports if that starts or can't be done.
    fn share_out(&self, service: &Value, family: &str, slices: &mut [layout::Slice]) {
        let key = key_of(service);
        let mut topology = self.topology.lock().unwrap_or_else(PoisonError::into_inner);
        topology.wanting.insert(key.clone());
        match hints::share_out(&topology.zones, slices) {
            Ok(()) => {
                if topology.hinted.insert(key) {
                    let message = format!("Topology Aware Hints has been enabled, addressType: {family}");
                    self.client.tell_normal(service, "TopologyAwareHintsEnabled", message);
                }
            }
            Err(why) => {
                topology.hinted.remove(&key);
                self.tell_disabled(service, &why.to_string(), family);
            }
        }
    }

    fn give_no_shares(&self, service: &Value, family: &str) {
        let key = key_of(service);
        let mut topology = self.topology.lock().unwrap_or_else(PoisonError::into_inner);
        topology.wanting.remove(&key);
        if topology.hinted.remove(&key) {
            self.tell_disabled(service, "Topology Aware Hints has been disabled", family);
        }
    }

    fn tell_disabled(&self, service: &Value, why: &str, family: &str) {
        let message = format!("{why}, addressType: {family}");
        self.client.tell_warning(service, "TopologyAwareHintsDisabled", message);
    }

    /// Reports the pods that were left out because their nodes do not exist; they are checked again later.
    fn tell_of_lost(&self, service: &Value, members: &[Member]) -> Progress {
        let (namespace, name) = place(service);
        let lost = members.iter().filter(|member| member.is_lost).map(|member| {
            let (pod, node) = (member.target.str_at(&["name"]), &member.node);
            format!("skipping Pod {pod} for Service {namespace}/{name}: Node {node} Not Found")
        });
        let lost: Vec<String> = lost.collect();
        let why = match lost.as_slice() {
            [] => return Progress::Done,
            [one] => one.clone(),
            several => format!("[{}]", several.join(", ")),
        };
        let message = format!("Error updating Endpoint Slices for Service {namespace}/{name}: {why}");
        self.client.tell_warning(service, "FailedToUpdateEndpointSlices", message);
        Progress::Failed
    }
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let slices = EndpointSlices {
        client: context.client("endpointslice-controller"),
        services: Services::default(),
        slices: Slices::of_manager(layout::MANAGER),
        times: TriggerTimes::default(),
        topology: Mutex::default(),
    };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), slices))
}
