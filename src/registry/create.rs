//! POST: a new object.

use uuid::Uuid;

use crate::admission::Operation;
use crate::apply::FieldManager;
use crate::auth::UserInfo;
use crate::kinds;
use crate::meta::field::Path;
use crate::meta::{OBJECT_BYTES_MAX, Status, names, object_meta, parse_uint};
use crate::store::{self, Collection, Guard, WriteError};
use crate::value::{Value, json};

use super::admit::Admitted;
use super::convert::Conversions;
use super::decode::{Body, FieldValidation, decode_object};
use super::derive::{Undecodable, remove_resource_version};
use super::update::dedup_owner_references;
use super::{Registry, Subresource, Target, Warnings, Written, store_failed};

/// How often a generated name that is taken is generated anew. Source: Kubernetes 1.37.
const GENERATED_NAME_TRIES: usize = 8;

/// What a creation needs beside its target.
pub struct CreateRequest {
    pub body: Body,
    pub field_validation: FieldValidation,
    /// Who owns the fields that this sets.
    pub manager: String,
    pub dry_run: bool,
    /// The fields of the options that were sent, for admission.
    pub options: Value,
}

/// How an object comes to be made.
#[derive(Clone, Copy)]
pub(super) struct Creation<'a> {
    pub user: &'a UserInfo,
    pub dry_run: bool,
    /// The fields of the request's options, for admission.
    pub options: &'a Value,
    /// By a PUT or PATCH, so that nobody has asked yet whether the user may create it.
    pub by_update: bool,
}

impl Registry {
    /// Creates an object of `target`.
    ///
    /// The name is the target's, or that of the body, or a generated one. Errors: 400 for a body that is none, 403 and 404
    /// by admission, 409 for a name that is taken, 422 for an invalid object, 429 when too much is being written.
    pub async fn create(
        &self,
        target: &Target,
        user: &UserInfo,
        request: &CreateRequest,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let mut object = decode_object(&request.body, target, request.field_validation, warnings)?;
        wipe_system_fields(&mut object);
        ensure_namespace(&mut object, &target.namespace)?;
        dedup_owner_references(&mut object, "", warnings);
        let now = self.now();
        // Assigned, not shadowed: large objects are not kept for longer than they are needed.
        object = self.manage_fields(target, |fields| fields.update(None, object.clone(), &request.manager, &now)).await;
        let generates =
            object.str_at(&["metadata", "name"]).is_empty() && !object.str_at(&["metadata", "generateName"]).is_empty();
        self.store_computed_of_client(target, user, object.str_at(&["metadata", "name"])).await?;
        let tries = if generates { GENERATED_NAME_TRIES } else { 1 };
        let mut result = Err(target.not_found());
        for tries_left in (0..tries).rev() {
            let object = if tries_left == 0 { std::mem::take(&mut object) } else { object.clone() };
            let creation = Creation { user, dry_run: request.dry_run, options: &request.options, by_update: false };
            result = self.create_decoded(target, creation, object, warnings).await;
            if !matches!(&result, Err(status) if status.is_already_exists()) {
                break;
            }
        }
        result
    }

    /// Admits, prepares, validates and stores a new object, whose metadata the client can no longer influence.
    ///
    /// The steps run again when a guard fails: what they were based on has changed.
    pub(super) async fn create_decoded(
        &self,
        target: &Target,
        creation: Creation<'_>,
        object: Value,
        warnings: &mut Warnings,
    ) -> Result<Written, Status> {
        let mut target = target.clone();
        loop {
            let mut noted = warnings.for_next_try();
            let attempt = self.create_once(&target, creation, object.clone(), &mut noted).await;
            if let Some(outcome) = attempt.transpose() {
                warnings.absorb(noted.into_notes());
                return outcome;
            }
            target = self.refresh(&target).await?;
        }
    }

    /// One attempt; `None` where a guard failed and the steps are to run again.
    async fn create_once(
        &self,
        target: &Target,
        creation: Creation<'_>,
        mut object: Value,
        warnings: &mut Warnings,
    ) -> Result<Option<Written>, Status> {
        let Creation { user, dry_run, options, by_update } = creation;
        let (version, strategy) = (&target.version, &target.resource.strategy);
        let guards = self.guards(target).await?;
        let name = target.name.clone();
        let body_name = object.str_at(&["metadata", "name"]).to_owned();
        let write = Admitted {
            operation: Operation::Create,
            target,
            name: if name.is_empty() { &body_name } else { &name },
            old: None,
            user,
            dry_run,
            options,
        };
        self.admit_mutating(&write, &mut object, warnings).await?;
        ensure_namespace(&mut object, &target.namespace)?;
        dedup_owner_references(&mut object, " after mutating admission happens", warnings);
        self.check_escalation(target, user, &object, None).await?;
        let named = fill_system_fields(&mut object, &self.now());
        let claims = self.allocate(target, &mut object, None, dry_run).await?;
        warnings.extend(strategy.early_warnings(&object));
        strategy.prepare_create_by(version, &mut object, &|| user.encode());
        let mut errors = warnings.validated(&object, |object| strategy.validate_create(version, object));
        if errors.is_empty() {
            let metadata = object.get("metadata").unwrap_or(&Value::Null);
            let path = Path::new("metadata");
            errors = object_meta::validate(metadata, version.is_namespaced(), names::is_path_segment, &path);
        }
        if !errors.is_empty() {
            let kind = object.str_at(&["kind"]);
            return Err(Status::invalid(target.resource.kind_group(version), kind, &named, &errors));
        }
        warnings.extend(strategy.warnings(version, Subresource::Main, &object, None));
        if by_update {
            self.check_create(target, user, &named)?;
        }
        let write = Admitted { name: if write.name.is_empty() { &named } else { write.name }, ..write };
        self.admit_validating(&write, &object, warnings).await?;
        if target.resource.definition.as_ref().is_some_and(|definition| definition.terminating) {
            let why = "create not allowed while custom resource definition is terminating";
            return Err(Status::forbidden(&version.group, &version.names.plural, &named, why));
        }
        // The store of the reference minds, which a dry run does not reach, and only what it can read.
        let revision = parse_uint(object.str_at(&["metadata", "resourceVersion"]));
        if !dry_run && revision.is_ok_and(|revision| revision != 0) {
            return Err(Status::plain(500, "resourceVersion should not be set on objects to be created"));
        }
        self.commit_new(target, object, (&named, dry_run), guards, claims).await
    }

    /// Stores the new object, together with the writes that give it what it has.
    async fn commit_new(
        &self,
        target: &Target,
        mut object: Value,
        (name, dry_run): (&str, bool),
        mut guards: Vec<Guard>,
        claims: Vec<store::Write>,
    ) -> Result<Option<Written>, Status> {
        let (version, resource) = (&target.version, &target.resource);
        resource.strategy.complete(&mut object);
        let key = target.key_of(name);
        let failed = |error| store_failed(&resource.collection, "create", error);
        let taken = self.storage.get(&resource.collection, &key).await.map_err(failed)?;
        if let Some(existing) = taken {
            let mut status = match object.str_at(&["metadata", "generateName"]) {
                "" => Status::already_exists(&version.group, &version.names.plural, name),
                _ => Status::generate_name_conflict(&version.group, &version.names.plural, name),
            };
            let existing =
                self.derive(resource, version, &existing).await.map_err(|error| error.refuse_change(&existing))?;
            if existing.at(&["metadata", "deletionTimestamp"]).is_some() {
                status.message = format!("object is being deleted: {}", status.message);
            }
            return Err(status);
        }
        let claimed =
            object.at(&["metadata", "resourceVersion"]).filter(|claimed| claimed.as_str() != Some("")).cloned();
        remove_resource_version(&mut object);
        let stored = self.convert_to(resource, resource.storage(), object).await;
        let mut stored = stored.map_err(Undecodable::refuse_write)?;
        if resource.definition.is_none() {
            kinds::settle_stored(&mut stored);
        }
        if dry_run {
            let object = self.derive_value(resource, version, stored).await;
            let mut object = object.map_err(Undecodable::refuse_write)?;
            if let Some(claimed) = claimed {
                metadata_mut(&mut object).insert("resourceVersion", claimed);
            }
            return Ok(Some(Written { created: true, object }));
        }
        guards.push(Guard::Absent);
        let write = store::Write {
            collection: resource.collection.clone(),
            key: key.as_str().into(),
            op: self.put(resource, &stored, None)?,
            guards,
        };
        match self.storage.write_together(write, claims).await {
            Ok(committed) => {
                let object = self.derive_value(resource, version, stored).await;
                let mut object = object.map_err(Undecodable::refuse_write)?;
                super::derive::set_resource_version(&mut object, committed.revision);
                Ok(Some(Written { created: true, object }))
            }
            Err(WriteError::GuardFailed) => Ok(None),
            Err(error) => Err(write_failed(&resource.collection, "create", error)),
        }
    }

    /// What the store keeps of `object`, which is in its storage version.
    ///
    /// Errors: it is larger than [`OBJECT_BYTES_MAX`], and than what it replaces: one from before that limit may still
    /// be made smaller.
    pub(super) fn put(
        &self,
        resource: &super::Resource,
        object: &Value,
        replaced: Option<&store::Stored>,
    ) -> Result<store::Op, Status> {
        let bytes = json::encode(object);
        let bytes_max = replaced.map_or(0, |stored| stored.bytes.len()).max(OBJECT_BYTES_MAX);
        match bytes.len() <= bytes_max {
            true => Ok(self.put_bytes(resource, object, bytes)),
            false => Err(Status::too_large_to_store()),
        }
    }

    /// [`Registry::put`] of an object that is being deleted: a mark more must not keep it.
    pub(super) fn put_marked(&self, resource: &super::Resource, object: &Value) -> store::Op {
        self.put_bytes(resource, object, json::encode(object))
    }

    fn put_bytes(&self, resource: &super::Resource, object: &Value, bytes: Vec<u8>) -> store::Op {
        let version = resource.storage();
        store::Op::Put(store::Put {
            bytes: store::fitted(&bytes),
            uid: object.str_at(&["metadata", "uid"]).into(),
            stored_version: version.version.as_str().into(),
            schema_generation: version.schema_generation,
            expires_at_ms: resource.strategy.lifetime().map(|lifetime| {
                let lifetime_ms = i64::try_from(lifetime.as_millis()).unwrap_or(i64::MAX);
                (self.clock)().as_millisecond().saturating_add(lifetime_ms)
            }),
        })
    }

    /// Computes who owns which fields of `target`; again where a webhook had to convert something for it first.
    pub(super) async fn manage_fields<T>(
        &self,
        target: &Target,
        mut compute: impl FnMut(&FieldManager<'_>) -> T + Send,
    ) -> T
    where
        T: Send,
    {
        let resource = &target.resource;
        let mut conversions = Conversions::new(resource);
        loop {
            let computed = compute(&resource.field_manager(&target.version, target.subresource, &conversions));
            let Some((object, to)) = conversions.take_wanted() else { return computed };
            let outcome = self.convert.convert(resource, object.clone(), &to).await;
            conversions.add(object, to, outcome);
        }
    }
}

/// What a failed write looks like from outside.
pub(super) fn write_failed(collection: &Collection, operation: &str, error: WriteError) -> Status {
    const RETRY_AFTER_SECONDS: u32 = 1;
    match error {
        WriteError::Busy => {
            Status::too_many_requests("too many writes are waiting, please try again later", RETRY_AFTER_SECONDS)
        }
        WriteError::GuardFailed => Status::internal_error("a guard failed that no step can meet"),
        WriteError::Store(error) => store_failed(collection, operation, error),
    }
}

/// Removes what only the server sets.
pub(super) fn wipe_system_fields(object: &mut Value) {
    if let Some(Value::Object(metadata)) = object.get_mut("metadata") {
        for name in ["creationTimestamp", "uid", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink"] {
            metadata.remove(name);
        }
    }
}

/// Sets the time and the uid, and generates a name where one is asked for; returns the name.
pub(super) fn fill_system_fields(object: &mut Value, now: &str) -> String {
    let metadata = metadata_mut(object);
    metadata.insert("creationTimestamp", Value::from(now));
    metadata.insert("uid", Value::String(Uuid::new_v4().to_string()));
    let text = |name: &str| metadata.get(name).and_then(Value::as_str).unwrap_or_default().to_owned();
    let (mut name, generate_name) = (text("name"), text("generateName"));
    if name.is_empty() && !generate_name.is_empty() {
        name = generate(&generate_name);
        metadata.insert("name", Value::from(name.clone()));
    }
    name
}

/// The metadata of an object, made where there is none.
pub(super) fn metadata_mut(object: &mut Value) -> &mut crate::value::Map {
    object.make_object().entry("metadata").make_object()
}

/// The body's namespace must be that of the path, or nothing, and then becomes it.
pub(super) fn ensure_namespace(object: &mut Value, namespace: &str) -> Result<(), Status> {
    let metadata = metadata_mut(object);
    let own = metadata.get("namespace").and_then(Value::as_str).unwrap_or_default();
    if own == namespace {
        return Ok(());
    }
    if !own.is_empty() && !namespace.is_empty() {
        let message = "the namespace of the provided object does not match the namespace sent on the request";
        return Err(Status::bad_request(message));
    }
    match namespace.is_empty() {
        true => _ = metadata.remove("namespace"),
        false => _ = metadata.insert("namespace", Value::from(namespace)),
    }
    Ok(())
}

/// `base` with five random characters behind it, 63 bytes at most.
fn generate(base: &str) -> String {
    const SUFFIX_CHARACTERS: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";
    const SUFFIX_LENGTH: usize = 5;
    const BASE_BYTES_MAX: usize = 63 - SUFFIX_LENGTH;
    let cut = base.floor_char_boundary(BASE_BYTES_MAX);
    let mut name = base[..cut].to_owned();
    let mut random = Uuid::new_v4().as_u128();
    for _ in 0..SUFFIX_LENGTH {
        let at = random % SUFFIX_CHARACTERS.len() as u128;
        random /= SUFFIX_CHARACTERS.len() as u128;
        name.push(char::from(SUFFIX_CHARACTERS[at as usize]));
    }
    name
}
