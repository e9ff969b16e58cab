//! The objects that figures are taken with, clients side by side that send them, and figures as rows of a table.

use std::fs;
use std::thread;
use std::time::{Duration, Instant};

use super::server::{Client, Failure, Server};

pub const OBJECT_BYTES: usize = 2_048;
const CLIENTS: usize = 16;

pub const DEFINITIONS_PATH: &str = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions";

pub fn definition(group: &str) -> Vec<u8> {
    let spec = r#"{"type":"object","properties":{"replicas":{"type":"integer","minimum":0},
        "mode":{"type":"string","enum":["fast","safe"],"default":"safe"},"text":{"type":"string","maxLength":4096},
        "labels":{"type":"object","additionalProperties":{"type":"string"}}}}"#;
    format!(
        r#"{{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{{"name":"widgets.{group}"}},
        "spec":{{"group":"{group}","scope":"Namespaced","names":{{"plural":"widgets","kind":"Widget"}},
        "versions":[{{"name":"v1","served":true,"storage":true,"schema":{{"openAPIV3Schema":
        {{"type":"object","properties":{{"spec":{spec}}}}}}}}}]}}}}"#
    )
    .into_bytes()
}

pub fn widget(at: usize) -> Vec<u8> {
    let head = format!(
        r#"{{"apiVersion":"load.example.com/v1","kind":"Widget","metadata":{{"name":"w-{at}","labels":{{"app":"load"}}}},"spec":{{"replicas":{at},"labels":{{"a":"b","c":"d"}},"text":""#
    );
    let text = prose(at, OBJECT_BYTES - head.len() - 3);
    format!(r#"{head}{text}"}}}}"#).into_bytes()
}

/// A text of so many bytes that compresses as the text of people does, another one for each number.
fn prose(seed: usize, bytes: usize) -> String {
    const WORDS: &str = "the controller of a replica is ready when its volume and secret are there node with selector that rollout \
                         waits for image namespace no endpoint answers before probe in deployment must cluster";
    let words: Vec<&str> = WORDS.split(' ').collect();
    let mut state = seed as u64 + 1;
    let mut text = String::with_capacity(bytes + 16);
    while text.len() < bytes {
        // Knuth's multiplier; the upper bits are the good ones.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        text.push_str(words[(state >> 59) as usize % words.len()]);
        // Names and sums are not words.
        text.push_str(if state >> 40 & 7 == 0 { "-" } else { " " });
        if state >> 36 & 15 == 0 {
            text.push_str(&format!("{:08x} ", state >> 20 & 0xffff_ffff));
        }
    }
    text.truncate(bytes);
    text
}

/// Registers the kind of the load; returns the path of its objects once it is served.
pub fn register_widgets(server: &Server) -> Result<String, Failure> {
    let mut client = server.connect()?;
    client.expect(201, "POST", DEFINITIONS_PATH, &definition("load.example.com"))?;
    let path = "/apis/load.example.com/v1/namespaces/default/widgets";
    while client.send("GET", path, b"")?.0 != 200 {}
    Ok(path.to_owned())
}

/// Runs `work` with a client each, all at once; returns the sum of what they did, and how long it took.
pub fn side_by_side(
    server: &Server,
    work: impl Fn(&mut Client) -> Result<usize, Failure> + Sync,
) -> Result<(usize, Duration), Failure> {
    let clients: Vec<Client> = (0..CLIENTS).map(|_| server.connect()).collect::<Result<_, _>>()?;
    let begun = Instant::now();
    let done = thread::scope(|scope| {
        let work = &work;
        let running: Vec<_> = clients.into_iter().map(|mut client| scope.spawn(move || work(&mut client))).collect();
        running
            .into_iter()
            .map(|thread| thread.join().map_err(|_| "a client panicked")?)
            .sum::<Result<usize, Failure>>()
    })?;
    Ok((done, begun.elapsed()))
}

impl Server {
    /// What the server has spent on processors, in user and kernel.
    pub fn processor_time(&self) -> Result<Duration, Failure> {
        const TICKS_PER_SECOND: u64 = 100;
        let stat = fs::read_to_string(format!("/proc/{}/stat", self.child.id()))?;
        let fields: Vec<&str> = stat.rsplit(')').next().unwrap_or_default().split_whitespace().collect();
        let ticks = fields[11].parse::<u64>()? + fields[12].parse::<u64>()?;
        Ok(Duration::from_millis(ticks * 1_000 / TICKS_PER_SECOND))
    }
}

/// Begins a table in Markdown.
pub fn head() {
    row("what", "figure".to_owned());
    println!("|{}|{}:|", "-".repeat(62), "-".repeat(25));
}

pub fn row(what: &str, figure: String) {
    println!("| {what:<60} | {figure:>24} |");
}

pub fn micros(duration: Duration) -> String {
    format!("{:.0} µs", duration.as_secs_f64() * 1e6)
}

pub fn mebibytes(bytes: u64) -> String {
    format!("{:.1} MiB", bytes as f64 / f64::from(1 << 20))
}

pub fn per_second(count: usize, took: Duration) -> String {
    format!("{:.0} /s", count as f64 / took.as_secs_f64())
}
