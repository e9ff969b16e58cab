//! `kubectl patch`, `replace`, `scale`, `label` and `annotate`.

use serde_json::{Value, json};

use super::{Cluster, crontab};

#[test]
fn merge_patch_changes_and_removes_fields() {
    let mut object = crontab("nightly");
    object["spec"]["image"] = json!("cron:1");
    let Some(cluster) = Cluster::with(&object) else { return };

    let printed = cluster.kubectl.ok(r#"patch ct nightly --type=merge -p {"spec":{"replicas":2,"image":null}}"#);

    assert_eq!(printed, "crontab.stable.example.com/nightly patched\n");
    assert_eq!(cluster.field("nightly", "{.spec}"), r#"{"cronSpec":"* * * * *","replicas":2}"#);
}

#[test]
fn json_patch_carries_out_its_operations() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };
    let operations =
        r#"[{"op":"test","path":"/spec/replicas","value":1},{"op":"replace","path":"/spec/replicas","value":4}]"#;
    let patch = format!("patch crontab nightly --type=json -p {operations}");

    cluster.kubectl.ok(&patch);
    let told = cluster.kubectl.fails(&patch);

    assert_eq!(cluster.field("nightly", "{.spec.replicas}"), "4");
    assert_eq!(told, "The request is invalid: the server rejected our request due to an error in our request\n");
}

#[test]
fn strategic_merge_patch_is_not_for_custom_resources() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };

    let told = cluster.kubectl.fails(r#"patch crontab nightly --type=strategic -p {"spec":{"replicas":2}}"#);

    let expected =
        "error: application/strategic-merge-patch+json is not supported by stable.example.com/v1, Kind=CronTab: ";
    assert!(told.starts_with(expected), "{told}");
}

#[test]
fn patch_of_the_status_leaves_the_spec() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };

    cluster.kubectl.ok(
        r#"patch ct nightly --subresource=status --type=merge -p {"spec":{"replicas":9},"status":{"phase":"Active"}}"#,
    );

    assert_eq!(cluster.field("nightly", "{.spec.replicas}/{.status.phase}/{.metadata.generation}"), "1/Active/1");
}

#[test]
fn replace_takes_the_whole_object() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };
    let mut object = crontab("nightly");
    object["spec"] = json!({"cronSpec": "0 0 * * *", "image": "cron:2"});

    let printed = cluster.kubectl.pipe_ok(&object.to_string(), "replace -f -");

    assert_eq!(printed, "crontab.stable.example.com/nightly replaced\n");
    assert_eq!(cluster.field("nightly", "{.spec}"), r#"{"cronSpec":"0 0 * * *","image":"cron:2","replicas":1}"#);
}

#[test]
fn replace_of_an_older_state_is_a_conflict() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };
    let read: Value = serde_json::from_str(&cluster.kubectl.ok("get ct nightly -o json")).expect("it is JSON");
    cluster.kubectl.ok("scale crontab nightly --replicas=3");

    let run = cluster.kubectl.pipe(&read.to_string(), "replace -f -");

    assert_eq!(run.code, Some(1));
    let told = "Error from server (Conflict): error when replacing \"STDIN\": Operation cannot be fulfilled on \
                crontabs.stable.example.com \"nightly\": the object has been modified; please apply your changes to \
                the latest version and try again\n";
    assert_eq!(run.stderr, told);
}

#[test]
fn scale_sets_the_replicas() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };

    let printed = cluster.kubectl.ok("scale crontab nightly --replicas=3");

    assert_eq!(printed, "crontab.stable.example.com/nightly scaled\n");
    assert_eq!(cluster.field("nightly", "{.spec.replicas}/{.metadata.generation}"), "3/2");
}

#[test]
fn scale_heeds_the_replicas_that_are_expected() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };

    let told = cluster.kubectl.fails("scale crontab nightly --current-replicas=5 --replicas=3");

    assert_eq!(told, "error: Expected replicas to be 5, was 1\n");
}

#[test]
fn label_and_annotate_change_the_metadata_alone() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };

    assert_eq!(cluster.kubectl.ok("label ct nightly team=a"), "crontab.stable.example.com/nightly labeled\n");
    assert_eq!(cluster.kubectl.ok("annotate ct nightly note=b"), "crontab.stable.example.com/nightly annotated\n");
    let path = "{.metadata.labels}{.metadata.annotations}{.metadata.generation}";
    assert_eq!(cluster.field("nightly", path), r#"{"team":"a"}{"note":"b"}1"#);
    assert_eq!(cluster.kubectl.ok("label ct nightly team-"), "crontab.stable.example.com/nightly unlabeled\n");
    assert_eq!(cluster.field("nightly", "{.metadata.labels}"), "");
}
