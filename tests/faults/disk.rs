//! A disk that refuses writes for a while.

use serde_json::{Value, json};
use uuid::Uuid;

use super::{FOLDER, REFUSE, ROOM, shim, start};
use crate::api::{CRONTABS, crontab, crontabs_file};
use crate::server::{Folder, Server};
use crate::store::postgres;

const ENOSPC: i32 = 28;

fn post(server: &Server, name: &str) -> (u16, String) {
    post_object(server, &crontab(name))
}

fn post_object(server: &Server, object: &Value) -> (u16, String) {
    let body = object.to_string();
    let answer = server.send("POST", CRONTABS, &[("Content-Type", "application/json")], Some(body.as_bytes()));
    (answer.status, answer.json()["message"].as_str().unwrap_or_default().to_owned())
}

fn names(server: &Server) -> Vec<String> {
    let list = server.send("GET", CRONTABS, &[], None);
    assert_eq!(list.status, 200);
    let list = list.json();
    let items = list["items"].as_array().into_iter().flatten();
    items.map(|item| item["metadata"]["name"].as_str().unwrap_or_default().to_owned()).collect()
}

/// Writes fail with an error of the system for a while, and say so.
fn check(error_number: i32, says: &str) {
    let folder = Folder::for_test();
    let (file, refuse) = (crontabs_file(), folder.0.join("refuse"));
    let arguments = ["--crds", file.to_str().expect("the path is text")];
    let server = start(&folder.0.join("data"), &arguments, &[(REFUSE, &refuse)]);
    assert_eq!(post(&server, "before").0, 201);

    std::fs::write(&refuse, error_number.to_string()).expect("this disk takes it");
    for _ in 0..3 {
        let (status, message) = post(&server, "meanwhile");
        assert_eq!(status, 500);
        assert!(message.contains(says), "{message}");
    }
    assert_eq!(names(&server), ["before"]);
    let ready = |path: &str| server.send("GET", path, &[], None);
    let why = ready("/readyz/etcd");
    let why = (why.status, String::from_utf8_lossy(&why.body).into_owned());
    assert!(why.0 == 500 && why.1.contains(says), "{why:?}");
    assert_eq!((ready("/readyz").status, ready("/livez").status), (500, 200));

    std::fs::remove_file(&refuse).expect("it is there");
    assert_eq!(ready("/readyz").status, 200);
    assert_eq!(post(&server, "after").0, 201);
    server.kill();
    assert_eq!(names(&Server::start(&folder.0.join("data"), &[])), ["after", "before"]);
}

#[test]
fn a_full_disk_refuses_writes_and_keeps_what_was_there() {
    check(ENOSPC, "the database is full");
}

/// As a system makes it of a disk that has failed.
#[test]
fn a_disk_that_is_read_only_refuses_writes_and_keeps_what_was_there() {
    const EROFS: i32 = 30;
    check(EROFS, "the database failed");
}

#[test]
fn on_a_full_disk_objects_are_deleted_and_their_room_is_used_again() {
    /// Writes until no page is free.
    const WRITES_MAX: usize = 100;
    let folder = Folder::for_test();
    let (file, room) = (crontabs_file(), folder.0.join("room"));
    let data = folder.0.join("data");
    let server = start(&data, &["--crds", file.to_str().expect("the path is text")], &[(ROOM, &room)]);
    let large = |at: usize| {
        let mut object = crontab(&format!("large-{at:03}"));
        object["metadata"]["annotations"] = json!({"text": "x".repeat(200_000)});
        post_object(&server, &object)
    };
    assert_eq!(large(0).0, 201);
    let sizes = std::fs::read_dir(&data).expect("it is there").flatten().filter_map(|entry| entry.metadata().ok());
    let taken: u64 = sizes.filter(|file| file.is_file()).map(|file| file.len()).sum();
    std::fs::write(&room, taken.to_string()).expect("this disk takes it");

    let (stored, (status, message)) =
        (1..WRITES_MAX).map(|at| (at, large(at))).find(|(_, answer)| answer.0 != 201).expect("the disk becomes full");
    assert!(status == 500 && message.contains("the database is full"), "{status}: {message}");
    assert_eq!(server.send("GET", "/readyz", &[], None).status, 500);
    for at in 0..stored {
        let path = format!("{CRONTABS}/large-{at:03}");
        assert_eq!(server.send("DELETE", &path, &[], None).status, 200, "{at} of {stored}");
    }
    assert!(names(&server).is_empty());
    std::fs::remove_file(&room).expect("it is there");
    assert_eq!(server.send("GET", "/readyz", &[], None).status, 200);
    assert_eq!(post(&server, "after").0, 201);
    server.kill();
    assert_eq!(names(&Server::start(&data, &[])), ["after"]);
}

#[test]
fn a_postgres_whose_disk_is_full_refuses_writes_and_keeps_what_was_there() {
    /// Writes until the tables need more room than they have; a transaction that failed leaves some.
    const WRITES_MAX: usize = 500;
    let Some(mut cluster) = postgres::own_cluster() else { return };
    let (library, refuse) = (cluster.data().join("shim.so"), cluster.data().join("refuse"));
    std::fs::copy(shim(), &library).expect("it is there");
    let data = cluster.data().to_owned();
    cluster.start_with(&[("LD_PRELOAD", &library), (FOLDER, &data), (REFUSE, &refuse)]);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime starts");
    let url = runtime.block_on(postgres::create_database(cluster.port()));
    let (folder, file) = (Folder::for_test(), crontabs_file());
    let arguments = ["--store", &url, "--crds", file.to_str().expect("the path is text")];
    let server = Server::start_in(&folder.0, &arguments, &[]);
    assert_eq!(post(&server, "before").0, 201);

    std::fs::write(&refuse, ENOSPC.to_string()).expect("this disk takes it");
    let mut kept = vec!["before".to_owned()];
    let (status, message) = loop {
        assert!(kept.len() < WRITES_MAX, "there is always room");
        let name = format!("meanwhile-{:03}", kept.len());
        let mut object = crontab(&name);
        // Does not become much smaller.
        let text: String = (0..400).map(|_| Uuid::new_v4().to_string()).collect();
        object["metadata"]["annotations"] = json!({"text": text});
        match post_object(&server, &object) {
            (201, _) => kept.push(name),
            refused => break refused,
        }
    };
    assert_eq!(status, 500);
    assert!(message.contains("the database is full"), "{message}");
    assert_eq!(names(&server), kept);

    std::fs::remove_file(&refuse).expect("it is there");
    assert_eq!(post(&server, "room").0, 201);
    server.kill();
    let again = Server::start_in(&folder.0, &arguments, &[]);
    assert_eq!(names(&again), [kept, vec!["room".to_owned()]].concat());
}
