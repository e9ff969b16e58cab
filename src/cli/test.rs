//! `skiff test`: whether definitions say what their author expects of them.

use std::fs;
use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};

use super::annotate::{self, Annotation, AnnotationLevel};
use super::command_error::CommandError;
use super::definitions::{each, is_definition};
use super::documents::{self, ManifestText};
use super::minors::{Minors, Said};
use super::parallel;
use super::policies::{self, Given};
use super::print::{Stdout, UNUSABLE, is_styled, note, output, tell};
use super::project::named_or;
use super::report::{self, show_junit};
use super::watch::FileWatch;
use crate::author::Catalog;
use crate::author::policies::case::Setting;
use crate::author::suite::{self, BrokenCase, Case, Coverage, Expected, RuleCounts, Suite, SuiteStage, WriteTarget};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::yaml::{self, Located, TextPosition};
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
    #[arg(short, long, value_enum, default_value_t = TestOutput::Text)]
    output: TestOutput,

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
enum TestOutput {
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
    /// What of it can't be run.
    faults: Vec<UnreadableSuite>,
    taken: Duration,
}

impl Tested {
    /// One of which nothing has run.
    fn unusable(path: &Path, faults: Vec<UnreadableSuite>) -> Self {
        Tested { file: path.display().to_string(), cases: Vec::new(), faults, taken: Duration::ZERO }
    }
}

struct TestedCase {
    name: String,
    file: String,
    place: Option<TextPosition>,
    failures: Vec<String>,
    ratcheted: Vec<String>,
    taken: Duration,
}

/// What can't be read.
struct UnreadableSuite {
    file: String,
    place: Option<TextPosition>,
    text: String,
}

impl UnreadableSuite {
    fn new(path: &Path, text: String) -> Vec<UnreadableSuite> {
        vec![UnreadableSuite { file: path.display().to_string(), place: None, text }]
    }

    /// What of files can't be read, told of the suite that needs them.
    fn of_sources(path: &Path, sources: &[ManifestText]) -> Vec<UnreadableSuite> {
        let faults = sources.iter().flat_map(|source| &source.faults);
        faults.flat_map(|fault| UnreadableSuite::new(path, fault.message.clone())).collect()
    }
}

/// What came of all suites.
struct TestRun {
    tested: Vec<Tested>,
    coverage: Coverage,
    /// Definitions and policies of which too little is covered.
    uncovered: Vec<String>,
}

impl TestRun {
    fn cases(&self) -> impl Iterator<Item = &TestedCase> {
        self.tested.iter().flat_map(|suite| &suite.cases)
    }

    fn faults(&self) -> impl Iterator<Item = &UnreadableSuite> {
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
        let has_table = matches!(self.output, TestOutput::Text | TestOutput::Json) && !self.update;
        if let Err(message) = self.minors.take_project(has_table) {
            tell(message);
            return ExitCode::from(UNUSABLE);
        }
        if !self.watch {
            return self.run_once();
        }
        let mut watch = FileWatch::new(self.watched());
        loop {
            if io::stdout().is_terminal() {
                _ = output(CLEAR, ExitCode::SUCCESS);
            }
            self.run_once();
            note("waiting for changes; Ctrl-C ends");
            watch.follow(self.watched());
            watch.wait();
        }
    }

    /// What a run looks at: the folders of the suites, and the definitions and policies that these name, wherever they lie.
    fn watched(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        // What can't be read is told by the run.
        self.suites.iter().for_each(|path| _ = find(path, &mut paths));
        let mut watched: Vec<PathBuf> = self.suites.iter().map(|path| folder_of(path).to_owned()).collect();
        for path in paths.iter().filter(|path| path.is_file()) {
            for ReadSuite { suite, .. } in read_suites(path).suites {
                let named = suite.crds.iter().chain(&suite.policies);
                watched.extend(named.map(|name| folder_of(path).join(name)));
            }
        }
        watched
    }

    fn run_once(&self) -> ExitCode {
        let Some(minor) = self.minors.one() else {
            return self.minors.tell(self.output == TestOutput::Json, |minor| self.say(minor));
        };
        if self.output == TestOutput::Text {
            return self.tell_text(minor);
        }
        let run = self.test(minor, |_| ControlFlow::Continue(()));
        let text = match self.output {
            TestOutput::Text | TestOutput::Json => show_json(&run).to_string() + "\n",
            TestOutput::Junit => show_junit(&junit_suites(&run.tested)),
            TestOutput::Sarif => annotate::sarif(&annotations(&run), &[]),
            TestOutput::Github => annotate::github(&annotations(&run)),
        };
        output(text, run.code())
    }

    /// Prints the cases of each suite once it has run, and at the end what failed.
    fn tell_text(&self, minor: Minor) -> ExitCode {
        let (mut out, style) = (Stdout::default(), Style { is_styled: is_styled() });
        let run = self.test(minor, |suite| out.write(show_suite(suite, &style)));
        _ = out.write(self.show_end(&run, &style));
        out.finish(run.code())
    }

    /// What comes of all cases in that version of Kubernetes, a line each.
    fn say(&self, minor: Minor) -> Said {
        let run = self.test(minor, |_| ControlFlow::Continue(()));
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

    /// Runs all suites; `told` gets each once it has run.
    fn test(&self, minor: Minor, mut told: impl FnMut(&Tested) -> ControlFlow<()>) -> TestRun {
        let (mut paths, mut tested) = (Vec::new(), Vec::new());
        for path in &self.suites {
            let before = paths.len();
            let found = find(path, &mut paths)
                .and_then(|()| if paths.len() > before { Ok(()) } else { Err(CommandError::NoSuite(path.clone())) });
            if let Err(failure) = found {
                tested.push(Tested::unusable(path, UnreadableSuite::new(path, failure.to_string())));
            }
        }
        let mut coverage = Coverage::default();
        let mut is_wanted = tested.iter().try_for_each(&mut told);
        let run = |path: &PathBuf| {
            let (mut covered, begun) = (Coverage::default(), Instant::now());
            let tested = self.test_suites(minor, path, &mut covered);
            (Tested { taken: begun.elapsed(), ..tested }, covered)
        };
        parallel::each("suites", &paths, run, |suites| {
            for (suite, covered) in suites {
                is_wanted = if is_wanted.is_continue() { told(&suite) } else { is_wanted };
                tested.push(suite);
                coverage.merge(covered);
            }
            is_wanted
        });
        let uncovered = self.uncovered(&coverage);
        TestRun { tested, coverage, uncovered }
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

    /// Runs the suites of a file or a folder.
    fn test_suites(&self, minor: Minor, path: &Path, coverage: &mut Coverage) -> Tested {
        let ReadSuites { suites, faults } = if path.is_dir() { read_examples(path) } else { read_suites(path) };
        let mut tested = Tested::unusable(path, faults);
        if suites.is_empty() && tested.faults.is_empty() {
            tested.faults = UnreadableSuite::new(path, "there is no case".to_owned());
        }
        let snapshots = path.with_extension("snap");
        let taken = match read_snapshots(&snapshots) {
            Ok(taken) => taken,
            Err(fault) => {
                tested.faults.extend(fault);
                return tested;
            }
        };
        let mut new = object! {};
        for suite in suites {
            if let Err(faults) = self.test_suite(minor, path, suite, (&taken, &mut new), &mut tested, coverage) {
                tested.faults.extend(faults);
            }
        }
        // What could not be run has its snapshots still.
        if self.update
            && tested.faults.is_empty()
            && new != taken
            && let Err(error) = fs::write(&snapshots, yaml::encode(&new))
        {
            tested.faults.extend(UnreadableSuite::new(&snapshots, format!("it can't be written: {error}")));
        }
        tested
    }

    /// Runs the cases of a suite. What cases came to before is `taken`, and what they come to goes into `new`.
    fn test_suite(
        &self,
        minor: Minor,
        path: &Path,
        ReadSuite { suite, places, broken }: ReadSuite,
        (taken, new): (&Value, &mut Value),
        tested: &mut Tested,
        coverage: &mut Coverage,
    ) -> Result<(), Vec<UnreadableSuite>> {
        let (catalog, unreadable) = catalog(minor, path, &suite, coverage)?;
        tested.faults.extend(unreadable);
        let given = given(minor, path, &suite)?;
        coverage.policies.expect(&given.set);
        let find_user = |user| given.request_user(user);
        let stage = SuiteStage { catalog: &catalog, policies: &given.set, find_user: &find_user };
        for (case, (file, place)) in suite.cases.iter().zip(places) {
            let begun = Instant::now();
            let before = taken.get(&case.name);
            let suite::CaseOutcome { mut failures, ratcheted, snapshot } = suite::run(case, &stage, before, coverage);
            if self.update && snapshot.is_some() {
                // A snapshot is what is found.
                failures.retain(|failure| !failure.is_of_snapshot());
            }
            // A case that fails keeps the one that it has.
            if let Some(snapshot) = snapshot.or_else(|| before.filter(|_| !failures.is_empty()).cloned()) {
                new.make_object().insert(case.name.as_str(), snapshot);
            }
            let (taken, failures) = (begun.elapsed(), failures.iter().map(ToString::to_string).collect());
            tested.cases.push(TestedCase { name: case.name.clone(), file, place, failures, ratcheted, taken });
        }
        for case in broken {
            // It may be mended: what it came to before stays.
            if let Some(before) = taken.get(&case.name) {
                new.make_object().insert(case.name.as_str(), before.clone());
            }
            tested.cases.push(case);
        }
        Ok(())
    }
}

/// What cases came to before; nothing where nothing was kept.
fn read_snapshots(path: &Path) -> Result<Value, Vec<UnreadableSuite>> {
    match fs::read(path) {
        Ok(bytes) => yaml::decode(&bytes).map_err(|error| UnreadableSuite::new(path, error.to_string())),
        Err(_) => Ok(object! {}),
    }
}

/// What clears a terminal, the lines above included.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";

/// The folder of a suite, or that is one.
fn folder_of(path: &Path) -> &Path {
    if path.is_dir() { path } else { path.parent().unwrap_or(Path::new("")) }
}

/// The kinds that a suite is about, and what of their files can't be read.
///
/// # Errors
/// What the server would refuse of a definition.
fn catalog(
    minor: Minor,
    path: &Path,
    suite: &Suite,
    coverage: &mut Coverage,
) -> Result<(Catalog, Vec<UnreadableSuite>), Vec<UnreadableSuite>> {
    let folder = folder_of(path);
    let crds = match suite.crds.as_slice() {
        // Policies may be about built-in kinds alone.
        [] if !suite.policies.is_empty() && !folder.join("crd.yaml").is_file() => Vec::new(),
        [] => vec![folder.join("crd.yaml")],
        names => names.iter().map(|name| folder.join(name)).collect(),
    };
    let mut catalog = Catalog::of_minor(minor);
    let sources = documents::read_each(&crds);
    for source in &sources {
        for document in source.documents.iter().filter(|document| is_definition(&document.value)) {
            let fault = |text: String, place| vec![UnreadableSuite { file: source.name.clone(), place, text }];
            let kind = catalog.add(&document.value).map_err(|error| fault(error.to_string(), None))?;
            if let Some(error) = kind.errors.first() {
                let text = format!("{}: {error}", kind.definition.name());
                return Err(fault(text, document.error_place(&error.field)));
            }
            coverage.expect(kind);
        }
    }
    let unreadable = UnreadableSuite::of_sources(path, &sources);
    if catalog.kinds().next().is_none() && !unreadable.is_empty() {
        return Err(unreadable);
    }
    Ok((catalog, unreadable))
}

/// The policies that a suite is about. What a server would refuse is a fault.
fn given(minor: Minor, path: &Path, suite: &Suite) -> Result<Given, Vec<UnreadableSuite>> {
    let paths: Vec<PathBuf> = suite.policies.iter().map(|name| folder_of(path).join(name)).collect();
    let sources = documents::read_each(&paths);
    let given = Given::new(minor, policies::values(&sources));
    let mut faults = UnreadableSuite::of_sources(path, &sources);
    for (name, errors) in given.set.refused() {
        let is_it =
            |value: &Value| format!("{} {}", value.str_at(&["kind"]), value.str_at(&["metadata", "name"])) == *name;
        let stands = each(&sources).find(|(_, document)| is_it(&document.value));
        let file = stands.map_or_else(|| path.display().to_string(), |(source, _)| source.name.clone());
        faults.extend(errors.iter().map(|error| UnreadableSuite {
            file: file.clone(),
            place: stands.and_then(|(_, document)| document.place(&error.field)),
            text: format!("{name}: {error}"),
        }));
    }
    if faults.is_empty() { Ok(given) } else { Err(faults) }
}

/// The objects of suites that are expected to be valid, each with the name of its case, and what of the suites can't be read.
pub fn valid_cases(suites: &[PathBuf]) -> (Vec<(String, Value)>, Vec<String>) {
    let (mut paths, mut cases, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for path in suites {
        faults.extend(find(path, &mut paths).err().map(|failure| failure.to_string()));
    }
    for path in paths {
        let read = if path.is_dir() { read_examples(&path) } else { read_suites(&path) };
        let told = |fault: &UnreadableSuite| format!("{}: {}", located(&fault.file, fault.place), fault.text);
        faults.extend(read.faults.iter().map(told));
        let found = read.suites.into_iter().flat_map(|read| read.suite.cases);
        cases.extend(found.filter(Case::is_valid).map(|case| (case.name, case.object)));
    }
    (cases, faults)
}

/// The suites of a file or a folder.
#[derive(Default)]
struct ReadSuites {
    suites: Vec<ReadSuite>,
    /// What of them can't be read.
    faults: Vec<UnreadableSuite>,
}

/// A suite, and where its cases stand.
struct ReadSuite {
    suite: Suite,
    /// The file and the place of each case.
    places: Vec<(String, Option<TextPosition>)>,
    /// Cases that can't be made.
    broken: Vec<TestedCase>,
}

/// The suites that `path` names: itself, or those below.
fn find(path: &Path, found: &mut Vec<PathBuf>) -> Result<(), CommandError> {
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

fn entries(folder: &Path) -> Result<Vec<PathBuf>, CommandError> {
    let unreadable = CommandError::read(folder);
    let entries = fs::read_dir(folder).map_err(&unreadable)?;
    let mut paths =
        entries.map(|entry| entry.map(|entry| entry.path())).collect::<Result<Vec<_>, _>>().map_err(unreadable)?;
    paths.sort();
    Ok(paths)
}

/// The suites of a file, one a document. One that can't be read hides no other.
fn read_suites(path: &Path) -> ReadSuites {
    let file = path.display().to_string();
    let bytes = match fs::read(path) {
        Ok(bytes) => bytes,
        Err(error) => {
            return ReadSuites {
                faults: UnreadableSuite::new(path, format!("it can't be read: {error}")),
                ..ReadSuites::default()
            };
        }
    };
    let mut read = ReadSuites::default();
    for document in yaml::decode_each_located(&bytes) {
        match document {
            Ok(located) if located.value.is_null() => {}
            Ok(located) => match read_suite(&file, &located) {
                Ok(suite) => read.suites.push(suite),
                Err(faults) => read.faults.extend(faults),
            },
            Err(broken) => {
                let text = format!("it can't be understood: {}", broken.problem);
                read.faults.push(UnreadableSuite { file: file.clone(), place: Some(broken.place), text });
            }
        }
    }
    read
}

fn read_suite(file: &str, located: &Located) -> Result<ReadSuite, Vec<UnreadableSuite>> {
    let fault = |fault: suite::SuiteError| UnreadableSuite {
        file: file.to_owned(),
        place: Some(located.place(&fault.path)),
        text: fault.text,
    };
    let mut suite = suite::parse(&located.value).map_err(|faults| faults.into_iter().map(fault).collect::<Vec<_>>())?;
    let places = suite.cases.iter().map(|case| (file.to_owned(), Some(located.place(&case.path)))).collect();
    let broken = std::mem::take(&mut suite.broken).into_iter().map(|BrokenCase { name, faults }| TestedCase {
        name,
        file: file.to_owned(),
        place: faults.first().map(|fault| located.place(&fault.path)),
        failures: faults.into_iter().map(|fault| fault.text).collect(),
        ratcheted: Vec::new(),
        taken: Duration::ZERO,
    });
    let broken = broken.collect();
    Ok(ReadSuite { suite, places, broken })
}

/// A folder of examples as a suite. `x.old.yaml` is what `x.yaml` was before. A file that can't be read hides no other.
fn read_examples(folder: &Path) -> ReadSuites {
    let (mut cases, mut places, mut faults) = (Vec::new(), Vec::new(), Vec::new());
    for (name, is_valid) in [("valid", true), ("invalid", false)] {
        let inner = folder.join(name);
        if !inner.is_dir() {
            continue;
        }
        let paths = entries(&inner).unwrap_or_else(|failure| {
            faults.extend(UnreadableSuite::new(&inner, failure.to_string()));
            Vec::new()
        });
        for path in paths {
            let is_manifest = path.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
            let is_old = path.file_stem().is_some_and(|stem| stem.to_string_lossy().ends_with(".old"));
            if is_manifest && !is_old {
                let (found, unreadable) = examples_of(&path, name, is_valid);
                places.extend(found.iter().map(|_| (path.display().to_string(), None)));
                cases.extend(found);
                faults.extend(unreadable);
            }
        }
    }
    let suites = if cases.is_empty() {
        Vec::new()
    } else {
        vec![ReadSuite { suite: Suite { cases, ..Suite::default() }, places, broken: Vec::new() }]
    };
    ReadSuites { suites, faults }
}

/// The cases of a manifest in the folder `name`, and what of it can't be read.
fn examples_of(path: &Path, name: &str, is_valid: bool) -> (Vec<Case>, Vec<UnreadableSuite>) {
    let before = path.with_extension("old.yaml");
    let before = if before.is_file() { documents::read_each(&[before]) } else { Vec::new() };
    let sources = documents::read_each(&[path.to_owned()]);
    let mut faults = UnreadableSuite::of_sources(path, &before);
    if !faults.is_empty() {
        // Without what they were before, these are other cases.
        return (Vec::new(), faults);
    }
    faults.extend(UnreadableSuite::of_sources(path, &sources));
    let old = before.into_iter().flat_map(|source| source.documents).last().map(|document| document.value);
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
        part: WriteTarget::Object,
        setting: Setting::default(),
        expected: match &lines {
            Some(lines) => Expected::Lines(lines.clone()),
            None => Expected::Stated(object! { "valid" => is_valid }),
        },
    };
    let documents = sources.into_iter().flat_map(|source| source.documents);
    (documents.map(|document| case(document.value)).collect(), faults)
}

/// The cases of a suite.
fn show_suite(suite: &Tested, style: &Style) -> String {
    let mut out = format!("{}\n", suite.file);
    for case in &suite.cases {
        let word = if case.failures.is_empty() { style.good("ok  ") } else { style.bad("FAIL") };
        out.push_str(&format!("  {word} {}\n", case.name));
    }
    out
}

impl Test {
    /// The coverage, and what failed at the end, where it is seen.
    fn show_end(&self, run: &TestRun, style: &Style) -> String {
        let mut out = String::new();
        self.show_coverage(&run.coverage, &mut out);
        for UnreadableSuite { file, place, text } in run.faults() {
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
        let unreadable = if unreadable == 0 { String::new() } else { format!(", {unreadable} unreadable") };
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
fn located(file: &str, place: Option<TextPosition>) -> String {
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
fn gaps(counts: &RuleCounts) -> Vec<String> {
    if counts == &RuleCounts::default() {
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

fn show_json(run: &TestRun) -> String {
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

fn rule_json(path: &str, rule: &str, counts: &RuleCounts) -> Value {
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
    let case = |case: &TestedCase| report::JunitCase {
        name: case.name.clone(),
        class: case.file.clone(),
        failures: case.failures.clone(),
        is_skipped: false,
        taken: Some(case.taken),
    };
    let fault = |fault: &UnreadableSuite| report::JunitCase {
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

fn annotations(run: &TestRun) -> Vec<Annotation> {
    let annotation = |file: &str, place: Option<TextPosition>, id: &str, message: String| Annotation {
        file: file.to_owned(),
        place,
        level: AnnotationLevel::Error,
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
