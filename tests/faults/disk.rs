//! A disk that refuses writes for a while.

use super::{REFUSE, start};
use crate::api::{CRONTABS, crontab, crontabs_file};
use crate::server::{Folder, Server};

fn post(server: &Server, name: &str) -> (u16, String) {
    let body = crontab(name).to_string();
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

    std::fs::remove_file(&refuse).expect("it is there");
    assert_eq!(post(&server, "after").0, 201);
    server.kill();
    assert_eq!(names(&Server::start(&folder.0.join("data"), &[])), ["after", "before"]);
}

#[test]
fn a_full_disk_refuses_writes_and_keeps_what_was_there() {
    const ENOSPC: i32 = 28;
    check(ENOSPC, "the database is full");
}

/// As a system makes it of a disk that has failed.
#[test]
fn a_disk_that_is_read_only_refuses_writes_and_keeps_what_was_there() {
    const EROFS: i32 = 30;
    check(EROFS, "the database failed");
}
