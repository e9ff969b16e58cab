//! `skiff infer`: drafts a definition from examples.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueEnum};

use super::command_error::CommandError;
use super::documents;
use super::print::{ending, output, tell};
use crate::author::infer::{Hints, faults, infer};
use crate::value::{Value, json, yaml};

/// Write a first definition from examples
///
/// Every example passes it: that is tried before it is printed. What all of several examples have is required; texts, lists,
/// maps and numbers are bounded, with room to grow. It is a draft: go over names, enums and bounds, and then let
/// `skiff lint --severity advice` read it.
#[derive(Args)]
#[command(
    after_help = "Examples:\n  skiff infer boats/*.yaml > crd.yaml\n  helm template . | skiff infer --kind Boat -\n\nExit \
                  codes: 0 fine, 1 an example would not pass, 2 wrong use or unreadable input"
)]
pub struct Infer {
    /// Files or folders with objects of one kind; - is standard input
    #[arg(value_name = "FILE", required = true)]
    objects: Vec<PathBuf>,

    /// Which objects are meant, where there are others: their kind
    #[arg(long)]
    kind: Option<String>,

    /// The name of the resource [default: the kind in the plural]
    #[arg(long, default_value = "", hide_default_value = true)]
    plural: String,

    /// Where objects live
    #[arg(long, value_enum, default_value_t = ScopeArg::Namespaced)]
    scope: ScopeArg,

    /// How to print
    #[arg(short, long, value_enum, default_value_t = InferOutput::Yaml)]
    output: InferOutput,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ScopeArg {
    Namespaced,
    Cluster,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum InferOutput {
    Yaml,
    Json,
}

impl Infer {
    /// Prints a definition. Exit codes: 0 if all examples pass it, 1 if one does not, 2 if
    /// something can't be read.
    pub fn run(self) -> ExitCode {
        let (objects, is_whole) = match self.read() {
            Ok(read) => read,
            Err(message) => {
                tell(message);
                return ExitCode::from(2);
            }
        };
        let hints = Hints { plural: self.plural.clone(), is_cluster_scoped: self.scope == ScopeArg::Cluster };
        let definition = match infer(&objects, &hints) {
            Ok(definition) => definition,
            Err(message) => {
                tell(message);
                return ExitCode::from(2);
            }
        };
        let faults = faults(&definition, &objects);
        faults.iter().for_each(tell);
        let text = match self.output {
            InferOutput::Yaml => yaml::encode(&definition),
            InferOutput::Json => json::encode_to_string(&definition) + "\n",
        };
        output(text, ending(is_whole, faults.is_empty()))
    }

    /// The objects of the requested kind, and whether all files could be read.
    fn read(&self) -> Result<(Vec<Value>, bool), CommandError> {
        let (sources, is_whole) = documents::read_telling(&self.objects);
        let objects = sources.into_iter().flat_map(|source| source.documents).map(|document| document.value);
        let is_meant = |object: &Value| {
            let kind = object.str_at(&["kind"]);
            self.kind.as_deref().is_none_or(|wanted| kind.eq_ignore_ascii_case(wanted))
        };
        let objects: Vec<Value> = objects.filter(|object| !object.is_null() && is_meant(object)).collect();
        if objects.is_empty() {
            Err(CommandError::said("there is no such object to learn from"))
        } else {
            Ok((objects, is_whole))
        }
    }
}
