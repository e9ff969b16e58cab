//! `kubectl create`.

use serde_json::json;

use super::{Cluster, crontab};

#[test]
fn create_stores_the_object_with_its_defaults() {
    let Some(cluster) = Cluster::start() else { return };

    let printed = cluster.kubectl.pipe_ok(&crontab("nightly").to_string(), "create -f -");

    assert_eq!(printed, "crontab.stable.example.com/nightly created\n");
    assert_eq!(cluster.field("nightly", "{.spec.replicas}/{.metadata.generation}"), "1/1");
}

#[test]
fn create_makes_a_name_from_generate_name() {
    let Some(cluster) = Cluster::start() else { return };
    let mut object = crontab("");
    object["metadata"] = json!({"generateName": "job-"});

    let printed = cluster.kubectl.pipe_ok(&object.to_string(), "create -f - -o name");

    let name = printed.trim().strip_prefix("crontab.stable.example.com/job-").expect("the prefix is kept");
    assert_eq!(name.len(), 5, "{name}");
}

#[test]
fn create_of_an_existing_object_is_refused() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };

    let run = cluster.kubectl.pipe(&crontab("nightly").to_string(), "create -f -");

    assert_eq!(run.code, Some(1));
    let told = "Error from server (AlreadyExists): error when creating \"STDIN\": \
                crontabs.stable.example.com \"nightly\" already exists\n";
    assert_eq!(run.stderr, told);
}

#[test]
fn create_of_an_invalid_object_tells_every_fault() {
    let Some(cluster) = Cluster::start() else { return };
    let mut object = crontab("nightly");
    object["spec"] = json!({"cronSpec": "often", "replicas": 11});

    let run = cluster.kubectl.pipe(&object.to_string(), "create -f -");

    assert_eq!(run.code, Some(1));
    let told = "The CronTab \"nightly\" is invalid: \n\
                * spec.cronSpec: Invalid value: \"often\": spec.cronSpec in body should match '^\\S+( \\S+){4}$'\n\
                * spec.replicas: Invalid value: 11: spec.replicas in body should be less than or equal to 10\n";
    assert_eq!(run.stderr, told);
}

#[test]
fn create_refuses_a_field_that_the_schema_does_not_know() {
    let Some(cluster) = Cluster::start() else { return };
    let mut object = crontab("nightly");
    object["spec"]["imge"] = json!("cron:1");

    let strict = cluster.kubectl.pipe(&object.to_string(), "create -f -");
    let warned = cluster.kubectl.pipe(&object.to_string(), "create -f - --validate=warn");

    assert!(strict.stderr.contains("strict decoding error: unknown field \"spec.imge\""), "{}", strict.stderr);
    assert_eq!((warned.code, warned.stderr.as_str()), (Some(0), "Warning: unknown field \"spec.imge\"\n"));
}

#[test]
fn create_in_a_missing_namespace_is_refused() {
    let Some(cluster) = Cluster::start() else { return };

    let run = cluster.kubectl.pipe(&crontab("nightly").to_string(), "create -n nowhere -f -");

    assert_eq!(run.code, Some(1));
    let told = "Error from server (NotFound): error when creating \"STDIN\": namespaces \"nowhere\" not found\n";
    assert_eq!(run.stderr, told);
}

#[test]
fn create_works_in_a_namespace_just_made() {
    let Some(cluster) = Cluster::start() else { return };

    cluster.create_namespace("team");
    cluster.kubectl.pipe_ok(&crontab("nightly").to_string(), "create -n team -f -");

    assert_eq!(cluster.kubectl.ok("get crontabs -A -o name"), "crontab.stable.example.com/nightly\n");
}

#[test]
fn dry_run_stores_nothing() {
    let Some(cluster) = Cluster::start() else { return };

    let printed = cluster.kubectl.pipe_ok(&crontab("nightly").to_string(), "create -f - --dry-run=server");

    assert_eq!(printed, "crontab.stable.example.com/nightly created (server dry run)\n");
    assert_eq!(cluster.kubectl.ok("get crontabs -o name"), "");
}
