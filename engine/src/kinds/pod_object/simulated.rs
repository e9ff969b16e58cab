//! Pods on simulated nodes: their made-up logs, and why nothing in them can be reached.
//!
//! Errors of logs: the kubelet's, Kubernetes 1.37 (`validateContainerLogStatus` of `pkg/kubelet`).

use jiff::{SignedDuration, Timestamp};

use super::annotation;
use super::connect::LogOptions;
use crate::meta::{Status, time};
use crate::value::Value;

/// The annotation of simulated nodes, as in kwok.
pub const NODE: &str = "kwok.x-k8s.io/node";
/// The prefix of pod annotations with the log of a container, which is named after the slash.
const LOGS: &str = "logs.skiff.kubeskiff.dev";

/// Whether a node is simulated.
pub fn is_simulated(node: &Value) -> bool {
    annotation(node, NODE) == Some("fake")
}

/// The log of `container` by its annotation: the same for each run, written all at once at its start.
///
/// # Errors
///
/// 400 for a container that has not run, or that has no previous run.
pub fn log(pod: &Value, container: &str, options: &LogOptions, now: Timestamp) -> Result<String, Status> {
    let began = began(pod, container, options.previous)?;
    let since = options.since_seconds.and_then(|seconds| now.checked_sub(SignedDuration::from_secs(seconds)).ok());
    let text = annotation(pod, &format!("{LOGS}/{container}")).unwrap_or_default();
    let is_old = since.or(options.since).is_some_and(|since| began.is_none_or(|began| began < since));
    if text.is_empty() || is_old {
        return Ok(String::new());
    }
    let lines: Vec<&str> = text.lines().collect();
    let tail = options.tail_lines.and_then(|count| usize::try_from(count).ok()).unwrap_or(lines.len());
    let stamp = match began {
        Some(began) if options.timestamps => format!("{} ", time::format_seconds(began)),
        _ => String::new(),
    };
    let shown = &lines[lines.len().saturating_sub(tail)..];
    let mut text: String = shown.iter().map(|line| format!("{stamp}{line}\n")).collect();
    if let Some(limit) = options.limit_bytes.and_then(|limit| usize::try_from(limit).ok()) {
        text.truncate(text.floor_char_boundary(limit));
    }
    Ok(text)
}

/// When the container whose log is requested started.
fn began(pod: &Value, container: &str, previous: bool) -> Result<Option<Timestamp>, Status> {
    let name = pod.str_at(&["metadata", "name"]);
    let lists = ["initContainerStatuses", "containerStatuses", "ephemeralContainerStatuses"];
    let mut statuses = lists.iter().flat_map(|list| pod.items_at(&["status", list]));
    let refused = |why: String| Err(Status::bad_request(&why));
    let Some(status) = statuses.find(|status| status.str_at(&["name"]) == container) else {
        return refused(format!("container \"{container}\" in pod \"{name}\" is not available"));
    };
    let is_there = |path: &[&str]| status.at(path).is_some_and(|state| !state.is_null());
    let started = |path: &[&str]| Ok(status.str_at(path).parse().ok());
    if previous {
        if !is_there(&["lastState", "terminated"]) {
            return refused(format!("previous terminated container \"{container}\" in pod \"{name}\" not found"));
        }
        return started(&["lastState", "terminated", "startedAt"]);
    }
    for state in ["running", "terminated"] {
        if is_there(&["state", state]) {
            return started(&["state", state, "startedAt"]);
        }
    }
    if is_there(&["lastState", "terminated"]) {
        return started(&["lastState", "terminated", "startedAt"]);
    }
    let reason = status.str_at(&["state", "waiting", "reason"]);
    refused(format!("container \"{container}\" in pod \"{name}\" is waiting to start: {reason}"))
}

/// Why `part` of a pod, which a kubelet would answer, is not answered.
pub fn unreachable(pod: &Value, part: &str) -> Status {
    let (name, node) = (pod.str_at(&["metadata", "name"]), pod.str_at(&["spec", "nodeName"]));
    let what = match part {
        "exec" => "no command can be run in it",
        "attach" => "there is no process to attach to",
        _ => "no port of it can be reached",
    };
    Status::bad_request(&format!("pod {name} is on the simulated node {node}, where no container runs: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn check(state: &str, options: &LogOptions, expected: Result<&str, &str>) {
        let pod = format!(
            "metadata: {{name: p, annotations: {{'logs.skiff.kubeskiff.dev/c': \"one\\ntwo\\n\"}}}}\n\
             status: {{containerStatuses: [{{name: c, {state}}}]}}"
        );
        let pod = yaml::decode(pod.as_bytes()).expect("YAML");
        let now = "2026-01-01T00:01:00Z".parse().expect("a time");
        let log = log(&pod, "c", options, now).map_err(|status| status.message);
        assert_eq!(log.as_deref().map_err(String::as_str), expected, "{state}");
    }

    const RUNS: &str = "state: {running: {startedAt: '2026-01-01T00:00:00Z'}}";

    #[test]
    fn a_container_has_written_what_its_annotation_says() {
        let all = LogOptions::default();
        check(RUNS, &all, Ok("one\ntwo\n"));
        check(
            RUNS,
            &LogOptions { tail_lines: Some(1), timestamps: true, ..all.clone() },
            Ok("2026-01-01T00:00:00Z two\n"),
        );
        check(RUNS, &LogOptions { limit_bytes: Some(5), ..all.clone() }, Ok("one\nt"));
        check(RUNS, &LogOptions { since_seconds: Some(30), ..all.clone() }, Ok(""));
        check(RUNS, &LogOptions { since_seconds: Some(90), ..all }, Ok("one\ntwo\n"));
    }

    #[test]
    fn one_that_has_not_run_has_written_nothing() {
        let (all, previous) = (LogOptions::default(), LogOptions { previous: true, ..LogOptions::default() });
        check(RUNS, &previous, Err("previous terminated container \"c\" in pod \"p\" not found"));
        let waits = "state: {waiting: {reason: ContainerCreating}}";
        check(waits, &all, Err("container \"c\" in pod \"p\" is waiting to start: ContainerCreating"));
        let again = "state: {waiting: {reason: CrashLoopBackOff}}, lastState: {terminated: {exitCode: 1}}";
        check(again, &all, Ok("one\ntwo\n"));
        check(again, &previous, Ok("one\ntwo\n"));
    }
}
