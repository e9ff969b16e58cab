//! `kubectl apply`, client side and server side, and `kubectl diff`.

use serde_json::json;

use super::{Cluster, crontab};

/// The managers of an object, then their operations.
const MANAGERS: &str = "{.metadata.managedFields[*]['manager','operation']}";

#[test]
fn apply_creates_changes_and_leaves_alone() {
    let Some(cluster) = Cluster::start() else { return };
    let mut object = crontab("nightly");
    object["spec"]["image"] = json!("cron:1");
    let apply = |object: &serde_json::Value| cluster.kubectl.pipe_ok(&object.to_string(), "apply -f -");

    assert_eq!(apply(&object), "crontab.stable.example.com/nightly created\n");
    assert_eq!(apply(&object), "crontab.stable.example.com/nightly unchanged\n");
    object["spec"]["image"] = json!("cron:2");
    assert_eq!(apply(&object), "crontab.stable.example.com/nightly configured\n");
    assert_eq!(cluster.field("nightly", "{.spec.image}"), "cron:2");
}

#[test]
fn apply_removes_what_was_applied_before_and_is_no_longer() {
    let Some(cluster) = Cluster::start() else { return };
    let mut object = crontab("nightly");
    object["spec"]["image"] = json!("cron:1");
    cluster.kubectl.pipe_ok(&object.to_string(), "apply -f -");
    cluster.kubectl.ok("scale crontab nightly --replicas=3");

    cluster.kubectl.pipe_ok(&crontab("nightly").to_string(), "apply -f -");

    assert_eq!(cluster.field("nightly", "{.spec}"), r#"{"cronSpec":"* * * * *","replicas":3}"#);
}

#[test]
fn server_side_apply_merges_list_items_by_their_key() {
    let Some(cluster) = Cluster::start() else { return };
    let apply = |ports: serde_json::Value, manager: &str| {
        let mut object = crontab("nightly");
        object["spec"]["ports"] = ports;
        cluster.kubectl.pipe_ok(&object.to_string(), &format!("apply --server-side --field-manager={manager} -f -"))
    };

    apply(json!([{"port": 80, "name": "http"}]), "a");
    let printed = apply(json!([{"port": 443, "name": "https"}]), "b");

    assert_eq!(printed, "crontab.stable.example.com/nightly serverside-applied\n");
    assert_eq!(cluster.field("nightly", "{.spec.ports[*].port}"), "80 443");
}

#[test]
fn server_side_apply_tells_conflicts_and_is_forced() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };
    let mut object = crontab("nightly");
    object["spec"]["cronSpec"] = json!("0 0 * * *");

    let conflict = cluster.kubectl.pipe(&object.to_string(), "apply --server-side --field-manager=other -f -");
    let forced = cluster
        .kubectl
        .pipe_ok(&object.to_string(), "apply --server-side --field-manager=other --force-conflicts -f -");

    assert_eq!(conflict.code, Some(1));
    let told =
        "Apply failed with 1 conflict: conflict with \"kubectl-create\" using stable.example.com/v1: .spec.cronSpec";
    assert!(conflict.stderr.contains(told), "{}", conflict.stderr);
    assert_eq!(forced, "crontab.stable.example.com/nightly serverside-applied\n");
    assert_eq!(cluster.field("nightly", "{.spec.cronSpec}"), "0 0 * * *");
}

#[test]
fn apply_of_a_definition_takes_effect_at_once() {
    let Some(cluster) = Cluster::start() else { return };
    let text = std::fs::read_to_string(super::crontabs_file()).expect("the definition is readable");
    let changed = text.replace("maximum: 10", "maximum: 20");
    let mut object = crontab("nightly");
    object["spec"]["replicas"] = json!(15);
    assert_eq!(cluster.kubectl.pipe(&object.to_string(), "apply -f -").code, Some(1));

    cluster.kubectl.pipe_ok(&changed, "apply --server-side --force-conflicts -f -");

    cluster.kubectl.pipe_ok(&object.to_string(), "apply -f -");
}

#[test]
fn diff_shows_what_apply_would_change() {
    let Some(cluster) = Cluster::start() else { return };
    let mut object = crontab("nightly");
    cluster.kubectl.pipe_ok(&object.to_string(), "apply -f -");
    assert_eq!(cluster.kubectl.pipe(&object.to_string(), "diff -f -").code, Some(0));
    object["spec"]["cronSpec"] = json!("0 0 * * *");

    let run = cluster.kubectl.pipe(&object.to_string(), "diff -f -");

    assert_eq!(run.code, Some(1), "{}", run.stderr);
    for line in ["-  cronSpec: '* * * * *'", "+  cronSpec: 0 0 * * *"] {
        assert!(run.stdout.lines().any(|printed| printed == line), "`{line}` is missing in: {}", run.stdout);
    }
    assert_eq!(cluster.field("nightly", "{.spec.cronSpec}"), "* * * * *");
}

#[test]
fn server_side_apply_takes_over_what_client_side_apply_owns() {
    let Some(cluster) = Cluster::start() else { return };
    let mut object = crontab("nightly");
    object["spec"]["image"] = json!("cron:1");
    cluster.kubectl.pipe_ok(&object.to_string(), "apply -f -");
    assert_eq!(cluster.field("nightly", MANAGERS), "kubectl-client-side-apply Update");

    object["spec"]["image"] = json!("cron:2");
    cluster.kubectl.pipe_ok(&object.to_string(), "apply --server-side -f -");

    // For the way back, kubectl keeps the annotation under a manager of its own.
    assert_eq!(cluster.field("nightly", MANAGERS), "kubectl-last-applied kubectl Apply Apply");
    assert_eq!(cluster.field("nightly", "{.spec.image}"), "cron:2");

    // What was applied on the client and no longer is goes.
    cluster.kubectl.pipe_ok(&crontab("nightly").to_string(), "apply --server-side -f -");

    assert_eq!(cluster.field("nightly", "{.spec}"), r#"{"cronSpec":"* * * * *","replicas":1}"#);
}

#[test]
fn client_side_apply_may_follow_server_side_apply() {
    let Some(cluster) = Cluster::start() else { return };
    let mut object = crontab("nightly");
    object["spec"]["image"] = json!("cron:1");
    cluster.kubectl.pipe_ok(&object.to_string(), "apply -f -");
    cluster.kubectl.pipe_ok(&object.to_string(), "apply --server-side -f -");

    // The annotation was kept up to date, so that the field is known to be applied.
    cluster.kubectl.pipe_ok(&crontab("nightly").to_string(), "apply -f -");

    assert_eq!(cluster.field("nightly", "{.spec}"), r#"{"cronSpec":"* * * * *","replicas":1}"#);
}

#[test]
fn server_side_apply_goes_by_the_manager_that_is_named() {
    let Some(cluster) = Cluster::start() else { return };
    let object = crontab("nightly").to_string();

    cluster.kubectl.pipe_ok(&object, "apply --server-side --field-manager=first -f -");
    cluster.kubectl.pipe_ok(&object, "apply --server-side --field-manager=second -f -");
    let named_and_on_the_client = cluster.kubectl.pipe_ok(&object, "apply --field-manager=third -f -");

    assert_eq!(named_and_on_the_client, "crontab.stable.example.com/nightly configured\n");
    // An entry without a time comes first: the second manager changed nothing but ownership.
    assert_eq!(cluster.field("nightly", MANAGERS), "second first third Apply Apply Update");
}

#[test]
fn server_side_diff_shows_what_server_side_apply_would_change() {
    let Some(cluster) = Cluster::start() else { return };
    let mut object = crontab("nightly");
    object["spec"]["image"] = json!("cron:1");
    cluster.kubectl.pipe_ok(&object.to_string(), "apply --server-side -f -");
    assert_eq!(cluster.kubectl.pipe(&object.to_string(), "diff --server-side -f -").code, Some(0));
    let mut changed = crontab("nightly");
    changed["spec"]["cronSpec"] = json!("0 0 * * *");

    let run = cluster.kubectl.pipe(&changed.to_string(), "diff --server-side -f -");

    assert_eq!(run.code, Some(1), "{}", run.stderr);
    for line in ["-  cronSpec: '* * * * *'", "+  cronSpec: 0 0 * * *", "-  image: cron:1"] {
        assert!(run.stdout.lines().any(|printed| printed == line), "`{line}` is missing in: {}", run.stdout);
    }
    assert_eq!(cluster.field("nightly", "{.spec.image}"), "cron:1");
}

#[test]
fn server_side_diff_meets_the_conflicts_of_apply() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };
    let mut object = crontab("nightly");
    object["spec"]["cronSpec"] = json!("0 0 * * *");

    let conflict = cluster.kubectl.pipe(&object.to_string(), "diff --server-side --field-manager=other -f -");
    let forced =
        cluster.kubectl.pipe(&object.to_string(), "diff --server-side --field-manager=other --force-conflicts -f -");

    assert!(conflict.code > Some(1) && conflict.stderr.contains("Apply failed with 1 conflict"), "{}", conflict.stderr);
    assert_eq!(forced.code, Some(1), "{}", forced.stderr);
    assert!(forced.stdout.contains("+  cronSpec: 0 0 * * *"), "{}", forced.stdout);
}
