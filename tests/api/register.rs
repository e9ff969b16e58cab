//! `--crds`: definitions that are registered before the server is ready.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::{CRONTABS, crontab, crontabs_file, serve_crontabs};
use crate::server::{Answer, Folder, Server};

const DEFINITIONS: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

fn definition() -> String {
    fs::read_to_string(crontabs_file()).expect("the definition is readable")
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the folder is ours");
    fs::write(path, text).expect("the folder is ours");
}

#[test]
fn a_folder_is_applied_with_its_objects() {
    let folder = Folder::for_test();
    let crds = folder.0.join("crds");
    write(&crds.join("below/crontab.yml"), &format!("# CronTab\n---\n{}---\n{}\n", definition(), crontab("nightly")));
    write(&crds.join("settings.json"), r#"{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}}"#);
    write(&crds.join("README.md"), "kind: [CustomResourceDefinition");

    let server = Server::start(&folder.0.join("data"), &["--crds", &crds.to_string_lossy()]);

    let told = "skiff: applied 1 CustomResourceDefinition and 2 objects\n";
    assert!(server.stderr().contains(told), "{}", server.stderr());
    for path in [format!("{CRONTABS}/nightly"), "/api/v1/namespaces/default/configmaps/a".to_owned()] {
        assert_eq!(server.send("GET", &path, &[], None).status, 200, "{path}");
    }
}

#[test]
fn an_object_that_is_refused_ends_the_start() {
    let folder = Folder::for_test();
    let file = folder.0.join("crontab.yaml");
    let odd = crontab("nightly").to_string().replace("cronSpec", "cronSpeck");
    write(&file, &format!("{}---\n{odd}\n", definition()));
    let data = folder.0.join("data");

    let (code, stderr) = Server::fail_to_start(&data, &["--crds", &file.to_string_lossy()]);

    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("crontab.yaml`: CronTab.stable.example.com "), "{stderr}");
    assert!(!data.exists(), "a failed start leaves no folder");
}

#[test]
fn with_watch_what_changes_is_applied() {
    let folder = Folder::for_test();
    let file = folder.0.join("crds/crontab.yaml");
    write(&file, &format!("{}---\n{}\n", definition(), crontab("nightly")));
    let server =
        Server::start(&folder.0.join("data"), &["--watch", "--crds", &folder.0.join("crds").to_string_lossy()]);

    write(&file, &format!("{}---\n{}\n---\n{}\n", definition(), crontab("nightly"), crontab("hourly")));

    while server.send("GET", &format!("{CRONTABS}/hourly"), &[], None).status != 200 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    let told = server.stderr();
    assert!(told.contains("hourly\n") && !told.contains("nightly\n"), "{told}");
    // What can't be read is told, and the server goes on.
    write(&file, "kind: [");
    while !server.stderr().contains("can't be understood") {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
    assert_eq!(server.send("GET", &format!("{CRONTABS}/hourly"), &[], None).status, 200);
    // It keeps nothing else back.
    write(&folder.0.join("crds/weekly.yaml"), &crontab("weekly").to_string());
    while server.send("GET", &format!("{CRONTABS}/weekly"), &[], None).status != 200 {
        std::thread::sleep(std::time::Duration::from_millis(50));
    }
}

#[test]
fn what_is_registered_is_served_at_once() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);

    assert_eq!(server.send("GET", CRONTABS, &[], None).status, 200);
}

#[test]
fn a_definition_is_brought_up_to_date_by_the_next_start() {
    let folder = Folder::for_test();
    let file = folder.0.join("crontab.yaml");
    let (data, crds) = (folder.0.join("data"), file.to_string_lossy());
    let post = |server: &Server, name: &str| {
        let body = crontab(name).to_string();
        server.send("POST", CRONTABS, &[("Content-Type", "application/json")], Some(body.as_bytes())).status
    };
    write(&file, &definition());
    let server = Server::start(&data, &["--crds", &crds]);
    assert_eq!(post(&server, "before"), 201);
    server.terminate();
    write(&file, &definition().replace("required: [cronSpec]", "required: [cronSpec, image]"));

    let server = Server::start(&data, &["--crds", &crds]);

    assert_eq!(post(&server, "after"), 422);
    assert_eq!(server.send("GET", &format!("{CRONTABS}/before"), &[], None).status, 200);
}

#[test]
fn an_invalid_definition_ends_the_start_with_its_faults() {
    let folder = Folder::for_test();
    let file = folder.0.join("crontab.yaml");
    write(&file, &definition().replace("plural: crontabs", "plural: cron tabs"));

    let (code, stderr) = Server::fail_to_start(&folder.0.join("data"), &["--crds", &file.to_string_lossy()]);

    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("crontab.yaml`: crontabs.stable.example.com: "), "{stderr}");
    assert!(stderr.contains("spec.names.plural: Invalid value: \"cron tabs\""), "{stderr}");
}

#[test]
fn a_definition_whose_names_are_taken_is_told() {
    let folder = Folder::for_test();
    let file = folder.0.join("crontab.yaml");
    let other = definition().replace("crontabs", "cronjobs").replace("singular: crontab,", "singular: cronjob,");
    write(&file, &format!("{}---\n{other}", definition()));

    let server = Server::start(&folder.0.join("data"), &["--crds", &file.to_string_lossy()]);

    let stderr = server.stderr();
    assert!(stderr.contains("`cronjobs.stable.example.com` is not served: "), "{stderr}");
}

#[test]
fn what_can_not_be_read_is_named() {
    let folder = Folder::for_test();
    let (broken, missing) = (folder.0.join("broken.yaml"), folder.0.join("missing.yaml"));
    write(&broken, "kind: [CustomResourceDefinition");
    for (file, fault) in [(broken, "can't be understood"), (missing, "can't be read")] {
        let (code, stderr) = Server::fail_to_start(&folder.0.join("data"), &["--crds", &file.to_string_lossy()]);
        assert_eq!(code, Some(1), "{stderr}");
        assert!(stderr.contains(&format!("skiff: `{}` {fault}", file.display())), "{stderr}");
    }
}

fn ship(plural: &str) -> Value {
    let version = json!({
        "name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": {"type": "object"}},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.harbour.example.com")},
        "spec": {
            "group": "harbour.example.com", "scope": "Cluster", "versions": [version],
            "names": {"plural": plural, "singular": format!("a{plural}"), "kind": format!("A{plural}")},
        },
    })
}

fn write_definition(server: &Server, method: &str, path: &str, body: &Value) -> Answer {
    let content_type = if method == "PATCH" { "application/merge-patch+json" } else { "application/json" };
    server.send(method, path, &[("Content-Type", content_type)], Some(body.to_string().as_bytes()))
}

#[test]
fn a_definition_can_be_used_as_soon_as_it_is_answered() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &[]);
    for at in 0..20 {
        let plural = format!("ships{at}");
        let created = write_definition(&server, "POST", DEFINITIONS, &ship(&plural));
        // The body is that of the write itself, as the reference answers it.
        assert_eq!((created.status, &created.json()["status"]["conditions"]), (201, &Value::Null));
        let listed = server.send("GET", &format!("/apis/harbour.example.com/v1/{plural}"), &[], None);
        assert_eq!(listed.status, 200, "{plural}");
    }
}

#[test]
fn names_that_are_taken_are_decided_on_before_the_answer_too() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    assert_eq!(write_definition(&server, "POST", DEFINITIONS, &ship("ships")).status, 201);
    let mut boats = ship("boats");
    boats["spec"]["names"]["kind"] = json!("Aships");
    assert_eq!(write_definition(&server, "POST", DEFINITIONS, &boats).status, 201);
    let path = format!("{DEFINITIONS}/boats.harbour.example.com");
    let stored = server.send("GET", &path, &[], None).json();
    assert_eq!(stored["status"]["conditions"][0]["reason"], "ListKindConflict", "{stored}");

    let renamed = json!({"spec": {"names": {"kind": "Aboat", "listKind": "AboatList"}}});
    assert_eq!(write_definition(&server, "PATCH", &path, &renamed).status, 200);

    assert_eq!(server.send("GET", "/apis/harbour.example.com/v1/boats", &[], None).status, 200);
}
