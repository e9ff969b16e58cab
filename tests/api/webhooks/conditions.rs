//! Match conditions, from the request that writes them to the request that they let pass.

use serde_json::{Value, json};

use super::{CONFIGURATIONS, Hook, JSON, allow, create, crontab, register, start, with};

fn conditions(expressions: &[&str]) -> Value {
    let conditions: Vec<_> = expressions
        .iter()
        .enumerate()
        .map(|(at, expression)| json!({"name": format!("c{at}"), "expression": expression}))
        .collect();
    json!({"matchConditions": conditions})
}

#[test]
fn a_webhook_is_called_where_all_conditions_hold() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/yes", allow()), ("/no", allow()), ("/asks", allow())]);
    let webhook = |path: &str, expressions: &[&str]| {
        with(hook.webhook(&format!("{}.example.com", &path[1..]), path), conditions(expressions))
    };
    let webhooks = vec![
        webhook("/yes", &["object.spec.cronSpec.size() > 3", "request.operation == 'CREATE' && oldObject == null"]),
        // What is false decides, though another can't be told.
        webhook("/no", &["object.spec.missing == 1", "object.metadata.name != 'a'"]),
        webhook(
            "/asks",
            &["authorizer.requestResource.check('create').allowed() && 'system:masters' in request.userInfo.groups"],
        ),
    ];
    register(&server, "Validating", "a", webhooks);
    assert_eq!(create(&server, &crontab("a")).status, 201);
    let mut paths: Vec<_> =
        hook.take_seen().iter().map(|seen| seen["path"].as_str().unwrap_or_default().to_owned()).collect();
    paths.sort();
    assert_eq!(paths, ["/asks?timeout=10s", "/yes?timeout=10s"]);
}

#[test]
fn a_condition_that_fails_refuses_the_request_or_spares_the_webhook() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/see", allow())]);
    let webhook = with(hook.webhook("see.example.com", "/see"), conditions(&["object.spec.missing == 1", "true"]));
    register(&server, "Mutating", "a", vec![with(webhook.clone(), json!({"failurePolicy": "Ignore"}))]);
    assert_eq!(create(&server, &crontab("a")).status, 201);
    register(&server, "Mutating", "b", vec![webhook]);
    let answer = create(&server, &crontab("b"));
    let expected = "crontabs.stable.example.com \"b\" is forbidden: expression 'object.spec.missing == 1' resulted in error: no \
                    such key: missing";
    assert_eq!((answer.status, &answer.json()["message"]), (403, &json!(expected)));
    assert_eq!(hook.take_seen().len(), 0);
}

#[test]
fn what_does_not_compile_is_not_stored() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([]);
    let webhook = with(hook.webhook("see.example.com", "/see"), conditions(&["request.name", "obj.x == 1"]));
    let configuration = json!({
        "apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration",
        "metadata": {"name": "a"}, "webhooks": [webhook],
    });
    let path = format!("{CONFIGURATIONS}/validatingwebhookconfigurations");
    let answer = server.send("POST", &path, &[JSON], Some(configuration.to_string().as_bytes()));
    assert_eq!(answer.status, 422);
    let causes = answer.json()["details"]["causes"].clone();
    assert_eq!(
        causes,
        json!([
            {
                "reason": "FieldValueInvalid", "field": "webhooks[0].matchConditions[0].expression",
                "message": "Invalid value: \"request.name\": must evaluate to bool but got string",
            },
            {
                "reason": "FieldValueInvalid", "field": "webhooks[0].matchConditions[1].expression",
                "message": "Invalid value: \"obj.x == 1\": compilation failed: ERROR: <input>:1:1: undeclared reference to 'obj' \
                            (in container '')\n | obj.x == 1\n | ^",
            },
        ])
    );
}
