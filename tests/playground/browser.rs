//! Chromium uses the page: what it does is in `ui/test`.

use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::program::{Program, has_tools, node, playground, ui};

/// Where Debian and others put it.
const CHROMIUM: [&str; 3] = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/// Runs a file of tests with Node.js, if a browser is there.
fn run(file: &str, variables: &[(&str, &str)]) {
    let chromium = CHROMIUM.map(Path::new).into_iter().find(|path| path.exists()).unwrap_or(Path::new(CHROMIUM[0]));
    if !has_tools(chromium, "Chromium") || !has_tools(&ui().join("node_modules/playwright-core"), "the packages of ui/")
    {
        return;
    }
    let mut command: Command = node();
    command.args(["--test", "--test-reporter=spec"]).arg(ui().join("test").join(file)).current_dir(ui());
    command.env("CHROMIUM", chromium).env("SKIFF", env!("CARGO_BIN_EXE_skiff")).envs(variables.iter().copied());
    let told = command.output().expect("Node.js runs");
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(told.status.success(), "{}{}", text(&told.stdout), text(&told.stderr));
}

/// A folder with a project of two definitions and an object.
fn project() -> PathBuf {
    let folder = std::env::temp_dir().join(format!("skiff-project-{}", std::process::id()));
    let definition = |plural: &str, kind: &str| {
        format!(
            "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: {plural}.harbour.example.com}}\n\
             spec:\n  group: harbour.example.com\n  scope: Namespaced\n  names: {{plural: {plural}, singular: one-{plural}, kind: {kind}}}\n  \
             versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      openAPIV3Schema:\n        type: object\n        \
             properties:\n          spec:\n            type: object\n            properties: {{length: {{type: integer}}}}\n            \
             x-kubernetes-validations: [{{rule: self.length >= 9, message: a boat is long}}]\n"
        )
    };
    let boat = "apiVersion: harbour.example.com/v1\nkind: Boat\nmetadata: {name: daisy, namespace: default}\nspec: {length: 7}\n";
    let files = [
        ("skiff.toml", "definitions = [\"crds\"]\nobjects = [\"objects/*.yaml\"]\n".to_owned()),
        ("crds/boats.yaml", definition("boats", "Boat")),
        ("crds/piers.yaml", definition("piers", "Pier")),
        ("objects/boat.yaml", boat.to_owned()),
    ];
    for (name, text) in files {
        let file = folder.join(name);
        std::fs::create_dir_all(file.parent().expect("it is in the folder")).expect("the folder is ours");
        std::fs::write(file, text).expect("the folder is ours");
    }
    folder
}

#[test]
fn the_playground_is_used() {
    let (_program, address) = playground();
    let folder = project();
    let mut beside = Program::start_in(&folder, &["playground", "--listen", "127.0.0.1:0"]);
    let in_project = beside.line("ready");
    run("playground.test.js", &[("SKIFF_URL", &format!("http://{address}/")), ("SKIFF_PROJECT", &in_project)]);
    _ = std::fs::remove_dir_all(folder);
}

#[test]
fn a_hostile_page_reaches_nothing() {
    let (_program, address) = playground();
    run("hostile.test.js", &[("SKIFF_URL", &format!("http://{address}/"))]);
}

/// A server with the example definitions, plain HTTP at a port of its own, and a page: the link to the page.
fn live(mode: &str, plain: &str) -> (Program, String) {
    let port = plain.rsplit(':').next().unwrap_or_default();
    let folder: PathBuf = std::env::temp_dir().join(format!("skiff-live-{}-{mode}-{port}", std::process::id()));
    let folder = folder.to_str().expect("the folder is text").to_owned();
    let examples = Path::new(env!("CARGO_MANIFEST_DIR")).join("crd-examples");
    let examples = examples.to_str().expect("the folder is text");
    let ui = format!("--ui={mode}");
    let mut program = Program::start(&[
        "serve",
        "--temporary",
        "--data-dir",
        &folder,
        "--listen",
        "127.0.0.1:0",
        "--insecure-listen",
        plain,
        "--crds",
        examples,
        &ui,
    ]);
    program.line("ready");
    let link = program.line("ui");
    (program, link)
}

#[test]
fn a_hostile_page_changes_nothing_in_a_server_behind_the_page() {
    let plain = free_address();
    let (_write, link) = live("write", &plain);
    let (url, _) = link.split_once('#').expect("the link has a secret");
    run("hostile.test.js", &[("SKIFF_URL", url), ("SKIFF_PLAIN", &format!("http://{plain}"))]);
}

/// An address that nothing listens on.
fn free_address() -> String {
    TcpListener::bind("127.0.0.1:0").and_then(|it| it.local_addr()).expect("there is a free port").to_string()
}

#[test]
fn the_page_beside_a_server_is_used() {
    // Its port is told on standard error alone.
    let plain = free_address();
    let (_read, link) = live("read", &plain);
    let (_write, write_link) = live("write", "127.0.0.1:0");
    let api = format!("http://{plain}");
    run("live.test.js", &[("SKIFF_LIVE", &link), ("SKIFF_LIVE_WRITE", &write_link), ("SKIFF_PLAIN", &api)]);
}
