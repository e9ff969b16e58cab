//! Questions of the page over HTTP, good and bad.

use std::time::{Duration, Instant};

use serde_json::{Value, json};

use super::program::{ask, playground, send};

const PATHS: [&str; 6] = ["/evaluate", "/complete", "/fix", "/bound", "/case", "/user"];

#[test]
fn examples_are_served_and_evaluated() {
    let (_program, address) = playground();
    let host = format!("host: {address}");
    let examples = send(address, &["GET /examples HTTP/1.1", &host], b"").json();
    let examples = examples.as_array().expect("they are a list");
    assert!(examples.len() >= 9);
    for example in examples {
        let answer = ask(address, "/evaluate", example.to_string().as_bytes());
        assert_eq!(answer.status, 200, "{}", answer.body);
        let outcome = answer.json()["verdict"]["outcome"].as_str().map(str::to_owned);
        assert!(
            ["admitted", "refused", "unknown-fields"].contains(&outcome.as_deref().unwrap_or_default()),
            "{outcome:?}"
        );
        assert!(ask(address, "/case", example.to_string().as_bytes()).json()["text"].is_string());
    }
}

#[test]
fn bad_questions_are_refused_with_words() {
    let (_program, address) = playground();
    let check = |path: &str, body: &[u8], status: u16| {
        let answer = ask(address, path, body);
        assert_eq!(answer.status, status, "{path} {}", String::from_utf8_lossy(body));
        assert!(answer.json()["error"].is_string(), "{}", answer.body);
    };
    for path in PATHS {
        check(path, b"", 400);
        check(path, b"{", 400);
        check(path, b"\xff\xfe", 400);
        check(path, br#"{"definition":1}"#, 400);
        check(path, br#"{"minors":"1.2"}"#, 400);
        check(path, &vec![b' '; (2 << 20) + 1], 413);
    }
    check("/complete", b"{}", 400);
    check("/complete", br#"{"pane":"object","line":-1,"column":0}"#, 400);
    check("/fix", br#"{"finding":"a"}"#, 400);
    check("/none", b"{}", 404);
    let host = format!("host: {address}");
    let lines = ["POST /evaluate HTTP/1.1", &host, "content-type: text/plain"];
    assert_eq!(send(address, &lines, b"{}").status, 415);
    for method in ["PUT", "DELETE", "OPTIONS", "TRACE"] {
        assert_eq!(send(address, &[&format!("{method} / HTTP/1.1"), &host], b"").status, 405, "{method}");
    }
    for path in ["/../Cargo.toml", "/page.js/", "/live/api", "/%2e%2e/x", "//"] {
        assert_eq!(send(address, &[&format!("GET {path} HTTP/1.1"), &host], b"").status, 404, "{path}");
    }
}

/// Texts that are deep, wide or cyclic, and questions beyond their ends.
#[test]
fn hostile_texts_are_answered() {
    let (_program, address) = playground();
    let deep = "[".repeat(200_000);
    let nested: String = (0..5000).map(|at| format!("{}a:\n", " ".repeat(at))).take(300).collect();
    let bomb = format!("a: &a [x,x,x,x,x,x,x,x]\n{}", (b'b'..=b'z').map(|at| {
        let (name, before) = (char::from(at), char::from(at - 1));
        format!("{name}: &{name} [*{before},*{before},*{before},*{before},*{before},*{before},*{before},*{before}]\n")
    }).collect::<String>());
    let keys: String = (0..50_000).map(|at| format!("k{at}: 1\n")).collect();
    for text in [&deep, &nested, &bomb, &keys, "\u{0}\u{1}", "---\n".repeat(10_000).as_str()] {
        for pane in ["definition", "object", "old", "request"] {
            let mut sent = json!({ "pane": pane, "line": 99_999_999, "column": 99_999_999, "finding": u32::MAX });
            sent[pane] = Value::from(text);
            for path in PATHS {
                let answer = ask(address, path, sent.to_string().as_bytes());
                assert!([200, 422].contains(&answer.status), "{path} {pane}: {} {}", answer.status, answer.body);
            }
        }
    }
}

/// A rule that is let run for very long is ended, and others are answered after it.
#[test]
fn long_thoughts_are_ended() {
    let (_program, address) = playground();
    let rules: String = (0..400)
        .map(|at| {
            format!("            - rule: self.a.all(x, self.a.all(y, self.a.exists(z, z == x + y || z == {at})))\n")
        })
        .collect();
    let definition = format!(
        "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {{name: as.example.com}}\nspec:\n  group: \
         example.com\n  scope: Cluster\n  names: {{plural: as, kind: A}}\n  versions:\n  - name: v1\n    served: true\n    storage: true\n    schema:\n      \
         openAPIV3Schema:\n        type: object\n        properties:\n          spec:\n            type: object\n            properties:\n              \
         a: {{type: array, items: {{type: integer}}}}\n            x-kubernetes-validations:\n{rules}"
    );
    let numbers: Vec<u32> = (0..3000).collect();
    let object =
        json!({"apiVersion": "example.com/v1", "kind": "A", "metadata": {"name": "a"}, "spec": {"a": numbers}});
    let sent = json!({ "definition": definition, "object": object.to_string() }).to_string();
    let begun = Instant::now();
    let answer = ask(address, "/evaluate", sent.as_bytes());
    assert!([200, 422].contains(&answer.status), "{} {}", answer.status, answer.body);
    assert!(begun.elapsed() < Duration::from_secs(30), "{:?}", begun.elapsed());
    assert_eq!(ask(address, "/evaluate", b"{}").status, 200);
}
