//! `--kubernetes-version`: the minor versions of Kubernetes to check against, and the table of
//! results by version.

use std::process::ExitCode;
use std::str::FromStr;

use clap::Args;

use super::command_error::CommandError;
use super::print::{UNUSABLE, output};
use super::project::Project;
use crate::author::minors::{Row, fine, fine_from, ranges, rows};
use crate::meta::minor::{Minor, MinorError};
use crate::object;
use crate::value::{Value, json};

pub use crate::author::minors::Said;

/// The option.
#[derive(Args, Clone)]
pub struct Minors {
    /// Answer as that Kubernetes does, from 1.29 to 1.37; for a list (1.30,1.34) or a range (1.29-1.37), print one table of
    /// what holds where; those of skiff.toml unless named, or else the newest
    #[arg(long = "kubernetes-version", value_name = "MINOR,...")]
    minors: Option<MinorList>,
}

/// At least one minor version, in ascending order.
#[derive(Clone)]
struct MinorList(Vec<Minor>);

impl FromStr for MinorList {
    type Err = MinorError;

    fn from_str(text: &str) -> Result<Self, MinorError> {
        Minor::parse_list(text).map(MinorList)
    }
}

impl Minors {
    /// Takes the minor versions of the project if none are given. A command that can't print a
    /// table of several (`has_table`) uses the newest of them.
    ///
    /// # Errors
    ///
    /// What is wrong with the project's file, or that several versions are given without a table.
    pub fn take_project(&mut self, has_table: bool) -> Result<(), CommandError> {
        match &self.minors {
            Some(MinorList(named)) if named.len() > 1 && !has_table => Err(CommandError::said(
                "--kubernetes-version: several minors are told apart by a table, as text or json: name one",
            )),
            Some(_) => Ok(()),
            None => {
                let mut minors = Project::here()?.minors;
                if !has_table {
                    minors.drain(..minors.len().saturating_sub(1));
                }
                self.minors = (!minors.is_empty()).then_some(MinorList(minors));
                Ok(())
            }
        }
    }

    /// The minor version to check against; `None` for several, which are printed as a table.
    pub fn one(&self) -> Option<Minor> {
        match self.all() {
            [only] => Some(*only),
            _ => None,
        }
    }

    /// All requested minor versions.
    pub fn all(&self) -> &[Minor] {
        self.minors.as_ref().map_or(&[Minor::NEWEST], |MinorList(minors)| minors)
    }

    /// Prints the results for all minor versions as one table. Exit codes: 0 if all are fine, 1 if
    /// not, 2 if something can't be read.
    pub fn tell(&self, is_json: bool, said: impl Fn(Minor) -> Said) -> ExitCode {
        let minors = self.all();
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

fn show_text(minors: &[Minor], said: &[(Minor, Said)], rows: &[Row]) -> String {
    let cells: Vec<String> = rows.iter().map(|row| ranges(minors, &row.minors)).collect();
    let width = cells.iter().map(String::len).chain([10]).max().unwrap_or_default();
    let mut text = format!("{:width$}  WHAT\n", "KUBERNETES");
    for (cell, row) in cells.iter().zip(rows) {
        let indented = row.line.replace('\n', &format!("\n{:width$}  ", ""));
        text.push_str(&format!("{cell:width$}  {indented}\n"));
    }
    text + &fine(said) + "\n"
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
