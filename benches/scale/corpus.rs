//! What real definitions cost: those of a file, and again under other groups.

use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::time::Instant;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::server::{Failure, Server};
use super::widgets::{DEFINITIONS_PATH, mebibytes};

/// How often the definitions are registered, each time under other groups.
const ROUNDS: usize = 4;
/// Without it the server refuses groups of Kubernetes.
const APPROVED: (&str, &str) = ("api-approved.kubernetes.io", "unapproved, a bench");

/// Registers the definitions of `corpus`, gzipped lines of JSON with the definition as `crd`, and prints what each round takes.
pub fn definitions(folder: &Path, corpus: &str) -> Result<(), Failure> {
    let definitions = read(corpus)?;
    let server = Server::start(&folder.join("corpus"), &[])?;
    let mut client = server.connect()?;
    println!("\nReal definitions, {} to begin with\n", mebibytes(server.resident_bytes()?));
    println!("| registered | bytes each | refused | seconds | memory then |\n|---:|---:|---:|---:|---:|");
    let mut resident = Vec::with_capacity(ROUNDS);
    let mut later = 0;
    for round in 0..ROUNDS {
        let (mut bytes, mut registered, begun) = (0, 0, Instant::now());
        for definition in &definitions {
            let body = in_round(definition.clone(), round).to_string();
            if client.send("POST", DEFINITIONS_PATH, body.as_bytes())?.0 == 201 {
                registered += 1;
                bytes += body.len();
            }
        }
        let seconds = begun.elapsed().as_secs_f64();
        resident.push(server.resident_bytes()?);
        let (each, memory) = (bytes / registered.max(1), mebibytes(resident[round]));
        println!("| {registered} | {each} | {} | {seconds:.1} | {memory} |", definitions.len() - registered);
        later += if round > 0 { registered as u64 } else { 0 };
    }
    // The first round fills caches, and leaves room that the allocator keeps.
    let grown = resident[ROUNDS - 1].saturating_sub(resident[0]);
    println!("\n{} KiB for each definition after the first round", (grown / later.max(1)) >> 10);
    Ok(())
}

fn read(corpus: &str) -> Result<Vec<Value>, Failure> {
    let lines = BufReader::new(GzDecoder::new(File::open(corpus)?)).lines();
    lines.map(|line| Ok(serde_json::from_str::<Value>(&line?)?["crd"].take())).collect()
}

/// A definition as its author wrote it, under the group of a round; the first has the author's.
fn in_round(mut definition: Value, round: usize) -> Value {
    if let Some(fields) = definition.as_object_mut() {
        fields.remove("status");
    }
    let metadata = &mut definition["metadata"];
    for system in ["resourceVersion", "uid", "creationTimestamp", "managedFields", "generation"] {
        metadata.as_object_mut().map(|fields| fields.remove(system));
    }
    if round > 0 {
        let group = format!("r{round}.{}", definition["spec"]["group"].as_str().unwrap_or_default());
        let plural = definition["spec"]["names"]["plural"].as_str().unwrap_or_default();
        definition["metadata"]["name"] = format!("{plural}.{group}").into();
        definition["metadata"]["annotations"][APPROVED.0] = APPROVED.1.into();
        definition["spec"]["group"] = group.into();
    }
    definition
}
