//! The claims of ephemeral volumes: each is created for its pod, and deleted with it.
//!
//! Source: `pkg/controller/volume/ephemeral` of Kubernetes 1.37.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use memchr::memmem;

use super::client::{Client, Kind, PODS, controller_of, is_going, place};
use super::family;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::{Value, json};

const CLAIMS: Kind = Kind("", "persistentvolumeclaims");
/// A text that the bytes of every pod with such a volume contain.
const EPHEMERAL: &[u8] = b"\"ephemeral\":{";

struct EphemeralVolumes {
    client: Client,
    /// The pod of each claim, by their keys.
    pods: Mutex<HashMap<String, String>>,
}

impl EphemeralVolumes {
    fn pods(&self) -> MutexGuard<'_, HashMap<String, String>> {
        self.pods.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A key is that of a pod.
impl Reconciler for EphemeralVolumes {
    const TASK: &str = "making claims of ephemeral volumes";

    fn collections(&self) -> Vec<Collection> {
        vec![PODS.collection()]
    }

    fn forget(&self) {
        self.pods().clear();
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        if CLAIMS.is(&change.collection) && change.stored.is_none() {
            // A claim that a pod still needs is created again.
            return self.pods().get(&*change.key).cloned().into_iter().collect();
        }
        if !PODS.is(&change.collection) {
            return Vec::new();
        }
        let Some(stored) = &change.stored else {
            self.pods().retain(|_, pod| *pod != *change.key);
            return Vec::new();
        };
        if memmem::find(&stored.bytes, EPHEMERAL).is_none() {
            return Vec::new();
        }
        let Ok(pod) = json::decode(&stored.bytes) else { return Vec::new() };
        let mut pods = self.pods();
        for claim in claims_of(&pod) {
            let (namespace, name) = place(&claim);
            pods.insert(format!("{namespace}/{name}"), change.key.to_string());
        }
        vec![change.key.to_string()]
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(pod) = self.client.get(PODS, key).await?.filter(|pod| !is_going(pod)) else {
            return Ok(Progress::Done);
        };
        for claim in claims_of(&pod) {
            let (namespace, name) = place(&claim);
            let why = match self.client.get(CLAIMS, &format!("{namespace}/{name}")).await? {
                Some(found) if is_of(&found, &pod) => continue,
                Some(_) => format!("PVC {namespace}/{name} was not created for pod {key} (pod is not owner)"),
                None => match self.client.create(CLAIMS, &claim).await {
                    Ok(_) => continue,
                    Err(status) => format!("create PVC {name}: {}", status.message),
                },
            };
            let volume = name.strip_prefix(pod.str_at(&["metadata", "name"])).unwrap_or(name);
            let why = format!("ephemeral volume {}: {why}", volume.trim_start_matches('-'));
            self.client.tell_warning(&pod, "FailedBinding", why.clone());
            return Err(Status::internal_error(&why));
        }
        Ok(Progress::Done)
    }
}

/// Whether a claim was made for a pod.
fn is_of(claim: &Value, pod: &Value) -> bool {
    controller_of(claim).is_some_and(|owner| owner.str_at(&["uid"]) == pod.str_at(&["metadata", "uid"]))
}

/// The claims of the ephemeral volumes of a pod.
fn claims_of(pod: &Value) -> Vec<Value> {
    let (namespace, name) = place(pod);
    let volumes = pod.items_at(&["spec", "volumes"]).iter();
    let claims = volumes.filter_map(|volume| {
        let template = volume.at(&["ephemeral", "volumeClaimTemplate"])?;
        let mut metadata = object! {
            "name" => format!("{name}-{}", volume.str_at(&["name"])),
            "namespace" => namespace,
            "ownerReferences" => vec![family::reference(("v1", "Pod"), pod)],
        };
        for field in ["annotations", "labels"] {
            let given = template.at(&["metadata", field]).filter(|given| !given.is_null());
            given.into_iter().for_each(|given| _ = metadata.make_object().insert(field, given.clone()));
        }
        Some(object! {
            "apiVersion" => "v1",
            "kind" => "PersistentVolumeClaim",
            "metadata" => metadata,
            "spec" => template.get("spec").cloned().unwrap_or_default(),
        })
    });
    claims.collect()
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let client = context.client("ephemeral-volume-controller").called("ephemeral_volume");
    let volumes = EphemeralVolumes { client, pods: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), volumes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn a_claim_is_made_as_the_volume_says_and_belongs_to_its_pod() {
        let pod = "metadata: {name: p, namespace: d, uid: u}\nspec:\n  volumes:\n  - {name: plain, emptyDir: {}}\n  - name: scratch\n    \
                   ephemeral:\n      volumeClaimTemplate: {metadata: {labels: {a: b}}, spec: {accessModes: [ReadWriteOnce]}}";
        let pod = yaml::decode(pod.as_bytes()).expect("YAML");
        let claims = claims_of(&pod);
        let [claim] = &claims[..] else { panic!("one volume is ephemeral: {claims:?}") };
        assert_eq!(place(claim), ("d", "p-scratch"));
        assert_eq!(claim.str_at(&["metadata", "labels", "a"]), "b");
        assert_eq!(claim.items_at(&["spec", "accessModes"]).len(), 1);
        assert!(is_of(claim, &pod));
        let other = yaml::decode(b"metadata: {name: p, namespace: d, uid: v}").expect("YAML");
        assert!(!is_of(claim, &other));
    }
}
