//! A clock that is set back while a server runs.

use super::{CLOCK, FOLDER, shim, start};
use crate::api::{CRONTABS, crontab, crontabs_file};
use crate::server::{Folder, Server};

/// Creates a CronTab; its resourceVersion, and when it was created.
fn create(server: &Server, name: &str) -> (i64, String) {
    let body = crontab(name).to_string();
    let answer = server.send("POST", CRONTABS, &[("Content-Type", "application/json")], Some(body.as_bytes()));
    assert_eq!(answer.status, 201);
    let metadata = &answer.json()["metadata"];
    let revision = metadata["resourceVersion"].as_str().and_then(|text| text.parse().ok()).expect("a number");
    (revision, metadata["creationTimestamp"].as_str().expect("it has a time").to_owned())
}

#[test]
fn a_clock_that_is_set_back_changes_no_order() {
    let folder = Folder::for_test();
    let (file, clock) = (crontabs_file(), folder.0.join("clock"));
    let data = folder.0.join("data");
    let arguments = ["--crds", file.to_str().expect("the path is text")];
    let server = start(&data, &arguments, &[(CLOCK, &clock)]);
    let (before, at) = create(&server, "before");

    std::fs::write(&clock, "-7200").expect("it writes");
    let (after, earlier) = create(&server, "after");
    assert!(after > before);
    assert!(earlier < at, "{earlier} is before {at}");
    let watch = format!("{CRONTABS}?watch=true&resourceVersion={before}&timeoutSeconds=1");
    let seen = server.send("GET", &watch, &[], None);
    assert!(String::from_utf8_lossy(&seen.body).contains(r#""name":"after""#));
    server.kill();

    // It starts in the past, too, and its controllers take over from those that ended in the future.
    let server = start(&data, &arguments, &[(CLOCK, &clock)]);
    assert!(create(&server, "again").0 > after);
    assert_eq!(server.send("DELETE", "/api/v1/namespaces/default", &[], None).status, 403);
    let list = server.send("GET", CRONTABS, &[], None).json();
    assert_eq!(list["items"].as_array().map(Vec::len), Some(3));
}

#[test]
fn a_clock_before_1970_is_told() {
    let folder = Folder::for_test();
    let (clock, data) = (folder.0.join("clock"), folder.0.join("data"));
    std::fs::create_dir_all(&data).expect("the folder can be made");
    std::fs::write(&clock, "-3000000000").expect("it writes");
    let variables = [("LD_PRELOAD", shim()), (FOLDER, data.as_path()), (CLOCK, clock.as_path())];
    let (code, stderr) = Server::fail_to_start_in(&data, &[], &variables);
    assert_eq!(code, Some(1), "{stderr}");
    assert!(stderr.contains("the clock of this machine is before 1970"), "{stderr}");
}
