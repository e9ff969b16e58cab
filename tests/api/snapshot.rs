//! A database is saved while a server uses it, checked, and restored: clients then list anew.

use std::collections::BTreeSet;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::{Value, json};

use super::{CRONTABS, crontab, serve_crontabs};
use crate::server::{Folder, Server};
use crate::store::postgres;

fn skiff(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_skiff")).args(arguments).output().expect("the binary was built with the tests")
}

/// Runs it and returns what it says, on stdout and on stderr.
fn skiff_ok(arguments: &[&str]) -> String {
    let output = skiff(arguments);
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    assert!(output.status.success(), "{arguments:?}: {said}");
    said
}

fn text(path: &Path) -> &str {
    path.to_str().expect("the path is text")
}

/// The object without what tells when it was read.
fn read(server: &Server) -> Value {
    let answer = server.send("GET", &format!("{CRONTABS}/nightly"), &[], None);
    assert_eq!(answer.status, 200);
    answer.json()
}

/// Saves from a server on `from` while it runs, restores to `to`, and starts a server there.
fn check(from: &[&str], to: &[&str]) {
    check_in(&Folder::for_test(), from, to);
}

fn check_in(folder: &Folder, from: &[&str], to: &[&str]) {
    let restored = folder.0.join("restored");
    let server = serve_crontabs(folder, from);
    let body = crontab("nightly").to_string();
    let made = server.send("POST", CRONTABS, &[("Content-Type", "application/json")], Some(body.as_bytes()));
    assert_eq!(made.status, 201);
    let before = read(&server);
    let revision: i64 =
        before["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a number");
    let file = folder.0.join("saved.db");
    let at = |folder: &Path, store: &[&str]| {
        let mut arguments = vec!["--data-dir".to_owned(), text(folder).to_owned()];
        arguments.extend(store.iter().map(|argument| (*argument).to_owned()));
        arguments
    };
    let run = |command: &[&str], location: Vec<String>| {
        let location: Vec<_> = location.iter().map(String::as_str).collect();
        skiff_ok(&[command, &location[..]].concat())
    };
    let checked = run(&["check"], at(&folder.0, from));
    assert!(checked.starts_with("whole: ") && checked.contains(" objects, revision "), "{checked}");
    run(&["snapshot", "save", text(&file)], at(&folder.0, from));
    server.kill();
    run(&["snapshot", "restore", text(&file)], at(&restored, to));
    run(&["check"], at(&restored, to));

    let server = Server::start(&restored, to);
    assert_eq!(read(&server), before);
    // Who watches from before the restore is told to list anew.
    let watch =
        server.send("GET", &format!("{CRONTABS}?watch=true&resourceVersion={revision}&timeoutSeconds=1"), &[], None);
    assert!(String::from_utf8_lossy(&watch.body).contains(r#""code":410"#), "the revision is gone");
    let list = server.send("GET", CRONTABS, &[], None).json();
    let raised: i64 =
        list["metadata"]["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a number");
    assert!(raised >= revision + 1_000_000_000, "{raised} after {revision}");
}

/// The URL of a new database; `None` where there is no Postgres.
fn new_database() -> Option<String> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    runtime.block_on(postgres::new_database())
}

#[test]
fn a_sqlite_database_is_restored_from_a_file() {
    check(&[], &[]);
}

#[test]
fn a_sqlite_database_moves_to_postgres() {
    let Some(to) = new_database() else { return };
    check(&[], &["--store", &to]);
}

#[test]
fn a_postgres_database_moves_to_sqlite() {
    let Some(from) = new_database() else { return };
    check(&["--store", &from], &[]);
}

#[test]
fn the_databases_of_overrides_are_saved_and_restored_beside_it() {
    let folder = Folder::for_test();
    let [from, to] = ["from", "to"].map(|name| {
        let file = folder.0.join(format!("{name}.db"));
        format!("--store-override=stable.example.com/crontabs=sqlite:{}", file.display())
    });
    check_in(&folder, &[&from, "--store-override=/events=memory"], &[&to, "--store-override=/events=memory"]);
    assert!(folder.0.join("saved.db.crontabs.stable.example.com").exists());
}

#[test]
fn exported_objects_are_imported_with_their_uids() {
    let folder = Folder::for_test();
    let to = folder.0.join("imported");
    let server = serve_crontabs(&folder, &[]);
    let body = crontab("nightly").to_string();
    server.send("POST", CRONTABS, &[("Content-Type", "application/json")], Some(body.as_bytes()));
    let mut before = read(&server);
    server.terminate();
    let exported = skiff(&["export", "--data-dir", text(&folder.0)]);
    assert!(exported.status.success());
    let file = folder.0.join("exported.yaml");
    std::fs::write(&file, exported.stdout).expect("it writes");
    // A second time it is there already, and the same.
    let import = || skiff_ok(&["import", text(&file), "--data-dir", text(&to)]);
    let (first, second) = (import(), import());
    let count = first.strip_prefix("skiff: imported ").and_then(|rest| rest.strip_suffix(" objects\n"));
    let count = count.unwrap_or_else(|| panic!("{first}"));
    assert_eq!(second, format!("skiff: imported 0 objects; {count} were already there\n"));
    let mut after = read(&Server::start(&to, &[]));
    for object in [&mut before, &mut after] {
        object["metadata"].as_object_mut().expect("it has metadata").remove("resourceVersion");
    }
    assert_eq!(after, before);
}

#[test]
fn nothing_is_restored_over_what_is_there() {
    let folder = Folder::for_test();
    Server::start(&folder.0, &[]).kill();
    let file = folder.0.join("saved.db");
    let data_dir = ["--data-dir", text(&folder.0)];
    skiff_ok(&[&["snapshot", "save", text(&file)], &data_dir[..]].concat());
    let again = skiff(&[&["snapshot", "save", text(&file)], &data_dir[..]].concat());
    assert_eq!(again.status.code(), Some(1));
    let over = skiff(&[&["snapshot", "restore", text(&file)], &data_dir[..]].concat());
    assert_eq!(over.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&over.stderr).contains("holds something already"));
}

#[test]
fn damage_is_found_and_not_restored() {
    let folder = Folder::for_test();
    let restored = folder.0.join("restored");
    Server::start(&folder.0, &[]).kill();
    let file = folder.0.join("saved.db");
    skiff_ok(&["snapshot", "save", text(&file), "--data-dir", text(&folder.0)]);
    let mut bytes = std::fs::read(&file).expect("it reads");
    // The pages behind the first, which says how many there are.
    for byte in &mut bytes[8192..] {
        *byte = !*byte;
    }
    std::fs::write(&file, bytes).expect("it writes");
    let output = skiff(&["snapshot", "restore", text(&file), "--data-dir", text(&restored)]);
    assert_eq!(output.status.code(), Some(1), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(!restored.join("state.db").exists());
}

/// What a client keeps that lists once and then watches, as client-go's informers do.
struct Informer {
    names: BTreeSet<String>,
    revision: String,
}

impl Informer {
    fn list(server: &Server) -> Informer {
        let list = server.send("GET", CRONTABS, &[], None).json();
        let name = |item: &Value| item["metadata"]["name"].as_str().unwrap_or_default().to_owned();
        let names = list["items"].as_array().into_iter().flatten().map(name).collect();
        Informer { names, revision: list["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned() }
    }

    /// Follows the changes until now; lists anew where the server says that it must.
    fn catch_up(&mut self, server: &Server) {
        let watch = format!("{CRONTABS}?watch=true&resourceVersion={}&timeoutSeconds=1", self.revision);
        let seen = server.send("GET", &watch, &[], None);
        for line in seen.body.split(|byte| *byte == b'\n').filter(|line| !line.is_empty()) {
            let event: Value = serde_json::from_slice(line).expect("an event is JSON");
            let object = &event["object"];
            let name = object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
            match event["type"].as_str() {
                Some("ADDED" | "MODIFIED") => _ = self.names.insert(name),
                Some("DELETED") => _ = self.names.remove(&name),
                _ => {
                    assert_eq!((&object["code"], &object["reason"]), (&json!(410), &json!("Expired")));
                    *self = Informer::list(server);
                    return;
                }
            }
            self.revision = object["metadata"]["resourceVersion"].as_str().unwrap_or_default().to_owned();
        }
    }
}

#[test]
fn an_informer_sees_what_a_restore_took_back() {
    let folder = Folder::for_test();
    let restored = folder.0.join("restored");
    let file = folder.0.join("saved.db");
    let server = serve_crontabs(&folder, &[]);
    let create = |server: &Server, name: &str| {
        let body = crontab(name).to_string();
        let made = server.send("POST", CRONTABS, &[("Content-Type", "application/json")], Some(body.as_bytes()));
        assert_eq!(made.status, 201);
    };
    create(&server, "saved");
    create(&server, "deleted-after");
    let mut informer = Informer::list(&server);
    skiff_ok(&["snapshot", "save", text(&file), "--data-dir", text(&folder.0)]);
    create(&server, "made-after");
    let gone = server.send("DELETE", &format!("{CRONTABS}/deleted-after"), &[], None);
    assert_eq!(gone.status, 200);
    informer.catch_up(&server);
    assert_eq!(informer.names.iter().collect::<Vec<_>>(), ["made-after", "saved"]);
    server.kill();

    skiff_ok(&["snapshot", "restore", text(&file), "--data-dir", text(&restored)]);
    let server = Server::start(&restored, &[]);
    create(&server, "new");
    informer.catch_up(&server);
    assert_eq!(informer.names.iter().collect::<Vec<_>>(), ["deleted-after", "new", "saved"]);
    create(&server, "newer");
    informer.catch_up(&server);
    assert_eq!(informer.names, Informer::list(&server).names);
}
