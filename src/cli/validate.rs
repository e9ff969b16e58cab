//! `skiff validate`: what the server would say to manifests, without a server.

use std::collections::{HashMap, HashSet};
use std::io::IsTerminal as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::cluster::{Access, Cluster};
use super::definitions::{each, is_definition, none_in};
use super::documents::{self, Document, Repeated, Source};
use super::parallel;
use super::print::{output, tell};
use super::report::{self, Format, Item, Verdict};
use crate::author::{self, Catalog, Checked, Kind, Options};
use crate::crd::write::split_api_version;
use crate::meta::field::{Error, ErrorType};
use crate::value::Value;

/// Validate manifests as the API server would
///
/// Checks objects against the CustomResourceDefinitions among the files and those given with -f: structure, values,
/// rules, list types, metadata. With --old, objects that were there before are updated: transition rules run, and values
/// that were left alone are forgiven as by the server. Built-in kinds that kubeskiff serves are checked, too; all others
/// are named as not checked.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff validate -f crds/ manifests/\n  helm template . | skiff validate -f crds/ -\n  \
                  skiff validate -f crd.yaml --old before/ after/ -o json\n  skiff validate --from-cluster manifests/\n\nExit codes: 0 fine, 1 something invalid, 2 \
                  wrong use or unreadable input"
)]
pub struct Validate {
    /// Files or folders with CustomResourceDefinitions
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

    /// What happens to unknown fields and fields given twice
    #[arg(long, value_enum, default_value_t = FieldValidation::Strict)]
    field_validation: FieldValidation,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = Format::Text)]
    output: Format,

    /// Files, folders or patterns with manifests; - for stdin
    #[arg(value_name = "FILE", required = true)]
    files: Vec<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum FieldValidation {
    Strict,
    Warn,
    Ignore,
}

impl Validate {
    /// Prints what is wrong. Exit codes: 0 if nothing is, 1 if something is, 2 for what can't be read.
    pub async fn run(self) -> ExitCode {
        match self.check().await {
            Ok(items) => {
                let is_styled = std::io::stdout().is_terminal() && std::env::var_os("NO_COLOR").is_none();
                let is_fine = items.iter().all(|item| item.verdict != Verdict::Invalid);
                let code = if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE };
                output(report::show(&items, self.output, is_styled), code)
            }
            Err(message) => {
                tell(message);
                ExitCode::from(2)
            }
        }
    }

    async fn check(&self) -> Result<Vec<Item>, String> {
        let given = self.definitions().await?;
        let sources = documents::read(&self.files).map_err(|error| error.to_string())?;
        let old = match &self.old {
            Some(path) => documents::read(std::slice::from_ref(path)).map_err(|error| error.to_string())?,
            None => Vec::new(),
        };
        let (catalog, mut items) = self.catalog(&given, &sources);
        let old: HashMap<Identity, &Document> =
            each(&old).map(|(_, document)| (Identity::of(&document.value), document)).collect();
        let documents: Vec<(&Source, &Document)> = each(&sources).collect();
        items.extend(parallel::map("documents", &documents, |(source, document)| {
            let old = old.get(&Identity::of(&document.value)).map(|document| &document.value);
            let checked = match catalog.of(&document.value) {
                Some(kind) => Some(self.check_custom(kind, &document.value, old)),
                None if is_definition(&document.value) => check_definition(document, old),
                None => check_built_in(&document.value, old),
            };
            self.item(source, document, checked)
        }));
        Ok(items)
    }

    /// The definitions that the objects may be of, from files and from the server.
    async fn definitions(&self) -> Result<Vec<Source>, String> {
        let mut given = documents::read(&self.crds).map_err(|error| error.to_string())?;
        if !self.crds.is_empty() && !each(&given).any(|(_, document)| is_definition(&document.value)) {
            return Err(none_in(&self.crds));
        }
        if self.from_cluster {
            let cluster = Cluster::new(&self.access)?;
            given.push(Source::of_values(cluster.url(), cluster.definitions().await?));
        }
        Ok(given)
    }

    /// The kinds of all definitions among the files, and of those given that one of the files needs: a definition with all
    /// its rules takes longer to read than most objects. With them comes what is wrong with those given.
    fn catalog(&self, given: &[Source], sources: &[Source]) -> (Catalog, Vec<Item>) {
        let needed: HashSet<(&str, &str)> = each(sources).map(|(_, document)| kind_of(&document.value)).collect();
        let is_needed = |document: &Document| needed.contains(&defined_kind(&document.value));
        let definitions: Vec<(&Source, &Document, bool)> = each(given)
            .filter(|(_, document)| is_needed(document))
            .map(|(source, document)| (source, document, true))
            .chain(each(sources).map(|(source, document)| (source, document, false)))
            .filter(|(_, document, _)| is_definition(&document.value))
            .collect();
        let made = parallel::map("definitions", &definitions, |(_, document, _)| Kind::new(&document.value));
        let mut catalog = Catalog::default();
        let mut items = Vec::new();
        for ((source, document, is_given), made) in definitions.iter().zip(made) {
            // A definition among the files has an item of its own.
            let is_faulty = made.as_ref().map_or(true, |kind| !kind.errors.is_empty());
            if *is_given && is_faulty {
                items.push(self.item(source, document, check_definition(document, None)));
            }
            if let Ok(kind) = made {
                catalog.insert(kind);
            }
        }
        (catalog, items)
    }

    fn check_custom(&self, kind: &Kind, object: &Value, old: Option<&Value>) -> Checked {
        let options = Options { explains: self.output == Format::Text, ..Options::default() };
        match old {
            None => author::create(kind, object, options),
            Some(old) => author::update(kind, object, old, options),
        }
    }

    fn item(&self, source: &Source, document: &Document, checked: Option<Checked>) -> Item {
        let mut item = Item::new(source, document);
        let Some(checked) = checked else {
            item.warnings.push(match document.value.str_at(&["kind"]) {
                "" => "not checked: it has no kind".to_owned(),
                kind => format!("not checked: there is no definition of {kind} in {}", shown_group(&document.value)),
            });
            return item;
        };
        let strict = |kind, field: &str, detail| {
            let field = field.to_owned();
            Error { kind, field, bad_value: None, shown: None, detail }
        };
        let repeated = document.repeated.iter();
        let repeated =
            repeated.map(|Repeated { place, field, text }| (*place, strict(ErrorType::Duplicate, field, text.clone())));
        let unknown = checked.unknown.iter().map(|path| {
            let text = format!("unknown field \"{path}\"");
            (document.place(path), strict(ErrorType::Invalid, path, text))
        });
        for (place, error) in repeated.chain(unknown) {
            match self.field_validation {
                FieldValidation::Strict => item.add_strict(error, place),
                FieldValidation::Warn => item.warnings.push(error.detail),
                FieldValidation::Ignore => {}
            }
        }
        item.take(checked, document);
        item
    }
}

/// The group and version that a document names.
fn shown_group(object: &Value) -> &str {
    match object.str_at(&["apiVersion"]) {
        "" => "no group",
        api_version => api_version,
    }
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

fn check_definition(document: &Document, old: Option<&Value>) -> Option<Checked> {
    let refused = |detail| Checked::refuse(document.value.clone(), detail);
    Some(author::define(&document.value, old).unwrap_or_else(refused))
}

/// Checks an object of a kind that the server has from the start.
fn check_built_in(object: &Value, old: Option<&Value>) -> Option<Checked> {
    let kind = author::BuiltIn::of(object.str_at(&["apiVersion"]), object.str_at(&["kind"]))?;
    let refused = |detail| Checked::refuse(object.clone(), detail);
    Some(kind.write(object, old).unwrap_or_else(refused))
}

/// What tells an object from others: group, kind, namespace and name.
#[derive(PartialEq, Eq, Hash)]
struct Identity([String; 4]);

impl Identity {
    fn of(object: &Value) -> Identity {
        let (group, kind) = kind_of(object);
        let metadata = |name| object.str_at(&["metadata", name]).to_owned();
        Identity([group.to_owned(), kind.to_owned(), metadata("namespace"), metadata("name")])
    }
}
