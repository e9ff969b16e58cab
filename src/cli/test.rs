//! `skiff test`: whether definitions say what their author expects of them.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use super::annotate::{self, Annotation, Level};
use super::definitions::{each, is_definition};
use super::documents;
use super::minors::{Minors, Said};
use super::parallel;
use super::policies::{self, Given};
use super::print::{UNUSABLE, is_styled, note, output, tell};
use super::project::named_or;
use super::report::{self, show_junit};
use super::watch::Watch;
use crate::author::Catalog;
use crate::author::policies::case::Setting;
use crate::author::suite::{self, Case, Counts, Coverage, Expected, Part, Stage, Suite};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::yaml::{self, Located, Place};
use crate::value::{Value, json};

/// Run test suites of CustomResourceDefinitions and policies
///
/// A suite is a YAML file (schemas/suite.json describes it): definitions (`crds:`, or crd.yaml beside it), policies
/// (`policies:`), objects, what they were before, who writes them, and what is expected. A folder with a crd.yaml is a suite, too: the objects in valid/ pass, those in invalid/
/// give the errors of the .errors file beside them; an X.old.yaml is what X.yaml was before. Any other folder is searched for
/// both. At the end it prints how many rules held and failed, and how many expressions of policies did; --coverage lists
/// those that did not.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff test crd-examples\n  skiff test boats.suite.yaml --update\n  skiff test --watch .\n  skiff test \
                  --min-coverage 90 -o junit .\n\nExit codes: 0 all as expected, 1 something is not, 2 wrong use or unreadable input"
)]
pub struct Test {
    /// Suite files, or folders with suites; those of skiff.toml unless named
    #[arg(value_name = "SUITE")]
    suites: Vec<PathBuf>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = Output::Text)]
    output: Output,

    /// Write snapshots anew, but for cases that fail otherwise
    #[arg(long)]
    update: bool,

    /// Tell which rules, conditions in them, and expressions of policies have never held or never failed
    #[arg(long)]
    coverage: bool,

    /// Fail where fewer of the rules of a definition, or of the expressions of a policy, have both held and failed
    #[arg(long, value_name = "PERCENT", value_parser = clap::value_parser!(u8).range(0..=100))]
    min_coverage: Option<u8>,

    #[command(flatten)]
    minors: Minors,

    /// Run again whenever a file changes
    #[arg(long, conflicts_with = "update")]
    watch: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Output {
    Text,
    Json,
    Junit,
    Sarif,
    Github,
}

/// What came of a suite.
struct Tested {
    file: String,
    cases: Vec<TestedCase>,
    /// Why it can't be run at all.
    faults: Vec<Fault>,
    taken: Duration,
}

struct TestedCase {
    name: String,
    file: String,
    place: Option<Place>,
    failures: Vec<String>,
    ratcheted: Vec<String>,
    taken: Duration,
}

/// What can't be read.
struct Fault {
    file: String,
    place: Option<Place>,
    text: String,
}

impl Fault {
    fn new(path: &Path, text: String) -> Vec<Fault> {
        vec![Fault { file: path.display().to_string(), place: None, text }]
    }
}

/// What came of all suites.
struct Run {
    tested: Vec<Tested>,
    coverage: Coverage,
    /// Definitions and policies of which too little is covered.
    uncovered: Vec<String>,
}

impl Run {
    fn cases(&self) -> impl Iterator<Item = &TestedCase> {
        self.tested.iter().flat_map(|suite| &suite.cases)
    }

    fn faults(&self) -> impl Iterator<Item = &Fault> {
        self.tested.iter().flat_map(|suite| &suite.faults)
    }

    fn code(&self) -> ExitCode {
        let is_fine = self.cases().all(|case| case.failures.is_empty()) && self.uncovered.is_empty();
        match (self.faults().next(), is_fine) {
            (Some(_), _) => ExitCode::from(2),
            (None, false) => ExitCode::FAILURE,
            (None, true) => ExitCode::SUCCESS,
        }
    }
}

impl Test {
    /// Prints what is not as expected. Exit codes: 0 if all is, 1 if something is not, 2 for what can't be read.
    pub fn run(mut self) -> ExitCode {
        match named_or(&self.suites, "suites", |project| project.suites.clone()) {
            Ok(suites) => self.suites = suites,
            Err(message) => {
                tell(message);
                return ExitCode::from(UNUSABLE);
            }
        }
        let has_table = matches!(self.output, Output::Text | Output::Json) && !self.update;
        if let Err(message) = self.minors.take_project(has_table) {
            tell(message);
            return ExitCode::from(UNUSABLE);
        }
        if !self.watch {
            return self.run_once();
        }
        // Definitions may lie anywhere; those beside or below the suites are watched with them.
        let folders = self.suites.iter().map(|path| folder_of(path).to_owned());
        let mut watch = Watch::new(folders.collect());
        loop {
            if io::stdout().is_terminal() {
                _ = output(CLEAR, ExitCode::SUCCESS);
            }
            self.run_once();
            note("waiting for changes; Ctrl-C ends");
            watch.wait();
        }
    }

    fn run_once(&self) -> ExitCode {
        let Some(minor) = self.minors.one() else {
            return self.minors.tell(self.output == Output::Json, |minor| self.say(minor));
        };
        let run = self.test(minor);
        let text = match self.output {
            Output::Text => self.show_text(&run),
            Output::Json => show_json(&run).to_string() + "\n",
            Output::Junit => show_junit(&junit_suites(&run.tested)),
            Output::Sarif => annotate::sarif(&annotations(&run), &[]),
            Output::Github => annotate::github(&annotations(&run)),
        };
        output(text, run.code())
    }

    /// What comes of all cases in that version of Kubernetes, a line each.
    fn say(&self, minor: Minor) -> Said {
        let run = self.test(minor);
        let mut lines: Vec<String> = run.faults().map(|fault| format!("{}: {}", fault.file, fault.text)).collect();
        for case in run.cases() {
            let about = format!("{}: {}", case.file, case.name);
            lines.push(format!("{about}: {}", if case.failures.is_empty() { "ok" } else { "FAILED" }));
            lines.extend(case.failures.iter().map(|failure| format!("{about}: {failure}")));
        }
        lines.extend(run.uncovered.iter().cloned());
        let is_fine = run.cases().all(|case| case.failures.is_empty()) && run.uncovered.is_empty();
        Said { lines, is_fine, is_readable: run.faults().next().is_none() }
    }

    fn test(&self, minor: Minor) -> Run {
        let (mut paths, mut tested) = (Vec::new(), Vec::new());
        for path in &self.suites {
            let before = paths.len();
            let found = find(path, &mut paths).and_then(|()| {
                if paths.len() > before { Ok(()) } else { Err(format!("no suite in `{}`", path.display())) }
            });
            if let Err(text) = found {
                tested.push(unusable(path, Fault::new(path, text)));
            }
        }
        let mut coverage = Coverage::default();
        let run = |path: &PathBuf| {
            let (mut covered, begun) = (Coverage::default(), Instant::now());
            let tested = self.test_suite(minor, path, &mut covered).unwrap_or_else(|faults| unusable(path, faults));
            (Tested { taken: begun.elapsed(), ..tested }, covered)
        };
        for (suite, covered) in parallel::map("suites", &paths, run) {
            tested.push(suite);
            coverage.merge(covered);
        }
        let uncovered = self.uncovered(&coverage);
        Run { tested, coverage, uncovered }
    }

    fn uncovered(&self, coverage: &Coverage) -> Vec<String> {
        let Some(least) = self.min_coverage else { return Vec::new() };
        let definitions = coverage.definitions().into_iter().map(|(name, rules)| {
            let covered = rules.values().filter(|counts| counts.is_covered()).count();
            (name.to_owned(), covered, rules.len(), "rules")
        });
        let policies = coverage.policies.policies().map(|(kind, name, places)| {
            (format!("{kind} {name}"), policies::covered(places), places.len(), "expressions")
        });
        let too_few = definitions.chain(policies).filter_map(|(name, covered, all, things)| {
            let is_enough = covered * 100 >= usize::from(least) * all;
            (!is_enough).then(|| format!("{name}: {covered} of {all} {things} are covered, less than {least}%"))
        });
        too_few.collect()
    }

    fn test_suite(&self, minor: Minor, path: &Path, coverage: &mut Coverage) -> Result<Tested, Vec<Fault>> {
        let read = if path.is_dir() { read_examples(path)? } else { read_suite(path)? };
        let catalog = catalog(minor, path, &read.suite, coverage)?;
        let given = given(path, &read.suite)?;
        coverage.policies.expect(&given.set);
        let who = |user| given.who(user);
        let stage = Stage { catalog: &catalog, policies: &given.set, who: &who };
        let snapshots = path.with_extension("snap");
        let taken = match fs::read(&snapshots) {
            Ok(bytes) => yaml::decode(&bytes).map_err(|error| Fault::new(&snapshots, error.to_string()))?,
            Err(_) => object! {},
        };
        let mut new = object! {};
        let mut cases = Vec::new();
        for (case, (file, place)) in read.suite.cases.iter().zip(read.places) {
            let begun = Instant::now();
            let before = taken.get(&case.name);
            let suite::Outcome { mut failures, ratcheted, snapshot } = suite::run(case, &stage, before, coverage);
            if self.update && snapshot.is_some() {
                // A snapshot is what is found.
                failures.retain(|failure| !failure.is_of_snapshot());
            }
            // A case that fails keeps the one that it has.
            if let Some(snapshot) = snapshot.or_else(|| before.filter(|_| !failures.is_empty()).cloned()) {
                new.make_object().insert(case.name.as_str(), snapshot);
            }
            let (taken, failures) = (begun.elapsed(), failures.iter().map(ToString::to_string).collect());
            cases.push(TestedCase { name: case.name.clone(), file, place, failures, ratcheted, taken });
        }
        cases.extend(read.broken);
        if self.update && new != taken {
            fs::write(&snapshots, yaml::encode(&new))
                .map_err(|error| Fault::new(&snapshots, format!("it can't be written: {error}")))?;
        }
        Ok(Tested { file: path.display().to_string(), cases, faults: Vec::new(), taken: Duration::ZERO })
    }
}

/// What clears a terminal, the lines above included.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// A suite that can't be run.
fn unusable(path: &Path, faults: Vec<Fault>) -> Tested {
    Tested { file: path.display().to_string(), cases: Vec::new(), faults, taken: Duration::ZERO }
}

/// The folder of a suite, or that is one.
fn folder_of(path: &Path) -> &Path {
    if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) }
}

/// The kinds that a suite is about.
fn catalog(minor: Minor, path: &Path, suite: &Suite, coverage: &mut Coverage) -> Result<Catalog, Vec<Fault>> {
    let folder = folder_of(path);
    let crds = match suite.crds.as_slice() {
        // Policies may be about built-in kinds alone.
        [] if !suite.policies.is_empty() && !folder.join("crd.yaml").is_file() => Vec::new(),
        [] => vec![folder.join("crd.yaml")],
        names => names.iter().map(|name| folder.join(name)).collect(),
    };
    let mut catalog = Catalog::of_minor(minor);
    let sources = documents::read(&crds).map_err(|error| Fault::new(path, error.to_string()))?;
    for source in sources {
        for document in source.documents.iter().filter(|document| is_definition(&document.value)) {
            let fault = |text: String, place| vec![Fault { file: source.name.clone(), place, text }];
            let kind = catalog.add(&document.value).map_err(|error| fault(error.to_string(), None))?;
            if let Some(error) = kind.errors.first() {
                let text = format!("{}: {error}", kind.definition.name());
                return Err(fault(text, document.error_place(&error.field)));
            }
            coverage.expect(kind);
        }
    }
    Ok(catalog)
}

/// The policies that a suite is about. What a server would refuse is a fault.
fn given(path: &Path, suite: &Suite) -> Result<Given, Vec<Fault>> {
    let paths: Vec<PathBuf> = suite.policies.iter().map(|name| folder_of(path).join(name)).collect();
    let sources = documents::read(&paths).map_err(|error| Fault::new(path, error.to_string()))?;
    let given = Given::new(policies::values(&sources));
    let mut faults = Vec::new();
    for (name, errors) in given.set.refused() {
        let is_it =
            |value: &Value| format!("{} {}", value.str_at(&["kind"]), value.str_at(&["metadata", "name"])) == *name;
        let stands = each(&sources).find(|(_, document)| is_it(&document.value));
        let file = stands.map_or_else(|| path.display().to_string(), |(source, _)| source.name.clone());
        faults.extend(errors.iter().map(|error| Fault {
            file: file.clone(),
            place: stands.and_then(|(_, document)| document.place(&error.field)),
            text: format!("{name}: {error}"),
        }));
    }
    if faults.is_empty() { Ok(given) } else { Err(faults) }
}

/// The objects of suites that are expected to be valid, each with the name of its case.
///
/// # Errors
/// The first suite that can't be read.
pub fn valid_cases(suites: &[PathBuf]) -> Result<Vec<(String, Value)>, String> {
    let mut paths = Vec::new();
    for path in suites {
        find(path, &mut paths)?;
    }
    let mut found = Vec::new();
    for path in paths {
        let read = if path.is_dir() { read_examples(&path) } else { read_suite(&path) };
        let told = |fault: &Fault| format!("{}: {}", located(&fault.file, fault.place), fault.text);
        let read = read.map_err(|faults| faults.first().map_or_else(String::new, told))?;
        let is_valid = |case: &Case| match &case.expected {
            Expected::Stated(expect) => expect.get("valid").and_then(Value::as_bool) == Some(true),
            Expected::Lines(_) => false,
        };
        found.extend(read.suite.cases.into_iter().filter(is_valid).map(|case| (case.name, case.object)));
    }
    Ok(found)
}

/// A suite, and where its cases stand.
struct Read {
    suite: Suite,
    /// The file and the place of each case.
    places: Vec<(String, Option<Place>)>,
    /// Cases that can't be made.
    broken: Vec<TestedCase>,
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

fn read_suite(path: &Path) -> Result<Read, Vec<Fault>> {
    let file = path.display().to_string();
    let bytes = fs::read(path).map_err(|error| Fault::new(path, format!("it can't be read: {error}")))?;
    let documents = yaml::decode_all_located(&bytes)
        .map_err(|error| Fault::new(path, format!("it can't be understood: {error}")))?;
    let Some(located) = documents.first() else { return Err(Fault::new(path, "it is empty".to_owned())) };
    let fault =
        |fault: suite::Fault| Fault { file: file.clone(), place: Some(located.place(&fault.path)), text: fault.text };
    let mut suite = suite::parse(&located.value).map_err(|faults| faults.into_iter().map(fault).collect::<Vec<_>>())?;
    let place = |path: &str, located: &Located| Some(located.place(path));
    let places = suite.cases.iter().map(|case| (file.clone(), place(&case.path, located))).collect();
    let broken = std::mem::take(&mut suite.broken).into_iter().map(|(name, fault)| TestedCase {
        name,
        file: file.clone(),
        place: place(&fault.path, located),
        failures: vec![fault.text],
        ratcheted: Vec::new(),
        taken: Duration::ZERO,
    });
    let broken = broken.collect();
    Ok(Read { suite, places, broken })
}

/// A folder of examples as a suite. `x.old.yaml` is what `x.yaml` was before.
fn read_examples(folder: &Path) -> Result<Read, Vec<Fault>> {
    let (mut cases, mut places) = (Vec::new(), Vec::new());
    for (name, is_valid) in [("valid", true), ("invalid", false)] {
        let inner = folder.join(name);
        if !inner.is_dir() {
            continue;
        }
        for path in entries(&inner).map_err(|text| Fault::new(&inner, text))? {
            let is_manifest = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
            let is_old = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with(".old"));
            if is_manifest && !is_old {
                let found = examples_of(&path, name, is_valid).map_err(|text| Fault::new(&path, text))?;
                places.extend(found.iter().map(|_| (path.display().to_string(), None)));
                cases.extend(found);
            }
        }
    }
    Ok(Read { suite: Suite { cases, ..Suite::default() }, places, broken: Vec::new() })
}

/// The cases of a manifest in the folder `name`.
fn examples_of(path: &Path, name: &str, is_valid: bool) -> Result<Vec<Case>, String> {
    let before = path.with_extension("old.yaml");
    let old =
        if before.is_file() { documents::read(&[before]).map_err(|error| error.to_string())?.pop() } else { None };
    let old = old.and_then(|mut source| source.documents.pop()).map(|document| document.value);
    let sources = documents::read(&[path.to_owned()]).map_err(|error| error.to_string())?;
    let lines = match fs::read_to_string(path.with_extension("errors")) {
        Ok(text) if !is_valid => Some(text.lines().map(str::to_owned).collect::<Vec<String>>()),
        _ => None,
    };
    let file = path.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let case = |object: Value| Case {
        name: format!("{name}/{file}"),
        path: String::new(),
        object,
        old: old.clone(),
        part: Part::Object,
        setting: Setting::default(),
        expected: match &lines {
            Some(lines) => Expected::Lines(lines.clone()),
            None => Expected::Stated(object! { "valid" => is_valid }),
        },
    };
    let documents = sources.into_iter().flat_map(|source| source.documents);
    Ok(documents.map(|document| case(document.value)).collect())
}

impl Test {
    /// The cases of each suite, the coverage, and what failed at the end, where it is seen.
    fn show_text(&self, run: &Run) -> String {
        let style = Style { is_styled: is_styled() };
        let mut out = String::new();
        for suite in &run.tested {
            out.push_str(&format!("{}\n", suite.file));
            for case in &suite.cases {
                let word = if case.failures.is_empty() { style.good("ok  ") } else { style.bad("FAIL") };
                out.push_str(&format!("  {word} {}\n", case.name));
            }
        }
        self.show_coverage(&run.coverage, &mut out);
        for Fault { file, place, text } in run.faults() {
            out.push_str(&format!("{} {}: {text}\n", style.bad("UNREADABLE"), located(file, *place)));
        }
        for case in run.cases().filter(|case| !case.failures.is_empty()) {
            out.push_str(&format!("{} {}: {}\n", style.bad("FAIL"), located(&case.file, case.place), case.name));
            case.failures.iter().for_each(|failure| out.push_str(&format!("     {failure}\n")));
        }
        run.uncovered.iter().for_each(|text| out.push_str(&format!("{} {text}\n", style.bad("FAIL"))));
        let all = run.cases().count();
        let failed = run.cases().filter(|case| !case.failures.is_empty()).count();
        let failures = if failed == 0 { "0 failed".to_owned() } else { style.bad(&format!("{failed} failed")) };
        let unreadable = run.tested.iter().filter(|suite| !suite.faults.is_empty()).count();
        let unreadable = if unreadable == 0 { String::new() } else { format!(", {unreadable} not run") };
        let cases = if all == 1 { "case" } else { "cases" };
        out.push_str(&format!("{all} {cases}: {} passed, {failures}{unreadable}\n", all - failed));
        out
    }

    /// A line for each definition and policy, and all that was never tried where that was asked for.
    fn show_coverage(&self, coverage: &Coverage, out: &mut String) {
        for (name, rules) in coverage.definitions().into_iter().filter(|(_, rules)| !rules.is_empty()) {
            let covered = rules.values().filter(|counts| counts.is_covered()).count();
            let percent = covered * 100 / rules.len();
            out.push_str(&format!("{name}: {covered} of {} rules have held and failed ({percent}%)\n", rules.len()));
            for (at, counts) in rules.iter().filter(|_| self.coverage) {
                let gaps = gaps(counts);
                if !gaps.is_empty() {
                    let rule = at.rule.split_whitespace().collect::<Vec<_>>().join(" ");
                    out.push_str(&format!("  {}: {rule}\n", at.path));
                    gaps.iter().for_each(|gap| out.push_str(&format!("    {gap}\n")));
                }
            }
        }
        policies::show_coverage(out, &coverage.policies, self.coverage);
    }
}

/// `suite.yaml:3:5`.
fn located(file: &str, place: Option<Place>) -> String {
    place.map_or_else(|| file.to_owned(), |place| format!("{file}:{}:{}", place.line, place.column))
}

/// Colours, where somebody sees them.
struct Style {
    is_styled: bool,
}

impl Style {
    fn good(&self, text: &str) -> String {
        self.show("32", text)
    }

    fn bad(&self, text: &str) -> String {
        self.show("1;31", text)
    }

    fn show(&self, code: &str, text: &str) -> String {
        if self.is_styled { format!("\x1b[{code}m{text}\x1b[0m") } else { text.to_owned() }
    }
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

fn show_json(run: &Run) -> String {
    let texts = |texts: &[String]| Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect());
    let case = |case: &TestedCase| {
        object! {
            "name" => case.name.as_str(),
            "passed" => case.failures.is_empty(),
            "failures" => texts(&case.failures),
            "ratcheted" => texts(&case.ratcheted),
        }
    };
    let suite = |suite: &Tested| {
        let faults = suite.faults.iter().map(|fault| format!("{}: {}", located(&fault.file, fault.place), fault.text));
        object! {
            "file" => suite.file.as_str(),
            "cases" => suite.cases.iter().map(case).collect::<Vec<_>>(),
            "faults" => texts(&faults.collect::<Vec<_>>()),
        }
    };
    let coverage: Vec<Value> = run
        .coverage
        .versions()
        .map(|(name, version, rules)| {
            let rules: Vec<Value> = rules.iter().map(|(at, counts)| rule_json(&at.path, &at.rule, counts)).collect();
            object! { "crd" => name, "version" => version, "rules" => rules }
        })
        .collect();
    let suites: Vec<Value> = run.tested.iter().map(suite).collect();
    let policies = policies::coverage_json(&run.coverage.policies);
    json::encode_to_string(&object! { "suites" => suites, "coverage" => coverage, "policies" => policies })
}

fn rule_json(path: &str, rule: &str, counts: &Counts) -> Value {
    let integer = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
    let part = |(text, (held, failed)): (&String, &(u64, u64))| {
        object! { "text" => text.as_str(), "true" => integer(*held), "false" => integer(*failed) }
    };
    object! {
        "path" => path,
        "rule" => rule,
        "held" => integer(counts.held),
        "failed" => integer(counts.failed),
        "broke" => integer(counts.broke),
        "parts" => counts.parts.iter().map(part).collect::<Vec<_>>(),
    }
}

fn junit_suites(tested: &[Tested]) -> Vec<report::Suite> {
    let case = |case: &TestedCase| report::Case {
        name: case.name.clone(),
        class: case.file.clone(),
        failures: case.failures.clone(),
        is_skipped: false,
        taken: Some(case.taken),
    };
    let fault = |fault: &Fault| report::Case {
        name: "the suite can be read".to_owned(),
        class: fault.file.clone(),
        failures: vec![format!("{}: {}", located(&fault.file, fault.place), fault.text)],
        is_skipped: false,
        taken: None,
    };
    let suite = |suite: &Tested| report::Suite {
        name: suite.file.clone(),
        cases: suite.cases.iter().map(case).chain(suite.faults.iter().map(fault)).collect(),
        taken: Some(suite.taken),
    };
    tested.iter().map(suite).collect()
}

fn annotations(run: &Run) -> Vec<Annotation> {
    let annotation = |file: &str, place: Option<Place>, id: &str, message: String| Annotation {
        file: file.to_owned(),
        place,
        level: Level::Error,
        id: id.to_owned(),
        message,
    };
    let failed = run.cases().filter(|case| !case.failures.is_empty());
    let failed = failed.map(|case| {
        annotation(&case.file, case.place, "failed", format!("{}: {}", case.name, case.failures.join("\n")))
    });
    let faults = run.faults().map(|fault| annotation(&fault.file, fault.place, "unreadable", fault.text.clone()));
    failed.chain(faults).collect()
}
