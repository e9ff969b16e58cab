//! `skiff diff`: what a new definition changes for those who use the old one.

use std::path::PathBuf;
use std::process::ExitCode;
use std::slice;

use clap::{Args, ValueEnum};

use super::cluster::{Access, Cluster};
use super::definitions::{self, each};
use super::documents;
use super::parallel;
use super::print::{output, tell};
use crate::author::diff::{Change, Replayed, diff, replay};
use crate::author::{Catalog, Kind};
use crate::object;
use crate::value::{Value, json};

/// Compare definitions: what breaks, what is safe
///
/// A change is breaking if an object or a client that was fine may no longer be: removed fields, narrower types and
/// bounds, new required fields without default, added rules. With --objects, manifests are replayed, with --from-cluster the
/// objects of a live server: which of them break, which are only kept while they are left alone, which lose fields, and
/// which gain defaults.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff diff old/crd.yaml new/crd.yaml\n  skiff diff old/ new/ --objects manifests/\n  skiff diff old/ new/ \
                  --from-cluster --context production\n\nExit \
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

    /// Replay the objects of the server that a kubeconfig names
    #[arg(long)]
    from_cluster: bool,

    #[command(flatten)]
    access: Access,

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
    pub async fn run(self) -> ExitCode {
        let report = match self.compare().await {
            Ok(report) => report,
            Err(message) => {
                tell(message);
                return ExitCode::from(2);
            }
        };
        let text = match self.output {
            Output::Text => show_text(&report),
            Output::Json => show_json(&report).to_string() + "\n",
        };
        let breaks = report.changes.iter().any(|(_, change)| change.breaks);
        output(text, if breaks { ExitCode::FAILURE } else { ExitCode::SUCCESS })
    }

    async fn compare(&self) -> Result<Report, String> {
        let old = definitions::read(slice::from_ref(&self.old))?;
        let new = definitions::read(slice::from_ref(&self.new))?;
        let mut changes = Vec::new();
        for before in old.kinds() {
            let name = before.definition.name();
            match namesake(&new, before) {
                Some(after) => changes.extend(diff(before, after).into_iter().map(|change| (name.to_owned(), change))),
                None => changes.push((name.to_owned(), whole("definition-removed", true, "objects go with it"))),
            }
        }
        for added in new.kinds().filter(|after| namesake(&old, after).is_none()) {
            changes.push((added.definition.name().to_owned(), whole("definition-added", false, "a new kind")));
        }
        let objects = self.objects(&old).await?;
        let replayed = parallel::map("objects", &objects, |(name, object)| {
            let before = old.of(object)?;
            Some((name.clone(), replay(before, namesake(&new, before)?, object)))
        });
        Ok(Report { changes, objects: replayed.into_iter().flatten().collect() })
    }

    /// The objects to replay, and what they are called.
    async fn objects(&self, old: &Catalog) -> Result<Vec<(String, Value)>, String> {
        let mut objects = Vec::new();
        for (source, document) in each(&documents::read(&self.objects).map_err(|error| error.to_string())?) {
            objects.push((format!("{}: {}", source.name, title(&document.value)), document.value.clone()));
        }
        if self.from_cluster {
            let cluster = Cluster::new(&self.access)?;
            for kind in old.kinds() {
                let found = cluster.objects(kind).await?;
                objects.extend(found.into_iter().map(|object| (title(&object), object)));
            }
        }
        Ok(objects)
    }
}

/// The kind of `catalog` with the name of `kind`.
fn namesake<'c>(catalog: &'c Catalog, kind: &Kind) -> Option<&'c Kind> {
    catalog.kinds().find(|other| other.definition.name() == kind.definition.name())
}

/// `Kind namespace/name`.
fn title(object: &Value) -> String {
    let (kind, name) = (object.str_at(&["kind"]), object.str_at(&["metadata", "name"]));
    match object.str_at(&["metadata", "namespace"]) {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

fn whole(id: &'static str, breaks: bool, detail: &str) -> Change {
    Change { version: None, path: "metadata.name".to_owned(), id, breaks, detail: detail.to_owned() }
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
        let count = report.objects.len();
        let objects = if count == 1 { "object" } else { "objects" };
        out.push_str(&format!("{count} {objects} replayed: {hit} refused\n"));
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
