//! `kubectl delete`.

use serde_json::json;

use super::{Cluster, crontab};

#[test]
fn delete_waits_until_the_object_is_gone() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };

    let printed = cluster.kubectl.ok("delete crontab nightly");

    assert!(printed.starts_with("crontab.stable.example.com \"nightly\" deleted"), "{printed}");
    assert_eq!(cluster.kubectl.ok("get crontabs -o name"), "");
}

#[test]
fn delete_of_an_object_with_a_finalizer_marks_it() {
    let mut object = crontab("nightly");
    object["metadata"]["finalizers"] = json!(["example.com/hold"]);
    let Some(cluster) = Cluster::with(&object) else { return };

    cluster.kubectl.ok("delete crontab nightly --wait=false");
    let marked = cluster.field("nightly", "{.metadata.deletionTimestamp}");
    cluster.kubectl.ok(r#"patch crontab nightly --type=merge -p {"metadata":{"finalizers":null}}"#);

    assert!(marked.ends_with('Z'), "{marked}");
    assert_eq!(cluster.kubectl.ok("get crontabs -o name"), "");
}

#[test]
fn delete_all_empties_the_namespace() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };
    cluster.kubectl.pipe_ok(&crontab("hourly").to_string(), "create -f -");

    cluster.kubectl.ok("delete crontabs --all");

    assert_eq!(cluster.kubectl.ok("get crontabs -o name"), "");
}

#[test]
fn delete_of_a_definition_takes_its_objects_along() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };
    let text = std::fs::read_to_string(super::crontabs_file()).expect("the definition is readable");

    cluster.kubectl.ok("delete crd crontabs.stable.example.com");
    cluster.kubectl.pipe_ok(&text, "create -f -");
    cluster.kubectl.ok("wait crd crontabs.stable.example.com --for=condition=Established --timeout=60s");

    assert_eq!(cluster.kubectl.ok("get crontabs -o name"), "");
}

#[test]
fn delete_of_a_namespace_takes_its_objects_along() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.create_namespace("team");
    cluster.kubectl.pipe_ok(&crontab("nightly").to_string(), "create -n team -f -");

    cluster.kubectl.ok("delete namespace team --timeout=60s");

    assert_eq!(cluster.kubectl.ok("get crontabs -A -o name"), "");
}
