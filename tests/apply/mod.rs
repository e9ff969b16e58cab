//! Server-side apply as its documentation describes it: operations, and the object and its managers after each.
//!
//! Each Markdown file of this folder is a chapter, each `##` in it a case with an object, and a definition, of its own.
//! A line that is indented once is an operation, the lines under it that are indented twice are what it comes to: the code
//! and the object or the message, and a line for each manager. `unchanged` is an answer with the resourceVersion, the
//! object and the managers that were there before. What else is in the file is prose.
//!
//! Expected is what apiextensions-apiserver 1.37 answers: `SKIFF_UPDATE=1` writes the files anew, from the server whose
//! plain HTTP address is in `SKIFF_APPLY_REFERENCE`, else from our own. Read the difference like code.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use kubeskiff::value::{json as kube_json, yaml};
use serde_json::{Map, Value, json};

use crate::server::{Answer, Folder, Server};

/// What a definition's spec has where a case does not say it.
const SPEC: &str = "{
    size: {type: integer}, color: {type: string}, shape: {type: string, default: round},
    ports: {type: array, x-kubernetes-list-type: map, x-kubernetes-list-map-keys: [port, protocol], items: {type: object,
        required: [port], properties: {port: {type: integer}, name: {type: string}, protocol: {type: string, default: TCP}}}},
    tags: {type: array, x-kubernetes-list-type: set, items: {type: string}},
    args: {type: array, items: {type: string}},
    granular: {type: object, additionalProperties: {type: string}},
    atomic: {type: object, x-kubernetes-map-type: atomic, additionalProperties: {type: string}},
    free: {type: object, x-kubernetes-preserve-unknown-fields: true}}";

const STATUS: &str = "{phase: {type: string}, size: {type: integer}}";

#[test]
fn the_documentation_of_server_side_apply_holds() {
    let folder = Folder::for_test();
    let arguments = ["--store", "memory", "--disable-admission-plugins", "NamespaceLifecycle"];
    let mut server = Server::start(&folder.0, &arguments);
    if let Ok(address) = std::env::var("SKIFF_APPLY_REFERENCE") {
        server.plain = address.parse().expect("SKIFF_APPLY_REFERENCE is an address and a port");
    }
    let mut wrong = Vec::new();
    for path in chapters() {
        let text = std::fs::read_to_string(&path).expect("the file is readable");
        let played = play(&server, path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default(), &text);
        if std::env::var_os("SKIFF_UPDATE").is_some() {
            std::fs::write(&path, played).expect("the file is writable");
        } else if let Some((at, (expected, found))) =
            text.lines().zip(played.lines()).enumerate().find(|(_, (expected, found))| expected != found)
        {
            wrong.push(format!("{}:{}\n  expected {expected}\n  found    {found}", path.display(), at + 1));
        } else if text.lines().count() != played.lines().count() {
            wrong.push(format!("{}: {}", path.display(), "the end differs"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// The chapters, by name.
fn chapters() -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/apply");
    let files = std::fs::read_dir(folder).expect("the folder is there");
    let mut files: Vec<PathBuf> = files.map(|file| file.expect("the folder is readable").path()).collect();
    files.retain(|path| path.extension().is_some_and(|ext| ext == "md") && !path.ends_with("README.md"));
    files.sort();
    files
}

/// The chapter with what is found in place of what is expected.
fn play(server: &Server, chapter: &str, text: &str) -> String {
    let mut played = String::new();
    let mut cases = 0;
    let mut case = None;
    for line in text.lines() {
        if line.starts_with("        ") {
            continue;
        }
        writeln!(played, "{line}").expect("a String takes all text");
        if line.starts_with("## ") {
            cases += 1;
            case = Some(Case::new(server, format!("{chapter}-{cases}-{}.example.com", std::process::id())));
        }
        if let (Some(operation), Some(case)) = (line.strip_prefix("    "), &mut case) {
            for found in case.operate(operation).lines() {
                writeln!(played, "        {found}").expect("a String takes all text");
            }
        }
    }
    played
}

/// One object, and what serves it.
struct Case<'s> {
    server: &'s Server,
    group: String,
    is_defined: bool,
    live: Value,
}

impl<'s> Case<'s> {
    fn new(server: &'s Server, group: String) -> Self {
        Case { server, group, is_defined: false, live: Value::Null }
    }

    /// What an operation comes to: nothing for one that prepares.
    fn operate(&mut self, operation: &str) -> String {
        let at = operation.find(['{', '[']).unwrap_or(operation.len());
        let (words, body) = operation.split_at(at);
        let body = if body.is_empty() { Value::Null } else { decode(body) };
        let words: Vec<&str> = words.split_whitespace().collect();
        match words.as_slice() {
            ["its", "spec", "is"] => {
                self.define(json!({ "v1": body }));
                String::new()
            }
            ["its", "specs", "are"] => {
                self.define(body);
                String::new()
            }
            [manager, verb, qualifiers @ ..] => {
                if !self.is_defined {
                    let spec = decode(SPEC);
                    self.define(json!({ "v1": spec, "v2": spec }));
                }
                let answer = self.ask(manager, verb, qualifiers, body);
                self.observe(&answer)
            }
            _ => unreachable!("no operation: {operation}"),
        }
    }

    /// Registers the definition, or changes it: `specs` has the properties of each version's spec.
    fn define(&mut self, specs: Value) {
        let versions: Vec<Value> = specs.as_object().expect("versions have names").iter().map(version).collect();
        let name = format!("widgets.{}", self.group);
        let definition = json!({
            "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name},
            "spec": {"group": self.group, "scope": "Namespaced", "names": {"plural": "widgets", "kind": "Widget"},
                "versions": versions},
        });
        let path =
            format!("/apis/apiextensions.k8s.io/v1/customresourcedefinitions/{name}?fieldManager=test&force=true");
        let answer = self.send("PATCH", &path, "application/apply-patch+yaml", &definition);
        assert!(matches!(answer.status, 200 | 201), "{}", String::from_utf8_lossy(&answer.body));
        let objects = self.path("v1", "", "");
        while self.send("GET", &objects, "", &Value::Null).status != 200 {
            std::thread::sleep(Duration::from_millis(5));
        }
        if std::env::var_os("SKIFF_APPLY_REFERENCE").is_some() {
            // There a change takes its time to be noticed.
            std::thread::sleep(Duration::from_millis(1200));
        }
        self.is_defined = true;
    }

    fn ask(&self, manager: &str, verb: &str, qualifiers: &[&str], mut body: Value) -> Answer {
        let qualifier = |name: &str| {
            let at = qualifiers.iter().position(|word| *word == name)?;
            qualifiers.get(at + 1).copied()
        };
        let version = qualifier("in").unwrap_or("v1");
        let path = self.path(version, "a", qualifier("at").unwrap_or_default());
        let query = match manager {
            "somebody" => String::new(),
            _ => format!("fieldManager={manager}"),
        };
        let query = match verb {
            "forces" => format!("{query}&force=true"),
            _ => query,
        };
        let dry_run = if qualifiers.contains(&"dryly") { "&dryRun=All" } else { "" };
        let path = format!("{path}?{query}{dry_run}");
        match verb {
            "applies" | "forces" => {
                self.complete(&mut body, version, qualifier("at"));
                self.send("PATCH", &path, "application/apply-patch+yaml", &body)
            }
            "creates" => {
                self.complete(&mut body, version, None);
                let path = path.replace("/widgets/a", "/widgets");
                self.send("POST", &path, "application/json", &body)
            }
            "puts" => {
                let mut object = self.live.clone();
                if let Value::Object(fields) = &mut object {
                    fields.retain(|name, _| !matches!(name.as_str(), "spec" | "status"));
                }
                merge(&mut object, body);
                object["apiVersion"] = json!(format!("{}/{version}", self.group));
                self.send("PUT", &path, "application/json", &object)
            }
            "merges" => self.send("PATCH", &path, "application/merge-patch+json", &body),
            "patches" => self.send("PATCH", &path, "application/json-patch+json", &body),
            "deletes" => self.send("DELETE", &path, "application/json", &json!({})),
            "reads" => self.send("GET", &path, "", &Value::Null),
            _ => unreachable!("no verb: {verb}"),
        }
    }

    fn path(&self, version: &str, name: &str, subresource: &str) -> String {
        let path = format!("/apis/{}/{version}/namespaces/default/widgets/{name}/{subresource}", self.group);
        path.trim_end_matches('/').to_owned()
    }

    /// Fills in what every object says of itself.
    fn complete(&self, body: &mut Value, version: &str, subresource: Option<&str>) {
        let (api_version, kind) = match subresource {
            Some("scale") => ("autoscaling/v1".to_owned(), "Scale"),
            _ => (format!("{}/{version}", self.group), "Widget"),
        };
        let mut whole = json!({ "apiVersion": api_version, "kind": kind, "metadata": {"name": "a"} });
        merge(&mut whole, body.take());
        *body = self.filled_in(whole);
    }

    /// With what of the live object the body asks for by name.
    fn filled_in(&self, body: Value) -> Value {
        let live = |name: &str| self.live["metadata"][name].as_str().unwrap_or_default().to_owned();
        let text = body.to_string().replace("$resourceVersion", &live("resourceVersion")).replace("$uid", &live("uid"));
        serde_json::from_str(&text).expect("it was JSON before")
    }

    fn send(&self, method: &str, path: &str, content_type: &str, body: &Value) -> Answer {
        let body = (!body.is_null()).then(|| body.to_string().replace("$GROUP", &self.group));
        let headers = [("Content-Type", content_type), ("User-Agent", "agent/1.0")];
        self.server.send(method, path, &headers, body.as_deref().map(str::as_bytes))
    }

    /// What was answered, and what is now there.
    fn observe(&mut self, answer: &Answer) -> String {
        let body = answer.json();
        if answer.status >= 300 {
            let message = body["message"].as_str().unwrap_or_default();
            return self.anonymous(&format!("{} {message}", answer.status));
        }
        let read = self.send("GET", &self.path("v1", "a", ""), "", &Value::Null);
        let live = if read.status == 200 { read.json() } else { Value::Null };
        let before = std::mem::replace(&mut self.live, live);
        if self.live.is_null() {
            return format!("{} gone", answer.status);
        }
        if before["metadata"]["resourceVersion"] == self.live["metadata"]["resourceVersion"] {
            assert_eq!(before, self.live, "the resourceVersion is the same");
            return format!("{} unchanged", answer.status);
        }
        let mut lines = managers(&self.live);
        lines.insert(0, format!("{} {}", answer.status, content(&self.live)));
        self.anonymous(&lines.join("\n"))
    }

    /// Without what is of this run alone.
    fn anonymous(&self, text: &str) -> String {
        let uid = self.live["metadata"]["uid"].as_str().unwrap_or("no uid");
        text.replace(&self.group, "example.com").replace(uid, "<uid>")
    }
}

fn decode(text: &str) -> Value {
    let value = yaml::decode(text.as_bytes()).expect("it is YAML");
    serde_json::from_slice(&kube_json::encode(&value)).expect("it is JSON")
}

/// A version of the definition; the first is stored.
fn version((name, spec): (&String, &Value)) -> Value {
    json!({
        "name": name, "served": true, "storage": name == "v1",
        "subresources": {"status": {}, "scale": {"specReplicasPath": ".spec.size", "statusReplicasPath": ".status.size"}},
        "schema": {"openAPIV3Schema": {"type": "object", "properties": {
            "spec": {"type": "object", "properties": spec},
            "status": {"type": "object", "properties": decode(STATUS)},
        }}},
    })
}

/// Sets in `target` what `source` has.
fn merge(target: &mut Value, source: Value) {
    match (target, source) {
        (Value::Object(target), Value::Object(source)) => {
            for (name, value) in source {
                merge(target.entry(name).or_insert(Value::Null), value);
            }
        }
        (_, Value::Null) => {}
        (target, source) => *target = source,
    }
}

/// What somebody wrote of an object, in YAML's flow style.
fn content(object: &Value) -> String {
    let mut written = Map::new();
    for name in ["labels", "annotations", "finalizers"] {
        if let Some(value) = object["metadata"].get(name) {
            written.insert(name.to_owned(), value.clone());
        }
    }
    for name in ["spec", "status"] {
        if let Some(value) = object.get(name) {
            written.insert(name.to_owned(), value.clone());
        }
    }
    flow(&Value::Object(written))
}

fn flow(value: &Value) -> String {
    let plain =
        |text: &str| text.chars().next().is_some_and(char::is_alphabetic) && !text.contains([':', ',', '{', ' ']);
    match value {
        Value::Object(fields) => {
            let fields: Vec<String> = fields.iter().map(|(name, value)| format!("{name}: {}", flow(value))).collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Array(items) => format!("[{}]", items.iter().map(flow).collect::<Vec<_>>().join(", ")),
        Value::String(text) if plain(text) && !matches!(text.as_str(), "null" | "true" | "false") => text.clone(),
        _ => value.to_string(),
    }
}

/// A line for each manager, sorted: whose entry is older depends on when a second ends.
fn managers(object: &Value) -> Vec<String> {
    let entries = object["metadata"]["managedFields"].as_array().cloned().unwrap_or_default();
    let mut lines: Vec<String> = entries.iter().map(manager).collect();
    lines.sort();
    lines
}

fn manager(entry: &Value) -> String {
    let text = |name: &str| entry[name].as_str().unwrap_or_default();
    let mut line = format!("{} {}", text("operation"), text("manager"));
    if !text("subresource").is_empty() {
        write!(line, " at {}", text("subresource")).expect("a String takes all text");
    }
    if !text("apiVersion").ends_with("/v1") {
        write!(line, " in {}", text("apiVersion").rsplit('/').next().unwrap_or_default()).expect("as above");
    }
    if entry.get("time").is_none() {
        line.push_str(" without time");
    }
    let mut paths = Vec::new();
    collect_paths(&entry["fieldsV1"], "", &mut paths);
    format!("{line}: {}", paths.join(" "))
}

/// The paths that a manager owns; `fields` stands at `path`.
fn collect_paths(fields: &Value, path: &str, paths: &mut Vec<String>) {
    let fields = fields.as_object().cloned().unwrap_or_default();
    if fields.is_empty() || fields.contains_key(".") {
        paths.push(path.to_owned());
    }
    for (name, below) in fields.iter().filter(|(name, _)| *name != ".") {
        let step = match name.split_once(':') {
            Some(("f", name)) => format!(".{name}"),
            Some(("k", key)) => {
                let key: Map<String, Value> = serde_json::from_str(key).expect("a key is an object");
                let fields: Vec<String> = key.iter().map(|(name, value)| format!("{name}={value}")).collect();
                format!("[{}]", fields.join(","))
            }
            Some(("v", value)) => format!("[={value}]"),
            _ => format!("[{name}]"),
        };
        collect_paths(below, &format!("{path}{step}"), paths);
    }
}
