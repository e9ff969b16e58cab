//! `skiff diff`: what a new definition changes for users of the old one.

use std::fmt::Write as _;
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::annotate::{self, Annotation, AnnotationLevel};
use super::cluster::{Access, Cluster};
use super::command_error::CommandError;
use super::definitions::{DefinitionsError, ReadDefinitions, each, place_in, schema_of};
use super::documents::{self, ManifestText};
use super::git;
use super::minors::{Minors, Said};
use super::parallel;
use super::print::{Stdout, UNUSABLE, tell};
use super::project::{Project, ProjectError};
use crate::author::diff::{DefinitionChange, Degree, NewError, Replayed, diff, refused, replay};
use crate::author::{Catalog, DefinedKind};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::{Value, json};

/// Compare definitions: what is refused, what breaks, what may break, what is safe
///
/// First comes what the server would refuse of the new definition, by itself or in place of the old one. A change is
/// breaking if an object or a client that was fine no longer is: removed fields, narrower types and bounds, new required
/// fields without default. It may break where that depends on the objects or can't be told: other rules, patterns and
/// defaults. A rule that holds for all that the old definition let in is safe. With --objects, manifests are replayed, with
/// --from-cluster the objects of a live server: which are refused, which are kept only while they are left alone, which lose
/// fields, and which gain defaults.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff diff old/crd.yaml new/crd.yaml\n  skiff diff --git main crds/\n  skiff diff old/ new/ --objects \
                  manifests/\n  skiff diff old/ new/ --from-cluster --context production\n\nExit \
                  codes: 0 nothing breaks, 1 something does, may do, or is refused, 2 wrong use or unreadable input"
)]
pub struct Diff {
    /// File or folder with the old definitions; with --git, of which the old ones are in a commit: those of skiff.toml unless
    /// named, and its objects are replayed
    #[arg(required_unless_present = "git")]
    old: Option<PathBuf>,

    /// File or folder with the new definitions
    #[arg(required_unless_present = "git", conflicts_with = "git")]
    new: Option<PathBuf>,

    /// Compare with what the file or folder was at a commit, a branch or a tag
    #[arg(long, value_name = "REF")]
    git: Option<String>,

    /// From which degree on a change ends the command with 1
    #[arg(long, value_enum, default_value_t = FailOn::MayBreak)]
    fail_on: FailOn,

    /// Files or folders with objects to replay
    #[arg(long, value_name = "DIR")]
    objects: Vec<PathBuf>,

    /// Replay the objects of the server that a kubeconfig names
    #[arg(long)]
    from_cluster: bool,

    #[command(flatten)]
    access: Access,

    #[command(flatten)]
    minors: Minors,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = DiffOutput::Text)]
    output: DiffOutput,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FailOn {
    Breaking,
    MayBreak,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum DiffOutput {
    Text,
    Json,
    Sarif,
    Github,
}

/// The changes, each with the name of its definition.
#[derive(Default)]
struct Report {
    refused: Vec<(String, NewError)>,
    changes: Vec<(String, DefinitionChange)>,
}

/// The name of an object, and the result of its replay.
type Replay = (String, Replayed);

/// The input of a comparison.
struct Input {
    old: ReadDefinitions,
    new: ReadDefinitions,
    /// The texts of the new definitions.
    new_sources: Vec<ManifestText>,
    /// The name for changes without a place.
    new_name: String,
    objects: Vec<(String, Value)>,
    is_readable: bool,
}

/// The files and folders of both sides, and of the objects.
struct Compared {
    old: Vec<PathBuf>,
    new: Vec<PathBuf>,
    objects: Vec<PathBuf>,
}

impl Diff {
    /// Prints the changes. Exit codes: 0 if none breaks, 1 if one does or the new definition is
    /// refused, 2 if something can't be read.
    pub async fn run(mut self) -> ExitCode {
        if let Err(message) = self.minors.take_project(matches!(self.output, DiffOutput::Text | DiffOutput::Json)) {
            tell(message);
            return ExitCode::from(UNUSABLE);
        }
        let Some(minor) = self.minors.one() else { return self.tell_each().await };
        let input = match self.read(minor).await {
            Ok(input) => input,
            Err(message) => {
                tell(message);
                return ExitCode::from(UNUSABLE);
            }
        };
        let report = compare(&input);
        let mut out = Stdout::default();
        _ = match self.output {
            DiffOutput::Text => tell_text(&mut out, &report, &input),
            DiffOutput::Json => {
                let mut replayed = Vec::new();
                replay_each(&input, |found| {
                    replayed.extend(found);
                    ControlFlow::Continue(())
                });
                out.write(show_json(&report, &replayed) + "\n")
            }
            DiffOutput::Sarif => out.write(annotate::sarif(&Self::annotations(&report, &input), &[])),
            DiffOutput::Github => out.write(annotate::github(&Self::annotations(&report, &input))),
        };
        out.finish(match (input.is_readable, self.is_fine(&report)) {
            (false, _) => ExitCode::from(UNUSABLE),
            (true, false) => ExitCode::FAILURE,
            (true, true) => ExitCode::SUCCESS,
        })
    }

    /// Prints the changes for several minor versions as one table.
    async fn tell_each(&self) -> ExitCode {
        let mut inputs = Vec::new();
        for minor in self.minors.all() {
            match self.read(*minor).await {
                Ok(input) => inputs.push((*minor, input)),
                Err(message) => {
                    tell(message);
                    return ExitCode::from(UNUSABLE);
                }
            }
        }
        self.minors.tell(self.output == DiffOutput::Json, |minor| {
            let input = inputs.iter().find(|(known, _)| *known == minor).map(|(_, input)| input);
            input.map_or_else(Said::default, |input| self.say(input))
        })
    }

    /// The changes and the results of the replay, as lines.
    fn say(&self, input: &Input) -> Said {
        let report = compare(input);
        let mut lines = Vec::new();
        for (name, NewError { error, is_update }) in &report.refused {
            let when = if *is_update { "in place of the old one: " } else { "" };
            lines.push(format!("{name}: REFUSED {when}{error}"));
        }
        for (name, change) in &report.changes {
            let DefinitionChange { path, id, degree, detail, version } = change;
            let about = [name.as_str(), version.as_deref().unwrap_or_default()].join(" ");
            lines.push(format!("{}: {} {path}: {id}: {detail}", about.trim_end(), word(*degree).trim_end()));
        }
        replay_each(input, |found| {
            lines.extend(found.iter().map(show_replayed).map(|text| text.trim_end().to_owned()));
            ControlFlow::Continue(())
        });
        Said { lines, is_fine: self.is_fine(&report), is_readable: input.is_readable }
    }

    /// Whether nothing is refused and no change reaches the degree of `--fail-on`.
    fn is_fine(&self, report: &Report) -> bool {
        let fails =
            |degree| degree == Degree::Breaking || (degree == Degree::MayBreak && self.fail_on == FailOn::MayBreak);
        report.refused.is_empty() && !report.changes.iter().any(|(_, change)| fails(change.degree))
    }

    /// Reads both sides. Errors of single files are printed, and the rest is compared.
    async fn read(&self, minor: Minor) -> Result<Input, CommandError> {
        let Compared { old: old_paths, new: new_paths, objects } = self.compared()?;
        let old = match &self.git {
            Some(reference) => {
                let read = old_paths.iter().map(|path| git::read(reference, path));
                read.collect::<Result<Vec<_>, _>>()?.into_iter().flatten().collect()
            }
            None => documents::read_each(&old_paths),
        };
        let new_sources = documents::read_each(&new_paths);
        let (old, new) = (ReadDefinitions::of(minor, &old), ReadDefinitions::of(minor, &new_sources));
        for (definitions, paths) in [(&old, &old_paths), (&new, &new_paths)] {
            definitions.faults.iter().for_each(tell);
            if definitions.faults.is_empty() && definitions.catalog.kinds().next().is_none() {
                return Err(DefinitionsError::None(paths.clone()).into());
            }
        }
        let new_name = new_paths.first().map_or_else(String::new, |path| path.display().to_string());
        let mut is_readable = old.faults.is_empty() && new.faults.is_empty();
        let sources = documents::read_each(&objects);
        for fault in sources.iter().flat_map(|source| &source.faults) {
            tell(&fault.message);
            is_readable = false;
        }
        let mut objects: Vec<(String, Value)> = each(&sources)
            .map(|(source, document)| (format!("{}: {}", source.name, title(&document.value)), document.value.clone()))
            .collect();
        if self.from_cluster {
            let cluster = Cluster::new(&self.access)?;
            for kind in old.catalog.kinds() {
                let found = cluster.objects(kind).await?;
                objects.extend(found.into_iter().map(|object| (title(&object), object)));
            }
        }
        Ok(Input { old, new, new_sources, new_name, objects, is_readable })
    }

    /// The paths from the arguments, or else those of the project.
    fn compared(&self) -> Result<Compared, CommandError> {
        let objects = self.objects.clone();
        if let Some(old) = &self.old {
            let new = self.new.as_ref().unwrap_or(old);
            return Ok(Compared { old: vec![old.clone()], new: vec![new.clone()], objects });
        }
        let project = Project::here()?;
        if project.definitions.is_empty() {
            return Err(ProjectError::NotNamed("files with definitions").into());
        }
        let objects = if objects.is_empty() { project.objects } else { objects };
        Ok(Compared { old: project.definitions.clone(), new: project.definitions, objects })
    }
}

impl Diff {
    /// The refusals and the changes that break or may break, each with its place in the new
    /// definition.
    fn annotations(report: &Report, input: &Input) -> Vec<Annotation> {
        let annotation = |name: &str, field: &str, level: AnnotationLevel, id: &str, text: String| {
            let there = place_in(&input.new_sources, name, field);
            let (file, place) = there.unwrap_or_else(|| (input.new_name.clone(), None));
            Annotation { file, place, level, id: id.to_owned(), message: format!("{name}: {text}") }
        };
        let refused = report.refused.iter().map(|(name, refused)| {
            annotation(name, &refused.error.field, AnnotationLevel::Error, "refused", refused.error.to_string())
        });
        let changes =
            report.changes.iter().filter(|(_, change)| change.degree != Degree::Safe).map(|(name, change)| {
                let level =
                    if change.degree == Degree::Breaking { AnnotationLevel::Error } else { AnnotationLevel::Warning };
                let kind = input.new.catalog.kinds().find(|kind| kind.definition.name() == name);
                let field = match (&change.version, kind) {
                    (Some(version), Some(kind)) => schema_of(kind, version, &change.path),
                    _ => change.path.clone(),
                };
                let DefinitionChange { path, id, detail, .. } = change;
                annotation(name, &field, level, id, format!("{path}: {detail}"))
            });
        refused.chain(changes).collect()
    }
}

fn compare(input: &Input) -> Report {
    let (old, new) = (&input.old.catalog, &input.new.catalog);
    let mut report = Report::default();
    for before in old.kinds() {
        let name = before.definition.name().to_owned();
        match namesake(new, before) {
            Some(after) => {
                report.refused.extend(refused(Some(before), after).into_iter().map(|refused| (name.clone(), refused)));
                report.changes.extend(diff(before, after).into_iter().map(|change| (name.clone(), change)));
            }
            // It may be in a part that can't be read.
            None if !input.new.faults.is_empty() => tell(format_args!("`{name}` is not compared")),
            None => report.changes.push((name, whole("definition-removed", Degree::Breaking, "objects go with it"))),
        }
    }
    for added in new.kinds().filter(|after| namesake(old, after).is_none()) {
        let name = added.definition.name().to_owned();
        report.refused.extend(refused(None, added).into_iter().map(|refused| (name.clone(), refused)));
        if input.old.faults.is_empty() {
            report.changes.push((name, whole("definition-added", Degree::Safe, "a new kind")));
        }
    }
    report
}

/// Replays the objects that both sides have a definition for, and passes the results to `take`.
fn replay_each(input: &Input, mut take: impl FnMut(Vec<Replay>) -> ControlFlow<()>) {
    let run = |(name, object): &(String, Value)| {
        let before = input.old.catalog.of(object)?;
        Some((name.clone(), replay(before, namesake(&input.new.catalog, before)?, object)))
    };
    parallel::each("objects", &input.objects, run, |found| take(found.into_iter().flatten().collect()));
}

/// The kind of `catalog` whose definition has the same name.
fn namesake<'c>(catalog: &'c Catalog, kind: &DefinedKind) -> Option<&'c DefinedKind> {
    catalog.kinds().find(|other| other.definition.name() == kind.definition.name())
}

/// Formats `Kind namespace/name`.
fn title(object: &Value) -> String {
    let (kind, name) = (object.str_at(&["kind"]), object.str_at(&["metadata", "name"]));
    match object.str_at(&["metadata", "namespace"]) {
        "" => format!("{kind} {name}"),
        namespace => format!("{kind} {namespace}/{name}"),
    }
}

fn whole(id: &'static str, degree: Degree, detail: &str) -> DefinitionChange {
    DefinitionChange { version: None, path: "metadata.name".to_owned(), id, degree, detail: detail.to_owned() }
}

/// Prints the changes, and then the objects as they are replayed.
fn tell_text(out: &mut Stdout, report: &Report, input: &Input) -> ControlFlow<()> {
    out.write(show_changes(report, input))?;
    let (mut count, mut hit, mut told) = (0, 0, ControlFlow::Continue(()));
    replay_each(input, |found| {
        count += found.len();
        hit += found.iter().filter(|(_, replayed)| !replayed.errors.is_empty()).count();
        told = out.write(found.iter().map(show_replayed).collect::<String>());
        told
    });
    told?;
    if input.objects.is_empty() {
        return ControlFlow::Continue(());
    }
    let others = match input.objects.len() - count {
        0 => String::new(),
        others => format!(", {others} left out: not both sides define them"),
    };
    out.write(format!("{}: {hit} refused{others}\n", counted(count, "object replayed", "objects replayed")))
}

fn counted(count: usize, one: &str, many: &str) -> String {
    format!("{count} {}", if count == 1 { one } else { many })
}

/// A word for each degree, padded to the same width.
fn word(degree: Degree) -> &'static str {
    match degree {
        Degree::Breaking => "BREAKING ",
        Degree::MayBreak => "MAY BREAK",
        Degree::Safe => "safe     ",
    }
}

fn show_changes(report: &Report, input: &Input) -> String {
    let mut out = String::new();
    let mut last = String::new();
    let mut head = |out: &mut String, name: &str, version: &str| {
        let heading = [name, version].join(" ").trim_end().to_owned() + "\n";
        if heading != last {
            out.push_str(&heading);
            last = heading;
        }
    };
    // Writing to a String can't fail.
    for (name, NewError { error, is_update }) in &report.refused {
        head(&mut out, name, "");
        let when = if *is_update { "in place of the old one: " } else { "" };
        let _ = writeln!(out, "  REFUSED   {when}{error}");
        if let Some((file, Some(place))) = place_in(&input.new_sources, name, &error.field) {
            let _ = writeln!(out, "            at {file}:{}:{}", place.line, place.column);
        }
    }
    for (name, change) in &report.changes {
        head(&mut out, name, change.version.as_deref().unwrap_or_default());
        let DefinitionChange { path, id, degree, detail, .. } = change;
        let _ = writeln!(out, "  {} {path}: {id}: {detail}", word(*degree));
    }
    let count = |degree| report.changes.iter().filter(|(_, change)| change.degree == degree).count();
    let counts = [(Degree::Breaking, "breaking"), (Degree::MayBreak, "may break"), (Degree::Safe, "safe")];
    let counts = counts.iter().map(|(degree, words)| (count(*degree), *words));
    let told: Vec<String> =
        counts.filter(|(count, _)| *count > 0).map(|(count, words)| format!("{count} {words}")).collect();
    let changes = format!("{}: {}", counted(report.changes.len(), "change", "changes"), told.join(", "));
    let _ = match (report.refused.len(), told.is_empty()) {
        (0, true) if input.is_readable => writeln!(out, "no changes"),
        (0, true) => writeln!(out, "no changes in what could be read"),
        (0, false) => writeln!(out, "{changes}"),
        (refused, true) => writeln!(out, "{refused} refused"),
        (refused, false) => writeln!(out, "{refused} refused, {changes}"),
    };
    out
}

/// What happens to an existing object, and to a new one like it.
fn show_replayed((name, replayed): &Replay) -> String {
    let mut lines = Vec::new();
    let fields = if replayed.errors.len() == 1 { "this field changes" } else { "these fields change" };
    match (replayed.errors.is_empty(), replayed.ratchets) {
        (true, _) => {}
        (false, true) => lines.push(format!("existing: kept until {fields}")),
        (false, false) => lines.push("existing: refused at its next update".to_owned()),
    }
    lines.extend(replayed.errors.iter().map(|error| format!("new: refused: {error}")));
    lines.extend(replayed.lost.iter().map(|path| format!("loses {path}")));
    lines.extend(replayed.defaulted.iter().map(|path| format!("gains {path}")));
    if lines.is_empty() { String::new() } else { format!("{name}\n  {}\n", lines.join("\n  ")) }
}

fn show_json(report: &Report, replayed: &[Replay]) -> String {
    let texts = |texts: &[String]| Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect());
    let refused = report.refused.iter().map(|(name, NewError { error, is_update })| {
        object! {
            "crd" => name.as_str(),
            "field" => error.field.as_str(),
            "detail" => error.detail.as_str(),
            "update" => *is_update,
        }
    });
    let changes = report.changes.iter().map(|(name, change)| {
        object! {
            "crd" => name.as_str(),
            "version" => change.version.as_deref().map_or(Value::Null, Value::from),
            "path" => change.path.as_str(),
            "change" => change.id,
            "breaking" => change.degree == Degree::Breaking,
            "degree" => match change.degree {
                Degree::Breaking => "breaking",
                Degree::MayBreak => "may-break",
                Degree::Safe => "safe",
            },
            "detail" => change.detail.as_str(),
        }
    });
    let objects = replayed.iter().map(|(name, replayed)| {
        object! {
            "object" => name.as_str(),
            "errors" => texts(&replayed.errors),
            "ratchets" => replayed.ratchets,
            "lost" => texts(&replayed.lost),
            "defaulted" => texts(&replayed.defaulted),
        }
    });
    json::encode_to_string(&object! {
        "refused" => refused.collect::<Vec<_>>(),
        "changes" => changes.collect::<Vec<_>>(),
        "objects" => objects.collect::<Vec<_>>(),
    })
}
