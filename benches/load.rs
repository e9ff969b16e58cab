//! What the server does under load: the release binary on a real disk, clients over TLS, figures on stdout.
//!
//!     cargo bench --bench load
//!     cargo bench --bench load -- verbs
//!     cargo bench --bench load -- hanging-webhook
//!     cargo bench --bench load -- deployments
//!     cargo bench --bench load -- workloads
//!     cargo bench --bench load -- soak
//!
//! Those in the middle show one part of the first. The last takes two minutes: a thousand watches, a write each 10 ms, and one client that does not read.
//!
//! Figures are rows of a table in Markdown, as `docs/performance.md` has them.
//!
//! It measures from outside, and its clients share the machine with the server: the figures are bounds, to be compared with
//! others of the same machine. Durable figures stand beside what the disk takes for one fdatasync.

mod server;
#[path = "server/widgets.rs"]
mod widgets;

use std::fs::{self, File};
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::write::GzEncoder;

use server::{Client, Failure, Server, millis, percentile};
use widgets::{
    DEFINITIONS_PATH, OBJECT_BYTES, definition, head, mebibytes, micros, per_second, register_widgets, row,
    side_by_side, widget,
};

const OBJECTS: usize = 5_000;
/// How many objects each verb is measured with.
const VERB_OBJECTS: usize = 2_000;
const NAMESPACE_OBJECTS: usize = 10_000;
const NAMESPACES: &str = "/api/v1/namespaces";
const WATCHERS: usize = 50;
const EVENTS: usize = 200;
/// How many lists a figure is the mean of.
const LISTS: u32 = 20;
const SOAK_WATCHES: usize = 1_000;
const SOAK_WRITES: usize = 6_000;
const SOAK_WRITE_EVERY: Duration = Duration::from_millis(10);
const SOAK_OBJECT_BYTES: usize = 500;
/// How many writes are timed beside a webhook that hangs, and how many requests wait for it: fewer than may wait.
const UNRELATED_WRITES: usize = 3_000;
const WAITING: usize = 150;
const DEFINITIONS: usize = 500;
const STARTS: usize = 10;
const DEPLOYMENTS: usize = 1_000;
/// What the status of a Deployment has whose pods are all ready.
const READY: &[u8] = br#""readyReplicas":3"#;
/// How long reads are counted.
const READ_FOR: Duration = Duration::from_secs(4);

fn main() -> Result<(), Failure> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("load");
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    if std::env::args().any(|argument| argument == "soak") {
        return soak(&folder);
    }
    head();
    if std::env::args().any(|argument| argument == "verbs") {
        return verbs(&folder);
    }
    if std::env::args().any(|argument| argument == "hanging-webhook") {
        return hanging_webhook(&folder);
    }
    if std::env::args().any(|argument| argument == "deployments") {
        return deployments(&folder);
    }
    if std::env::args().any(|argument| argument == "workloads") {
        return workloads(&folder);
    }
    row("fdatasync of 4 KiB, p50", millis(percentile(&mut fdatasyncs(&folder)?, 50)));
    start(&folder)?;
    definitions(&folder)?;
    corpus(&folder)?;
    verbs(&folder)?;
    objects(&folder, "full")?;
    objects(&folder, "relaxed")?;
    events(&folder)?;
    namespace(&folder)?;
    hanging_webhook(&folder)?;
    deployments(&folder)?;
    workloads(&folder)?;
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// From the process's start to `/readyz`, on an empty folder and on one that has been used.
fn start(folder: &Path) -> Result<(), Failure> {
    let (mut first, mut again, mut resident) = (Vec::new(), Vec::new(), 0);
    for at in 0..STARTS {
        let data = folder.join(format!("start-{at}"));
        first.push(Server::start(&data, &[])?.ready_after);
        let server = Server::start(&data, &[])?;
        again.push(server.ready_after);
        resident = server.resident_bytes()?;
    }
    row("start to /readyz, empty, p50", millis(percentile(&mut first, 50)));
    row("start to /readyz, again, p50", millis(percentile(&mut again, 50)));
    row("memory when idle", mebibytes(resident));
    Ok(())
}

/// A Deployment beside a custom object with the same fields: what a built-in kind costs more.
fn deployments(folder: &Path) -> Result<(), Failure> {
    let server = Server::start(&folder.join("deployments"), &["--store", "memory"])?;
    let mut client = server.connect()?;
    client.expect(201, "POST", DEFINITIONS_PATH, rollout_definition().as_bytes())?;
    let custom = "/apis/load.example.com/v1/namespaces/default/rollouts";
    while client.send("GET", custom, b"")?.0 != 200 {}
    let kinds = [
        ("apps/v1", "Deployment", "/apis/apps/v1/namespaces/default/deployments"),
        ("load.example.com/v1", "Rollout", custom),
    ];
    let mut took = [Vec::with_capacity(DEPLOYMENTS), Vec::with_capacity(DEPLOYMENTS)];
    for at in 0..DEPLOYMENTS {
        // Turn and turn about, so that whatever else happens happens to both.
        for ((api_version, kind, path), took) in kinds.iter().zip(&mut took) {
            let body = rollout(api_version, kind, at);
            let begun = Instant::now();
            client.expect(201, "POST", path, body.as_bytes())?;
            took.push(begun.elapsed());
        }
    }
    let [deployment, custom] = took.map(|mut took| percentile(&mut took, 50));
    row("create a Deployment, p50", millis(deployment));
    row("create a custom object with its fields, p50", millis(custom));
    row("the one in times of the other", format!("{:.2}", deployment.as_secs_f64() / custom.as_secs_f64()));
    Ok(())
}

/// From the first POST until the pods of all Deployments are ready, on simulated nodes.
fn workloads(folder: &Path) -> Result<(), Failure> {
    const COLLECTION: &str = "/apis/apps/v1/namespaces/default/deployments";
    const LOOK_EVERY: Duration = Duration::from_millis(100);
    let arguments = ["--store", "memory", "--profile", "cluster", "--simulate-nodes", "40,cpu=16,memory=64Gi"];
    let server = Server::start(&folder.join("workloads"), &arguments)?;
    let next = AtomicUsize::new(0);
    let (begun, cpu) = (Instant::now(), server.processor_time()?);
    let (created, took) = side_by_side(&server, |client| {
        let mut done = 0;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= DEPLOYMENTS {
                return Ok(done);
            }
            let labels = format!(r#"{{"app":"web-{at}"}}"#);
            let body = format!(
                r#"{{"apiVersion":"apps/v1","kind":"Deployment","metadata":{{"name":"web-{at}"}},"spec":{{"replicas":3,
                "selector":{{"matchLabels":{labels}}},"template":{{"metadata":{{"labels":{labels}}},"spec":{{"containers":[
                {{"name":"web","image":"example.com/web:1","resources":{{"requests":{{"cpu":"10m"}}}}}}]}}}}}}}}"#
            );
            client.expect(201, "POST", COLLECTION, body.as_bytes())?;
            done += 1;
        }
    })?;
    let mut client = server.connect()?;
    let is_ready = |list: &[u8]| list.windows(READY.len()).filter(|window| *window == READY).count() == DEPLOYMENTS;
    while !is_ready(&client.expect(200, "GET", COLLECTION, b"")?) {
        thread::sleep(LOOK_EVERY);
    }
    let took_all = begun.elapsed();
    row("Deployments created beside their controllers", per_second(created, took));
    row("1,000 Deployments of 3 pods, first POST to ready", millis(took_all));
    row("processor time of the server for them", millis(server.processor_time()? - cpu));
    row("memory with them", mebibytes(server.resident_bytes()?));
    Ok(())
}

/// A Deployment, or a custom object like it.
fn rollout(api_version: &str, kind: &str, at: usize) -> String {
    format!(
        r#"{{"apiVersion":"{api_version}","kind":"{kind}","metadata":{{"name":"web-{at}","labels":{{"app":"web"}}}},"spec":{{
        "replicas":3,"selector":{{"matchLabels":{{"app":"web"}}}},"template":{{"metadata":{{"labels":{{"app":"web"}}}},"spec":{{
        "serviceAccountName":"web","terminationGracePeriodSeconds":30,"containers":[{{"name":"web","image":"example.com/web:1",
        "args":["--listen=:8080","--log=json"],"ports":[{{"name":"http","containerPort":8080}}],"env":[{{"name":"A","value":"b"}},
        {{"name":"C","value":"d"}}],"resources":{{"requests":{{"cpu":"100m","memory":"64Mi"}},"limits":{{"memory":"128Mi"}}}},
        "readinessProbe":{{"httpGet":{{"path":"/ready","port":"http"}},"periodSeconds":5}},"volumeMounts":[{{"name":"data",
        "mountPath":"/data"}}]}}],"volumes":[{{"name":"data","emptyDir":{{}}}}]}}}}}}}}"#
    )
}

/// The definition of such custom objects.
fn rollout_definition() -> String {
    let text = r#"{"type":"string"}"#;
    let number = r#"{"type":"integer"}"#;
    let port = r#"{"x-kubernetes-int-or-string":true}"#;
    let texts = format!(r#"{{"type":"object","additionalProperties":{text}}}"#);
    let object = |fields: &[(&str, &str)]| {
        let fields: Vec<String> = fields.iter().map(|(name, schema)| format!("\"{name}\":{schema}")).collect();
        format!(r#"{{"type":"object","properties":{{{}}}}}"#, fields.join(","))
    };
    let named = |keys: &str, item: &str| {
        format!(
            r#"{{"type":"array","items":{item},"x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["{keys}"]}}"#
        )
    };
    let required = |item: String| format!(r#"{{"required":["name"],{}"#, item.trim_start_matches('{'));
    let amounts = object(&[("cpu", port), ("memory", port)]);
    let probe = object(&[("httpGet", &object(&[("path", text), ("port", port)])), ("periodSeconds", number)]);
    let container = required(object(&[
        ("name", text),
        ("image", text),
        ("args", &format!(r#"{{"type":"array","items":{text}}}"#)),
        ("ports", &named("name", &required(object(&[("name", text), ("containerPort", number)])))),
        ("env", &named("name", &required(object(&[("name", text), ("value", text)])))),
        ("resources", &object(&[("requests", &amounts), ("limits", &amounts)])),
        ("readinessProbe", &probe),
        ("volumeMounts", &named("name", &required(object(&[("name", text), ("mountPath", text)])))),
    ]));
    let volume = required(object(&[("name", text), ("emptyDir", &texts)]));
    let pod = object(&[
        ("serviceAccountName", text),
        ("terminationGracePeriodSeconds", number),
        ("containers", &named("name", &container)),
        ("volumes", &named("name", &volume)),
    ]);
    let template = object(&[("metadata", &object(&[("labels", &texts)])), ("spec", &pod)]);
    let selector = object(&[("matchLabels", &texts)]);
    let spec = object(&[("replicas", number), ("selector", &selector), ("template", &template)]);
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"rollouts.load.example.com"}},
        "spec":{{"group":"load.example.com","scope":"Namespaced","names":{{"plural":"rollouts","kind":"Rollout"}},"versions":[{{
        "name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":{}}}}}]}}}}"#,
        object(&[("spec", &spec)])
    )
}

/// From the POST of a definition to the first list of its objects, and a start with many of them stored.
fn definitions(folder: &Path) -> Result<(), Failure> {
    let data = folder.join("definitions");
    let server = Server::start(&data, &[])?;
    let before = server.resident_bytes()?;
    let mut client = server.connect()?;
    let mut usable = Vec::with_capacity(DEFINITIONS);
    for at in 0..DEFINITIONS {
        let group = format!("g{at}.example.com");
        let begun = Instant::now();
        client.expect(201, "POST", DEFINITIONS_PATH, &definition(&group))?;
        let path = format!("/apis/{group}/v1/namespaces/default/widgets");
        while client.send("GET", &path, b"")?.0 != 200 {}
        usable.push(begun.elapsed());
    }
    for (which, usable) in
        [("first", 0..50), ("last", DEFINITIONS - 50..DEFINITIONS)].map(|(which, at)| (which, &usable[at]))
    {
        for percent in [50, 99] {
            let figure = millis(percentile(&mut usable.to_vec(), percent));
            row(&format!("definition POST to usable, {which} 50, p{percent}"), figure);
        }
    }
    let each = server.resident_bytes()?.saturating_sub(before) / DEFINITIONS as u64;
    row("memory for each definition", format!("{} KiB for {} bytes", each >> 10, definition("g.example.com").len()));
    drop((client, server));
    let server = Server::start(&data, &[])?;
    row("start to /readyz, 500 definitions", millis(server.ready_after));
    row("memory with 500 definitions", mebibytes(server.resident_bytes()?));
    Ok(())
}

/// The definitions of well-known projects, where they are there: each from its POST to the first list of its objects.
fn corpus(folder: &Path) -> Result<(), Failure> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/corpus/crds.jsonl.gz");
    let Ok(file) = File::open(file) else {
        eprintln!("left out: the corpus is not there");
        return Ok(());
    };
    let server = Server::start(&folder.join("corpus"), &["--store", "memory"])?;
    let before = server.resident_bytes()?;
    let mut client = server.connect()?;
    let (mut usable, mut bytes) = (Vec::new(), 0);
    for line in BufReader::new(flate2::read::GzDecoder::new(file)).lines() {
        let case: serde_json::Value = serde_json::from_str(&line?)?;
        let spec = &case["crd"]["spec"];
        let Some(versions) = spec["versions"].as_array().filter(|_| case.get("mutation").is_none()) else { continue };
        let Some(served) = versions.iter().find(|version| version["served"] == true) else { continue };
        let body = case["crd"].to_string();
        let begun = Instant::now();
        if client.send("POST", DEFINITIONS_PATH, body.as_bytes())?.0 != 201 {
            continue;
        }
        let text = |value: &serde_json::Value| value.as_str().unwrap_or_default().to_owned();
        let (group, version, plural) = (text(&spec["group"]), text(&served["name"]), text(&spec["names"]["plural"]));
        while client.send("GET", &format!("/apis/{group}/{version}/{plural}?limit=1"), b"")?.0 != 200 {}
        usable.push(begun.elapsed());
        bytes += body.len();
    }
    let count = usable.len();
    for percent in [50, 99] {
        let figure = millis(percentile(&mut usable, percent));
        row(&format!("{count} well-known definitions, POST to usable, p{percent}"), figure);
    }
    let each = server.resident_bytes()?.saturating_sub(before) / count.max(1) as u64;
    row("memory for each of them", format!("{} KiB for {} KiB", each >> 10, (bytes / count.max(1)) >> 10));
    Ok(())
}

/// What the server spends on each verb, with clients side by side.
fn verbs(folder: &Path) -> Result<(), Failure> {
    const MERGE: &str = "Content-Type: application/merge-patch+json\r\n";
    const APPLY: &str = "Content-Type: application/apply-patch+yaml\r\n";
    let server = Server::start(&folder.join("verbs"), &["--durability", "relaxed"])?;
    let collection = register_widgets(&server)?;
    let path = |at: usize| format!("{collection}/w-{at}");
    let changed = |at: usize, replicas: usize| {
        let body = String::from_utf8_lossy(&widget(at)).replacen(
            &format!("\"replicas\":{at}"),
            &format!("\"replicas\":{replicas}"),
            1,
        );
        body.into_bytes()
    };
    let done = |(status, answer): (u16, Vec<u8>)| match status {
        200 | 201 => Ok(()),
        _ => Err(Failure::from(format!("{status} {}", String::from_utf8_lossy(&answer)))),
    };
    let verb = |what: &str, send: &(dyn Fn(&mut Client, usize) -> Result<(), Failure> + Sync)| {
        let (next, cpu) = (AtomicUsize::new(0), server.processor_time()?);
        let (count, took) = side_by_side(&server, |client| {
            let mut sent = 0;
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= VERB_OBJECTS {
                    return Ok(sent);
                }
                send(client, at)?;
                sent += 1;
            }
        })?;
        let each = (server.processor_time()? - cpu) / VERB_OBJECTS as u32;
        row(&format!("processor time of the server, {what}"), micros(each));
        row(&format!("{what} by 16 clients"), per_second(count, took));
        Ok::<_, Failure>(())
    };
    verb("create", &|client, at| done(client.send("POST", &collection, &widget(at))?))?;
    verb("get", &|client, at| done(client.send("GET", &path(at), b"")?))?;
    verb("get and update", &|client, at| {
        let (_, read) = client.send("GET", &path(at), b"")?;
        let read = String::from_utf8_lossy(&read).replacen("\"mode\":\"safe\"", "\"mode\":\"fast\"", 1);
        done(client.send("PUT", &path(at), read.as_bytes())?)
    })?;
    verb("merge patch", &|client, at| {
        done(client.send_as(MERGE, "PATCH", &path(at), br#"{"spec":{"labels":{"a":"changed"}}}"#)?)
    })?;
    verb("apply", &|client, at| {
        let path = format!("{}?fieldManager=load&force=true", path(at));
        done(client.send_as(APPLY, "PATCH", &path, &changed(at, at + 1))?)
    })?;
    verb("dry run of a create", &|client, at| {
        let body = widget(VERB_OBJECTS + at);
        done(client.send("POST", &format!("{collection}?dryRun=All"), &body)?)
    })?;
    verb("delete", &|client, at| done(client.send("DELETE", &path(at), b"")?))
}

/// Creates, gets and lists of all objects by clients side by side.
fn objects(folder: &Path, durability: &str) -> Result<(), Failure> {
    let server = Server::start(&folder.join(durability), &["--durability", durability])?;
    let collection = register_widgets(&server)?;
    let before = server.resident_bytes()?;
    let next = AtomicUsize::new(0);
    let label = |what: &str| format!("{what}, durability {durability}");

    let (created, took) = side_by_side(&server, |client| {
        let mut done = 0;
        loop {
            let at = next.fetch_add(1, Ordering::Relaxed);
            if at >= OBJECTS {
                return Ok(done);
            }
            client.expect(201, "POST", &collection, &widget(at))?;
            done += 1;
        }
    })?;
    row(&label("creates"), per_second(created, took));
    let grown = server.resident_bytes()?.saturating_sub(before) / OBJECTS as u64;
    row(&label("memory for each object"), format!("{grown} bytes for {OBJECT_BYTES}"));
    row(&label("memory with all"), mebibytes(server.resident_bytes()?));
    if durability != "full" {
        return Ok(());
    }

    let (gets, took) = side_by_side(&server, |client| {
        let (begun, mut done) = (Instant::now(), 0);
        while begun.elapsed() < READ_FOR {
            // Far apart, and each object as often as any other.
            let at = next.fetch_add(1, Ordering::Relaxed).wrapping_mul(997) % OBJECTS;
            client.expect(200, "GET", &format!("{collection}/w-{at}"), b"")?;
            done += 1;
        }
        Ok(done)
    })?;
    row("gets", per_second(gets, took));
    let (mut client, cpu, begun) = (server.connect()?, server.processor_time()?, Instant::now());
    for at in 0..OBJECTS {
        client.expect(200, "GET", &format!("{collection}/w-{at}"), b"")?;
    }
    row("get by one client", micros(begun.elapsed() / OBJECTS as u32));
    row("processor time of the server for a get", micros((server.processor_time()? - cpu) / OBJECTS as u32));

    for (what, path) in [
        ("lists of 5,000", collection.clone()),
        ("lists of 500", format!("{collection}?limit=500")),
        ("lists by a label that none of 5,000 has", format!("{collection}?labelSelector=app%3Dnone")),
    ] {
        let cpu = server.processor_time()?;
        let (lists, took) = side_by_side(&server, |client| {
            let (begun, mut done) = (Instant::now(), 0);
            while begun.elapsed() < READ_FOR {
                client.expect(200, "GET", &path, b"")?;
                done += 1;
            }
            Ok(done)
        })?;
        row(what, per_second(lists, took));
        let each = (server.processor_time()? - cpu) / u32::try_from(lists.max(1))?;
        row(&format!("processor time of the server, {what}"), millis(each));
    }
    row("memory after lists", mebibytes(server.resident_bytes()?));
    compressed_lists(&server, &collection)?;
    pages(&server, &collection)?;
    initial_events(&server, &collection)
}

/// Lists of all objects under gzip, beside what the compressor takes alone.
fn compressed_lists(server: &Server, collection: &str) -> Result<(), Failure> {
    let list = server.connect()?.expect(200, "GET", collection, b"")?;
    let begun = Instant::now();
    let mut packed_bytes = 0;
    for _ in 0..LISTS {
        let mut encoder = GzEncoder::new(Vec::with_capacity(list.len() / 4), Compression::fast());
        encoder.write_all(&list)?;
        packed_bytes = encoder.finish()?.len();
    }
    row("gzip alone of a list of 5,000", millis(begun.elapsed() / LISTS));
    row("a list of 5,000, plain and packed", format!("{} and {packed_bytes} bytes", list.len()));
    for (what, mut client) in [("identity", server.connect()?), ("gzip", server.connect()?.accepting_gzip())] {
        let (cpu, begun) = (server.processor_time()?, Instant::now());
        for _ in 0..LISTS {
            client.expect(200, "GET", collection, b"")?;
        }
        row(&format!("list of 5,000 by one client, {what}"), millis(begun.elapsed() / LISTS));
        let each = (server.processor_time()? - cpu) / LISTS;
        row(&format!("processor time of the server for it, {what}"), millis(each));
    }
    Ok(())
}

/// All objects in pages of 500, one after the other.
fn pages(server: &Server, collection: &str) -> Result<(), Failure> {
    let mut client = server.connect()?;
    let (begun, mut count, mut token) = (Instant::now(), 0_u32, String::new());
    for _ in 0..LISTS {
        loop {
            let path = format!("{collection}?limit=500&continue={token}");
            let page = String::from_utf8(client.expect(200, "GET", &path, b"")?)?;
            count += 1;
            let end = page.rsplit_once(r#""continue":""#).ok_or("a page has a field for its token")?.1;
            token = end.split('"').next().unwrap_or_default().to_owned();
            if token.is_empty() {
                break;
            }
        }
    }
    row("page of 500, by one client", millis(begun.elapsed() / count));
    Ok(())
}

/// The initial events of a watch of all objects.
fn initial_events(server: &Server, collection: &str) -> Result<(), Failure> {
    let mut took = Vec::new();
    for _ in 0..LISTS {
        let (mut client, begun, mut seen) = (server.connect()?, Instant::now(), 0);
        client.request("GET", &format!("{collection}?watch=1"), b"")?;
        client.head()?;
        while seen < OBJECTS {
            seen += client.chunk()?.iter().filter(|byte| **byte == b'\n').count();
        }
        took.push(begun.elapsed());
    }
    row("watch with 5,000 initial events, p50", millis(percentile(&mut took, 50)));
    Ok(())
}

/// From the deletion of a namespace until it and its objects are gone.
fn namespace(folder: &Path) -> Result<(), Failure> {
    for durability in ["full", "relaxed"] {
        let data = folder.join(format!("namespace-{durability}"));
        let server = Server::start(&data, &["--durability", durability])?;
        let mut client = server.connect()?;
        client.expect(201, "POST", NAMESPACES, br#"{"metadata":{"name":"team"}}"#)?;
        let maps = format!("{NAMESPACES}/team/configmaps");
        let next = AtomicUsize::new(0);
        side_by_side(&server, |client| {
            let mut done = 0;
            loop {
                let at = next.fetch_add(1, Ordering::Relaxed);
                if at >= NAMESPACE_OBJECTS {
                    return Ok(done);
                }
                let body = format!(r#"{{"metadata":{{"name":"m-{at}"}},"data":{{"text":"{}"}}}}"#, "x".repeat(500));
                client.expect(201, "POST", &maps, body.as_bytes())?;
                done += 1;
            }
        })?;
        let begun = Instant::now();
        let path = format!("{NAMESPACES}/team");
        client.expect(200, "DELETE", &path, b"")?;
        while client.send("GET", &path, b"")?.0 != 404 {
            thread::sleep(Duration::from_millis(5));
        }
        row(&format!("namespace of 10,000 deleted, durability {durability}"), millis(begun.elapsed()));
    }
    Ok(())
}

/// Writes of one client, alone and while others wait for a webhook that never answers.
fn hanging_webhook(folder: &Path) -> Result<(), Failure> {
    let server = Server::start(&folder.join("webhook"), &[])?;
    let collection = register_widgets(&server)?;
    let mut client = server.connect()?;
    let mut write = |from: usize| -> Result<Duration, Failure> {
        let mut took = Vec::with_capacity(UNRELATED_WRITES);
        for at in from..from + UNRELATED_WRITES {
            let begun = Instant::now();
            client.expect(201, "POST", &collection, &widget(at))?;
            took.push(begun.elapsed());
        }
        Ok(percentile(&mut took, 99))
    };
    // The kernel takes connections for it; nobody reads them.
    let silent = TcpListener::bind("127.0.0.1:0")?;
    let configuration = format!(
        r#"{{"metadata":{{"name":"silent"}},"webhooks":[{{"name":"silent.example.com","clientConfig":{{"url":"https://{}/"}},
        "rules":[{{"operations":["CREATE"],"apiGroups":[""],"apiVersions":["v1"],"resources":["configmaps"]}}],
        "sideEffects":"None","admissionReviewVersions":["v1"],"timeoutSeconds":30}}]}}"#,
        silent.local_addr()?
    );
    let path = "/apis/admissionregistration.k8s.io/v1/mutatingwebhookconfigurations";
    server.connect()?.expect(201, "POST", path, configuration.as_bytes())?;
    let alone = write(0)?;
    let mut waiting = Vec::with_capacity(WAITING);
    for at in 0..WAITING {
        let mut client = server.connect()?;
        let body = format!(r#"{{"metadata":{{"name":"m-{at}"}}}}"#);
        client.request("POST", "/api/v1/namespaces/default/configmaps", body.as_bytes())?;
        waiting.push(client);
    }
    let beside = write(UNRELATED_WRITES)?;
    row("write, p99, alone", micros(alone));
    row("write, p99, while 150 requests wait for a webhook that hangs", micros(beside));
    Ok(())
}

/// From a write to its event with many watchers, in the order of events.
fn events(folder: &Path) -> Result<(), Failure> {
    let server = Server::start(&folder.join("events"), &["--durability", "relaxed"])?;
    let collection = register_widgets(&server)?;
    let watching = Arc::new(Barrier::new(WATCHERS + 1));
    thread::scope(|scope| {
        let watchers: Vec<_> = (0..WATCHERS)
            .map(|_| {
                let (watching, path) = (Arc::clone(&watching), format!("{collection}?watch=1&resourceVersion=0"));
                let server = &server;
                scope.spawn(move || -> Result<Vec<Instant>, Failure> {
                    let mut client = server.connect()?;
                    client.request("GET", &path, b"")?;
                    client.head()?;
                    watching.wait();
                    let mut seen = Vec::with_capacity(EVENTS);
                    while seen.len() < EVENTS {
                        let chunk = client.chunk()?;
                        let now = Instant::now();
                        seen.extend(chunk.iter().filter(|byte| **byte == b'\n').map(|_| now));
                    }
                    Ok(seen)
                })
            })
            .collect();
        let mut client = server.connect()?;
        watching.wait();
        let mut written = Vec::with_capacity(EVENTS);
        let cpu = server.processor_time()?;
        for at in 0..EVENTS {
            let begun = Instant::now();
            client.expect(201, "POST", &collection, &widget(at))?;
            written.push((begun, Instant::now()));
            thread::sleep(Duration::from_millis(10));
        }
        let (mut after_answer, mut after_request) = (Vec::new(), Vec::new());
        for watcher in watchers {
            let seen = watcher.join().map_err(|_| "a watcher panicked")??;
            for ((begun, answered), seen) in written.iter().zip(seen) {
                after_answer.push(seen.saturating_duration_since(*answered));
                after_request.push(seen - *begun);
            }
        }
        let each = (server.processor_time()? - cpu) / (EVENTS * WATCHERS) as u32;
        row("processor time of the server, an event to one of 50 watchers", micros(each));
        for percent in [50, 99] {
            row(&format!("answer to event, 50 watchers, p{percent}"), millis(percentile(&mut after_answer, percent)));
            row(&format!("request to event, 50 watchers, p{percent}"), millis(percentile(&mut after_request, percent)));
        }
        Ok(())
    })
}

/// A minute of writes to many watches, of which one does not read: each of the others has every change once and in order,
/// and the memory comes back.
fn soak(folder: &Path) -> Result<(), Failure> {
    let server = Server::start(&folder.join("soak"), &["--durability", "relaxed"])?;
    let collection = register_widgets(&server)?;
    let path = format!("{collection}?watch=1&resourceVersion=0");
    let object = |at: usize| {
        let text = "x".repeat(SOAK_OBJECT_BYTES);
        format!(
            r#"{{"apiVersion":"load.example.com/v1","kind":"Widget","metadata":{{"name":"s-{at}"}},"spec":{{"text":"{text}"}}}}"#
        )
    };
    let mut stalled = server.connect()?;
    stalled.request("GET", &path, b"")?;
    let mut watches = Vec::with_capacity(SOAK_WATCHES);
    for _ in 0..SOAK_WATCHES {
        let mut client = server.connect()?;
        client.request("GET", &path, b"")?;
        client.head()?;
        watches.push(client);
    }
    let before = server.resident_bytes()?;
    // By quarter of the time: the stalled client is waited for in the first ones, and is gone in the last one.
    let mut late = thread::scope(|scope| -> Result<[Vec<Duration>; 4], Failure> {
        let readers: Vec<_> = watches.into_iter().map(|watch| scope.spawn(move || arrivals(watch))).collect();
        let mut client = server.connect()?;
        let (begun, mut written) = (Instant::now(), Vec::with_capacity(SOAK_WRITES));
        for at in 0..SOAK_WRITES {
            thread::sleep((begun + SOAK_WRITE_EVERY * at as u32).saturating_duration_since(Instant::now()));
            let created = String::from_utf8(client.expect(201, "POST", &collection, object(at).as_bytes())?)?;
            written.push((revision(&created).ok_or("what is created has a revision")?, Instant::now()));
        }
        let mut late = [(); 4].map(|()| Vec::with_capacity(SOAK_WATCHES * SOAK_WRITES / 4));
        for reader in readers {
            let seen = reader.join().map_err(|_| "a reader panicked")??;
            if !seen.iter().map(|(revision, _)| revision).eq(written.iter().map(|(revision, _)| revision)) {
                return Err("a watch missed a change, or had one twice".into());
            }
            for (at, ((_, seen), (_, written))) in seen.iter().zip(&written).enumerate() {
                late[at * 4 / SOAK_WRITES].push(seen.saturating_duration_since(*written));
            }
        }
        Ok(late)
    })?;
    for (quarter, late) in late.iter_mut().enumerate() {
        for percent in [50, 99] {
            let what = format!("answer to event, 1,000 watchers, quarter {}, p{percent}", quarter + 1);
            row(&what, millis(percentile(late, percent)));
        }
    }
    row("memory before", mebibytes(before));
    row("memory at the end", mebibytes(server.resident_bytes()?));
    thread::sleep(Duration::from_secs(30));
    row("memory 30 s later", mebibytes(server.resident_bytes()?));
    stalled.head()?;
    let mut had = 0;
    while had < SOAK_WRITES
        && let Ok(chunk) = stalled.chunk()
    {
        had += chunk.iter().filter(|byte| **byte == b'\n').count();
    }
    row("events of the client that does not read", format!("{had} of {SOAK_WRITES}"));
    if had == SOAK_WRITES {
        return Err("a client that does not read was not cut off".into());
    }
    fs::remove_dir_all(folder)?;
    Ok(())
}

/// The revisions of the changes that a watch has, and when each came.
fn arrivals(mut watch: Client) -> Result<Vec<(u64, Instant)>, Failure> {
    let (mut seen, mut text) = (Vec::with_capacity(SOAK_WRITES), String::new());
    while seen.len() < SOAK_WRITES {
        let chunk = watch.chunk()?;
        if chunk.is_empty() {
            return Err("a watch ended".into());
        }
        let now = Instant::now();
        text.push_str(std::str::from_utf8(&chunk)?);
        while let Some((event, rest)) = text.split_once('\n') {
            seen.push((revision(event).ok_or("an event has a revision")?, now));
            text = rest.to_owned();
        }
    }
    Ok(seen)
}

/// The resourceVersion in the JSON of an object or event.
fn revision(json: &str) -> Option<u64> {
    json.split_once(r#""resourceVersion":""#)?.1.split('"').next()?.parse().ok()
}

impl Client {
    fn accepting_gzip(self) -> Self {
        Client(self.0, "Accept-Encoding: gzip\r\n")
    }

    fn request(&mut self, method: &str, path: &str, body: &[u8]) -> Result<(), Failure> {
        self.request_as(&self.headers(), method, path, body)
    }
}

/// How long the disk takes to have one block.
fn fdatasyncs(folder: &Path) -> Result<Vec<Duration>, Failure> {
    let mut file = File::create(folder.join("fdatasync"))?;
    let sync = |_| -> Result<Duration, Failure> {
        let begun = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        Ok(begun.elapsed())
    };
    (0..200).map(sync).collect()
}
