//! `skiff test`: whether definitions say what their author expects of them.

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::definitions::is_definition;
use super::documents;
use super::parallel;
use super::print::{note, output, tell};
use super::report::{self, show_junit};
use super::watch::Watch;
use crate::author::Catalog;
use crate::author::suite::{self, Case, Counts, Coverage, Expected, Suite};
use crate::object;
use crate::value::{Value, json, yaml};

/// Run test suites of CustomResourceDefinitions
///
/// A suite is a YAML file (schemas/suite.json describes it): objects, what they were before, and what is expected. A
/// folder with a crd.yaml is a suite, too: the objects in valid/ pass, those in invalid/ give the errors of the .errors
/// file beside them; an X.old.yaml is what X.yaml was before. Any other folder is searched for both. Afterwards stands which rules never failed or never held.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff test crd-examples\n  skiff test boats.suite.yaml --update\n  skiff test --watch .\n\nExit codes: 0 all as \
                  expected, 1 something is not, 2 wrong use or unreadable input"
)]
pub struct Test {
    /// Suite files, or folders with suites
    #[arg(value_name = "SUITE", required = true)]
    suites: Vec<PathBuf>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,

    /// Write snapshots anew
    #[arg(long)]
    update: bool,

    /// Run again whenever a file changes
    #[arg(long, conflicts_with = "update")]
    watch: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
    Junit,
}

/// What came of a suite.
struct Tested {
    file: String,
    cases: Vec<TestedCase>,
}

struct TestedCase {
    name: String,
    failures: Vec<String>,
}

impl Test {
    /// Prints what is not as expected. Exit codes: 0 if all is, 1 if something is not, 2 for what can't be read.
    pub fn run(self) -> ExitCode {
        if !self.watch {
            return self.run_once();
        }
        // Definitions may lie anywhere; those beside or below the suites are watched with them.
        let folders = self.suites.iter().map(|path| {
            if path.is_dir() { path.clone() } else { path.parent().map(Path::to_owned).unwrap_or_default() }
        });
        let mut watch = Watch::new(folders.collect());
        loop {
            self.run_once();
            note("waiting for changes; Ctrl-C ends");
            watch.wait();
        }
    }

    fn run_once(&self) -> ExitCode {
        let (tested, coverage) = match self.test() {
            Ok(tested) => tested,
            Err(message) => {
                tell(message);
                return ExitCode::from(2);
            }
        };
        let text = match self.output {
            Output::Text => show_text(&tested, &coverage),
            Output::Json => show_json(&tested, &coverage).to_string() + "\n",
            Output::Junit => show_junit(&junit_suites(&tested)),
        };
        let is_fine = tested.iter().flat_map(|suite| &suite.cases).all(|case| case.failures.is_empty());
        output(text, if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn test(&self) -> Result<(Vec<Tested>, Coverage), String> {
        let mut paths = Vec::new();
        for path in &self.suites {
            let before = paths.len();
            find(path, &mut paths)?;
            if paths.len() == before {
                return Err(format!("no suite in `{}`", path.display()));
            }
        }
        let mut coverage = Coverage::default();
        let mut suites = Vec::new();
        let run = |path: &PathBuf| {
            let mut covered = Coverage::default();
            self.test_suite(path, &mut covered).map(|tested| (tested, covered))
        };
        for outcome in parallel::map("suites", &paths, run) {
            let (tested, covered) = outcome?;
            suites.push(tested);
            coverage.merge(covered);
        }
        Ok((suites, coverage))
    }

    fn test_suite(&self, path: &Path, coverage: &mut Coverage) -> Result<Tested, String> {
        let folder = if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) };
        let suite = if path.is_dir() { read_examples(path)? } else { read_suite(path)? };
        let crds = match suite.crds.as_slice() {
            [] => vec![folder.join("crd.yaml")],
            names => names.iter().map(|name| folder.join(name)).collect(),
        };
        let mut catalog = Catalog::default();
        for source in documents::read(&crds).map_err(|error| error.to_string())? {
            for document in source.documents.iter().filter(|document| is_definition(&document.value)) {
                let kind = catalog.add(&document.value).map_err(|error| format!("`{}`: {error}", source.name))?;
                if let Some(error) = kind.errors.first() {
                    return Err(format!("`{}`: {}: {error}", source.name, kind.definition.name()));
                }
                coverage.expect(kind);
            }
        }
        let snapshots = path.with_extension("snap");
        let taken = match fs::read(&snapshots) {
            Ok(bytes) => yaml::decode(&bytes).map_err(|error| format!("`{}`: {error}", snapshots.display()))?,
            Err(_) => object! {},
        };
        let mut new = object! {};
        let mut cases = Vec::new();
        for case in &suite.cases {
            // With --update a snapshot is what is found.
            let before = taken.get(&case.name);
            let outcome = suite::run(case, &catalog, before, coverage);
            let mut failures = outcome.failures;
            if let Some(snapshot) = outcome.snapshot {
                if self.update {
                    failures.retain(|failure| {
                        !failure.starts_with("it has no snapshot") && !failure.starts_with("not as in the snapshot")
                    });
                }
                new.make_object().insert(case.name.as_str(), snapshot);
            }
            cases.push(TestedCase { name: case.name.clone(), failures });
        }
        if self.update && new != taken {
            fs::write(&snapshots, yaml::encode(&new))
                .map_err(|error| format!("`{}` can't be written: {error}", snapshots.display()))?;
        }
        Ok(Tested { file: path.display().to_string(), cases })
    }
}

/// The suites that `path` names: itself, or those below.
fn find(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), String> {
    let is_examples = path.join("crd.yaml").is_file() && (path.join("valid").is_dir() || path.join("invalid").is_dir());
    if !path.is_dir() || is_examples {
        found.push(path.to_owned());
    }
    if path.is_dir() {
        for entry in entries(path)? {
            let name = entry.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            let is_suite =
                ["suite.yaml", "suite.yml"].iter().any(|end| name == *end || name.ends_with(&format!(".{end}")));
            if (entry.is_dir() && !is_examples) || is_suite {
                find(&entry, found)?;
            }
        }
    }
    Ok(())
}

fn entries(folder: &Path) -> Result<Vec<PathBuf>, String> {
    let unreadable = |error| format!("`{}` can't be read: {error}", folder.display());
    let entries = fs::read_dir(folder).map_err(unreadable)?;
    let mut paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

fn read_suite(path: &Path) -> Result<Suite, String> {
    let bytes = fs::read(path).map_err(|error| format!("`{}` can't be read: {error}", path.display()))?;
    let value = yaml::decode(&bytes).map_err(|error| format!("`{}` can't be understood: {error}", path.display()))?;
    suite::parse(&value).map_err(|error| format!("`{}` is no suite: {error}", path.display()))
}

/// A folder of examples as a suite. `x.old.yaml` is what `x.yaml` was before.
fn read_examples(folder: &Path) -> Result<Suite, String> {
    let mut cases = Vec::new();
    for (name, is_valid) in [("valid", true), ("invalid", false)] {
        let inner = folder.join(name);
        if !inner.is_dir() {
            continue;
        }
        for path in entries(&inner)? {
            let is_manifest = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
            let is_old = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with(".old"));
            if !is_manifest || is_old {
                continue;
            }
            let before = path.with_extension("old.yaml");
            let old = if before.is_file() {
                documents::read(&[before]).map_err(|error| error.to_string())?.pop()
            } else {
                None
            };
            let old = old.and_then(|mut source| source.documents.pop()).map(|document| document.value);
            let sources = documents::read(std::slice::from_ref(&path)).map_err(|error| error.to_string())?;
            let expected = match fs::read_to_string(path.with_extension("errors")) {
                Ok(text) if !is_valid => Some(text.lines().map(str::to_owned).collect::<Vec<String>>()),
                _ => None,
            };
            for document in sources.into_iter().flat_map(|source| source.documents) {
                let file = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
                cases.push(Case {
                    name: format!("{name}/{file}"),
                    object: document.value,
                    old: old.clone(),
                    is_status: false,
                    expected: match &expected {
                        Some(lines) => Expected::Lines(lines.clone()),
                        None => Expected::Stated(object! { "valid" => is_valid }),
                    },
                });
            }
        }
    }
    Ok(Suite { crds: Vec::new(), cases })
}

fn show_text(tested: &[Tested], coverage: &Coverage) -> String {
    let mut out = String::new();
    // Writing to a String can't fail.
    for suite in tested {
        let _ = writeln!(out, "{}", suite.file);
        for case in &suite.cases {
            let _ = writeln!(out, "  {} {}", if case.failures.is_empty() { "ok  " } else { "FAIL" }, case.name);
            for failure in &case.failures {
                let _ = writeln!(out, "       {failure}");
            }
        }
    }
    for (name, version, rules) in coverage.versions().filter(|(_, _, rules)| !rules.is_empty()) {
        let covered = rules.values().filter(|counts| counts.is_covered()).count();
        let _ = writeln!(out, "{name} {version}: {covered} of {} rules have held and failed", rules.len());
        for (at, counts) in rules {
            let gaps = gaps(counts);
            if !gaps.is_empty() {
                let rule = at.rule.split_whitespace().collect::<Vec<_>>().join(" ");
                let _ = writeln!(out, "  {}: {rule}", at.path);
                gaps.iter().for_each(|gap| _ = writeln!(out, "    {gap}"));
            }
        }
    }
    let cases = || tested.iter().flat_map(|suite| &suite.cases);
    let failed = cases().filter(|case| !case.failures.is_empty()).count();
    let all = cases().count();
    let _ =
        writeln!(out, "{all} {}: {} passed, {failed} failed", if all == 1 { "case" } else { "cases" }, all - failed);
    out
}

/// What no case has tried of a rule.
fn gaps(counts: &Counts) -> Vec<String> {
    if counts == &Counts::default() {
        return vec!["never evaluated".to_owned()];
    }
    let mut gaps = Vec::new();
    if counts.held == 0 {
        gaps.push("never held".to_owned());
    }
    if counts.failed + counts.broke == 0 {
        gaps.push("never failed".to_owned());
    }
    for (text, (held, failed)) in &counts.parts {
        match (held, failed) {
            (0, 1..) => gaps.push(format!("`{text}` was never true")),
            (1.., 0) => gaps.push(format!("`{text}` was never false")),
            _ => {}
        }
    }
    gaps
}

fn show_json(tested: &[Tested], coverage: &Coverage) -> String {
    let integer = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let suites: Vec<Value> = tested
        .iter()
        .map(|suite| {
            let cases: Vec<Value> = suite
                .cases
                .iter()
                .map(|case| {
                    let failures: Vec<Value> = case.failures.iter().map(|text| Value::from(text.as_str())).collect();
                    object! { "name" => case.name.as_str(), "passed" => failures.is_empty(), "failures" => failures }
                })
                .collect();
            object! { "file" => suite.file.as_str(), "cases" => cases }
        })
        .collect();
    let coverage: Vec<Value> = coverage
        .versions()
        .map(|(name, version, rules)| {
            let rules: Vec<Value> = rules
                .iter()
                .map(|(at, counts)| {
                    let parts: Vec<Value> = counts
                        .parts
                        .iter()
                        .map(|(text, (held, failed))| {
                            object! { "text" => text.as_str(), "true" => integer(*held), "false" => integer(*failed) }
                        })
                        .collect();
                    object! {
                        "path" => at.path.as_str(),
                        "rule" => at.rule.as_str(),
                        "held" => integer(counts.held),
                        "failed" => integer(counts.failed),
                        "broke" => integer(counts.broke),
                        "parts" => parts,
                    }
                })
                .collect();
            object! { "crd" => name, "version" => version, "rules" => rules }
        })
        .collect();
    json::encode_to_string(&object! { "suites" => suites, "coverage" => coverage })
}

fn junit_suites(tested: &[Tested]) -> Vec<report::Suite> {
    let case = |case: &TestedCase| report::Case {
        name: case.name.clone(),
        failures: case.failures.clone(),
        is_skipped: false,
    };
    let suite =
        |suite: &Tested| report::Suite { name: suite.file.clone(), cases: suite.cases.iter().map(case).collect() };
    tested.iter().map(suite).collect()
}
