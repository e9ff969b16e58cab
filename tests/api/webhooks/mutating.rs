//! Webhooks that change objects.

use serde_json::{Value, json};

use super::{
    CRONTABS, Hook, JSON, allow, check_internal, create, crontab, patch, register, respond, serve_crontabs, start, with,
};
use crate::server::{Folder, Server};

fn image(server: &Server, name: &str) -> Value {
    server.send("GET", &format!("{CRONTABS}/{name}"), &[], None).json()["spec"]["image"].clone()
}

/// Appends a letter to the image.
fn append(letter: &'static str) -> super::Respond {
    patch(move |request| {
        let image = request["object"]["spec"]["image"].as_str().unwrap_or_default().to_owned();
        json!([{"op": "add", "path": "/spec/image", "value": image + letter}])
    })
}

#[test]
fn webhooks_are_called_by_the_names_of_configurations_and_see_what_was_changed_before() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/x", append("x")), ("/y", append("y")), ("/z", append("z"))]);
    register(&server, "Mutating", "second", vec![hook.webhook("z.example.com", "/z")]);
    let first = vec![hook.webhook("x.example.com", "/x"), hook.webhook("y.example.com", "/y")];
    register(&server, "Mutating", "first", first);
    let answer = create(&server, &crontab("a"));
    assert_eq!((answer.status, &answer.json()["spec"]["image"]), (201, &json!("xyz")));
    assert_eq!(image(&server, "a"), "xyz");
    assert!(hook.take_seen()[0]["review"]["request"]["object"]["metadata"]["uid"].is_null(), "it has none yet");
}

#[test]
fn the_audit_log_has_patches_and_how_long_webhooks_took() {
    let folder = Folder::for_test();
    let (log, policy) = (folder.0.join("audit.log"), folder.0.join("policy.yaml"));
    let rules = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], \
                 rules: [{level: Request, verbs: [create], resources: [{group: stable.example.com}]}]}";
    std::fs::write(&policy, rules).expect("the folder is there");
    let [log_path, policy_path] = [&log, &policy].map(|path| path.to_str().expect("it is text"));
    let arguments = ["--store", "memory", "--audit-log-path", log_path, "--audit-policy-file", policy_path];
    let server = serve_crontabs(&folder, &arguments);
    let slow = respond(|_| {
        std::thread::sleep(std::time::Duration::from_millis(600));
        json!({"allowed": true})
    });
    let hook = Hook::new([("/x", append("x")), ("/slow", slow)]);
    register(&server, "Mutating", "a", vec![hook.webhook("x.example.com", "/x")]);
    register(&server, "Validating", "a", vec![hook.webhook("slow.example.com", "/slow")]);
    assert_eq!(create(&server, &crontab("a")).status, 201);
    assert_eq!(server.terminate().0, Some(0));
    let log = std::fs::read_to_string(&log).expect("it is written");
    let event: Value = serde_json::from_str(log.trim_end()).expect("it is one event");
    let annotations = &event["annotations"];
    let expected = r#"{"configuration":"a","webhook":"x.example.com","patch":[{"op":"add","path":"/spec/image","value":"x"}],"patchType":"JSONPatch"}"#;
    assert_eq!(annotations["patch.webhook.admission.k8s.io/round_0_index_0"], expected, "{annotations}");
    for part in ["mutating-webhook", "validating-webhook", "total"] {
        let took = annotations[format!("apiserver.latency.k8s.io/{part}")].as_str();
        assert!(took.is_some_and(|took| took.ends_with('s')), "{annotations}");
    }
}

#[test]
fn what_was_patched_is_pruned_defaulted_and_validated() {
    let (server, _folder) = start(&[]);
    let remove = patch(
        |_| json!([{"op": "remove", "path": "/spec/replicas"}, {"op": "add", "path": "/spec/colour", "value": "red"}]),
    );
    let invalid = patch(|_| json!([{"op": "replace", "path": "/spec/replicas", "value": 11}]));
    let hook = Hook::new([("/remove", remove), ("/see", allow()), ("/invalid", invalid)]);
    let webhooks = vec![hook.webhook("remove.example.com", "/remove"), hook.webhook("see.example.com", "/see")];
    register(&server, "Mutating", "a", webhooks);
    let answer = create(&server, &crontab("a")).json();
    assert_eq!(answer["spec"], json!({"cronSpec": "* * * * *", "replicas": 1}));
    let seen = hook.take_seen();
    let between = &seen[1]["review"]["request"]["object"]["spec"];
    assert_eq!((&between["replicas"], &between["colour"]), (&json!(1), &json!("red")), "pruning comes last");
    register(&server, "Mutating", "b", vec![hook.webhook("invalid.example.com", "/invalid")]);
    let answer = create(&server, &crontab("b"));
    let expected = "CronTab.stable.example.com \"b\" is invalid: spec.replicas: Invalid value: 11: spec.replicas in body \
                    should be less than or equal to 10";
    assert_eq!((answer.status, &answer.json()["message"]), (422, &json!(expected)));
}

#[test]
fn webhooks_are_called_again_where_they_ask_for_it_and_others_changed_the_object_since() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/x", append("x")), ("/y", append("y")), ("/see", allow())]);
    let again = json!({"reinvocationPolicy": "IfNeeded"});
    let webhooks = vec![
        with(hook.webhook("x.example.com", "/x"), again.clone()),
        hook.webhook("y.example.com", "/y"),
        with(hook.webhook("see.example.com", "/see"), again),
    ];
    register(&server, "Mutating", "a", webhooks);
    // x is called, y changes what it saw, see changes nothing; x is called again and changes what see saw.
    assert_eq!(create(&server, &crontab("a")).json()["spec"]["image"], "xyx");
    let paths: Vec<_> =
        hook.take_seen().iter().map(|seen| seen["path"].as_str().unwrap_or_default()[..3].to_owned()).collect();
    assert_eq!(paths, ["/x?", "/y?", "/se", "/x?", "/se"]);
}

#[test]
fn a_field_that_decoding_drops_is_no_change() {
    let (server, _folder) = start(&[]);
    let add = |path: &'static str| patch(move |_| json!([{"op": "add", "path": path, "value": {}}]));
    let hook = Hook::new([("/see", allow()), ("/unknown", add("/colour")), ("/empty", add("/metadata/labels"))]);
    let rules =
        json!([{"operations": ["CREATE"], "apiGroups": [""], "apiVersions": ["*"], "resources": ["configmaps"]}]);
    let again = json!({"reinvocationPolicy": "IfNeeded", "rules": rules});
    let webhook = |name: &str, path: &str| with(hook.webhook(name, path), again.clone());
    let unknown = [webhook("see.example.com", "/see"), webhook("unknown.example.com", "/unknown")];
    register(&server, "Mutating", "a", [&unknown[..], &[webhook("empty.example.com", "/empty")]].concat());
    let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}).to_string();
    let answer = server.send("POST", "/api/v1/namespaces/default/configmaps", &[JSON], Some(map.as_bytes()));
    assert_eq!(answer.status, 201, "{}", answer.json());
    let seen = hook.take_seen();
    let paths: Vec<_> = seen.iter().filter_map(|seen| seen["path"].as_str()?.split('?').next()).collect();
    assert_eq!(paths, ["/see", "/unknown", "/empty"], "none is called again");
}

#[test]
fn patches_that_do_not_apply_are_told_in_the_words_of_go() {
    let (server, _folder) = start(&[]);
    let missing = patch(|_| json!([{"op": "remove", "path": "/spec/missing"}]));
    let no_kind = patch(|_| json!([{"op": "remove", "path": "/kind"}]));
    let none = respond(|_| json!({"allowed": true, "patchType": "JSONPatch", "patch": "e30="}));
    let other = respond(
        |_| json!({"allowed": true, "patchType": "Merge", "patch": "W3sib3AiOiJyZW1vdmUiLCJwYXRoIjoiL2EifV0="}),
    );
    let hook = Hook::new([("/missing", missing), ("/kind", no_kind), ("/none", none), ("/other", other)]);
    let check = |path: &str, why: &str| {
        register(&server, "Mutating", "a", vec![hook.webhook("patch.example.com", path)]);
        let answer = create(&server, &crontab("a"));
        let named = format!("{}/mutatingwebhookconfigurations/a", super::CONFIGURATIONS);
        server.send("DELETE", &named, &[], None);
        check_internal(&answer, why);
    };
    check(
        "/missing",
        "error in remove for path: '/spec/missing': Unable to remove nonexistent key: missing: missing value",
    );
    check(
        "/none",
        "failed calling webhook \"patch.example.com\": received undecodable patch in webhook response: json: cannot unmarshal \
         object into Go value of type jsonpatch.Patch",
    );
    check("/other", "failed calling webhook \"patch.example.com\": unsupported patch type \"Merge\"");
}

#[test]
fn a_deletion_has_no_object_to_change() {
    let (server, _folder) = start(&[]);
    assert_eq!(create(&server, &crontab("a")).status, 201);
    let hook = Hook::new([("/x", append("x"))]);
    register(&server, "Mutating", "a", vec![hook.webhook("x.example.com", "/x")]);
    let answer = server.send("DELETE", &format!("{CRONTABS}/a"), &[], None);
    check_internal(
        &answer,
        "admission webhook \"x.example.com\" attempted to modify the object, which is not supported for this operation",
    );
}

#[test]
fn nothing_is_asked_about_a_new_object_of_a_definition_that_is_being_deleted() {
    let (server, _folder) = start(&[]);
    let mut held = crontab("held");
    held["metadata"]["finalizers"] = json!(["example.com/hold"]);
    assert_eq!(create(&server, &held).status, 201);
    let hook = Hook::new([("/see", allow())]);
    let rules =
        json!([{"operations": ["CREATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["crontabs"]}]);
    register(&server, "Mutating", "a", vec![with(hook.webhook("see.example.com", "/see"), json!({"rules": rules}))]);
    let definition = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.stable.example.com";
    assert_eq!(server.send("DELETE", definition, &[], None).status, 200);
    for (metadata, named) in [(json!({"generateName": "a-"}), ""), (json!({"name": "a"}), " \"a\"")] {
        let mut object = crontab("");
        object["metadata"] = metadata;
        let answer = create(&server, &object);
        let why = "create not allowed while custom resource definition is terminating";
        let expected = format!("crontabs.stable.example.com{named} is forbidden: {why}");
        assert_eq!((answer.status, &answer.json()["message"]), (403, &json!(expected)));
    }
    assert_eq!(hook.take_seen().len(), 0);
}

#[test]
fn the_owners_of_fields_are_restored_where_a_webhook_breaks_them() {
    let (server, _folder) = start(&[]);
    let broken = patch(|_| json!([{"op": "replace", "path": "/metadata/managedFields/0/operation", "value": "Write"}]));
    let hook = Hook::new([("/break", broken)]);
    register(&server, "Mutating", "a", vec![hook.webhook("break.example.com", "/break")]);
    let answer = create(&server, &crontab("a"));
    assert_eq!(answer.json()["metadata"]["managedFields"][0]["operation"], "Update");
    let expected = "299 - \".metadata.managedFields was in an invalid state after admission; this could be caused by an \
                    outdated mutating admission controller; please fix your requests: operation must be `Apply` or `Update`\"";
    assert_eq!(answer.header("warning"), expected);
}

#[test]
fn what_a_webhook_sets_is_nobodys() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/x", append("x"))]);
    register(&server, "Mutating", "a", vec![hook.webhook("x.example.com", "/x")]);
    let apply = ("Content-Type", "application/apply-patch+yaml");
    let path = format!("{CRONTABS}/a?fieldManager=m");
    let answer = server.send("PATCH", &path, &[apply], Some(crontab("a").to_string().as_bytes()));
    assert_eq!((answer.status, &answer.json()["spec"]["image"]), (201, &json!("x")));
    let owned = json!({"f:spec": {"f:cronSpec": {}}});
    assert_eq!(answer.json()["metadata"]["managedFields"][0]["fieldsV1"], owned);
}

#[test]
fn a_webhook_changes_the_replicas_of_a_scale() {
    let (server, _folder) = start(&[]);
    assert_eq!(create(&server, &crontab("a")).status, 201);
    let hook = Hook::new([("/scale", patch(|_| json!([{"op": "replace", "path": "/spec/replicas", "value": 7}])))]);
    let rules =
        json!([{"operations": ["UPDATE"], "apiGroups": ["*"], "apiVersions": ["*"], "resources": ["crontabs/scale"]}]);
    register(&server, "Mutating", "a", vec![with(hook.webhook("s.example.com", "/scale"), json!({"rules": rules}))]);
    let merge = ("Content-Type", "application/merge-patch+json");
    let answer = server.send("PATCH", &format!("{CRONTABS}/a/scale"), &[merge], Some(br#"{"spec":{"replicas":3}}"#));
    assert_eq!((answer.status, &answer.json()["spec"]["replicas"]), (200, &json!(7)));
}

#[test]
fn built_in_kinds_and_definitions_are_changed_alike() {
    let (server, _folder) = start(&[]);
    let label = || patch(|_| json!([{"op": "add", "path": "/metadata/labels", "value": {"seen": "yes"}}]));
    let hook = Hook::new([("/label", label())]);
    let rules = json!([{
        "operations": ["CREATE"], "apiGroups": ["", "apiextensions.k8s.io"], "apiVersions": ["*"],
        "resources": ["configmaps", "namespaces", "customresourcedefinitions"],
    }]);
    register(&server, "Mutating", "a", vec![with(hook.webhook("l.example.com", "/label"), json!({"rules": rules}))]);
    let create = |path: &str, body: Value| {
        let answer = server.send("POST", path, &[JSON], Some(body.to_string().as_bytes()));
        assert_eq!((answer.status, &answer.json()["metadata"]["labels"]["seen"]), (201, &json!("yes")), "{path}");
    };
    create(
        "/api/v1/namespaces/default/configmaps",
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}),
    );
    create("/api/v1/namespaces", json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "a"}}));
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
    });
    create(
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
        json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
            "metadata": {"name": "boats.example.com"},
            "spec": {
                "group": "example.com", "scope": "Cluster", "names": {"plural": "boats", "kind": "Boat"},
                "versions": [version],
            },
        }),
    );
}

#[test]
fn what_was_patched_is_no_larger_than_what_is_stored() {
    let (server, _folder) = start(&[]);
    let grow = patch(|_| json!([{"op": "add", "path": "/spec/image", "value": "x".repeat(4 << 20)}]));
    let hook = Hook::new([("/grow", grow)]);
    register(&server, "Mutating", "a", vec![hook.webhook("grow.example.com", "/grow")]);
    let answer = create(&server, &crontab("a"));
    assert_eq!((answer.status, &answer.json()["message"]), (500, &json!("etcdserver: request is too large")));
}
