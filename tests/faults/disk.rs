//! A disk that is full for a while.

use super::{FULL, start};
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

#[test]
fn a_full_disk_refuses_writes_and_keeps_what_was_there() {
    let folder = Folder::for_test();
    let (file, full) = (crontabs_file(), folder.0.join("full"));
    let arguments = ["--crds", file.to_str().expect("the path is text")];
    let server = start(&folder.0.join("data"), &arguments, &[(FULL, &full)]);
    assert_eq!(post(&server, "before").0, 201);

    std::fs::write(&full, "").expect("this disk has room");
    for _ in 0..3 {
        let (status, message) = post(&server, "meanwhile");
        assert_eq!(status, 500);
        assert!(message.contains("the database is full"), "{message}");
    }
    assert_eq!(names(&server), ["before"]);

    std::fs::remove_file(&full).expect("it is there");
    assert_eq!(post(&server, "after").0, 201);
    server.kill();
    assert_eq!(names(&Server::start(&folder.0.join("data"), &[])), ["after", "before"]);
}
