//! The conditions of a write: the revision and uid that its sender has seen, and the other objects that it depends on.

use crate::auth::UserInfo;
use crate::kinds;
use crate::meta::field::{self, ErrorList, Path};
use crate::meta::{Revision, Status, parse_uint};
use crate::store::Guard;
use crate::value::{Value, json};

use super::super::derive::set_resource_version;
use super::super::{Registry, Subresource, Target, store_failed};

impl Registry {
    /// The guards for the objects that writes into `target` depend on: the definition and the namespace.
    pub(in crate::registry) async fn guards(&self, target: &Target) -> Result<Vec<Guard>, Status> {
        let mut guards = Vec::new();
        if let Some(definition) = &target.resource.definition {
            guards.push(Guard::Other {
                collection: self.definitions.collection(),
                key: definition.key.clone(),
                revision: definition.revision,
            });
        }
        if self.guards_namespaces && target.version.is_namespaced() {
            let collection = self.definitions.namespaces();
            let namespace = self.storage.get(&collection, &target.namespace).await;
            let namespace = namespace.map_err(|error| store_failed(&collection, "get", error))?;
            if let Some(namespace) = namespace {
                let (key, revision) = (namespace.key.clone(), namespace.revision);
                guards.push(Guard::Other { collection, key, revision });
            }
        }
        Ok(guards)
    }

    /// The requirements of a prepared object that its namespace, or the user's rights, do not meet.
    pub(super) async fn unmet_demands(
        &self,
        target: &Target,
        (user, verb): (&UserInfo, &str),
        object: &Value,
        old: Option<&Value>,
    ) -> Result<ErrorList, Status> {
        // An update through another path does not change the status.
        if old.is_some() && target.subresource != Subresource::Status {
            return Ok(ErrorList::new());
        }
        let mut errors = self.unmet_by_namespace(target, object, old).await?;
        errors.extend(self.missing_claim_rights(target, (user, verb), object, old).await);
        Ok(errors)
    }

    async fn unmet_by_namespace(
        &self,
        target: &Target,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<ErrorList, Status> {
        let (group, plural) = (&target.version.group, &target.version.names.plural);
        let Some(access) = kinds::admin_access(group, plural, object, old) else { return Ok(ErrorList::new()) };
        let collection = self.definitions.namespaces();
        let stored = self.storage.get(&collection, &target.namespace).await;
        let stored = stored.map_err(|error| store_failed(&collection, "get", error))?;
        let namespace = stored.and_then(|stored| json::decode(&stored.bytes).ok());
        Ok(kinds::check_admin_access(access, &target.namespace, namespace.as_ref()).into_iter().collect())
    }
}

/// The uid in a body, which the stored object must then have.
pub(in crate::registry) fn uid_precondition(body: &Value) -> Option<String> {
    Some(body.str_at(&["metadata", "uid"]).to_owned()).filter(|uid| !uid.is_empty())
}

/// The live object must have the wanted uid, if any.
pub(super) fn check_uid(target: &Target, wanted: Option<&str>, live: &Value, dry_run: bool) -> Result<(), Status> {
    let found = live.str_at(&["metadata", "uid"]);
    match wanted {
        Some(wanted) if wanted != found => Err(target.conflict(&uid_mismatch(target, wanted, found, dry_run))),
        _ => Ok(()),
    }
}

fn uid_mismatch(target: &Target, wanted: &str, found: &str, dry_run: bool) -> String {
    let (group, plural) = (&target.version.group, &target.version.names.plural);
    let folder = match &target.resource.definition {
        Some(_) => format!("{group}/{plural}"),
        None => target.resource.strategy.stored_as().unwrap_or(plural).to_owned(),
    };
    format!(
        "StorageError: invalid object, Code: 4, Key: {}/{folder}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}",
        store_prefix(dry_run),
        target.key()
    )
}

/// The key prefix of the reference's store. A dry run does not reach the store.
pub(in crate::registry) fn store_prefix(dry_run: bool) -> &'static str {
    if dry_run { "" } else { "/registry" }
}

/// The resourceVersion of the new object must be the stored one's; if it may be omitted, it is filled in.
pub(super) fn check_resource_version(target: &Target, new: &mut Value, revision: Revision) -> Result<(), Status> {
    const MODIFIED: &str =
        "the object has been modified; please apply your changes to the latest version and try again";
    let given = parse_resource_version(new.str_at(&["metadata", "resourceVersion"]))?;
    match given {
        0 if target.resource.strategy.allows_unconditional_update() => {
            set_resource_version(new, revision);
            Ok(())
        }
        0 => {
            let metadata = Path::new("metadata");
            let path = metadata.child("resourceVersion");
            let error = field::Error::invalid(&path, 0, "must be specified for an update");
            let version = &target.version;
            Err(Status::invalid(&version.group, &version.names.plural, &target.name, &error.into()))
        }
        given if i64::try_from(given).is_ok_and(|given| Revision::new(given) == revision) => Ok(()),
        _ => Err(target.conflict(MODIFIED)),
    }
}

/// Go parses a resourceVersion as an unsigned integer; its error is a 500 here.
pub(super) fn parse_resource_version(text: &str) -> Result<u64, Status> {
    if text.is_empty() {
        return Ok(0);
    }
    parse_uint(text).map_err(|error| Status::plain(500, &error.to_string()))
}

/// Whether an object can be created: not while its definition is being deleted. This is decided before any plugin of
/// admission, so `name` is the one that was sent, and empty if it is to be generated.
pub(super) fn check_creatable(target: &Target, name: &str) -> Result<(), Status> {
    if target.resource.definition.as_ref().is_some_and(|definition| definition.terminating) {
        let why = "create not allowed while custom resource definition is terminating";
        let version = &target.version;
        return Err(Status::forbidden(&version.group, &version.names.plural, name, why));
    }
    Ok(())
}

/// A new object has no resourceVersion. The reference's store checks this; a dry run does not reach it, and it ignores
/// what it can't parse.
pub(super) fn check_unversioned(new: &Value, dry_run: bool) -> Result<(), Status> {
    let revision = parse_uint(new.str_at(&["metadata", "resourceVersion"]));
    if !dry_run && revision.is_ok_and(|revision| revision != 0) {
        Err(Status::plain(500, "resourceVersion should not be set on objects to be created"))
    } else {
        Ok(())
    }
}
