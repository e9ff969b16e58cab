//! Jobs: pods until enough have succeeded, or too many failed.
//!
//! A pod that has ended is counted before its finalizer is taken away, so that none is counted twice or lost: the status names
//! it first, then the finalizer goes, then it is counted.
//!
//! DIFFERS: `backoffLimitPerIndex` and `successPolicy` are not acted on.
//!
//! Source: `pkg/controller/job` of Kubernetes 1.37.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::future::try_join_all;
use jiff::Timestamp;

use super::client::{Client, JOBS, PODS, int_at, is_going, key_of, left, place, sooner, time_at, written};
use super::conditions::{self, Said};
use super::family::{self, Family};
use super::pod_control::{create_pods, delete_pods};
use super::pods;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::switches::{Means, Running};
use crate::meta::Status;
use crate::object;
use crate::store::{Collection, Entry};
use crate::value::Value;

const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
const INDEX: &str = "batch.kubernetes.io/job-completion-index";
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

    fn note(&self, change: &Entry) -> Vec<String> {
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
    async fn release(&self, pods: impl Iterator<Item = &Value>) -> Result<(), Status> {
        let held = pods.filter(|pod| is_held(pod)).map(|pod| async move {
            let mut finalizers = pod.items_at(&["metadata", "finalizers"]).to_vec();
            finalizers.retain(|name| name.as_str() != Some(FINALIZER));
            let finalizers = if finalizers.is_empty() { Value::Null } else { Value::Array(finalizers) };
            let uid = pod.str_at(&["metadata", "uid"]);
            let patch = object! { "metadata" => object! { "uid" => uid, "finalizers" => finalizers } };
            let (namespace, name) = place(pod);
            match self.client.merge(PODS, namespace, name, &patch).await {
                Err(status) if !matches!(status.code, 404 | 409) => Err(status),
                _ => Ok(()),
            }
        });
        try_join_all(held).await.map(drop)
    }

    async fn sync(&self, key: &str, job: Value, pods: &[Value]) -> Result<Progress, Status> {
        let now = self.client.now();
        let tally = Tally::of(&job, pods);
        self.note_failures(key, &tally);
        let since = self.failures.lock().unwrap_or_else(PoisonError::into_inner).get(key).copied();
        let plan = plan(&job, pods, &tally, since, now);
        delete_pods(&self.client, &job, &plan.delete).await?;
        let mut job = job;
        if !tally.to_count.is_empty() {
            let named = plan.named(&job, &tally);
            job = self.client.write_status(JOBS, &job, named).await?;
            self.release(tally.to_count.iter().map(|(pod, _)| *pod)).await?;
        }
        for (type_, reason, message) in &plan.events {
            self.client.tell(&job, type_, reason, message.clone());
        }
        if !plan.create.is_empty() {
            let made = create_pods(&self.client, &self.family, &job, self.pods_of(&job, &plan.create)).await;
            if made.is_err() {
                return made.map(|()| Progress::Done);
            }
        }
        self.client.update_status(JOBS, &job, plan.status).await?;
        Ok(plan.again.map_or(Progress::Done, Progress::After))
    }

    fn note_failures(&self, key: &str, tally: &Tally<'_>) {
        let mut failures = self.failures.lock().unwrap_or_else(PoisonError::into_inner);
        if tally.to_count.iter().any(|(_, end)| *end == End::Succeeded) {
            failures.remove(key);
            return;
        }
        for (pod, _) in tally.to_count.iter().filter(|(_, end)| *end == End::Failed) {
            let at = finished_at(pod).unwrap_or_else(|| self.client.now());
            let entry = failures.entry(key.to_owned()).or_insert((0, at));
            *entry = (entry.0 + 1, entry.1.max(at));
        }
    }

    /// New pods: of these indexes, or so many without.
    fn pods_of(&self, job: &Value, indexes: &[Option<i64>]) -> Vec<Value> {
        indexes.iter().map(|index| new_pod(job, self.family.reference(job), *index)).collect()
    }
}

fn new_pod(job: &Value, reference: Value, index: Option<i64>) -> Value {
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
    pod.items_at(&["metadata", "finalizers"]).iter().any(|name| name.as_str() == Some(FINALIZER))
}

fn finished_at(pod: &Value) -> Option<Timestamp> {
    let statuses = pod.items_at(&["status", "containerStatuses"]).iter();
    statuses.filter_map(|status| time_at(status, &["state", "terminated", "finishedAt"])).max()
}

fn index_of(pod: &Value) -> Option<i64> {
    pod.str_at(&["metadata", "annotations", INDEX]).parse().ok()
}

/// How a pod has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    Succeeded,
    Failed,
    /// By the job's policy, this failure is none.
    Ignored,
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
    completed: BTreeSet<i64>,
    ready: i64,
    terminating: i64,
    /// Why the job fails by its policy.
    policy_failure: Option<String>,
}

impl<'p> Tally<'p> {
    fn of(job: &Value, pods: &'p [Value]) -> Self {
        let is_indexed = is_indexed(job);
        let has_policy = job.at(&["spec", "podFailurePolicy"]).is_some_and(|policy| !policy.is_null());
        let only_failed = has_policy || job.str_at(&["spec", "podReplacementPolicy"]) == "Failed";
        let mut tally = Tally {
            active: Vec::new(),
            to_count: Vec::new(),
            succeeded: int_at(job, &["status", "succeeded"]),
            failed: int_at(job, &["status", "failed"]),
            completed: read_indexes(job.str_at(&["status", "completedIndexes"])),
            ready: 0,
            terminating: 0,
            policy_failure: None,
        };
        tally.recall(job, pods);
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
            if !is_held(pod) {
                continue;
            }
            match (end, index_of(pod)) {
                (End::Succeeded, Some(index)) if is_indexed => _ = tally.completed.insert(index),
                (End::Succeeded, _) => tally.succeeded += 1,
                (End::Failed, _) => tally.failed += 1,
                (End::Ignored, _) => {}
            }
            tally.to_count.push((pod, end));
        }
        if is_indexed {
            tally.succeeded = tally.completed.len() as i64;
        }
        tally
    }

    /// Counts the pods that were named before, and whose finalizers are gone: who wrote that did not come further.
    fn recall(&mut self, job: &Value, pods: &[Value]) {
        let is_held = |uid: &str| pods.iter().any(|pod| pod.str_at(&["metadata", "uid"]) == uid && is_held(pod));
        let named = |list: &str| {
            let uids = job.items_at(&["status", "uncountedTerminatedPods", list]).iter();
            uids.filter(|uid| !is_held(uid.as_str().unwrap_or_default())).count() as i64
        };
        self.succeeded += named("succeeded");
        self.failed += named("failed");
    }

    /// What the failure of a pod counts, by the job's policy.
    fn failure(&mut self, job: &Value, pod: &Value) -> End {
        for (at, rule) in job.items_at(&["spec", "podFailurePolicy", "rules"]).iter().enumerate() {
            let Some(why) = matching(rule, pod) else { continue };
            match rule.str_at(&["action"]) {
                "Ignore" => return End::Ignored,
                "FailJob" => {
                    self.policy_failure = Some(format!("{why} matching FailJob rule at index {at}"));
                    return End::Failed;
                }
                _ => return End::Failed,
            }
        }
        End::Failed
    }
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

fn is_indexed(job: &Value) -> bool {
    job.str_at(&["spec", "completionMode"]) == "Indexed"
}

/// What is to be done for a job.
struct Plan {
    status: Value,
    delete: Vec<Value>,
    /// The pods to be made, with their indexes.
    create: Vec<Option<i64>>,
    events: Vec<(&'static str, &'static str, String)>,
    again: Option<Duration>,
}

impl Plan {
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
        for (list, uids) in [("succeeded", succeeded), ("failed", uids(End::Failed))] {
            if !uids.is_empty() {
                named.make_object().insert(list, Value::Array(uids));
            }
        }
        let fields = status.make_object();
        fields.insert("uncountedTerminatedPods", named);
        for field in ["startTime", "active", "ready", "terminating", "completedIndexes"] {
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
fn plan(job: &Value, pods: &[Value], tally: &Tally<'_>, since: Option<(i64, Timestamp)>, now: Timestamp) -> Plan {
    let mut plan = Plan { status: object! {}, delete: Vec::new(), create: Vec::new(), events: Vec::new(), again: None };
    let mut conditions = conditions::of(job).to_vec();
    let is_suspended = job.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
    let mut started = job.at(&["status", "startTime"]).filter(|time| !time.is_null()).cloned();
    if started.is_none() && !is_suspended {
        started = Some(written(now));
    }
    let mut active: Vec<&Value> = tally.active.clone();
    let failure = failure_of(job, tally, &conditions, started.as_ref(), now, &mut plan.again);
    let is_done = failure.is_none() && has_succeeded(job, tally);
    let mut say = |type_, status, reason: &str, message: &str| {
        conditions::set(&mut conditions, &Said { type_, status, reason, message }, &written(now));
    };
    let mut completed_at = None;
    if let Some((reason, message)) = &failure {
        say("FailureTarget", "True", reason, message);
        plan.delete = active.drain(..).cloned().collect();
        if plan.delete.is_empty() && tally.terminating == 0 {
            say("Failed", "True", reason, message);
            plan.events.push(("Warning", reason_of(reason), message.clone()));
        }
    } else if is_done {
        let (reason, message) = ("CompletionsReached", "Reached expected number of succeeded pods");
        say("SuccessCriteriaMet", "True", reason, message);
        plan.delete = active.drain(..).cloned().collect();
        if plan.delete.is_empty() && tally.terminating == 0 {
            say("Complete", "True", reason, message);
            plan.events.push(("Normal", "Completed", "Job completed".to_owned()));
            completed_at = Some(written(now));
        }
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
    let active = if plan.delete.is_empty() { active.len() } else { active.len().saturating_sub(plan.delete.len()) };
    let deleted = plan.delete.len() as i64;
    let ready = if deleted > 0 { tally.ready.min(active as i64) } else { tally.ready };
    let counts =
        Counts { active: active as i64 + plan.create.len() as i64, ready, terminating: tally.terminating + deleted };
    plan.status = status(tally, &counts, is_indexed(job), (started, completed_at));
    conditions::put(&mut plan.status, conditions);
    plan
}

fn suspend(
    conditions: &mut Vec<Value>,
    (status, reason, message): (&str, &str, &str),
    plan: &mut Plan,
    now: Timestamp,
) {
    conditions::set(conditions, &Said { type_: "Suspended", status, reason, message }, &written(now));
    let event = if status == "True" { "Suspended" } else { "Resumed" };
    plan.events.push(("Normal", event, message.to_owned()));
}

/// The reason of an event.
fn reason_of(reason: &str) -> &'static str {
    match reason {
        "DeadlineExceeded" => "DeadlineExceeded",
        "PodFailurePolicy" => "PodFailurePolicy",
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
    let restarts: i64 = match job.str_at(&["spec", "template", "spec", "restartPolicy"]) {
        "OnFailure" => tally.active.iter().map(|pod| pods::restarts(pod)).sum(),
        _ => 0,
    };
    let too_often = restarts > 0 && (if limit == 0 { restarts > 0 } else { restarts >= limit });
    if tally.failed > limit || too_often {
        let message = "Job has reached the specified backoff limit";
        return Some(("BackoffLimitExceeded".to_owned(), message.to_owned()));
    }
    let deadline = job.at(&["spec", "activeDeadlineSeconds"]).and_then(Value::as_i64)?;
    let started = started.and_then(|time| time.as_str()).and_then(|time| time.parse().ok())?;
    match left(started, deadline, now) {
        Some(pause) => {
            *again = sooner(*again, Some(pause));
            None
        }
        None => {
            let message = "Job was active longer than specified deadline";
            Some(("DeadlineExceeded".to_owned(), message.to_owned()))
        }
    }
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
    plan: &mut Plan,
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
    if let Some((failures, at)) = since {
        let pause = BACK_OFF_FIRST_S.saturating_mul(1 << (failures - 1).clamp(0, 30)).min(BACK_OFF_MAX_S);
        if let Some(pause) = left(at, pause, now) {
            plan.again = sooner(plan.again, Some(pause));
            return;
        }
    }
    let missing = usize::try_from(missing).unwrap_or_default();
    plan.create = if is_indexed(job) {
        let taken: BTreeSet<i64> = tally.active.iter().filter_map(|pod| index_of(pod)).collect();
        let leaving: BTreeSet<i64> =
            pods.iter().filter(|pod| only_failed && is_going(pod)).filter_map(index_of).collect();
        let completions = int_at(job, &["spec", "completions"]);
        let free = |index: &i64| !taken.contains(index) && !tally.completed.contains(index) && !leaving.contains(index);
        (0..completions).filter(free).take(missing).map(Some).collect()
    } else {
        vec![None; missing]
    };
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
        fields.insert("completedIndexes", Value::String(write_indexes(&tally.completed)));
    }
    for (name, time) in [("startTime", started), ("completionTime", completed)] {
        if let Some(time) = time {
            fields.insert(name, time);
        }
    }
    status
}

/// The numbers in `1,3-5`.
fn read_indexes(text: &str) -> BTreeSet<i64> {
    let mut indexes = BTreeSet::new();
    for part in text.split(',').filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        if let (Ok(first), Ok(last)) = (first.parse::<i64>(), last.parse::<i64>()) {
            indexes.extend(first..=last);
        }
    }
    indexes
}

/// Numbers as `1,3-5`.
fn write_indexes(indexes: &BTreeSet<i64>) -> String {
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for index in indexes {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == *index => *last = *index,
            _ => ranges.push((*index, *index)),
        }
    }
    let texts = ranges.into_iter().map(|(first, last)| match last - first {
        0 => first.to_string(),
        1 => format!("{first},{last}"),
        _ => format!("{first}-{last}"),
    });
    texts.collect::<Vec<_>>().join(",")
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

    fn planned(job: &str, pods: &[Value]) -> Plan {
        let job = read(job);
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        plan(&job, pods, &Tally::of(&job, pods), None, now)
    }

    fn reasons(plan: &Plan) -> Vec<String> {
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
        for text in ["", "1", "1,3-5", "0,1"] {
            assert_eq!(write_indexes(&read_indexes(text)), text);
        }
        let indexed = new_pod(
            &read("metadata: {name: j, namespace: d}\nspec: {template: {spec: {containers: [{name: c}]}}}"),
            object! {},
            Some(3),
        );
        assert_eq!(indexed.str_at(&["spec", "hostname"]), "j-3");
        assert_eq!(indexed.items_at(&["spec", "containers"])[0].items_at(&["env"]).len(), 1);
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
        let tally = Tally::of(&job, &[]);
        let pause = |failures| plan(&job, &[], &tally, Some((failures, now)), now).again.map(|pause| pause.as_secs());
        assert_eq!([1, 2, 3, 20].map(pause), [Some(10), Some(20), Some(40), Some(600)]);
    }
}
