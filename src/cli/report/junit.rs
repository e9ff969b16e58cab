//! JUnit XML, which CI systems read.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report, TestCase, TestCaseStatus, TestSuite};

use super::{DocumentVerdict, Print, ReportedDocument, ReportedError};

/// A suite with its cases.
pub struct Suite {
    pub name: String,
    pub cases: Vec<JunitCase>,
    pub taken: Option<Duration>,
}

/// The result of a case.
pub struct JunitCase {
    pub name: String,
    /// By which CI systems group cases: the name of the file.
    pub class: String,
    /// The failures; empty if the case passed.
    pub failures: Vec<String>,
    pub is_skipped: bool,
    pub taken: Option<Duration>,
}

/// Encodes the suites as XML.
pub fn show(suites: &[Suite]) -> String {
    let mut report = Report::new("skiff");
    report.add_test_suites(suites.iter().map(suite));
    // Encoding strings can't fail: characters that XML can't represent are left out.
    report.to_string().unwrap_or_default()
}

fn suite(suite: &Suite) -> TestSuite {
    let mut shown = TestSuite::new(suite.name.as_str());
    if let Some(taken) = suite.taken {
        shown.set_time(taken);
    }
    shown.add_test_cases(suite.cases.iter().map(case));
    shown
}

fn case(case: &JunitCase) -> TestCase {
    let status = match (case.failures.first(), case.is_skipped) {
        (None, false) => TestCaseStatus::success(),
        (None, true) => TestCaseStatus::skipped(),
        (Some(first), _) => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message(first.as_str()).set_description(case.failures.join("\n"));
            status
        }
    };
    let mut shown = TestCase::new(case.name.as_str(), status);
    shown.set_classname(case.class.as_str());
    if let Some(taken) = case.taken {
        shown.set_time(taken);
    }
    shown
}

/// Collects a suite for each file.
#[derive(Default)]
pub struct Junit {
    suites: Vec<Suite>,
}

impl Print for Junit {
    fn item(&mut self, _: &mut String, item: &ReportedDocument) {
        if self.suites.last().is_none_or(|suite| suite.name != item.file) {
            self.suites.push(Suite { name: item.file.clone(), cases: Vec::new(), taken: None });
        }
        let case = JunitCase {
            name: item.title(),
            class: item.file.clone(),
            failures: item.faults.iter().map(ReportedError::text).collect(),
            is_skipped: item.verdict == DocumentVerdict::Unchecked && item.is_fine(),
            taken: None,
        };
        if let Some(suite) = self.suites.last_mut() {
            suite.cases.push(case);
        }
    }

    fn end(&mut self, out: &mut String) {
        out.push_str(&show(&self.suites));
    }
}
