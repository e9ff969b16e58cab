//! A copy is what it was made of, until one of the two is written to.

use futures_util::future::join_all;
use serde_json::{Value, json};

use super::server::{MAPS, Plane, Server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const WIDGETS: &str = "/apis/example.com/v1/namespaces/default/widgets";

/// Without the controller that publishes each plane's own authority, which writes into copies.
const UNPUBLISHED: &str = "*,-root-ca-certificate-publisher-controller";

/// A definition of Widgets whose size is at most so large.
fn definition(maximum: i64) -> Value {
    let size = json!({ "type": "integer", "maximum": maximum, "default": maximum });
    let spec = json!({ "type": "object", "default": {}, "properties": { "size": size } });
    let schema = json!({ "openAPIV3Schema": { "type": "object", "properties": { "spec": spec } } });
    json!({
        "metadata": { "name": "widgets.example.com" },
        "spec": {
            "group": "example.com", "scope": "Namespaced", "names": { "plural": "widgets", "kind": "Widget" },
            "versions": [{ "name": "v1", "served": true, "storage": true, "schema": schema }],
        },
    })
}

fn widget(name: &str, spec: Value) -> Value {
    json!({ "apiVersion": "example.com/v1", "kind": "Widget", "metadata": { "name": name }, "spec": spec })
}

/// Changes how large a Widget may be.
async fn limit(plane: &Plane, maximum: i64) {
    let schema = &definition(maximum)["spec"]["versions"];
    let patch = json!({ "spec": { "versions": schema } });
    let (code, answer) = plane.call("PATCH", &format!("{DEFINITIONS}/widgets.example.com"), Some(patch)).await;
    assert_eq!(code, 200, "{answer}");
}

#[tokio::test]
async fn a_copy_has_the_objects_and_the_revision_of_its_origin() {
    for store in ["memory", "sqlite"] {
        let server = Server::start(&["--store", store, "--controllers", UNPUBLISHED]).await;
        server.main.post(DEFINITIONS, definition(10)).await;
        server.main.post(WIDGETS, widget("a", json!({ "size": 3 }))).await;
        server.main.put_map("a", "1").await;
        // From then on nobody writes anything by himself.
        for namespace in ["default", "kube-system", "kube-public", "kube-node-lease"] {
            server.main.until(&format!("/api/v1/namespaces/{namespace}/serviceaccounts/default"), 200).await;
        }
        let copy = server.fork(&server.main).await;
        let again = server.fork(&copy).await;
        for path in [WIDGETS, MAPS, DEFINITIONS, "/api/v1/namespaces", "/apis/example.com"] {
            let [one, other] = [copy.get(path).await, again.get(path).await];
            assert_eq!(one["items"], other["items"], "{path} of {store}");
            assert_eq!(one["items"], server.main.get(path).await["items"], "{path} of {store}");
        }
        let revision = |list: &Value| list["metadata"]["resourceVersion"].clone();
        let [one, other] = [copy.get(WIDGETS).await, again.get(WIDGETS).await];
        assert_eq!(revision(&one), revision(&other));
    }
}

#[tokio::test]
async fn a_copy_goes_on_with_the_history_of_its_origin() {
    let server = Server::start(&["--controllers", UNPUBLISHED]).await;
    let begun = server.main.put_map("a", "1").await["metadata"]["resourceVersion"].clone();
    let begun = begun.as_str().expect("it has one");
    server.main.put_map("a", "2").await;
    server.main.put_map("b", "1").await;
    server.main.put_map("c", "1").await;
    let page = server.main.get(&format!("{MAPS}?limit=2")).await;
    let token = page["metadata"]["continue"].as_str().expect("there is more").to_owned();
    let copy = server.fork(&server.main).await;
    // At an earlier revision, from an earlier revision, and with the token of a page.
    let then = copy.get(&format!("{MAPS}/a?resourceVersion={begun}")).await;
    assert_eq!(then["data"]["text"], "2", "not older than");
    let exact = copy.get(&format!("{MAPS}?resourceVersion={begun}&resourceVersionMatch=Exact")).await;
    let texts = exact["items"].as_array().expect("it is a list").iter().map(|item| item["data"]["text"].clone());
    assert!(texts.clone().any(|text| text == "1") && !texts.clone().any(|text| text == "2"), "{exact}");
    let rest = copy.get(&format!("{MAPS}?limit=5&continue={token}")).await;
    assert_eq!(rest["items"][0]["metadata"]["name"], "c", "{rest}");
    let mut watch = copy.watch(&format!("{MAPS}?watch=1&resourceVersion={begun}")).await;
    copy.put_map("mine", "1").await;
    server.main.put_map("theirs", "1").await;
    copy.put_map("last", "1").await;
    let mut seen = Vec::new();
    while seen.last().is_none_or(|(_, name)| name != "last") {
        seen.push(watch.next().await.expect("it goes on"));
    }
    let seen: Vec<_> = seen.iter().map(|(kind, name)| (kind.as_str(), name.as_str())).collect();
    let added = |name| ("ADDED", name);
    assert_eq!(seen, [("MODIFIED", "a"), added("b"), added("c"), added("mine"), added("last")]);
}

#[tokio::test]
async fn after_a_copy_each_goes_its_own_way() {
    let server = Server::start(&[]).await;
    server.main.put_map("a", "1").await;
    let (one, other) = (server.fork(&server.main).await, server.fork(&server.main).await);
    one.put_map("a", "one").await;
    other.put_map("a", "other").await;
    server.main.put_map("b", "main").await;
    assert_eq!(one.call("DELETE", &format!("{MAPS}/a"), None).await.0, 200);
    assert_eq!((one.map("a").await, one.map("b").await), (None, None));
    assert_eq!((other.map("a").await.as_deref(), other.map("b").await), (Some("other"), None));
    assert_eq!(server.main.map("a").await.as_deref(), Some("1"));
    let grandchild = server.fork(&other).await;
    server.delete(&other).await;
    assert_eq!(grandchild.map("a").await.as_deref(), Some("other"));
}

#[tokio::test]
async fn definitions_that_part_are_told_apart() {
    let server = Server::start(&[]).await;
    server.main.post(DEFINITIONS, definition(10)).await;
    // Without a size: what is answered is the default of the schema, derived from the same stored bytes in each plane.
    server.main.post(WIDGETS, widget("a", json!({}))).await;
    let (_, cleared) = server.main.call("PATCH", &format!("{WIDGETS}/a"), Some(json!({ "spec": null }))).await;
    assert_eq!(cleared["spec"]["size"], 10);
    let (one, other) = (server.fork(&server.main).await, server.fork(&server.main).await);
    // The same generation of a definition, with other schemas.
    limit(&one, 1).await;
    limit(&other, 2).await;
    limit(&server.main, 3).await;
    for (plane, maximum) in [(&one, 1), (&other, 2), (&server.main, 3)] {
        let fits = widget("fits", json!({ "size": maximum }));
        assert_eq!(plane.call("POST", WIDGETS, Some(fits)).await.0, 201);
        let (code, refused) = plane.call("POST", WIDGETS, Some(widget("b", json!({ "size": maximum + 1 })))).await;
        assert_eq!(code, 422, "{refused}");
        let again = plane.get(&format!("{WIDGETS}/fits")).await;
        assert_eq!(again["spec"]["size"], maximum);
        let document = plane.get("/openapi/v3/apis/example.com/v1").await;
        let spec = &document["components"]["schemas"]["com.example.v1.Widget"]["properties"]["spec"];
        assert_eq!(spec["properties"]["size"]["maximum"], maximum, "documents of planes are told apart, too");
    }
    assert_eq!(one.call("DELETE", &format!("{DEFINITIONS}/widgets.example.com"), None).await.0, 200);
    one.until(WIDGETS, 404).await;
    assert!(other.has(&format!("{WIDGETS}/a")).await);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_hundred_copies_work_side_by_side() {
    let server = Server::start(&[]).await;
    server.main.post(DEFINITIONS, definition(1_000)).await;
    server.main.put_map("a", "main").await;
    let tests = (0..100).map(async |at: i64| {
        let plane = server.fork(&server.main).await;
        let mut watch = plane.watch(&format!("{WIDGETS}?watch=1")).await;
        plane.post(WIDGETS, widget(&format!("w-{at}"), json!({ "size": at }))).await;
        assert_eq!(watch.next().await, Some(("ADDED".to_owned(), format!("w-{at}"))));
        let all = plane.get(WIDGETS).await;
        assert_eq!(all["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(plane.map("a").await.as_deref(), Some("main"));
        server.delete(&plane).await;
    });
    join_all(tests).await;
    assert_eq!(server.main.get(WIDGETS).await["items"], json!([]));
}

#[tokio::test]
async fn a_plane_may_be_a_file_and_is_opened_again() {
    let server = Server::start(&[]).await;
    server.main.put_map("a", "1").await;
    let path = server.folder.join("plane.db");
    let file = server.create(json!({ "name": "file", "from": "main", "path": path })).await;
    assert_eq!(file.map("a").await.as_deref(), Some("1"));
    let last = file.put_map("b", "2").await["metadata"]["resourceVersion"].clone();
    // It holds something already: nothing is copied over it.
    let (code, refused) =
        server.main.call("POST", "/skiff/v1/planes", Some(json!({ "from": "main", "path": path }))).await;
    assert_eq!(code, 400, "{refused}");
    server.delete(&file).await;
    let (code, refused) =
        server.main.call("POST", "/skiff/v1/planes", Some(json!({ "from": "main", "path": path }))).await;
    assert_eq!((code, &refused["reason"]), (409, &json!("AlreadyExists")));
    let again = server.create(json!({ "path": path })).await;
    let found = again.get(&format!("{MAPS}/b")).await;
    assert_eq!(found["metadata"]["resourceVersion"], last);
    let memory = server.fork(&again).await;
    assert_eq!(memory.map("b").await.as_deref(), Some("2"));
}
