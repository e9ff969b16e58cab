//! Objects on their way through stages: in which each is, since when, and what is carried out at the end of one.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;

use super::stages::{self, Deed, Stage, Told};
use super::template::Context;
use crate::controllers::client::Client;
use crate::controllers::finalizers;
use crate::controllers::queue::Progress;
use crate::meta::Status;
use crate::registry::{PatchType, Subresource};
use crate::value::{Value, json};

/// The stages of a kind, and the objects that are in one.
#[derive(Default)]
pub(super) struct Followed {
    stages: Vec<Stage>,
    stays: Mutex<HashMap<String, Stay>>,
}

/// An object in a stage.
#[derive(Clone, Copy)]
struct Stay {
    stage: usize,
    since: Timestamp,
}

impl Followed {
    pub fn new(stages: Vec<Stage>) -> Self {
        Followed { stages, stays: Mutex::default() }
    }

    fn stays(&self) -> MutexGuard<'_, HashMap<String, Stay>> {
        self.stays.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets an object that is gone.
    pub fn release(&self, key: &str) {
        self.stays().remove(key);
    }

    /// Has an object stay in the stage that it is in, or go on from it; `None` where it is in none.
    pub async fn follow(
        &self,
        client: &Client,
        key: &str,
        object: &Value,
        context: &Context,
    ) -> Result<Option<Progress>, Status> {
        if self.stages.is_empty() {
            return Ok(None);
        }
        let now = context.now;
        let Some(stay) = self.stay(key, object, now) else { return Ok(None) };
        let stage = &self.stages[stay.stage];
        let spent = Duration::try_from(now.duration_since(stay.since)).unwrap_or_default();
        if let Some(left) = stage.delay(object, now).checked_sub(spent).filter(|left| !left.is_zero()) {
            return Ok(Some(Progress::After(left)));
        }
        match stage.deeds(object, context) {
            Ok(deeds) => carry_out(client, object, deeds).await?,
            Err(why) => tracing::warn!(key, "{why}"),
        }
        // What it is in next is told by the change; where that is the same stage, it begins anew.
        self.release(key);
        Ok(Some(Progress::Done))
    }

    /// The stage that an object is in, and since when: the one that it was in, as long as it may stay in that.
    fn stay(&self, key: &str, object: &Value, now: Timestamp) -> Option<Stay> {
        let mut stays = self.stays();
        let known = stays.get(key).copied().filter(|stay| stages::may_stay(&self.stages, stay.stage, object));
        let stay = known.or_else(|| stages::stage_of(&self.stages, object).map(|stage| Stay { stage, since: now }));
        match stay {
            Some(stay) => _ = stays.insert(key.to_owned(), stay),
            None => _ = stays.remove(key),
        }
        stay
    }
}

/// Carries out what a stage ends with, step by step, each on the object as the one before has left it. Once it is deleted, only
/// events are left to tell.
async fn carry_out(client: &Client, object: &Value, deeds: Vec<Deed>) -> Result<(), Status> {
    let mut object = object.clone();
    let mut is_deleted = false;
    for deed in deeds {
        match deed {
            Deed::Tell(Told { is_warning, reason, message }) => {
                let type_ = if is_warning { "Warning" } else { "Normal" };
                client.tell(&object, type_, reason, message);
            }
            _ if is_deleted => {}
            Deed::Finalize(change) => {
                if let Some(names) = change.of(&object) {
                    let patch = json::encode(&finalizers::patch(&object, names));
                    object = client.patch(&object, Subresource::Main, (PatchType::Merge, patch)).await?;
                }
            }
            Deed::Patch(part, type_, bytes) => object = client.patch(&object, part, (type_, bytes)).await?,
            Deed::Delete => {
                client.delete_at_once(&object).await?;
                is_deleted = true;
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_object_stays_in_its_stage_as_long_as_it_fits() {
        let stage = |name: &str, phase: &str| {
            let weight = usize::from(name == "heavy");
            let text = format!(
                "{{apiVersion: kwok.x-k8s.io/v1alpha1, kind: Stage, metadata: {{name: {name}}}, spec: {{resourceRef: {{kind: Pod}}, \
                 weight: {weight}, selector: {{matchExpressions: [{{key: .status.phase, operator: In, values: [{phase}]}}]}}}}}}"
            );
            let object = crate::value::yaml::decode(text.as_bytes()).expect("YAML");
            Stage::read(&object).expect("it is understood").expect("it is a stage")
        };
        let followed = Followed::new(vec![stage("a", "Pending"), stage("b", "Running, Bad"), stage("heavy", "Bad")]);
        let stay = |phase: &str, second: i64| {
            let pod = crate::object! { "status" => crate::object! { "phase" => phase } };
            let stay = followed.stay("d/p", &pod, Timestamp::from_second(second).expect("a time"));
            stay.map(|stay| (stay.stage, stay.since.as_second()))
        };
        assert_eq!([stay("Pending", 1), stay("Pending", 2)], [Some((0, 1)), Some((0, 1))]);
        assert_eq!([stay("Running", 3), stay("Failed", 4), stay("Running", 5)], [Some((1, 3)), None, Some((1, 5))]);
        // What is of no weight is left for what has come to fit, too, and has some.
        assert_eq!(stay("Bad", 6), Some((2, 6)));
    }
}
