//! Jobs: pods until enough have succeeded, or too many failed.
//!
//! Finished pods are counted by way of a finalizer, so that none is counted twice or lost: first the status lists the
//! pod, then the finalizer is removed, then the pod is counted.
//!
//! If failures are counted per index, a failed pod keeps its finalizer until another replaces it, which records how
//! often its index has failed.
//!
//! Source: `pkg/controller/job` of Kubernetes 1.37.

mod planning;
mod tally;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use futures_util::future::join_all;
use jiff::Timestamp;

use super::client::{Client, JOBS, PODS, is_going, read};
use super::conditions;
use super::family::{self, Family};
use super::finalizers;
use super::first_error::FirstError;
use super::pod_control::{create_pods, delete_pods};
use super::pods;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{ControllerContext, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::Value;
use planning::plan;
use tally::{End, FINALIZER, INDEX, INDEX_FAILURES, INDEX_IGNORED, IndexFailures, Tally, finished_at, is_held};

const JOB_NAME: &str = "batch.kubernetes.io/job-name";

struct Jobs {
    client: Client,
    family: Family,
    /// How many pods of each job have failed since the last that succeeded, and when the last of them did.
    failures: Mutex<HashMap<String, (i64, Timestamp)>>,
}

impl Reconciler for Jobs {
    const TASK: &str = "running jobs";

    fn collections(&self) -> Vec<Collection> {
        vec![JOBS.collection(), PODS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        self.family.note(change)
    }

    fn forget(&self) {
        self.family.forget();
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(job) = self.client.get(JOBS, key).await? else {
            self.failures.lock().unwrap_or_else(PoisonError::into_inner).remove(key);
            return self.let_go_of(key).await;
        };
        let is_managed_elsewhere = !matches!(job.str_at(&["spec", "managedBy"]), "" | "kubernetes.io/job-controller");
        let Some(selector) = family::selector(&job).filter(|_| !is_managed_elsewhere) else {
            return Ok(Progress::Done);
        };
        let pods = self.family.claimed(&self.client, &job, &selector).await?;
        if is_going(&job) || conditions::is_finished(&job) {
            self.release(pods.iter().filter(|pod| is_going(&job) || pods::is_over(pod))).await?;
            return Ok(Progress::Done);
        }
        self.sync(key, job, &pods).await
    }
}

impl Jobs {
    /// Removes the finalizers from pods of a job that is gone.
    async fn let_go_of(&self, key: &str) -> Result<Progress, Status> {
        let Some((namespace, name)) = key.split_once('/') else { return Ok(Progress::Done) };
        let of_job = self.client.stored(PODS, namespace, |stored| stored.label(JOB_NAME) == Some(name)).await?;
        let mut failed = FirstError::default();
        for stored in of_job {
            let pod = read(&stored)?;
            failed.keep(self.release([&pod].into_iter()).await);
        }
        failed.end().map(|()| Progress::Done)
    }

    /// Removes the finalizers from pods that are being counted.
    ///
    /// Errors: 409 if a pod has changed since it was read. It still has its finalizer then, and must not be counted
    /// before it is gone.
    async fn release(&self, pods: impl Iterator<Item = &Value>) -> Result<(), Status> {
        let held = pods.filter(|pod| is_held(pod)).map(|pod| async move {
            match finalizers::remove(&self.client, PODS, pod, FINALIZER).await {
                Err(status) if status.code != 404 => Err(status),
                _ => Ok(()),
            }
        });
        // All of them are tried, so that one pod with frequent writes does not block the others.
        join_all(held).await.into_iter().collect()
    }

    async fn sync(&self, key: &str, job: Value, pods: &[Value]) -> Result<Progress, Status> {
        let now = self.client.now();
        let mut tally = Tally::of(&job, pods, false);
        self.note_failures(key, &job, &tally);
        let since = self.failures.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied();
        let mut plan = plan(&job, pods, &tally, since, now);
        if plan.is_end && !tally.replaced.is_empty() {
            tally = Tally::of(&job, pods, true);
            plan = self::plan(&job, pods, &tally, since, now);
        }
        if !plan.counts_deleted {
            self.release(plan.delete.iter()).await?;
        }
        delete_pods(&self.client, &job, &plan.delete).await?;
        let mut job = job;
        if !tally.to_count.is_empty() {
            let named = plan.named(&job, &tally);
            job = self.client.write_status(JOBS, &job, named).await?;
            self.release(tally.to_count.iter().map(|(pod, _)| *pod)).await?;
        }
        for (type_, reason, message) in &plan.events {
            self.client.tell(&job, type_, *reason, message.clone());
        }
        if !plan.create.is_empty() {
            let made = create_pods(&self.client, &self.family, &job, self.pods_of(&job, &plan.create, &tally)).await;
            if made.is_err() {
                return made.map(|()| Progress::Done);
            }
        }
        self.client.update_status(JOBS, &job, plan.status).await?;
        Ok(plan.again.map_or(Progress::Done, Progress::After))
    }

    fn note_failures(&self, key: &str, job: &Value, tally: &Tally<'_>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if tally.to_count.iter().any(|(_, end)| *end == End::Succeeded) {
            failures.remove(key);
            return;
        }
        for pod in tally.new_failures(job) {
            let at = finished_at(pod).unwrap_or_else(|| self.client.now());
            let entry = failures.entry(key.to_owned()).or_insert((0, at));
            *entry = (entry.0 + 1, entry.1.max(at));
        }
    }

    /// New pods: one for each entry, with its index if it has one.
    fn pods_of<'p>(
        &'p self,
        job: &'p Value,
        indexes: &'p [Option<i64>],
        tally: &'p Tally<'_>,
    ) -> impl Iterator<Item = Value> + Send + 'p {
        let counts =
            |index: &Option<i64>| tally.failed_indexes.as_ref().and(*index).map(|index| tally.counts_after(job, index));
        indexes.iter().map(move |index| new_pod(job, self.family.reference(job), *index, counts(index)))
    }
}

fn new_pod(job: &Value, reference: Value, index: Option<i64>, failures: Option<IndexFailures>) -> Value {
    let template = job.at(&["spec", "template"]).cloned().unwrap_or_default();
    let mut pod = pods::of_template(&template, job, reference);
    let metadata = pod.make_object().entry("metadata").make_object();
    let mut finalizers = metadata.get("finalizers").and_then(Value::as_array).unwrap_or_default().to_vec();
    finalizers.push(Value::from(FINALIZER));
    metadata.insert("finalizers", Value::Array(finalizers));
    let Some(index) = index else { return pod };
    let text = Value::String(index.to_string());
    for list in ["annotations", "labels"] {
        metadata.entry(list).make_object().insert(INDEX, text.clone());
    }
    if let Some((counted, ignored)) = failures {
        let annotations = metadata.entry("annotations").make_object();
        annotations.insert(INDEX_FAILURES, Value::String(counted.to_string()));
        if ignored > 0 {
            annotations.insert(INDEX_IGNORED, Value::String(ignored.to_string()));
        }
    }
    let host = format!("{}-{index}", job.str_at(&["metadata", "name"]));
    metadata.insert("generateName", Value::String(format!("{host}-")));
    let spec = pod.make_object().entry("spec").make_object();
    spec.insert("hostname", Value::String(host));
    let path = format!("metadata.labels['{INDEX}']");
    let variable = object! {
        "name" => "JOB_COMPLETION_INDEX",
        "valueFrom" => object! { "fieldRef" => object! { "apiVersion" => "v1", "fieldPath" => path } },
    };
    for list in ["initContainers", "containers"] {
        for container in spec.get_mut(list).and_then(Value::as_array_mut).into_iter().flatten() {
            let variables = container.items_at(&["env"]);
            if !variables.iter().any(|known| known.str_at(&["name"]) == "JOB_COMPLETION_INDEX") {
                let variables = variables.iter().cloned().chain([variable.clone()]).collect();
                container.make_object().insert("env", Value::Array(variables));
            }
        }
    }
    pod
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let family = Family::new(JOBS, ("batch/v1", "Job"), PODS, pods::without_programs);
    let jobs = Jobs { client: context.client("job-controller"), family, failures: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), jobs))
}

#[cfg(test)]
mod tests {
    use super::planning::JobPlan;
    use super::*;
    use crate::controllers::client::int_at;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    fn pod(name: &str, phase: &str, rest: &str) -> Value {
        read(&format!(
            "metadata: {{name: {name}, namespace: d, uid: {name}, finalizers: [{FINALIZER}], annotations: {{{rest}}}}}\n\
             status: {{phase: {phase}, containerStatuses: [{{name: c, state: {{terminated: {{exitCode: 42}}}}}}]}}"
        ))
    }

    fn planned(job: &str, pods: &[Value]) -> JobPlan {
        let job = read(job);
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        plan(&job, pods, &Tally::of(&job, pods, false), None, now)
    }

    fn reasons(plan: &JobPlan) -> Vec<String> {
        let conditions = plan.status.items_at(&["conditions"]).iter();
        conditions.map(|it| format!("{} {}", it.str_at(&["type"]), it.str_at(&["reason"]))).collect()
    }

    #[test]
    fn pods_are_made_until_enough_have_succeeded() {
        let job = "spec: {parallelism: 2, completions: 3, backoffLimit: 6}";
        let plan = planned(job, &[]);
        assert_eq!((plan.create.len(), int_at(&plan.status, &["active"])), (2, 2));
        let pods = [pod("a", "Succeeded", ""), pod("b", "Running", "")];
        let plan = planned(job, &pods);
        assert_eq!((plan.create.len(), int_at(&plan.status, &["succeeded"])), (1, 1));
        let pods = ["a", "b", "c"].map(|name| pod(name, "Succeeded", ""));
        let plan = planned(job, &pods);
        assert!(plan.create.is_empty());
        assert_eq!(reasons(&plan), ["SuccessCriteriaMet CompletionsReached", "Complete CompletionsReached"]);
        assert!(plan.status.get("completionTime").is_some());
    }

    #[test]
    fn a_job_ends_no_earlier_than_it_began() {
        let job = "{spec: {parallelism: 1, completions: 1}, status: {startTime: '2027-01-01T00:00:00Z'}}";
        let plan = planned(job, &[pod("a", "Succeeded", "")]);
        assert_eq!(plan.status.str_at(&["completionTime"]), "2027-01-01T00:00:00Z");
        let plan = planned(&job.replace("2027", "2025"), &[pod("a", "Succeeded", "")]);
        assert_eq!(plan.status.str_at(&["completionTime"]), "2026-01-01T00:01:00Z");
    }

    #[test]
    fn a_job_fails_when_too_many_of_its_pods_have() {
        let job = "spec: {parallelism: 1, completions: 1, backoffLimit: 1}";
        let failed = [pod("a", "Failed", ""), pod("b", "Failed", "")];
        assert_eq!(
            reasons(&planned(job, &failed)),
            ["FailureTarget BackoffLimitExceeded", "Failed BackoffLimitExceeded"]
        );
        assert_eq!(planned(job, &failed[..1]).create.len(), 1);
        let late = "spec: {parallelism: 1, activeDeadlineSeconds: 30}\nstatus: {startTime: '2026-01-01T00:00:00Z'}";
        let plan = planned(late, &[pod("a", "Running", "")]);
        assert_eq!((reasons(&plan), plan.delete.len()), (vec!["FailureTarget DeadlineExceeded".to_owned()], 1));
    }

    #[test]
    fn a_failure_that_the_status_names_is_not_a_new_one() {
        let job = read("spec: {parallelism: 1}\nstatus: {uncountedTerminatedPods: {failed: [a]}}");
        let pods = [pod("a", "Failed", ""), pod("b", "Failed", ""), pod("c", "Succeeded", "")];
        let tally = Tally::of(&job, &pods, false);
        let new: Vec<&str> = tally.new_failures(&job).map(|pod| pod.str_at(&["metadata", "uid"])).collect();
        assert_eq!((new, tally.failed), (vec!["b"], 2));
    }

    #[test]
    fn failures_count_by_the_policy() {
        let job = |action: &str| {
            format!(
                "spec: {{parallelism: 1, completions: 1, backoffLimit: 0, podFailurePolicy: {{rules: \
                 [{{action: {action}, onExitCodes: {{operator: In, values: [42]}}}}]}}}}"
            )
        };
        let failed = [pod("a", "Failed", "")];
        let ignored = planned(&job("Ignore"), &failed);
        assert_eq!((ignored.create.len(), int_at(&ignored.status, &["failed"])), (1, 0));
        let plan = planned(&job("FailJob"), &failed);
        let message = plan.status.items_at(&["conditions"])[0].str_at(&["message"]);
        assert_eq!(message, "Container c for pod d/a failed with exit code 42 matching FailJob rule at index 0");
    }

    #[test]
    fn each_index_is_done_once() {
        let job = "spec: {parallelism: 3, completions: 4, completionMode: Indexed, backoffLimit: 6}";
        let at = |index: i64| format!("{INDEX}: '{index}'");
        let pods = [pod("a", "Succeeded", &at(0)), pod("b", "Running", &at(2))];
        let plan = planned(job, &pods);
        assert_eq!(plan.create, [Some(1), Some(3)]);
        assert_eq!(plan.status.str_at(&["completedIndexes"]), "0");
        let indexed = new_pod(
            &read("metadata: {name: j, namespace: d}\nspec: {template: {spec: {containers: [{name: c}]}}}"),
            object! {},
            Some(3),
            Some((2, 0)),
        );
        assert_eq!(indexed.str_at(&["metadata", "annotations", INDEX_FAILURES]), "2");
        assert_eq!(indexed.str_at(&["spec", "hostname"]), "j-3");
        assert_eq!(indexed.items_at(&["spec", "containers"])[0].items_at(&["env"]).len(), 1);
    }

    #[test]
    fn failures_count_for_each_index() {
        let job = |more: &str| {
            format!(
                "spec: {{parallelism: 2, completions: 3, completionMode: Indexed, backoffLimit: 2147483647, \
                 backoffLimitPerIndex: 1{more}}}"
            )
        };
        let at = |index: i64, failures: i64| format!("{INDEX}: '{index}', {INDEX_FAILURES}: '{failures}'");
        // The first failure of an index is followed by another pod, which records it; until then it is not counted.
        let pods = [pod("a", "Failed", &at(0, 0)), pod("b", "Running", &at(1, 0))];
        let read_job = read(&job(""));
        let tally = Tally::of(&read_job, &pods, false);
        assert_eq!((tally.to_count.len(), tally.failed, tally.counts_after(&read_job, 0)), (0, 0, (1, 0)));
        let plan = planned(&job(""), &pods);
        assert_eq!((plan.create.as_slice(), plan.status.str_at(&["failedIndexes"])), (&[Some(0)][..], ""));
        // Once that pod exists, the failed one is counted.
        let pods = [pod("a", "Failed", &at(0, 0)), pod("c", "Running", &at(0, 1))];
        assert_eq!(int_at(&planned(&job(""), &pods).status, &["failed"]), 1);
        // The second is the last of its index; the others go on.
        let pods = [pod("c", "Failed", &at(0, 1)), pod("b", "Running", &at(1, 0))];
        let plan = planned(&job(""), &pods);
        assert_eq!((plan.create.as_slice(), plan.status.str_at(&["failedIndexes"])), (&[Some(2)][..], "0"));
        assert_eq!(reasons(&plan), Vec::<String>::new());
        let plan = planned(&job(", maxFailedIndexes: 0"), &pods);
        assert_eq!(reasons(&plan), ["FailureTarget MaxFailedIndexesExceeded"]);
        let pods = [pod("a", "Succeeded", &at(1, 0)), pod("b", "Succeeded", &at(2, 0)), pods[0].clone()];
        assert_eq!(reasons(&planned(&job(""), &pods)), ["FailureTarget FailedIndexes", "Failed FailedIndexes"]);
        // A policy may end an index at its first failure.
        let rules = "podFailurePolicy: {rules: [{action: FailIndex, onExitCodes: {operator: In, values: [42]}}]}";
        let plan = planned(&job(&format!(", {rules}")), &[pod("a", "Failed", &at(0, 0))]);
        assert_eq!(plan.status.str_at(&["failedIndexes"]), "0");
    }

    #[test]
    fn some_indexes_may_be_enough() {
        let at = |index: i64| format!("{INDEX}: '{index}'");
        let pods = [pod("a", "Succeeded", &at(0)), pod("b", "Succeeded", &at(2)), pod("c", "Running", &at(1))];
        let check = |rules: &str, expected: Option<&str>| {
            let job = format!(
                "spec: {{parallelism: 3, completions: 3, completionMode: Indexed, backoffLimit: 6, successPolicy: {{rules: [{rules}]}}}}"
            );
            let plan = planned(&job, &pods);
            let met = plan.status.items_at(&["conditions"]).iter();
            let met: Vec<&str> = met.map(|condition| condition.str_at(&["message"])).collect();
            assert_eq!(
                (met.first().copied(), plan.delete.len()),
                (expected, usize::from(expected.is_some())),
                "{rules}"
            );
        };
        check("{succeededCount: 2}", Some("Matched rules at index 0"));
        check("{succeededIndexes: '1'}, {succeededIndexes: '0,2'}", Some("Matched rules at index 1"));
        check("{succeededIndexes: '0-2', succeededCount: 2}", Some("Matched rules at index 0"));
        check("{succeededIndexes: '0-1'}", None);
        let over = "spec: {parallelism: 1, completions: 3, completionMode: Indexed, backoffLimit: 6}\nstatus: {completedIndexes: '0', \
                    conditions: [{type: SuccessCriteriaMet, status: 'True', reason: SuccessPolicy, message: m}]}";
        assert_eq!(reasons(&planned(over, &[])), ["SuccessCriteriaMet SuccessPolicy", "Complete SuccessPolicy"]);
    }

    #[test]
    fn what_a_job_takes_does_not_depend_on_its_numbers() {
        let job = "spec: {parallelism: 2, completions: 2147483647, completionMode: Indexed, backoffLimit: 6, \
                   backoffLimitPerIndex: 1, successPolicy: {rules: [{succeededIndexes: '0-2147483646'}]}}\n\
                   status: {completedIndexes: '0-2147483600', failedIndexes: '2147483602-2147483640'}";
        let huge = format!("{INDEX}: '{}', {INDEX_FAILURES}: '{0}', {INDEX_IGNORED}: '{0}'", i64::MAX);
        let pods = [pod("a", "Succeeded", &huge), pod("b", "Failed", &huge)];
        let plan = planned(job, &pods);
        assert_eq!(plan.create, [Some(2_147_483_601), Some(2_147_483_641)]);
        assert_eq!(plan.status.str_at(&["completedIndexes"]), "0-2147483600");
        assert_eq!(plan.status.str_at(&["failedIndexes"]), "2147483602-2147483640");
        let done = job.replace("0-2147483600", "0-2147483646").replace("2147483602-2147483640", "");
        assert_eq!(reasons(&planned(&done, &[]))[0], "SuccessCriteriaMet SuccessPolicy");
    }

    #[test]
    fn a_job_that_is_suspended_has_no_pods() {
        let plan = planned("spec: {parallelism: 2, suspend: true}", &[pod("a", "Running", "")]);
        assert_eq!((plan.delete.len(), reasons(&plan)), (1, vec!["Suspended JobSuspended".to_owned()]));
        let resumed = "spec: {parallelism: 2}\nstatus: {conditions: [{type: Suspended, status: 'True'}]}";
        let plan = planned(resumed, &[]);
        assert_eq!((plan.create.len(), reasons(&plan)), (2, vec!["Suspended JobResumed".to_owned()]));
    }

    #[test]
    fn failures_in_a_row_are_waited_after() {
        let job = read("spec: {parallelism: 1, completions: 1, backoffLimit: 6}");
        let now: Timestamp = "2026-01-01T00:01:00Z".parse().expect("a time");
        let tally = Tally::of(&job, &[], false);
        let pause = |failures| plan(&job, &[], &tally, Some((failures, now)), now).again.map(|pause| pause.as_secs());
        assert_eq!([1, 2, 3, 20].map(pause), [Some(10), Some(20), Some(40), Some(600)]);
    }
}
