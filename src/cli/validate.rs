//! `skiff validate`: checks manifests as the server would, without a server.

use std::collections::{HashMap, HashSet};
use std::ops::ControlFlow;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::cluster::{Access, Cluster};
use super::command_error::CommandError;
use super::definitions::{DefinitionsError, each, is_definition};
use super::documents::{self, ManifestDocument, ManifestText, TextEntry};
use super::minors::{Minors, Said};
use super::missing::{AllowedMissing, KnownKinds};
use super::parallel;
use super::policies::{self, Given, Requester, values};
use super::print::{self, Stdout, UNUSABLE, tell};
use super::project::{Project, ProjectError};
use super::report::{DocumentVerdict, Printer, ReportFormat, ReportedDocument};
use crate::author::policies::admit::Admitted;
use crate::author::policies::is_policy;
use crate::author::{self, Catalog, CheckOptions, Checked, DefinedKind};
use crate::meta::api_version::split_api_version;
use crate::meta::field::ErrorType;
use crate::meta::minor::Minor;
use crate::value::Value;

/// Validate manifests as the API server would
///
/// Checks objects against the CustomResourceDefinitions among the files and those given with -f: structure, values,
/// rules, list types, metadata. With --old, objects that were there before are updated: transition rules run, and values
/// that were left alone are forgiven as by the server. Built-in kinds are checked by their own rules. Policies among the
/// files, or given with -f, are run over the others, with their bindings, parameters, namespaces and roles. What is of no
/// known kind is a failure, and so is nothing to check, unless --ignore-missing allows it. What can't be read is told, and the
/// rest is checked.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff validate -f crds/ manifests/\n  helm template . | skiff validate -f crds/ -\n  \
                  skiff validate -f crd.yaml --old before/ after/ -o json\n  skiff validate --from-cluster manifests/\n  skiff validate --ignore-missing=Crane,\
                  Certificate.cert-manager.io manifests/\n\nExit codes: 0 fine, 1 something invalid or not checked, 2 \
                  wrong use or unreadable input"
)]
pub struct Validate {
    /// Files or folders with CustomResourceDefinitions and policies; those of skiff.toml unless named
    #[arg(short = 'f', long = "crds", value_name = "CRD")]
    crds: Vec<PathBuf>,

    /// Take the definitions of the server that a kubeconfig names, too
    #[arg(long)]
    from_cluster: bool,

    #[command(flatten)]
    access: Access,

    /// What the objects were before: a file or folder
    #[arg(long, value_name = "FILE|DIR")]
    old: Option<PathBuf>,

    #[command(flatten)]
    requester: Requester,

    #[command(flatten)]
    minors: Minors,

    /// What happens to unknown fields and fields given twice
    #[arg(long, value_enum, default_value_t = FieldValidation::Strict)]
    field_validation: FieldValidation,

    /// Let kinds go unchecked that nothing defines: those named, or all, and nothing at all
    #[arg(long, value_name = "KIND[.GROUP],...", num_args = 0.., require_equals = true, value_delimiter = ',')]
    ignore_missing: Option<Vec<String>>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = ReportFormat::Text)]
    output: ReportFormat,

    /// Files, folders or patterns with manifests; - for stdin; the objects of skiff.toml unless named
    #[arg(value_name = "FILE")]
    files: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FieldValidation {
    Strict,
    Warn,
    Ignore,
}

/// The results, printed as they come.
struct Findings {
    printer: Printer,
    out: Stdout,
    is_fine: bool,
    is_readable: bool,
}

impl Findings {
    fn new(format: ReportFormat) -> Self {
        let printer = Printer::new(format, print::is_styled());
        Findings { printer, out: Stdout::default(), is_fine: true, is_readable: true }
    }

    fn tell(&mut self, items: &[ReportedDocument]) -> ControlFlow<()> {
        self.is_fine &= items.iter().all(ReportedDocument::is_fine);
        self.is_readable &= items.iter().all(|item| item.verdict != DocumentVerdict::Unreadable);
        self.out.write(self.printer.show(items))
    }

    fn finish(self, told: ControlFlow<()>) -> ExitCode {
        let Findings { printer, mut out, is_fine, is_readable } = self;
        if told.is_continue() {
            _ = out.write(printer.end());
        }
        out.finish(match (is_readable, is_fine) {
            (false, _) => ExitCode::from(UNUSABLE),
            (true, false) => ExitCode::FAILURE,
            (true, true) => ExitCode::SUCCESS,
        })
    }
}

impl Validate {
    /// Prints what is wrong. Exit codes: 0 if nothing is, 1 if something is or was not checked, 2
    /// if something can't be read.
    pub async fn run(mut self) -> ExitCode {
        if let Err(message) = self.take_project() {
            tell(message);
            return ExitCode::from(UNUSABLE);
        }
        let given = match self.definitions().await {
            Ok(given) => given,
            Err(message) => {
                tell(message);
                return ExitCode::from(UNUSABLE);
            }
        };
        let Some(minor) = self.minors.one() else { return self.tell_each(&given) };
        let mut findings = Findings::new(self.output);
        let told = self.check(&given, minor, &mut findings);
        findings.finish(told)
    }

    /// Takes the settings that have no argument from the project.
    fn take_project(&mut self) -> Result<(), CommandError> {
        self.minors.take_project(matches!(self.output, ReportFormat::Text | ReportFormat::Json))?;
        if !self.crds.is_empty() && !self.files.is_empty() {
            return Ok(());
        }
        let project = Project::here()?;
        if self.crds.is_empty() {
            self.crds = project.rules();
        }
        if self.files.is_empty() {
            self.files = project.objects;
        }
        if self.files.is_empty() { Err(ProjectError::NotNamed("files with manifests").into()) } else { Ok(()) }
    }

    /// Prints the results for several minor versions as one table.
    fn tell_each(&self, given: &[ManifestText]) -> ExitCode {
        let sources = documents::read_each(&self.files);
        let before = documents::read_each(self.old.as_slice());
        let faults: Vec<&documents::DocumentError> =
            given.iter().chain(&before).chain(&sources).flat_map(|source| &source.faults).collect();
        faults.iter().for_each(|fault| tell(&fault.message));
        let documents: Vec<(&ManifestText, &ManifestDocument)> = each(&sources).collect();
        let is_empty = !self.misses(&sources).is_empty();
        self.minors.tell(self.output == ReportFormat::Json, |minor| {
            let (checker, faulty) = self.checker(given, &sources, &before, minor);
            let item = |(source, document): &(&ManifestText, &ManifestDocument)| {
                checker.item(source, TextEntry::Document(document))
            };
            let items: Vec<ReportedDocument> =
                faulty.into_iter().chain(parallel::map("documents", &documents, item)).collect();
            Said {
                lines: items.iter().flat_map(statements).collect(),
                is_fine: items.iter().all(ReportedDocument::is_fine) && !is_empty,
                is_readable: faults.is_empty(),
            }
        })
    }

    fn check(&self, given: &[ManifestText], minor: Minor, findings: &mut Findings) -> ControlFlow<()> {
        let sources = documents::read_each(&self.files);
        let before = documents::read_each(self.old.as_slice());
        let unreadable =
            given.iter().chain(&before).flat_map(ManifestText::entries).filter_map(|(source, entry)| match entry {
                TextEntry::Document(_) => None,
                TextEntry::Fault(fault) => Some(ReportedDocument::unreadable(source, fault)),
            });
        findings.tell(&unreadable.collect::<Vec<_>>())?;
        findings.is_fine &= self.misses(&sources).is_empty();
        let (checker, faulty) = self.checker(given, &sources, &before, minor);
        findings.tell(&faulty)?;
        let entries: Vec<(&ManifestText, TextEntry<'_>)> = sources.iter().flat_map(ManifestText::entries).collect();
        let mut told = ControlFlow::Continue(());
        parallel::each(
            "documents",
            &entries,
            |(source, entry)| checker.item(source, *entry),
            |items| {
                told = findings.tell(&items);
                told
            },
        );
        told
    }

    /// What objects are checked against in one version of Kubernetes, and the errors of the given
    /// definitions.
    fn checker<'c>(
        &'c self,
        given: &'c [ManifestText],
        sources: &'c [ManifestText],
        before: &'c [ManifestText],
        minor: Minor,
    ) -> (ObjectChecker<'c>, Vec<ReportedDocument>) {
        let (catalog, faulty) = self.catalog(given, sources, minor);
        let all = values(given).chain(values(sources));
        let (known, policies) = (KnownKinds::new(minor, all.clone()), Given::new(minor, all));
        let old = each(before).map(|(_, document)| (ObjectIdentity::of(&document.value), &document.value)).collect();
        (ObjectChecker { validate: self, catalog, policies, known, old }, faulty)
    }

    /// The paths without anything to check, which are also reported: a folder, or all of them.
    fn misses(&self, sources: &[ManifestText]) -> Vec<String> {
        let is_read = |source: &&ManifestText| !source.documents.is_empty() || !source.faults.is_empty();
        let is_within = |source: &ManifestText, path: &PathBuf| PathBuf::from(&source.name).starts_with(path);
        let read: Vec<&ManifestText> = sources.iter().filter(is_read).collect();
        let is_empty =
            |path: &&PathBuf| read.is_empty() || (path.is_dir() && !read.iter().any(|source| is_within(source, path)));
        let empty: Vec<String> =
            self.files.iter().filter(is_empty).map(|path| format!("`{}`", path.display())).collect();
        if empty.is_empty() || self.allowed().has_all() {
            return Vec::new();
        }
        tell(format_args!("there is nothing to check in {}", empty.join(", ")));
        empty
    }

    fn allowed(&self) -> AllowedMissing<'_> {
        AllowedMissing(self.ignore_missing.as_deref())
    }

    /// The definitions for the objects, from files and from the server.
    async fn definitions(&self) -> Result<Vec<ManifestText>, CommandError> {
        let mut given = documents::read_each(&self.crds);
        let is_readable = given.iter().all(|source| source.faults.is_empty());
        let is_of_use = |value: &Value| is_definition(value) || is_policy(value);
        if !self.crds.is_empty() && is_readable && !values(&given).any(is_of_use) {
            return Err(DefinitionsError::None(self.crds.clone()).into());
        }
        if self.from_cluster {
            let cluster = Cluster::new(&self.access)?;
            given.push(ManifestText::of_values(cluster.url(), cluster.definitions().await?));
        }
        Ok(given)
    }

    /// The kinds of all definitions among the files, and of those given ones that the files need:
    /// compiling a definition with all its rules takes longer than checking most objects. Also
    /// returns the errors of the given definitions.
    fn catalog(
        &self,
        given: &[ManifestText],
        sources: &[ManifestText],
        minor: Minor,
    ) -> (Catalog, Vec<ReportedDocument>) {
        let needed: HashSet<(&str, &str)> = each(sources).map(|(_, document)| kind_of(&document.value)).collect();
        let is_needed = |document: &ManifestDocument| needed.contains(&defined_kind(&document.value));
        let definitions: Vec<(&ManifestText, &ManifestDocument, bool)> = each(given)
            .filter(|(_, document)| is_needed(document))
            .map(|(source, document)| (source, document, true))
            .chain(each(sources).map(|(source, document)| (source, document, false)))
            .filter(|(_, document, _)| is_definition(&document.value))
            .collect();
        let made =
            parallel::map("definitions", &definitions, |(_, document, _)| DefinedKind::new_in(minor, &document.value));
        let mut catalog = Catalog::of_minor(minor);
        let mut items = Vec::new();
        for ((source, document, is_given), made) in definitions.iter().zip(made) {
            // A definition among the files has a result of its own.
            let is_faulty = made.as_ref().map_or(true, |kind| !kind.errors.is_empty());
            if *is_given && is_faulty {
                let checked = check_definition(minor, &document.value, None);
                items.push(item(self, source, document, Admitted { checked, ..Admitted::default() }));
            }
            if let Ok(kind) = made {
                catalog.insert(kind);
            }
        }
        (catalog, items)
    }
}

/// What objects are checked against.
struct ObjectChecker<'c> {
    validate: &'c Validate,
    catalog: Catalog,
    policies: Given,
    known: KnownKinds,
    old: HashMap<ObjectIdentity, &'c Value>,
}

impl ObjectChecker<'_> {
    fn item(&self, source: &ManifestText, entry: TextEntry<'_>) -> ReportedDocument {
        let document = match entry {
            TextEntry::Document(document) => document,
            TextEntry::Fault(fault) => return ReportedDocument::unreadable(source, fault),
        };
        let object = &document.value;
        let old = self.old.get(&ObjectIdentity::of(object)).copied();
        match self.admit(object, old) {
            Some(admitted) => item(self.validate, source, document, admitted),
            None => self.unchecked(source, document),
        }
    }

    /// Checks an object against its kind and the policies; `None` if the kind is unknown.
    fn admit(&self, object: &Value, old: Option<&Value>) -> Option<Admitted> {
        let mut known = |object: &Value| self.check(object, old).unwrap_or_default();
        let admitted = self.policies.admit(&self.validate.requester, &self.catalog, (object, old), &mut known);
        admitted.or_else(|| Some(Admitted { checked: self.check(object, old)?, ..Admitted::default() }))
    }

    fn check(&self, object: &Value, old: Option<&Value>) -> Option<Checked> {
        match self.catalog.of(object) {
            Some(kind) => Some(self.check_custom(kind, object, old)),
            None if is_definition(object) => Some(check_definition(self.catalog.minor(), object, old)),
            None => check_built_in(self.catalog.minor(), object, old),
        }
    }

    fn check_custom(&self, kind: &DefinedKind, object: &Value, old: Option<&Value>) -> Checked {
        let (explains, skips_holding) =
            (self.validate.output == ReportFormat::Text, self.validate.output != ReportFormat::Json);
        let options = CheckOptions { explains, skips_holding, ..CheckOptions::default() };
        match old {
            None => author::create(kind, object, options),
            Some(old) => author::update(kind, object, old, options),
        }
    }

    fn unchecked(&self, source: &ManifestText, document: &ManifestDocument) -> ReportedDocument {
        let mut item = ReportedDocument::new(source, document);
        item.object = document.value.clone();
        let why = self.known.why_unchecked(&document.value);
        if self.validate.allowed().has(&document.value) {
            item.warnings.push(why);
        } else {
            item.add(ErrorType::NotFound, "kind", why, document.place("kind"));
        }
        item
    }
}

/// The verdict on a document with its errors and warnings, one per line.
fn statements(item: &ReportedDocument) -> Vec<String> {
    let about = format!("{}: {}", item.file, item.title());
    let verdict = format!("{about}: {}", if item.is_fine() { "valid" } else { "INVALID" });
    let faults = item.faults.iter().map(|fault| format!("{about}: {}", fault.text()));
    let warnings = item.warnings.iter().map(|warning| format!("{about}: warning: {warning}"));
    std::iter::once(verdict).chain(faults).chain(warnings).collect()
}

/// The result for a document, including what a strict decoder rejects.
fn item(
    validate: &Validate,
    source: &ManifestText,
    document: &ManifestDocument,
    admitted: Admitted,
) -> ReportedDocument {
    let mut item = ReportedDocument::new(source, document);
    let repeated = document
        .repeated
        .iter()
        .map(|repeated| (ErrorType::Duplicate, repeated.field.as_str(), repeated.text.clone(), repeated.place));
    let unknown = admitted.checked.unknown.iter().map(|path| {
        let text = format!("unknown field \"{path}\"");
        (ErrorType::Invalid, path.as_str(), text, document.key_place(path))
    });
    for (kind, field, text, place) in repeated.chain(unknown) {
        match validate.field_validation {
            FieldValidation::Strict => item.add(kind, field, text, place),
            FieldValidation::Warn => item.warnings.push(text),
            FieldValidation::Ignore => {}
        }
    }
    policies::report(&mut item, admitted, document);
    item
}

/// The group and kind of an object.
fn kind_of(object: &Value) -> (&str, &str) {
    let (group, _) = split_api_version(object.str_at(&["apiVersion"])).unwrap_or_default();
    (group, object.str_at(&["kind"]))
}

/// The group and kind that a definition defines.
fn defined_kind(definition: &Value) -> (&str, &str) {
    (definition.str_at(&["spec", "group"]), definition.str_at(&["spec", "names", "kind"]))
}

fn check_definition(minor: Minor, definition: &Value, old: Option<&Value>) -> Checked {
    let checked = author::define_in(minor, definition, old);
    checked.unwrap_or_else(|error| Checked::refuse(definition.clone(), &error))
}

/// Checks an object of a built-in kind; `None` if there is no such kind.
fn check_built_in(minor: Minor, object: &Value, old: Option<&Value>) -> Option<Checked> {
    let kind = author::BuiltIn::of_in(minor, object.str_at(&["apiVersion"]), object.str_at(&["kind"]))?;
    Some(kind.write(object, old).unwrap_or_else(|error| Checked::refuse(object.clone(), &error)))
}

/// The identity of an object: group, kind, namespace and name.
#[derive(PartialEq, Eq, Hash)]
struct ObjectIdentity([String; 4]);

impl ObjectIdentity {
    fn of(object: &Value) -> ObjectIdentity {
        let (group, kind) = kind_of(object);
        let metadata = |name| object.str_at(&["metadata", name]).to_owned();
        ObjectIdentity([group.to_owned(), kind.to_owned(), metadata("namespace"), metadata("name")])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::work;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        validate: Validate,
    }

    /// The steps of checking and printing `count` documents, one in three of them invalid.
    fn steps(document: fn(usize) -> String, count: usize) -> u64 {
        let text: String = (0..count).map(document).collect();
        let Cli { validate } = Cli::parse_from(["skiff", "-"]);
        let told = || {
            let source = ManifestText::of_text("-", text.into());
            let known = KnownKinds::new(Minor::NEWEST, [].into_iter());
            let (catalog, policies) = (Catalog::default(), Given::new(Minor::NEWEST, [].into_iter()));
            let checker = ObjectChecker { validate: &validate, catalog, policies, known, old: HashMap::new() };
            let items: Vec<ReportedDocument> =
                source.entries().map(|(source, entry)| checker.item(source, entry)).collect();
            assert_eq!(items.iter().filter(|item| !item.is_fine()).count(), count.div_ceil(3));
            let mut printer = Printer::new(ReportFormat::Text, false);
            assert!(printer.show(&items).lines().count() > count);
        };
        work::counted(told).1
    }

    #[test]
    fn work_grows_as_the_number_of_documents_does() {
        let shapes: [fn(usize) -> String; 3] = [
            |at| {
                let name = if at % 3 == 0 { "A" } else { "a" };
                format!("---\n# Source: a.yaml\n\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}{at}}}\n")
            },
            |at| {
                let value = if at % 3 == 0 { "1" } else { "x" };
                format!("---\napiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a{at}}}\ndata: {{a: {value}}}\n")
            },
            |at| {
                format!(
                    "---\napiVersion: v1\nkind: {}\nmetadata: {{name: a{at}}}\n",
                    if at % 3 == 0 { "Secrat" } else { "Secret" }
                )
            },
        ];
        for document in shapes {
            let (small, large) = (steps(document, 60), steps(document, 600));
            assert!(large < 11 * small, "{small} steps became {large}");
        }
    }
}
