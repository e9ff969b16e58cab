//! `skiff lint`: what the API conventions advise against in definitions.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::documents;
use crate::author::Kind;
use crate::author::lint::{Finding, lint};
use crate::crd::definition::KIND;
use crate::object;
use crate::value::yaml::Place;
use crate::value::{Value, json};

/// Find what API conventions advise against in definitions
///
/// Each finding has an id, a reason and a remedy. The annotation skiff.kubeskiff.dev/lint-ignore of a definition turns
/// findings off: ids, or id:path, with commas between.
#[derive(Args)]
#[command(
    after_help = "Example:\n  skiff lint crd-examples\n\nExit codes: 0 nothing found, 1 something found, 2 wrong use or \
                  unreadable input"
)]
pub struct Lint {
    /// Files or folders with CustomResourceDefinitions
    #[arg(value_name = "CRD", required = true)]
    crds: Vec<PathBuf>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// A finding, and where it stands.
struct Located {
    file: String,
    crd: String,
    place: Option<Place>,
    finding: Finding,
}

impl Lint {
    /// Prints the findings. Exit codes: 0 if there are none, 1 if there are, 2 for what can't be read.
    pub fn run(self) -> ExitCode {
        let found = match self.find() {
            Ok(found) => found,
            Err(message) => {
                eprintln!("skiff: {message}");
                return ExitCode::from(2);
            }
        };
        match self.output {
            Output::Text => print!("{}", show_text(&found)),
            Output::Json => println!("{}", show_json(&found)),
        }
        if found.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE }
    }

    fn find(&self) -> Result<Vec<Located>, String> {
        let mut found = Vec::new();
        let mut is_empty = true;
        for source in documents::read(&self.crds).map_err(|error| error.to_string())? {
            for document in source.documents.iter().filter(|document| document.value.str_at(&["kind"]) == KIND) {
                is_empty = false;
                let kind = Kind::new(&document.value).map_err(|error| format!("`{}`: {error}", source.name))?;
                found.extend(lint(&kind).into_iter().map(|finding| Located {
                    file: source.name.clone(),
                    crd: kind.definition.name().to_owned(),
                    place: document.place(&finding.at),
                    finding,
                }));
            }
        }
        match is_empty {
            true => Err("no CustomResourceDefinition among the files".to_owned()),
            false => Ok(found),
        }
    }
}

fn show_text(found: &[Located]) -> String {
    let mut out = String::new();
    for Located { file, crd, place, finding } in found {
        let at = place.map_or(String::new(), |place| format!(":{}:{}", place.line, place.column));
        let Finding { version, path, id, message, reason, fix, .. } = finding;
        out.push_str(&format!("{file}{at}: {id}: {crd} {version} {path}: {message}\n  why: {reason}\n  fix: {fix}\n"));
    }
    let count = found.len();
    out.push_str(&format!("{count} {}\n", if count == 1 { "finding" } else { "findings" }));
    out
}

fn show_json(found: &[Located]) -> String {
    let found: Vec<Value> = found
        .iter()
        .map(|Located { file, crd, place, finding }| {
            object! {
                "file" => file.as_str(),
                "line" => place.map_or(Value::Null, |place| Value::Int(place.line as i64)),
                "column" => place.map_or(Value::Null, |place| Value::Int(place.column as i64)),
                "crd" => crd.as_str(),
                "version" => finding.version.as_str(),
                "path" => finding.path.as_str(),
                "id" => finding.id,
                "message" => finding.message.as_str(),
                "reason" => finding.reason,
                "fix" => finding.fix.as_str(),
            }
        })
        .collect();
    json::encode_to_string(&Value::Array(found))
}
