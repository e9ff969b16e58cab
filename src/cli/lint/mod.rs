//! `skiff lint`: finds what definitions and policies do not do as it seems, and what the API
//! conventions advise.

mod found;
mod report;

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::builder::PossibleValuesParser;
use clap::{Args, ValueEnum};

use self::found::{FileFindings, Located, about, each};
use self::report::{annotations, described, explain, show_end, show_found, show_json};
use super::annotate;
use super::command_error::CommandError;
use super::definitions::{DefinitionsError, is_definition};
use super::documents::{self, ManifestDocument, ManifestText};
use super::minors::{Minors, Said};
use super::parallel;
use super::policies::values;
use super::print::{Stdout, UNUSABLE, ending, output, tell};
use super::project::{Lints, Project, named_or};
use crate::author::BuiltIn;
use crate::author::fix::fix;
use crate::author::lint::{Finding, LINTS, Lint as Looked, Severity, lint_in, markdown, older, older_object};
use crate::author::policies::{is_policy, lint as policy_lint};
use crate::meta::minor::Minor;
use crate::value::Value;

/// Find what definitions do not do as it seems
///
/// Finds definitions that the server refuses, rules that can't fail, never hold, trip over optional fields or are too dear,
/// and more; with --severity advice, what API conventions advise. Of policies of admission and their bindings in the same
/// files it finds what can't work: expressions that do not fit the kinds that they match, validations that can't fail,
/// bindings to nothing. Each finding has an id, which --explain explains, and a remedy. Nothing is told of fields within
/// types of Kubernetes, as their author is another. The annotation skiff.kubeskiff.dev/lint-ignore of a definition or a
/// policy turns findings off: ids, or id:path, with commas between. With --fix, what can be fixed without any change for
/// objects is, and the rest of the text stays as it is, comments included.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff lint crd-examples\n  skiff lint --severity advice --ignore boolean,phase crds/\n  \
                  skiff lint --explain conditions\n  skiff lint --fix crds/\n\nExit codes: 0 nothing found, 1 something found, \
                  2 wrong use or unreadable input"
)]
pub struct Lint {
    /// Files or folders with CustomResourceDefinitions and policies; those of skiff.toml unless named
    #[arg(value_name = "CRD")]
    crds: Vec<PathBuf>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = LintOutput::Text)]
    output: LintOutput,

    #[command(flatten)]
    minors: Minors,

    /// Tell what Kubernetes from this minor on refuses or ignores, with the remedy
    #[arg(long, value_name = "MINOR", value_parser = Minor::parse)]
    min_kubernetes_version: Option<Minor>,

    /// The least that is told; that of skiff.toml unless named, or else warning
    #[arg(long, value_enum)]
    severity: Option<Least>,

    /// Look for these alone, whatever their severity
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = ids(), hide_possible_values = true)]
    only: Vec<String>,

    /// Leave these out
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = ids(), hide_possible_values = true)]
    ignore: Vec<String>,

    /// Edit the files where that is safe, and print what is left
    #[arg(long)]
    fix: bool,

    /// Tell what a finding means, why it matters, and what to do
    #[arg(long, value_name = "ID", value_parser = ids(), hide_possible_values = true, conflicts_with_all = ["crds", "fix"])]
    explain: Option<String>,

    /// Print what is looked for, and why
    #[arg(long, conflicts_with_all = ["crds", "fix", "explain"])]
    list: bool,

    /// What the project wants.
    #[arg(skip)]
    lints: Lints,
}

/// Parses the ids of lints; the error for an unknown id suggests similar ones.
fn ids() -> PossibleValuesParser {
    PossibleValuesParser::new(LINTS.map(|lint| lint.id))
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum LintOutput {
    Text,
    Json,
    Sarif,
    Github,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Least {
    Error,
    Warning,
    Advice,
}

impl Least {
    const fn severity(self) -> Severity {
        match self {
            Least::Error => Severity::Error,
            Least::Warning => Severity::Warning,
            Least::Advice => Severity::Advice,
        }
    }
}

impl Lint {
    /// Prints the findings. Exit codes: 0 if there are none, 1 if there are some, 2 if something
    /// can't be read or written.
    pub fn run(mut self) -> ExitCode {
        if self.list {
            return output(markdown(), ExitCode::SUCCESS);
        }
        if let Some(lint) = self.explain.as_deref().and_then(Looked::find) {
            return output(explain(lint), ExitCode::SUCCESS);
        }
        if let Err(message) = self.take_project() {
            tell(message);
            return ExitCode::from(UNUSABLE);
        }
        let Some(minor) = self.minors.one() else {
            return self.minors.tell(self.output == LintOutput::Json, |minor| self.say(minor));
        };
        let mut out = Stdout::default();
        let tells = self.output == LintOutput::Text;
        let told = |found: &FileFindings| if tells { out.write(show_found(found)) } else { ControlFlow::Continue(()) };
        let (found, is_readable) = match self.find(minor, told) {
            Ok(found) => found,
            Err(message) => {
                tell(message);
                return ExitCode::from(UNUSABLE);
            }
        };
        _ = out.write(match self.output {
            LintOutput::Text => show_end(&found, self.fix),
            LintOutput::Json => show_json(&found).to_string() + "\n",
            LintOutput::Sarif => annotate::sarif(&annotations(&found), &described()),
            LintOutput::Github => annotate::github(&annotations(&found)),
        });
        let is_fine = found.iter().all(|found| found.findings.is_empty());
        out.finish(ending(is_readable, is_fine))
    }

    /// Takes the settings that have no argument from the project.
    fn take_project(&mut self) -> Result<(), CommandError> {
        self.crds = named_or(&self.crds, "files with definitions", Project::rules)?;
        self.lints = Project::here()?.lints;
        self.minors.take_project(matches!(self.output, LintOutput::Text | LintOutput::Json) && !self.fix)?;
        Ok(())
    }

    /// The findings for one version of Kubernetes, one per line.
    fn say(&self, minor: Minor) -> Said {
        let (found, is_readable) = match self.find(minor, |_| ControlFlow::Continue(())) {
            Ok(found) => found,
            Err(failure) => return Said { lines: vec![failure.to_string()], ..Said::default() },
        };
        let line = |(file, located): (&str, &Located)| {
            let Finding { lint, message, .. } = &located.finding;
            format!("{file}: {} {}: {}: {message}", lint.severity.word(), lint.id, about(located))
        };
        let is_fine = found.iter().all(|found| found.findings.is_empty());
        Said { lines: each(&found).map(line).collect(), is_fine, is_readable }
    }

    /// The findings, and whether everything could be read; errors of single files are printed, and
    /// the rest is checked. `told` is called with the findings of each file once they are complete.
    fn find(
        &self,
        minor: Minor,
        mut told: impl FnMut(&FileFindings) -> ControlFlow<()>,
    ) -> Result<(Vec<FileFindings>, bool), CommandError> {
        let (sources, mut is_readable) = documents::read_telling(&self.crds);
        if is_readable
            && !values(&sources).any(|value| is_definition(value) || is_policy(value) || self.is_older_asked(value))
        {
            return Err(DefinitionsError::None(self.crds.clone()).into());
        }
        let mut found = Vec::new();
        if self.fix {
            is_readable &= self.fix_all(sources, minor, &mut found);
            _ = found.iter().try_for_each(told);
            return Ok((found, is_readable));
        }
        let mut of_policies = policy_findings(&sources, minor);
        parallel::each(
            "files",
            &sources,
            |source| self.look(source, minor),
            |looked| {
                looked.into_iter().try_for_each(|looked| {
                    let source = &sources[found.len()];
                    let mut one = or_tell(looked, source, &mut is_readable);
                    self.take_policies(source, of_policies.remove(&found.len()).unwrap_or_default(), &mut one);
                    let goes_on = told(&one);
                    found.push(one);
                    goes_on
                })
            },
        );
        Ok((found, is_readable))
    }

    /// Fixes all files, and adds the remaining findings to `found`; returns whether all could be
    /// read and written.
    fn fix_all(&self, sources: Vec<ManifestText>, minor: Minor, found: &mut Vec<FileFindings>) -> bool {
        let mut is_readable = true;
        let looked = parallel::map("files", &sources, |source| {
            let found = self.look(source, minor)?;
            self.fix_file(source, found, minor)
        });
        let mut texts = Vec::new();
        for (source, looked) in sources.into_iter().zip(looked) {
            let (one, edited) = match looked {
                Ok(fixed) => fixed,
                Err(message) => (or_tell(Err(message), &source, &mut is_readable), None),
            };
            found.push(one);
            texts.push(edited.unwrap_or(source));
        }
        if let Err(message) = self.fix_policies(minor, &mut texts, found) {
            tell(message);
            is_readable = false;
        }
        let mut of_policies = policy_findings(&texts, minor);
        for (at, (source, one)) in texts.iter().zip(found).enumerate() {
            self.take_policies(source, of_policies.remove(&at).unwrap_or_default(), one);
        }
        is_readable
    }

    /// Applies the fixes in policies and bindings.
    fn fix_policies(
        &self,
        minor: Minor,
        sources: &mut [ManifestText],
        found: &mut [FileFindings],
    ) -> Result<(), CommandError> {
        let places = places(sources);
        let manifests: Vec<&Value> = places.iter().map(|(_, document)| &document.value).collect();
        let mut by_file: BTreeMap<usize, Vec<(usize, Finding)>> = BTreeMap::new();
        for (index, finding) in policy_lint::lint_in(minor, &manifests) {
            let (at, document) = places[index];
            if document.is_whole() && self.is_wanted(finding.lint) {
                by_file.entry(at).or_default().push((document.index, finding));
            }
        }
        for (at, findings) in by_file {
            let findings: Vec<(usize, &Finding)> = findings.iter().map(|(index, finding)| (*index, finding)).collect();
            if let Some((fixed, edited)) = rewrite(&sources[at], &findings)? {
                found[at].fixed += fixed;
                sources[at] = edited;
            }
        }
        Ok(())
    }

    /// Adds the findings in the policies of a file.
    fn take_policies(&self, source: &ManifestText, findings: Vec<(usize, Finding)>, found: &mut FileFindings) {
        found.policies += source.documents.iter().filter(|document| is_policy(&document.value)).count();
        for (index, finding) in findings {
            self.take(&source.documents[index], vec![finding], found);
        }
        found.sort();
    }

    /// Whether an object is to be checked for older minor versions.
    fn is_older_asked(&self, object: &Value) -> bool {
        self.min_kubernetes_version.is_some()
            && BuiltIn::of(object.str_at(&["apiVersion"]), object.str_at(&["kind"])).is_some()
    }

    fn is_wanted(&self, lint: &Looked) -> bool {
        let is_named = |ids: &[String]| ids.iter().any(|id| id == lint.id);
        if !self.only.is_empty() {
            return is_named(&self.only) && !is_named(&self.ignore);
        }
        let is_chosen = lint.severity >= self.least() || is_named(&self.lints.on);
        is_chosen && !is_named(&self.ignore) && !is_named(&self.lints.off)
    }

    /// The least severity that is reported.
    fn least(&self) -> Severity {
        let named = self.severity.map(Least::severity).or(self.lints.severity);
        named.unwrap_or(Severity::Warning)
    }

    /// The findings in the definitions of a file.
    fn look(&self, source: &ManifestText, minor: Minor) -> Result<FileFindings, CommandError> {
        let mut found = FileFindings { file: source.name.clone(), ..FileFindings::default() };
        for document in source.documents.iter().filter(|document| is_definition(&document.value)) {
            let wrong = |error| CommandError::Definition { file: source.name.clone(), source: error };
            let mut findings = lint_in(minor, &document.value).map_err(wrong)?;
            if let Some(oldest) = self.min_kubernetes_version {
                findings.extend(older(&between(oldest, minor), minor, &document.value).map_err(wrong)?);
            }
            found.definitions += 1;
            self.take(document, findings, &mut found);
        }
        if let Some(oldest) = self.min_kubernetes_version {
            for document in source.documents.iter().filter(|document| !is_definition(&document.value)) {
                self.take(document, older_object(&between(oldest, minor), minor, &document.value), &mut found);
            }
        }
        found.sort();
        Ok(found)
    }

    /// Adds the wanted findings in a document, and counts those below the requested severity.
    fn take(&self, document: &ManifestDocument, findings: Vec<Finding>, found: &mut FileFindings) {
        let (wanted, hidden): (Vec<_>, Vec<_>) = findings.into_iter().partition(|finding| self.is_wanted(finding.lint));
        // Findings that are left out by id are not counted either.
        let is_minor = |finding: &&Finding| self.only.is_empty() && finding.lint.severity < self.least();
        found.hidden += hidden.iter().filter(is_minor).count();
        found.findings.extend(wanted.into_iter().map(|finding| Located {
            about: what_is(&document.value),
            name: document.value.str_at(&["metadata", "name"]).to_owned(),
            index: document.index,
            place: finding.places.first().and_then(|at| document.place(at)),
            is_whole: document.is_whole(),
            finding,
        }));
    }

    /// Applies the fixes, and returns the remaining findings with the edited text.
    fn fix_file(
        &self,
        source: &ManifestText,
        found: FileFindings,
        minor: Minor,
    ) -> Result<(FileFindings, Option<ManifestText>), CommandError> {
        let editable = found.findings.iter().filter(|found| found.is_whole);
        let editable: Vec<(usize, &Finding)> = editable.map(|found| (found.index, &found.finding)).collect();
        let Some((fixed, edited)) = rewrite(source, &editable)? else { return Ok((found, None)) };
        let found = self.look(&edited, minor)?;
        Ok((FileFindings { fixed, ..found }, Some(edited)))
    }
}

/// Applies the fixes in a file; returns their number and the edited text, or `None` if there are
/// none.
fn rewrite(
    source: &ManifestText,
    findings: &[(usize, &Finding)],
) -> Result<Option<(usize, ManifestText)>, CommandError> {
    if source.name == "-" {
        return Err(CommandError::said("what comes from stdin can't be fixed: name a file"));
    }
    let edited = fix(&source.text, findings);
    let fixed = edited.is_fixed.iter().filter(|is_fixed| **is_fixed).count();
    if fixed == 0 {
        return Ok(None);
    }
    fs::write(&source.name, &edited.text).map_err(CommandError::write(Path::new(&source.name)))?;
    let edited = ManifestText::of_text(&source.name, edited.text.into());
    match edited.faults.first() {
        Some(fault) => Err(CommandError::Said(fault.message.clone())),
        None => Ok(Some((fixed, edited))),
    }
}

/// The findings in a file, or none after printing the error.
fn or_tell(looked: Result<FileFindings, CommandError>, source: &ManifestText, is_readable: &mut bool) -> FileFindings {
    looked.unwrap_or_else(|message| {
        tell(message);
        *is_readable = false;
        FileFindings { file: source.name.clone(), ..FileFindings::default() }
    })
}

/// The findings in policies, for which all files are checked together: by the index of the file,
/// each with the index of its document.
fn policy_findings(sources: &[ManifestText], minor: Minor) -> BTreeMap<usize, Vec<(usize, Finding)>> {
    let numbered = sources.iter().enumerate();
    let places = numbered.flat_map(|(at, source)| (0..source.documents.len()).map(move |index| (at, index)));
    let places: Vec<(usize, usize)> = places.collect();
    let manifests: Vec<&Value> = places.iter().map(|(at, index)| &sources[*at].documents[*index].value).collect();
    let mut found: BTreeMap<usize, Vec<(usize, Finding)>> = BTreeMap::new();
    for (index, finding) in policy_lint::lint_in(minor, &manifests) {
        let (at, document) = places[index];
        found.entry(at).or_default().push((document, finding));
    }
    found
}

/// All documents, each with the index of its file.
fn places(sources: &[ManifestText]) -> Vec<(usize, &ManifestDocument)> {
    let numbered = sources.iter().enumerate();
    numbered.flat_map(|(at, source)| source.documents.iter().map(move |document| (at, document))).collect()
}

/// The minor versions from `oldest` to the one before `newest`.
fn between(oldest: Minor, newest: Minor) -> Vec<Minor> {
    Minor::all().filter(|minor| (oldest..newest).contains(minor)).collect()
}

/// The word for a document's kind in findings.
fn what_is(document: &Value) -> &'static str {
    match document.str_at(&["kind"]) {
        kind if kind.ends_with("PolicyBinding") => "binding",
        kind if kind.ends_with("AdmissionPolicy") => "policy",
        "CustomResourceDefinition" => "crd",
        _ => "object",
    }
}
