//! `--from-cluster`: definitions and objects of a live server.

use std::fs;
use std::process::Command;

use serde_json::Value;

use super::{BOATS, folder, skiff, text};
use crate::server::{Folder, Server};

const BOATS_OF_TWO: &str = "\
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: daisy}
spec: {length: 7}
---
apiVersion: harbour.example.com/v1
kind: Boat
metadata: {name: titanic}
spec: {length: 269}
";

/// A server that has the definition of boats, and the folder with its kubeconfig.
fn serve(test: &str) -> (Server, Folder, std::path::PathBuf) {
    let data = Folder::for_test();
    let files = folder(test, &[("crd.yaml", BOATS), ("boats.yaml", BOATS_OF_TWO)]);
    let crd = files.join("crd.yaml");
    let server = Server::start(&data.0, &["--store", "memory", "--crds", crd.to_str().expect("the path is text")]);
    (server, data, files)
}

#[test]
fn definitions_come_from_a_live_server() {
    let (server, _data, files) = serve("cluster-validate");
    let kubeconfig = server.kubeconfig.to_str().expect("the path is text");
    let output = skiff(&files, &["validate", "--from-cluster", "--kubeconfig", kubeconfig, "-o", "json", "boats.yaml"]);
    let items: Value = serde_json::from_slice(&output.stdout).unwrap_or_else(|_| panic!("{output:?}"));
    assert_eq!((&items[0]["valid"], &items[1]["valid"]), (&Value::Bool(true), &Value::Bool(false)));
    assert_eq!(items[0]["object"]["spec"]["rig"], "none");
    assert_eq!(output.status.code(), Some(1));
}

#[test]
fn objects_of_a_live_server_are_replayed() {
    let (server, _data, files) = serve("cluster-diff");
    let path = "/apis/harbour.example.com/v1/namespaces/default/boats";
    for number in 0..600 {
        let boat = format!(
            r#"{{"apiVersion":"harbour.example.com/v1","kind":"Boat","metadata":{{"name":"b{number}"}},"spec":{{"length":{}}}}}"#,
            2 + number % 20
        );
        let answer = server.send("POST", path, &[("content-type", "application/json")], Some(boat.as_bytes()));
        assert_eq!(answer.status, 201);
    }
    fs::write(files.join("new.yaml"), BOATS.replace("maximum: 30", "maximum: 20")).expect("the folder is writable");
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.current_dir(&files).env("KUBECONFIG", &server.kubeconfig);
    let output = command.args(["diff", "crd.yaml", "new.yaml", "--from-cluster"]).output().expect("it runs");
    let printed = text(&output.stdout);
    assert!(
        printed.contains("\nBoat default/b19\n  existing: kept until this field changes\n  new: refused: spec.length"),
        "{output:?}"
    );
    assert!(printed.ends_with("600 objects replayed: 30 refused\n"), "{printed}");
}

#[test]
fn a_kubeconfig_names_the_server_and_who_asks() {
    let (server, _data, files) = serve("cluster-kubeconfig");
    let run = |kubeconfig: &str, arguments: &[&str]| {
        fs::write(files.join("kubeconfig"), kubeconfig).expect("the folder is writable");
        let shared = ["validate", "--from-cluster", "--kubeconfig", "kubeconfig", "boats.yaml"];
        let output = skiff(&files, &[&shared, arguments].concat());
        (output.status.code(), text(&output.stderr))
    };
    let whole = fs::read_to_string(&server.kubeconfig).expect("the server wrote it");
    let stranger = whole.replace("client-certificate-data", "ignored");
    let insecure = whole.replace("certificate-authority-data:", "insecure-skip-tls-verify: true\n    ignored:");
    let plain = format!(
        "contexts: [{{name: a, context: {{cluster: c}}}}]\nclusters: [{{name: c, cluster: {{server: 'http://{}'}}}}]",
        server.plain
    );
    assert_eq!(run(&whole, &[]), (Some(1), String::new()));
    assert_eq!(run(&insecure.replace("    ignored: ", "    unread: "), &[]), (Some(1), String::new()));
    assert_eq!(run(&plain, &["--context", "a"]), (Some(1), String::new()));
    let faults = [
        (plain.clone(), "has no current context"),
        (stranger, "answered 40"),
        (whole.replace("client-certificate-data:", "token: abc\n    unread:"), "answered 401"),
        (whole.replace("certificate-authority-data:", "unread:"), "can't be asked"),
        (whole.replace("server: ", "proxy-url: http://a\n    server: "), "proxy-url"),
        (whole.replace("cluster: skiff", "cluster: other"), "has no cluster `other`"),
        (whole.replace("server: https", "server: ftp"), "is not an http or https address"),
    ];
    for (kubeconfig, words) in faults {
        let (code, said) = run(&kubeconfig, &[]);
        assert!(code == Some(2) && said.contains(words), "{words}: {code:?} {said}");
    }
}

#[cfg(unix)]
#[test]
fn plugins_make_credentials() {
    let (server, _data, files) = serve("cluster-plugin");
    let whole = fs::read_to_string(&server.kubeconfig).expect("the server wrote it");
    let pem = |name: &str| {
        let line = whole.lines().find_map(|line| line.trim().strip_prefix(name)).expect("it has one");
        decoded(line.trim_start_matches(": ")).replace('\n', "\\n")
    };
    let credential = format!(
        r#"{{"kind":"ExecCredential","status":{{"clientCertificateData":"{}","clientKeyData":"{}"}}}}"#,
        pem("client-certificate-data"),
        pem("client-key-data")
    );
    fs::write(files.join("credential.json"), credential).expect("the folder is writable");
    let (head, _) = whole.split_once("    client-certificate-data").expect("it has one");
    let (_, tail) = whole.split_once("contexts:").expect("it has one");
    let exec = "    exec: {apiVersion: client.authentication.k8s.io/v1, command: cat, args: [credential.json]}\n";
    let kubeconfig = format!("{head}{exec}contexts:{tail}");
    fs::write(files.join("kubeconfig"), &kubeconfig).expect("the folder is writable");
    let arguments = ["validate", "--from-cluster", "--kubeconfig", "kubeconfig", "boats.yaml"];
    let output = skiff(&files, &arguments);
    assert_eq!((output.status.code(), text(&output.stderr).as_str()), (Some(1), ""));
    fs::write(files.join("kubeconfig"), kubeconfig.replace("command: cat", "command: absent-plugin"))
        .expect("writable");
    let output = skiff(&files, &arguments);
    assert!(text(&output.stderr).contains("the exec plugin `absent-plugin`"), "{output:?}");
}

fn decoded(text: &str) -> String {
    use base64::Engine as _;
    let bytes = base64::engine::general_purpose::STANDARD.decode(text.trim()).expect("it is base64");
    String::from_utf8(bytes).expect("PEM is text")
}
