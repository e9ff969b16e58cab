//! `/skiff/v1/planes`: the other control planes of the process. The main one alone has it.

use std::path::PathBuf;
use std::sync::Arc;

use async_trait::async_trait;
use jiff::Timestamp;

use super::super::app::App;
use super::{Answer, text};
use crate::meta::{Status, names, time};
use crate::object;
use crate::value::{Map, Value};

/// What a request for a new one may say.
pub(super) const FIELDS: [&str; 6] = ["name", "from", "path", "profile", "controllers", "simulateNodes"];

/// The control plane that the process began with. It is not in the list, and can't be deleted.
pub const MAIN: &str = "main";

/// A control plane that is wanted.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    /// One is made up where there is none.
    pub name: Option<String>,
    /// What it is a copy of; nothing for an empty one.
    pub from: Option<String>,
    /// The file to keep it in; none for memory.
    pub path: Option<PathBuf>,
    /// What runs beside its requests; `None` for what runs in all of the process.
    pub workloads: Option<WantedWorkloads>,
}

/// The controllers and the nodes of a control plane, in the words of the options of `skiff serve`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WantedWorkloads {
    pub profile: Option<String>,
    pub controllers: Option<Vec<String>>,
    pub simulate_nodes: Option<String>,
}

/// A control plane, as its clients need it.
#[derive(Clone, Debug)]
pub struct Plane {
    pub name: Arc<str>,
    pub from: Option<String>,
    /// `https://host:port`
    pub url: String,
    /// That of its administrator.
    pub kubeconfig: String,
    pub authority_pem: String,
    /// By the machine's clock.
    pub created: Timestamp,
}

/// The control planes of a process beside the main one.
#[async_trait]
pub trait Planes: Send + Sync {
    /// Makes one, and returns when it answers. It is made also where nobody waits for that any longer.
    ///
    /// Errors: 400 for controllers that are not known, 404 for one that is to be copied and is not there, 409 for a name that is taken, what its
    /// database says, 503 where the process ends.
    async fn create(self: Arc<Self>, wanted: Wanted) -> Result<Arc<Plane>, Status>;

    /// All, in the order of their names.
    fn list(&self) -> Vec<Arc<Plane>>;

    fn get(&self, name: &str) -> Option<Arc<Plane>>;

    /// Ends one, and returns when it is gone with its memory; a file stays. It ends also where nobody waits for that any
    /// longer, and its name is taken until then. `None` where there is none of that name.
    ///
    /// Errors: 503 where the process ends.
    async fn delete(self: Arc<Self>, name: &str) -> Result<Option<Arc<Plane>>, Status>;
}

/// Those of this process, where this is the main one.
pub(super) fn all(app: &App) -> Result<Arc<dyn Planes>, Status> {
    app.planes.clone().ok_or_else(Status::not_found_generic)
}

pub(super) fn list(app: &App) -> Answer {
    let items: Vec<Value> = all(app)?.list().iter().map(|plane| value(plane)).collect();
    Ok((200, object! { "items" => items }))
}

pub(super) fn get(app: &App, name: &str) -> Answer {
    let found = all(app)?.get(name).ok_or_else(|| missing(name))?;
    Ok((200, value(&found)))
}

pub(super) async fn create(all: Arc<dyn Planes>, fields: &Map) -> Answer {
    let name = text(fields, "name")?.filter(|name| !name.is_empty());
    if let Some(fault) = name.and_then(|name| names::is_dns1123_label(name).into_iter().next()) {
        return Err(Status::bad_request(&format!("the field `name`: {fault}")));
    }
    if name == Some(MAIN) {
        return Err(Status::already_exists("", "planes", MAIN));
    }
    let path = text(fields, "path")?.filter(|path| !path.is_empty()).map(PathBuf::from);
    let owned = |text: &str| text.to_owned();
    let from = text(fields, "from")?.filter(|from| !from.is_empty()).map(owned);
    let workloads = workloads(fields)?;
    let created = all.create(Wanted { name: name.map(owned), from, path, workloads }).await?;
    Ok((201, value(&created)))
}

/// What is said of controllers and nodes; `None` where nothing is.
fn workloads(fields: &Map) -> Result<Option<WantedWorkloads>, Status> {
    let controllers = match fields.get("controllers") {
        None | Some(Value::Null) => None,
        Some(Value::Array(names)) => {
            let texts: Option<Vec<String>> = names.iter().map(|name| name.as_str().map(str::to_owned)).collect();
            Some(texts.ok_or_else(|| Status::bad_request("the field `controllers` has an item that is not a string"))?)
        }
        Some(_) => return Err(Status::bad_request("the field `controllers` is not a list of strings")),
    };
    let owned = |name: &str| Ok::<_, Status>(text(fields, name)?.filter(|text| !text.is_empty()).map(str::to_owned));
    let wanted = WantedWorkloads { profile: owned("profile")?, controllers, simulate_nodes: owned("simulateNodes")? };
    Ok(Some(wanted).filter(|wanted| *wanted != WantedWorkloads::default()))
}

pub(super) async fn delete(app: &App, name: &str) -> Answer {
    let deleted = all(app)?.delete(name).await?.ok_or_else(|| missing(name))?;
    Ok((200, value(&deleted)))
}

/// The answer about one that is not there.
pub fn missing(name: &str) -> Status {
    Status::not_found("", "planes", name)
}

fn value(plane: &Plane) -> Value {
    object! {
        "name" => &*plane.name,
        "from" => plane.from.as_deref().map_or(Value::Null, Value::from),
        "url" => plane.url.as_str(),
        "kubeconfig" => plane.kubeconfig.as_str(),
        "certificateAuthority" => plane.authority_pem.as_str(),
        "created" => time::format_seconds(plane.created),
    }
}
