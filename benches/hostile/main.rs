//! How long small requests take beside the worst ones: the release binary, clients over TLS, a table on stdout.
//!
//!     cargo bench --bench hostile
//!     cargo bench --bench hostile -- PART-OF-A-NAME
//!     SKIFF_BENCH_PROGRAM=path/to/an/earlier/skiff cargo bench --bench hostile
//!
//! As many clients as there are processors send one of the worst requests again and again, while another sends health checks,
//! reads and small writes. Then a thousand connections send one each at once.
//!
//! The clients share the machine with the server: the figures are bounds, to be compared with others of the same machine.

mod inputs;
#[path = "../server/mod.rs"]
mod server;

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use inputs::{Input, Request};
use server::{Client, Failure, Server, millis, percentile};

/// How long small requests are timed beside each input.
const TIMED_FOR: Duration = Duration::from_secs(4);
/// Between two small requests.
const PAUSE: Duration = Duration::from_millis(2);
/// More senders than this send one request each.
const MANY: usize = 100;
/// How many of the worst requests are sent at once at the end.
const QUEUED: usize = 1_000;
/// How long those are waited for.
const QUEUED_FOR: Duration = Duration::from_secs(5);

fn main() -> Result<(), Failure> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("hostile");
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder)?;
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with('-')).unwrap_or_default();
    let processors = thread::available_parallelism()?.get();
    println!(
        "{:<28} {:>12} {:>12} {:>12} {:>12} {:>10}  answers",
        "beside", "median", "p99", "longest", "worst", "memory"
    );
    measure(&folder, "nothing", &Input::none(), 0)?;
    for input in inputs::all().iter().filter(|input| input.name.contains(&wanted)) {
        measure(&folder, input.name, input, processors)?;
    }
    for input in inputs::all().iter().filter(|input| input.is_queued && input.name.contains(&wanted)) {
        measure(&folder, &format!("{QUEUED} x {}", input.name), input, QUEUED)?;
    }
    fs::remove_dir_all(&folder)?;
    Ok(())
}

/// Prints a line: times of small requests beside `senders` of an input, the longest of its own, and how it was answered.
fn measure(folder: &Path, name: &str, input: &Input, senders: usize) -> Result<(), Failure> {
    let data = folder.join("data");
    let server = Server::start(&data, &[])?;
    let mut client = server.connect()?;
    for request in inputs::setup().iter().chain(&input.setup) {
        send(&mut client, request)?;
    }
    let (stop, begun) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (mut times, worst) = thread::scope(|scope| {
        let (server, stop, begun) = (&server, &stop, &begun);
        let sender = |at| scope.spawn(move || send_worst(server, input, senders, at, stop, begun));
        let sending: Vec<_> = (0..senders).map(sender).collect();
        while begun.load(Ordering::Relaxed) < senders {
            thread::sleep(PAUSE);
        }
        let times = time_small(server, if senders > MANY { QUEUED_FOR } else { TIMED_FOR });
        stop.store(true, Ordering::Relaxed);
        let worst: Vec<_> = sending.into_iter().filter_map(|thread| thread.join().ok()).collect();
        (times, worst)
    });
    let longest_own = worst.iter().map(|worst| worst.longest).max().unwrap_or_default();
    let mut answers: Vec<_> = worst.iter().flat_map(|worst| worst.statuses.clone()).collect();
    answers.sort_unstable();
    answers.dedup();
    match &mut times {
        Ok(times) => {
            let longest = times.iter().max().copied().unwrap_or_default();
            println!(
                "{name:<28} {:>12} {:>12} {:>12} {:>12} {:>10}  {answers:?}",
                millis(percentile(times, 50)),
                millis(percentile(times, 99)),
                millis(longest),
                millis(longest_own),
                format!("{} MiB", server.resident_bytes()? >> 20),
            );
        }
        Err(error) => println!("{name:<28} the server does not answer: {error}"),
    }
    drop(server);
    Ok(fs::remove_dir_all(&data)?)
}

/// What became of the worst requests of one client.
#[derive(Default)]
struct Worst {
    longest: Duration,
    statuses: Vec<u16>,
}

/// Sends an input until told to stop; where there are many senders, once, and the last byte when all have sent the rest.
fn send_worst(
    server: &Server,
    input: &Input,
    senders: usize,
    at: usize,
    stop: &AtomicBool,
    begun: &AtomicUsize,
) -> Worst {
    let mut worst = Worst::default();
    let connected = server.connect();
    if senders > MANY {
        if let Some(status) = connected.ok().and_then(|client| send_late(client, &(input.request)(at), senders, begun))
        {
            worst.statuses.push(status);
        }
        return worst;
    }
    begun.fetch_add(1, Ordering::Relaxed);
    let Ok(mut client) = connected else { return worst };
    let mut count = at;
    while !stop.load(Ordering::Relaxed) {
        let sent = Instant::now();
        let Ok(status) = send(&mut client, &(input.request)(count)) else { break };
        worst.longest = worst.longest.max(sent.elapsed());
        worst.statuses.push(status);
        count += senders;
    }
    worst
}

/// Sends a request whose last byte waits for all other senders; its status, unless the connection broke.
fn send_late(mut client: Client, request: &Request, senders: usize, begun: &AtomicUsize) -> Option<u16> {
    let head = format!(
        "{} {} HTTP/1.1\r\nHost: localhost\r\n{}Content-Length: {}\r\n\r\n",
        request.method,
        request.path,
        request.headers,
        request.body.len()
    );
    let (last, body) = request.body.split_last()?;
    let stream = client.0.get_mut();
    let sent = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(body));
    begun.fetch_add(1, Ordering::Relaxed);
    sent.ok()?;
    while begun.load(Ordering::Relaxed) < senders {
        thread::sleep(PAUSE);
    }
    client.0.get_mut().write_all(&[*last]).ok()?;
    client.answer().ok().map(|(status, _)| status)
}

/// The times of health checks, reads and small writes, sent one after the other.
fn time_small(server: &Server, time: Duration) -> Result<Vec<Duration>, Failure> {
    let begun = Instant::now();
    let mut client = server.connect()?;
    let mut times = Vec::new();
    while begun.elapsed() < time {
        for request in inputs::small(times.len()) {
            let sent = Instant::now();
            client.expect(request.status, request.method, &request.path, &request.body)?;
            times.push(sent.elapsed());
        }
        thread::sleep(PAUSE);
    }
    Ok(times)
}

fn send(client: &mut Client, request: &Request) -> Result<u16, Failure> {
    Ok(client.send_as(request.headers, request.method, &request.path, &request.body)?.0)
}
