//! Jobs: pods until enough have succeeded, or too many failed.
//!
//! A pod that has ended is counted before its finalizer is taken away, so that none is counted twice or lost: the status names
//! it first, then the finalizer goes, then it is counted.
//!
//! Where failures count for each index, a failed pod keeps its finalizer until another takes its place, which says how often
//! its index has failed.
//!
//! Source: `pkg/controller/job` of Kubernetes 1.37.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::join_all;
use jiff::Timestamp;

use super::client::{Client, JOBS, PODS, int_at, is_going, key_of, left, sooner, time_at, written};
use super::conditions::{self, Said};
use super::family::{self, Family};
use super::finalizers;
use super::index_set::IndexSet;
use super::pod_control::{create_pods, delete_pods};
use super::pods;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::workload::{Means, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::Value;

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often pods of an index have failed: as it counts, and as it was ignored.
const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
const INDEX_IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";
const JOB_NAME: &str = "batch.kubernetes.io/job-name";
/// How long the first failure in a row is waited after, and how long any is at most.
const BACK_OFF_FIRST_S: i64 = 10;
const BACK_OFF_MAX_S: i64 = 600;
/// How many pods are made at a time.
const BURST_MAX: i64 = 500;

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
    /// Takes the finalizers from pods of a job that is gone.
    async fn let_go_of(&self, key: &str) -> Result<Progress, Status> {
        let Some((namespace, name)) = key.split_once('/') else { return Ok(Progress::Done) };
        let of_job = self.client.list(PODS, namespace, |stored| stored.label(JOB_NAME) == Some(name)).await?;
        self.release(of_job.iter()).await.map(|()| Progress::Done)
    }

    /// Takes the finalizers from pods that are counted.
    ///
    /// Errors: 409 where a pod is not as it was read. It still has its finalizer then, and must not be counted before it is gone.
    async fn release(&self, pods: impl Iterator<Item = &Value>) -> Result<(), Status> {
        let held = pods.filter(|pod| is_held(pod)).map(|pod| async move {
            match finalizers::remove(&self.client, PODS, pod, FINALIZER).await {
                Err(status) if status.code != 404 => Err(status),
                _ => Ok(()),
            }
        });
        // All of them are tried, so that one which is written to often keeps none of the others.
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

    /// New pods: of these indexes, or so many without.
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

/// How often pods of an index have failed: as it counts, and as it was ignored.
type IndexFailures = (i64, i64);

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

fn is_held(pod: &Value) -> bool {
    finalizers::has(pod, FINALIZER)
}

fn finished_at(pod: &Value) -> Option<Timestamp> {
    let statuses = pod.items_at(&["status", "containerStatuses"]).iter();
    statuses.filter_map(|status| time_at(status, &["state", "terminated", "finishedAt"])).max()
}

fn index_of(pod: &Value) -> Option<i64> {
    pod.str_at(&["metadata", "annotations", INDEX]).parse().ok()
}

/// How often pods of the index of a pod had failed when it was made.
fn index_failures(pod: &Value) -> IndexFailures {
    let count = |name| pod.str_at(&["metadata", "annotations", name]).parse().unwrap_or_default();
    (count(INDEX_FAILURES), count(INDEX_IGNORED))
}

/// How often an index may fail, where that counts.
fn limit_per_index(job: &Value) -> Option<i64> {
    job.at(&["spec", "backoffLimitPerIndex"]).and_then(Value::as_i64).filter(|_| is_indexed(job))
}

/// How a pod has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Succeeded,
    Failed,
    /// By the job's policy, this failure is none.
    Ignored,
    /// By the job's policy, nothing more is to be tried of its index.
    IndexFailed,
}

/// What the pods of a job come to.
struct Tally<'p> {
    active: Vec<&'p Value>,
    /// Those that have ended and hold their finalizer.
    to_count: Vec<(&'p Value, End)>,
    /// With those that are being counted.
    succeeded: i64,
    failed: i64,
    /// The indexes that are done.
    completed: IndexSet,
    /// Those that have failed for good; `None` where that does not count.
    failed_indexes: Option<IndexSet>,
    /// Failed pods that another is to take the place of, by their indexes.
    replaced: BTreeMap<i64, &'p Value>,
    ready: i64,
    terminating: i64,
    /// Why the job fails by its policy.
    policy_failure: Option<String>,
}

impl<'p> Tally<'p> {
    /// What pods come to; `is_end` counts those, too, whose place another would take.
    fn of(job: &Value, pods: &'p [Value], is_end: bool) -> Self {
        let is_indexed = is_indexed(job);
        let has_policy = job.at(&["spec", "podFailurePolicy"]).is_some_and(|policy| !policy.is_null());
        let only_failed = has_policy || job.str_at(&["spec", "podReplacementPolicy"]) == "Failed";
        let indexes = |field: &str| IndexSet::read(job.str_at(&["status", field]), completions(job));
        let mut tally = Tally {
            active: Vec::new(),
            to_count: Vec::new(),
            succeeded: int_at(job, &["status", "succeeded"]),
            failed: int_at(job, &["status", "failed"]),
            completed: indexes("completedIndexes"),
            failed_indexes: limit_per_index(job).map(|_| indexes("failedIndexes")),
            replaced: BTreeMap::new(),
            ready: 0,
            terminating: 0,
            policy_failure: None,
        };
        tally.recall(job, pods);
        let mut ended = Vec::new();
        for pod in pods {
            let is_lost = is_going(pod) && !pods::is_over(pod);
            tally.terminating += i64::from(is_lost);
            let end = match pod.str_at(&["status", "phase"]) {
                "Succeeded" => End::Succeeded,
                "Failed" => tally.failure(job, pod),
                _ if is_lost && !only_failed => End::Failed,
                _ if is_lost => continue,
                _ => {
                    tally.ready += i64::from(pods::is_ready(pod));
                    tally.active.push(pod);
                    continue;
                }
            };
            if is_held(pod) {
                ended.push((pod, end));
            }
        }
        tally.look_at_indexes(job, &ended);
        let mut succeeded = Vec::new();
        for (pod, end) in ended {
            let index = index_of(pod);
            let waits = |index| tally.replaced.get(&index).is_some_and(|known| std::ptr::eq(*known, pod));
            if !is_end && end != End::Succeeded && index.is_some_and(waits) {
                continue;
            }
            match (end, index) {
                (End::Succeeded, Some(index)) if is_indexed => succeeded.push(index),
                (End::Succeeded, _) => tally.succeeded += 1,
                (End::Failed | End::IndexFailed, _) => tally.failed += 1,
                (End::Ignored, _) => {}
            }
            tally.to_count.push((pod, end));
        }
        tally.completed.extend(succeeded);
        if is_indexed {
            tally.succeeded = tally.completed.len();
        }
        tally
    }

    /// The pods that have failed, without those that the status names: they were seen when it was written.
    fn new_failures(&self, job: &Value) -> impl Iterator<Item = &'p Value> {
        let named = job.items_at(&["status", "uncountedTerminatedPods", "failed"]).iter();
        let named: HashSet<&str> = named.filter_map(Value::as_str).collect();
        let failed = self.to_count.iter().filter(|(_, end)| *end == End::Failed).map(|(pod, _)| *pod);
        failed.filter(move |pod| !named.contains(pod.str_at(&["metadata", "uid"])))
    }

    /// Finds the indexes that have failed, and the failed pods whose place another is to take.
    fn look_at_indexes(&mut self, job: &Value, ended: &[(&'p Value, End)]) {
        let Some(limit) = limit_per_index(job) else { return };
        let completions = completions(job);
        let index_of = |pod: &Value| index_of(pod).filter(|index| *index < completions);
        let succeeded = ended.iter().filter(|(_, end)| *end == End::Succeeded).filter_map(|(pod, _)| index_of(pod));
        let mut settled = self.completed.clone();
        settled.extend(succeeded.chain(self.active.iter().filter_map(|pod| index_of(pod))));
        let has_failed = |(pod, end): &&(&Value, End)| {
            let is_too_often = *end == End::Failed && index_failures(pod).0 >= limit;
            is_too_often || *end == End::IndexFailed
        };
        let mut failed = self.failed_indexes.take().unwrap_or_else(|| IndexSet::new(completions));
        failed.extend(ended.iter().filter(has_failed).filter_map(|(pod, _)| index_of(pod)));
        let settled = settled.union(&failed);
        self.failed_indexes = Some(failed);
        for &(pod, _) in ended.iter().filter(|(_, end)| *end != End::Succeeded) {
            let Some(index) = index_of(pod).filter(|index| !settled.contains(*index)) else { continue };
            let age = |pod: &Value| {
                let (counted, ignored) = index_failures(pod);
                (counted.saturating_add(ignored), finished_at(pod))
            };
            let known = self.replaced.entry(index).or_insert(pod);
            if age(known) <= age(pod) {
                *known = pod;
            }
        }
    }

    /// How often pods of an index have failed when the next one is made.
    fn counts_after(&self, job: &Value, index: i64) -> IndexFailures {
        let Some(pod) = self.replaced.get(&index) else { return (0, 0) };
        let (counted, ignored) = index_failures(pod);
        match outcome(job, pod).0 {
            End::Ignored => (counted, ignored.saturating_add(1)),
            _ => (counted.saturating_add(1), ignored),
        }
    }

    /// Counts the pods that were named before, and whose finalizers are gone: who wrote that did not come further.
    fn recall(&mut self, job: &Value, pods: &[Value]) {
        let held = pods.iter().filter(|pod| is_held(pod)).map(|pod| pod.str_at(&["metadata", "uid"]));
        let held: HashSet<&str> = held.collect();
        let named = |list: &str| {
            let uids = job.items_at(&["status", "uncountedTerminatedPods", list]).iter();
            uids.filter(|uid| !held.contains(uid.as_str().unwrap_or_default())).count() as i64
        };
        self.succeeded += named("succeeded");
        self.failed += named("failed");
    }

    /// What the failure of a pod counts, by the job's policy.
    fn failure(&mut self, job: &Value, pod: &Value) -> End {
        let (end, why) = outcome(job, pod);
        self.policy_failure = why.or(self.policy_failure.take());
        end
    }
}

/// What the failure of a pod counts by the job's policy, and why the job fails with it, if it does.
fn outcome(job: &Value, pod: &Value) -> (End, Option<String>) {
    for (at, rule) in job.items_at(&["spec", "podFailurePolicy", "rules"]).iter().enumerate() {
        let Some(why) = matching(rule, pod) else { continue };
        return match rule.str_at(&["action"]) {
            "Ignore" => (End::Ignored, None),
            "FailIndex" if limit_per_index(job).is_some() => (End::IndexFailed, None),
            "FailJob" => (End::Failed, Some(format!("{why} matching FailJob rule at index {at}"))),
            _ => (End::Failed, None),
        };
    }
    (End::Failed, None)
}

/// What of a pod a rule is about, in the words of the condition.
fn matching(rule: &Value, pod: &Value) -> Option<String> {
    let key = key_of(pod);
    if let Some(codes) = rule.get("onExitCodes").filter(|codes| !codes.is_null()) {
        let lists = ["initContainerStatuses", "containerStatuses"];
        let mut statuses = lists.iter().flat_map(|list| pod.items_at(&["status", list]));
        return statuses.find_map(|status| {
            let code = status.at(&["state", "terminated", "exitCode"]).and_then(Value::as_i64)?;
            let name = status.str_at(&["name"]);
            let is_it = ["", name].contains(&codes.str_at(&["containerName"]));
            let is_listed = codes.items_at(&["values"]).contains(&Value::Int(code));
            let is_in = codes.str_at(&["operator"]) == "In";
            let matches = code != 0 && is_it && is_listed == is_in;
            matches.then(|| format!("Container {name} for pod {key} failed with exit code {code}"))
        });
    }
    let patterns = rule.items_at(&["onPodConditions"]);
    patterns.iter().find_map(|pattern| {
        let type_ = pattern.str_at(&["type"]);
        let found = conditions::find(conditions::of(pod), type_)?;
        let matches = found.str_at(&["status"]) == pattern.str_at(&["status"]);
        matches.then(|| format!("Pod {key} has condition {type_}"))
    })
}

/// How many pods are to succeed; 0 where that is not said.
fn completions(job: &Value) -> i64 {
    int_at(job, &["spec", "completions"])
}

fn is_indexed(job: &Value) -> bool {
    job.str_at(&["spec", "completionMode"]) == "Indexed"
}

/// What is to be done for a job.
#[derive(Default)]
struct JobPlan {
    status: Value,
    delete: Vec<Value>,
    /// The pods to be made, with their indexes.
    create: Vec<Option<i64>>,
    events: Vec<(&'static str, &'static str, String)>,
    again: Option<Duration>,
    /// Whether the job comes to its end.
    is_end: bool,
    /// Whether the pods that are deleted count as failed: those of a job that fails, not those that it no longer needs.
    counts_deleted: bool,
}

impl JobPlan {
    /// Says how a job ends, by a failure where its deleted pods count as failed; once it `is_over`, that it has ended.
    fn end(
        &mut self,
        conditions: &mut Vec<Value>,
        (reason, message): &(String, String),
        is_over: bool,
        now: Timestamp,
    ) {
        let (target, done) =
            if self.counts_deleted { ("FailureTarget", "Failed") } else { ("SuccessCriteriaMet", "Complete") };
        for type_ in [Some(target), is_over.then_some(done)].into_iter().flatten() {
            set_condition(conditions, &Said { type_, status: "True", reason, message }, now);
        }
        if is_over && self.counts_deleted {
            self.events.push(("Warning", reason_of(reason), message.clone()));
        } else if is_over {
            self.events.push(("Normal", "Completed", "Job completed".to_owned()));
        }
    }

    /// The pods as they will be, where so many were active before the plan.
    fn counts(&self, tally: &Tally<'_>, active: usize) -> Counts {
        let deleted = self.delete.len();
        let active = active.saturating_sub(deleted) as i64;
        let ready = if deleted > 0 { tally.ready.min(active) } else { tally.ready };
        Counts { active: active + self.create.len() as i64, ready, terminating: tally.terminating + deleted as i64 }
    }

    /// The status that names the pods that are being counted, before they are.
    fn named(&self, job: &Value, tally: &Tally<'_>) -> Value {
        let mut status = job.get("status").cloned().unwrap_or_else(|| object! {});
        let uids = |wanted: End| -> Vec<Value> {
            let ended = tally.to_count.iter().filter(|(_, end)| *end == wanted);
            ended.map(|(pod, _)| Value::from(pod.str_at(&["metadata", "uid"]))).collect()
        };
        let mut named = object! {};
        // Of indexes, it is known by themselves that they are done.
        let succeeded = if is_indexed(job) { Vec::new() } else { uids(End::Succeeded) };
        let failed = [uids(End::Failed), uids(End::IndexFailed)].concat();
        for (list, uids) in [("succeeded", succeeded), ("failed", failed)] {
            if !uids.is_empty() {
                named.make_object().insert(list, Value::Array(uids));
            }
        }
        let fields = status.make_object();
        fields.insert("uncountedTerminatedPods", named);
        for field in ["startTime", "active", "ready", "terminating", "completedIndexes", "failedIndexes"] {
            if let Some(value) = self.status.get(field) {
                fields.insert(field, value.clone());
            }
        }
        if is_indexed(job) {
            fields.insert("succeeded", Value::Int(tally.succeeded));
        }
        status
    }
}

/// Decides what to do. `since` is how many pods have failed in a row, and when the last of them did.
fn plan(job: &Value, pods: &[Value], tally: &Tally<'_>, since: Option<(i64, Timestamp)>, now: Timestamp) -> JobPlan {
    let mut plan = JobPlan::default();
    let mut conditions = conditions::of(job).to_vec();
    let is_suspended = job.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
    let mut started = job.at(&["status", "startTime"]).filter(|time| !time.is_null()).cloned();
    if started.is_none() && !is_suspended {
        started = Some(written(now));
    }
    let mut active: Vec<&Value> = tally.active.clone();
    let met = conditions::find(&conditions, "SuccessCriteriaMet").filter(|it| it.str_at(&["status"]) == "True");
    let met = met.map(|met| (met.str_at(&["reason"]).to_owned(), met.str_at(&["message"]).to_owned()));
    let failure = match met {
        Some(_) => None,
        None => failure_of(job, tally, &conditions, started.as_ref(), now, &mut plan.again),
    };
    let success = met.or_else(|| if failure.is_none() { success_of(job, tally) } else { None });
    plan.is_end = failure.is_some() || success.is_some();
    let mut completed_at = None;
    plan.counts_deleted = failure.is_some();
    if let Some(why) = failure.as_ref().or(success.as_ref()) {
        plan.delete = active.drain(..).cloned().collect();
        let is_over = plan.delete.is_empty() && tally.terminating == 0;
        plan.end(&mut conditions, why, is_over, now);
        completed_at = (is_over && failure.is_none()).then(|| written(now));
    } else if is_suspended {
        plan.delete = active.drain(..).cloned().collect();
        if !conditions::holds(&conditions, "Suspended") {
            suspend(&mut conditions, ("True", "JobSuspended", "Job suspended"), &mut plan, now);
        }
        started = None;
    } else {
        if conditions::holds(&conditions, "Suspended") {
            suspend(&mut conditions, ("False", "JobResumed", "Job resumed"), &mut plan, now);
            started = Some(written(now));
        }
        manage(job, pods, tally, since, now, &mut plan);
    }
    let counts = plan.counts(tally, active.len());
    plan.status = status(tally, &counts, is_indexed(job), (started, completed_at));
    conditions::put(&mut plan.status, conditions);
    plan
}

/// Sets a condition, which says of Jobs, too, when it was looked at: at its last change.
fn set_condition(conditions: &mut Vec<Value>, said: &Said<'_>, now: Timestamp) {
    conditions::set(conditions, said, &written(now));
    let set = conditions.iter_mut().find(|condition| condition.str_at(&["type"]) == said.type_);
    if let Some(condition) = set {
        let changed = condition.get("lastTransitionTime").cloned().unwrap_or_default();
        condition.make_object().insert("lastProbeTime", changed);
    }
}

fn suspend(
    conditions: &mut Vec<Value>,
    (status, reason, message): (&str, &str, &str),
    plan: &mut JobPlan,
    now: Timestamp,
) {
    set_condition(conditions, &Said { type_: "Suspended", status, reason, message }, now);
    let event = if status == "True" { "Suspended" } else { "Resumed" };
    plan.events.push(("Normal", event, message.to_owned()));
}

/// The reason of an event.
fn reason_of(reason: &str) -> &'static str {
    match reason {
        "DeadlineExceeded" => "DeadlineExceeded",
        "PodFailurePolicy" => "PodFailurePolicy",
        "MaxFailedIndexesExceeded" => "MaxFailedIndexesExceeded",
        "FailedIndexes" => "FailedIndexes",
        _ => "BackoffLimitExceeded",
    }
}

/// Why a job fails, with a reason and a message; `again` is when its deadline passes.
fn failure_of(
    job: &Value,
    tally: &Tally<'_>,
    conditions: &[Value],
    started: Option<&Value>,
    now: Timestamp,
    again: &mut Option<Duration>,
) -> Option<(String, String)> {
    if let Some(decided) = conditions::find(conditions, "FailureTarget") {
        let text = |field: &str| decided.str_at(&[field]).to_owned();
        return Some((text("reason"), text("message")));
    }
    if let Some(why) = &tally.policy_failure {
        return Some(("PodFailurePolicy".to_owned(), why.clone()));
    }
    let limit = job.at(&["spec", "backoffLimit"]).and_then(Value::as_i64).unwrap_or(6);
    let waiting = tally.to_count.iter().map(|(pod, _)| *pod);
    let waiting = tally.replaced.values().filter(|pod| !waiting.clone().any(|known| std::ptr::eq(known, **pod)));
    let failed = tally.failed + waiting.filter(|pod| outcome(job, pod).0 != End::Ignored).count() as i64;
    let restarts: i64 = match job.str_at(&["spec", "template", "spec", "restartPolicy"]) {
        "OnFailure" => tally.active.iter().map(|pod| pods::restarts(pod)).sum(),
        _ => 0,
    };
    let too_often = restarts > 0 && (if limit == 0 { restarts > 0 } else { restarts >= limit });
    if failed > limit || too_often {
        let message = "Job has reached the specified backoff limit";
        return Some(("BackoffLimitExceeded".to_owned(), message.to_owned()));
    }
    let deadline = job.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64);
    let started = started.and_then(|time| time.as_str()).and_then(|time| time.parse().ok());
    if let (Some(deadline), Some(started)) = (deadline, started) {
        let pause = left(started, deadline, now);
        if pause.is_none() {
            let message = "Job was active longer than specified deadline";
            return Some(("DeadlineExceeded".to_owned(), message.to_owned()));
        }
        *again = sooner(*again, pause);
    }
    let failed = tally.failed_indexes.as_ref().map_or(0, IndexSet::len);
    let most = job.at(&["spec", "maxFailedIndexes"]).and_then(Value::as_i64);
    if most.is_some_and(|most| failed > most) {
        let message = "Job has exceeded the specified maximal number of failed indexes";
        return Some(("MaxFailedIndexesExceeded".to_owned(), message.to_owned()));
    }
    let is_over = failed > 0 && failed + tally.succeeded >= completions(job);
    is_over.then(|| ("FailedIndexes".to_owned(), "Job has failed indexes".to_owned()))
}

/// Why a job has succeeded, with a reason and a message.
fn success_of(job: &Value, tally: &Tally<'_>) -> Option<(String, String)> {
    let rules = job.items_at(&["spec", "successPolicy", "rules"]).iter().filter(|_| is_indexed(job));
    for (at, rule) in rules.enumerate() {
        let count = rule.get("succeededCount").and_then(Value::as_i64);
        let is_met = match rule.get("succeededIndexes").and_then(Value::as_str) {
            Some(listed) => {
                let wanted = IndexSet::read(listed, completions(job));
                let found = wanted.common(&tally.completed);
                !wanted.is_empty() && (found == wanted.len() || count.is_some_and(|count| found >= count))
            }
            None => count.is_some_and(|count| tally.completed.len() >= count),
        };
        if is_met && !tally.completed.is_empty() {
            return Some(("SuccessPolicy".to_owned(), format!("Matched rules at index {at}")));
        }
    }
    let message = "Reached expected number of succeeded pods";
    has_succeeded(job, tally).then(|| ("CompletionsReached".to_owned(), message.to_owned()))
}

/// Whether a job has what it wants.
fn has_succeeded(job: &Value, tally: &Tally<'_>) -> bool {
    match job.at(&["spec", "completions"]).and_then(Value::as_i64) {
        Some(completions) => tally.succeeded >= completions,
        // Any that succeeds says that there is nothing left to be done.
        None => tally.succeeded > 0 && tally.active.is_empty(),
    }
}

/// Makes pods, or deletes those that are too many.
fn manage(
    job: &Value,
    pods: &[Value],
    tally: &Tally<'_>,
    since: Option<(i64, Timestamp)>,
    now: Timestamp,
    plan: &mut JobPlan,
) {
    let parallelism = job.at(&["spec", "parallelism"]).and_then(Value::as_i64).unwrap_or(1);
    let active = tally.active.len() as i64;
    let wanted = match job.at(&["spec", "completions"]).and_then(Value::as_i64) {
        Some(completions) => parallelism.min(completions - tally.succeeded),
        None if tally.succeeded > 0 => active.min(parallelism),
        None => parallelism,
    };
    if active > wanted {
        let mut surplus: Vec<Value> = tally.active.iter().map(|pod| (*pod).clone()).collect();
        pods::in_order_of_deletion(&mut surplus, |_| 0);
        surplus.truncate(usize::try_from(active - wanted.max(0)).unwrap_or_default());
        plan.delete = surplus;
        return;
    }
    let only_failed = job.str_at(&["spec", "podReplacementPolicy"]) == "Failed";
    let leaving = if only_failed { tally.terminating } else { 0 };
    let missing = (wanted - active - leaving).min(BURST_MAX);
    if missing <= 0 {
        return;
    }
    if let Some((failures, at)) = since.filter(|_| tally.failed_indexes.is_none())
        && let Some(pause) = left(at, back_off_s(failures), now)
    {
        plan.again = sooner(plan.again, Some(pause));
        return;
    }
    let missing = usize::try_from(missing).unwrap_or_default();
    plan.create = if is_indexed(job) {
        let leaving = pods.iter().filter(|pod| only_failed && is_going(pod));
        let mut taken = tally.completed.clone();
        taken.extend(tally.active.iter().copied().chain(leaving).filter_map(index_of));
        let taken = tally.failed_indexes.iter().fold(taken, IndexSet::union);
        let mut made = Vec::new();
        for index in taken.missing().take(missing) {
            match tally.replaced.get(&index).and_then(|pod| index_pause(pod, now)) {
                Some(pause) => plan.again = sooner(plan.again, Some(pause)),
                None => made.push(Some(index)),
            }
        }
        made
    } else {
        vec![None; missing]
    };
}

/// How long failures in a row are waited after.
fn back_off_s(failures: i64) -> i64 {
    BACK_OFF_FIRST_S.saturating_mul(1 << failures.saturating_sub(1).clamp(0, 30)).min(BACK_OFF_MAX_S)
}

/// How long it is until another pod takes the place of a failed one of an index.
fn index_pause(pod: &Value, now: Timestamp) -> Option<Duration> {
    let (counted, ignored) = index_failures(pod);
    left(finished_at(pod)?, back_off_s(counted.saturating_add(ignored).saturating_add(1)), now)
}

struct Counts {
    active: i64,
    ready: i64,
    terminating: i64,
}

fn status(
    tally: &Tally<'_>,
    counts: &Counts,
    is_indexed: bool,
    (started, completed): (Option<Value>, Option<Value>),
) -> Value {
    let mut status = object! {
        "ready" => counts.ready,
        "terminating" => counts.terminating,
        "uncountedTerminatedPods" => object! {},
    };
    let fields = status.make_object();
    let numbers = [("active", counts.active), ("succeeded", tally.succeeded), ("failed", tally.failed)];
    numbers.into_iter().filter(|(_, count)| *count > 0).for_each(|(name, count)| _ = fields.insert(name, count.into()));
    if is_indexed && !tally.completed.is_empty() {
        fields.insert("completedIndexes", Value::String(tally.completed.to_string()));
    }
    if let Some(failed) = &tally.failed_indexes {
        fields.insert("failedIndexes", Value::String(failed.to_string()));
    }
    for (name, time) in [("startTime", started), ("completionTime", completed)] {
        if let Some(time) = time {
            fields.insert(name, time);
        }
    }
    status
}

/// Starts it.
pub(super) fn start(means: &Means) -> Running {
    let family = Family::new(JOBS, ("batch/v1", "Job"), PODS);
    let jobs = Jobs { client: means.client("job-controller"), family, failures: Mutex::default() };
    Box::pin(super::reconcile::run(Arc::clone(&means.registry), jobs))
}

#[cfg(test)]
mod tests {
    use super::*;
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
        // The first failure of an index is followed by another pod, which says so; until then it is not counted.
        let pods = [pod("a", "Failed", &at(0, 0)), pod("b", "Running", &at(1, 0))];
        let read_job = read(&job(""));
        let tally = Tally::of(&read_job, &pods, false);
        assert_eq!((tally.to_count.len(), tally.failed, tally.counts_after(&read_job, 0)), (0, 0, (1, 0)));
        let plan = planned(&job(""), &pods);
        assert_eq!((plan.create.as_slice(), plan.status.str_at(&["failedIndexes"])), (&[Some(0)][..], ""));
        // Once that is there, the failed one is counted.
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
