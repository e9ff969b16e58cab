//! `skiff convert`: converts objects to other versions, and reports what a round trip loses.

use std::fs;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::{Args, ValueEnum};
use thiserror::Error;

use super::command_error::CommandError;
use super::definitions::{self, ReadDefinitions, each, is_definition};
use super::documents;
use super::print::{ending, output, tell};
use super::project::named_or;
use crate::author::convert::{Difference, VersionError, differences, errors, read, ways};
use crate::author::{Catalog, DefinedKind};
use crate::crd::Definition;
use crate::crd::conversion_review::ConversionError;
use crate::memory::Memory;
use crate::meta::minor::Minor;
use crate::object;
use crate::registry::Conversion;
use crate::value::{Value, json, yaml};
use crate::webhook::{ServiceAddress, WebhookClient};

/// Convert objects to other versions, and tell what a round trip loses
///
/// Each object goes to every other version and back, as a server takes it: through the conversion webhook that its definition
/// declares, or, with the strategy None, by its apiVersion alone. What comes back is compared with what went. With --to,
/// the objects are printed in that version instead.
#[derive(Args)]
#[command(after_help = "Examples:\n  skiff convert crds/ boats/\n  skiff convert crd.yaml boat.yaml --webhook \
                  https://localhost:9443/convert --webhook-ca certs/ca.crt\n  skiff convert crd.yaml boat.yaml --to v2\n\nExit \
                  codes: 0 nothing is lost, 1 something is, or a conversion fails, 2 wrong use or unreadable input")]
pub struct Convert {
    /// File or folder with CustomResourceDefinitions; those of skiff.toml unless named
    crd: Option<PathBuf>,

    /// Files or folders with objects; those of skiff.toml unless named
    #[arg(value_name = "OBJECT")]
    objects: Vec<PathBuf>,

    /// Print the objects in this version: v2, or example.com/v2
    #[arg(long, value_name = "VERSION")]
    to: Option<String>,

    /// Where the conversion webhook listens, in place of what the definition says; it is called though none is declared
    #[arg(long, value_name = "URL")]
    webhook: Option<String>,

    /// File with the certificates (PEM) that the webhook's is checked with, in place of the definition's caBundle
    #[arg(long, value_name = "FILE")]
    webhook_ca: Option<PathBuf>,

    /// Where the program listens that would be behind a service; may be given several times
    #[arg(long = "webhook-service", value_name = "NAMESPACE/NAME[:PORT]=HOST:PORT")]
    webhook_services: Vec<ServiceAddress>,

    /// How to print: YAML is for --to
    #[arg(short, long, value_enum)]
    output: Option<ConvertOutput>,
}

#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum ConvertOutput {
    Text,
    Json,
    Yaml,
}

/// The round trip of an object through another version.
struct Trip {
    object: String,
    from: String,
    to: String,
    /// The result of the round trip, or why it failed.
    outcome: Result<ConversionReport, TripError>,
}

struct ConversionReport {
    differences: Vec<Difference>,
    /// The errors of the object in the other version.
    errors: Vec<String>,
}

/// Why an object can't be converted to another version.
#[derive(Debug, Error)]
enum WayError {
    #[error(transparent)]
    Version(#[from] VersionError),
    #[error(transparent)]
    Conversion(#[from] ConversionError),
}

/// Where a round trip failed.
#[derive(Debug, Error)]
enum TripError {
    #[error(transparent)]
    Start(#[from] VersionError),
    #[error("to {version}: {error}")]
    There { version: String, error: WayError },
    #[error("back from {version}: {error}")]
    Back { version: String, error: WayError },
}

impl Trip {
    fn is_fine(&self) -> bool {
        self.outcome.as_ref().is_ok_and(|outcome| outcome.differences.is_empty() && outcome.errors.is_empty())
    }
}

impl Convert {
    /// Prints what is lost, or the converted objects. Exit codes: 0 if nothing is lost, 1 if
    /// something is or a conversion fails, 2 if something can't be read.
    pub async fn run(self) -> ExitCode {
        let done = match &self.to {
            Some(to) => self.print(to).await,
            None => self.try_ways().await,
        };
        done.unwrap_or_else(|message| {
            tell(message);
            ExitCode::from(2)
        })
    }

    async fn print(&self, to: &str) -> Result<ExitCode, CommandError> {
        let Input { definitions, objects, is_readable } = self.read()?;
        let client = self.client();
        let (mut converted, mut is_fine) = (Vec::new(), true);
        for (name, object) in objects {
            let made = match self.way(&definitions.catalog, &client, &object) {
                Ok(way) => {
                    let group = &way.kind.definition.spec.group;
                    let wanted = if to.contains('/') { to.to_owned() } else { format!("{group}/{to}") };
                    way.convert(object, &wanted).await.map_err(|why| CommandError::Said(why.to_string()))
                }
                Err(why) => Err(why),
            };
            match made {
                Ok(object) => converted.push(object),
                Err(why) => {
                    tell(format_args!("{name}: {why}"));
                    is_fine = false;
                }
            }
        }
        let text = match self.output {
            Some(ConvertOutput::Json) => json::encode_to_string(&Value::Array(converted)) + "\n",
            _ => converted.iter().map(yaml::encode).collect::<Vec<_>>().join("---\n"),
        };
        Ok(output(text, ending(is_readable, is_fine)))
    }

    async fn try_ways(&self) -> Result<ExitCode, CommandError> {
        let Input { definitions, objects, is_readable } = self.read()?;
        let client = self.client();
        let (mut trips, mut is_fine) = (Vec::new(), true);
        for (name, object) in &objects {
            let way = self.way(&definitions.catalog, &client, object).and_then(|way| match ways(way.kind, object) {
                ways if ways.is_empty() => Err(CommandError::said("there is no other version to go to")),
                ways => Ok((way, ways)),
            });
            let (way, ways) = match way {
                Ok(found) => found,
                Err(why) => {
                    tell(format_args!("{name}: {why}"));
                    is_fine = false;
                    continue;
                }
            };
            for to in ways {
                let outcome = way.there_and_back(object, &to).await;
                let from = object.str_at(&["apiVersion"]).to_owned();
                trips.push(Trip { object: name.clone(), from, to, outcome });
            }
        }
        let text = match self.output {
            Some(ConvertOutput::Json) => show_json(&trips) + "\n",
            _ => show_text(&trips, objects.len()),
        };
        is_fine &= trips.iter().all(Trip::is_fine);
        Ok(output(text, ending(is_readable, is_fine)))
    }

    /// Reads the definitions, and the objects with their names for messages. Errors of single files
    /// are printed, and the rest is used.
    fn read(&self) -> Result<Input, CommandError> {
        let named = self.crd.as_slice();
        let definitions = named_or(named, "files with definitions", |project| project.definitions.clone())?;
        let definitions = definitions::read_in(Minor::NEWEST, &definitions)?;
        let paths = named_or(&self.objects, "files with objects", |project| project.objects.clone())?;
        let (sources, is_readable) = documents::read_telling(&paths);
        let objects = each(&sources).filter(|(_, document)| !is_definition(&document.value));
        let named = objects.map(|(source, document)| {
            let object = &document.value;
            let name =
                format!("{}: {} {}", source.name, object.str_at(&["kind"]), object.str_at(&["metadata", "name"]));
            (name, object.clone())
        });
        let objects: Vec<_> = named.collect();
        if objects.is_empty() && is_readable {
            let names: Vec<String> = paths.iter().map(|path| format!("`{}`", path.display())).collect();
            return Err(CommandError::Said(format!("there is no object to convert in {}", names.join(", "))));
        }
        let is_readable = is_readable && definitions.is_whole();
        Ok(Input { definitions, objects, is_readable })
    }

    /// How an object is converted.
    fn way<'w>(
        &self,
        catalog: &'w Catalog,
        client: &'w WebhookClient,
        object: &Value,
    ) -> Result<ConversionMethod<'w>, CommandError> {
        let kind = catalog.of(object).ok_or_else(|| CommandError::said("no definition has its kind"))?;
        Ok(ConversionMethod { client, conversion: self.conversion(&kind.definition)?, kind })
    }

    fn client(&self) -> WebhookClient {
        WebhookClient::new(self.webhook_services.clone(), Vec::new(), Arc::new(Memory::of_system()))
    }

    /// The conversion that the definition declares, changed by the arguments: a webhook named there
    /// is called, whatever the definition says.
    fn conversion(&self, definition: &Definition) -> Result<Conversion, CommandError> {
        let mut definition = definition.clone();
        if self.webhook.is_some() {
            let declared = definition.spec.conversion.get_or_insert_default();
            declared.strategy = "Webhook".to_owned();
            let webhook = declared.webhook.get_or_insert_default();
            if webhook.review_versions.is_empty() {
                webhook.review_versions.push("v1".to_owned());
            }
        }
        let webhook = definition.spec.conversion.as_mut().and_then(|conversion| conversion.webhook.as_mut());
        if let Some(webhook) = webhook {
            let config = webhook.client_config.get_or_insert_default();
            if let Some(url) = &self.webhook {
                config.url = Some(url.clone());
            }
            if let Some(path) = &self.webhook_ca {
                let pem = fs::read(path).map_err(CommandError::read(path))?;
                config.ca_bundle = Some(STANDARD.encode(pem));
            }
        }
        Ok(Conversion::of(&definition))
    }
}

/// The definitions and objects, and whether all of them could be read.
struct Input {
    definitions: ReadDefinitions,
    objects: Vec<(String, Value)>,
    is_readable: bool,
}

/// How objects of a kind are converted.
struct ConversionMethod<'w> {
    client: &'w WebhookClient,
    conversion: Conversion,
    kind: &'w DefinedKind,
}

impl ConversionMethod<'_> {
    /// Converts `object` to the version `to`, and returns it as a client would read it.
    async fn convert(&self, mut object: Value, to: &str) -> Result<Value, WayError> {
        read(self.kind, &mut object)?;
        let mut converted = self.conversion.convert(self.client, object, to).await?;
        read(self.kind, &mut converted)?;
        Ok(converted)
    }

    async fn there_and_back(&self, object: &Value, to: &str) -> Result<ConversionReport, TripError> {
        let mut before = object.clone();
        read(self.kind, &mut before)?;
        let there = self.convert(before.clone(), to).await;
        let there = there.map_err(|error| TripError::There { version: to.to_owned(), error })?;
        let errors = errors(self.kind, &there);
        let from = before.str_at(&["apiVersion"]);
        let back = self.convert(there, from).await;
        let back = back.map_err(|error| TripError::Back { version: to.to_owned(), error })?;
        Ok(ConversionReport { differences: differences(&before, &back), errors })
    }
}

fn show_text(trips: &[Trip], objects: usize) -> String {
    let mut out = String::new();
    for trip in trips.iter().filter(|trip| !trip.is_fine()) {
        out.push_str(&format!("{}: {} to {} and back\n", trip.object, trip.from, trip.to));
        let lines = match &trip.outcome {
            Err(why) => vec![format!("fails {why}")],
            Ok(outcome) => {
                let errors = outcome.errors.iter().map(|error| format!("would be refused in {}: {error}", trip.to));
                outcome.differences.iter().map(Difference::to_string).chain(errors).collect()
            }
        };
        lines.iter().for_each(|line| out.push_str(&format!("  {line}\n")));
    }
    let counted = |count: usize, thing: &str| format!("{count} {thing}{}", if count == 1 { "" } else { "s" });
    let whole = trips.iter().filter(|trip| trip.is_fine()).count();
    let (objects, all) = (counted(objects, "object"), counted(trips.len(), "round trip"));
    out.push_str(&format!("{objects}, {all}: {whole} whole, {} not\n", trips.len() - whole));
    out
}

fn show_json(trips: &[Trip]) -> String {
    let difference = |difference: &Difference| {
        object! {
            "path" => difference.path.as_str(),
            "before" => difference.before.clone().unwrap_or_default(),
            "after" => difference.after.clone().unwrap_or_default(),
        }
    };
    let trip = |trip: &Trip| {
        let none = (Vec::new(), Vec::new());
        let (differences, errors) = trip.outcome.as_ref().map_or(none, |outcome| {
            let errors = outcome.errors.iter().map(|error| Value::from(error.as_str())).collect();
            (outcome.differences.iter().map(difference).collect(), errors)
        });
        object! {
            "object" => trip.object.as_str(),
            "from" => trip.from.as_str(),
            "to" => trip.to.as_str(),
            "failure" => trip.outcome.as_ref().err().map_or(Value::Null, |error| Value::from(error.to_string())),
            "differences" => differences,
            "errors" => errors,
        }
    };
    json::encode_to_string(&Value::Array(trips.iter().map(trip).collect()))
}
