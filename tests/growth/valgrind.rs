//! The count that knows nothing of the code: instructions, by valgrind's callgrind.
//!
//! A child process, this test binary again, runs the passes; callgrind counts in [`counted_to_here`] alone, and
//! writes what it counted after each call of it.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::{env, fs, thread};

use crate::pass::{Pass, Work};

/// Tells the child which passes are its own: every so many, from which one on.
const SHARE: &str = "GROWTH_SHARE";
/// How callgrind knows the functions: before one it forgets what it counted, after the other it writes it down. (It heeds one
/// option for a function.)
const FROM_HERE: &str = "*counted_from_here*";
const TO_HERE: &str = "*counted_to_here*";

/// Every `each`th pass from the `first` on.
#[derive(Clone, Copy)]
pub struct Share {
    pub first: usize,
    pub each: usize,
}

/// What this process is to run, if it is the child.
pub fn share() -> Option<Share> {
    let share = env::var(SHARE).ok()?;
    let (first, each) = share.split_once('/')?;
    Some(Share { first: first.parse().ok()?, each: each.parse().ok()? })
}

/// Runs a pass at each of its sizes, counted.
pub fn run(pass: &Pass) {
    (pass.prepare)(pass.size)();
    pass.sizes().into_iter().for_each(|size| counted_to_here((pass.prepare)(size)));
}

#[inline(never)]
fn counted_to_here(work: Work) {
    counted_from_here(work);
}

#[inline(never)]
fn counted_from_here(work: Work) {
    work();
}

/// The instructions that each pass takes at each of its sizes, in debug builds.
pub fn instructions(passes: &[Pass]) -> Vec<(&Pass, [u64; 3])> {
    let found = Command::new("valgrind").arg("--version").stdout(Stdio::null()).status();
    assert!(found.is_ok(), "valgrind is missing, which counts the instructions");
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("growth");
    _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).expect("cargo's folder can be written to");
    let each = thread::available_parallelism().map_or(1, usize::from).min(passes.len());
    let children: Vec<_> = (0..each).map(|first| (first, begin(&folder, Share { first, each }))).collect();
    let mut counts = BTreeMap::new();
    for (first, child) in children {
        let output = child.wait_with_output().expect("valgrind runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        let own = passes.iter().enumerate().skip(first).step_by(each);
        for (call, (at, _)) in own.enumerate() {
            counts.insert(at, [1, 2, 3].map(|size| dumped(&folder, first, 3 * call + size)));
        }
    }
    _ = fs::remove_dir_all(&folder);
    passes.iter().enumerate().map(|(at, pass)| (pass, counts[&at])).collect()
}

fn begin(folder: &Path, share: Share) -> Child {
    let file = folder.join(share.first.to_string());
    Command::new("valgrind")
        .args(["--tool=callgrind", "--dump-line=no"])
        .args([format!("--zero-before={FROM_HERE}"), format!("--dump-after={TO_HERE}")])
        .arg(format!("--callgrind-out-file={}", file.display()))
        .arg(env::current_exe().expect("this is a file"))
        .args(["--exact", "measured_by_another_process", "--nocapture", "--test-threads=1"])
        .env(SHARE, format!("{}/{}", share.first, share.each))
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("it ran a moment ago")
}

/// What was counted in the call of that number, from one on.
fn dumped(folder: &Path, first: usize, call: usize) -> u64 {
    let path = folder.join(format!("{first}.{call}"));
    let text = fs::read_to_string(&path).expect("callgrind writes a file after each call");
    let totals = text.lines().find_map(|line| line.strip_prefix("totals: "));
    totals.and_then(|totals| totals.trim().parse().ok()).expect("callgrind writes totals")
}
