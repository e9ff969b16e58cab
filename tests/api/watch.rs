//! `kubectl get -w` and `kubectl wait`.

use super::{Cluster, crontab};

/// The words of a table's line, which are two spaces apart.
fn words(line: &str) -> Vec<&str> {
    line.split("  ").map(str::trim).filter(|word| !word.is_empty()).collect()
}

#[test]
fn a_watch_prints_every_change_as_a_row() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };
    let mut watch = cluster.kubectl.start("get crontabs -w --output-watch-events");
    assert_eq!(words(&watch.line()), ["EVENT", "NAME", "SPEC", "REPLICAS"]);
    assert_eq!(words(&watch.line()), ["ADDED", "nightly", "* * * * *", "1"]);

    cluster.kubectl.ok("scale crontab nightly --replicas=3");
    assert_eq!(words(&watch.line()), ["MODIFIED", "nightly", "* * * * *", "3"]);
    cluster.kubectl.pipe_ok(&crontab("hourly").to_string(), "create -f -");
    assert_eq!(words(&watch.line()), ["ADDED", "hourly", "* * * * *", "1"]);
    cluster.kubectl.ok("delete crontab nightly");
    assert_eq!(words(&watch.line()), ["DELETED", "nightly", "* * * * *", "3"]);
}

#[test]
fn wait_ends_when_the_field_has_the_value() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };
    let mut wait = cluster.kubectl.start("wait crontab nightly --for=jsonpath={.status.phase}=Active --timeout=60s");

    cluster.kubectl.ok(r#"patch ct nightly --subresource=status --type=merge -p {"status":{"phase":"Active"}}"#);

    assert_eq!(wait.line(), "crontab.stable.example.com/nightly condition met\n");
    assert_eq!(wait.wait(), Some(0));
}

#[test]
fn wait_for_deletion_ends_with_it() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };
    let mut wait = cluster.kubectl.start("wait crontab nightly --for=delete --timeout=60s");

    cluster.kubectl.ok("delete crontab nightly");

    assert_eq!(wait.wait(), Some(0));
}

#[test]
fn wait_for_a_definition_ends_when_it_is_served() {
    let Some(cluster) = Cluster::start() else { return };

    let printed = cluster.kubectl.ok("wait crd crontabs.stable.example.com --for=condition=Established --timeout=60s");

    assert_eq!(printed, "customresourcedefinition.apiextensions.k8s.io/crontabs.stable.example.com condition met\n");
}

#[test]
fn kubectl_ends_its_watch_well_when_the_server_stops() {
    let Some(cluster) = Cluster::with(&crontab("nightly")) else { return };
    let mut watch = cluster.kubectl.start("get crontabs -w -o name");
    assert_eq!(watch.line(), "crontab.stable.example.com/nightly\n");
    // That was its list: the server has its watch once that has an event.
    cluster.kubectl.ok("label crontab nightly seen=yes");
    assert_eq!(watch.line(), "crontab.stable.example.com/nightly\n");
    let Cluster { server, .. } = cluster;

    assert_eq!(server.terminate().0, Some(0));

    assert_eq!(watch.line(), "");
    assert_eq!(watch.wait(), Some(0));
}
