//! How long diagnostics take after a keystroke, over the ten largest definitions of the corpus.
//!
//! `cargo bench --bench editor`: the server as an editor runs it; each keystroke is answered before the next is sent.

#[path = "../tests/beside.rs"]
#[expect(dead_code, reason = "tests read other files, too")]
mod beside;
#[path = "../tests/editor/client.rs"]
#[expect(dead_code, reason = "tests ask for more")]
mod client;
#[path = "../tests/editor/largest.rs"]
mod largest;

use std::time::{Duration, Instant};

use client::Client;

/// Keystrokes in each definition.
const KEYSTROKES: u64 = 60;

fn main() {
    let Some(texts) = largest::largest() else { return };
    let mut all = Vec::new();
    for (number, text) in texts.iter().enumerate() {
        let mut client = Client::start(None);
        let uri = format!("file:///corpus/{number}.yaml");
        client.open(&uri, text);
        client.diagnostics(&uri);
        let lines: Vec<&str> = text.lines().collect();
        // In the middle of a description, or of whatever there is.
        let line = (lines.len() / 2..lines.len())
            .find(|line| lines[*line].contains("description: "))
            .unwrap_or(lines.len() / 2);
        let mut times: Vec<Duration> = (0..KEYSTROKES)
            .map(|_| {
                let end = lines[line].encode_utf16().count() as u64;
                let begun = Instant::now();
                client.edit(&uri, ((line as u64, end), (line as u64, end)), "x");
                client.diagnostics(&uri);
                begun.elapsed()
            })
            .collect();
        times.sort();
        println!("{:>8} bytes  {}", text.len(), shown(&times));
        all.extend(times);
    }
    all.sort();
    println!("{:>14}  {}", "all", shown(&all));
}

fn shown(sorted: &[Duration]) -> String {
    let at = |percent: usize| sorted[(sorted.len() * percent / 100).min(sorted.len() - 1)].as_secs_f64() * 1000.0;
    format!("p50 {:6.1} ms  p99 {:6.1} ms", at(50), at(99))
}
