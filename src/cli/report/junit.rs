//! JUnit XML, as CI systems read it.

use std::fmt::Write as _;

use super::{Item, Verdict};

/// The cases of a file.
pub struct Suite {
    pub name: String,
    pub cases: Vec<Case>,
}

/// What came of one.
pub struct Case {
    pub name: String,
    /// What is wrong; nothing if nothing is.
    pub failures: Vec<String>,
    pub is_skipped: bool,
}

/// The suites as XML.
pub fn show(suites: &[Suite]) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites>\n");
    for suite in suites {
        let failed = suite.cases.iter().filter(|case| !case.failures.is_empty()).count();
        let skipped = suite.cases.iter().filter(|case| case.is_skipped).count();
        // Writing to a String can't fail.
        let _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{failed}\" skipped=\"{skipped}\">",
            escape(&suite.name),
            suite.cases.len()
        );
        for case in &suite.cases {
            let name = escape(&case.name);
            let _ = match (case.failures.as_slice(), case.is_skipped) {
                ([], false) => writeln!(out, "    <testcase name=\"{name}\"/>"),
                ([], true) => writeln!(out, "    <testcase name=\"{name}\"><skipped/></testcase>"),
                (failures, _) => writeln!(
                    out,
                    "    <testcase name=\"{name}\"><failure message=\"{}\">{}</failure></testcase>",
                    escape(failures.first().map_or("", String::as_str)),
                    escape(&failures.join("\n"))
                ),
            };
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

/// A suite for each file.
pub fn suites(items: &[Item]) -> Vec<Suite> {
    let mut suites: Vec<Suite> = Vec::new();
    for item in items {
        let case = Case {
            name: item.title(),
            failures: item.faults.iter().map(|fault| fault.rejected.error.to_string()).collect(),
            is_skipped: item.verdict == Verdict::Unchecked,
        };
        match suites.last_mut().filter(|suite| suite.name == item.file) {
            Some(suite) => suite.cases.push(case),
            None => suites.push(Suite { name: item.file.clone(), cases: vec![case] }),
        }
    }
    suites
}

fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for character in text.chars() {
        match character {
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '&' => out.push_str("&amp;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            // XML has no form for other control characters.
            character if character.is_control() && character != '\t' => out.push('\u{fffd}'),
            character => out.push(character),
        }
    }
    out
}
