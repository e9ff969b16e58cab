//! `skiff lint`: what the API conventions advise against in definitions.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::definitions::{is_definition, none_in};
use super::documents::{self, Source};
use super::parallel;
use super::print::{output, tell};
use crate::author::fix::fix;
use crate::author::lint::{Finding, lint, markdown};
use crate::object;
use crate::value::yaml::Place;
use crate::value::{Value, json};

/// Find what API conventions advise against in definitions
///
/// Each finding has an id, a reason and a remedy. The annotation skiff.kubeskiff.dev/lint-ignore of a definition turns
/// findings off: ids, or id:path, with commas between. With --fix, what can be fixed without any change for objects is, and
/// the rest of the text stays as it is, comments included.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff lint crd-examples\n  skiff lint --fix crds/\n  skiff lint --list\n\nExit codes: 0 \
                  nothing found, 1 something found, 2 wrong use or unreadable input"
)]
pub struct Lint {
    /// Files or folders with CustomResourceDefinitions
    #[arg(value_name = "CRD", required_unless_present = "list")]
    crds: Vec<PathBuf>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,

    /// Edit the files where that is safe, and print what is left
    #[arg(long)]
    fix: bool,

    /// Print what is looked for, and why
    #[arg(long, conflicts_with_all = ["crds", "fix"])]
    list: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// A finding, and where it stands.
struct Located {
    crd: String,
    /// The document in its file.
    index: usize,
    place: Option<Place>,
    /// Whether it stands in a text that can be edited.
    is_whole: bool,
    finding: Finding,
}

/// What was found in a file.
struct Found {
    file: String,
    findings: Vec<Located>,
    fixed: usize,
}

impl Lint {
    /// Prints the findings. Exit codes: 0 if there are none, 1 if there are, 2 for what can't be read or written.
    pub fn run(self) -> ExitCode {
        if self.list {
            return output(markdown(), ExitCode::SUCCESS);
        }
        let found = match self.find() {
            Ok(found) => found,
            Err(message) => {
                tell(message);
                return ExitCode::from(2);
            }
        };
        let text = match self.output {
            Output::Text => show_text(&found, self.fix),
            Output::Json => show_json(&found).to_string() + "\n",
        };
        let is_fine = found.iter().all(|found| found.findings.is_empty());
        output(text, if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn find(&self) -> Result<Vec<Found>, String> {
        let sources = documents::read(&self.crds).map_err(|error| error.to_string())?;
        if !sources.iter().flat_map(|source| &source.documents).any(|document| is_definition(&document.value)) {
            return Err(none_in(&self.crds));
        }
        let found = parallel::map("files", &sources, |source| {
            let findings = look(source)?;
            if self.fix {
                fix_file(source, findings)
            } else {
                Ok(Found { file: source.name.clone(), findings, fixed: 0 })
            }
        });
        found.into_iter().collect()
    }
}

/// What is found in the definitions of a file.
fn look(source: &Source) -> Result<Vec<Located>, String> {
    let mut found = Vec::new();
    for document in source.documents.iter().filter(|document| is_definition(&document.value)) {
        let findings = lint(&document.value).map_err(|error| format!("`{}`: {error}", source.name))?;
        found.extend(findings.into_iter().map(|finding| Located {
            crd: document.value.str_at(&["metadata", "name"]).to_owned(),
            index: document.index,
            place: document.place(&finding.at),
            is_whole: document.is_whole(),
            finding,
        }));
    }
    found.sort_by_key(|found| (found.index, found.place));
    Ok(found)
}

/// Fixes what can be fixed, and looks again at what is left.
fn fix_file(source: &Source, findings: Vec<Located>) -> Result<Found, String> {
    if source.name == "-" {
        return Err("what comes from stdin can't be fixed: name a file".to_owned());
    }
    let editable: Vec<(usize, &Finding)> =
        findings.iter().filter(|found| found.is_whole).map(|found| (found.index, &found.finding)).collect();
    let edited = fix(&source.text, &editable);
    let fixed = edited.is_fixed.iter().filter(|is_fixed| **is_fixed).count();
    if fixed == 0 {
        return Ok(Found { file: source.name.clone(), findings, fixed });
    }
    fs::write(&source.name, &edited.text).map_err(|error| format!("`{}` can't be written: {error}", source.name))?;
    let text = edited.text.into();
    let documents =
        documents::decode(&text).map_err(|error| format!("`{}` can't be understood: {error}", source.name))?;
    let findings = look(&Source { name: source.name.clone(), text, documents })?;
    Ok(Found { file: source.name.clone(), findings, fixed })
}

fn show_text(found: &[Found], fixes: bool) -> String {
    let mut out = String::new();
    for (file, Located { crd, place, finding, .. }) in each(found) {
        let at = place.map_or(String::new(), |place| format!(":{}:{}", place.line, place.column));
        let Finding { lint, version, path, message, fix, .. } = finding;
        let about: Vec<&str> = [crd.as_str(), version, path].into_iter().filter(|word| !word.is_empty()).collect();
        out.push_str(&format!(
            "{file}{at}: {}: {}: {message}\n  why: {}\n  fix: {fix}\n",
            lint.id,
            about.join(" "),
            lint.reason
        ));
    }
    let count = each(found).count();
    out.push_str(&format!("{count} {}", if count == 1 { "finding" } else { "findings" }));
    if fixes {
        out.push_str(&format!(", {} fixed", found.iter().map(|found| found.fixed).sum::<usize>()));
    }
    out.push('\n');
    out
}

fn show_json(found: &[Found]) -> String {
    let found: Vec<Value> = each(found)
        .map(|(file, Located { crd, place, finding, .. })| {
            object! {
                "file" => file,
                "line" => place.map_or(Value::Null, |place| Value::Int(place.line as i64)),
                "column" => place.map_or(Value::Null, |place| Value::Int(place.column as i64)),
                "crd" => crd.as_str(),
                "version" => finding.version.as_str(),
                "path" => finding.path.as_str(),
                "id" => finding.lint.id,
                "message" => finding.message.as_str(),
                "reason" => finding.lint.reason,
                "fix" => finding.fix.as_str(),
            }
        })
        .collect();
    json::encode_to_string(&Value::Array(found))
}

fn each(found: &[Found]) -> impl Iterator<Item = (&str, &Located)> {
    found.iter().flat_map(|found| found.findings.iter().map(move |finding| (found.file.as_str(), finding)))
}
