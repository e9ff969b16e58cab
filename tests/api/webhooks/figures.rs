//! What `/metrics` tells of admission, figure by figure.

use serde_json::{Value, json};

use super::{CONFIGURATIONS, CRONTABS, Hook, JSON, allow, create, crontab, raw, register, respond, start, with};
use crate::server::Server;

/// The lines of `/metrics`, without their values where these are times.
fn figures(server: &Server) -> Vec<String> {
    let text = String::from_utf8(server.send("GET", "/metrics", &[], None).body).expect("it is text");
    text.lines().map(str::to_owned).collect()
}

/// Whether a figure with these labels has this value.
fn has(figures: &[String], name: &str, labels: &str, value: &str) -> bool {
    figures.contains(&format!("apiserver_admission_{name}{{{labels}}} {value}"))
}

/// Whether there is a figure with labels that begin so.
fn is_told(figures: &[String], name: &str, labels: &str) -> bool {
    figures.iter().any(|line| line.starts_with(&format!("apiserver_admission_{name}{{{labels}")))
}

#[test]
fn rounds_and_plugins_are_measured_where_they_act() {
    let (server, _folder) = start(&[]);
    assert_eq!(create(&server, &crontab("a")).status, 201);
    let nowhere = CRONTABS.replace("default", "nowhere");
    assert_eq!(server.send("POST", &nowhere, &[JSON], Some(crontab("a").to_string().as_bytes())).status, 404);
    let told = figures(&server);
    let (step, plugin) = ("step_admission_duration_seconds_count", "controller_admission_duration_seconds_count");
    for line in [
        "# TYPE apiserver_admission_step_admission_duration_seconds_summary summary",
        "# TYPE apiserver_webhooks_x509_missing_san_total counter",
        "apiserver_webhooks_x509_missing_san_total 0",
        "apiserver_webhooks_x509_insecure_sha1_total 0",
    ] {
        assert!(told.iter().any(|found| found == line), "{line}");
    }
    for (name, labels) in [
        ("step_admission_duration_seconds_summary_count", r#"type="admit",operation="CREATE",rejected="false"}"#),
        (step, r#"type="admit",operation="CREATE",rejected="false"}"#),
        (step, r#"type="validate",operation="CREATE",rejected="false"}"#),
        (plugin, r#"name="NamespaceLifecycle",type="admit",operation="CREATE",rejected="false"}"#),
        (plugin, r#"name="ResourceQuota",type="validate",operation="CREATE",rejected="false"}"#),
    ] {
        assert!(is_told(&told, name, labels), "{name} {labels}");
    }
    for (name, labels) in [
        (step, r#"type="admit",operation="CREATE",rejected="true""#),
        (plugin, r#"name="NamespaceLifecycle",type="admit",operation="CREATE",rejected="true""#),
    ] {
        assert!(has(&told, name, labels, "1"), "{name} {labels}");
    }
    assert!(!is_told(&told, plugin, r#"name="NamespaceLifecycle",type="validate""#));
    assert!(!is_told(&told, plugin, r#"name="ResourceQuota",type="admit""#));
}

#[test]
fn calls_of_webhooks_are_counted_by_what_came_of_them() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([
        ("/allow", allow()),
        ("/odd", respond(|_| json!({"allowed": false, "status": {"code": 700, "message": "odd"}}))),
        ("/broken", raw(502, "text/plain", "out of order")),
    ]);
    let nowhere = json!({"clientConfig": {"url": "https://127.0.0.1:1/"}});
    let about = |name: &str| json!({"objectSelector": {"matchLabels": {"case": name}}});
    let webhook = |name: &str, path: &str, other: Value| {
        let (case, _) = name.split_once('.').expect("it has a domain");
        with(with(hook.webhook(name, path), about(case)), other)
    };
    register(
        &server,
        "Validating",
        "checks",
        vec![
            webhook("allow.example.com", "/allow", json!({})),
            webhook("odd.example.com", "/odd", json!({})),
            webhook("broken.example.com", "/broken", json!({})),
            webhook("nowhere.example.com", "/", nowhere.clone()),
            webhook("ignored.example.com", "/", with(nowhere, json!({"failurePolicy": "Ignore"}))),
        ],
    );
    for name in ["allow", "odd", "broken", "nowhere", "ignored"] {
        let mut object = crontab(name);
        object["metadata"]["labels"] = json!({"case": name});
        create(&server, &object);
    }
    let told = figures(&server);
    for (name, code, rejected, error) in [
        ("allow", "200", "false", None),
        ("odd", "600", "true", Some("no_error")),
        ("broken", "502", "true", Some("calling_webhook_error")),
        ("nowhere", "503", "true", Some("calling_webhook_error")),
        ("ignored", "503", "false", None),
    ] {
        let of = format!(r#"name="{name}.example.com",type="validating",operation="CREATE""#);
        let requests = format!(r#"{of},code="{code}",rejected="{rejected}""#);
        assert!(has(&told, "webhook_request_total", &requests, "1"), "{requests}");
        let measured = format!(r#"{of},rejected="{rejected}""#);
        assert!(has(&told, "webhook_admission_duration_seconds_count", &measured, "1"), "{measured}");
        match error {
            Some(error) => {
                let rejections = format!(r#"{of},error_type="{error}",rejection_code="{code}""#);
                assert!(has(&told, "webhook_rejection_count", &rejections, "1"), "{rejections}");
            }
            None => assert!(!is_told(&told, "webhook_rejection_count", &of), "{of}"),
        }
    }
    let open = r#"name="ignored.example.com",type="validating""#;
    assert!(has(&told, "webhook_fail_open_count", open, "1"));
}

#[test]
fn match_conditions_are_measured_where_they_do_not_hold() {
    let (server, _folder) = start(&[]);
    let hook = Hook::new([("/", allow())]);
    let conditions = |expression: &str| json!({"matchConditions": [{"name": "c", "expression": expression}]});
    let ignored = with(hook.webhook("fails.example.com", "/"), conditions("object.spec.nothing == 1"));
    register(
        &server,
        "Validating",
        "checks",
        vec![
            with(ignored, json!({"failurePolicy": "Ignore"})),
            with(hook.webhook("false.example.com", "/"), conditions("false")),
            with(hook.webhook("true.example.com", "/"), conditions("true")),
        ],
    );
    for (name, failure_policy, expression) in
        [("false", "Fail", "false"), ("ignored", "Ignore", "object.spec.nothing == 1")]
    {
        let constraints = json!({"resourceRules": [{
            "apiGroups": ["stable.example.com"], "apiVersions": ["*"], "operations": ["CREATE"], "resources": ["crontabs"],
        }]});
        let mut spec = conditions(expression);
        spec["failurePolicy"] = json!(failure_policy);
        spec["matchConstraints"] = constraints;
        spec["validations"] = json!([{"expression": "false"}]);
        for (kind, spec) in [
            ("validatingadmissionpolicies", spec),
            ("validatingadmissionpolicybindings", json!({"policyName": name, "validationActions": ["Deny"]})),
        ] {
            let object = json!({"metadata": {"name": name}, "spec": spec}).to_string();
            let path = format!("{CONFIGURATIONS}/{kind}");
            assert_eq!(server.send("POST", &path, &[JSON], Some(object.as_bytes())).status, 201);
        }
    }
    assert_eq!(create(&server, &crontab("a")).status, 201);
    let told = figures(&server);
    let (errors, exclusions, seconds) = (
        "match_condition_evaluation_errors_total",
        "match_condition_exclusions_total",
        "match_condition_evaluation_seconds_count",
    );
    let webhook = |name: &str, step: &str| {
        format!(r#"name="{name}.example.com",kind="webhook",type="{step}",operation="CREATE""#)
    };
    let policy = |name: &str| format!(r#"name="{name}",kind="policy",type="validate",operation="CREATE""#);
    for (name, labels) in [
        (errors, webhook("fails", "validating")),
        (exclusions, webhook("fails", "validate")),
        (exclusions, webhook("false", "validate")),
        (seconds, webhook("fails", "validating")),
        (seconds, webhook("false", "validating")),
        (errors, policy("ignored")),
        (seconds, policy("ignored")),
        (seconds, policy("false")),
    ] {
        assert!(has(&told, name, &labels, "1"), "{name} {labels}");
    }
    assert!(!is_told(&told, seconds, r#"name="true.example.com""#));
    assert!(!is_told(&told, errors, r#"name="false"#));
    assert!(!is_told(&told, exclusions, r#"name="ignored""#));
    assert!(!is_told(&told, "webhook_request_total", r#"name="fails.example.com""#));
    let checks = "apiserver_validating_admission_policy_check_total";
    assert!(!told.iter().any(|line| line.starts_with(checks)), "a policy that is left out counts no validation");
}
