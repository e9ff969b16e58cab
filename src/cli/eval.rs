//! `skiff eval`: evaluates an expression.

use std::env;
use std::fs;
use std::io::{self, BufRead as _, IsTerminal as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueEnum};
use rustyline::completion::{Completer, Pair};
use rustyline::error::ReadlineError;
use rustyline::highlight::Highlighter;
use rustyline::hint::Hinter;
use rustyline::history::FileHistory;
use rustyline::validate::Validator;
use rustyline::{CompletionType, Config, Context, Editor, Helper};

use super::command_error::CommandError;
use super::definitions::{self, ReadDefinitions};
use super::documents;
use super::print::{UNUSABLE, note, output, tell};
use super::project::Project;
use crate::author::check::node_at;
use crate::author::convert;
use crate::author::editor::names::Name;
use crate::author::eval::{EvalVariable, Evaluated, Evaluator, ExpressionError, value_at};
use crate::author::{Catalog, DefinedKind};
use crate::crd::ServedVersion;
use crate::meta::minor::Minor;
use crate::object;
use crate::value::{Value, json, yaml};

const PROMPT: &str = "> ";

/// Evaluate an expression of CEL over an object or variables of your own
///
/// With --crd and --object, `self` is the object, or the part of it that --at names, as a rule at that place sees it: of the
/// types of its schema, with its defaults. With --object alone, and for --var, values have the types that they show.
/// Printed are the value and its type, what it cost, the most that it may cost by the estimate, and the values of its parts.
/// Without an expression, lines of standard input are evaluated; on a terminal with history and completion.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff eval \"'a.b'.split('.')\"\n  skiff eval --var x=3 'x * 2'\n  skiff eval --crd crd.yaml --object \
                  boat.yaml --at spec 'self.crew * 2 <= self.length'\n\nExit codes: 0 fine, 1 the expression has a fault or \
                  ends in an error, 2 wrong use or unreadable input"
)]
pub struct Eval {
    /// What to evaluate
    #[arg(value_name = "EXPRESSION")]
    expression: Option<String>,

    /// Files or folders with the CustomResourceDefinition of the object; those of skiff.toml unless named
    #[arg(long, value_name = "CRD", requires = "object")]
    crd: Vec<PathBuf>,

    /// File with the object that `self` is; the first in it
    #[arg(long, value_name = "FILE")]
    object: Option<PathBuf>,

    /// File with what it was before: `oldSelf`
    #[arg(long, value_name = "FILE", requires = "object")]
    old: Option<PathBuf>,

    /// The part of the object that `self` is: `spec.ports[0]`
    #[arg(long, value_name = "PATH", default_value = "", hide_default_value = true, requires = "object")]
    at: String,

    /// Another variable, its value as YAML; may be given several times
    #[arg(long = "var", value_name = "NAME=VALUE", value_parser = variable)]
    variables: Vec<(String, Value)>,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = EvalOutput::Text)]
    output: EvalOutput,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum EvalOutput {
    Text,
    Json,
}

fn variable(text: &str) -> Result<(String, Value), CommandError> {
    let (name, value) = text.split_once('=').ok_or_else(|| CommandError::said("expected NAME=VALUE"))?;
    let is_name = name.starts_with(|first: char| first.is_ascii_alphabetic() || first == '_')
        && name.chars().all(|character| character.is_ascii_alphanumeric() || character == '_');
    if !is_name {
        return Err(CommandError::Said(format!("`{name}` can't be the name of a variable")));
    }
    Ok((name.to_owned(), yaml::decode(value.as_bytes()).map_err(|error| CommandError::Said(error.to_string()))?))
}

impl Eval {
    /// Prints values. Exit codes: 0 if every expression has a value, 1 if not, 2 if something can't
    /// be read.
    pub fn run(self) -> ExitCode {
        let (evaluator, is_whole) = match self.variables() {
            Ok((variables, is_whole)) => (Evaluator::new(variables), is_whole),
            Err(message) => {
                tell(message);
                return ExitCode::from(2);
            }
        };
        let code = match &self.expression {
            Some(expression) => self.print(&evaluator, expression),
            None if io::stdin().is_terminal() && io::stdout().is_terminal() => self.converse(evaluator),
            None => self.read_lines(&evaluator),
        };
        if is_whole { code } else { ExitCode::from(UNUSABLE) }
    }

    /// The variables, and whether all files could be read.
    fn variables(&self) -> Result<(Vec<EvalVariable>, bool), CommandError> {
        let mut variables = Vec::new();
        let definitions = self.definitions()?;
        let mut is_whole = definitions.as_ref().is_none_or(ReadDefinitions::is_whole);
        for (name, path) in [("self", &self.object), ("oldSelf", &self.old)] {
            let Some(path) = path else { continue };
            let catalog = definitions.as_ref().map(|definitions| &definitions.catalog);
            let (object, is_read) = first_of(path, catalog)?;
            is_whole &= is_read;
            let kind = catalog.map(|catalog| self.kind(catalog, &object)).transpose()?;
            variables.push(match kind.flatten() {
                Some(kind) => self.of_kind(name, kind, object)?,
                None => EvalVariable::untyped(name, self.part(&object)?.clone()),
            });
        }
        let own = self.variables.iter().map(|(name, value)| EvalVariable::untyped(name, value.clone()));
        variables.extend(own);
        Ok((variables, is_whole))
    }

    /// The definitions for the objects: those named, or else those of the project.
    fn definitions(&self) -> Result<Option<ReadDefinitions>, CommandError> {
        if self.object.is_none() {
            return Ok(None);
        }
        let paths = if self.crd.is_empty() { Project::here()?.definitions } else { self.crd.clone() };
        if paths.is_empty() { Ok(None) } else { Ok(Some(definitions::read_in(Minor::NEWEST, &paths)?)) }
    }

    /// The kind of an object; `None` if the project does not define it, so its types are inferred
    /// from its values.
    fn kind<'c>(&self, catalog: &'c Catalog, object: &Value) -> Result<Option<&'c DefinedKind>, CommandError> {
        match catalog.of(object) {
            None if !self.crd.is_empty() => {
                Err(CommandError::Said(format!("no definition has the kind `{}`", object.str_at(&["kind"]))))
            }
            found => Ok(found),
        }
    }

    fn of_kind(&self, name: &str, kind: &DefinedKind, mut object: Value) -> Result<EvalVariable, CommandError> {
        convert::read(kind, &mut object).map_err(|error| CommandError::Said(error.to_string()))?;
        let version = version_of(kind, &object)?;
        let (node, is_resource) = node_at(&version.structural, &self.at)
            .ok_or_else(|| CommandError::Said(format!("{} has no field `{}`", version.names.kind, self.at)))?;
        Ok(EvalVariable::of_node(name, self.part(&object)?.clone(), node, is_resource))
    }

    fn part<'o>(&self, object: &'o Value) -> Result<&'o Value, CommandError> {
        value_at(object, &self.at).ok_or_else(|| CommandError::Said(format!("the object has no `{}`", self.at)))
    }

    fn print(&self, evaluator: &Evaluator, expression: &str) -> ExitCode {
        let found = evaluator.evaluate(expression);
        let is_fine = found.as_ref().is_ok_and(|found| found.value.is_ok());
        let text = match (&found, self.output) {
            (Ok(found), EvalOutput::Text) => show_text(found),
            (Err(fault), EvalOutput::Text) => format!("{fault}\n"),
            (found, EvalOutput::Json) => show_json(found) + "\n",
        };
        output(text, if is_fine { ExitCode::SUCCESS } else { ExitCode::FAILURE })
    }

    fn read_lines(&self, evaluator: &Evaluator) -> ExitCode {
        let mut code = ExitCode::SUCCESS;
        for line in io::stdin().lock().lines() {
            let line = match line {
                Ok(line) if line.trim().is_empty() => continue,
                Ok(line) => line,
                Err(error) => {
                    tell(format_args!("standard input can't be read: {error}"));
                    return ExitCode::from(UNUSABLE);
                }
            };
            let own = self.print(evaluator, &line);
            if own != ExitCode::SUCCESS {
                code = own;
            }
        }
        code
    }

    /// Reads expressions from the terminal until its end of input.
    fn converse(&self, evaluator: Evaluator) -> ExitCode {
        let config = Config::builder().auto_add_history(true).completion_type(CompletionType::List).build();
        let mut editor: Editor<CompletionNames, FileHistory> = match Editor::with_config(config) {
            Ok(editor) => editor,
            Err(error) => {
                tell(format_args!("the terminal can't be used: {error}"));
                return ExitCode::from(2);
            }
        };
        editor.set_helper(Some(CompletionNames(evaluator)));
        let history = history_file();
        // The file does not exist the first time.
        _ = history.as_deref().map(|path| editor.load_history(path));
        note("an expression a line; Tab completes, Ctrl-D ends");
        loop {
            match editor.readline(PROMPT) {
                Ok(line) if line.trim().is_empty() => {}
                Ok(line) => {
                    if let Some(CompletionNames(evaluator)) = editor.helper() {
                        self.print(evaluator, &line);
                    }
                }
                Err(ReadlineError::Interrupted) => {}
                Err(_) => break,
            }
        }
        if let Some(path) = history {
            _ = path.parent().map(fs::create_dir_all);
            // An error is ignored: the history is only a convenience.
            _ = editor.save_history(&path);
        }
        ExitCode::SUCCESS
    }
}

/// The file with the history of earlier sessions. Source: "XDG Base Directory Specification".
fn history_file() -> Option<PathBuf> {
    let given = |folder: &PathBuf| !folder.as_os_str().is_empty();
    let named = env::var_os("XDG_STATE_HOME").map(PathBuf::from).filter(given);
    let state = named.or_else(|| Some(env::home_dir().filter(given)?.join(".local/state")))?;
    Some(state.join("skiff/eval_history"))
}

/// The first object of a file that has a definition, or else the first one that can be read; and
/// whether the whole file could be.
fn first_of(path: &Path, catalog: Option<&Catalog>) -> Result<(Value, bool), CommandError> {
    let (sources, is_whole) = documents::read_telling(&[path.to_owned()]);
    let objects: Vec<Value> =
        sources.into_iter().flat_map(|source| source.documents).map(|document| document.value).collect();
    let is_defined = |object: &&Value| catalog.is_some_and(|catalog| catalog.of(object).is_some());
    let object = objects.iter().find(is_defined).or(objects.first());
    let object =
        object.cloned().ok_or_else(|| CommandError::Said(format!("there is no object in `{}`", path.display())))?;
    Ok((object, is_whole))
}

fn version_of<'k>(kind: &'k DefinedKind, object: &Value) -> Result<&'k ServedVersion, CommandError> {
    let wanted = object.str_at(&["apiVersion"]);
    let version = kind.versions.iter().find(|version| version.api_version() == wanted);
    let unknown = || CommandError::Said(format!("no version {wanted}; use {}", kind.api_versions()));
    version.map(|version| &**version).ok_or_else(unknown)
}

fn show_text(found: &Evaluated) -> String {
    let most = found.cost_max.map_or(String::new(), |most| format!(", at most {most}"));
    let mut out = match &found.value {
        Ok(value) => format!("{value}\n"),
        Err(error) => format!("an error: {error}\n"),
    };
    out.push_str(&format!("  {}, cost {}{most}\n", found.ty, found.cost));
    for part in &found.parts {
        out.push_str(&format!("  {} is {}\n", part.text, part.value));
    }
    out
}

fn show_json(found: &Result<Evaluated, ExpressionError>) -> String {
    let shown = match found {
        Err(fault) => object! { "fault" => fault.to_string() },
        Ok(found) => {
            let integer = |number: u64| Value::Int(i64::try_from(number).unwrap_or(i64::MAX));
            let part = |part: &crate::author::PartValue| {
                object! { "text" => part.text.as_str(), "value" => part.value.as_str() }
            };
            let (value, error) = match &found.value {
                Ok(value) => (Value::from(value.as_str()), Value::Null),
                Err(error) => (Value::Null, Value::from(error.to_string())),
            };
            object! {
                "type" => found.ty.as_str(),
                "value" => value,
                "error" => error,
                "cost" => integer(found.cost),
                "costAtMost" => found.cost_max.map_or(Value::Null, integer),
                "parts" => found.parts.iter().map(part).collect::<Vec<_>>(),
            }
        }
    };
    json::encode_to_string(&shown)
}

/// Completes names for the line editor.
struct CompletionNames(Evaluator);

impl Completer for CompletionNames {
    type Candidate = Pair;

    fn complete(&self, line: &str, at: usize, _: &Context<'_>) -> rustyline::Result<(usize, Vec<Pair>)> {
        let (start, names) = self.0.complete(&line[..at]);
        let pair = |Name { label, with, .. }| Pair { display: label, replacement: with };
        Ok((start, names.into_iter().map(pair).collect()))
    }
}

impl Hinter for CompletionNames {
    type Hint = String;
}

impl Highlighter for CompletionNames {}

impl Validator for CompletionNames {}

impl Helper for CompletionNames {}
