//! Records of programs that go on: informers, watches that end in each way, bytes that are no JSON; recorded and answered
//! without a program of `skiff`'s own, until SIGTERM.

use std::io::{BufRead as _, BufReader, Lines};
use std::path::Path;
use std::pin::pin;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use futures_util::{Stream, TryStreamExt as _};
use http_body_util::BodyExt as _;
use hyper::Request;
use k8s_openapi::api::core::v1::ConfigMap;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::runtime::watcher::{self, Event, watcher};
use kube::{Api, Client, ResourceExt as _};
use serde_json::{Value, json};
use tokio::time::{Instant, timeout};

use crate::asking::{CONFIG_MAPS, PATIENCE, add, clear, create, serve};
use crate::server::{Folder, Server};

/// Long enough for what would come at once.
const SHORT: Duration = Duration::from_millis(200);

/// `skiff record` or `skiff replay`, and a client of it.
struct Front {
    child: Child,
    stdout: Lines<BufReader<ChildStdout>>,
    client: Client,
}

impl Front {
    async fn start(folder: &Folder, arguments: &[&str]) -> Front {
        let mut command = Command::new(env!("CARGO_BIN_EXE_skiff"));
        command.args(arguments).current_dir(&folder.0).env("HOME", &folder.0).env_remove("KUBECONFIG");
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().expect("the binary was built with the tests");
        let mut stdout = BufReader::new(child.stdout.take().expect("it is a pipe")).lines();
        let mut line = || stdout.next().expect("it goes on").expect("it is text");
        assert!(line().starts_with("ready https://127.0.0.1:"));
        let export = line();
        let path = export.strip_prefix("export KUBECONFIG=").expect("it says where the kubeconfig is");
        assert_eq!(Path::new(path), folder.0.join("record.jsonl.kubeconfig"));
        let kubeconfig = Kubeconfig::read_from(path).expect("it is a kubeconfig");
        let config = kube::Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await;
        let client = Client::try_from(config.expect("it has a context")).expect("it has certificates");
        Front { child, stdout, client }
    }

    async fn record(folder: &Folder, server: &Server) -> Front {
        let upstream = server.kubeconfig.display().to_string();
        Front::start(folder, &["record", "--upstream", &upstream, "--out", "record.jsonl"]).await
    }

    async fn replay(folder: &Folder) -> Front {
        Front::start(folder, &["replay", "record.jsonl"]).await
    }

    /// Ends it as a service manager does; its exit code, and what it told.
    fn end(self, folder: &Folder) -> (Option<i32>, String) {
        let pid = rustix::process::Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::TERM).expect("it runs");
        assert_eq!(self.stdout.count(), 0, "it prints nothing else");
        let ended = self.child.wait_with_output().expect("it is ours");
        let told = String::from_utf8(ended.stderr).expect("it is text");
        assert!(!folder.0.join("record.jsonl.kubeconfig").exists(), "nobody needs it any more");
        (ended.status.code(), told)
    }

    async fn get(&self, path: &str, accept: &str) -> hyper::Response<Body> {
        let request = Request::builder().uri(path).header("Accept", accept);
        let request = request.body(Body::empty()).expect("it is a request");
        self.client.send(request).await.expect("it is answered")
    }

    async fn watch(&self, query: &str) -> Body {
        self.get(&format!("{CONFIG_MAPS}?watch=1{query}"), "application/json").await.into_body()
    }

    /// What an informer sees: a list, then a watch.
    fn informer(&self) -> impl Stream<Item = watcher::Result<Event<ConfigMap>>> + use<> {
        watcher(Api::namespaced(self.client.clone(), "default"), watcher::Config::default())
    }
}

/// The next that an informer sees, in words.
async fn seen(events: &mut (impl Stream<Item = watcher::Result<Event<ConfigMap>>> + Unpin)) -> String {
    let next = timeout(PATIENCE, events.try_next()).await.expect("it comes in time").expect("nothing fails");
    match next.expect("an informer goes on") {
        Event::Init => "begins".to_owned(),
        Event::InitApply(map) => format!("has {}", map.name_any()),
        Event::InitDone => "is complete".to_owned(),
        Event::Apply(map) => format!("gets {}", map.name_any()),
        Event::Delete(map) => format!("loses {}", map.name_any()),
    }
}

/// The lines of the record.
fn lines(folder: &Folder) -> Vec<Value> {
    let text = std::fs::read_to_string(folder.0.join("record.jsonl")).expect("it was written");
    text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect()
}

/// The ends of the streams in the record.
fn ends(folder: &Folder) -> Vec<String> {
    lines(folder).iter().filter_map(|line| line["end"].as_str().map(str::to_owned)).collect()
}

const LISTED: [&str; 3] = ["begins", "has first", "is complete"];

#[tokio::test]
async fn an_informer_sees_the_same_at_the_same_times() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    create(&server, "first").await;
    let front = Front::record(&folder, &server).await;
    let mut events = pin!(front.informer());
    for expected in LISTED {
        assert_eq!(seen(&mut events).await, expected);
    }
    // The watch is asked for when somebody waits for what it says.
    let (gets, ()) = tokio::join!(seen(&mut events), async {
        while !server.stderr().contains("begins") {
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        tokio::time::sleep(SHORT).await;
        create(&server, "second").await;
    });
    assert_eq!(gets, "gets second");
    assert_eq!(front.end(&folder).0, Some(0));
    let recorded = lines(&folder);
    let part = recorded.iter().find(|line| line["data"].as_str().is_some_and(|data| data.contains("second")));
    let after = part.and_then(|part| part["afterMs"].as_u64()).map(Duration::from_millis).expect("it has a time");
    drop(server);

    let front = Front::replay(&folder).await;
    let mut events = pin!(front.informer());
    for expected in LISTED {
        assert_eq!(seen(&mut events).await, expected);
    }
    let asked = Instant::now();
    assert_eq!(seen(&mut events).await, "gets second");
    assert!(asked.elapsed() >= after, "it came sooner than it had come");
    let (code, told) = front.end(&folder);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("requests: 2 answered from the record, 0 new, 0 not asked again"), "{told}");
}

/// The next part of a stream: its bytes, or how it ended.
async fn part(body: &mut Body) -> Result<String, &'static str> {
    match timeout(PATIENCE, body.frame()).await.expect("it comes in time") {
        None => Err("closed"),
        Some(Err(_)) => Err("broken"),
        Some(Ok(frame)) => Ok(String::from_utf8_lossy(&frame.into_data().unwrap_or_default()).into_owned()),
    }
}

#[tokio::test]
async fn watches_end_as_they_ended() {
    let folder = Folder::for_test();
    let server = serve(&folder);
    create(&server, "first").await;
    let front = Front::record(&folder, &server).await;
    let mut recorded = Vec::new();
    for end in ["closed", "cut"] {
        let mut watch = front.watch(&format!("&labelSelector=end!={end}")).await;
        let event = part(&mut watch).await;
        // A reset overtakes what was sent just before it.
        tokio::time::sleep(SHORT).await;
        add(&server, json!({ "match": { "verbs": ["watch"] }, "watch": { "end": end } })).await;
        recorded.push((event, part(&mut watch).await));
        clear(&server).await;
    }
    for ((event, end), expected) in recorded.iter().zip(["closed", "broken"]) {
        assert!(event.as_ref().is_ok_and(|event| event.contains("\"first\"")), "{event:?}");
        assert_eq!(end, &Err(expected));
    }
    let mut left = front.watch("&labelSelector=end!=left").await;
    let event = part(&mut left).await;
    drop(left);
    while ends(&folder).len() < 3 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!(front.end(&folder).0, Some(0));
    assert_eq!(ends(&folder), ["closed", "broken", "left"]);
    drop(server);

    let front = Front::replay(&folder).await;
    for (end, expected) in ["closed", "cut"].into_iter().zip(&recorded) {
        let mut watch = front.watch(&format!("&labelSelector=end!={end}")).await;
        assert_eq!(&(part(&mut watch).await, part(&mut watch).await), expected, "{end}");
    }
    let mut left = front.watch("&labelSelector=end!=left").await;
    assert_eq!(part(&mut left).await, event);
    assert!(timeout(SHORT, left.frame()).await.is_err(), "what the program left stays open");
    let (code, told) = front.end(&folder);
    assert_eq!(code, Some(0), "{told}");
    assert!(told.contains("requests: 3 answered from the record, 0 new"), "{told}");
    // With the end of the replay, it ends.
    assert!(part(&mut left).await.is_err());
}

#[tokio::test]
async fn a_client_of_protobuf_gets_the_same_bytes() {
    const PROTOBUF: &str = "application/vnd.kubernetes.protobuf";
    let folder = Folder::for_test();
    let server = serve(&folder);
    create(&server, "first").await;
    let ask = async |front: &Front| {
        let answer = front.get(CONFIG_MAPS, PROTOBUF).await;
        assert_eq!(answer.headers()["content-type"], PROTOBUF);
        answer.into_body().collect().await.expect("it is whole").to_bytes()
    };
    let front = Front::record(&folder, &server).await;
    let recorded = ask(&front).await;
    assert!(recorded.starts_with(b"k8s\0") && recorded.windows(5).any(|part| part == b"first"));
    assert_eq!(front.end(&folder).0, Some(0));
    drop(server);
    let front = Front::replay(&folder).await;
    assert_eq!(ask(&front).await, recorded);
    // Who wants JSON has not been recorded.
    assert_eq!(front.get(CONFIG_MAPS, "application/json").await.status(), 501);
    let (code, told) = front.end(&folder);
    assert_eq!(code, Some(1), "{told}");
    assert!(told.contains("requests: 1 answered from the record, 1 new"), "{told}");
}
