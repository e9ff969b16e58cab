//! The tally of a job's pods: how many run, have succeeded and failed, and which must still be counted.

use std::collections::{BTreeMap, HashSet};

use jiff::Timestamp;

use super::super::client::{int_at, is_going, key_of, time_at};
use super::super::index_set::IndexSet;
use super::super::{conditions, finalizers, pods};
use crate::value::Value;

pub(super) const FINALIZER: &str = "batch.kubernetes.io/job-tracking";
pub(super) const INDEX: &str = "batch.kubernetes.io/job-completion-index";
/// How often pods of an index have failed: counted failures, and ignored ones.
pub(super) const INDEX_FAILURES: &str = "batch.kubernetes.io/job-index-failure-count";
pub(super) const INDEX_IGNORED: &str = "batch.kubernetes.io/job-index-ignored-failure-count";

/// How often pods of an index have failed: counted failures, and ignored ones.
pub(super) type IndexFailures = (i64, i64);

pub(super) fn is_held(pod: &Value) -> bool {
    finalizers::has(pod, FINALIZER)
}

pub(super) fn finished_at(pod: &Value) -> Option<Timestamp> {
    let statuses = pod.items_at(&["status", "containerStatuses"]).iter();
    statuses.filter_map(|status| time_at(status, &["state", "terminated", "finishedAt"])).max()
}

pub(super) fn index_of(pod: &Value) -> Option<i64> {
    pod.str_at(&["metadata", "annotations", INDEX]).parse().ok()
}

/// How often pods of the index of a pod had failed when it was created.
pub(super) fn index_failures(pod: &Value) -> IndexFailures {
    let count = |name| pod.str_at(&["metadata", "annotations", name]).parse().unwrap_or_default();
    (count(INDEX_FAILURES), count(INDEX_IGNORED))
}

/// How often an index may fail, if failures are counted per index.
fn limit_per_index(job: &Value) -> Option<i64> {
    job.at(&["spec", "backoffLimitPerIndex"]).and_then(Value::as_i64).filter(|_| is_indexed(job))
}

/// How a pod has ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum End {
    Succeeded,
    Failed,
    /// By the job's policy, this does not count as a failure.
    Ignored,
    /// By the job's policy, its index is not tried again.
    IndexFailed,
}

/// The tally of a job's pods.
pub(super) struct Tally<'p> {
    pub(super) active: Vec<&'p Value>,
    /// Pods that have ended and still have their finalizer.
    pub(super) to_count: Vec<(&'p Value, End)>,
    /// Including those that are being counted.
    pub(super) succeeded: i64,
    pub(super) failed: i64,
    /// The indexes that are done.
    pub(super) completed: IndexSet,
    /// Those that have failed for good; `None` if failures are not counted per index.
    pub(super) failed_indexes: Option<IndexSet>,
    /// Failed pods that will be replaced, by their indexes.
    pub(super) replaced: BTreeMap<i64, &'p Value>,
    pub(super) ready: i64,
    pub(super) terminating: i64,
    /// Why the job fails by its policy.
    pub(super) policy_failure: Option<String>,
}

impl<'p> Tally<'p> {
    /// The tally of `pods`; with `is_end`, failed pods that would be replaced are counted, too.
    pub(super) fn of(job: &Value, pods: &'p [Value], is_end: bool) -> Self {
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

    /// The pods that have failed, except those that the status lists: they were known when it was written.
    pub(super) fn new_failures(&self, job: &Value) -> impl Iterator<Item = &'p Value> {
        let named = job.items_at(&["status", "uncountedTerminatedPods", "failed"]).iter();
        let named: HashSet<&str> = named.filter_map(Value::as_str).collect();
        let failed = self.to_count.iter().filter(|(_, end)| *end == End::Failed).map(|(pod, _)| *pod);
        failed.filter(move |pod| !named.contains(pod.str_at(&["metadata", "uid"])))
    }

    /// Finds the indexes that have failed, and the failed pods that will be replaced.
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

    /// How often pods of an index have failed when the next one is created.
    pub(super) fn counts_after(&self, job: &Value, index: i64) -> IndexFailures {
        let Some(pod) = self.replaced.get(&index) else { return (0, 0) };
        let (counted, ignored) = index_failures(pod);
        match outcome(job, pod).0 {
            End::Ignored => (counted, ignored.saturating_add(1)),
            _ => (counted.saturating_add(1), ignored),
        }
    }

    /// Counts the pods that the status lists and whose finalizers are gone: the last run did not get further.
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
    pub(super) fn failure(&mut self, job: &Value, pod: &Value) -> End {
        let (end, why) = outcome(job, pod);
        self.policy_failure = why.or(self.policy_failure.take());
        end
    }
}

/// What the failure of a pod counts by the job's policy, and why the job fails with it, if it does.
pub(super) fn outcome(job: &Value, pod: &Value) -> (End, Option<String>) {
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

/// The part of a pod that a rule matches, in the words of the condition.
pub(super) fn matching(rule: &Value, pod: &Value) -> Option<String> {
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

/// How many pods must succeed; 0 if that is not given.
pub(super) fn completions(job: &Value) -> i64 {
    int_at(job, &["spec", "completions"])
}

pub(super) fn is_indexed(job: &Value) -> bool {
    job.str_at(&["spec", "completionMode"]) == "Indexed"
}
