//! The plan for a job, based on the tally of its pods: pods to create and to delete, its status, its end.

use std::time::Duration;

use jiff::Timestamp;

use super::super::client::{is_going, left, sooner, written};
use super::super::conditions::{self, DesiredCondition};
use super::super::index_set::IndexSet;
use super::super::pods;
use super::tally::{End, Tally, completions, finished_at, index_failures, index_of, is_indexed, outcome};
use crate::object;
use crate::value::Value;

/// The pause after the first failure in a row, and the longest pause.
const BACK_OFF_FIRST_S: i64 = 10;
const BACK_OFF_MAX_S: i64 = 600;
/// How many pods are created at a time.
const BURST_MAX: i64 = 500;

/// The plan for a job.
#[derive(Default)]
pub(super) struct JobPlan {
    pub(super) status: Value,
    pub(super) delete: Vec<Value>,
    /// The pods to create, with their indexes.
    pub(super) create: Vec<Option<i64>>,
    pub(super) events: Vec<(&'static str, &'static str, String)>,
    pub(super) again: Option<Duration>,
    /// Whether the job comes to its end.
    pub(super) is_end: bool,
    /// Whether the pods that are deleted count as failed: those of a job that fails, not those that it no longer needs.
    pub(super) counts_deleted: bool,
}

impl JobPlan {
    /// Sets the conditions for the end of a job, which is a failure if its deleted pods count as failed; once it
    /// `is_over`, also that it has ended.
    pub(super) fn end(
        &mut self,
        conditions: &mut Vec<Value>,
        (reason, message): &(String, String),
        is_over: bool,
        now: Timestamp,
    ) {
        let (target, done) =
            if self.counts_deleted { ("FailureTarget", "Failed") } else { ("SuccessCriteriaMet", "Complete") };
        for type_ in [Some(target), is_over.then_some(done)].into_iter().flatten() {
            set_condition(conditions, &DesiredCondition { type_, status: "True", reason, message }, now);
        }
        if is_over && self.counts_deleted {
            self.events.push(("Warning", reason_of(reason), message.clone()));
        } else if is_over {
            self.events.push(("Normal", "Completed", "Job completed".to_owned()));
        }
    }

    /// The counts of pods after the plan, if `active` were active before it.
    pub(super) fn counts(&self, tally: &Tally<'_>, active: usize) -> Counts {
        let deleted = self.delete.len();
        let active = active.saturating_sub(deleted) as i64;
        let ready = if deleted > 0 { tally.ready.min(active) } else { tally.ready };
        Counts { active: active + self.create.len() as i64, ready, terminating: tally.terminating + deleted as i64 }
    }

    /// The status that lists the pods that are about to be counted.
    pub(super) fn named(&self, job: &Value, tally: &Tally<'_>) -> Value {
        let mut status = job.get("status").cloned().unwrap_or_else(|| object! {});
        let uids = |wanted: End| -> Vec<Value> {
            let ended = tally.to_count.iter().filter(|(_, end)| *end == wanted);
            ended.map(|(pod, _)| Value::from(pod.str_at(&["metadata", "uid"]))).collect()
        };
        let mut named = object! {};
        // Completed indexes are recorded themselves.
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
pub(super) fn plan(
    job: &Value,
    pods: &[Value],
    tally: &Tally<'_>,
    since: Option<(i64, Timestamp)>,
    now: Timestamp,
) -> JobPlan {
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
        // The clock may have been set back since the start.
        let completed = time_of(started.as_ref()).map_or(now, |started| started.max(now));
        completed_at = (is_over && failure.is_none()).then(|| written(completed));
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

/// Sets a condition; for Jobs it also has a probe time, which is that of its last change.
pub(super) fn set_condition(conditions: &mut Vec<Value>, said: &DesiredCondition<'_>, now: Timestamp) {
    conditions::set(conditions, said, &written(now));
    let set = conditions.iter_mut().find(|condition| condition.str_at(&["type"]) == said.type_);
    if let Some(condition) = set {
        let changed = condition.get("lastTransitionTime").cloned().unwrap_or_default();
        condition.make_object().insert("lastProbeTime", changed);
    }
}

pub(super) fn suspend(
    conditions: &mut Vec<Value>,
    (status, reason, message): (&str, &str, &str),
    plan: &mut JobPlan,
    now: Timestamp,
) {
    set_condition(conditions, &DesiredCondition { type_: "Suspended", status, reason, message }, now);
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

/// A time as it is written in a status.
fn time_of(field: Option<&Value>) -> Option<Timestamp> {
    field?.as_str()?.parse().ok()
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
    let started = time_of(started);
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

/// Whether a job has reached its goal.
pub(super) fn has_succeeded(job: &Value, tally: &Tally<'_>) -> bool {
    match job.at(&["spec", "completions"]).and_then(Value::as_i64) {
        Some(completions) => tally.succeeded >= completions,
        // One success means that nothing is left to do.
        None => tally.succeeded > 0 && tally.active.is_empty(),
    }
}

/// Creates pods, or deletes surplus ones.
pub(super) fn manage(
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

/// The pause after a number of failures in a row.
fn back_off_s(failures: i64) -> i64 {
    BACK_OFF_FIRST_S.saturating_mul(1 << failures.saturating_sub(1).clamp(0, 30)).min(BACK_OFF_MAX_S)
}

/// How long it takes until another pod replaces a failed one of an index.
fn index_pause(pod: &Value, now: Timestamp) -> Option<Duration> {
    let (counted, ignored) = index_failures(pod);
    left(finished_at(pod)?, back_off_s(counted.saturating_add(ignored).saturating_add(1)), now)
}

pub(super) struct Counts {
    pub(super) active: i64,
    pub(super) ready: i64,
    pub(super) terminating: i64,
}

pub(super) fn status(
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
