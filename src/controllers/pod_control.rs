//! Pods as their controllers make and delete them, and tell so.
//!
//! Source: `RealPodControl` and `slowStartBatch` of `pkg/controller`, release 1.37.

use futures_util::future::join_all;

use super::client::{Client, PODS};
use super::decoded;
use super::family::Family;
use crate::meta::Status;
use crate::value::Value;

/// How many pods are created at a time, and how many bytes of them: a template may have a megabyte, and each pod has a
/// copy of it.
const CREATED_AT_ONCE: usize = 16;
const CREATED_BYTES_MAX: usize = 1 << 20;

/// Creates pods for their controller: first one, then twice as many each time, so that few attempts are wasted if they
/// fail.
pub(super) async fn create_pods(
    client: &Client,
    family: &Family,
    owner: &Value,
    mut pods: impl Iterator<Item = Value> + Send,
) -> Result<(), Status> {
    let mut batch = 1;
    loop {
        let (mut now, mut bytes) = (Vec::new(), 0);
        while now.len() < batch
            && bytes < CREATED_BYTES_MAX
            && let Some(pod) = pods.next()
        {
            bytes += decoded::bytes_of(&pod);
            now.push(pod);
        }
        if now.is_empty() {
            return Ok(());
        }
        let made = join_all(now.iter().map(|pod| create_pod(client, family, owner, pod))).await;
        made.into_iter().collect::<Result<Vec<()>, Status>>()?;
        batch = (batch * 2).min(CREATED_AT_ONCE);
    }
}

/// Creates a pod for its controller, and records an event.
pub(super) async fn create_pod(client: &Client, family: &Family, owner: &Value, pod: &Value) -> Result<(), Status> {
    match client.create(PODS, pod).await {
        Ok(made) => {
            family.add(owner, &made);
            client.tell_normal(
                owner,
                "SuccessfulCreate",
                format!("Created pod: {}", made.str_at(&["metadata", "name"])),
            );
            Ok(())
        }
        Err(status) => {
            client.tell_warning(owner, "FailedCreate", format!("Error creating: {}", status.message));
            Err(status)
        }
    }
}

/// Deletes pods for their controller, and records events.
pub(super) async fn delete_pods(client: &Client, owner: &Value, pods: &[Value]) -> Result<(), Status> {
    let deleted = join_all(pods.iter().map(|pod| async move {
        let name = pod.str_at(&["metadata", "name"]);
        match client.delete(PODS, pod, None).await {
            Ok(()) => client.tell_normal(owner, "SuccessfulDelete", format!("Deleted pod: {name}")),
            Err(status) => {
                client.tell_warning(owner, "FailedDelete", format!("Error deleting: {}", status.message));
                return Err(status);
            }
        }
        Ok(())
    }));
    deleted.await.into_iter().collect()
}
