//! Who calls a webhook, by the kubeconfig that the configuration of admission names.

use serde_json::{Value, json};

use super::{Hook, allow, create, crontab, register};
use crate::api::serve_crontabs;
use crate::server::{Folder, Server};

/// A configuration of both plugins with a kubeconfig of these users.
fn configure(folder: &Folder, users: Value) -> String {
    let write = |name: &str, content: Value| {
        let file = folder.0.join(name);
        std::fs::write(&file, content.to_string()).expect("it is written");
        file.to_str().expect("it is text").to_owned()
    };
    let kubeconfig = write("webhooks.kubeconfig", json!({"apiVersion": "v1", "kind": "Config", "users": users}));
    let api_version = "apiserver.config.k8s.io/v1";
    let told =
        json!({"apiVersion": api_version, "kind": "WebhookAdmissionConfiguration", "kubeConfigFile": kubeconfig});
    let plugins = ["MutatingAdmissionWebhook", "ValidatingAdmissionWebhook"];
    let plugins = plugins.map(|name| json!({"name": name, "configuration": told}));
    write("admission.json", json!({"apiVersion": api_version, "kind": "AdmissionConfiguration", "plugins": plugins}))
}

#[test]
fn a_webhook_is_called_by_the_user_of_its_host() {
    let [known, other] = [(); 2].map(|()| Hook::new([("/", allow())]));
    let folder = Folder::for_test();
    let host = known.url("/");
    let host = host.trim_start_matches("https://").trim_end_matches('/');
    let file = configure(&folder, json!([{"name": host, "user": {"token": "sesame"}}]));
    let server = serve_crontabs(&folder, &["--store", "memory", "--admission-control-config-file", &file]);
    for kind in ["Mutating", "Validating"] {
        let webhooks = vec![known.webhook("known.example.com", "/"), other.webhook("other.example.com", "/")];
        register(&server, kind, "a", webhooks);
    }
    assert_eq!(create(&server, &crontab("a")).status, 201);
    let callers = |hook: &Hook| hook.take_seen().iter().map(|seen| seen["authorization"].clone()).collect::<Vec<_>>();
    assert_eq!(callers(&known), [json!("Bearer sesame"), json!("Bearer sesame")]);
    assert_eq!(callers(&other), [json!(null), json!(null)]);
}

#[test]
fn a_server_does_not_start_with_credentials_that_it_can_not_read() {
    let folder = Folder::for_test();
    let file = configure(&folder, json!([{"name": "*", "user": {"exec": {"command": "make-token"}}}]));
    let (code, said) = Server::fail_to_start(&folder.0, &["--admission-control-config-file", &file]);
    let why = "couldn't init admission plugin \"MutatingAdmissionWebhook\": the user `*` of the kubeconfig has an exec \
               plugin, which is not run here";
    assert!(code == Some(2) && said.contains(why), "{code:?} {said}");
}
