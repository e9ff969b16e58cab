//! Faults of single requests: what is answered, how often, and to whom.

use std::time::Instant;

use serde_json::{Value, json};

use crate::asking::{CONFIG_MAPS, FAULTS, VERSIONS, add, ask, clear, create, hits, serve, sure};
use crate::server::Folder;

fn path(name: &str) -> String {
    format!("{CONFIG_MAPS}/{name}")
}

/// Every request is compared with all faults, which stay in memory.
#[tokio::test]
async fn a_fault_has_a_size_and_faults_have_a_number() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    let long = |bytes: usize| json!({"match": {"name": "a".repeat(bytes)}, "error": {"code": 500}});
    let refused = sure(&server, ("POST", FAULTS), Some(&long(16 << 10))).await;
    assert_eq!((refused.code, &refused.body["message"]), (413, &json!("Request entity too large: limit is 16384")));
    for _ in 0..1000 {
        add(&server, long(100)).await;
    }
    let refused = sure(&server, ("POST", FAULTS), Some(&long(1))).await;
    assert_eq!((refused.code, &refused.body["message"]), (400, &json!("there are 1000 faults, which is the most")));
}

#[tokio::test]
async fn errors_are_those_of_kubernetes() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    let object = create(&server, "a").await;
    let update = path("a");
    let modified = "Operation cannot be fulfilled on configmaps \"a\": the object has been modified; please apply your \
                    changes to the latest version and try again";
    let about_a = json!({"name": "a", "kind": "configmaps"});
    let forbidden = "configmaps is forbidden: User \"system:unsecured\" cannot list resource \"configmaps\" in API group \
                     \"\" in the namespace \"default\"";
    let cases = [
        (("PUT", &*update), json!({"code": 409}), "Conflict", modified, about_a.clone(), None),
        (
            ("POST", CONFIG_MAPS),
            json!({"code": 409}),
            "AlreadyExists",
            "configmaps \"a\" already exists",
            about_a.clone(),
            None,
        ),
        (("GET", &*update), json!({"code": 404}), "NotFound", "configmaps \"a\" not found", about_a.clone(), None),
        (("GET", CONFIG_MAPS), json!({"code": 403}), "Forbidden", forbidden, json!({"kind": "configmaps"}), None),
        (
            ("GET", CONFIG_MAPS),
            json!({"code": 410}),
            "Expired",
            "The resourceVersion for the provided list is too old.",
            Value::Null,
            None,
        ),
        (
            ("GET", CONFIG_MAPS),
            json!({"code": 429, "retryAfterSeconds": 7}),
            "TooManyRequests",
            "Too many requests, please try again later.",
            json!({"retryAfterSeconds": 7}),
            Some("7"),
        ),
        (
            ("GET", CONFIG_MAPS),
            json!({"code": 500, "message": "it broke"}),
            "InternalError",
            "it broke",
            json!({"causes": [{"message": "a fault was injected"}]}),
            None,
        ),
        (
            ("GET", CONFIG_MAPS),
            json!({"code": 500, "reason": "ServerTimeout"}),
            "ServerTimeout",
            "The list operation against configmaps could not be completed at this time, please try again.",
            json!({"name": "list", "kind": "configmaps", "retryAfterSeconds": 2}),
            Some("2"),
        ),
        (
            ("GET", CONFIG_MAPS),
            json!({"code": 503}),
            "ServiceUnavailable",
            "the server is currently unable to handle the request",
            Value::Null,
            None,
        ),
        (
            ("GET", CONFIG_MAPS),
            json!({"code": 504}),
            "Timeout",
            "Timeout: request did not complete within the allotted timeout",
            json!({}),
            None,
        ),
    ];
    for (target, error, reason, message, details, retry_after) in cases {
        for version in VERSIONS {
            let fault = add(&server, json!({"error": error, "times": 1})).await;
            let answered = ask(&server, version, target, Some(&object)).await.expect("it is answered");
            let expected = json!({"kind": "Status", "status": "Failure", "reason": reason, "message": message,
                "details": details, "code": error["code"]});
            for (field, expected) in expected.as_object().expect("it is an object") {
                assert_eq!(&answered.body[field], expected, "{error} {field}: {}", answered.body);
            }
            assert_eq!(json!(answered.code), error["code"]);
            assert_eq!(answered.retry_after.as_deref(), retry_after, "{error}");
            assert_eq!(hits(&server, &fault).await, 1);
            clear(&server).await;
        }
    }
    assert_eq!(sure(&server, ("GET", CONFIG_MAPS), None).await.code, 200);
    assert!(server.stderr().contains("[fault 1: error 409]"), "{}", server.stderr());
}

#[tokio::test]
async fn a_fault_is_for_what_it_names_alone_and_as_often_as_it_says() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    create(&server, "a").await;
    create(&server, "b").await;
    let matching = json!({"verbs": ["get"], "group": "", "resource": "configmaps", "namespace": "default", "name": "a",
        "user": "system:unsecured"});
    let fault = add(&server, json!({"match": matching, "skip": 1, "times": 2, "error": {"code": 503}})).await;
    let mut codes = Vec::new();
    for name in ["b", "a", "a", "b", "a", "a"] {
        codes.push(sure(&server, ("GET", &path(name)), None).await.code);
    }
    assert_eq!(codes, [200, 200, 503, 200, 503, 200]);
    assert_eq!(sure(&server, ("GET", CONFIG_MAPS), None).await.code, 200);
    assert_eq!(hits(&server, &fault).await, 2);
    assert_eq!(sure(&server, ("DELETE", &fault), None).await.body["hits"], 2);
    assert_eq!(sure(&server, ("GET", &fault), None).await.code, 404);

    // Paths that are not those of a resource are named; the way to remove faults stays open.
    add(&server, json!({"match": {"path": "/*"}, "error": {"code": 503}})).await;
    assert_eq!(sure(&server, ("GET", "/apis"), None).await.code, 503);
    assert_eq!(sure(&server, ("GET", "/readyz"), None).await.code, 200);
    clear(&server).await;
    assert_eq!(sure(&server, ("GET", "/apis"), None).await.code, 200);
}

#[tokio::test]
async fn a_request_waits() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    let fault = add(&server, json!({"delay": "300ms", "times": 1})).await;
    let begun = Instant::now();
    assert_eq!(sure(&server, ("GET", CONFIG_MAPS), None).await.code, 200);
    assert!(begun.elapsed().as_millis() >= 300);
    assert_eq!(hits(&server, &fault).await, 1);
}

#[tokio::test]
async fn an_answer_is_lost_and_what_was_asked_for_is_done() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    for (version, name) in VERSIONS.into_iter().zip(["a", "b"]) {
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}});
        add(&server, json!({"match": {"verbs": ["create"]}, "lose": "request", "times": 1})).await;
        add(&server, json!({"match": {"verbs": ["create"]}, "lose": "answer", "times": 1})).await;
        ask(&server, version, ("POST", CONFIG_MAPS), Some(&object)).await.expect_err("the connection is cut");
        assert_eq!(sure(&server, ("GET", &path(name)), None).await.code, 404);
        ask(&server, version, ("POST", CONFIG_MAPS), Some(&object)).await.expect_err("the connection is cut");
        assert_eq!(sure(&server, ("GET", &path(name)), None).await.code, 200);
        clear(&server).await;
    }
}

#[tokio::test]
async fn a_storm_of_conflicts_is_one_that_a_fresh_read_ends() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    let mut object = create(&server, "a").await;
    let fault = add(&server, json!({"match": {"name": "a"}, "conflict": true, "times": 3})).await;
    for round in 0..3 {
        object["data"]["at"] = json!(round.to_string());
        let refused = sure(&server, ("PUT", &path("a")), Some(&object)).await;
        assert_eq!((refused.code, &refused.body["reason"]), (409, &json!("Conflict")));
        let read = sure(&server, ("GET", &path("a")), None).await.body;
        assert_ne!(read["metadata"]["resourceVersion"], object["metadata"]["resourceVersion"]);
        assert_eq!(
            (&read["data"], &read["metadata"]["managedFields"]),
            (&json!({"at": "0"}), &object["metadata"]["managedFields"])
        );
        object = read;
    }
    object["data"]["at"] = json!("3");
    assert_eq!(sure(&server, ("PUT", &path("a")), Some(&object)).await.code, 200);
    assert_eq!(hits(&server, &fault).await, 3);
}

#[tokio::test]
async fn a_list_of_any_revision_is_one_of_the_past() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    for name in ["a", "b", "c"] {
        create(&server, name).await;
    }
    // Others do not count.
    let other = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "other"}});
    assert_eq!(sure(&server, ("POST", "/api/v1/namespaces"), Some(&other)).await.code, 201);
    let fault = add(&server, json!({"match": {"resource": "configmaps"}, "stale": 2})).await;
    let names = async |query: &str| -> Vec<String> {
        let listed = sure(&server, ("GET", &format!("{CONFIG_MAPS}{query}")), None).await.body;
        let items = listed["items"].as_array().expect("it is a list").clone();
        items.iter().filter_map(|item| item["metadata"]["name"].as_str()).map(str::to_owned).collect()
    };
    assert_eq!(names("?resourceVersion=0").await, ["a"]);
    assert_eq!(names("").await, ["a", "b", "c"]);
    assert_eq!(hits(&server, &fault).await, 1);
    // What the log does not reach back to is as old as it can be.
    clear(&server).await;
    add(&server, json!({"match": {"resource": "configmaps"}, "stale": 1_000_000})).await;
    assert_eq!(names("?resourceVersion=0").await, [""; 0]);
}

#[tokio::test]
async fn bad_faults_are_refused_with_a_status() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    for (fault, why) in [
        (json!({}), "the fault is invalid: a fault does one of error, watch, stale, lose, conflict, or has a delay"),
        (
            json!({"error": {"code": 200}}),
            "the fault is invalid: error.code: must be one of 401, 403, 404, 409, 410, 429, 500, 503, 504",
        ),
        (json!({"delay": "1s", "unknown": 1}), "the fault is invalid: unknown field `unknown`"),
        (json!([1]), "the fault is invalid: a fault: must be an object"),
    ] {
        let refused = sure(&server, ("POST", FAULTS), Some(&fault)).await;
        assert_eq!(
            (refused.code, &refused.body["kind"], &refused.body["message"]),
            (400, &json!("Status"), &json!(why))
        );
    }
    for bytes in ["", "{", "{\"delay\":\"1s\",\"delay\":\"2s\"}", "\u{0}", "[[[[", "\"error\"", "1e999"] {
        let answered = server.send("POST", FAULTS, &[("Content-Type", "application/json")], Some(bytes.as_bytes()));
        assert_eq!((answered.status, &answered.json()["reason"]), (400, &json!("BadRequest")), "{bytes}");
    }
    assert_eq!(server.send("POST", FAULTS, &[("Content-Type", "text/yaml")], Some(b"a")).status, 415);
    assert_eq!(server.send("PUT", FAULTS, &[], Some(b"{}")).status, 405);
    for id in ["0", "1", "x", "01", "1/2", "%00"] {
        assert_eq!(server.send("GET", &format!("{FAULTS}/{id}"), &[], None).status, 404, "{id}");
    }
    assert_eq!(server.send("GET", "/skiff/v1/nothing", &[], None).status, 404);
    assert_eq!(sure(&server, ("GET", FAULTS), None).await.body, json!({"items": []}));
}
