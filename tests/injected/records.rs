//! Conversations: recorded between kubectl and a server, and answered again without it.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::{Value, json};

use crate::asking::{CONFIG_MAPS, create, serve, sure};
use crate::kubectl;
use crate::server::{Folder, Server};

/// Runs skiff, with kubectl as its program where `arguments` end with `--`.
fn skiff(folder: &Path, arguments: &[&str], program: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
    command.args(arguments).args(program).current_dir(folder).env("HOME", folder).env_remove("KUBECONFIG");
    command.output().expect("the binary was built with the tests")
}

fn texts(output: &Output) -> (String, String) {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    (text(&output.stdout), text(&output.stderr))
}

/// What kubectl says, through a record of a server and then without the server.
struct Conversation {
    folder: Folder,
    kubectl: &'static Path,
    server: Option<Server>,
}

impl Conversation {
    /// `None` where there is no kubectl.
    fn new() -> Option<Conversation> {
        let kubectl = kubectl::program()?;
        let folder = Folder::for_test();
        let server = serve(&folder);
        Some(Conversation { folder, kubectl, server: Some(server) })
    }

    fn script(&self, name: &str, text: &str) -> PathBuf {
        let path = self.folder.0.join(name);
        let text = text.replace("kubectl", &format!("{} --cache-dir=$(mktemp -d -p .)", self.kubectl.display()));
        std::fs::write(&path, text).expect("the folder is ours");
        path
    }

    fn record(&self, script: &Path) -> Output {
        let kubeconfig = self.server.as_ref().expect("it runs").kubeconfig.display().to_string();
        let script = script.display().to_string();
        let arguments = ["record", "--upstream", &kubeconfig, "--out", "record.jsonl", "--"];
        skiff(&self.folder.0, &arguments, &["sh", &script])
    }

    fn replay(&self, options: &[&str], script: &Path) -> Output {
        let script = script.display().to_string();
        skiff(&self.folder.0, &[&["replay", "record.jsonl"], options, &["--"]].concat(), &["sh", &script])
    }

    fn lines(&self) -> Vec<Value> {
        let text = std::fs::read_to_string(self.folder.0.join("record.jsonl")).expect("it was written");
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
    }
}

#[tokio::test]
async fn a_conversation_is_the_same_without_its_server() {
    let Some(mut conversation) = Conversation::new() else { return };
    create(conversation.server.as_ref().expect("it runs"), "first").await;
    let script = conversation.script(
        "script",
        "kubectl get configmaps\nkubectl create configmap second --from-literal=a=b\nkubectl get configmaps\n\
         kubectl get configmap third\nkubectl delete configmap second\n",
    );
    let recorded = conversation.record(&script);
    let (said, told) = texts(&recorded);
    assert!(said.contains("configmap/second created") && said.contains("first"), "{said}{told}");
    assert_eq!(recorded.status.code(), Some(0), "the last command succeeds: {told}");
    assert!(told.contains("requests are in `record.jsonl`"), "{told}");
    assert!(!conversation.folder.0.join("record.jsonl.kubeconfig").exists());
    drop(conversation.server.take());

    let replayed = conversation.replay(&[], &script);
    let (said_again, told) = texts(&replayed);
    assert_eq!((said_again, replayed.status.code()), (said, Some(0)), "{told}");
    assert!(told.contains(" 0 new, 0 not asked again"), "{told}");

    let other = conversation.script("other", "kubectl get secrets || true\n");
    let replayed = conversation.replay(&[], &other);
    let (_, told) = texts(&replayed);
    assert_eq!(replayed.status.code(), Some(1), "{told}");
    assert!(told.contains("new: GET /api/v1/namespaces/default/secrets?limit=500"), "{told}");
}

#[tokio::test]
async fn a_watch_is_played_as_it_came() {
    let Some(mut conversation) = Conversation::new() else { return };
    let server = conversation.server.as_ref().expect("it runs");
    create(server, "first").await;
    let watch = "kubectl get configmaps --watch --output-watch-events --no-headers --request-timeout=2s\ntrue\n";
    let script = conversation.script("script", watch);
    let recorded = std::thread::scope(|scope| {
        let recording = scope.spawn(|| conversation.record(&script));
        while !server.stderr().contains("begins") {
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        let second = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "second"}});
        server.send("POST", CONFIG_MAPS, &[("Content-Type", "application/json")], Some(second.to_string().as_bytes()));
        recording.join().expect("it does not panic")
    });
    let (said, told) = texts(&recorded);
    let names = |said: &str| -> Vec<String> {
        said.lines().map(|line| line.split_whitespace().take(2).collect::<Vec<_>>().join(" ")).collect()
    };
    assert_eq!(names(&said), ["ADDED first", "ADDED second"], "{told}");
    let parts: Vec<_> = conversation.lines().into_iter().filter(|line| line.get("data").is_some()).collect();
    assert_eq!(parts.len(), 1, "an event is a part: {parts:?}");
    assert!(parts[0]["afterMs"].is_u64());
    drop(conversation.server.take());
    let replayed = conversation.replay(&["--at-once"], &script);
    let (said, told) = texts(&replayed);
    assert_eq!(names(&said), ["ADDED first", "ADDED second"], "{told}");
    assert_eq!(replayed.status.code(), Some(0), "{told}");
}

#[tokio::test]
async fn secrets_and_tokens_stay_out_of_the_file() {
    let Some(conversation) = Conversation::new() else { return };
    let server = conversation.server.as_ref().expect("it runs");
    let account = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot"}});
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    assert_eq!(sure(server, ("POST", accounts), Some(&account)).await.code, 201);
    let script = conversation.script(
        "script",
        "kubectl create secret generic s --from-literal=password=correct-horse\nkubectl get secret s -o yaml\n\
         kubectl get secrets -o json\nkubectl patch secret s -p '{\"stringData\":{\"other\":\"battery-staple\"}}'\n\
         echo '{\"apiVersion\":\"v1\",\"kind\":\"Secret\",\"metadata\":{\"name\":\"t\"},\"stringData\":{\"p\":\"tr0ub4dor\"}}' | kubectl apply -f -\n\
         kubectl create token robot\n",
    );
    let recorded = conversation.record(&script);
    let (said, told) = texts(&recorded);
    assert_eq!(recorded.status.code(), Some(0), "{told}");
    let token = said.lines().last().expect("a token comes last").to_owned();
    assert!(token.len() > 100 && said.contains("Y29ycmVjdC1ob3JzZQ=="), "the program gets what there is: {said}");
    let text = std::fs::read_to_string(conversation.folder.0.join("record.jsonl")).expect("it was written");
    for secret in [
        "correct-horse",
        "Y29ycmVjdC1ob3JzZQ",
        "battery-staple",
        "YmF0dGVyeS1zdGFwbGU",
        "tr0ub4dor",
        "dHIwdWI0ZG9y",
        &token,
    ] {
        assert!(!text.contains(secret), "{secret} is in the record");
    }
    assert!(conversation.lines().iter().all(|line| line["request"]["headers"]["authorization"].is_null()));
    assert!(text.contains("bWFza2Vk") && text.contains(r#"\"token\":\"masked\""#));
    // What is asked again is masked before it is compared.
    let replayed = conversation.replay(&[], &script);
    let (said, told) = texts(&replayed);
    assert!(said.contains("secret/s created") && told.contains(" 0 new"), "{told}");
}

/// What the recorder refused is refused again, with the same words, and is not new.
#[tokio::test]
async fn a_refusal_is_in_the_record() {
    let Some(mut conversation) = Conversation::new() else { return };
    let server = conversation.server.as_ref().expect("it runs");
    let pod = json!({"kind": "Pod", "metadata": {"name": "a"}, "spec": {"containers": [{"name": "a", "image": "a"}]}});
    let path = "/api/v1/namespaces/default/pods";
    sure(server, ("POST", path), Some(&pod)).await;
    let script = conversation.script("script", "kubectl exec a -- true\ntrue\n");
    let recorded = texts(&conversation.record(&script));
    assert!(recorded.1.contains("exec, attach and port-forward can't be recorded"), "{recorded:?}");
    drop(conversation.server.take());
    let replayed = conversation.replay(&[], &script);
    let (_, told) = texts(&replayed);
    assert!(told.contains("exec, attach and port-forward can't be recorded") && told.contains(" 0 new"), "{told}");
    assert_eq!(replayed.status.code(), Some(0), "{told}");
}

/// As where the recorder was killed, or the disk was full.
#[test]
fn a_last_line_that_is_cut_off_does_not_count() {
    let folder = Folder::for_test();
    let text = "{\"format\":\"skiff-record/v1\"}\n{\"id\":1,\"requ";
    std::fs::write(folder.0.join("a"), text).expect("the folder is ours");
    let replayed = skiff(&folder.0, &["replay", "a", "--", "true"], &[]);
    assert_eq!(replayed.status.code(), Some(0), "{replayed:?}");
}

#[test]
fn what_is_not_a_record_is_refused() {
    let folder = Folder::for_test();
    std::fs::write(folder.0.join("a"), "{}\n").expect("the folder is ours");
    let refused = skiff(&folder.0, &["replay", "a", "--", "true"], &[]);
    assert_eq!(refused.status.code(), Some(1));
    assert!(texts(&refused).1.contains("`a`: it is not a record: its first line has no format skiff-record/v1"));
    let format = r#"{"format":"skiff-record/v1"}"#;
    for (line, why) in [
        ("{", "line 2: "),
        ("{}", "line 2: it has no id"),
        (r#"{"id":1,"data":"a"}"#, "line 2: its request does not stand before it"),
        (r#"{"id":1,"request":{},"response":{}}"#, "line 2: a response has no code"),
    ] {
        std::fs::write(folder.0.join("a"), format!("{format}\n{line}\n")).expect("the folder is ours");
        let (_, told) = texts(&skiff(&folder.0, &["replay", "a", "--", "true"], &[]));
        assert!(told.contains(why), "{line}: {told}");
    }
}
