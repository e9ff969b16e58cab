//! `skiff fault`, and what it says of wrong use.

use std::process::{Command, Output};

use crate::asking::{CONFIG_MAPS, sure};
use crate::server::{Folder, Server};

fn skiff(server: &Server, arguments: &str) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.args(arguments.split(' ')).env("KUBECONFIG", &server.kubeconfig);
    command.output().expect("the binary was built with the tests")
}

fn ok(server: &Server, arguments: &str) -> String {
    let done = skiff(server, arguments);
    assert!(done.status.success(), "{arguments}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8(done.stdout).expect("it is text")
}

#[tokio::test]
async fn faults_are_added_shown_and_deleted() {
    let folder = Folder::for_test();
    let server = Server::start(&folder.0.join("data"), &["--store", "memory"]);
    assert_eq!(ok(&server, "fault list"), "no faults\n");
    assert_eq!(
        ok(&server, "fault add --verb list --resource configmaps. --error 429 --retry-after 3 --times 1"),
        "1\n"
    );
    assert_eq!(ok(&server, "fault add --verb update,patch --resource pods/status -n a --name b --conflict"), "2\n");
    assert_eq!(ok(&server, "fault add --watch expired --after-events 5 --skip 1"), "3\n");
    assert_eq!(ok(&server, "fault add --delay 10ms --probability 0.5 --seed 1 --path /version"), "4\n");
    let refused = sure(&server, ("GET", CONFIG_MAPS), None).await;
    assert_eq!((refused.code, refused.retry_after.as_deref()), (429, Some("3")));
    let expected = r#"ID    HITS  FAULT
1        1  {"error":{"code":429,"retryAfterSeconds":3},"match":{"group":"","resource":"configmaps","verbs":["list"]},"times":1}
2        0  {"conflict":true,"match":{"name":"b","namespace":"a","resource":"pods","subresource":"status","verbs":["update","patch"]}}
3        0  {"skip":1,"watch":{"afterEvents":5,"end":"expired"}}
4        0  {"delay":"10ms","match":{"path":"/version"},"probability":0.5,"seed":1}
"#;
    assert_eq!(ok(&server, "fault list"), expected);
    assert_eq!(ok(&server, "fault delete 1 3"), "2 removed\n");
    assert_eq!(ok(&server, "fault delete --all"), "2 removed\n");

    let gone = skiff(&server, "fault delete 1");
    assert_eq!(gone.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&gone.stderr).contains("faults.skiff.kubeskiff.dev \"1\" not found"));
    let senseless = skiff(&server, "fault add --delay soon");
    assert!(String::from_utf8_lossy(&senseless.stderr).contains("delay: time: invalid duration \"soon\""));
    assert_eq!(skiff(&server, "fault add --conflict --lose answer").status.code(), Some(2));
}
