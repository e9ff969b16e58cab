//! The results of suites.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use super::super::documents::ManifestText;
use crate::author::suite::Coverage;
use crate::value::yaml::TextPosition;

/// The results of a file or folder with suites.
pub(super) struct Tested {
    pub file: String,
    pub cases: Vec<TestedCase>,
    /// The errors because of which parts could not be run.
    pub faults: Vec<UnreadableSuite>,
    pub taken: Duration,
}

impl Tested {
    /// The results for suites that did not run.
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

/// An error of a file.
pub(super) struct UnreadableSuite {
    pub file: String,
    pub place: Option<TextPosition>,
    pub text: String,
}

impl UnreadableSuite {
    pub fn new(path: &Path, text: String) -> Vec<UnreadableSuite> {
        vec![UnreadableSuite { file: path.display().to_string(), place: None, text }]
    }

    /// The errors of files, attributed to the suite that needs them.
    pub fn of_sources(path: &Path, sources: &[ManifestText]) -> Vec<UnreadableSuite> {
        let faults = sources.iter().flat_map(|source| &source.faults);
        faults.flat_map(|fault| UnreadableSuite::new(path, fault.message.clone())).collect()
    }
}

/// The results of all suites.
pub(super) struct TestRun {
    pub tested: Vec<Tested>,
    pub coverage: Coverage,
    /// Definitions and policies with too little coverage.
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

/// Formats `suite.yaml:3:5`.
pub(super) fn located(file: &str, place: Option<TextPosition>) -> String {
    place.map_or_else(|| file.to_owned(), |place| format!("{file}:{}:{}", place.line, place.column))
}
