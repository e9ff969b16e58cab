//! What tests read from beside the project: the corpus, the cases of the CEL standard and the facts of Go types, in
//! `../shared`.
//!
//! Under CI they must be there. Elsewhere a test that lacks them says so in one line, with how many cases it leaves out,
//! and passes.

use std::io::Write as _;
use std::path::{Path, PathBuf};

use flate2::read::GzDecoder;
use serde_json::Value;

/// A file beside the project, with what its lines are and how many it has.
pub struct Beside {
    pub file: &'static str,
    pub cases: usize,
    pub what: &'static str,
}

pub const DEFINITIONS: Beside = Beside { file: "corpus/crds.jsonl.gz", cases: 580, what: "definitions of the corpus" };
pub const OBJECTS: Beside = Beside { file: "corpus/crs.jsonl.gz", cases: 5484, what: "objects of the corpus" };
pub const DOCUMENTS: Beside = Beside { file: "corpus/openapi.jsonl.gz", cases: 18, what: "documents of the corpus" };
pub const STANDARD: Beside =
    Beside { file: "cel-spec/cel-spec.jsonl.gz", cases: 2456, what: "cases of the CEL standard" };

pub const TYPES: Beside = Beside { file: "kinds/types.jsonl.gz", cases: 1596, what: "types of the published modules" };

impl Beside {
    /// The JSON of its lines; `None` where the file is not there.
    ///
    /// # Panics
    ///
    /// Where it is not there although this is CI, and where it has other than the given number of lines.
    pub fn read(&self) -> Option<Vec<Value>> {
        let text = self.text()?;
        let lines: Vec<_> = text.lines().map(|line| serde_json::from_str(line).expect("each line is a case")).collect();
        assert_eq!(lines.len(), self.cases, "{}", self.what);
        Some(lines)
    }

    fn text(&self) -> Option<String> {
        let path = self.path();
        let Ok(file) = std::fs::File::open(&path) else {
            assert!(std::env::var_os("CI").is_none(), "{} is not there", path.display());
            self.tell();
            return None;
        };
        Some(std::io::read_to_string(GzDecoder::new(file)).expect("the file is text under gzip"))
    }

    fn path(&self) -> PathBuf {
        Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared").join(self.file)
    }

    /// Past the test runner, which keeps what is printed by tests that pass.
    fn tell(&self) {
        let line = format!("left out: {} {}, as ../shared/{} is not there\n", self.cases, self.what, self.file);
        drop(std::io::stderr().write_all(line.as_bytes()));
    }
}
