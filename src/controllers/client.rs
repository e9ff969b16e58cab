//! How workload controllers read and write objects, each with its own account, in the same way as clients.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use jiff::{SignedDuration, Timestamp};

use super::decoded;
use super::identity::{CONTROLLER_MANAGER, service_account};
use super::recorder::{RecordedEvent, Recorder};
use crate::auth::UserInfo;
use crate::memory::Reservation;
use crate::meta::api_version::group_version;
use crate::meta::{Status, time};
use crate::object;
use crate::registry::{
    Body, CreateRequest, DeleteRequest, FieldValidation, Format, PatchRequest, PatchType, Registry, Subresource,
    Target, UpdateRequest, Warnings,
};
use crate::store::{Collection, Stored};
use crate::value::{Value, json};

/// A built-in resource: its group and its plural name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kind(pub &'static str, pub &'static str);

pub(super) const PODS: Kind = Kind("", "pods");
pub(super) const NODES: Kind = Kind("", "nodes");
pub(super) const JOBS: Kind = Kind("batch", "jobs");

/// Writes of so many bytes at most, with the object that they change, don't wait for memory.
const SMALL_WRITE_BYTES: usize = 16 << 10;

impl Kind {
    pub fn collection(self) -> Collection {
        Collection::new(self.0, self.1)
    }

    /// Whether a collection is the one of this resource.
    pub fn is(self, collection: &Collection) -> bool {
        collection.is(self.0, self.1)
    }
}

/// The access of one controller to objects.
#[derive(Clone)]
pub(super) struct Client {
    pub registry: Arc<Registry>,
    user: UserInfo,
    /// The name that events give as their source.
    component: &'static str,
    recorder: Recorder,
}

impl Client {
    /// A client for the controller whose service account, and name in events, is `account`.
    pub fn new(registry: &Arc<Registry>, recorder: &Recorder, account: &'static str) -> Self {
        let user = service_account(account);
        Client { registry: Arc::clone(registry), user, component: account, recorder: recorder.clone() }
    }

    /// The same client, as a user that is not a service account.
    pub fn of_user(mut self, name: &str) -> Self {
        self.user = UserInfo::authenticated(name, Vec::new());
        self
    }

    /// The same client, with another name in events.
    pub fn called(mut self, component: &'static str) -> Self {
        self.component = component;
        self
    }

    pub fn now(&self) -> Timestamp {
        self.registry.clock.now()
    }

    /// The object under `key` (`namespace/name`, or the name), with its resourceVersion.
    pub async fn get(&self, kind: Kind, key: &str) -> Result<Option<Value>, Status> {
        let Some(stored) = self.get_stored(kind, key).await? else { return Ok(None) };
        decoded::begin(&stored.bytes).await?;
        read(&stored).map(Some)
    }

    /// The same, without what `keeps` removes.
    pub async fn get_part(&self, kind: Kind, key: &str, keeps: Keeps) -> Result<Option<Value>, Status> {
        match self.get_stored(kind, key).await? {
            Some(stored) => read_to_keep(&stored, keeps).await.map(Some),
            None => Ok(None),
        }
    }

    /// The object under `key` as it is stored.
    pub async fn get_stored(&self, kind: Kind, key: &str) -> Result<Option<Arc<Stored>>, Status> {
        let stored = self.registry.storage.get(&kind.collection(), key).await;
        stored.map_err(|error| Status::internal_error(&error.to_string()))
    }

    /// The objects of `keys` that exist, without what `keeps` removes.
    pub async fn get_all(&self, kind: Kind, keys: &[Arc<str>], keeps: Keeps) -> Result<Vec<Value>, Status> {
        let mut found = Vec::new();
        for key in keys {
            let stored = self.get_stored(kind, key).await?;
            if let Some(stored) = stored {
                found.push(read_to_keep(&stored, keeps).await?);
            }
        }
        Ok(found)
    }

    /// The objects of a namespace, or of all namespaces (or in cluster scope) if it is empty, for which `is_wanted` is
    /// true, in the order of their keys, as they are stored.
    ///
    /// A decoded object may take ten times as much memory as its bytes, so the caller should [`read`] one at a time, and
    /// keep little of each.
    pub async fn stored(
        &self,
        kind: Kind,
        namespace: &str,
        is_wanted: impl Fn(&Stored) -> bool + Send,
    ) -> Result<Vec<Arc<Stored>>, Status> {
        let prefix = if namespace.is_empty() { String::new() } else { format!("{namespace}/") };
        let collection = kind.collection();
        let mut pages = self.registry.storage.pages(&collection, &prefix);
        let unreadable = || Status::internal_error("what is stored can't be read");
        let (mut wanted, mut bytes) = (Vec::new(), 0);
        while let Some(page) = pages.next().await.map_err(|_| unreadable())? {
            for stored in page.objects().filter(|stored| is_wanted(stored)) {
                // Those of a whole collection are in memory anyway.
                bytes += if page.is_whole() { 0 } else { stored.bytes.len() };
                if bytes > self.registry.memory.held_bytes_max() {
                    return Err(unreadable());
                }
                wanted.push(Arc::clone(stored));
            }
        }
        Ok(wanted)
    }

    /// [`Client::stored`], with all of them decoded at the same time, without what `keeps` removes.
    pub async fn list(
        &self,
        kind: Kind,
        namespace: &str,
        is_wanted: impl Fn(&Stored) -> bool + Send,
        keeps: Keeps,
    ) -> Result<Vec<Value>, Status> {
        let mut found = Vec::new();
        for stored in self.stored(kind, namespace, is_wanted).await? {
            found.push(read_to_keep(&stored, keeps).await?);
        }
        Ok(found)
    }

    /// Memory for a write, until it is dropped: for its body and the object that it changes. Few need any.
    ///
    /// Errors: 429 if there is none in time.
    async fn room(&self, target: &Target, body: &[u8]) -> Result<Option<Reservation>, Status> {
        let stored = if target.name.is_empty() {
            None
        } else {
            let stored = self.registry.storage.get(&target.resource.collection, &target.key()).await;
            stored.map_err(|error| Status::internal_error(&error.to_string()))?
        };
        let before = stored.as_ref().map_or(&[][..], |stored| &stored.bytes);
        if body.len() + before.len() <= SMALL_WRITE_BYTES {
            return Ok(None);
        }
        // As the service accounts of the namespace share.
        let user = format!("system:serviceaccount:{}", target.namespace);
        Ok(Some(self.registry.memory.for_work_of(&user, body, before).await?))
    }

    async fn target(
        &self,
        kind: Kind,
        subresource: Subresource,
        namespace: &str,
        name: &str,
    ) -> Result<Target, Status> {
        let resource = self.registry.resolve(kind.0, kind.1).await?.ok_or_else(Status::not_found_generic)?;
        let version = Arc::clone(resource.storage());
        let (namespace, name) = (namespace.to_owned(), name.to_owned());
        Ok(Target { resource, version, subresource, namespace, name })
    }

    /// The target that a reference names by `apiVersion`, `kind` and `name`; `None` if the kind is not served.
    pub async fn target_of(&self, reference: &Value, namespace: &str) -> Result<Option<Target>, Status> {
        let api_version = reference.str_at(&["apiVersion"]);
        let (group, version) = group_version(api_version);
        let Some(resource) = self.registry.resolve_kind(group, version, reference.str_at(&["kind"])).await? else {
            return Ok(None);
        };
        let Some(version) = resource.served(version).cloned() else { return Ok(None) };
        let namespace = if version.is_namespaced() { namespace.to_owned() } else { String::new() };
        let name = reference.str_at(&["name"]).to_owned();
        Ok(Some(Target { resource, version, subresource: Subresource::Main, namespace, name }))
    }

    /// Replaces the Scale of an object, if it has not changed since it was read.
    pub async fn update_scale(&self, target: &Target, scale: &Value) -> Result<(), Status> {
        let request = UpdateRequest {
            body: body(scale),
            field_validation: FieldValidation::Ignore,
            manager: CONTROLLER_MANAGER.to_owned(),
            dry_run: false,
            options: Value::Null,
        };
        let _room = self.room(target, &request.body.bytes).await?;
        self.registry.update_scale(target, &self.user, &request, &mut Warnings::default()).await.map(drop)
    }

    /// Makes an object, in the namespace that it names.
    pub async fn create(&self, kind: Kind, object: &Value) -> Result<Value, Status> {
        let target = self.target(kind, Subresource::Main, object.str_at(&["metadata", "namespace"]), "").await?;
        let request = CreateRequest {
            body: body(object),
            field_validation: FieldValidation::Ignore,
            manager: CONTROLLER_MANAGER.to_owned(),
            dry_run: false,
            options: Value::Null,
        };
        let _room = self.room(&target, &request.body.bytes).await?;
        let written = self.registry.create(&target, &self.user, &request, &mut Warnings::default()).await?;
        Ok(written.object)
    }

    /// Replaces an object, if it is still at the resourceVersion that it names.
    pub async fn update(&self, kind: Kind, object: &Value) -> Result<Value, Status> {
        self.put(kind, Subresource::Main, object).await
    }

    /// Sets the status of an object, if it differs and the object has not changed since it was read. If another writer
    /// has changed it meanwhile, that change queues it again.
    pub async fn update_status(&self, kind: Kind, object: &Value, status: Value) -> Result<(), Status> {
        if object.get("status") == Some(&status) {
            return Ok(());
        }
        match self.write_status(kind, object, status).await {
            Err(status) if status.code != 404 => Err(status),
            _ => Ok(()),
        }
    }

    /// Sets the status of an object, if it has not changed since it was read.
    pub async fn write_status(&self, kind: Kind, object: &Value, status: Value) -> Result<Value, Status> {
        let (namespace, name) = place(object);
        let target = self.target(kind, Subresource::Status, namespace, name).await?;
        let _room = self.room(&target, &[]).await?;
        let mut changed = object.clone();
        changed.make_object().insert("status", status);
        let written = self.registry.write_status(&target, &self.user, CONTROLLER_MANAGER, changed).await?;
        Ok(written.object)
    }

    /// Updates a subresource, if the object has not changed since it was read.
    pub async fn update_part(&self, kind: Kind, part: &'static str, object: &Value) -> Result<Value, Status> {
        self.put(kind, Subresource::Part(part), object).await
    }

    async fn put(&self, kind: Kind, subresource: Subresource, object: &Value) -> Result<Value, Status> {
        let (namespace, name) = place(object);
        let target = self.target(kind, subresource, namespace, name).await?;
        let request = UpdateRequest {
            body: body(object),
            field_validation: FieldValidation::Ignore,
            manager: CONTROLLER_MANAGER.to_owned(),
            dry_run: false,
            options: Value::Null,
        };
        let _room = self.room(&target, &request.body.bytes).await?;
        let written = self.registry.update(&target, &self.user, &request, &mut Warnings::default()).await?;
        Ok(written.object)
    }

    /// Merges a patch into an object.
    pub async fn merge(&self, kind: Kind, namespace: &str, name: &str, patch: &Value) -> Result<Value, Status> {
        let target = self.target(kind, Subresource::Main, namespace, name).await?;
        self.patch_target(&target, PatchType::Merge, json::encode(patch)).await
    }

    /// The target of an object of any kind.
    async fn target_of_object(&self, object: &Value) -> Result<Target, Status> {
        let (namespace, name) = place(object);
        let reference = object! {
            "apiVersion" => object.str_at(&["apiVersion"]),
            "kind" => object.str_at(&["kind"]),
            "name" => name,
        };
        self.target_of(&reference, namespace).await?.ok_or_else(Status::not_found_generic)
    }

    /// A stored object, in a version; `None` if it is gone or the version is not served.
    pub async fn read_as(&self, api_version: &str, stored: &Value) -> Result<Option<Value>, Status> {
        let (namespace, name) = place(stored);
        let kind = stored.str_at(&["kind"]);
        let reference = object! { "apiVersion" => api_version, "kind" => kind, "name" => name };
        let Some(target) = self.target_of(&reference, namespace).await? else { return Ok(None) };
        match self.registry.get_value(&target, None).await {
            Err(status) if status.code == 404 => Ok(None),
            found => found.map(Some),
        }
    }

    /// Whether the kind of an object has its status apart, as a subresource.
    pub async fn has_status(&self, object: &Value) -> Result<bool, Status> {
        Ok(self.target_of_object(object).await?.version.status)
    }

    /// Patches an object of any kind, or a part of it; returns the result.
    pub async fn patch(
        &self,
        object: &Value,
        part: Subresource,
        (patch_type, bytes): (PatchType, Vec<u8>),
    ) -> Result<Value, Status> {
        let target = Target { subresource: part, ..self.target_of_object(object).await? };
        self.patch_target(&target, patch_type, bytes).await
    }

    /// Deletes an object of any kind without a grace period; it is not an error if it is already gone.
    pub async fn delete_at_once(&self, object: &Value) -> Result<(), Status> {
        let target = self.target_of_object(object).await?;
        self.delete_target(&target, object, Some(0)).await
    }

    async fn patch_target(&self, target: &Target, patch_type: PatchType, bytes: Vec<u8>) -> Result<Value, Status> {
        let request = PatchRequest {
            patch_type,
            bytes: bytes.into(),
            field_validation: FieldValidation::Ignore,
            manager: CONTROLLER_MANAGER.to_owned(),
            force: false,
            dry_run: false,
            options: Value::Null,
        };
        let _room = self.room(target, &request.bytes).await?;
        let written = self.registry.patch(target, &self.user, &request, &mut Warnings::default()).await?;
        Ok(written.object)
    }

    /// Deletes an object, in the background for its dependents; it is not an error if it is already gone.
    pub async fn delete(&self, kind: Kind, object: &Value, grace_period_s: Option<i64>) -> Result<(), Status> {
        let (namespace, name) = place(object);
        let target = self.target(kind, Subresource::Main, namespace, name).await?;
        self.delete_target(&target, object, grace_period_s).await
    }

    async fn delete_target(&self, target: &Target, object: &Value, grace_period_s: Option<i64>) -> Result<(), Status> {
        let options = DeleteRequest {
            uid: Some(object.str_at(&["metadata", "uid"]).to_owned()),
            propagation_policy: Some("Background".to_owned()),
            grace_period_s,
            ..DeleteRequest::default()
        };
        let _room = self.room(target, &[]).await?;
        match self.registry.delete(target, &self.user, &options, &mut Warnings::default()).await {
            // Gone, or another one of the same name.
            Err(status) if !matches!(status.code, 404 | 409) => Err(status),
            _ => Ok(()),
        }
    }

    /// Binds a pod to a node.
    pub async fn bind(&self, pod: &Value, node: &str) -> Result<(), Status> {
        let (namespace, name) = place(pod);
        let target = self.target(PODS, Subresource::Main, namespace, name).await?;
        let binding = object! {
            "apiVersion" => "v1",
            "kind" => "Binding",
            "metadata" => object! { "name" => name, "namespace" => namespace, "uid" => pod.str_at(&["metadata", "uid"]) },
            "target" => object! { "kind" => "Node", "name" => node },
        };
        let request = CreateRequest {
            body: body(&binding),
            field_validation: FieldValidation::Ignore,
            manager: CONTROLLER_MANAGER.to_owned(),
            dry_run: false,
            options: Value::Null,
        };
        let part = Subresource::Part("binding");
        let target = Target { subresource: part, ..target };
        let _room = self.room(&target, &request.body.bytes).await?;
        self.registry.create_binding(&target, &self.user, &request, &mut Warnings::default()).await
    }

    /// Records an event for an object, without waiting for it.
    pub fn tell(&self, object: &Value, type_: &'static str, reason: impl Into<Cow<'static, str>>, message: String) {
        self.recorder.record(RecordedEvent::new(self.component, object, type_, reason.into(), message));
    }

    /// The same in the form of `events.k8s.io`, with the action.
    pub fn tell_during(
        &self,
        action: &'static str,
        object: &Value,
        (type_, reason): (&'static str, &'static str),
        message: String,
    ) {
        self.recorder.record(RecordedEvent::new(self.component, object, type_, reason.into(), message).during(action));
    }

    pub fn tell_normal(&self, object: &Value, reason: &'static str, message: String) {
        self.tell(object, "Normal", reason, message);
    }

    pub fn tell_warning(&self, object: &Value, reason: &'static str, message: String) {
        self.tell(object, "Warning", reason, message);
    }
}

/// Removes from an object what its reader does not need.
pub(super) type Keeps = fn(&mut Value);

/// Keeps the whole object.
pub(super) const WHOLE: Keeps = |_| {};

/// An object without its managers.
pub(super) fn without_managers(object: &mut Value) {
    if let Some(metadata) = object.make_object().get_mut("metadata") {
        metadata.make_object().remove("managedFields");
    }
}

/// An object without its managers and without the template of its pods.
pub(super) fn without_template(object: &mut Value) {
    without_managers(object);
    if let Some(spec) = object.make_object().get_mut("spec") {
        spec.make_object().remove("template");
    }
}

/// [`read`], of an object that is kept beside others, without what `keeps` removes.
pub(super) async fn read_to_keep(stored: &Stored, keeps: Keeps) -> Result<Value, Status> {
    let mut object = read(stored)?;
    keeps(&mut object);
    decoded::keep(&object).await?;
    Ok(object)
}

/// A stored object with its resourceVersion.
pub(super) fn read(stored: &Stored) -> Result<Value, Status> {
    let mut object = json::decode(&stored.bytes).map_err(|error| Status::internal_error(&error.to_string()))?;
    let metadata = object.make_object().entry("metadata").make_object();
    metadata.insert("resourceVersion", Value::String(stored.revision.to_string()));
    Ok(object)
}

fn body(object: &Value) -> Body {
    Body { bytes: json::encode(object).into(), format: Format::Json }
}

/// The namespace and the name of an object.
pub(super) fn place(object: &Value) -> (&str, &str) {
    (object.str_at(&["metadata", "namespace"]), object.str_at(&["metadata", "name"]))
}

/// The key of an object.
pub(super) fn key_of(object: &Value) -> String {
    match place(object) {
        ("", name) => name.to_owned(),
        (namespace, name) => format!("{namespace}/{name}"),
    }
}

/// A number in an object; 0 if there is none.
pub(super) fn int_at(object: &Value, path: &[&str]) -> i64 {
    object.at(path).and_then(Value::as_i64).unwrap_or_default()
}

/// A time in an object.
pub(super) fn time_at(object: &Value, path: &[&str]) -> Option<Timestamp> {
    object.str_at(path).parse().ok()
}

/// A time in the form used in objects.
pub(super) fn written(time: Timestamp) -> Value {
    Value::from(time::format_seconds(time))
}

/// The time left until `seconds` after `since`; `None` if they have passed.
pub(super) fn left(since: Timestamp, seconds: i64, now: Timestamp) -> Option<Duration> {
    let end = since.checked_add(SignedDuration::from_secs(seconds)).ok()?;
    let left = end.duration_since(now);
    (left > SignedDuration::ZERO).then(|| left.unsigned_abs())
}

/// The sooner of two moments at which there is something to do.
pub(super) fn sooner(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    match (one, other) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other),
    }
}

/// The reference to the owner that manages an object; `None` if there is none.
pub(super) fn controller_of(object: &Value) -> Option<&Value> {
    let is_controller = |owner: &&Value| owner.get("controller").and_then(Value::as_bool) == Some(true);
    object.items_at(&["metadata", "ownerReferences"]).iter().find(is_controller)
}

/// Whether an object is being deleted.
pub(super) fn is_going(object: &Value) -> bool {
    object.at(&["metadata", "deletionTimestamp"]).is_some()
}
