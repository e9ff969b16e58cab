//! `LimitPodHardAntiAffinityTopology`: a pod may require that other pods are on other nodes, but
//! not in other zones.
//!
//! Source: `plugin/pkg/admission/antiaffinity`, release 1.37.

use async_trait::async_trait;

use super::is_about;
use crate::admission::{Admission, Attributes, Operation};
use crate::meta::Status;
use crate::value::Value;

const HOSTNAME: &str = "kubernetes.io/hostname";
const DEMANDED: [&str; 4] = ["spec", "affinity", "podAntiAffinity", "requiredDuringSchedulingIgnoredDuringExecution"];

pub struct LimitPodHardAntiAffinityTopology;

#[async_trait]
impl Admission for LimitPodHardAntiAffinityTopology {
    fn concerns_custom_resources(&self) -> bool {
        false
    }

    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        if attributes.operation == Operation::Delete || !is_about(attributes, "", "pods") {
            return Ok(());
        }
        let mut keys = object.items_at(&DEMANDED).iter().map(|term| term.str_at(&["topologyKey"]));
        let Some(key) = keys.find(|key| *key != HOSTNAME) else { return Ok(()) };
        let why = format!(
            "affinity.PodAntiAffinity.RequiredDuringScheduling has TopologyKey {key} but only key {HOSTNAME} is allowed"
        );
        Err(Status::forbidden("", "pods", object.str_at(&["metadata", "name"]), &why))
    }
}
