//! The fuzz targets: each takes any bytes, and panics where a property does not hold.
//!
//! libFuzzer runs them one by one, and the tests of kubeskiff run all over their corpora and some seeds. `README.md` has
//! the table of targets and properties.

pub mod apply;
pub mod expressions;
pub mod json;
pub mod patches;
pub mod paths;
pub mod patterns;
pub mod protobuf;
pub mod queries;
pub mod schemas;
pub mod selectors;
pub mod yaml;

/// A target: its name, which is that of its corpus, and what runs it.
pub type Target = (&'static str, fn(&[u8]));

/// All of them.
pub const TARGETS: [Target; 11] = [
    ("json", json::run),
    ("yaml", yaml::run),
    ("paths", paths::run),
    ("queries", queries::run),
    ("selectors", selectors::run),
    ("patches", patches::run),
    ("schemas", schemas::run),
    ("patterns", patterns::run),
    ("protobuf", protobuf::run),
    ("apply", apply::run),
    ("expressions", expressions::run),
];

/// The parts of an input that has several, which a line `---` separates.
fn parts(data: &[u8]) -> (&[u8], &[u8]) {
    const BETWEEN: &[u8] = b"\n---\n";
    match data.windows(BETWEEN.len()).position(|window| window == BETWEEN) {
        Some(at) => (&data[..at], &data[at + BETWEEN.len()..]),
        None => (data, b""),
    }
}
