//! `--kubernetes-version`: the minors of Kubernetes to answer for, and the table of what is said in which.

use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;

use super::print::{UNUSABLE, output};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::{Value, json};

/// The option.
#[derive(Args, Clone)]
pub struct Minors {
    /// Answer as that Kubernetes does, from 1.29 to 1.37; for a list (1.30,1.34) or a range (1.29-1.37), print one table of
    /// what holds where
    #[arg(long = "kubernetes-version", value_name = "MINOR,...", default_value_t)]
    minors: List,
}

/// At least one minor, in rising order.
#[derive(Clone)]
struct List(Vec<Minor>);

impl Default for List {
    fn default() -> Self {
        List(vec![Minor::NEWEST])
    }
}

impl FromStr for List {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        Minor::parse_list(text).map(List)
    }
}

impl std::fmt::Display for List {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let minors: Vec<String> = self.0.iter().map(Minor::to_string).collect();
        out.write_str(&minors.join(","))
    }
}

/// What a command says in one minor.
#[derive(Default)]
pub struct Said {
    /// Statements, one a line.
    pub lines: Vec<String>,
    pub is_fine: bool,
    pub is_readable: bool,
}

/// A statement, and the minors that say it.
struct Row {
    line: String,
    minors: Vec<Minor>,
}

impl Minors {
    /// The minor to answer for; `None` for several, of which a table is made.
    pub fn one(&self) -> Option<Minor> {
        match self.minors.0.as_slice() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// All minors that are asked for.
    pub fn all(&self) -> &[Minor] {
        &self.minors.0
    }

    /// Prints what is said in each minor as one table. Exit codes: 0 if all is fine in each of them, 1 if not, 2 for what
    /// can't be read.
    pub fn tell(&self, is_json: bool, said: impl Fn(Minor) -> Said) -> ExitCode {
        let minors = self.minors.0.as_slice();
        let said: Vec<(Minor, Said)> = minors.iter().map(|minor| (*minor, said(*minor))).collect();
        let rows = rows(&said);
        let text = if is_json { show_json(&said, &rows) + "\n" } else { show_text(minors, &said, &rows) };
        let all = |is_it: fn(&Said) -> bool| said.iter().all(|(_, said)| is_it(said));
        output(
            text,
            match (all(|said| said.is_readable), all(|said| said.is_fine)) {
                (false, _) => ExitCode::from(UNUSABLE),
                (true, false) => ExitCode::FAILURE,
                (true, true) => ExitCode::SUCCESS,
            },
        )
    }
}

/// All statements, in the order of the newest minor; what only others say stands where they say it.
fn rows(said: &[(Minor, Said)]) -> Vec<Row> {
    let mut rows: Vec<Row> = Vec::new();
    for (minor, said) in said.iter().rev() {
        let mut next = 0;
        for line in &said.lines {
            // Most stand where they stood in the minor before.
            let is_it = |row: &Row| row.line == *line;
            let found = rows[next..].iter().position(is_it).map(|at| at + next);
            match found.or_else(|| rows[..next].iter().position(is_it)) {
                Some(at) => {
                    if rows[at].minors.last() != Some(minor) {
                        rows[at].minors.push(*minor);
                    }
                    next = next.max(at + 1);
                }
                None => {
                    rows.insert(next, Row { line: line.clone(), minors: vec![*minor] });
                    next += 1;
                }
            }
        }
    }
    rows.iter_mut().for_each(|row| row.minors.reverse());
    rows
}

/// The first minor from which on all is fine.
fn fine_from(said: &[(Minor, Said)]) -> Option<Minor> {
    said.iter().rev().take_while(|(_, said)| said.is_fine && said.is_readable).last().map(|(minor, _)| *minor)
}

fn show_text(minors: &[Minor], said: &[(Minor, Said)], rows: &[Row]) -> String {
    let cells: Vec<String> = rows.iter().map(|row| ranges(minors, &row.minors)).collect();
    let width = cells.iter().map(String::len).chain([10]).max().unwrap_or_default();
    let mut text = format!("{:width$}  WHAT\n", "KUBERNETES");
    for (cell, row) in cells.iter().zip(rows) {
        let indented = row.line.replace('\n', &format!("\n{:width$}  ", ""));
        text.push_str(&format!("{cell:width$}  {indented}\n"));
    }
    text + &match (fine_from(said), minors.first()) {
        (None, _) => format!("not fine in {}\n", minors.last().map(Minor::to_string).unwrap_or_default()),
        (Some(first), Some(oldest)) if first == *oldest => "fine in all\n".to_owned(),
        (Some(first), _) => format!("fine from {first} on\n"),
    }
}

/// `all`, `until 1.30`, `from 1.34`, `1.31-1.33`, and several of these with commas between.
fn ranges(minors: &[Minor], those: &[Minor]) -> String {
    if those.len() == minors.len() {
        return "all".to_owned();
    }
    let mut ranges: Vec<(usize, usize)> = Vec::new();
    for at in those.iter().filter_map(|minor| minors.iter().position(|known| known == minor)) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == at => *last = at,
            _ => ranges.push((at, at)),
        }
    }
    let show = |(first, last): &(usize, usize)| match (*first, *last) {
        (first, last) if first == last => minors[first].to_string(),
        (0, last) => format!("until {}", minors[last]),
        (first, last) if last + 1 == minors.len() => format!("from {}", minors[first]),
        (first, last) => format!("{}-{}", minors[first], minors[last]),
    };
    ranges.iter().map(show).collect::<Vec<_>>().join(", ")
}

fn show_json(said: &[(Minor, Said)], rows: &[Row]) -> String {
    let list = |minors: &[Minor]| minors.iter().map(|minor| Value::from(minor.to_string())).collect::<Vec<_>>();
    let minors: Vec<Value> = said
        .iter()
        .map(|(minor, said)| object! { "minor" => minor.to_string(), "fine" => said.is_fine && said.is_readable })
        .collect();
    let rows: Vec<Value> =
        rows.iter().map(|row| object! { "minors" => list(&row.minors), "what" => row.line.as_str() }).collect();
    let from = fine_from(said).map_or(Value::Null, |minor| Value::from(minor.to_string()));
    json::encode_to_string(&object! { "minors" => minors, "fineFrom" => from, "said" => rows })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(minor: u16, lines: &[&str]) -> (Minor, Said) {
        let lines = lines.iter().map(|line| (*line).to_owned()).collect();
        (Minor::of(minor), Said { lines, is_fine: minor > 30, is_readable: true })
    }

    #[test]
    fn a_statement_stands_once_with_the_minors_that_make_it() {
        let said = [said(29, &["a", "x", "c"]), said(30, &["a", "b", "y"]), said(31, &["a", "b", "c"])];
        let minors: Vec<Minor> = said.iter().map(|(minor, _)| *minor).collect();
        let expected = "\
KUBERNETES  WHAT
all         a
1.29        x
from 1.30   b
1.30        y
1.29, 1.31  c
fine from 1.31 on
";
        assert_eq!(show_text(&minors, &said, &rows(&said)), expected);
    }
}
