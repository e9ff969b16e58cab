//! The loop that every change of an object runs in, and PUT.
//!
//! A change is made from the newest stored state, admitted, validated and committed under the guard that this state still
//! holds; when it does not, everything runs again.

use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

use crate::admission::Operation;
use crate::apply::{FieldManager, keep_times};
use crate::auth::UserInfo;
use crate::kinds;
use crate::meta::field::{self, Path};
use crate::meta::{Revision, Status, names, object_meta};
use crate::store::{self, Guard, Stored, WriteError};
use crate::value::{Value, json};

use super::admit::Admitted;
use super::create::{Creation, ensure_namespace, metadata_mut, wipe_system_fields, write_failed};
use super::decode::{Body, FieldValidation, decode_object};
use super::derive::{Undecodable, remove_resource_version, set_resource_version};
use super::{Registry, Subresource, Target, Warnings, Written, scale, store_failed};

/// What a PUT needs beside its target.
pub struct UpdateRequest {
    pub body: Body,
    pub field_validation: FieldValidation,
    pub manager: String,
    pub dry_run: bool,
    /// The fields of the options that were sent, for admission.
    pub options: Value,
}

/// How a change is made and what it must meet.
pub(super) struct Change<'a> {
    pub user: &'a UserInfo,
    pub dry_run: bool,
    /// The fields of the request's options, for admission.
    pub options: &'a Value,
    /// The uid that the stored object must have.
    pub uid: Option<String>,
    /// Whether an absent object is made (server-side apply).
    pub creates: bool,
}

/// Makes the new object from the present one, which is null where there is none. It may be called again for the same
/// outcome.
pub(super) type Make<'m> =
    dyn FnMut(&Target, &FieldManager<'_>, &Value, &mut Warnings) -> Result<Value, Status> + Send + 'm;

impl Registry {
    /// Replaces the object of `target` by the body.
    ///
    /// Errors: 400 for a body that is none, 404, 409 for a resourceVersion or uid that is not the object's, 422 for an
    /// invalid object or one without resourceVersion.
    pub async fn update(
        &self,
        target: &Target,
        user: &UserInfo,
        request: &UpdateRequest,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let mut object = decode_object(&request.body, target, request.field_validation, warnings)?;
        ensure_namespace(&mut object, &target.namespace)?;
        check_name(&object, target)?;
        dedup_owner_references(&mut object, "", warnings);
        let creates = target.subresource == Subresource::Main && target.resource.strategy.creates_on_update();
        let (dry_run, options, uid) = (request.dry_run, &request.options, uid_precondition(&object));
        let change = Change { user, dry_run, options, uid, creates };
        let now = self.now();
        let mut make = |_: &Target, fields: &FieldManager<'_>, live: &Value, _: &mut Warnings| {
            let live = (!live.is_null()).then_some(live);
            Ok(fields.update(live, object.clone(), &request.manager, &now))
        };
        self.change(target, &change, &mut make, warnings).await
    }

    /// Writes the status of an object for a controller, over the revision that `object` names.
    ///
    /// Errors: 404 and 409 where the object has changed or is gone.
    pub async fn write_status(
        &self,
        target: &Target,
        user: &UserInfo,
        manager: &str,
        object: Value,
    ) -> Result<Written, Status> {
        let change = Change { user, dry_run: false, options: &Value::Null, uid: None, creates: false };
        let now = self.now();
        let mut make = |_: &Target, fields: &FieldManager<'_>, live: &Value, _: &mut Warnings| {
            Ok(fields.update(Some(live), object.clone(), manager, &now))
        };
        self.change(target, &change, &mut make, &mut Warnings::default()).await
    }

    /// Says that the content of a namespace is gone: its own finalizer goes, and with the last one the namespace.
    pub async fn finalize_namespace(&self, target: &Target, user: &UserInfo) -> Result<Written, Status> {
        let change = Change { user, dry_run: false, options: &Value::Null, uid: None, creates: false };
        let mut make = |_: &Target, _: &FieldManager<'_>, live: &Value, _: &mut Warnings| {
            let mut emptied = live.clone();
            if let Some(Value::Array(finalizers)) = emptied.at_mut(&["spec", "finalizers"]) {
                finalizers.retain(|name| name.as_str() != Some("kubernetes"));
            }
            Ok(emptied)
        };
        self.change(target, &change, &mut make, &mut Warnings::default()).await
    }

    /// Runs a change until it is committed, refused, or turns out to change nothing.
    pub(super) async fn change(
        &self,
        target: &Target,
        change: &Change<'_>,
        make: &mut Make<'_>,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let mut target = target.clone();
        loop {
            let mut noted = warnings.for_next_try();
            let attempt = self.attempt_change(&target, change, make, &mut noted).await;
            if let Some(outcome) = attempt.transpose() {
                warnings.absorb(noted.into_notes());
                return outcome;
            }
            target = self.refresh(&target).await?;
        }
    }

    /// One attempt on what is stored now, if anything; `None` where it has changed meanwhile.
    async fn attempt_change(
        &self,
        target: &Target,
        change: &Change<'_>,
        make: &mut Make<'_>,
        warnings: &mut Warnings,
    ) -> Result<Option<Written>, Status> {
        if let Some(stored) = self.stored(target).await? {
            return self.change_once(target, change, stored, make, warnings).await;
        }
        if !change.creates {
            return Err(target.not_found());
        }
        let mut object = self.make(target, make, &Value::Null, warnings).await?;
        parse_resource_version(object.str_at(&["metadata", "resourceVersion"]))?;
        wipe_system_fields(&mut object);
        // The store of the reference sets it aside, which a dry run does not reach.
        if !change.dry_run {
            remove_resource_version(&mut object);
        }
        let Change { user, dry_run, options, .. } = *change;
        let creation = Creation { user, dry_run, options, by_update: true };
        match self.create_decoded(target, creation, object, warnings).await {
            // Somebody else was first: the change is made to their object.
            Err(status) if status.is_already_exists() && !change.dry_run => Ok(None),
            other => other.map(Some),
        }
    }

    /// The new object, with the conversions that it takes to tell who owns its fields.
    async fn make(
        &self,
        target: &Target,
        make: &mut Make<'_>,
        live: &Value,
        warnings: &mut Warnings,
    ) -> Result<Value, Status> {
        self.manage_fields(target, |fields| make(target, fields, live, warnings)).await
    }

    /// One attempt; `None` where a guard failed and the steps are to run again.
    async fn change_once(
        &self,
        target: &Target,
        change: &Change<'_>,
        stored: Arc<Stored>,
        make: &mut Make<'_>,
        warnings: &mut Warnings,
    ) -> Result<Option<Written>, Status> {
        let (version, strategy) = (&target.version, &target.resource.strategy);
        let old = self.derive_live(&target.resource, version, &stored).await?;
        let old_uid = old.str_at(&["metadata", "uid"]);
        if let Some(uid) = change.uid.as_deref().filter(|uid| *uid != old_uid) {
            return Err(target.conflict(&uid_mismatch(target, uid, old_uid)));
        }
        let mut new = self.make(target, make, &old, warnings).await?;
        let seen_old = seen_by_admission(target, &old)?;
        let write = Admitted {
            operation: Operation::Update,
            target,
            name: &target.name,
            old: Some(&seen_old),
            user: change.user,
            dry_run: change.dry_run,
            options: change.options,
        };
        let guards = self.guards(target).await?;
        self.admit_change(&write, &mut new, warnings).await?;
        dedup_owner_references(&mut new, " after mutating admission happens", warnings);
        self.check_escalation(target, change.user, &new, Some(&old)).await?;
        self.check_resource_version(target, &mut new, stored.revision)?;
        ensure_namespace(&mut new, &target.namespace)?;
        keep_generation(&mut new, &old);
        let claims = self.allocate(target, &mut new, Some(&old), change.dry_run).await?;
        strategy.prepare_update_at(version, target.subresource, &mut new, &old, &self.now());
        keep_system_fields(&mut new, &old);
        let mut forgiven = Vec::new();
        let errors = warnings.validated(&new, |new| {
            forgiven.clear();
            validate(target, new, &old, &mut forgiven)
        });
        warnings.extend(forgiven);
        if !errors.is_empty() {
            let name = new.str_at(&["metadata", "name"]);
            return Err(Status::invalid(target.resource.kind_group(version), new.str_at(&["kind"]), name, &errors));
        }
        warnings.extend(strategy.warnings(version, target.subresource, &new, Some(&old)));
        keep_times(&mut new, &old);
        self.admit_validating(&write, &*seen_by_admission(target, &new)?, warnings).await?;
        if is_deleted_by(&new, &old) && !strategy.must_stay(&new) {
            return self
                .delete_now(target, &stored, guards, change.dry_run)
                .await
                .map(|gone| gone.map(|_| Written { created: false, object: new }));
        }
        self.commit_change(target, new, stored, (guards, claims), change.dry_run).await
    }

    /// Lets admission change the new object; of a Scale, the replicas that it stands for.
    async fn admit_change(&self, write: &Admitted<'_>, new: &mut Value, warnings: &mut Warnings) -> Result<(), Status> {
        if write.target.subresource != Subresource::Scale {
            return self.admit_mutating(write, new, warnings).await;
        }
        let mut scale = seen_by_admission(write.target, new)?.into_owned();
        self.admit_mutating(write, &mut scale, warnings).await?;
        scale::write_back(write.target, &scale, new)
    }

    /// Stores the changed object, together with the writes that give it what it has and take back what it has no more,
    /// unless its bytes and version are what is stored already.
    pub(super) async fn commit_change(
        &self,
        target: &Target,
        new: Value,
        stored: Arc<Stored>,
        (mut guards, claims): (Vec<Guard>, Vec<store::Write>),
        dry_run: bool,
    ) -> Result<Option<Written>, Status> {
        let (version, resource) = (&target.version, &target.resource);
        let mut raw = new;
        resource.strategy.complete(&mut raw);
        remove_resource_version(&mut raw);
        let raw = self.convert_to(resource, resource.storage(), raw).await;
        let mut raw = raw.map_err(Undecodable::refuse_write)?;
        if resource.definition.is_none() {
            kinds::settle_stored(&mut raw);
        }
        let answer = |revision: Revision, object: Value| {
            let mut object = object;
            set_resource_version(&mut object, revision);
            Some(Written { created: false, object })
        };
        // No-op is decided against the raw stored bytes: an unchanged PUT persists defaults added since.
        let unchanged = *stored.stored_version == *resource.storage().version && json::encode(&raw) == *stored.bytes;
        if unchanged || dry_run {
            let object = self.derive_value(resource, version, raw).await.map_err(Undecodable::refuse_write)?;
            return Ok(answer(stored.revision, object));
        }
        guards.push(Guard::At { revision: stored.revision });
        let write = store::Write {
            collection: resource.collection.clone(),
            key: stored.key.clone(),
            op: self.put(resource, &raw, Some(&stored))?,
            guards,
        };
        match self.storage.write_together(write, claims).await {
            Ok(committed) => {
                let object = self.derive_value(resource, version, raw).await.map_err(Undecodable::refuse_write)?;
                Ok(answer(committed.revision, object))
            }
            Err(WriteError::GuardFailed) => Ok(None),
            Err(error) => Err(write_failed(&resource.collection, "update", error)),
        }
    }

    /// Removes the stored object, as its last finalizer is gone, with what it alone has; returns the revision of that, and
    /// `None` where it has changed meanwhile.
    pub(super) async fn delete_now(
        &self,
        target: &Target,
        stored: &Arc<Stored>,
        mut guards: Vec<Guard>,
        dry_run: bool,
    ) -> Result<Option<Revision>, Status> {
        if dry_run {
            return Ok(Some(stored.revision));
        }
        let released = self.release(target, stored).await?;
        guards.push(Guard::At { revision: stored.revision });
        let collection = &target.resource.collection;
        let write =
            store::Write { collection: collection.clone(), key: stored.key.clone(), op: store::Op::Delete, guards };
        match self.storage.write_together(write, released).await {
            Ok(committed) => {
                if *collection == self.definitions.collection() {
                    self.forget_deleted(&stored.key);
                }
                self.after_deletion(target, &stored.key).await;
                Ok(Some(committed.revision))
            }
            Err(WriteError::GuardFailed) => Ok(None),
            Err(error) => Err(write_failed(collection, "delete", error)),
        }
    }

    /// The resourceVersion of the new object must be the stored one's; where it may be left out it is filled in.
    fn check_resource_version(&self, target: &Target, new: &mut Value, revision: Revision) -> Result<(), Status> {
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
}

/// What admission sees of an object: itself, or its Scale.
fn seen_by_admission<'o>(target: &Target, object: &'o Value) -> Result<Cow<'o, Value>, Status> {
    match target.subresource {
        Subresource::Scale => scale::shown(target, object).map(Cow::Owned),
        _ => Ok(Cow::Borrowed(object)),
    }
}

/// Go parses a resourceVersion as an unsigned integer; its error is a 500 here.
fn parse_resource_version(text: &str) -> Result<u64, Status> {
    if text.is_empty() {
        return Ok(0);
    }
    crate::meta::parse_uint(text).map_err(|error| Status::plain(500, &error))
}

fn validate(target: &Target, new: &Value, old: &Value, forgiven: &mut Vec<String>) -> field::ErrorList {
    let (version, path) = (&target.version, Path::new("metadata"));
    let null = Value::Null;
    let metadata = new.get("metadata").unwrap_or(&null);
    let old_metadata = old.get("metadata").unwrap_or(&null);
    let mut errors = object_meta::validate(metadata, version.is_namespaced(), names::is_path_segment, &path);
    errors.extend(object_meta::validate_update(metadata, old_metadata, &path));
    let strategy = &target.resource.strategy;
    errors.extend(strategy.validate_update_and_warn(version, target.subresource, new, old, forgiven));
    errors
}

/// The generation is the server's.
fn keep_generation(new: &mut Value, old: &Value) {
    match old.at(&["metadata", "generation"]) {
        Some(generation) => _ = metadata_mut(new).insert("generation", generation.clone()),
        None => _ = metadata_mut(new).remove("generation"),
    }
}

/// An update can't change when and as what an object was made, nor take back its deletion.
fn keep_system_fields(new: &mut Value, old: &Value) {
    let metadata = metadata_mut(new);
    for name in ["creationTimestamp", "deletionTimestamp"] {
        if let Some(value) = old.at(&["metadata", name]) {
            metadata.insert(name, value.clone());
        }
    }
    for name in ["uid", "deletionGracePeriodSeconds"] {
        if let Some(value) = old.at(&["metadata", name])
            && metadata.get(name).is_none_or(|value| value.is_null() || value.as_str() == Some(""))
        {
            metadata.insert(name, value.clone());
        }
    }
    metadata.remove("selfLink");
}

/// Whether this write takes the last finalizer from an object that is being deleted.
fn is_deleted_by(new: &Value, old: &Value) -> bool {
    let finalizers = new.at(&["metadata", "finalizers"]).and_then(Value::as_array).unwrap_or_default();
    let grace = old.at(&["metadata", "deletionGracePeriodSeconds"]).and_then(Value::as_i64).unwrap_or_default();
    finalizers.is_empty() && old.at(&["metadata", "deletionTimestamp"]).is_some() && grace == 0
}

/// The body must name the object of the path. Source: `checkName` of apiserver 1.37.
pub(super) fn check_name(object: &Value, target: &Target) -> Result<(), Status> {
    let name = object.str_at(&["metadata", "name"]);
    let wanted = &target.name;
    if name.is_empty() {
        let message =
            format!("the name of the object ({wanted} based on URL) was undeterminable: name must be provided");
        return Err(Status::bad_request(&message));
    }
    if name != wanted {
        let message = format!("the name of the object ({name}) does not match the name on the URL ({wanted})");
        return Err(Status::bad_request(&message));
    }
    Ok(())
}

/// An applied object that names a uid can't be made anew.
pub(super) fn check_uid_of_absent(target: &Target, object: &Value) -> Result<(), Status> {
    match object.str_at(&["metadata", "uid"]) {
        "" => Ok(()),
        uid => Err(target.conflict(&format!(
            "uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        ))),
    }
}

/// The uid that a body names, which the stored object must then have.
pub(super) fn uid_precondition(body: &Value) -> Option<String> {
    Some(body.str_at(&["metadata", "uid"]).to_owned()).filter(|uid| !uid.is_empty())
}

fn uid_mismatch(target: &Target, wanted: &str, found: &str) -> String {
    let (group, plural) = (&target.version.group, &target.version.names.plural);
    let folder = match &target.resource.definition {
        Some(_) => format!("{group}/{plural}"),
        None => target.resource.strategy.stored_as().unwrap_or(plural).to_owned(),
    };
    format!(
        "StorageError: invalid object, Code: 4, Key: /{folder}/{}, ResourceVersion: 0, AdditionalErrorMsg: \
         Precondition failed: UID in precondition: {wanted}, UID in object meta: {found}",
        target.key()
    )
}

/// Owner references that stand twice, the same in every field, stay once; the client is warned.
pub(super) fn dedup_owner_references(object: &mut Value, when: &str, warnings: &mut Warnings) {
    let Some(Value::Array(references)) = object.at_mut(&["metadata", "ownerReferences"]) else { return };
    let mut seen = HashSet::with_capacity(references.len());
    let mut kept: Vec<Value> = Vec::with_capacity(references.len());
    let mut twice = Vec::new();
    for reference in references.drain(..) {
        match seen.insert(json::encode(&reference)) {
            true => kept.push(reference),
            false => twice.push(reference.str_at(&["uid"]).to_owned()),
        }
    }
    *references = kept;
    if !twice.is_empty() {
        warnings.add(format!(
            ".metadata.ownerReferences contains duplicate entries{when}; API server dedups owner references in 1.20+, and \
             may reject such requests as early as 1.24; please fix your requests; duplicate UID(s) observed: {}",
            twice.join(", ")
        ));
    }
}

impl Registry {
    /// Makes the objects that writes into `target` depend on part of their commit: the definition and the namespace.
    pub(super) async fn guards(&self, target: &Target) -> Result<Vec<Guard>, Status> {
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
}
