//! A process's life: it starts, is stopped or killed, and starts again on what it stored.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};

use super::{CRONTABS, crontab, serve_crontabs};
use crate::server::{Answer, Folder, Server};

fn post(server: &Server, path: &str, object: &Value) -> Answer {
    let body = object.to_string();
    server.send("POST", path, &[("Content-Type", "application/json")], Some(body.as_bytes()))
}

fn get(server: &Server, path: &str) -> Value {
    let answer = server.send("GET", path, &[], None);
    assert_eq!(answer.status, 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
    answer.json()
}

/// The names of a list's objects.
fn names(list: &Value) -> Vec<&str> {
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| item["metadata"]["name"].as_str().unwrap_or_default()).collect()
}

#[test]
fn a_restart_keeps_everything() {
    let folder = Folder::for_test();
    let paths = [
        "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/crontabs.stable.example.com",
        "/api/v1/namespaces",
        CRONTABS,
    ];
    let state = |server: &Server| {
        paths.map(|path| {
            let mut found = get(server, path);
            if found.get("items").is_some() {
                // The server itself still writes into the new namespaces.
                found["metadata"]["resourceVersion"] = Value::Null;
            }
            found
        })
    };
    let server = serve_crontabs(&folder, &[]);
    let team = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "team"}});
    assert_eq!(post(&server, "/api/v1/namespaces", &team).status, 201);
    assert_eq!(post(&server, CRONTABS, &crontab("nightly")).status, 201);
    let before = state(&server);
    assert_eq!(server.terminate().0, Some(0));

    let server = Server::start(&folder.0, &[]);

    assert_eq!(state(&server), before);
    assert_eq!(post(&server, CRONTABS, &crontab("hourly")).status, 201);
}

#[test]
fn a_restart_keeps_the_identities() {
    let folder = Folder::for_test();
    let authority = |server: &Server| {
        let kubeconfig = std::fs::read_to_string(&server.kubeconfig).expect("it is written before the server is ready");
        kubeconfig.lines().find(|line| line.contains("certificate-authority-data")).map(str::to_owned)
    };
    let server = Server::start(&folder.0, &[]);
    let before = authority(&server);
    assert!(before.is_some());
    server.kill();

    assert_eq!(authority(&Server::start(&folder.0, &[])), before);
}

#[test]
fn only_its_owner_reads_the_kubeconfig() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let metadata = std::fs::metadata(&server.kubeconfig).expect("it is written before the server is ready");
    assert_eq!(metadata.permissions().mode() & 0o777, 0o600);
}

#[test]
fn memory_is_empty_after_a_restart() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    assert_eq!(post(&server, CRONTABS, &crontab("nightly")).status, 201);
    server.kill();

    let server = serve_crontabs(&folder, &["--store", "memory"]);

    assert_eq!(get(&server, CRONTABS)["items"], json!([]));
}

#[test]
fn a_killed_server_loses_nothing_that_it_acknowledged() {
    const ROUNDS: usize = 20;
    const WRITERS: usize = 4;
    let folder = Folder::for_test();
    let mut acknowledged: Vec<String> = Vec::new();
    for round in 0..ROUNDS {
        let server = serve_crontabs(&folder, &[]);
        holds(&server, &acknowledged);
        let killed = AtomicBool::new(false);
        let write = |writer: usize| {
            let mut written = Vec::new();
            for count in 0.. {
                let name = format!("r{round}-w{writer}-{count}");
                if killed.load(Ordering::SeqCst) || !is_created(&server, &name) {
                    break;
                }
                written.push(name);
            }
            written
        };
        let write = &write;
        let written: Vec<String> = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS).map(|writer| scope.spawn(move || write(writer))).collect();
            // The kill meets another moment in every round.
            std::thread::sleep(Duration::from_millis(20 + 7 * round as u64 % 50));
            server.signal("KILL");
            killed.store(true, Ordering::SeqCst);
            writers.into_iter().flat_map(|writer| writer.join().expect("no writer panics")).collect()
        });
        acknowledged.extend(written);
    }
    holds(&serve_crontabs(&folder, &[]), &acknowledged);
    assert!(acknowledged.len() >= ROUNDS, "the rounds wrote but {} objects", acknowledged.len());
}

/// That the server has every CronTab of those names.
fn holds(server: &Server, wanted: &[String]) {
    let list = get(server, CRONTABS);
    let kept = names(&list);
    for name in wanted {
        assert!(kept.contains(&name.as_str()), "{name} is lost");
    }
}

/// Whether the server, which may be killed meanwhile, acknowledges that it has created the object.
fn is_created(server: &Server, name: &str) -> bool {
    let body = crontab(name).to_string();
    let Ok(mut stream) = TcpStream::connect(server.plain) else { return false };
    let request = format!(
        "POST {CRONTABS} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut bytes = Vec::new();
    // The head alone acknowledges.
    _ = stream.write_all(request.as_bytes()).and_then(|()| stream.read_to_end(&mut bytes));
    Answer::parse(&bytes).is_some_and(|answer| answer.status == 201)
}

#[test]
fn sigterm_ends_watches_cleanly_and_the_process_with_0() {
    let folder = Folder::for_test();
    let server = serve_crontabs(&folder, &["--store", "memory"]);
    let wait_max = Duration::from_secs(60);
    let mut watch = server.open("GET", &format!("{CRONTABS}?watch=1"), &[], None, wait_max);
    let mut bytes = vec![0; 4096];
    let count = watch.read(&mut bytes).expect("the watch opens");
    bytes.truncate(count);

    assert_eq!(server.terminate().0, Some(0));

    watch.read_to_end(&mut bytes).expect("the stream ends as it should");
    let answer = Answer::parse(&bytes).expect("the watch was answered");
    assert_eq!((answer.status, answer.complete), (200, true));
}

#[test]
fn a_second_process_on_the_same_folder_is_told_so() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &[]);

    let (code, stderr) = Server::fail_to_start(&folder.0, &[]);

    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("is open already"), "{stderr}");
    assert_eq!(names(&get(&server, "/api/v1/namespaces")).len(), 4);
}

#[test]
fn a_taken_port_is_told() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0.join("first"), &["--store", "memory"]);
    let address = server.url.trim_start_matches("https://");

    let (code, stderr) = Server::fail_to_start(&folder.0.join("second"), &["--listen", address]);

    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains(&format!("can't listen on {address}")), "{stderr}");
}

#[test]
fn a_failed_start_leaves_no_folder() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0.join("first"), &["--store", "memory"]);
    let address = server.url.trim_start_matches("https://");
    let (made, kept) = (folder.0.join("deep/below"), folder.0.join("kept"));
    std::fs::create_dir_all(&kept).expect("the folder is ours");
    for data in [&made, &kept] {
        assert_eq!(Server::fail_to_start(data, &["--listen", address]).0, Some(1));
    }
    assert!(!folder.0.join("deep").exists());
    let log = folder.0.join("absent/audit.log");
    assert_eq!(Server::fail_to_start(&made, &["--audit-log-path", &log.to_string_lossy()]).0, Some(1));
    assert!(!folder.0.join("deep").exists());
    assert!(kept.exists());
}

#[test]
fn a_host_may_be_listened_on() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--listen", "localhost:0"]);
    assert!(server.url.starts_with("https://127.0.0.1:"), "{}", server.url);
}

#[test]
fn plain_http_on_the_port_of_tls_is_told_so() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0, &["--store", "memory"]);
    let mut stream = TcpStream::connect(server.url.trim_start_matches("https://")).expect("it listens");
    stream.write_all(b"GET /livez HTTP/1.1\r\nHost: a\r\n\r\n").expect("it reads");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("it answers");
    // As Go's servers do.
    assert_eq!(answer, "HTTP/1.0 400 Bad Request\r\n\r\nClient sent an HTTP request to an HTTPS server.\n");
}

#[test]
fn a_context_is_merged_into_the_kubeconfig_of_kubectl() {
    let folder = Folder::for_test();
    let config = folder.0.join("config");
    std::fs::write(&config, "{kind: Config, contexts: [{name: other, context: {}}]}").expect("the folder is ours");
    let data = folder.0.join("data");
    let server = Server::start_in(&data, &["--merge-kubeconfig=boats"], &[("KUBECONFIG", &config)]);
    let merged = std::fs::read(&config).expect("it is there");
    let merged = kubeskiff::value::yaml::decode(&merged).expect("it is YAML");
    assert_eq!(merged.str_at(&["current-context"]), "boats");
    assert_eq!(merged.items_at(&["contexts"]).len(), 2);
    assert_eq!(merged.items_at(&["clusters"])[0].str_at(&["cluster", "server"]), server.url);
}

#[test]
fn wrong_use_exits_with_2() {
    let folder = Folder::for_test();
    for arguments in [["--store", "tape"], ["--disable-admission-plugins", "Nonsense"], ["--durability", "most"]] {
        assert_eq!(Server::fail_to_start(&folder.0, &arguments).0, Some(2), "{arguments:?}");
    }
}
