//! `/skiff/v1/planes`: the other control planes of the process. Only the main one has this path.

use std::path::PathBuf;
use std::sync::Arc;

use super::super::app::App;
use super::super::planes::{MAIN, Plane, PlaneRequest, Planes, WantedWorkloads, missing};
use super::{SkiffAnswer, text};
use crate::meta::{Status, names, time};
use crate::object;
use crate::value::{Map, Value};

/// The fields of a request for a new one.
pub(super) const FIELDS: [&str; 6] = ["name", "from", "path", "profile", "controllers", "simulateNodes"];

/// The control planes of this process, if this is the main one.
pub(super) fn all(app: &App) -> Result<Arc<dyn Planes>, Status> {
    app.planes.clone().ok_or_else(Status::not_found_generic)
}

pub(super) fn list(app: &App) -> SkiffAnswer {
    let items: Vec<Value> = all(app)?.list().iter().map(|plane| value(plane)).collect();
    Ok((200, object! { "items" => items }))
}

pub(super) fn get(app: &App, name: &str) -> SkiffAnswer {
    let found = all(app)?.get(name).ok_or_else(|| missing(name))?;
    Ok((200, value(&found)))
}

pub(super) async fn create(all: Arc<dyn Planes>, fields: &Map) -> SkiffAnswer {
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
    let created = all.create(PlaneRequest { name: name.map(owned), from, path, workloads }).await?;
    Ok((201, value(&created)))
}

/// The requested controllers and nodes; `None` if none are given.
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

pub(super) async fn delete(app: &App, name: &str) -> SkiffAnswer {
    let deleted = all(app)?.delete(name).await?.ok_or_else(|| missing(name))?;
    Ok((200, value(&deleted)))
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
