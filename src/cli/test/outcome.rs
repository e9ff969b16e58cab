//! What came of suites.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use super::super::documents::ManifestText;
use crate::author::suite::Coverage;
use crate::value::yaml::TextPosition;

/// What came of a suite.
pub(super) struct Tested {
    pub file: String,
    pub cases: Vec<TestedCase>,
    /// What of it can't be run.
    pub faults: Vec<UnreadableSuite>,
    pub taken: Duration,
}

impl Tested {
    /// One of which nothing has run.
    pub fn unusable(path: &Path, faults: Vec<UnreadableSuite>) -> Self {
        Tested { file: path.display().to_string(), cases: Vec::new(), faults, taken: Duration::ZERO }
    }
}

pub(super) struct TestedCase {
    pub name: String,
    pub file: String,
    pub place: Option<TextPosition>,
    pub failures: Vec<String>,
    pub ratcheted: Vec<String>,
    pub taken: Duration,
}

/// What can't be read.
pub(super) struct UnreadableSuite {
    pub file: String,
    pub place: Option<TextPosition>,
    pub text: String,
}

impl UnreadableSuite {
    pub fn new(path: &Path, text: String) -> Vec<UnreadableSuite> {
        vec![UnreadableSuite { file: path.display().to_string(), place: None, text }]
    }

    /// What of files can't be read, told of the suite that needs them.
    pub fn of_sources(path: &Path, sources: &[ManifestText]) -> Vec<UnreadableSuite> {
        let faults = sources.iter().flat_map(|source| &source.faults);
        faults.flat_map(|fault| UnreadableSuite::new(path, fault.message.clone())).collect()
    }
}

/// What came of all suites.
pub(super) struct TestRun {
    pub tested: Vec<Tested>,
    pub coverage: Coverage,
    /// Definitions and policies of which too little is covered.
    pub uncovered: Vec<String>,
}

impl TestRun {
    pub fn cases(&self) -> impl Iterator<Item = &TestedCase> {
        self.tested.iter().flat_map(|suite| &suite.cases)
    }

    pub fn faults(&self) -> impl Iterator<Item = &UnreadableSuite> {
        self.tested.iter().flat_map(|suite| &suite.faults)
    }

    pub fn code(&self) -> ExitCode {
        let is_fine = self.cases().all(|case| case.failures.is_empty()) && self.uncovered.is_empty();
        match (self.faults().next(), is_fine) {
            (Some(_), _) => ExitCode::from(2),
            (None, false) => ExitCode::FAILURE,
            (None, true) => ExitCode::SUCCESS,
        }
    }
}

/// `suite.yaml:3:5`.
pub(super) fn located(file: &str, place: Option<TextPosition>) -> String {
    place.map_or_else(|| file.to_owned(), |place| format!("{file}:{}:{}", place.line, place.column))
}
