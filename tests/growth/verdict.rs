//! What the counts say of a pass.

use crate::measure::Taken;
use crate::pass::Pass;
use crate::{ASKED, known};

/// How much a count may grow.
struct Limit {
    /// How much more the second step of an input's growth may take than the first, which is as long: as much where the work
    /// is linear, 1.2 times as much for a sort, 2.4 times where it is quadratic.
    factor_max: f64,
    /// What grows by no more than this, or by an eighth of all, is bounded, or too little to tell.
    growth_min: u64,
}

const STEPS: Limit = Limit { factor_max: 1.5, growth_min: 100 };
/// What a server does beside a request takes steps as well, now and then.
const REQUEST_STEPS: Limit = Limit { growth_min: 500, ..STEPS };
/// Buffers that double take up to 1.4 times as much.
const BYTES: Limit = Limit { factor_max: 1.7, growth_min: 128 << 10 };
const INSTRUCTIONS: Limit = Limit { factor_max: 1.5, growth_min: 1_000_000 };
/// A pass takes a step for so many items at least, or it does not count its work: an item may be a byte of a text.
const ITEMS_PER_STEP_MAX: usize = 100;

/// A count that does not hold, or holds.
pub struct Finding {
    pub pass: String,
    pub count: &'static str,
    /// What is wrong; empty where nothing is.
    pub fault: String,
}

/// Judges the steps and bytes of a pass.
pub fn counted(pass: &Pass, taken: &[Taken; 3]) -> Vec<Finding> {
    let steps = taken.map(|taken| taken.steps);
    let least = (10 * pass.size / ITEMS_PER_STEP_MAX) as u64;
    let uncounted = format!("{} steps for {} items: it does not count its work", steps[2], 10 * pass.size);
    let uncounted = if steps[2] < least { uncounted } else { String::new() };
    let finding = |count, fault| Finding { pass: pass.name(), count, fault };
    show(pass, &format!("{taken:?}"));
    let is_request = pass.name().starts_with("request to");
    let limit = if is_request { &REQUEST_STEPS } else { &STEPS };
    let mut findings = vec![finding("counting", uncounted), finding("steps", grown(steps, limit))];
    // It allocates, too.
    if !is_request {
        findings.extend([
            finding("bytes", grown(taken.map(|taken| taken.allocated_bytes), &BYTES)),
            finding("peak", grown(taken.map(|taken| taken.peak_bytes), &BYTES)),
        ]);
    }
    findings
}

/// Judges the instructions of a pass.
pub fn executed(pass: &Pass, instructions: &[u64; 3]) -> Vec<Finding> {
    show(pass, &format!("{instructions:?} instructions"));
    let fault = grown(*instructions, &INSTRUCTIONS);
    vec![Finding { pass: pass.name(), count: "instructions", fault }]
}

/// What is wrong with the growth of a count, where the second step took too much more than the first.
fn grown(counts: [u64; 3], limit: &Limit) -> String {
    let [smallest, middle, largest] = counts;
    let (first, second) = (middle.saturating_sub(smallest), largest.saturating_sub(middle));
    let factor = second as f64 / first.max(1) as f64;
    let growth = largest.saturating_sub(smallest);
    if growth <= limit.growth_min || growth < largest / 8 || factor <= limit.factor_max {
        return String::new();
    }
    format!("{factor:.2} times as much: {counts:?}")
}

fn show(pass: &Pass, counts: &str) {
    if std::env::var_os(ASKED).is_some() {
        eprintln!("{}: {counts}", pass.name());
    }
}

/// Fails where something does not hold that is not known, or where what is known begins to hold.
pub fn confirm(findings: Vec<Finding>) {
    let counts: Vec<&str> = findings.iter().map(|finding| finding.count).collect();
    let (mut failed, mut wrong) = (Vec::new(), Vec::new());
    for Finding { pass, count, fault } in findings.into_iter().filter(|finding| !finding.fault.is_empty()) {
        match known::entry(&pass, count) {
            Some(entry) => failed.push(entry),
            None => wrong.push(format!("{pass}: {count}: {fault}")),
        }
    }
    if std::env::var_os(ASKED).is_none() {
        wrong.extend(known::holding(&counts, &failed));
    }
    assert!(wrong.is_empty(), "{} counts:\n{}", wrong.len(), wrong.join("\n"));
}
