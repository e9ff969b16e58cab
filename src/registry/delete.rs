//! DELETE of one object and of a collection.
//!
//! An object with finalizers is marked and stays until they are gone; one without is removed at once.

use std::sync::Arc;

use crate::admission::{Attributes, Operation};
use crate::auth::UserInfo;
use crate::meta::{Details, Status};
use crate::store::{self, Guard, Stored, WriteError};
use crate::value::{Value, json};

use super::create::{metadata_mut, write_failed};
use super::derive::{remove_resource_version, set_resource_version};
use super::list::{ListPage, ListRequest};
use super::{Registry, Subresource, Target};

const ORPHAN: &str = "orphan";
const FOREGROUND: &str = "foregroundDeletion";

/// The options of a deletion that this server acts on.
#[derive(Clone, Debug, Default)]
pub struct DeleteOptions {
    pub uid: Option<String>,
    pub resource_version: Option<String>,
    /// `Background`, `Foreground` or `Orphan`.
    pub propagation_policy: Option<String>,
    /// The deprecated form of the policy.
    pub orphan_dependents: Option<bool>,
    pub dry_run: bool,
}

/// What a deletion is answered with.
pub enum Deletion {
    /// The object is gone.
    Gone(Status),
    /// The object stays for its finalizers.
    Stays(Value),
}

impl Registry {
    /// Deletes the object of `target`.
    ///
    /// Errors: 403 by admission, 404, 409 where a precondition does not hold.
    pub async fn delete(&self, target: &Target, user: &UserInfo, options: &DeleteOptions) -> Result<Deletion, Status> {
        let mut target = target.clone();
        loop {
            let stored = self.stored(&target).await?.ok_or_else(|| target.not_found())?;
            if let Some(deletion) = self.delete_once(&target, user, options, stored).await? {
                return Ok(deletion);
            }
            target = self.refresh(&target).await?;
        }
    }

    /// One attempt; `None` where the object has changed meanwhile.
    async fn delete_once(
        &self,
        target: &Target,
        user: &UserInfo,
        options: &DeleteOptions,
        stored: Arc<Stored>,
    ) -> Result<Option<Deletion>, Status> {
        let strategy = &target.resource.strategy;
        let old = self.derive(&target.resource, &target.version, &stored).await?;
        check_preconditions(target, options, &old)?;
        let attributes = Attributes {
            operation: Operation::Delete,
            version: &target.version,
            subresource: Subresource::Main.name(),
            namespace: &target.namespace,
            name: &target.name,
            old: Some(&old),
            user: user,
            dry_run: options.dry_run,
        };
        self.admission.mutate(&attributes, &mut Value::Null).await?;
        self.admission.validate(&attributes, &Value::Null).await?;
        let now = self.now();
        if let Some(marked) = strategy.begin_delete(&old, &now) {
            return self.commit_marked(target, marked, &stored, options.dry_run).await;
        }
        let mut marked = old.clone();
        set_policy_finalizers(&mut marked, options);
        if finalizers(&marked).is_empty() && !strategy.must_stay(&marked) {
            let gone = self.delete_now(target, &stored, Vec::new(), options.dry_run).await?;
            return Ok(gone.then(|| Deletion::Gone(gone_status(target, &old))));
        }
        mark(&mut marked, &now);
        self.commit_marked(target, marked, &stored, options.dry_run).await
    }

    /// Stores the object that was marked as being deleted.
    async fn commit_marked(
        &self,
        target: &Target,
        marked: Value,
        stored: &Arc<Stored>,
        dry_run: bool,
    ) -> Result<Option<Deletion>, Status> {
        let resource = &target.resource;
        let mut raw = marked.clone();
        remove_resource_version(&mut raw);
        let raw = self.convert_to(resource, resource.storage(), raw).await?;
        if dry_run || json::encode(&raw) == *stored.bytes {
            return Ok(Some(Deletion::Stays(marked)));
        }
        let write = store::Write {
            collection: resource.collection.clone(),
            key: stored.key.clone(),
            op: self.put(resource, &raw),
            guards: vec![Guard::At { revision: stored.revision }],
        };
        match self.storage.write(write).await {
            Ok(committed) => {
                let mut object = self.derive_value(resource, &target.version, raw).await?;
                set_resource_version(&mut object, committed.revision);
                Ok(Some(Deletion::Stays(object)))
            }
            Err(WriteError::GuardFailed) => Ok(None),
            Err(error) => Err(write_failed(error)),
        }
    }

    /// Deletes every object that `list` selects, and answers them as they were before.
    pub async fn delete_collection(
        &self,
        target: &Target,
        user: &UserInfo,
        list: &ListRequest,
        options: &DeleteOptions,
    ) -> Result<ListPage, Status> {
        let page = self.list(target, list).await?;
        for (stored, _) in &page.items {
            let mut one = target.clone();
            match stored.key.split_once('/') {
                Some((namespace, name)) => (one.namespace, one.name) = (namespace.to_owned(), name.to_owned()),
                None => one.name = stored.key.to_string(),
            }
            match self.delete(&one, user, options).await {
                Err(status) if status.code == 404 => {}
                other => drop(other?),
            }
        }
        Ok(page)
    }
}

/// What clients get for an object that is gone.
fn gone_status(target: &Target, object: &Value) -> Status {
    let version = &target.version;
    Status::success(Details {
        name: target.name.clone(),
        group: version.group.clone(),
        kind: version.names.plural.clone(),
        uid: object.str_at(&["metadata", "uid"]).to_owned(),
        ..Details::default()
    })
}

fn check_preconditions(target: &Target, options: &DeleteOptions, object: &Value) -> Result<(), Status> {
    let conflict = |why: String| {
        let version = &target.version;
        // The reference names the kind here, where every other conflict names the resource.
        Err(Status::conflict(&version.group, &version.names.kind, &target.name, &why))
    };
    let (uid, found) = (&options.uid, object.str_at(&["metadata", "uid"]));
    if let Some(uid) = uid.as_deref().filter(|uid| *uid != found) {
        return conflict(format!(
            "the UID in the precondition ({uid}) does not match the UID in record ({found}). The object might have been \
             deleted and then recreated"
        ));
    }
    let (version, found) = (&options.resource_version, object.str_at(&["metadata", "resourceVersion"]));
    if let Some(version) = version.as_deref().filter(|version| *version != found) {
        return conflict(format!(
            "the ResourceVersion in the precondition ({version}) does not match the ResourceVersion in record ({found}). \
             The object might have been modified"
        ));
    }
    Ok(())
}

/// The finalizers that the garbage collector acts on follow from the policy; without one they stay as they are.
fn set_policy_finalizers(object: &mut Value, options: &DeleteOptions) {
    let present = finalizers(object);
    let has = |name: &str| present.iter().any(|finalizer| finalizer == name);
    let (orphans, foreground) = match (options.orphan_dependents, options.propagation_policy.as_deref()) {
        (Some(orphans), _) => (orphans, false),
        (None, Some("Orphan")) => (true, false),
        (None, Some("Foreground")) => (false, true),
        (None, Some(_)) => (false, false),
        (None, None) => match present.iter().find(|name| [ORPHAN, FOREGROUND].contains(&name.as_str())) {
            Some(first) => (first == ORPHAN, first == FOREGROUND),
            None => (false, false),
        },
    };
    if orphans == has(ORPHAN) && foreground == has(FOREGROUND) {
        return;
    }
    let mut wanted: Vec<String> =
        present.into_iter().filter(|name| ![ORPHAN, FOREGROUND].contains(&name.as_str())).collect();
    wanted.extend(orphans.then(|| ORPHAN.to_owned()));
    wanted.extend(foreground.then(|| FOREGROUND.to_owned()));
    let metadata = metadata_mut(object);
    match wanted.is_empty() {
        true => _ = metadata.remove("finalizers"),
        false => {
            let wanted = wanted.into_iter().map(Value::String).collect();
            metadata.insert("finalizers", Value::Array(wanted));
        }
    }
}

/// Marks an object as being deleted: the first time raises its generation.
pub(super) fn mark(object: &mut Value, now: &str) {
    let metadata = metadata_mut(object);
    if !metadata.contains_key("deletionTimestamp") {
        if let Some(Value::Int(generation @ 1..)) = metadata.get_mut("generation") {
            *generation = generation.saturating_add(1);
        }
        metadata.insert("deletionTimestamp", Value::from(now));
    }
    metadata.insert("deletionGracePeriodSeconds", Value::Int(0));
}

fn finalizers(object: &Value) -> Vec<String> {
    let list = object.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
    list.iter().filter_map(Value::as_str).map(str::to_owned).collect()
}
