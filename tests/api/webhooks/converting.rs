//! Conversion webhooks that answer with more than is served.

use serde_json::{Value, json};

use super::{Hook, JSON, Respond};
use crate::https::Reply;
use crate::server::{Folder, Server};

/// Answers with the objects in the version that is wanted, with this text in them.
fn convert(text: &'static str, count: usize) -> Respond {
    Box::new(move |review| {
        let request = &review["request"];
        let mut objects = request["objects"].clone();
        for object in objects.as_array_mut().into_iter().flatten() {
            object["apiVersion"] = request["desiredAPIVersion"].clone();
            object["spec"] = json!({"text": text.repeat(count)});
        }
        let response = json!({"uid": request["uid"], "result": {"status": "Success"}, "convertedObjects": objects});
        let answer = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
        Some(Reply { status: 200, content_type: "application/json".to_owned(), body: answer.to_string() })
    })
}

fn definition(plural: &str, client: &Value) -> Value {
    let version = |name: &str, storage: bool| {
        let schema = json!({"type": "object", "x-kubernetes-preserve-unknown-fields": true});
        json!({"name": name, "served": true, "storage": storage, "schema": {"openAPIV3Schema": schema}})
    };
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.example.com")},
        "spec": {
            "group": "example.com", "scope": "Cluster", "names": {"plural": plural, "kind": format!("K{plural}")},
            "versions": [version("v1", true), version("v2", false)],
            "conversion": {"strategy": "Webhook", "webhook": {
                "conversionReviewVersions": ["v1"], "clientConfig": client,
            }},
        },
    })
}

#[test]
fn what_a_webhook_makes_too_large_fails_alone() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let hook = Hook::new([
        ("/fits", convert("x", 1 << 20)),
        // The answer is too long; the object is, once it is encoded as Go does.
        ("/long", convert("x", 9 << 20)),
        ("/escaped", convert("<", 2 << 20)),
    ]);
    let post = |path: &str, body: &Value| server.send("POST", path, &[JSON], Some(body.to_string().as_bytes())).status;
    for (plural, path) in [("fits", "/fits"), ("longs", "/long"), ("escapeds", "/escaped")] {
        let client = json!({"url": hook.url(path), "caBundle": hook.authority});
        let definitions = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
        assert_eq!(post(definitions, &definition(plural, &client)), 201);
        let object = json!({"apiVersion": "example.com/v1", "kind": format!("K{plural}"), "metadata": {"name": "a"}});
        assert_eq!(post(&format!("/apis/example.com/v1/{plural}"), &object), 201);
    }
    let get = |version: &str, plural: &str| {
        let answer = server.send("GET", &format!("/apis/example.com/{version}/{plural}/a"), &[], None);
        (answer.status, String::from_utf8_lossy(&answer.body).into_owned())
    };
    let (status, fits) = get("v2", "fits");
    assert!(status == 200 && fits.len() > 1 << 20, "{status}");
    for (plural, why) in [("longs", "length limit exceeded"), ("escapeds", "more than 8388608")] {
        let (status, told) = get("v2", plural);
        assert!(status == 500 && told.contains(why), "{plural}: {status} {told}");
        assert!(told.len() < 10_000);
        assert_eq!(get("v1", plural).0, 200);
    }
}

#[test]
fn a_list_tells_of_few_objects_whose_reasons_are_long() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let refuse: Respond = Box::new(|review| {
        let result = json!({"status": "Failure", "message": "x".repeat(100 << 10)});
        let response = json!({"uid": review["request"]["uid"], "result": result});
        let answer = json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "ConversionReview", "response": response});
        Some(Reply { status: 200, content_type: "application/json".to_owned(), body: answer.to_string() })
    });
    let hook = Hook::new([("/refuses", refuse)]);
    let post = |path: &str, body: &Value| server.send("POST", path, &[JSON], Some(body.to_string().as_bytes())).status;
    let client = json!({"url": hook.url("/refuses"), "caBundle": hook.authority});
    assert_eq!(post("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", &definition("things", &client)), 201);
    for at in 0..10 {
        let object =
            json!({"apiVersion": "example.com/v1", "kind": "Kthings", "metadata": {"name": format!("thing-{at}")}});
        assert_eq!(post("/apis/example.com/v1/things", &object), 201);
    }
    let answer = server.send("GET", "/apis/example.com/v2/things", &[], None);
    let status = answer.json();
    let causes = status["details"]["causes"].as_array().expect("it has causes");
    assert_eq!((answer.status, causes.len()), (500, 4));
    assert_eq!(causes[3]["message"], "too many errors, the list is truncated");
    assert!(status["message"].as_str().is_some_and(|told| told.ends_with("(and 2 more)")));
}
