//! `skiff docs`: reference pages about definitions, to be read and checked in.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::command_error::CommandError;
use super::definitions;
use super::print::{UNUSABLE, ending, output, tell};
use super::project::{Project, named_or};
use super::test;
use crate::author::DefinedKind;
use crate::author::reference::{Example, PageFormat, page_of_all, pages};
use crate::meta::minor::Minor;

/// Write a reference of definitions
///
/// Fields with types, constraints and defaults, rules in words, and objects of suites that are held to be valid, as one page
/// or a page a kind. The same definitions give the same bytes, and every field keeps its anchor. Pages refer to nothing outside.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff docs crds/ > reference.md\n  skiff docs -o html --output docs/reference/ crds/\n\nExit codes: \
                  0 fine, 2 wrong use, or what can't be read or written"
)]
pub struct Docs {
    /// Files or folders with CustomResourceDefinitions; those of skiff.toml unless named
    #[arg(value_name = "CRD")]
    crds: Vec<PathBuf>,

    /// Suites, or folders with suites, that examples are taken from; those of skiff.toml unless named
    #[arg(long, value_name = "SUITE")]
    suites: Vec<PathBuf>,

    /// How to write
    #[arg(short = 'o', long, value_enum, default_value_t = DocsFormat::Markdown)]
    format: DocsFormat,

    /// The file of one page, or a folder for a page a kind: one that is there, or whose name ends with a slash
    #[arg(long, value_name = "DIR|FILE")]
    output: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DocsFormat {
    Markdown,
    Html,
}

impl Docs {
    /// Writes the pages. Exit codes: 0, or 2 if something can't be read or written.
    pub fn run(self) -> ExitCode {
        match self.write() {
            Ok((text, is_whole)) => output(text, ending(is_whole, true)),
            Err(message) => {
                tell(message);
                ExitCode::from(UNUSABLE)
            }
        }
    }

    /// Writes the pages into files, or returns the single page for stdout; also whether all its
    /// sources could be read.
    fn write(&self) -> Result<(String, bool), CommandError> {
        let paths = named_or(&self.crds, "files with definitions", |project| project.definitions.clone())?;
        let definitions = definitions::read_in(Minor::NEWEST, &paths)?;
        let suites = if self.suites.is_empty() { Project::here()?.suites } else { self.suites.clone() };
        let (examples, faults) = examples(&suites);
        faults.iter().for_each(tell);
        let is_whole = definitions.is_whole() && faults.is_empty();
        let kinds: Vec<&DefinedKind> = definitions.catalog.kinds().collect();
        let form = match self.format {
            DocsFormat::Markdown => PageFormat::Markdown,
            DocsFormat::Html => PageFormat::Html,
        };
        let Some(output) = &self.output else { return Ok((page_of_all(&kinds, &examples, form), is_whole)) };
        if output.is_dir() || output.to_string_lossy().ends_with(['/', '\\']) {
            fs::create_dir_all(output).map_err(CommandError::write(output))?;
            for page in pages(&kinds, &examples, form) {
                write(&output.join(page.name), &page.text)?;
            }
        } else {
            write(output, &page_of_all(&kinds, &examples, form))?;
        }
        Ok((String::new(), is_whole))
    }
}

/// The objects of suites that are expected to be valid, and the errors of the suites.
fn examples(suites: &[PathBuf]) -> (Vec<Example>, Vec<String>) {
    let (cases, faults) = test::valid_cases(suites);
    (cases.into_iter().map(|(name, object)| Example { name, object }).collect(), faults)
}

fn write(path: &Path, text: &str) -> Result<(), CommandError> {
    // An unchanged file is not written, so it keeps its time.
    if fs::read_to_string(path).is_ok_and(|before| before == text) {
        return Ok(());
    }
    fs::write(path, text).map_err(CommandError::write(path))
}
