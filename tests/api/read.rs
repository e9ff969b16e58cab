//! `kubectl get` in its forms, and `kubectl describe`.

use serde_json::{Value, json};

use super::{Cluster, crontab};

fn nightly() -> Value {
    let mut object = crontab("nightly");
    object["spec"]["image"] = json!("cron:1");
    object["metadata"]["labels"] = json!({"team": "a"});
    object
}

/// The words of a table's lines; ages are left out.
fn words(table: &str) -> Vec<Vec<&str>> {
    table.lines().map(|line| line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect()).collect()
}

#[test]
fn get_prints_the_columns_of_the_definition() {
    let Some(cluster) = Cluster::with(&nightly()) else { return };

    let table = cluster.kubectl.ok("get crontabs");

    assert_eq!(words(&table), [["NAME", "SPEC", "REPLICAS"], ["nightly", "* * * * *", "1"]]);
}

#[test]
fn get_wide_prints_the_further_columns_too() {
    let Some(cluster) = Cluster::with(&nightly()) else { return };

    let table = cluster.kubectl.ok("get ct -o wide");

    assert_eq!(words(&table), [["NAME", "SPEC", "REPLICAS", "IMAGE"], ["nightly", "* * * * *", "1", "cron:1"]]);
}

#[test]
fn get_finds_a_resource_by_every_name_it_has() {
    let Some(cluster) = Cluster::with(&nightly()) else { return };
    for name in
        ["crontabs", "crontab", "ct", "CronTab", "crontabs.stable.example.com", "crontabs.v1.stable.example.com"]
    {
        let names = cluster.kubectl.ok(&format!("get {name} -o name"));
        assert_eq!(names, "crontab.stable.example.com/nightly\n", "{name}");
    }
    let names = cluster.kubectl.ok("get all -o name");
    assert_eq!(names, "service/kubernetes\ncrontab.stable.example.com/nightly\n");
}

#[test]
fn get_json_and_yaml_are_the_object() {
    let Some(cluster) = Cluster::with(&nightly()) else { return };

    let printed = cluster.kubectl.ok("get crontab nightly -o json");
    let yaml = cluster.kubectl.ok("get crontab nightly -o yaml");

    let object: Value = serde_json::from_str(&printed).expect("it is JSON");
    assert_eq!(object["spec"], json!({"cronSpec": "* * * * *", "image": "cron:1", "replicas": 1}));
    assert!(yaml.ends_with("spec:\n  cronSpec: '* * * * *'\n  image: cron:1\n  replicas: 1\n"), "{yaml}");
}

#[test]
fn get_jsonpath_picks_fields() {
    let Some(cluster) = Cluster::with(&nightly()) else { return };

    let printed = cluster.kubectl.ok("get crontabs -o jsonpath={.items[*].spec.image}");

    assert_eq!(printed, "cron:1");
}

#[test]
fn get_selects_by_labels_and_fields() {
    let Some(cluster) = Cluster::with(&nightly()) else { return };
    cluster.kubectl.pipe_ok(&crontab("hourly").to_string(), "create -f -");
    let names = |selector: &str| cluster.kubectl.ok(&format!("get crontabs -o name {selector}"));

    assert_eq!(names("-l team=a"), "crontab.stable.example.com/nightly\n");
    assert_eq!(names("-l !team"), "crontab.stable.example.com/hourly\n");
    assert_eq!(names("--field-selector metadata.name=hourly"), "crontab.stable.example.com/hourly\n");
}

#[test]
fn get_pages_through_long_lists() {
    let Some(cluster) = Cluster::start() else { return };
    let objects: Vec<String> = (0..7).map(|count| crontab(&format!("c{count}")).to_string()).collect();
    cluster.kubectl.pipe_ok(&objects.join("\n"), "create -f -");

    let names = cluster.kubectl.ok("get crontabs -o jsonpath={.items[*].metadata.name} --chunk-size=3");

    assert_eq!(names, "c0 c1 c2 c3 c4 c5 c6");
}

#[test]
fn get_of_a_missing_object_is_told() {
    let Some(cluster) = Cluster::start() else { return };

    let told = cluster.kubectl.fails("get crontab nightly");

    assert_eq!(told, "Error from server (NotFound): crontabs.stable.example.com \"nightly\" not found\n");
}

#[test]
fn get_of_an_unknown_resource_is_told() {
    let Some(cluster) = Cluster::start() else { return };

    let told = cluster.kubectl.fails("get nonsense");

    assert_eq!(told, "error: the server doesn't have a resource type \"nonsense\"\n");
}

#[test]
fn describe_shows_an_object() {
    let Some(cluster) = Cluster::with(&nightly()) else { return };

    let printed = cluster.kubectl.ok("describe crontab nightly");

    for line in ["Name:         nightly", "Labels:       team=a", "Kind:         CronTab", "  Cron Spec:  * * * * *"] {
        assert!(printed.lines().any(|printed| printed == line), "`{line}` is missing in: {printed}");
    }
}

#[test]
fn describe_shows_a_definition() {
    let Some(cluster) = Cluster::start() else { return };

    let printed = cluster.kubectl.ok("describe crd crontabs.stable.example.com");

    assert!(printed.contains("Initial Names Accepted") || printed.contains("InitialNamesAccepted"), "{printed}");
}
