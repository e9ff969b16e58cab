//! The corpus: definitions of well-known projects, objects of theirs, and what a real server of 1.37 answered to each.
//!
//! It stays beside the project. Each definition is registered, its objects are put, and it is deleted again; the
//! definitions take turns on two threads. Then, one after the other, those whose published documents were recorded are registered once more. `KNOWN-CORPUS` lists the answers that
//! differ, with the cause: the test fails when one of them begins to hold.

use std::collections::{BTreeSet, HashMap};
use std::fs;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{LazyLock, Mutex};
use std::time::{Duration, Instant};

use regex::Regex;
use serde_json::{Value, json};

use crate::beside::{DEFINITIONS, DOCUMENTS, OBJECTS};
use crate::golden::compare::first_difference;
use crate::server::{Answer, Folder, Server};

const REGISTERED: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";
const THREADS: usize = 2;
/// How many differences are shown.
const SHOWN: usize = 20;

#[test]
fn the_corpus_is_answered_as_by_a_real_server() {
    let (Some(definitions), Some(objects), Some(documents)) = (DEFINITIONS.read(), OBJECTS.read(), DOCUMENTS.read())
    else {
        return;
    };
    let data = Folder::for_test();
    let arguments = ["--store", "memory", "--disable-admission-plugins", "NamespaceLifecycle"];
    let run = Run {
        server: Server::start(&data.0, &arguments),
        objects: by_definition(objects, "crd"),
        equal: AtomicUsize::new(0),
        differences: Mutex::default(),
    };
    let next = AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..THREADS {
            scope.spawn(|| {
                while let Some(case) = definitions.get(next.fetch_add(1, Ordering::Relaxed)) {
                    match case.get("mutation") {
                        Some(_) => run.mutated(case),
                        None => run.definition(case),
                    }
                }
            });
        }
    });
    for documents in documents {
        if let Some(case) = definitions.iter().find(|case| case["name"] == documents["crd"]) {
            run.published(&case["crd"], &documents);
        }
    }
    let differences = run.differences.into_inner().expect("no thread panics");
    println!("corpus: {} answers equal, {} different", run.equal.into_inner(), differences.len());
    let known = known();
    let unknown = differences.iter().filter(|(what, _)| !known.iter().any(|known| is_meant(known, what)));
    let mut faults: Vec<_> = unknown.map(|(what, why)| format!("{what}\n  {why}")).take(SHOWN).collect();
    let holding = known.iter().filter(|known| !differences.iter().any(|(what, _)| is_meant(known, what)));
    faults.extend(holding.map(|what| format!("{what} holds now: take it off KNOWN-CORPUS")));
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

/// Whether an entry of the list speaks of an answer; one that ends with `*` speaks of all that begin like it.
fn is_meant(known: &str, what: &str) -> bool {
    known.strip_suffix('*').map_or(known == what, |start| what.starts_with(start))
}

/// The answers that are known to differ, each with its cause in the list.
fn known() -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/spec/KNOWN-CORPUS");
    let text = fs::read_to_string(path).expect("the list of known differences is there");
    let lines = text.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    lines.map(|line| line.rsplit_once(": ").expect("a line is NAME: CAUSE").0.to_owned()).collect()
}

struct Run {
    server: Server,
    objects: HashMap<String, Vec<Value>>,
    equal: AtomicUsize,
    /// What differs, and how.
    differences: Mutex<Vec<(String, String)>>,
}

impl Run {
    /// A definition with a fault in it, tried without registering it.
    fn mutated(&self, case: &Value) {
        for mode in ["Strict", "Warn"] {
            let Some(expected) = case["expect"].get(mode.to_lowercase()) else { continue };
            let path = format!("{REGISTERED}?dryRun=All&fieldValidation={mode}");
            let answer = self.post(&path, &case["crd"]);
            let difference = Comparison { sent: &case["crd"], owners: true, revision: false }.run(expected, &answer);
            self.tell(&format!("{}/{mode}", text(&case["name"])), difference);
        }
    }

    fn definition(&self, case: &Value) {
        let (name, sent, expected) = (text(&case["name"]), &case["crd"], &case["expect"]);
        let comparison = Comparison { sent, owners: true, revision: true };
        let strict = expected["strict"]["code"] == 201 || expected.get("warn").is_none();
        if !strict {
            let answer = self.post(&format!("{REGISTERED}?fieldValidation=Strict"), sent);
            self.tell(&format!("{name}/strict"), comparison.run(&expected["strict"], &answer));
        }
        let (mode, key) = if strict { ("Strict", "strict") } else { ("Warn", "warn") };
        let answer = self.post(&format!("{REGISTERED}?fieldValidation={mode}"), sent);
        self.tell(name, comparison.run(&expected[key], &answer));
        let objects = self.objects.get(name).map_or(&[][..], Vec::as_slice);
        if answer.status != 201 {
            objects
                .iter()
                .for_each(|object| self.tell(text(&object["name"]), Some("its definition was refused".into())));
            return;
        }
        self.wait_until_usable(sent);
        objects.iter().for_each(|object| self.object(object));
        self.server.send("DELETE", &format!("{REGISTERED}/{name}"), &[], None);
    }

    fn wait_until_usable(&self, definition: &Value) {
        let spec = &definition["spec"];
        let versions = spec["versions"].as_array().map_or(&[][..], Vec::as_slice);
        let Some(served) = versions.iter().find(|version| version["served"] == true) else { return };
        let (group, plural) = (text(&spec["group"]), text(&spec["names"]["plural"]));
        let path = format!("/apis/{group}/{}/{plural}?limit=1", text(&served["name"]));
        let end = Instant::now() + Duration::from_secs(30);
        while self.server.send("GET", &path, &[], None).status != 200 && Instant::now() < end {
            std::thread::sleep(Duration::from_millis(2));
        }
    }

    fn object(&self, case: &Value) {
        let queries: Vec<&str> = match &case["query"] {
            Value::Array(queries) => queries.iter().map(text).collect(),
            query => vec![text(query)],
        };
        let (method, path) = (text(&case["method"]), text(&case["path"]));
        for query in queries {
            let mut sent = case["object"].clone();
            if method == "PUT" {
                let (collection, _) = path.rsplit_once('/').expect("the path of an object");
                let live = self.post(&format!("{collection}?fieldValidation=Warn"), &case["old"]).json();
                let revision = live["metadata"]["resourceVersion"].to_string();
                sent = serde_json::from_str(&sent.to_string().replace("\"<rv>\"", &revision)).expect("still JSON");
            }
            let target = if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") };
            let answer = self.send(method, &target, &sent);
            let owners = case["managedFields"] != "dropped";
            let comparison = Comparison { sent: &sent, owners, revision: true };
            self.tell(text(&case["name"]), comparison.run(&case["expect"], &answer));
            if method == "PUT" {
                self.server.send("DELETE", path, &[], None);
            } else if answer.status == 201 && !query.contains("dryRun") {
                let name = answer.json()["metadata"]["name"].clone();
                self.server.send("DELETE", &format!("{path}/{}", text(&name)), &[], None);
            }
        }
    }

    /// The OpenAPI and discovery documents of a definition; what all definitions share is not among them.
    fn published(&self, definition: &Value, expected: &Value) {
        let (name, group) = (text(&expected["name"]), text(&definition["spec"]["group"]));
        self.post(REGISTERED, definition);
        self.wait_until_usable(definition);
        for (version, document) in fields(&expected["v3"]) {
            let mut found = self.get(&format!("/openapi/v3/apis/{group}/{version}"));
            if let Some(schemas) = found["components"]["schemas"].as_object_mut() {
                schemas.retain(|name, _| !name.starts_with("io.k8s."));
            }
            self.tell(&format!("{name}: OpenAPI v3 of {version}"), first_difference(document, &found, ""));
        }
        let found = self.get("/openapi/v2");
        for part in ["definitions", "paths"] {
            for (key, document) in fields(&expected["v2"][part]) {
                let difference = first_difference(document, &found[part][key], "");
                self.tell(&format!("{name}: {key} of OpenAPI v2"), difference);
            }
        }
        for (version, document) in fields(&expected["discovery"]) {
            let path = match version {
                "group" => format!("/apis/{group}"),
                version => format!("/apis/{group}/{version}"),
            };
            self.tell(&format!("{name}: {path}"), first_difference(document, &self.get(&path), ""));
        }
        self.server.send("DELETE", &format!("{REGISTERED}/{name}"), &[], None);
    }

    fn get(&self, path: &str) -> Value {
        self.server.send("GET", path, &[("Accept", "application/json")], None).json()
    }

    fn post(&self, path: &str, body: &Value) -> Answer {
        self.send("POST", path, body)
    }

    fn send(&self, method: &str, path: &str, body: &Value) -> Answer {
        let headers = [("Accept", "application/json"), ("Content-Type", "application/json"), AGENT];
        self.server.send(method, path, &headers, Some(body.to_string().as_bytes()))
    }

    fn tell(&self, what: &str, difference: Option<String>) {
        match difference {
            None => _ = self.equal.fetch_add(1, Ordering::Relaxed),
            Some(why) => self.differences.lock().expect("no thread panics").push((what.to_owned(), why)),
        }
    }
}

/// The manager that the recorded managedFields name.
const AGENT: (&str, &str) = ("User-Agent", "skiff-corpus/1");

/// What of an answer is compared.
struct Comparison<'a> {
    sent: &'a Value,
    /// Whether managedFields were recorded.
    owners: bool,
    revision: bool,
}

impl Comparison<'_> {
    fn run(&self, expected: &Value, answer: &Answer) -> Option<String> {
        if expected["code"] != answer.status {
            let body = String::from_utf8_lossy(&answer.body).chars().take(300).collect::<String>();
            return Some(format!("expected {}, got {} {body}", expected["code"], answer.status));
        }
        let warnings = first_difference(&json!(sorted(&expected["warnings"])), &json!(warnings(answer)), "/warnings");
        if warnings.is_some() {
            return warnings;
        }
        let mut found = normal(&answer.json());
        if let Some(status) = expected.get("status") {
            return first_difference(&normal(status), &found, "");
        }
        if let Some(patch) = expected.get("patch") {
            let mut wanted = patched(self.sent, patch);
            for document in [&mut wanted, &mut found] {
                document.as_object_mut().map(|fields| fields.remove("status"));
                remove_metadata(document, "managedFields");
                if !self.revision {
                    remove_metadata(document, "resourceVersion");
                }
            }
            return first_difference(&normal(&wanted), &found, "");
        }
        let mut wanted = normal(expected.get("object")?);
        if !self.owners {
            remove_metadata(&mut wanted, "managedFields");
            remove_metadata(&mut found, "managedFields");
        }
        first_difference(&wanted, &found, "")
    }
}

/// The name of an object's type in messages about rules holds the time of its making.
static SELF_TYPE: LazyLock<Regex> = LazyLock::new(|| Regex::new("selfType[0-9]+").expect("a pattern of ours"));

/// The document with placeholders for what differs from run to run; causes in any order.
fn normal(document: &Value) -> Value {
    let mut document = document.clone();
    if document["kind"] == "Status" && document["apiVersion"] == "v1" {
        if let Some(details) = document.get_mut("details").and_then(Value::as_object_mut) {
            if details.get("uid").is_some_and(|uid| uid != "") {
                details.insert("uid".into(), json!("<uid>"));
            }
            if let Some(causes) = details.get_mut("causes").and_then(Value::as_array_mut) {
                for cause in causes.iter_mut() {
                    cause["message"] = SELF_TYPE.replace_all(text(&cause["message"]), "selfType").into();
                }
                causes.sort_by_key(|cause| cause["field"].to_string() + &cause["message"].to_string());
                // The same words, in any order.
                let message = SELF_TYPE.replace_all(text(&document["message"]), "selfType");
                let mut letters: Vec<char> = message.chars().collect();
                letters.sort_unstable();
                document["message"] = letters.into_iter().collect::<String>().into();
            }
        }
        return document;
    }
    if let Some(metadata) = document.get_mut("metadata").and_then(Value::as_object_mut) {
        for (name, placeholder) in [("uid", "<uid>"), ("resourceVersion", "<rv>"), ("creationTimestamp", "<time>")] {
            if metadata.get(name).is_some_and(|value| !value.is_null()) {
                metadata.insert(name.into(), json!(placeholder));
            }
        }
        for entry in metadata.get_mut("managedFields").and_then(Value::as_array_mut).into_iter().flatten() {
            if entry.get("time").is_some() {
                entry["time"] = json!("<time>");
            }
        }
    }
    document
}

/// `document` after a recorded JSON patch of additions, replacements and removals.
fn patched(document: &Value, patch: &Value) -> Value {
    let patch = serde_json::to_vec(patch).expect("it came from JSON");
    let (patch, _) = kubeskiff::patch::json_patch::Patch::decode(&patch, false).expect("a recorded patch");
    let document = kubeskiff::value::json::decode(document.to_string().as_bytes()).expect("it came from JSON");
    let patched = patch
        .apply(&document, kubeskiff::value::json::Layout::Sorted)
        .expect("the patch was recorded for this document");
    serde_json::from_str(&patched).expect("still JSON")
}

fn warnings(answer: &Answer) -> Vec<String> {
    let texts = answer.headers.iter().filter(|(name, _)| name == "warning").map(|(_, value)| {
        let quoted = value.strip_prefix("299 - \"").and_then(|rest| rest.strip_suffix('"'));
        quoted.unwrap_or(value).replace("\\\"", "\"").replace("\\\\", "\\")
    });
    let mut texts: Vec<String> = texts.collect();
    texts.sort();
    texts
}

fn sorted(list: &Value) -> Vec<String> {
    let mut texts: Vec<String> = list.as_array().into_iter().flatten().map(|item| text(item).to_owned()).collect();
    texts.sort();
    texts
}

fn remove_metadata(document: &mut Value, name: &str) {
    document.get_mut("metadata").and_then(Value::as_object_mut).map(|metadata| metadata.remove(name));
}

fn fields(value: &Value) -> impl Iterator<Item = (&str, &Value)> {
    value.as_object().into_iter().flatten().map(|(name, value)| (name.as_str(), value))
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn by_definition(cases: Vec<Value>, key: &str) -> HashMap<String, Vec<Value>> {
    let mut grouped: HashMap<String, Vec<Value>> = HashMap::new();
    for case in cases {
        grouped.entry(text(&case[key]).to_owned()).or_default().push(case);
    }
    grouped
}
