//! The fuzz targets: each takes any bytes, and panics where a property does not hold, or where its steps and what it
//! allocates grow faster than its input.
//!
//! libFuzzer runs them one by one, and the tests of kubeskiff run all over their corpora and some seeds. `README.md` has
//! the table of targets and properties.

pub mod apply;
pub mod controllers;
pub mod definitions;
pub mod expressions;
pub mod json;
pub mod kinds;
pub mod patches;
pub mod paths;
pub mod patterns;
pub mod policies;
pub mod protobuf;
pub mod queries;
pub mod requests;
pub mod roles;
pub mod schemas;
pub mod selectors;
pub mod server;
pub mod yaml;

use kubeskiff::work;

/// A target, and what it may take.
#[derive(Clone, Copy)]
pub struct Target {
    /// That of its corpus, too.
    pub name: &'static str,
    pub run: fn(&[u8]),
    pub steps: Linear,
    pub allocated_bytes: Linear,
}

/// A bound that grows as the input does.
#[derive(Clone, Copy)]
pub struct Linear {
    /// For an input of any length: what is made once per process, and what has a limit of its own.
    pub beside: u64,
    pub per_byte: u64,
}

/// All of them.
pub const TARGETS: [Target; 17] = [
    json::TARGET,
    yaml::TARGET,
    paths::TARGET,
    queries::TARGET,
    selectors::TARGET,
    patches::TARGET,
    schemas::TARGET,
    patterns::TARGET,
    protobuf::TARGET,
    apply::TARGET,
    expressions::TARGET,
    roles::TARGET,
    policies::TARGET,
    definitions::TARGET,
    kinds::TARGET,
    requests::TARGET,
    controllers::TARGET,
];

impl Target {
    /// Runs the target, and panics where a property does not hold, or where its work is not linear in the input.
    pub fn attempt(&self, data: &[u8]) {
        let mut steps = 0;
        let allocated = allocation_counter::measure(|| steps = work::counted(|| (self.run)(data)).1).bytes_total;
        self.steps.confirm(data.len(), steps, "steps");
        self.allocated_bytes.confirm(data.len(), allocated, "allocated bytes");
    }
}

impl Linear {
    fn confirm(&self, length: usize, taken: u64, what: &str) {
        let max = self.beside + self.per_byte * length as u64;
        assert!(taken <= max, "{length} bytes took {taken} {what}, more than {max}");
    }
}

/// The parts of an input that has several, which a line `---` separates.
fn parts(data: &[u8]) -> (&[u8], &[u8]) {
    const BETWEEN: &[u8] = b"\n---\n";
    match data.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
        Some(at) => (&data[..at], &data[at + BETWEEN.len()..]),
        None => (data, b""),
    }
}
