//! A control plane's clock is set, moved and stopped, and what goes by it follows.

use std::time::Duration;

use serde_json::{Value, json};

use super::server::{MAPS, Server};

const CLOCK: &str = "/skiff/v1/clock";
const NEW_YEAR: &str = "2031-01-01T00:00:00Z";

#[tokio::test]
async fn what_is_written_has_the_time_of_the_clock() {
    let server = Server::start(&[]).await;
    let copy = server.fork(&server.main).await;
    copy.set_clock(json!({ "time": NEW_YEAR, "frozen": true })).await;
    let made = copy.put_map("a", "1").await;
    assert_eq!(made["metadata"]["creationTimestamp"], NEW_YEAR);
    assert_eq!(made["metadata"]["managedFields"][0]["time"], NEW_YEAR);
    let moved = copy.set_clock(json!({ "advance": "1h30m" })).await;
    assert_eq!((&moved["time"], &moved["frozen"]), (&json!("2031-01-01T01:30:00Z"), &json!(true)));
    let again = copy.put_map("a", "2").await;
    assert_eq!(again["metadata"]["managedFields"][0]["time"], "2031-01-01T01:30:00Z");
    // A copy goes on from where the clock stands, and others are not moved.
    let again = server.fork(&copy).await;
    assert_eq!(again.get(CLOCK).await["time"], "2031-01-01T01:30:00Z");
    assert_eq!(server.main.get(CLOCK).await["offset"], "0s");
    let reset = copy.set_clock(json!({})).await;
    assert_eq!((&reset["offset"], &reset["frozen"]), (&json!("0s"), &json!(false)));
}

#[tokio::test]
async fn what_is_not_a_time_is_refused_and_changes_nothing() {
    let server = Server::start(&[]).await;
    server.main.set_clock(json!({ "time": NEW_YEAR, "frozen": true })).await;
    for (fields, says) in [
        (json!({ "time": "yesterday" }), "`time`"),
        (json!({ "time": "1969-01-01T00:00:00Z" }), "from 1970"),
        (json!({ "advance": "1" }), "missing unit"),
        (json!({ "advance": 5 }), "not a string"),
        (json!({ "frozen": "no" }), "`frozen`"),
        (json!({ "time": NEW_YEAR, "offset": "1h" }), "both"),
        (json!({ "speed": 2 }), "unknown field"),
    ] {
        let (code, status) = server.main.call("PUT", CLOCK, Some(fields)).await;
        let message = status["message"].as_str().unwrap_or_default();
        assert!(code == 400 && message.contains(says), "{status}");
    }
    assert_eq!(server.main.get(CLOCK).await["time"], NEW_YEAR);
    assert_eq!(server.main.call("POST", CLOCK, Some(json!({}))).await.0, 405);
}

#[tokio::test]
async fn a_token_ends_by_the_clock() {
    let server = Server::start(&[]).await;
    let account = "/api/v1/namespaces/default/serviceaccounts/default";
    server.main.until(account, 200).await;
    let made = server.main.post(&format!("{account}/token"), json!({ "spec": { "expirationSeconds": 600 } })).await;
    let bearer = server.main.asked_with(made["status"]["token"].as_str().expect("it is issued")).await;
    assert_eq!(bearer.call("GET", "/version", None).await.0, 200);
    server.main.set_clock(json!({ "advance": "12m" })).await;
    assert_eq!(bearer.call("GET", "/version", None).await.0, 401);
    server.main.set_clock(json!({ "advance": "-12m" })).await;
    assert_eq!(bearer.call("GET", "/version", None).await.0, 200);
}

#[tokio::test]
async fn events_go_when_the_clock_says_so() {
    let events = "/api/v1/namespaces/default/events";
    for store in ["memory", "sqlite"] {
        let server = Server::start(&["--store", store]).await;
        let about = json!({ "kind": "ConfigMap", "name": "a", "namespace": "default" });
        server.main.post(events, json!({ "metadata": { "name": "e" }, "involvedObject": about })).await;
        server.main.set_clock(json!({ "advance": "59m" })).await;
        assert!(server.main.has(&format!("{events}/e")).await, "{store}");
        server.main.set_clock(json!({ "advance": "2m" })).await;
        server.main.until(&format!("{events}/e"), 404).await;
    }
}

fn job_template() -> Value {
    let container = json!({ "name": "c", "image": "i" });
    json!({ "spec": { "template": { "spec": { "restartPolicy": "Never", "containers": [container] } } } })
}

#[tokio::test]
async fn jobs_are_made_when_the_clock_says_so_also_where_it_stands() {
    let server = Server::start(&["--controllers", "*,cronjob"]).await;
    server.main.set_clock(json!({ "time": "2031-01-01T00:00:10Z", "frozen": true })).await;
    let spec = json!({ "schedule": "0 0 * * *", "jobTemplate": job_template() });
    let path = "/apis/batch/v1/namespaces/default";
    server.main.post(&format!("{path}/cronjobs"), json!({ "metadata": { "name": "daily" }, "spec": spec })).await;
    server.main.set_clock(json!({ "advance": "24h" })).await;
    let mut watch = server.main.watch(&format!("{path}/jobs?watch=1")).await;
    let (kind, name) = watch.next().await.expect("it goes on");
    assert!(kind == "ADDED" && name.starts_with("daily-"), "{kind} {name}");
    let job = server.main.get(&format!("{path}/jobs/{name}")).await;
    assert_eq!(job["metadata"]["creationTimestamp"], "2031-01-02T00:00:10Z");
}

#[tokio::test]
async fn the_clock_of_a_plane_drives_what_its_controllers_wait_for() {
    let server = Server::start(&[]).await;
    let own = server.create(json!({ "profile": "cluster", "simulateNodes": "1" })).await;
    own.set_clock(json!({ "time": "2031-01-01T00:00:10Z", "frozen": true })).await;
    let (batch, pods) = ("/apis/batch/v1/namespaces/default", "/api/v1/namespaces/default/pods");
    let spec = json!({ "schedule": "0 0 * * *", "jobTemplate": job_template() });
    own.post(&format!("{batch}/cronjobs"), json!({ "metadata": { "name": "daily" }, "spec": spec })).await;
    // A container that fails, and then waits to be started again.
    let fails = "pod-container-running-failed.stage.kwok.x-k8s.io";
    let annotations = json!({ fails: "true", format!("{fails}/delay"): "1h" });
    let metadata = json!({ "name": "p", "annotations": annotations });
    let spec = json!({ "containers": [{ "name": "c", "image": "i" }] });
    own.post(pods, json!({ "metadata": metadata, "spec": spec })).await;
    let restarts = async |count: i64| {
        for _ in 0..600 {
            let pod = own.get(&format!("{pods}/p")).await;
            if pod["status"]["containerStatuses"][0]["restartCount"] == count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
        panic!("it has not been started {count} times again: {}", own.get(&format!("{pods}/p")).await);
    };
    restarts(0).await;
    own.set_clock(json!({ "advance": "2h" })).await;
    restarts(1).await;
    own.set_clock(json!({ "advance": "22h" })).await;
    let mut watch = own.watch(&format!("{batch}/jobs?watch=1")).await;
    let (kind, name) = watch.next().await.expect("it goes on");
    assert!(kind == "ADDED" && name.starts_with("daily-"), "{kind} {name}");
    // That of the main control plane has not moved.
    let now = server.main.get(CLOCK).await["time"].as_str().expect("it has one").to_owned();
    assert!(now.as_str() < "2031", "{now}");
}

#[tokio::test]
async fn finished_jobs_go_when_the_clock_says_so() {
    let server = Server::start(&["--controllers", "*,ttl-after-finished"]).await;
    let jobs = "/apis/batch/v1/namespaces/default/jobs";
    let mut spec = job_template()["spec"].clone();
    spec["ttlSecondsAfterFinished"] = json!(3600);
    server.main.post(jobs, json!({ "metadata": { "name": "j" }, "spec": spec })).await;
    let now = server.main.get(CLOCK).await["time"].as_str().expect("it has one")[..19].to_owned() + "Z";
    let condition = |kind: &str| json!({ "type": kind, "status": "True", "lastTransitionTime": now });
    let status = json!({
        "startTime": now, "completionTime": now, "succeeded": 1,
        "conditions": [condition("SuccessCriteriaMet"), condition("Complete")],
    });
    let (code, answer) =
        server.main.call("PATCH", &format!("{jobs}/j/status"), Some(json!({ "status": status }))).await;
    assert_eq!(code, 200, "{answer}");
    server.main.set_clock(json!({ "advance": "30m" })).await;
    assert!(server.main.has(&format!("{jobs}/j")).await);
    server.main.set_clock(json!({ "advance": "31m" })).await;
    server.main.until(&format!("{jobs}/j"), 404).await;
}

#[tokio::test]
async fn ages_go_by_the_clock() {
    let server = Server::start(&[]).await;
    server.main.set_clock(json!({ "time": NEW_YEAR, "frozen": true })).await;
    server.main.put_map("a", "1").await;
    for (advance, age) in [("90s", "90s"), ("3h", "3h1m"), ("72h", "3d3h")] {
        server.main.set_clock(json!({ "advance": advance })).await;
        assert_eq!(server.main.age(MAPS, "a").await, age);
    }
}

/// The server keeps a lease as its client writes it: nothing ends by itself, and nothing is renewed.
#[tokio::test]
async fn a_lease_is_made_at_the_time_of_the_clock_and_keeps_the_times_of_its_holder() {
    let server = Server::start(&[]).await;
    let leases = "/apis/coordination.k8s.io/v1/namespaces/default/leases";
    server.main.set_clock(json!({ "time": NEW_YEAR, "frozen": true })).await;
    let held =
        json!({ "holderIdentity": "one", "leaseDurationSeconds": 15, "renewTime": "2031-01-01T00:00:00.000000Z" });
    let made = server.main.post(leases, json!({ "metadata": { "name": "leader" }, "spec": held })).await;
    assert_eq!(made["metadata"]["creationTimestamp"], NEW_YEAR);
    server.main.set_clock(json!({ "advance": "1h" })).await;
    let later = server.main.get(&format!("{leases}/leader")).await;
    assert_eq!((&later["spec"], server.main.age(leases, "leader").await.as_str()), (&made["spec"], "60m"));
    // Who finds it expired, by the clock that the server shows, takes it over.
    let taken = json!({ "holderIdentity": "two", "renewTime": "2031-01-01T01:00:00.000000Z", "leaseTransitions": 1 });
    let (code, taken) = server.main.call("PATCH", &format!("{leases}/leader"), Some(json!({ "spec": taken }))).await;
    assert_eq!((code, &taken["spec"]["holderIdentity"]), (200, &json!("two")), "{taken}");
    assert_eq!(taken["metadata"]["managedFields"][0]["time"], "2031-01-01T01:00:00Z");
}
