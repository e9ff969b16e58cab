//! `skiff export` and `skiff import`: all objects as YAML, as they are stored, and back.

use std::collections::HashMap;
use std::fmt;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;

use clap::Args;

use super::database::Database;
use super::documents;
use super::print::tell;
use crate::crd::Scope;
use crate::crd::definition;
use crate::kinds;
use crate::meta::api_version::group_version;
use crate::store::{At, Collection, Encoded, Guard, Op, Put, SnapshotError, Storage, Write, WriteError};
use crate::value::{Value, json, yaml};

/// Write every object but events as YAML to stdout, with uids, status and managed fields
///
/// No server may be using the folder. Keys and certificates stay out; `skiff snapshot` takes them along.
#[derive(Args)]
pub struct Export {
    #[command(flatten)]
    database: Database,
}

/// Store exported objects as they are, with their uids
///
/// Nothing is validated or defaulted again. An object that exists stops the import, unless it is the same.
#[derive(Args)]
pub struct Import {
    /// Files or folders that `skiff export` has written
    #[arg(required = true)]
    paths: Vec<PathBuf>,

    #[command(flatten)]
    database: Database,
}

/// The message about a failure.
struct ExportFailure(String);

impl<E: fmt::Display> From<E> for ExportFailure {
    fn from(error: E) -> Self {
        ExportFailure(error.to_string())
    }
}

/// The group and the kind of objects.
type GroupKind = (String, String);

/// Where and how objects of a kind are stored.
#[derive(Clone)]
struct Stored {
    collection: Collection,
    namespaced: bool,
    schema_generation: i64,
}

/// The built-in kinds in the order of their creation: cluster-scoped kinds, such as namespaces,
/// come first. Events are left out, as they expire.
fn built_in() -> Vec<(GroupKind, Stored)> {
    let mut stored: Vec<_> = kinds::all()
        .filter(|kind| kind.plural != "events" && kind.can("create") && kind.review.is_none())
        .map(|kind| {
            let stored = Stored {
                collection: Collection::new(kind.group, kind.plural),
                namespaced: kind.scope == Scope::Namespaced,
                schema_generation: 0,
            };
            ((kind.group.to_owned(), kind.kind.to_owned()), stored)
        })
        .collect();
    stored.sort_by_key(|(_, stored)| stored.namespaced);
    stored
}

fn definitions() -> Collection {
    Collection::new("apiextensions.k8s.io", "customresourcedefinitions")
}

/// The kind that a definition describes; `None` if it has the name of a built-in resource.
fn defined(object: &Value) -> Option<(GroupKind, Stored)> {
    if kinds::has_name(object.str_at(&["metadata", "name"])) {
        return None;
    }
    let spec = |path: &[&str]| object.str_at(&[&["spec"], path].concat()).to_owned();
    let stored = Stored {
        collection: Collection::new(&spec(&["group"]), &spec(&["names", "plural"])),
        namespaced: spec(&["scope"]) == "Namespaced",
        schema_generation: object.at(&["metadata", "generation"]).and_then(Value::as_i64).unwrap_or_default(),
    };
    Some(((spec(&["group"]), spec(&["names", "kind"])), stored))
}

async fn open(database: &Database) -> Result<Storage, ExportFailure> {
    Ok(Storage::open(&database.config()).await?)
}

async fn objects(storage: &Storage, collection: &Collection) -> Result<Vec<Value>, ExportFailure> {
    let snapshot = storage.snapshot(collection, At::Newest).await.map_err(|error| match error {
        SnapshotError::Expired { .. } => ExportFailure("the newest state has expired".to_owned()),
        SnapshotError::Store(error) => error.into(),
    })?;
    snapshot.range("", None).map(|stored| Ok(json::decode(&stored.bytes)?)).collect()
}

impl Export {
    /// Writes the objects. Exit codes: 0 if done, 1 for a failure.
    pub async fn run(self) -> ExitCode {
        finish(self.export().await)
    }

    async fn export(&self) -> Result<(), ExportFailure> {
        let storage = open(&self.database).await?;
        let definitions = objects(&storage, &definitions()).await?;
        let custom = definitions.iter().filter_map(defined);
        let mut all = Vec::new();
        for (_, stored) in built_in().into_iter().chain(custom) {
            all.extend(objects(&storage, &stored.collection).await?);
        }
        storage.close().await;
        let mut out = io::stdout().lock();
        let written = all.iter().try_for_each(|object| write!(out, "---\n{}", yaml::encode(object)));
        match written.and_then(|()| out.flush()) {
            // The reader of the pipe has closed it.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            done => Ok(done?),
        }
    }
}

impl Import {
    /// Stores the objects. Exit codes: 0 if done, 1 for a failure.
    pub async fn run(self) -> ExitCode {
        finish(self.import().await)
    }

    async fn import(&self) -> Result<(), ExportFailure> {
        let sources = documents::read(&self.paths)?;
        let documents = sources.into_iter().flat_map(|source| source.documents).map(|document| document.value);
        let documents: Vec<Value> = documents.collect();
        std::fs::create_dir_all(&self.database.data_dir)?;
        let storage = open(&self.database).await?;
        let mut kinds: HashMap<_, _> = objects(&storage, &definitions()).await?.iter().filter_map(defined).collect();
        let is_definition = |object: &&Value| object.str_at(&["kind"]) == definition::KIND;
        kinds.extend(documents.iter().filter(is_definition).filter_map(defined));
        // A definition can't replace a built-in kind.
        kinds.extend(built_in());
        // All objects are checked before any is stored.
        let writes = documents.into_iter().map(|object| write_of(object, &kinds)).collect::<Result<Vec<_>, _>>()?;
        let (mut made, mut known) = (0, 0);
        for write in writes {
            if import_one(&storage, write).await? { made += 1 } else { known += 1 }
        }
        storage.close().await;
        let objects = if made == 1 { "object" } else { "objects" };
        match known {
            0 => tell(format_args!("imported {made} {objects}")),
            1 => tell(format_args!("imported {made} {objects}; 1 was already there")),
            _ => tell(format_args!("imported {made} {objects}; {known} were already there")),
        }
        Ok(())
    }
}

/// Stores an object; returns whether it did not exist yet.
async fn import_one(storage: &Storage, write: Write) -> Result<bool, ExportFailure> {
    let (collection, key, op) = (write.collection.clone(), Arc::clone(&write.key), write.op.clone());
    match storage.write(write).await {
        Ok(_) => Ok(true),
        Err(WriteError::GuardFailed) => {
            let there = storage.get(&collection, &key).await?;
            match (there, op) {
                (Some(there), Op::Put(put)) if there.bytes == put.object.bytes() => Ok(false),
                _ => Err(ExportFailure(format!("`{key}` of {} exists", collection.as_str()))),
            }
        }
        Err(WriteError::Busy) => Err(ExportFailure("too many writes are waiting".to_owned())),
        Err(WriteError::Store(error)) => Err(error.into()),
    }
}

/// The write that stores an exported object.
fn write_of(mut object: Value, kinds: &HashMap<GroupKind, Stored>) -> Result<Write, ExportFailure> {
    let api_version = object.str_at(&["apiVersion"]).to_owned();
    let (group, version) = group_version(&api_version);
    let kind = object.str_at(&["kind"]).to_owned();
    let name = object.str_at(&["metadata", "name"]).to_owned();
    let Some(stored) = kinds.get(&(group.to_owned(), kind.clone())) else {
        return Err(ExportFailure(format!("{kind} `{name}`: no definition of {kind} in `{api_version}`")));
    };
    let uid = object.str_at(&["metadata", "uid"]).to_owned();
    if name.is_empty() || uid.is_empty() {
        return Err(ExportFailure(format!(
            "{kind} `{name}` was not exported: it has no name or no uid; apply it instead"
        )));
    }
    let namespace = object.str_at(&["metadata", "namespace"]);
    let key = if stored.namespaced { format!("{namespace}/{name}") } else { name };
    // The resource version belongs to the database row.
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        metadata.remove("resourceVersion");
    }
    let op = Op::Put(Put {
        object: Encoded::of(&object),
        uid: uid.into(),
        stored_version: version.into(),
        schema_generation: stored.schema_generation,
        expires_at_ms: None,
        served_under: None,
    });
    Ok(Write { collection: stored.collection.clone(), key: key.into(), op, guards: vec![Guard::Absent] })
}

fn finish(done: Result<(), ExportFailure>) -> ExitCode {
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(ExportFailure(message)) => {
            tell(message);
            ExitCode::FAILURE
        }
    }
}
