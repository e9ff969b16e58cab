//! Webhooks that only judge.

use std::time::Instant;

use serde_json::{Value, json};

use super::{
    CRONTABS, Hook, JSON, MERGE, allow, check_internal, create, crontab, patch, register, respond, start, with,
};

#[test]
fn a_webhook_sees_the_whole_request() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/see", allow())]);
    register(&server, "Validating", "a", vec![hook.webhook("see.example.com", "/see")]);
    let path = format!("{CRONTABS}?fieldManager=me&fieldValidation=Strict&dryRun=All");
    let answer = server.send("POST", &path, &[JSON], Some(crontab("a").to_string().as_bytes()));
    assert_eq!(answer.status, 201);
    let seen = hook.take_seen();
    assert_eq!((&seen[0]["method"], &seen[0]["path"]), (&json!("POST"), &json!("/see?timeout=10s")));
    let mut request = seen[0]["review"]["request"].clone();
    assert_eq!(request["object"]["metadata"]["name"], "a");
    assert_eq!(request["object"]["spec"]["replicas"], 1, "defaults are set");
    assert!(request["object"]["metadata"]["uid"].is_string(), "validation comes last");
    for changing in ["uid", "object"] {
        request.as_object_mut().expect("it is an object").shift_remove(changing).expect("it is there");
    }
    let kind = json!({"group": "stable.example.com", "version": "v1", "kind": "CronTab"});
    let resource = json!({"group": "stable.example.com", "version": "v1", "resource": "crontabs"});
    assert_eq!(
        request,
        json!({
            "kind": kind, "resource": resource, "requestKind": kind, "requestResource": resource,
            "name": "a", "namespace": "default", "operation": "CREATE",
            "userInfo": {"username": "system:unsecured", "groups": ["system:masters", "system:authenticated"]},
            "oldObject": null, "dryRun": true,
            "options": {
                "kind": "CreateOptions", "apiVersion": "meta.k8s.io/v1",
                "dryRun": ["All"], "fieldManager": "me", "fieldValidation": "Strict",
            },
        })
    );
}

#[test]
fn each_way_to_write_is_told_apart() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/see", allow())]);
    let rules = json!([{"operations": ["*"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["crontabs/*"]}]);
    register(&server, "Validating", "a", vec![with(hook.webhook("see.example.com", "/see"), json!({"rules": rules}))]);
    let one = format!("{CRONTABS}/a");
    let check = |what: &str, subresource: &str, kind: &str, options: &str| {
        let seen = hook.take_seen();
        assert_eq!(seen.len(), 1, "{what}: {seen:?}");
        let request = &seen[0]["review"]["request"];
        let found = (&request["operation"], &request["kind"]["kind"], &request["options"]["kind"]);
        assert_eq!(found, (&json!(what), &json!(kind), &json!(options)));
        assert_eq!(request["subResource"].as_str().unwrap_or_default(), subresource);
        let is_gone = what == "DELETE";
        assert_eq!((request["object"].is_null(), request["oldObject"].is_null()), (is_gone, what == "CREATE"));
    };
    assert_eq!(create(&server, &crontab("a")).status, 201);
    check("CREATE", "", "CronTab", "CreateOptions");
    let merge = |path: &str, body: &str| server.send("PATCH", path, &[MERGE], Some(body.as_bytes()));
    assert_eq!(merge(&one, r#"{"spec":{"image":"x"}}"#).status, 200);
    check("UPDATE", "", "CronTab", "UpdateOptions");
    let apply = ("Content-Type", "application/apply-patch+yaml");
    let body = crontab("b").to_string();
    let answer = server.send("PATCH", &format!("{CRONTABS}/b?fieldManager=m"), &[apply], Some(body.as_bytes()));
    assert_eq!(answer.status, 201);
    check("CREATE", "", "CronTab", "CreateOptions");
    assert_eq!(merge(&format!("{one}/status"), r#"{"status":{"phase":"x"}}"#).status, 200);
    check("UPDATE", "status", "CronTab", "UpdateOptions");
    assert_eq!(merge(&format!("{one}/scale"), r#"{"spec":{"replicas":3}}"#).status, 200);
    check("UPDATE", "scale", "Scale", "UpdateOptions");
    assert_eq!(server.send("DELETE", &one, &[], None).status, 200);
    check("DELETE", "", "CronTab", "DeleteOptions");
    assert_eq!(server.send("DELETE", CRONTABS, &[], None).status, 200);
    check("DELETE", "", "CronTab", "DeleteOptions");
}

/// The webhook refuses pods that are marked for deletion, and is told of each of their deletions.
#[test]
fn a_deletion_that_updates_first_is_judged_twice() {
    let (server, _folder) = start(&[]);
    let is_marked = |request: &Value| request["oldObject"]["metadata"].get("deletionTimestamp").is_some();
    let hook =
        Hook::new([("/see", allow()), ("/refuse", respond(move |request| json!({"allowed": !is_marked(request)})))]);
    let rule = |resource: &str| json!([{"operations": ["DELETE"], "apiGroups": [""], "apiVersions": ["*"], "resources": [resource]}]);
    let webhooks = [("pods", "/refuse"), ("configmaps", "/see")].map(|(resource, path)| {
        with(hook.webhook(&format!("{resource}.example.com"), path), json!({"rules": rule(resource)}))
    });
    register(&server, "Validating", "a", webhooks.to_vec());
    let of = |resource: &str| format!("/api/v1/namespaces/default/{resource}");
    let make = |resource: &str, object: Value| {
        let answer = server.send("POST", &of(resource), &[JSON], Some(object.to_string().as_bytes()));
        assert_eq!(answer.status, 201, "{}", answer.json());
    };
    let delete = |path: &str| (server.send("DELETE", path, &[], None).status, hook.take_seen().len());

    make("pods", json!({"metadata": {"name": "a"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}));
    let pod = format!("{}/a", of("pods"));
    assert_eq!(delete(&format!("{pod}?gracePeriodSeconds=0&dryRun=All")), (200, 1));
    assert_eq!(server.send("DELETE", &format!("{pod}?gracePeriodSeconds=0"), &[], None).status, 400);
    let seen = hook.take_seen();
    let olds: Vec<&Value> = seen.iter().map(|seen| &seen["review"]["request"]["oldObject"]["metadata"]).collect();
    assert_eq!(olds.len(), 2, "{olds:?}");
    assert_eq!((olds[0].get("deletionTimestamp"), &olds[1]["deletionGracePeriodSeconds"]), (None, &json!(0)));
    assert_ne!(olds[0]["resourceVersion"], olds[1]["resourceVersion"]);
    let stays = server.send("GET", &pod, &[], None).json();
    assert_eq!(stays["metadata"]["resourceVersion"], olds[1]["resourceVersion"]);

    let finalizers = json!(["foregroundDeletion"]);
    make("configmaps", json!({"metadata": {"name": "a", "finalizers": finalizers}}));
    make("configmaps", json!({"metadata": {"name": "b"}}));
    let map = |name: &str| format!("{}/{name}", of("configmaps"));
    assert_eq!(delete(&map("b")), (200, 1));
    assert_eq!(delete(&format!("{}?propagationPolicy=Background&dryRun=All", map("a"))), (200, 1));
    assert_eq!(delete(&format!("{}?propagationPolicy=Background", map("a"))), (200, 2));
    assert_eq!(server.send("GET", &map("a"), &[], None).status, 404);
}

#[test]
fn a_refusal_is_what_the_webhook_says() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([(
        "/refuse",
        respond(|_| {
            json!({
                "allowed": false,
                "status": {"code": 418, "message": "no tea", "reason": "Teapot", "details": {"causes": [{"field": "spec"}]}},
                "warnings": ["mind the gap", "mind the gap", ""],
            })
        }),
    )]);
    register(&server, "Validating", "a", vec![hook.webhook("refuse.example.com", "/refuse")]);
    let answer = create(&server, &crontab("a"));
    assert_eq!(answer.status, 418);
    assert_eq!(answer.header("warning"), "299 - \"mind the gap\"");
    assert_eq!(
        answer.json(),
        json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": "admission webhook \"refuse.example.com\" denied the request: no tea",
            "reason": "Teapot", "details": {"causes": [{"field": "spec"}]}, "code": 418,
        })
    );
}

#[test]
fn a_webhook_that_only_judges_may_not_patch() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/patch", patch(|_| json!([])))]);
    register(&server, "Validating", "a", vec![hook.webhook("patch.example.com", "/patch")]);
    check_internal(
        &create(&server, &crontab("a")),
        "failed calling webhook \"patch.example.com\": received invalid webhook response: validating webhook may not return \
         response.patch",
    );
}

#[test]
fn webhooks_that_only_judge_are_called_at_once() {
    let (server, _folder) = start(&[]);
    let slowly = || {
        respond(|_| {
            std::thread::sleep(std::time::Duration::from_millis(500));
            json!({"allowed": true})
        })
    };
    let hook = Hook::new([("/slow", slowly())]);
    let webhooks = (0..6).map(|at| hook.webhook(&format!("slow{at}.example.com"), "/slow")).collect();
    register(&server, "Validating", "a", webhooks);
    let begun = Instant::now();
    assert_eq!(create(&server, &crontab("a")).status, 201);
    // One after the other they would take three seconds at least.
    assert!(begun.elapsed().as_millis() < 2500, "{:?}", begun.elapsed());
    assert_eq!(hook.take_seen().len(), 6);
}

#[test]
fn a_dry_run_is_refused_where_a_webhook_may_have_side_effects() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/see", allow())]);
    for (name, class) in [("some", "NoneOnDryRun"), ("none", "None")] {
        let webhook = with(hook.webhook("see.example.com", "/see"), json!({"sideEffects": class}));
        register(&server, "Validating", name, vec![webhook]);
    }
    let path = format!("{CRONTABS}?dryRun=All");
    let body = crontab("a").to_string();
    assert_eq!(server.send("POST", &path, &[JSON], Some(body.as_bytes())).status, 201);
    assert_eq!(hook.take_seen().len(), 2);
}
