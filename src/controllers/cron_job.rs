//! CronJobs: a Job at each moment that their schedule names.
//!
//! Source: `pkg/controller/cronjob` of Kubernetes 1.37.

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;

use super::client::{Client, JOBS, Kind, is_going, place, time_at, without_template, written};
use super::conditions;
use super::family::Family;
use super::queue::Progress;
use super::reconcile::Reconciler;
use super::schedule::Schedule;
use super::workload::{ControllerContext, Running};
use crate::meta::{Status, time_zone};
use crate::object;
use crate::store::{ChangeEvent, Collection};
use crate::value::Value;

const CRON_JOBS: Kind = Kind("batch", "cronjobs");
const TYPE: (&str, &str) = ("batch/v1", "CronJob");
const SCHEDULED: &str = "batch.kubernetes.io/cronjob-scheduled-timestamp";
/// More missed moments than this are worth a warning.
const MISSED_MANY: i64 = 100;

struct CronJobs {
    client: Client,
    family: Family,
}

impl Reconciler for CronJobs {
    const TASK: &str = "starting jobs by schedule";

    fn collections(&self) -> Vec<Collection> {
        vec![CRON_JOBS.collection(), JOBS.collection()]
    }

    fn note(&self, change: &ChangeEvent) -> Vec<String> {
        self.family.note(change)
    }

    fn forget(&self) {
        self.family.forget();
    }

    async fn reconcile(&self, key: &str) -> Result<Progress, Status> {
        let Some(cron) = self.client.get(CRON_JOBS, key).await? else { return Ok(Progress::Done) };
        if is_going(&cron) {
            return Ok(Progress::Done);
        }
        let uid = cron.str_at(&["metadata", "uid"]);
        let mut jobs = self.family.owned(&self.client, &cron).await?;
        // What was noted may be behind.
        jobs.retain(|job| job.items_at(&["metadata", "ownerReferences"]).iter().any(|it| it.str_at(&["uid"]) == uid));
        let now = self.client.now();
        // This comes first: no event is sent about the end of Jobs that are being deleted.
        let too_old = too_old(&cron, &jobs);
        for job in &too_old {
            self.delete_old(&cron, job).await;
        }
        let mut status = self.settle(&cron, &jobs, &too_old);
        let schedule =
            Schedule::read(cron.str_at(&["spec", "schedule"]), cron.at(&["spec", "timeZone"]).and_then(Value::as_str));
        let is_suspended = cron.at(&["spec", "suspend"]).and_then(Value::as_bool) == Some(true);
        let Some(schedule) = schedule.filter(|_| !is_suspended) else {
            self.client.update_status(CRON_JOBS, &cron, status).await?;
            return Ok(Progress::Done);
        };
        let due = due(&cron, &schedule, now);
        if due.missed > MISSED_MANY {
            let message = format!(
                "too many missed start times: {}. Set or decrease .spec.startingDeadlineSeconds or check clock skew",
                due.missed
            );
            self.client.tell_warning(&cron, "TooManyMissedTimes", message);
        }
        if let Some(at) = due.at {
            self.begin(&cron, at, due.is_too_late, &jobs, &mut status).await?;
        }
        self.client.update_status(CRON_JOBS, &cron, status).await?;
        Ok(due.next.map_or(Progress::Done, Progress::After))
    }
}

impl CronJobs {
    /// Deletes a Job that is too old to be kept. One that can't be deleted is only told of, and tried again with the
    /// next look: the others, and the schedule, don't wait for it.
    async fn delete_old(&self, cron: &Value, job: &Value) {
        match self.client.delete(JOBS, job, None).await {
            Ok(()) => {
                let message = format!("Deleted job {}", job.str_at(&["metadata", "name"]));
                self.client.tell_normal(cron, "SuccessfulDelete", message);
            }
            Err(status) => {
                self.client.tell_warning(cron, "FailedDelete", format!("Deleted job: {}", status.message));
            }
        }
    }

    /// The status without the jobs that have ended; events report these unless they are `gone`.
    fn settle(&self, cron: &Value, jobs: &[Value], gone: &[&Value]) -> Value {
        let mut status = cron.get("status").filter(|status| !status.is_null()).cloned().unwrap_or_else(|| object! {});
        let mut active = Vec::new();
        for reference in cron.items_at(&["status", "active"]) {
            let uid = reference.str_at(&["uid"]);
            let Some(job) = jobs.iter().find(|job| job.str_at(&["metadata", "uid"]) == uid) else {
                let message = format!("Active job went missing: {}", reference.str_at(&["name"]));
                self.client.tell_normal(cron, "MissingJob", message);
                continue;
            };
            if !conditions::is_finished(job) {
                active.push(reference.clone());
                continue;
            }
            if gone.iter().any(|job| job.str_at(&["metadata", "uid"]) == uid) {
                continue;
            }
            let has_succeeded = conditions::holds(conditions::of(job), "Complete");
            let end = if has_succeeded { "Complete" } else { "Failed" };
            let message = format!("Saw completed job: {}, condition: {end}", job.str_at(&["metadata", "name"]));
            self.client.tell_normal(cron, "SawCompletedJob", message);
        }
        // Only an event reports it: if it was made for a moment, it is added when that moment is handled again.
        for job in jobs.iter().filter(|job| !conditions::is_finished(job)) {
            let uid = job.str_at(&["metadata", "uid"]);
            if !active.iter().any(|known| known.str_at(&["uid"]) == uid) {
                let name = job.str_at(&["metadata", "name"]);
                let message = format!("Saw a job that the controller did not create or forgot: {name}");
                self.client.tell_warning(cron, "UnexpectedJob", message);
            }
        }
        if let Some(at) = last_success(&status, jobs) {
            status.make_object().insert("lastSuccessfulTime", at);
        }
        put_active(&mut status, active);
        status
    }

    /// Starts the Job of a moment, if other running Jobs allow it.
    async fn begin(
        &self,
        cron: &Value,
        at: Timestamp,
        is_too_late: bool,
        jobs: &[Value],
        status: &mut Value,
    ) -> Result<(), Status> {
        if is_too_late {
            let message =
                format!("Missed scheduled time to start a job: {}", at.strftime("%a, %d %b %Y %H:%M:%S +0000"));
            self.client.tell_warning(cron, "MissSchedule", message);
            return Ok(());
        }
        let name = format!("{}-{}", cron.str_at(&["metadata", "name"]), at.as_second() / 60);
        let mut active = status.items_at(&["active"]).to_vec();
        let made = jobs.iter().find(|job| job.str_at(&["metadata", "name"]) == name);
        if made.is_some() || time_at(status, &["lastScheduleTime"]) == Some(at) {
            // It was created but not recorded: its creator did not get further.
            let is_noted = |job: &Value| active.iter().any(|known| known.get("uid") == job.at(&["metadata", "uid"]));
            if let Some(job) = made.filter(|job| !conditions::is_finished(job) && !is_noted(job)) {
                active.push(reference_to(job));
                put_active(status, active);
            }
            status.make_object().insert("lastScheduleTime", written(at));
            return Ok(());
        }
        match cron.str_at(&["spec", "concurrencyPolicy"]) {
            "Forbid" if !active.is_empty() => {
                let message = "Not starting job because prior execution is running and concurrency policy is Forbid";
                self.client.tell_normal(cron, "JobAlreadyActive", message.to_owned());
                return Ok(());
            }
            "Replace" => {
                self.delete_active(cron, jobs, &active).await?;
                active.clear();
            }
            _ => {}
        }
        let job = new_job(cron, &name, at, self.family.reference(cron));
        match self.client.create(JOBS, &job).await {
            Ok(made) => {
                self.family.add(cron, &made);
                self.client.tell_normal(cron, "SuccessfulCreate", format!("Created job {name}"));
                active.push(reference_to(&made));
            }
            Err(refused) if refused.is_already_exists() => {}
            Err(refused) => {
                let message = format!("Error creating job: {}", refused.message);
                self.client.tell_warning(cron, "FailedCreate", message);
                return Err(refused);
            }
        }
        put_active(status, active);
        status.make_object().insert("lastScheduleTime", written(at));
        Ok(())
    }

    /// Deletes the Jobs that are known to run.
    async fn delete_active(&self, cron: &Value, jobs: &[Value], active: &[Value]) -> Result<(), Status> {
        for reference in active {
            let running = jobs.iter().find(|job| job.str_at(&["metadata", "uid"]) == reference.str_at(&["uid"]));
            let Some(running) = running else { continue };
            self.client.delete(JOBS, running, None).await?;
            let message = format!("Deleted job {}", running.str_at(&["metadata", "name"]));
            self.client.tell_normal(cron, "SuccessfulDelete", message);
        }
        Ok(())
    }
}

/// When the last Job ended well, by its status or by one that is there; `None` if none did.
fn last_success(status: &Value, jobs: &[Value]) -> Option<Value> {
    let succeeded = jobs.iter().filter(|job| conditions::holds(conditions::of(job), "Complete"));
    let times = succeeded.filter_map(|job| time_at(job, &["status", "completionTime"]));
    times.chain(time_at(status, &["lastSuccessfulTime"])).max().map(written)
}

fn put_active(status: &mut Value, active: Vec<Value>) {
    if active.is_empty() {
        _ = status.make_object().remove("active");
    } else {
        _ = status.make_object().insert("active", Value::Array(active));
    }
}

fn reference_to(job: &Value) -> Value {
    let (namespace, name) = place(job);
    object! {
        "apiVersion" => "batch/v1",
        "kind" => "Job",
        "name" => name,
        "namespace" => namespace,
        "uid" => job.str_at(&["metadata", "uid"]),
        "resourceVersion" => job.str_at(&["metadata", "resourceVersion"]),
    }
}

fn new_job(cron: &Value, name: &str, at: Timestamp, reference: Value) -> Value {
    let template =
        |field: &str| cron.at(&["spec", "jobTemplate", "metadata", field]).filter(|it| !it.is_null()).cloned();
    let zone = cron.str_at(&["spec", "timeZone"]);
    let shown = match time_zone::find(zone) {
        Some(zone) if zone.iana_name().is_some_and(|name| name != "UTC") => {
            at.to_zoned(zone).strftime("%Y-%m-%dT%H:%M:%S%:z").to_string()
        }
        _ => at.to_string(),
    };
    let mut annotations = template("annotations").unwrap_or_else(|| object! {});
    annotations.make_object().insert(SCHEDULED, Value::String(shown));
    object! {
        "apiVersion" => "batch/v1",
        "kind" => "Job",
        "metadata" => object! {
            "name" => name,
            "namespace" => cron.str_at(&["metadata", "namespace"]),
            "labels" => template("labels").unwrap_or_else(|| object! {}),
            "annotations" => annotations,
            "creationTimestamp" => written(at),
            "ownerReferences" => vec![reference],
        },
        "spec" => cron.at(&["spec", "jobTemplate", "spec"]).cloned().unwrap_or_default(),
    }
}

/// The current state of a schedule.
#[derive(Debug, PartialEq)]
struct Due {
    /// The last moment that has passed without its Job.
    at: Option<Timestamp>,
    /// How many have passed without their Jobs, if all are as far apart as the first two.
    missed: i64,
    /// Whether the Job should have started earlier.
    is_too_late: bool,
    next: Option<Duration>,
}

/// What of a schedule has passed since the last Job, and when it names the next moment.
fn due(cron: &Value, schedule: &Schedule, now: Timestamp) -> Due {
    let made = time_at(cron, &["metadata", "creationTimestamp"]).unwrap_or(now);
    let mut since = time_at(cron, &["status", "lastScheduleTime"]).unwrap_or(made);
    let deadline = cron.at(&["spec", "startingDeadlineSeconds"]).and_then(Value::as_i64);
    let before = |seconds: i64| now.checked_sub(jiff::SignedDuration::from_secs(seconds)).unwrap_or(now);
    if let Some(earliest) = deadline.map(before) {
        since = since.max(earliest);
    }
    let at = schedule.last(since, now);
    let first = schedule.next(since).filter(|_| at.is_some());
    let missed = first.map_or(0, |first| missed_from(first, schedule, now));
    let next = schedule.next(at.unwrap_or(since));
    let is_too_late = at.zip(deadline).is_some_and(|(at, seconds)| at < before(seconds));
    let left = next.map(|next| next.duration_since(now).unsigned_abs());
    Due { at, missed, is_too_late, next: left }
}

/// How many moments have passed since the `first`, including it.
fn missed_from(first: Timestamp, schedule: &Schedule, now: Timestamp) -> i64 {
    let interval_s = schedule.next(first).map_or(i64::MAX, |second| second.duration_since(first).as_secs());
    now.duration_since(first).as_secs() / interval_s.max(1) + 1
}

/// The oldest finished jobs beyond the history limits.
fn too_old<'j>(cron: &Value, jobs: &'j [Value]) -> Vec<&'j Value> {
    let mut surplus = Vec::new();
    for (condition, field, default) in
        [("Complete", "successfulJobsHistoryLimit", 3), ("Failed", "failedJobsHistoryLimit", 1)]
    {
        let limit = match cron.at(&["spec", field]) {
            Some(Value::Int(limit)) => *limit,
            _ => default,
        };
        let mut ended: Vec<&Value> =
            jobs.iter().filter(|job| conditions::holds(conditions::of(job), condition) && !is_going(job)).collect();
        ended.sort_by_key(|job| (job.str_at(&["status", "startTime"]), job.str_at(&["metadata", "name"])));
        let count = ended.len().saturating_sub(usize::try_from(limit).unwrap_or_default());
        surplus.extend(ended.into_iter().take(count));
    }
    surplus
}

/// Starts it.
pub(super) fn start(context: &ControllerContext) -> Running {
    let family = Family::new(CRON_JOBS, TYPE, JOBS, without_template);
    let cron_jobs = CronJobs { client: context.client("cronjob-controller"), family };
    Box::pin(super::reconcile::run(Arc::clone(&context.registry), cron_jobs))
}

#[cfg(test)]
mod tests {
    use super::super::client::int_at;
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn the_last_moment_that_was_missed_is_due() {
        let schedule = Schedule::read("*/10 * * * *", None).expect("a schedule");
        let now: Timestamp = "2026-01-01T01:05:00Z".parse().expect("a time");
        let check = |rest: &str| {
            let due =
                due(&read(&format!("metadata: {{creationTimestamp: '2026-01-01T00:00:00Z'}}\n{rest}")), &schedule, now);
            (due.at.map(|at| at.to_string()), due.missed, due.next.map(|next| next.as_secs()))
        };
        let ten = |at: &str| Some(format!("2026-01-01T{at}:00Z"));
        assert_eq!(check(""), (ten("01:00"), 6, Some(300)));
        assert_eq!(check("status: {lastScheduleTime: '2026-01-01T00:50:00Z'}"), (ten("01:00"), 1, Some(300)));
        assert_eq!(check("status: {lastScheduleTime: '2026-01-01T01:00:00Z'}"), (None, 0, Some(300)));
        // Only moments within the deadline count.
        assert_eq!(check("spec: {startingDeadlineSeconds: 60}"), (None, 0, Some(300)));
        assert_eq!(check("spec: {startingDeadlineSeconds: 900}"), (ten("01:00"), 1, Some(300)));
        // However long ago the last one was, the moments since then are not enumerated.
        let long_ago = check("status: {lastScheduleTime: '0001-01-01T00:00:00Z'}");
        assert_eq!((long_ago.0, long_ago.2), (ten("01:00"), Some(300)));
        assert!(long_ago.1 > 100_000_000);
    }

    #[test]
    fn the_last_job_that_ended_well_is_known() {
        let job = |condition: &str, at: &str| {
            read(&format!(
                "status: {{completionTime: '2026-01-01T00:0{at}:00Z', conditions: [{{type: {condition}, status: 'True'}}]}}"
            ))
        };
        let jobs = [job("Complete", "1"), job("Complete", "3"), job("Failed", "5")];
        let last = |status: &str| last_success(&read(status), &jobs).and_then(|at| at.as_str().map(str::to_owned));
        assert_eq!(last("{}").as_deref(), Some("2026-01-01T00:03:00Z"));
        let later = "2026-01-01T00:04:00Z";
        assert_eq!(last(&format!("{{lastSuccessfulTime: '{later}'}}")).as_deref(), Some(later));
        assert_eq!(last_success(&read("{}"), &jobs[2..]), None);
    }

    #[test]
    fn the_oldest_jobs_go() {
        let job = |name: &str, condition: &str| {
            read(&format!(
                "metadata: {{name: {name}}}\nstatus: {{conditions: [{{type: {condition}, status: 'True'}}]}}"
            ))
        };
        let jobs = [job("a", "Complete"), job("b", "Complete"), job("c", "Failed"), job("d", "Failed")];
        let gone = |cron: &str| -> Vec<String> {
            too_old(&read(cron), &jobs).iter().map(|job| job.str_at(&["metadata", "name"]).to_owned()).collect()
        };
        assert_eq!(gone("spec: {}"), ["c"]);
        assert_eq!(gone("spec: {successfulJobsHistoryLimit: 1, failedJobsHistoryLimit: 0}"), ["a", "c", "d"]);
    }

    #[test]
    fn a_job_is_named_after_its_minute() {
        let cron = read("metadata: {name: c, namespace: d}\nspec: {timeZone: Asia/Tokyo, jobTemplate: {spec: {x: 1}}}");
        let job = new_job(&cron, "c-1", "2026-01-01T00:00:00Z".parse().expect("a time"), object! {});
        assert_eq!(job.str_at(&["metadata", "annotations", SCHEDULED]), "2026-01-01T09:00:00+09:00");
        assert_eq!(int_at(&job, &["spec", "x"]), 1);
    }
}
