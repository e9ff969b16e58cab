//! `skiff diff`: what a new definition changes for those who use the old one.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::documents;
use crate::author::Catalog;
use crate::author::diff::{Change, Replayed, diff, replay};
use crate::crd::definition::KIND;
use crate::object;
use crate::value::{Value, json};

/// Compare definitions: what breaks, what is safe
///
/// A change is breaking if an object or a client that was fine may no longer be: removed fields, narrower types and
/// bounds, new required fields without default, added rules. With --objects, manifests are replayed: which of them break,
/// which are only kept while they are left alone, which lose fields, and which gain defaults.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff diff old/crd.yaml new/crd.yaml\n  skiff diff old/ new/ --objects manifests/\n\nExit \
                  codes: 0 nothing breaks, 1 something does, 2 wrong use or unreadable input"
)]
pub struct Diff {
    /// File or folder with the old definitions
    old: PathBuf,

    /// File or folder with the new definitions
    new: PathBuf,

    /// Files or folders with objects to replay
    #[arg(long, value_name = "DIR")]
    objects: Vec<PathBuf>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
}

/// What changed.
struct Report {
    /// By the name of the definition.
    changes: Vec<(String, Change)>,
    objects: Vec<(String, Replayed)>,
}

impl Diff {
    /// Prints the changes. Exit codes: 0 if none breaks, 1 if one does, 2 for what can't be read.
    pub fn run(self) -> ExitCode {
        let report = match self.compare() {
            Ok(report) => report,
            Err(message) => {
                eprintln!("skiff: {message}");
                return ExitCode::from(2);
            }
        };
        match self.output {
            Output::Text => print!("{}", show_text(&report)),
            Output::Json => println!("{}", show_json(&report)),
        }
        match report.changes.iter().any(|(_, change)| change.breaks) {
            true => ExitCode::FAILURE,
            false => ExitCode::SUCCESS,
        }
    }

    fn compare(&self) -> Result<Report, String> {
        let (old, new) = (read(&self.old)?, read(&self.new)?);
        let pairs = || {
            old.kinds()
                .map(|before| (before, new.kinds().find(|after| after.definition.name() == before.definition.name())))
        };
        let mut changes = Vec::new();
        for (before, after) in pairs() {
            let name = before.definition.name();
            match after {
                Some(after) => changes.extend(diff(before, after).into_iter().map(|change| (name.to_owned(), change))),
                None => changes.push((name.to_owned(), whole("definition-removed", true, "objects go with it"))),
            }
        }
        for added in
            new.kinds().filter(|after| !old.kinds().any(|before| before.definition.name() == after.definition.name()))
        {
            changes.push((added.definition.name().to_owned(), whole("definition-added", false, "a new kind")));
        }
        let mut objects = Vec::new();
        for source in documents::read(&self.objects).map_err(|error| error.to_string())? {
            for document in &source.documents {
                let Some(before) = old.of(&document.value) else { continue };
                let Some(after) = new.kinds().find(|after| after.definition.name() == before.definition.name()) else {
                    continue;
                };
                let name = format!(
                    "{}: {} {}",
                    source.name,
                    document.value.str_at(&["kind"]),
                    document.value.str_at(&["metadata", "name"])
                );
                objects.push((name, replay(before, after, &document.value)));
            }
        }
        Ok(Report { changes, objects })
    }
}

fn whole(id: &'static str, breaks: bool, detail: &str) -> Change {
    Change { version: None, path: "metadata.name".to_owned(), id, breaks, detail: detail.to_owned() }
}

/// The kinds that the definitions of a file or folder define.
fn read(path: &Path) -> Result<Catalog, String> {
    let mut catalog = Catalog::default();
    let mut is_empty = true;
    for source in documents::read(&[path.to_owned()]).map_err(|error| error.to_string())? {
        for document in source.documents.iter().filter(|document| document.value.str_at(&["kind"]) == KIND) {
            catalog.add(&document.value).map_err(|error| format!("`{}`: {error}", source.name))?;
            is_empty = false;
        }
    }
    match is_empty {
        true => Err(format!("no CustomResourceDefinition in `{}`", path.display())),
        false => Ok(catalog),
    }
}

fn show_text(report: &Report) -> String {
    let mut out = String::new();
    let mut last = String::new();
    for (name, change) in &report.changes {
        let version = change.version.as_deref().map_or(String::new(), |version| format!(" {version}"));
        let heading = format!("{name}{version}\n");
        if heading != last {
            out.push_str(&heading);
            last = heading;
        }
        let word = if change.breaks { "BREAKING" } else { "safe    " };
        out.push_str(&format!("  {word} {}: {}: {}\n", change.path, change.id, change.detail));
    }
    if report.changes.is_empty() {
        out.push_str("no changes\n");
    }
    for (name, replayed) in &report.objects {
        let mut lines = Vec::new();
        for error in &replayed.errors {
            let word = if replayed.ratchets { "is kept only while left alone" } else { "breaks" };
            lines.push(format!("{word}: {error}"));
        }
        lines.extend(replayed.lost.iter().map(|path| format!("loses {path}")));
        lines.extend(replayed.defaulted.iter().map(|path| format!("gains {path}")));
        if !lines.is_empty() {
            out.push_str(&format!("{name}\n"));
            lines.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
        }
    }
    if !report.objects.is_empty() {
        let hit = report.objects.iter().filter(|(_, replayed)| !replayed.errors.is_empty()).count();
        out.push_str(&format!("{} objects replayed: {hit} refused\n", report.objects.len()));
    }
    out
}

fn show_json(report: &Report) -> String {
    let texts = |texts: &[String]| Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect());
    let changes: Vec<Value> = report
        .changes
        .iter()
        .map(|(name, change)| {
            object! {
                "crd" => name.as_str(),
                "version" => change.version.as_deref().map_or(Value::Null, Value::from),
                "path" => change.path.as_str(),
                "change" => change.id,
                "breaking" => change.breaks,
                "detail" => change.detail.as_str(),
            }
        })
        .collect();
    let objects: Vec<Value> = report
        .objects
        .iter()
        .map(|(name, replayed)| {
            object! {
                "object" => name.as_str(),
                "errors" => texts(&replayed.errors),
                "ratchets" => replayed.ratchets,
                "lost" => texts(&replayed.lost),
                "defaulted" => texts(&replayed.defaulted),
            }
        })
        .collect();
    json::encode_to_string(&object! { "changes" => changes, "objects" => objects })
}
