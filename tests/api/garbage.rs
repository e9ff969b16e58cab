//! Garbage collection: what becomes of dependents when their owner is deleted.

use serde_json::{Value, json};

use super::replicas::new_database;
use super::{CRONTABS, Cluster, crontab, crontabs_file, serve_crontabs, wait_for};
use crate::server::{Answer, Folder, Server};

const MAPS: &str = "/api/v1/namespaces/default/configmaps";
const NAMESPACES: &str = "/api/v1/namespaces";
const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn send(server: &Server, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
    server.send(method, path, &[("Content-Type", content_type)], Some(body.to_string().as_bytes()))
}

/// Makes an object.
#[track_caller]
fn make(server: &Server, path: &str, body: &Value) -> Value {
    let answer = send(server, "POST", path, "application/json", body);
    assert_eq!(answer.status, 201, "{}", answer.json());
    answer.json()
}

/// A server with one CronTab, `owner`.
fn serve_owner(folder: &Folder) -> (Server, Value) {
    let server = serve_crontabs(folder, &["--store", "memory"]);
    let owner = make(&server, CRONTABS, &crontab("owner"));
    (server, owner)
}

/// A reference to an object.
fn reference(owner: &Value, blocks: bool) -> Value {
    json!({
        "apiVersion": owner["apiVersion"], "kind": owner["kind"], "name": owner["metadata"]["name"],
        "uid": owner["metadata"]["uid"], "blockOwnerDeletion": blocks,
    })
}

/// A ConfigMap with owners.
fn map(name: &str, references: &[Value]) -> Value {
    json!({"metadata": {"name": name, "ownerReferences": references}})
}

fn delete(server: &Server, path: &str, policy: &str) {
    let answer = send(server, "DELETE", path, "application/json", &json!({"propagationPolicy": policy}));
    assert_eq!(answer.status, 200, "{}", answer.json());
}

fn patch(server: &Server, path: &str, patch: &Value) {
    let answer = send(server, "PATCH", path, "application/merge-patch+json", patch);
    assert_eq!(answer.status, 200, "{}", answer.json());
}

fn of(collection: &str, name: &str) -> String {
    format!("{collection}/{name}")
}

#[track_caller]
fn goes(server: &Server, path: &str) {
    wait_for(server, path, |answer| answer.status == 404);
}

/// That the collector has seen everything until now: an object without its owner, made now, has gone.
#[track_caller]
fn settle(server: &Server) {
    let absent = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "never", "uid": "never"}});
    make(server, MAPS, &map("z-last", &[reference(&absent, false)]));
    goes(server, &of(MAPS, "z-last"));
}

/// The object, which must be there.
#[track_caller]
fn stays(server: &Server, path: &str) -> Value {
    let answer = server.send("GET", path, &[], None);
    assert_eq!(answer.status, 200, "{path}");
    answer.json()
}

#[test]
fn background_deletes_the_dependents_after_the_owner() {
    let folder = Folder::for_test();
    let (server, owner) = serve_owner(&folder);
    let child = make(&server, MAPS, &map("child", &[reference(&owner, true)]));
    make(
        &server,
        MAPS,
        &map(
            "grandchild",
            &[json!({
                "apiVersion": "v1", "kind": "ConfigMap", "name": "child", "uid": child["metadata"]["uid"],
            })],
        ),
    );
    settle(&server);
    stays(&server, &of(MAPS, "grandchild"));

    delete(&server, &of(CRONTABS, "owner"), "Background");

    assert_eq!(server.send("GET", &of(CRONTABS, "owner"), &[], None).status, 404);
    goes(&server, &of(MAPS, "child"));
    goes(&server, &of(MAPS, "grandchild"));
}

#[test]
fn foreground_keeps_the_owner_while_a_dependent_blocks() {
    let folder = Folder::for_test();
    let (server, owner) = serve_owner(&folder);
    let mut held = map("held", &[reference(&owner, true)]);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    make(&server, MAPS, &held);
    make(&server, MAPS, &map("free", &[reference(&owner, true)]));

    delete(&server, &of(CRONTABS, "owner"), "Foreground");

    goes(&server, &of(MAPS, "free"));
    wait_for(&server, &of(MAPS, "held"), |answer| answer.json()["metadata"]["deletionTimestamp"].is_string());
    settle(&server);
    let owner = stays(&server, &of(CRONTABS, "owner"));
    assert_eq!(owner["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    patch(&server, &of(MAPS, "held"), &json!({"metadata": {"finalizers": null}}));
    goes(&server, &of(CRONTABS, "owner"));
}

#[test]
fn foreground_does_not_wait_for_a_dependent_that_does_not_block() {
    let folder = Folder::for_test();
    let (server, owner) = serve_owner(&folder);
    let mut held = map("held", &[reference(&owner, false)]);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    make(&server, MAPS, &held);

    delete(&server, &of(CRONTABS, "owner"), "Foreground");

    goes(&server, &of(CRONTABS, "owner"));
    wait_for(&server, &of(MAPS, "held"), |answer| answer.json()["metadata"]["deletionTimestamp"].is_string());
}

#[test]
fn foreground_goes_down_to_the_last_dependent_first() {
    let folder = Folder::for_test();
    let (server, owner) = serve_owner(&folder);
    let child = make(&server, CRONTABS, &{
        let mut child = crontab("child");
        child["metadata"]["ownerReferences"] = json!([reference(&owner, true)]);
        child
    });
    let mut held = map("grandchild", &[reference(&child, true)]);
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    make(&server, MAPS, &held);

    delete(&server, &of(CRONTABS, "owner"), "Foreground");

    let waits = |answer: &Answer| answer.json()["metadata"]["deletionTimestamp"].is_string();
    wait_for(&server, &of(MAPS, "grandchild"), waits);
    let child = stays(&server, &of(CRONTABS, "child"));
    assert_eq!(child["metadata"]["finalizers"], json!(["foregroundDeletion"]));
    patch(&server, &of(MAPS, "grandchild"), &json!({"metadata": {"finalizers": null}}));
    goes(&server, &of(CRONTABS, "owner"));
    goes(&server, &of(CRONTABS, "child"));
}

#[test]
fn orphan_makes_the_dependents_forget_their_owner() {
    let folder = Folder::for_test();
    let (server, owner) = serve_owner(&folder);
    let other = make(&server, CRONTABS, &crontab("other"));
    make(&server, MAPS, &map("child", &[reference(&owner, true)]));
    make(&server, MAPS, &map("shared", &[reference(&owner, true), reference(&other, false)]));

    delete(&server, &of(CRONTABS, "owner"), "Orphan");

    goes(&server, &of(CRONTABS, "owner"));
    settle(&server);
    assert_eq!(stays(&server, &of(MAPS, "child"))["metadata"].get("ownerReferences"), None);
    let left = stays(&server, &of(MAPS, "shared"));
    assert_eq!(left["metadata"]["ownerReferences"], json!([reference(&other, false)]));
}

#[test]
fn a_dependent_lives_as_long_as_one_owner_and_forgets_the_others() {
    let folder = Folder::for_test();
    let (server, owner) = serve_owner(&folder);
    let other = make(&server, CRONTABS, &crontab("other"));
    make(&server, MAPS, &map("child", &[reference(&owner, false), reference(&other, false)]));

    delete(&server, &of(CRONTABS, "owner"), "Background");

    wait_for(&server, &of(MAPS, "child"), |answer| {
        answer.json()["metadata"]["ownerReferences"] == json!([reference(&other, false)])
    });
    delete(&server, &of(CRONTABS, "other"), "Background");
    goes(&server, &of(MAPS, "child"));
}

#[test]
fn an_owner_in_another_namespace_counts_as_absent() {
    let folder = Folder::for_test();
    let (server, owner) = serve_owner(&folder);
    make(&server, NAMESPACES, &json!({"metadata": {"name": "team"}}));
    let maps = "/api/v1/namespaces/team/configmaps";

    let child = make(&server, maps, &map("child", &[reference(&owner, false)]));

    goes(&server, &of(maps, "child"));
    let event = misplaced(&server, "team", &child);
    let uid = owner["metadata"]["uid"].as_str().expect("it has a uid");
    let told = format!(
        "ownerRef [stable.example.com/v1/CronTab, namespace: team, name: owner, uid: {uid}] does not exist in namespace \
         \"team\""
    );
    assert_eq!(event["message"], told);
    assert_eq!((&event["type"], &event["count"]), (&json!("Warning"), &json!(1)));
    assert_eq!(event["source"], json!({"component": "garbage-collector-controller"}));
    let involved = json!({
        "kind": "ConfigMap", "apiVersion": "v1", "namespace": "team", "name": "child", "uid": child["metadata"]["uid"],
    });
    assert_eq!(event["involvedObject"], involved);
}

/// The event of an object that refers to an owner in another namespace.
#[track_caller]
fn misplaced(server: &Server, namespace: &str, object: &Value) -> Value {
    let path = format!("/api/v1/namespaces/{namespace}/events?fieldSelector=reason=OwnerRefInvalidNamespace");
    let about = |event: &Value| event["involvedObject"]["uid"] == object["metadata"]["uid"];
    let of_it =
        |list: &Value| list["items"].as_array().and_then(|items| items.iter().find(|event| about(event)).cloned());
    let list = wait_for(server, &path, |answer| of_it(&answer.json()).is_some());
    of_it(&list.json()).expect("it was waited for")
}

#[test]
fn an_owner_in_cluster_scope_owns_in_every_namespace() {
    let folder = Folder::for_test();
    let (server, _) = serve_owner(&folder);
    let owner = make(&server, NAMESPACES, &json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}));
    make(&server, MAPS, &map("child", &[reference(&owner, false)]));
    settle(&server);
    stays(&server, &of(MAPS, "child"));

    delete(&server, &of(NAMESPACES, "a"), "Background");

    goes(&server, &of(MAPS, "child"));
}

#[test]
fn an_object_in_cluster_scope_is_not_collected_for_an_owner_in_a_namespace() {
    let folder = Folder::for_test();
    let (server, owner) = serve_owner(&folder);
    let namespace = json!({"metadata": {"name": "a", "ownerReferences": [reference(&owner, false)]}});
    let namespace = make(&server, NAMESPACES, &namespace);
    let told = misplaced(&server, "default", &namespace)["message"].to_string();
    assert!(told.contains("CronTab, namespace: , name: owner, "), "{told}");
    assert!(told.ends_with("does not exist in namespace \\\"\\\"\""), "{told}");

    delete(&server, &of(CRONTABS, "owner"), "Background");

    settle(&server);
    assert_eq!(stays(&server, &of(NAMESPACES, "a"))["status"]["phase"], "Active");
}

#[test]
fn an_owner_with_another_uid_counts_as_absent() {
    let folder = Folder::for_test();
    let (server, mut owner) = serve_owner(&folder);
    owner["metadata"]["uid"] = json!("an-older-one");

    make(&server, MAPS, &map("child", &[reference(&owner, false)]));

    goes(&server, &of(MAPS, "child"));
}

#[test]
fn a_dependent_stays_while_the_kind_of_its_owner_is_not_served() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let absent = json!({
        "apiVersion": "stable.example.com/v1", "kind": "CronTab", "metadata": {"name": "owner", "uid": "u"},
    });
    make(&server, MAPS, &map("child", &[reference(&absent, false)]));
    settle(&server);
    stays(&server, &of(MAPS, "child"));

    let text = std::fs::read(crontabs_file()).expect("the definition is readable");
    let answer = server.send("POST", DEFINITIONS, &[("Content-Type", "application/yaml")], Some(&text));
    assert_eq!(answer.status, 201);

    goes(&server, &of(MAPS, "child"));
}

#[test]
fn dependents_go_with_the_definition_of_their_owner() {
    let folder = Folder::for_test();
    let (server, owner) = serve_owner(&folder);
    make(&server, MAPS, &map("child", &[reference(&owner, true)]));
    settle(&server);

    delete(&server, &of(DEFINITIONS, "crontabs.stable.example.com"), "Background");

    goes(&server, &of(MAPS, "child"));
}

#[test]
fn nothing_is_collected_where_the_collector_is_off() {
    let folder = Folder::for_test();
    let off = ["--store", "memory", "--controllers=*,-garbage-collector-controller"];
    let server = serve_crontabs(&folder, &off);
    let owner = make(&server, CRONTABS, &crontab("owner"));
    make(&server, MAPS, &map("child", &[reference(&owner, true)]));

    delete(&server, &of(CRONTABS, "owner"), "Foreground");

    // The other controllers run.
    make(&server, NAMESPACES, &json!({"metadata": {"name": "team"}}));
    delete(&server, &of(NAMESPACES, "team"), "Background");
    goes(&server, &of(NAMESPACES, "team"));
    stays(&server, &of(MAPS, "child"));
    assert_eq!(stays(&server, &of(CRONTABS, "owner"))["metadata"]["finalizers"], json!(["foregroundDeletion"]));
}

#[test]
fn a_controller_that_nobody_knows_is_told_at_the_start() {
    let folder = Folder::for_test();
    let (code, said) = Server::fail_to_start(&folder.0, &["--controllers=*,-garbage"]);
    assert_eq!(code, Some(2));
    assert!(said.contains("\"garbage\" is not in the list of known controllers"), "{said}");
}

#[test]
fn a_cycle_of_owners_goes() {
    for policy in ["Background", "Foreground"] {
        let folder = Folder::for_test();
        let (server, owner) = serve_owner(&folder);
        let mut child = crontab("child");
        child["metadata"]["ownerReferences"] = json!([reference(&owner, true)]);
        let child = make(&server, CRONTABS, &child);
        let closed = json!({"metadata": {"ownerReferences": [reference(&child, true)]}});
        patch(&server, &of(CRONTABS, "owner"), &closed);

        delete(&server, &of(CRONTABS, "owner"), policy);

        goes(&server, &of(CRONTABS, "owner"));
        goes(&server, &of(CRONTABS, "child"));
    }
}

#[test]
fn what_a_killed_server_left_is_collected_by_the_next() {
    for policy in POLICIES {
        let folder = Folder::for_test();
        let server = serve_crontabs(&folder, &[]);
        begin_cascade(&server, "default", policy);
        server.kill();

        let server = serve_crontabs(&folder, &[]);

        assert_cascaded(&server, "default", left_by(policy));
    }
}

#[test]
fn what_a_killed_replica_left_is_collected_by_the_other() {
    let Some(url) = new_database() else { return };
    let folder = Folder::for_test();
    let (one, other) = begin_cascades(&folder, &url);

    one.kill();

    assert_cascades(&other);
}

#[test]
fn a_replica_that_was_frozen_for_long_does_no_harm_when_it_goes_on() {
    let Some(url) = new_database() else { return };
    let folder = Folder::for_test();
    let (one, other) = begin_cascades(&folder, &url);

    one.signal("STOP");
    assert_cascades(&other);
    // It still believes that it has the controllers.
    make(&other, NAMESPACES, &json!({"metadata": {"name": "late"}}));
    let (crontabs, maps) = paths_in("late");
    let owner = make(&other, &crontabs, &crontab("owner"));
    make(&other, &maps, &map("child", &[reference(&owner, true)]));
    delete(&other, &of(&crontabs, "owner"), "Foreground");
    one.signal("CONT");

    assert_cascaded(&other, "late", 0);
    assert_cascades(&one);
}

/// Two servers on a database, amid a cascade of each policy. The controllers run in the first, until its lease runs out.
fn begin_cascades(folder: &Folder, url: &str) -> (Server, Server) {
    let file = crontabs_file();
    let crds = file.to_str().expect("the path is text");
    let one = Server::start(&folder.0.join("one"), &["--store", url, "--crds", crds]);
    let other = Server::start(&folder.0.join("other"), &["--store", url]);
    for policy in POLICIES {
        make(&one, NAMESPACES, &json!({"metadata": {"name": policy.to_lowercase()}}));
        begin_cascade(&other, &policy.to_lowercase(), policy);
    }
    (one, other)
}

#[track_caller]
fn assert_cascades(server: &Server) {
    for policy in POLICIES {
        assert_cascaded(server, &policy.to_lowercase(), left_by(policy));
    }
}

const POLICIES: [&str; 3] = ["Background", "Foreground", "Orphan"];
const CHILDREN: usize = 50;

/// Deletes an owner of many, and returns once some of them have gone or forgotten it.
fn begin_cascade(server: &Server, namespace: &str, policy: &str) {
    let (crontabs, maps) = paths_in(namespace);
    let owner = make(server, &crontabs, &crontab("owner"));
    for count in 0..CHILDREN {
        make(server, &maps, &map(&format!("child-{count}"), &[reference(&owner, true)]));
    }
    delete(server, &of(&crontabs, "owner"), policy);
    wait_for(server, &maps, |answer| owned(&answer.json()) < CHILDREN);
}

/// How many of them stay when their owner has gone.
fn left_by(policy: &str) -> usize {
    if policy == "Orphan" { CHILDREN } else { 0 }
}

#[track_caller]
fn assert_cascaded(server: &Server, namespace: &str, left: usize) {
    let (crontabs, maps) = paths_in(namespace);
    goes(server, &of(&crontabs, "owner"));
    let maps = wait_for(server, &maps, |answer| owned(&answer.json()) == 0).json();
    let names = maps["items"].as_array().into_iter().flatten().filter_map(|map| map["metadata"]["name"].as_str());
    assert_eq!(names.filter(|name| name.starts_with("child")).count(), left, "{namespace}");
}

fn paths_in(namespace: &str) -> (String, String) {
    (CRONTABS.replace("/default/", &format!("/{namespace}/")), MAPS.replace("/default/", &format!("/{namespace}/")))
}

/// How many objects of a list have owners.
fn owned(list: &Value) -> usize {
    let items = list["items"].as_array().into_iter().flatten();
    items.filter(|item| item["metadata"].get("ownerReferences").is_some()).count()
}

#[test]
fn kubectl_cascades_as_it_is_told() {
    let Some(cluster) = Cluster::start() else { return };
    for (cascade, gone) in [("foreground", true), ("background", true), ("orphan", false)] {
        // A custom object owns a built-in one, which owns a custom one.
        let owner = make(&cluster.server, CRONTABS, &crontab("owner"));
        let child = make(&cluster.server, MAPS, &map("child", &[reference(&owner, true)]));
        let mut grandchild = crontab(&format!("grandchild-{cascade}"));
        grandchild["metadata"]["ownerReferences"] = json!([reference(&child, true)]);
        make(&cluster.server, CRONTABS, &grandchild);

        cluster.kubectl.ok(&format!("delete crontab owner --cascade={cascade} --timeout=60s"));

        if gone {
            cluster.kubectl.ok("wait --for=delete configmap/child --timeout=60s")
        } else {
            cluster.kubectl.ok(&format!("delete configmap child --cascade={cascade} --timeout=60s"))
        };
        let grandchild = of(CRONTABS, &format!("grandchild-{cascade}"));
        if gone {
            goes(&cluster.server, &grandchild)
        } else {
            assert_eq!(stays(&cluster.server, &grandchild)["metadata"].get("ownerReferences"), None)
        }
    }
}

#[test]
fn kubectl_deletes_a_namespace_with_owners_and_dependents() {
    let Some(cluster) = Cluster::start() else { return };
    cluster.create_namespace("team");
    let (crontabs, maps) = paths_in("team");
    let owner = make(&cluster.server, &crontabs, &crontab("owner"));
    make(&cluster.server, &maps, &map("child", &[reference(&owner, true)]));
    // It would wait for its dependent, which has a finalizer, but a namespace asks for no such thing.
    make(&cluster.server, &maps, &{
        let mut held = map("held", &[reference(&owner, true)]);
        held["metadata"]["finalizers"] = json!(["example.com/hold"]);
        held
    });
    delete(&cluster.server, &of(&crontabs, "owner"), "Foreground");

    cluster.kubectl.ok("delete ns team --wait=false");

    goes(&cluster.server, &of(&crontabs, "owner"));
    stays(&cluster.server, &of(&maps, "held"));
    patch(&cluster.server, &of(&maps, "held"), &json!({"metadata": {"finalizers": null}}));
    cluster.kubectl.ok("wait --for=delete ns/team --timeout=60s");
}
