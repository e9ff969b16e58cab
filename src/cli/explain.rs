//! `skiff explain`: describes a field of a kind.

use std::fmt::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::command_error::CommandError;
use super::definitions::{self, ReadDefinitions};
use super::minors::{Minors, Said};
use super::print::{ending, output, tell};
use super::project::named_or;
use crate::author::explain::{Explained, ExplainedRule, built_in, explain};
use crate::author::near::not_served;
use crate::author::{Catalog, DefinedKind};
use crate::meta::minor::Minor;
use crate::object;
use crate::schema::structural::Structural;
use crate::value::{Value, json};

/// Explain a field of a definition or of a built-in kind, with its constraints and rules
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff explain crd.yaml spec.ports\n  skiff explain crds/ boat.spec --api-version \
                  harbour.example.com/v1\n  skiff explain deployments.spec.strategy\n  skiff explain pods.spec.hostnameOverride \
                  --kubernetes-version 1.29-1.37\n\nExit codes: 0 fine, 1 no such field, 2 wrong use or unreadable input"
)]
pub struct Explain {
    /// File or folder with CustomResourceDefinitions; where there is no such file, this is the field, of a kind of those of
    /// skiff.toml or of a built-in kind
    crd: Option<PathBuf>,

    /// The field: spec.ports.name; where there are several kinds, behind one of them: boat.spec.length
    #[arg(default_value = "")]
    path: String,

    /// Which version, if not the one that is stored
    #[arg(long, value_name = "GROUP/VERSION")]
    api_version: Option<String>,

    #[command(flatten)]
    minors: Minors,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = ExplainOutput::Text)]
    output: ExplainOutput,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ExplainOutput {
    Text,
    Json,
}

/// The field that was found.
struct ExplainedField {
    kind: String,
    api_version: String,
    path: String,
    explained: Explained,
}

impl Explain {
    /// Prints the field. Exit codes: 0 if it exists, 1 if not, 2 if something can't be read.
    pub fn run(mut self) -> ExitCode {
        if let Err(message) = self.minors.take_project(true) {
            tell(message);
            return ExitCode::from(2);
        }
        let Some(minor) = self.minors.one() else {
            return self.minors.tell(self.output == ExplainOutput::Json, |minor| self.say(minor));
        };
        let (definitions, path) = match self.read(minor) {
            Ok(read) => read,
            Err(message) => {
                tell(message);
                return ExitCode::from(2);
            }
        };
        let is_whole = definitions.is_whole();
        match self.find(minor, &definitions.catalog, &path) {
            Ok(found) => {
                let text = match self.output {
                    ExplainOutput::Text => show_text(&found),
                    ExplainOutput::Json => show_json(&found).to_string() + "\n",
                };
                output(text, ending(is_whole, true))
            }
            Err(message) => {
                tell(message);
                ending(is_whole, false)
            }
        }
    }

    /// The definitions, and the requested field. A built-in kind needs no definitions.
    fn read(&self, minor: Minor) -> Result<(ReadDefinitions, String), CommandError> {
        let Some(field) = self.field() else {
            let paths =
                named_or(self.crd.as_slice(), "a file with definitions", |project| project.definitions.clone())?;
            return Ok((definitions::read_in(minor, &paths)?, self.path.clone()));
        };
        let paths = named_or(&[], "a file with definitions, or a built-in kind", |project| project.definitions.clone());
        let definitions = match paths {
            Ok(paths) => definitions::read_in(minor, &paths)?,
            Err(_) if self.built_in(minor, &field).is_some() => ReadDefinitions::of(minor, &[]),
            Err(failure) => return Err(failure.into()),
        };
        Ok((definitions, field))
    }

    /// The first argument, if it is the field and not a file.
    fn field(&self) -> Option<String> {
        let field = self.crd.as_ref().filter(|field| self.path.is_empty() && !field.exists())?;
        Some(field.to_string_lossy().into_owned())
    }

    /// The description of the field in one version of Kubernetes, and the errors of its definition.
    fn say(&self, minor: Minor) -> Said {
        let refused = |failure: CommandError| Said { lines: vec![failure.to_string()], ..Said::default() };
        let (ReadDefinitions { catalog, faults }, path) = match self.read(minor) {
            Ok(read) => read,
            Err(message) => return refused(message),
        };
        let is_readable = faults.is_empty();
        let found = match self.find(minor, &catalog, &path) {
            Ok(found) => found,
            Err(message) => return Said { is_readable, ..refused(message) },
        };
        let errors: Vec<String> = catalog
            .kinds()
            .filter(|kind| kind.definition.spec.names.kind == found.kind)
            .flat_map(|kind| kind.errors.iter().map(|error| format!("refused: {error}")))
            .collect();
        let is_fine = errors.is_empty();
        Said { lines: [vec![show_text(&found).trim_end().to_owned()], errors].concat(), is_fine, is_readable }
    }

    /// The field of a built-in kind, or the error that this minor version does not serve the kind;
    /// `None` if the kind is not built in.
    fn built_in(&self, minor: Minor, wanted: &str) -> Option<Result<ExplainedField, CommandError>> {
        let (first, path) = wanted.split_once('.').unwrap_or((wanted, ""));
        let kind_in = |minor| built_in::kind(minor, first, self.api_version.as_deref());
        let Some(kind) = kind_in(minor) else {
            let other = Minor::all().rev().find_map(kind_in)?;
            return not_served(minor, &other.api_version(), other.kind).map(|why| Err(CommandError::Said(why)));
        };
        Some(found(kind.kind, kind.api_version(), path, &built_in::schema(minor, kind)?))
    }

    fn find(&self, minor: Minor, catalog: &Catalog, wanted: &str) -> Result<ExplainedField, CommandError> {
        let (first, rest) = wanted.split_once('.').unwrap_or((wanted, ""));
        let is_named = |kind: &&DefinedKind| {
            let names = &kind.definition.spec.names;
            [&names.kind, &names.plural, &names.singular].iter().any(|name| name.eq_ignore_ascii_case(first))
                || names.short_names.iter().any(|name| name == first)
        };
        let (kind, path) = match catalog.kinds().find(is_named) {
            Some(kind) => (kind, rest),
            None => {
                if let Some(found) = self.field().and_then(|field| self.built_in(minor, &field)) {
                    return found;
                }
                let mut kinds = catalog.kinds();
                match (kinds.next(), kinds.next()) {
                    (Some(only), None) => (only, wanted),
                    _ => return Err(CommandError::Said(format!("name a kind first: {}", names(catalog)))),
                }
            }
        };
        let version = match &self.api_version {
            Some(wanted) => kind.versions.iter().find(|version| version.api_version() == *wanted),
            None => kind.versions.iter().find(|version| version.storage),
        };
        let wanted = self.api_version.as_deref().unwrap_or("that is stored");
        let unknown = || CommandError::Said(format!("no version {wanted}; use {}", kind.api_versions()));
        let version = version.ok_or_else(unknown)?;
        found(&version.names.kind, version.api_version(), path, &version.structural)
    }
}

/// The field at `path` of a kind.
fn found(kind: &str, api_version: String, path: &str, schema: &Structural) -> Result<ExplainedField, CommandError> {
    let explained = explain(schema, path).map_err(|unknown| {
        let guess = unknown.near.as_ref().map_or(String::new(), |near| format!(" (did you mean `{near}`?)"));
        CommandError::Said(format!("{kind} has no field `{unknown}` in `{path}`{guess}"))
    })?;
    Ok(ExplainedField { kind: kind.to_owned(), api_version, path: path.to_owned(), explained })
}

/// The names of a catalog's kinds, as many as fit into a line or two.
fn names(catalog: &Catalog) -> String {
    const NAMED_MAX: usize = 12;
    let mut names: Vec<&str> = catalog.kinds().map(|kind| kind.definition.spec.names.kind.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    let more = names.len().saturating_sub(NAMED_MAX);
    names.truncate(NAMED_MAX);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", names.join(", "))
}

fn show_text(found: &ExplainedField) -> String {
    let ExplainedField { kind, api_version, path, explained } = found;
    let mut out = String::new();
    let required = if explained.is_required { ", required" } else { "" };
    let field = if path.is_empty() { kind.clone() } else { format!("{kind} {path}") };
    // Writing to a String can't fail.
    let _ = writeln!(out, "{field} ({api_version}): {}{required}", explained.type_);
    if !explained.description.is_empty() {
        let _ = writeln!(out, "\n{}", explained.description.trim());
    }
    if !explained.constraints.is_empty() {
        let _ = writeln!(out, "\nconstraints:");
        explained.constraints.iter().for_each(|text| _ = writeln!(out, "  {text}"));
    }
    if !explained.rules.is_empty() {
        let _ = writeln!(out, "\nrules:");
        for ExplainedRule { rule, words, message } in &explained.rules {
            let rule = rule.split_whitespace().collect::<Vec<_>>().join(" ");
            let _ = match words {
                Some(words) => writeln!(out, "  {words}\n    rule: {rule}"),
                None => writeln!(out, "  {rule}"),
            };
            if let Some(message) = message {
                let _ = writeln!(out, "    else: {}", message.trim());
            }
        }
    }
    if !explained.fields.is_empty() {
        let _ = writeln!(out, "\nfields:");
        for field in &explained.fields {
            let required = if field.is_required { ", required" } else { "" };
            let _ = writeln!(out, "  {}: {}{required}", field.name, field.type_);
            if let Some(line) = field.description.trim().lines().next() {
                let _ = writeln!(out, "    {line}");
            }
        }
    }
    out
}

fn show_json(ExplainedField { kind, api_version, path, explained }: &ExplainedField) -> String {
    let fields: Vec<Value> = explained
        .fields
        .iter()
        .map(|field| {
            object! {
                "name" => field.name.as_str(),
                "type" => field.type_.as_str(),
                "required" => field.is_required,
                "description" => field.description.as_str(),
            }
        })
        .collect();
    let rules: Vec<Value> = explained
        .rules
        .iter()
        .map(|ExplainedRule { rule, words, message }| {
            let or_null = |text: &Option<String>| text.as_deref().map_or(Value::Null, Value::from);
            object! { "rule" => rule.as_str(), "words" => or_null(words), "message" => or_null(message) }
        })
        .collect();
    let constraints: Vec<Value> = explained.constraints.iter().map(|text| Value::from(text.as_str())).collect();
    json::encode_to_string(&object! {
        "kind" => kind.as_str(),
        "apiVersion" => api_version.as_str(),
        "path" => path.as_str(),
        "type" => explained.type_.as_str(),
        "required" => explained.is_required,
        "description" => explained.description.as_str(),
        "constraints" => constraints,
        "rules" => rules,
        "fields" => fields,
    })
}
