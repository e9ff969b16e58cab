//! Prints the results of suites: as text, JSON, JUnit, and annotations.

use super::super::annotate::{Annotation, AnnotationLevel};
use super::super::{policies, report};
use super::outcome::{TestRun, Tested, TestedCase, UnreadableSuite, located};
use crate::author::suite::{Coverage, RuleCounts};
use crate::object;
use crate::value::yaml::TextPosition;
use crate::value::{Value, json};

/// The cases of a suite.
pub(super) fn show_suite(suite: &Tested, style: &Style) -> String {
    let mut out = format!("{}\n", suite.file);
    for case in &suite.cases {
        let word = if case.failures.is_empty() { style.good("ok  ") } else { style.bad("FAIL") };
        out.push_str(&format!("  {word} {}\n", case.name));
    }
    out
}

/// The coverage, and then the failures, where they are easily seen.
pub(super) fn show_end(run: &TestRun, lists_gaps: bool, style: &Style) -> String {
    let mut out = String::new();
    show_coverage(&run.coverage, lists_gaps, &mut out);
    for UnreadableSuite { file, place, text } in run.faults() {
        out.push_str(&format!("{} {}: {text}\n", style.bad("UNREADABLE"), located(file, *place)));
    }
    for case in run.cases().filter(|case| !case.failures.is_empty()) {
        out.push_str(&format!("{} {}: {}\n", style.bad("FAIL"), located(&case.file, case.place), case.name));
        case.failures.iter().for_each(|failure| out.push_str(&format!("     {failure}\n")));
    }
    run.uncovered.iter().for_each(|text| out.push_str(&format!("{} {text}\n", style.bad("FAIL"))));
    let all = run.cases().count();
    let failed = run.cases().filter(|case| !case.failures.is_empty()).count();
    let failures = if failed == 0 { "0 failed".to_owned() } else { style.bad(&format!("{failed} failed")) };
    let unreadable = run.tested.iter().filter(|suite| !suite.faults.is_empty()).count();
    let unreadable = if unreadable == 0 { String::new() } else { format!(", {unreadable} unreadable") };
    let cases = if all == 1 { "case" } else { "cases" };
    out.push_str(&format!("{all} {cases}: {} passed, {failures}{unreadable}\n", all - failed));
    out
}

/// Appends a line for each definition and policy and, with `lists_gaps`, everything that
/// was never covered.
fn show_coverage(coverage: &Coverage, lists_gaps: bool, out: &mut String) {
    for (name, rules) in coverage.definitions().into_iter().filter(|(_, rules)| !rules.is_empty()) {
        let covered = rules.values().filter(|counts| counts.is_covered()).count();
        let percent = covered * 100 / rules.len();
        out.push_str(&format!("{name}: {covered} of {} rules have held and failed ({percent}%)\n", rules.len()));
        for (at, counts) in rules.iter().filter(|_| lists_gaps) {
            let gaps = gaps(counts);
            if !gaps.is_empty() {
                let rule = at.rule.split_whitespace().collect::<Vec<_>>().join(" ");
                out.push_str(&format!("  {}: {rule}\n", at.path));
                gaps.iter().for_each(|gap| out.push_str(&format!("    {gap}\n")));
            }
        }
    }
    policies::show_coverage(out, &coverage.policies, lists_gaps);
}

/// Colours, for terminals.
pub(super) struct Style {
    pub is_styled: bool,
}

impl Style {
    fn good(&self, text: &str) -> String {
        self.show("32", text)
    }

    fn bad(&self, text: &str) -> String {
        self.show("1;31", text)
    }

    fn show(&self, code: &str, text: &str) -> String {
        if self.is_styled { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
}

/// What no case has covered of a rule.
fn gaps(counts: &RuleCounts) -> Vec<String> {
    if counts == &RuleCounts::default() {
        return vec!["never evaluated".to_owned()];
    }
    let mut gaps = Vec::new();
    if counts.held == 0 {
        gaps.push("never held".to_owned());
    }
    if counts.failed + counts.broke == 0 {
        gaps.push("never failed".to_owned());
    }
    for (text, (held, failed)) in &counts.parts {
        match (held, failed) {
            (0, 1..) => gaps.push(format!("`{text}` was never true")),
            (1.., 0) => gaps.push(format!("`{text}` was never false")),
            _ => {}
        }
    }
    gaps
}

pub(super) fn show_json(run: &TestRun) -> String {
    let texts = |texts: &[String]| Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect());
    let case = |case: &TestedCase| {
        object! {
            "name" => case.name.as_str(),
            "passed" => case.failures.is_empty(),
            "failures" => texts(&case.failures),
            "ratcheted" => texts(&case.ratcheted),
        }
    };
    let suite = |suite: &Tested| {
        let faults = suite.faults.iter().map(|fault| format!("{}: {}", located(&fault.file, fault.place), fault.text));
        object! {
            "file" => suite.file.as_str(),
            "cases" => suite.cases.iter().map(case).collect::<Vec<_>>(),
            "faults" => texts(&faults.collect::<Vec<_>>()),
        }
    };
    let coverage: Vec<Value> = run
        .coverage
        .versions()
        .map(|(name, version, rules)| {
            let rules: Vec<Value> = rules.iter().map(|(at, counts)| rule_json(&at.path, &at.rule, counts)).collect();
            object! { "crd" => name, "version" => version, "rules" => rules }
        })
        .collect();
    let suites: Vec<Value> = run.tested.iter().map(suite).collect();
    let policies = policies::coverage_json(&run.coverage.policies);
    json::encode_to_string(&object! { "suites" => suites, "coverage" => coverage, "policies" => policies })
}

fn rule_json(path: &str, rule: &str, counts: &RuleCounts) -> Value {
    let integer = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let part = |(text, (held, failed)): (&String, &(u64, u64))| {
        object! { "text" => text.as_str(), "true" => integer(*held), "false" => integer(*failed) }
    };
    object! {
        "path" => path,
        "rule" => rule,
        "held" => integer(counts.held),
        "failed" => integer(counts.failed),
        "broke" => integer(counts.broke),
        "parts" => counts.parts.iter().map(part).collect::<Vec<_>>(),
    }
}

pub(super) fn junit_suites(tested: &[Tested]) -> Vec<report::Suite> {
    let case = |case: &TestedCase| report::JunitCase {
        name: case.name.clone(),
        class: case.file.clone(),
        failures: case.failures.clone(),
        is_skipped: false,
        taken: Some(case.taken),
    };
    let fault = |fault: &UnreadableSuite| report::JunitCase {
        name: "the suite can be read".to_owned(),
        class: fault.file.clone(),
        failures: vec![format!("{}: {}", located(&fault.file, fault.place), fault.text)],
        is_skipped: false,
        taken: None,
    };
    let suite = |suite: &Tested| report::Suite {
        name: suite.file.clone(),
        cases: suite.cases.iter().map(case).chain(suite.faults.iter().map(fault)).collect(),
        taken: Some(suite.taken),
    };
    tested.iter().map(suite).collect()
}

pub(super) fn annotations(run: &TestRun) -> Vec<Annotation> {
    let annotation = |file: &str, place: Option<TextPosition>, id: &str, message: String| Annotation {
        file: file.to_owned(),
        place,
        level: AnnotationLevel::Error,
        id: id.to_owned(),
        message,
    };
    let failed = run.cases().filter(|case| !case.failures.is_empty());
    let failed = failed.map(|case| {
        annotation(&case.file, case.place, "failed", format!("{}: {}", case.name, case.failures.join("\n")))
    });
    let faults = run.faults().map(|fault| annotation(&fault.file, fault.place, "unreadable", fault.text.clone()));
    failed.chain(faults).collect()
}
