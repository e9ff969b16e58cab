//! The errors of an expression, with their positions.

use std::fmt;

use super::ast::{Location, SourceInfo};
use crate::meta::field::{ExpressionFault, Undeclared};

/// One fault, without the display of its position in the source text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issue {
    /// The position.
    pub location: Location,
    /// The message.
    pub message: String,
    /// The undeclared reference, if that is the fault.
    pub undeclared: Option<Undeclared>,
}

impl Issue {
    /// A fault at `location`.
    pub fn new(location: Location, message: impl Into<String>) -> Self {
        Issue { location, message: message.into(), undeclared: None }
    }
}

/// All faults of an expression, as cel-go prints them: each with its line of the source and a caret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issues {
    /// The faults in the order of their positions, up to a limit.
    pub issues: Vec<Issue>,
    text: String,
}

/// The maximum number of faults that are shown.
const ISSUES_MAX: usize = 100;
/// The maximum length, in bytes, of a line that is shown below a fault.
const SNIPPET_BYTES_MAX: usize = 16384;

impl Issues {
    /// Sorts the faults by position; faults at the same position keep their order.
    pub fn new(mut issues: Vec<Issue>, source: &SourceInfo) -> Self {
        let truncated = issues.len().saturating_sub(ISSUES_MAX);
        issues.truncate(ISSUES_MAX);
        issues.sort_by_key(|issue| issue.location);
        let mut shown: Vec<String> = issues.iter().map(|issue| show(issue, source)).collect();
        if truncated > 0 {
            shown.push(format!("{truncated} more errors were truncated"));
        }
        Issues { text: shown.join("\n"), issues }
    }

    /// The faults as a field error reports them.
    pub fn faults(&self) -> Vec<ExpressionFault> {
        let place = |count: i32| usize::try_from(count).unwrap_or(0);
        let fault = |issue: &Issue| ExpressionFault {
            line: place(issue.location.line),
            column: place(issue.location.column + 1),
            message: issue.message.clone(),
            undeclared: issue.undeclared.clone(),
        };
        self.issues.iter().map(fault).collect()
    }
}

fn show(issue: &Issue, source: &SourceInfo) -> String {
    let Issue { location, message, .. } = issue;
    format!("ERROR: <input>:{}:{}: {message}{}", location.line, location.column + 1, snippet(*location, source))
}

/// The line of the source and a caret below the position; characters of several bytes are replaced by dots and
/// full-width carets.
fn snippet(location: Location, source: &SourceInfo) -> String {
    let Some(line) = source.line(location.line).filter(|_| !source.text.is_empty()) else { return String::new() };
    if line.len() > SNIPPET_BYTES_MAX {
        return String::new();
    }
    let line = line.replace('\t', " ");
    let mut characters = line.chars();
    let before = characters.by_ref().take(usize::try_from(location.column).unwrap_or(0));
    let mut pointer: String = before.map(|character| if character.is_ascii() { '.' } else { '\u{ff0e}' }).collect();
    pointer.push(if characters.next().is_none_or(|character| character.is_ascii()) { '^' } else { '\u{ff3e}' });
    format!("\n | {line}\n | {pointer}")
}

impl fmt::Display for Issues {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

impl std::error::Error for Issues {}
