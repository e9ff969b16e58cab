//! Claims that request more: the volume that was created for them is expanded, and the claim's status shows it.
//!
//! Only volumes that were created here are expanded. In a cluster the volume's driver does that, and the kubelet if
//! there is a file system; what clients see in the end is the same.
//!
//! Source: `pkg/controller/volume/expand` of Kubernetes 1.37, and the conditions of `external-resizer`.

use std::sync::Arc;

use super::client::{Client, Kind, is_going, place};
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::meta::quantity::Quantity;
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::Value;

const CLAIMS: Kind = Kind("", "persistentvolumeclaims");
const VOLUMES: Kind = Kind("", "persistentvolumes");
const PROVISIONED_BY: &str = "pv.kubernetes.io/provisioned-by";

struct Expansion {
    client: Client,
}

/// A key is that of a claim.
impl Reconciler for Expansion {
    const TASK: &str = "expanding volumes";

    fn collections(&self) -> Vec<Collection> {
        vec![CLAIMS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        let is_claim = CLAIMS.is(&change.collection) && change.stored.is_some();
        is_claim.then(|| change.key.to_string()).into_iter().collect()
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(claim) = self.client.get(CLAIMS, key).await?.filter(|claim| !is_going(claim)) else {
            return Ok(Progress::Done);
        };
        let Some(asked) = growth(&claim) else { return Ok(Progress::Done) };
        let name = claim.str_at(&["spec", "volumeName"]);
        let is_ours = |volume: &Value| volume.at(&["metadata", "annotations", PROVISIONED_BY]).is_some();
        let Some(volume) = self.client.get(VOLUMES, name).await?.filter(is_ours) else { return Ok(Progress::Done) };
        if is_less(volume.at(&["spec", "capacity", "storage"]), &asked) {
            let patch = object! { "spec" => object! { "capacity" => object! { "storage" => asked.clone() } } };
            let (namespace, name) = place(&volume);
            self.client.merge(VOLUMES, namespace, name, &patch).await?;
        }
        let mut status = claim.get("status").cloned().unwrap_or_default();
        status.make_object().entry("capacity").make_object().insert("storage", asked);
        self.client.update_status(CLAIMS, &claim, status).await?;
        self.client.tell_normal(&claim, "VolumeResizeSuccessful", "Resize volume succeeded".to_owned());
        Ok(Progress::Done)
    }
}

/// What a bound claim requests, if that is more than it has.
fn growth(claim: &Value) -> Option<Value> {
    let asked = claim.at(&["spec", "resources", "requests", "storage"])?;
    let is_bound = claim.str_at(&["status", "phase"]) == "Bound";
    (is_bound && is_less(claim.at(&["status", "capacity", "storage"]), asked)).then(|| asked.clone())
}

/// Whether there is an amount that is less than another.
fn is_less(amount: Option<&Value>, other: &Value) -> bool {
    let read = |amount: &Value| amount.as_str().and_then(|text| Quantity::parse(text).ok());
    amount.and_then(read).zip(read(other)).is_some_and(|(amount, other)| amount < other)
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let expansion = Expansion { client: context.client("expand-controller").called("volume_expand") };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), expansion))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn a_bound_claim_grows_to_what_it_asks_for() {
        let check = |phase: &str, has: &str, asks: &str| {
            let claim = format!(
                "spec: {{resources: {{requests: {{storage: {asks}}}}}}}\nstatus: {{phase: {phase}, capacity: {{storage: {has}}}}}"
            );
            let claim = yaml::decode(claim.as_bytes()).expect("YAML");
            growth(&claim).map(|asked| asked.as_str().unwrap_or_default().to_owned())
        };
        assert_eq!(check("Bound", "1Gi", "2Gi").as_deref(), Some("2Gi"));
        assert_eq!(check("Bound", "1Gi", "1024Mi"), None);
        assert_eq!(check("Bound", "2Gi", "1Gi"), None);
        assert_eq!(check("Pending", "1Gi", "2Gi"), None);
    }
}
