//! How long diagnostics take after a keystroke, over the ten largest definitions of the corpus.
//!
//! `cargo bench --bench editor`: the server as an editor runs it. Letters are typed into a rule, a bound, a key, a comment and a
//! description of each definition, and taken back; each keystroke is answered before the next is sent.

#[path = "../tests/beside.rs"]
#[expect(dead_code, reason = "tests read other files, too")]
mod beside;
#[path = "../tests/editor/client.rs"]
#[expect(dead_code, reason = "tests ask for more")]
mod client;
#[path = "../tests/editor/largest.rs"]
mod largest;
#[path = "../tests/editor/typing.rs"]
mod typing;

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use client::Client;
use typing::{Edit, spots};

/// Letters that are typed and taken back at each spot.
const LETTERS: usize = 50;

fn main() {
    let Some(texts) = largest::largest() else { return };
    let (mut all, mut by_spot) = (Vec::new(), BTreeMap::<_, Vec<Duration>>::new());
    for (number, text) in texts.iter().enumerate() {
        let mut client = Client::start(None);
        let uri = format!("file:///corpus/{number}.yaml");
        client.open(&uri, text);
        client.diagnostics(&uri);
        let mut own = Vec::new();
        for spot in spots(text) {
            let times =
                (0..LETTERS).flat_map(|_| [spot.letter(), spot.back()].map(|edit| keystroke(&mut client, &uri, edit)));
            let times: Vec<Duration> = times.collect();
            by_spot.entry(spot.name).or_default().extend(&times);
            own.extend(times);
        }
        println!("{:>8} bytes  {}  {:>4} MiB", text.len(), shown(&mut own), client.memory_mib().unwrap_or_default());
        all.extend(own);
    }
    for (name, mut times) in by_spot {
        println!("{name:>14}  {}", shown(&mut times));
    }
    println!("{:>14}  {}", "all", shown(&mut all));
}

/// The time from a keystroke to its diagnostics.
fn keystroke(client: &mut Client, uri: &str, Edit { line, from, to, comes }: Edit) -> Duration {
    let begun = Instant::now();
    client.edit(uri, ((line as u64, from as u64), (line as u64, to as u64)), comes);
    client.diagnostics(uri);
    begun.elapsed()
}

fn shown(times: &mut [Duration]) -> String {
    times.sort();
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1000.0;
    format!("p50 {:6.1} ms  p99 {:6.1} ms", at(50), at(99))
}
