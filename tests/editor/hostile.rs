//! Messages that nobody should send, in an order that nobody should send them in.

use serde_json::{Value, json};

use crate::client::{Client, Folder};
use crate::session::BOATS;

#[test]
fn what_is_not_a_message_ends_nothing() {
    let mut client = Client::unstarted();
    let id = client.ask("textDocument/hover", json!({}));
    assert_eq!(client.answer(id)["error"]["code"], -32002);
    let bodies =
        ["{", "[]", "null", "{\"id\": 7}", "{\"jsonrpc\":\"2.0\",\"id\":8,\"method\":\"initialize\",\"params\":3}"];
    for body in bodies {
        client.send_bytes(format!("Content-Length: {}\r\n\r\n{body}", body.len()).as_bytes());
        assert!(client.receive()["error"]["code"].is_number(), "{body}");
    }
    client.send_bytes(b"nonsense\r\n\r\nContent-Length: x\r\nX-A: b\r\n");
    client.send_bytes(b"Content-Length: 2\r\n\r\n\xff\xfe");
    assert_eq!(client.receive()["error"]["code"], -32700);
    client.request("initialize", json!({"capabilities": {}}));
    client.notify("initialized", json!({}));
    for method in [
        "textDocument/didOpen",
        "textDocument/didChange",
        "textDocument/didClose",
        "workspace/didChangeWatchedFiles",
        "x",
    ] {
        client.notify(method, json!({"textDocument": 3}));
    }
    let id = client.ask("textDocument/completion", json!([1]));
    assert_eq!(client.answer(id)["error"]["code"], -32602);
    let id = client.ask("workspace/unknown", json!({}));
    assert_eq!(client.answer(id)["error"]["code"], -32601);
    client.open("file:///a.yaml", "a: [");
    assert_eq!(client.faults("file:///a.yaml").len(), 1);
    // Edits behind the end, with their ends in the wrong order, and in texts that are not open.
    client.edit("file:///a.yaml", ((99, 99), (0, 3)), "{}");
    assert_eq!(client.faults("file:///a.yaml"), Vec::<String>::new());
    client.edit("file:///b.yaml", ((0, 0), (0, 0)), "x");
    assert_eq!(client.at("textDocument/hover", "file:///b.yaml", (0, 0)), Value::Null);
    assert_eq!(client.stop(), Some(0));
}

#[test]
fn the_end_of_what_it_reads_ends_the_server() {
    assert_eq!(Client::start(None).hang_up(), Some(1));
}

#[test]
fn a_request_that_is_cancelled_is_not_answered_with_a_result() {
    let folder = Folder::new("cancel", &[("crds/boats.yaml", BOATS)]);
    let mut client = Client::start(Some(&folder.0));
    let uri = folder.uri("a.yaml");
    client.open(&uri, &"a: b\n".repeat(100_000));
    // All are read before the first is answered, or nearly.
    let position = json!({"textDocument": {"uri": uri}, "position": {"line": 3, "character": 1}});
    let ids: Vec<i64> = (0..200).map(|_| client.ask("textDocument/hover", position.clone())).collect();
    for id in &ids {
        client.notify("$/cancelRequest", json!({"id": id}));
    }
    let answers: Vec<Value> = ids.iter().map(|id| client.answer(*id)).collect();
    assert!(
        answers.iter().all(|answer| answer.get("result").is_some() || answer["error"]["code"] == -32800),
        "{answers:?}"
    );
    assert_eq!(client.stop(), Some(0));
}

#[test]
fn the_newest_edit_wins() {
    let folder = Folder::new("newest", &[("crds/boats.yaml", BOATS)]);
    let mut client = Client::start(Some(&folder.0));
    let uri = folder.uri("crds/boats.yaml");
    client.open(&uri, BOATS);
    for _ in 0..100 {
        client.edit(&uri, ((23, 25), (23, 26)), "x");
        client.edit(&uri, ((23, 25), (23, 26)), "2");
    }
    assert_eq!(client.faults(&uri), Vec::<String>::new());
    assert_eq!(client.stop(), Some(0));
}

#[test]
fn texts_that_are_odd_are_answered() {
    let mut client = Client::start(None);
    let deep = format!("a: {}", "[".repeat(20_000));
    let steps: String = (0..300).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    let items = "- ".repeat(5000);
    let texts = [
        "",
        "\u{feff}a: 1",
        "\t",
        "\r\r\n",
        "---\n---\n%YAML\n",
        "a: &x\nb: *x",
        "? a\n: b",
        "- - -",
        "'",
        "\"",
        "{",
        "a: |",
        &deep,
        &steps,
        &items,
    ];
    for text in texts {
        let uri = "file:///odd.yaml";
        client.open(uri, text);
        client.diagnostics(uri);
        let document = json!({"textDocument": {"uri": uri}});
        client.request("textDocument/documentSymbol", document.clone());
        client.request("textDocument/semanticTokens/full", document);
        for at in [(0, 0), (0, 1), (1, 0), (0, 9999), (9999, 0)] {
            for method in ["textDocument/completion", "textDocument/hover", "textDocument/definition"] {
                client.at(method, uri, at);
            }
            client.actions(uri, at);
        }
    }
    assert_eq!(client.stop(), Some(0));
}
