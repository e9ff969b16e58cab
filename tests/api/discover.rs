//! `kubectl api-resources`, `api-versions`, `explain`, `version` and `cluster-info`.

use super::Cluster;

#[test]
fn api_resources_lists_custom_resources_beside_built_in_ones() {
    let Some(cluster) = Cluster::start() else { return };

    let table = cluster.kubectl.ok("api-resources");

    for resource in [
        "crontabs ct stable.example.com/v1 true CronTab",
        "customresourcedefinitions crd,crds apiextensions.k8s.io/v1 false CustomResourceDefinition",
        "namespaces ns v1 false Namespace",
    ] {
        let listed = table.lines().any(|line| line.split_whitespace().collect::<Vec<_>>().join(" ") == resource);
        assert!(listed, "`{resource}` is missing in: {table}");
    }
}

#[test]
fn api_resources_names_verbs_and_categories() {
    let Some(cluster) = Cluster::start() else { return };

    let table = cluster.kubectl.ok("api-resources --api-group=stable.example.com -o wide --no-headers");

    let words: Vec<&str> = table.split_whitespace().collect();
    let verbs = "delete,deletecollection,get,list,patch,create,update,watch";
    assert_eq!(words, ["crontabs", "ct", "stable.example.com/v1", "true", "CronTab", verbs, "all"]);
}

#[test]
fn api_versions_lists_the_groups() {
    let Some(cluster) = Cluster::start() else { return };

    let printed = cluster.kubectl.ok("api-versions");

    for version in ["apiextensions.k8s.io/v1", "stable.example.com/v1", "v1"] {
        assert!(printed.lines().any(|line| line == version), "`{version}` is missing in: {printed}");
    }
}

#[test]
fn explain_tells_the_schema() {
    let Some(cluster) = Cluster::start() else { return };

    let kind = cluster.kubectl.ok("explain crontab");
    let field = cluster.kubectl.ok("explain crontab.spec.cronSpec");
    let tree = cluster.kubectl.ok("explain crontab.spec --recursive");

    assert!(kind.contains("CronTab runs an image on a schedule."), "{kind}");
    assert!(field.contains("FIELD: cronSpec <string>") && field.contains("When to run."), "{field}");
    assert!(tree.contains("replicas\t<integer>") && tree.contains("port\t<integer> -required-"), "{tree}");
}

#[test]
fn explain_of_an_unknown_field_is_told() {
    let Some(cluster) = Cluster::start() else { return };

    let told = cluster.kubectl.fails("explain crontab.spec.nonsense");

    assert_eq!(told, "error: field \"nonsense\" does not exist\n");
}

#[test]
fn version_is_that_of_the_reference() {
    let Some(cluster) = Cluster::start() else { return };

    let printed = cluster.kubectl.ok("version");

    let server = printed.lines().find(|line| line.starts_with("Server Version: "));
    assert!(server.is_some_and(|line| line.starts_with("Server Version: v1.37.")), "{printed}");
}
