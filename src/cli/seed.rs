//! The initial contents of a server: the definitions and objects of `--crds`, applied at startup
//! and whenever one of their files changes.

use std::collections::HashMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use tokio::sync::mpsc;

use super::definitions::{each, is_definition};
use super::documents::{self, ManifestText};
use super::print::tell;
use super::watch::FileWatch;
use crate::meta::Status;
use crate::registry::Registry;
use crate::value::Value;

/// The errors, one per line.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub struct SeedError(Vec<String>);

/// Files and folders with manifests, and what was applied of them.
#[derive(Default)]
pub struct Seed {
    paths: Vec<PathBuf>,
    /// Whether files are watched while the server runs.
    follows: bool,
    applied: HashMap<String, Value>,
}

/// The result of applying the manifests at startup; later changes are printed one by one.
#[derive(Default)]
struct ApplySummary {
    definitions: usize,
    objects: usize,
    faults: Vec<String>,
}

impl Seed {
    pub fn new(paths: Vec<PathBuf>, follows: bool) -> Self {
        Seed { paths, follows, applied: HashMap::new() }
    }

    pub fn is_empty(&self) -> bool {
        self.paths.is_empty()
    }

    /// Applies everything, definitions first, and waits until these are served: clients may use
    /// them as soon as the server is ready.
    ///
    /// # Errors
    ///
    /// What can't be read, and what is refused.
    pub async fn begin(&mut self, registry: &Registry) -> Result<(), SeedError> {
        let ApplySummary { definitions, objects, faults } = self.apply(registry).await;
        if !faults.is_empty() {
            return Err(SeedError(faults));
        }
        let counted = |count: usize, thing: &str| format!("{count} {thing}{}", if count == 1 { "" } else { "s" });
        let (definitions, objects) = (counted(definitions, "CustomResourceDefinition"), counted(objects, "object"));
        tell(format_args!("applied {definitions} and {objects}"));
        Ok(())
    }

    /// Applies changes while the server runs. Objects that disappear from the files are not
    /// deleted.
    ///
    /// # Errors
    ///
    /// The thread that watches the files can't be started.
    pub fn follow(mut self, registry: Arc<Registry>) -> io::Result<()> {
        if !self.follows {
            return Ok(());
        }
        let folders = self.paths.iter().map(|path| {
            if path.is_dir() { path.clone() } else { path.parent().map(Path::to_owned).unwrap_or_default() }
        });
        let mut watch = FileWatch::new(folders.collect());
        let (changed, mut changes) = mpsc::channel(1);
        thread::Builder::new().name("files".to_owned()).spawn(move || {
            while changed.blocking_send(()).is_ok() {
                watch.wait();
            }
        })?;
        tokio::spawn(async move {
            while changes.recv().await.is_some() {
                self.apply(&registry).await.faults.iter().for_each(tell);
            }
        });
        Ok(())
    }

    /// Applies what differs from its last applied state. A file that can't be read, perhaps because
    /// it is half written, does not hinder the others: it is read again when it changes.
    async fn apply(&mut self, registry: &Registry) -> ApplySummary {
        let sources = documents::read_each(&self.paths);
        let mut new: Vec<(String, &str, &Value)> = Vec::new();
        for (source, document) in each(&sources).filter(|(source, _)| !is_example(source)) {
            let object = &document.value;
            let key = title(object);
            if is_object(object) && self.applied.get(&key) != Some(object) {
                new.push((key, &source.name, object));
            }
        }
        // Definitions and namespaces come first, as others need them; the rest keeps its order.
        new.sort_by_key(|(_, _, object)| (!is_definition(object), object.str_at(&["kind"]) != "Namespace"));
        let is_first = self.applied.is_empty();
        let faults = sources.iter().filter(|source| !is_example(source)).flat_map(|source| &source.faults);
        let mut outcome =
            ApplySummary { faults: faults.map(|fault| fault.message.clone()).collect(), ..ApplySummary::default() };
        for (key, file, object) in new {
            let done =
                if is_definition(object) { define(registry, object).await } else { apply(registry, object).await };
            match done {
                Err(status) => outcome.faults.push(format!("`{file}`: {key}: {}", status.message)),
                Ok(()) if !is_first => tell(format_args!("applied {key}")),
                Ok(()) if is_definition(object) => outcome.definitions += 1,
                Ok(()) => outcome.objects += 1,
            }
            // A refused object is tried again when it changes.
            self.applied.insert(key, object.clone());
        }
        outcome
    }
}

/// Whether a file is an example of a suite for `skiff test`: it may be one that must be refused.
fn is_example(source: &ManifestText) -> bool {
    let folder = Path::new(&source.name).parent();
    let is_named = folder.and_then(Path::file_name).is_some_and(|name| name == "valid" || name == "invalid");
    is_named && folder.and_then(Path::parent).is_some_and(|above| above.join("crd.yaml").is_file())
}

/// Whether a document is an object; suites and the values of charts are not.
fn is_object(value: &Value) -> bool {
    ["apiVersion", "kind"].iter().all(|field| !value.str_at(&[field]).is_empty())
}

/// Formats `Kind.group namespace/name`; for a definition, its name.
fn title(object: &Value) -> String {
    if is_definition(object) {
        return object.str_at(&["metadata", "name"]).to_owned();
    }
    let group = object.str_at(&["apiVersion"]).rsplit_once('/').map_or(String::new(), |(group, _)| format!(".{group}"));
    let (kind, name) = (object.str_at(&["kind"]), object.str_at(&["metadata", "name"]));
    match object.str_at(&["metadata", "namespace"]) {
        "" => format!("{kind}{group} {name}"),
        namespace => format!("{kind}{group} {namespace}/{name}"),
    }
}

async fn define(registry: &Registry, definition: &Value) -> Result<(), Status> {
    registry.register(definition.clone()).await?;
    let name = definition.str_at(&["metadata", "name"]);
    if let Some(why) = registry.wait_until_served(name).await? {
        tell(format_args!("`{name}` is not served: {why}"));
    }
    Ok(())
}

async fn apply(registry: &Registry, object: &Value) -> Result<(), Status> {
    let warnings = registry.apply_own(object).await?;
    warnings.texts().iter().for_each(|warning| tell(format_args!("{}: {warning}", title(object))));
    Ok(())
}
