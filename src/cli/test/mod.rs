//! `skiff test`: checks definitions and policies against the expectations in test suites.

mod outcome;
mod show;
mod suites;

use std::fs;
use std::io::{self, IsTerminal as _};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Instant;

use clap::{Args, ValueEnum};

use self::outcome::{TestRun, Tested, TestedCase, UnreadableSuite};
use self::show::{Style, annotations, junit_suites, show_end, show_json, show_suite};
use self::suites::{ReadSuite, ReadSuites, catalog, find, folder_of, given, read_examples, read_suites};
use super::command_error::CommandError;
use super::minors::{Minors, Said};
use super::print::{Stdout, UNUSABLE, is_styled, note, output, tell};
use super::project::named_or;
use super::report::show_junit;
use super::watch::FileWatch;
use super::{annotate, parallel, policies};
use crate::author::suite::{self, Coverage, SuiteStage};
use crate::meta::minor::Minor;
use crate::object;
use crate::value::{Value, yaml};

pub use self::suites::valid_cases;

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

impl Test {
    /// Prints what is not as expected. Exit codes: 0 if all is, 1 if something is not, 2 if
    /// something can't be read.
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

    /// The paths that a run reads: the folders of the suites, and the definitions and policies that
    /// these name, wherever they are.
    fn watched(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        // An unreadable folder is reported by the run.
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

    /// Prints the cases of each suite once it has run, and the failures at the end.
    fn tell_text(&self, minor: Minor) -> ExitCode {
        let (mut out, style) = (Stdout::default(), Style { is_styled: is_styled() });
        let run = self.test(minor, |suite| out.write(show_suite(suite, &style)));
        _ = out.write(show_end(&run, self.coverage, &style));
        out.finish(run.code())
    }

    /// The results of all cases for one version of Kubernetes, one per line.
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

    /// Runs all suites; `told` is called with each suite once it has run.
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
        // If something could not be run, the file keeps its snapshots.
        if self.update
            && tested.faults.is_empty()
            && new != taken
            && let Err(error) = fs::write(&snapshots, yaml::encode(&new))
        {
            tested.faults.extend(UnreadableSuite::new(&snapshots, format!("it can't be written: {error}")));
        }
        tested
    }

    /// Runs the cases of a suite. `taken` holds the previous snapshots; the new ones are added to
    /// `new`.
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
                // With `--update`, a different snapshot is not a failure.
                failures.retain(|failure| !failure.is_of_snapshot());
            }
            // A failed case keeps its previous snapshot.
            if let Some(snapshot) = snapshot.or_else(|| before.filter(|_| !failures.is_empty()).cloned()) {
                new.make_object().insert(case.name.as_str(), snapshot);
            }
            let (taken, failures) = (begun.elapsed(), failures.iter().map(ToString::to_string).collect());
            tested.cases.push(TestedCase { name: case.name.clone(), file, place, failures, ratcheted, taken });
        }
        for case in broken {
            // The case may be repaired: it keeps its previous snapshot.
            if let Some(before) = taken.get(&case.name) {
                new.make_object().insert(case.name.as_str(), before.clone());
            }
            tested.cases.push(case);
        }
        Ok(())
    }
}

/// Reads the snapshots of a file; none if it does not exist, and for a folder like `.`, which has no name.
fn read_snapshots(path: &Path) -> Result<Value, Vec<UnreadableSuite>> {
    if path.file_name().is_none() {
        return Ok(object! {});
    }
    match fs::read(path) {
        Ok(bytes) => yaml::decode(&bytes).map_err(|error| UnreadableSuite::new(path, error.to_string())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(object! {}),
        Err(error) => Err(UnreadableSuite::new(path, format!("it can't be read: {error}"))),
    }
}

/// The escape sequences that clear a terminal with its scrollback.
const CLEAR: &str = "\x1b[H\x1b[2J\x1b[3J";
