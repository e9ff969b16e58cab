//! Deletes finished Jobs after their TTL.
//!
//! Source: `pkg/controller/ttlafterfinished` of Kubernetes 1.37.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::client::{Client, JOBS, is_going, left, time_at, without_template};
use super::conditions;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::store::{ChangeEvent, Collection};
use crate::value::Value;

struct TimeToLive {
    client: Client,
}

impl Reconciler for TimeToLive {
    const TASK: &str = "deleting jobs that have ended";

    fn collections(&self) -> Vec<Collection> {
        vec![JOBS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        let is_job = JOBS.is(&change.collection) && change.stored.is_some();
        is_job.then(|| change.key.to_string()).into_iter().collect()
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(job) = self.client.get_part(JOBS, key, without_template).await? else { return Ok(Progress::Done) };
        match end_of_life(&job, self.client.now()) {
            None => Ok(Progress::Done),
            Some(Some(pause)) => Ok(Progress::After(pause)),
            Some(None) => self.client.delete(JOBS, &job, None).await.map(|()| Progress::Done),
        }
    }
}

/// The remaining time of a job, if it has ended and has a TTL; no time if that is over.
fn end_of_life(job: &Value, now: Timestamp) -> Option<Option<Duration>> {
    let seconds = job.at(&["spec", "ttlSecondsAfterFinished"]).and_then(Value::as_i64)?;
    if !conditions::is_finished(job) || is_going(job) {
        return None;
    }
    let ends = ["Complete", "Failed"].iter().filter_map(|type_| conditions::find(conditions::of(job), type_));
    let ended = ends.filter_map(|end| time_at(end, &["lastTransitionTime"])).max()?;
    Some(left(ended, seconds, now))
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let time_to_live = TimeToLive { client: context.client("ttl-after-finished-controller") };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), time_to_live))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    #[test]
    fn a_job_lives_as_long_as_it_says() {
        let check = |seconds: &str, condition: &str| {
            let job = format!(
                "spec: {{ttlSecondsAfterFinished: {seconds}}}\nstatus: {{conditions: [{{type: {condition}, status: 'True', \
                 lastTransitionTime: '2026-01-01T00:00:00Z'}}]}}"
            );
            let job = yaml::decode(job.as_bytes()).expect("YAML");
            end_of_life(&job, "2026-01-01T00:01:00Z".parse().expect("a time"))
        };
        assert_eq!(check("100", "Complete"), Some(Some(Duration::from_secs(40))));
        assert_eq!(check("60", "Failed"), Some(None));
        assert_eq!((check("60", "Suspended"), check("null", "Complete")), (None, None));
    }
}
