//! Server-side apply, and the ownership of fields that every write records in `metadata.managedFields`.
//!
//! Input: the live object, what a request makes of it, and who asks. Output: the object to store, with its
//! managedFields, or why the apply is refused. Pure: the time comes in as text, conversion as a trait. It neither
//! defaults nor validates beyond types; the caller does, on the result.
//!
//! # How it is kept small
//!
//! - `apply::TypeSchema` is made once per version: which lists are atomic, sets or maps, and their keys. Values are
//!   walked by it; nothing else knows a schema.
//! - Objects that the same programs write have equal texts: those read last on a thread are known (`known_texts`).
//! - What a creator or an applier owns is mostly written as text in one walk (`owned_text`), without a set.
//! - A `FieldSet` is a tree of steps. It is built only for changed fields: the managers of an object stay in the JSON
//!   that they were read in (`FieldsText`), which is not even decoded, but searched when its sets are needed: so a
//!   write pays only for its own manager and for the fields it takes from others. The JSON is reused only if it is what
//!   we would write ourselves.
//! - Items of lists are found and compared by borrowed keys (`apply::item`), of which the first is looked up once;
//!   paths are only made for differences.
//! - Objects of built-in kinds are structs in the reference. So an object that does not exist yet is not empty but has
//!   its type's zero values (`Versions::empty`), which nobody owns, and a required key of a list map counts as `""`
//!   when it is absent.
//! - `Updater` has the two operations of structured-merge-diff, on versions behind a trait. It is pure, so a conversion
//!   that needs a webhook is noted, made outside, and the operation runs again (`registry::convert::Conversions`).
//! - An apply reports whether it changes more than ownership: only then is there a new time, and only then are defaults
//!   set.
//! - The managedFields of the object itself are passed over, not copied: often they are the larger part of the object.
//!
//! Source: structured-merge-diff v6.4.2; apimachinery 1.37, `util/managedfields`; answers recorded from
//! apiextensions-apiserver 1.37.

#[cfg(test)]
mod arbitrary;
mod atomic;
mod compare;
mod conflict;
mod field_set;
mod fields;
mod fields_text;
mod foreign;
mod item;
mod known_texts;
mod last_applied;
mod managed_fields;
mod merge;
mod path;
mod reconcile;
mod scale;
mod text_steps;
mod times;
mod of_message;
mod of_structural;
mod owned_text;
mod type_schema;
mod typed;
mod undecodable;
mod updater;

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use crate::meta::minor::Minor;
use crate::object;
use crate::types::decoder::Empty;
use crate::value::{Map, Value};

pub use conflict::{ApplyError, Conflict, Conflicts};
pub use field_set::FieldSet;
pub use foreign::{Foreign, ForeignStep};
pub use managed_fields::{DecodeError, ManagerId, Operation, validate as validate_managed_fields};
pub use path::{KeyField, PathElement};
pub use scale::ScaleFields;
pub use times::keep_times;
pub use type_schema::TypeSchema;
pub use typed::TypeErrors;

use fields::OwnedFields;
use managed_fields::{ManagerEntry, Managers, Time, without_identity};
use updater::{AppliedObject, Changes, TypedObject, Updater};

/// The field of an object that lists what each manager owns.
pub const OWNED_FIELDS: &[&str] = &["metadata", "managedFields", "*", FIELDS];
/// Parts of objects that most requests copy without reading them.
pub const PASSED_ON: &[&[&str]] = &[OWNED_FIELDS];
/// The field of a managedFields entry that lists what its manager owns.
const FIELDS: &str = "fieldsV1";
/// The manager of an update whose request names none.
const UNKNOWN_MANAGER: &str = "unknown";
/// Up to the minor before, nobody owns a field after an update whose owners can't be computed.
const KEEPS_OWNERS_SINCE: Minor = Minor::of(37);
/// The manager of the fields that an object had before ownership was recorded.
const BEFORE_FIRST_APPLY: &str = "before-first-apply";

/// The versions of a resource: their types, and conversion between them.
pub trait Versions {
    /// The types of `api_version` (`group/version`); `None` if it is not a version of this resource.
    fn types(&self, api_version: &str) -> Option<&TypeSchema>;

    /// An object of `api_version` before any field is set: for a built-in kind, its type's zero value.
    fn empty(&self, api_version: &str, kind: &str) -> Value {
        object! { "apiVersion" => api_version, "kind" => kind }
    }

    /// `object` in `api_version`, which is not its own.
    ///
    /// For a custom resource, a version that its definition does not declare is not [`ConvertError::MissingVersion`] but
    /// fails: `request to convert CR to an invalid group/version: example.com/v0`.
    ///
    /// # Errors
    ///
    /// The object can't be converted.
    fn convert(&self, object: &Value, api_version: &str) -> Result<Value, ConvertError>;
}

/// Why an object can't be converted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConvertError {
    /// The version is gone: its ownership is dropped. Built-in kinds only.
    MissingVersion,
    /// With Kubernetes' text.
    Failed(String),
}

/// Fields that a request can't set, by the version they are in: `status` at the main resource, `metadata` and `spec` at
/// `/status`. They are never owned.
#[derive(Clone, Debug, Default)]
pub struct ResetFields(Arc<HashMap<String, FieldSet>>);

impl ResetFields {
    /// Fields by the version they are written in: `v1`, then the set.
    pub fn new(by_version: Vec<(String, FieldSet)>) -> Self {
        ResetFields(Arc::new(by_version.into_iter().collect()))
    }

    fn get(&self, version: &str) -> Option<&FieldSet> {
        self.0.get(version)
    }
}

/// The result of an apply.
#[derive(Clone, Debug, PartialEq)]
pub struct Applied {
    /// The object after the apply.
    pub object: Value,
    /// Whether more than ownership changes. The object then still lacks the defaults of its version.
    pub is_changed: bool,
}

/// Records who owns which fields of objects of one version of a resource.
pub struct FieldManager<'a> {
    /// The version of Kubernetes.
    pub minor: Minor,
    /// The versions of the kind, which convert between each other.
    pub versions: &'a dyn Versions,
    /// The version of the request: `group/version`.
    pub version: &'a str,
    /// The kind, for messages.
    pub kind: &'a str,
    /// Empty for the main resource.
    pub subresource: &'a str,
    /// Fields that clients never own.
    pub reset_fields: &'a ResetFields,
}

impl FieldManager<'_> {
    /// What to store after POST, PUT, JSON patch or merge patch by `manager`: `new` with its managedFields.
    ///
    /// `live` is the stored object in the version of the request, `None` on create. `now` is RFC 3339 in UTC and whole
    /// seconds. If a conversion fails, or `new` does not conform to its types, the owners of `live` stay. (Before 1.37,
    /// the reference removed them.)
    pub fn update(&self, live: Option<&Value>, mut new: Value, manager: &str, now: &str) -> Value {
        let empty = self.empty_object();
        let requested = take_managed_fields(&mut new);
        let managed = self.managers_of_request(live.unwrap_or(&empty), requested.as_ref());
        if live.is_none()
            && managed.entries.is_empty()
            && let Some(creator) = self.creator(&empty, &new, manager, now)
        {
            set_managed_fields(&mut new, Some(Value::Array(vec![creator.encode()])));
            return new;
        }
        let live = live.unwrap_or(&empty);
        match self.managers_after_update(live, &new, managed, manager, now) {
            Ok(managers) => set_managed_fields(&mut new, managers.encode()),
            Err(_) if self.minor < KEEPS_OWNERS_SINCE => set_managed_fields(&mut new, None),
            Err(_) => {
                let kept = live.at(&["metadata", "managedFields"]);
                let kept = kept.filter(|list| managed_fields::read(Some(list)).is_some());
                set_managed_fields(&mut new, kept.cloned());
            }
        }
        new
    }

    /// [`FieldManager::update`] for an object that was sent with these empty lists and maps and was decoded without
    /// them. Within atomic lists, Go counts them as a change.
    pub fn update_sent(
        &self,
        live: Option<&Value>,
        mut new: Value,
        empty: &[Empty],
        manager: &str,
        now: &str,
    ) -> Value {
        let types = self.versions.types(self.version).filter(|_| live.is_some());
        let counts = |empty: &&Empty| types.is_some_and(|types| types.is_in_whole_list(empty.names()));
        let mut counted = empty.iter().filter(counts).peekable();
        if counted.peek().is_none() {
            return self.update(live, new, manager, now);
        }
        let mut sent = new.clone();
        counted.for_each(|empty| empty.restore(&mut sent));
        let owners = take_managed_fields(&mut self.update(live, sent, manager, now));
        set_managed_fields(&mut new, owners);
        new
    }

    /// What to store after an apply of `applied` by `manager`.
    ///
    /// `live` and `now` are as for [`FieldManager::update`]. With `force`, fields are taken from other managers.
    ///
    /// # Errors
    ///
    /// Conflicts with other managers, unless `force`; and objects that can't be merged: they contain managedFields or
    /// values of wrong types.
    pub fn apply(
        &self,
        live: Option<&Value>,
        applied: &Value,
        manager: &str,
        force: bool,
        now: &str,
    ) -> Result<Applied, ApplyError> {
        let empty = self.empty_object();
        let live = live.unwrap_or(&empty);
        let entries = managed_fields::read(live.at(&["metadata", "managedFields"])).unwrap_or_default();
        let managers = Managers::decode(&entries)
            .map_err(|error| ApplyError::Failed(format!("failed to decode managed fields: {error}")))?;
        if (applied.str_at(&["apiVersion"]), applied.str_at(&["kind"])) != (self.version, self.kind) {
            return Err(ApplyError::BadRequest(format!("invalid object type: {}", gvk_of(applied))));
        }
        let kept = (manager == last_applied::MANAGER).then(|| managers.clone());
        let mut outcome = self.merge(live, applied, managers, manager, force, now);
        if let (Some(managers), Err(ApplyError::Conflicts(conflicts))) = (kept, &outcome)
            && let Some(types) = self.versions.types(self.version)
            && let Some(allowed) = last_applied::owned_fields(live, types, self.version)
        {
            let rest = conflicts.outside(&allowed);
            outcome = if rest.is_empty() {
                self.merge(live, applied, managers, manager, true, now)
            } else {
                Err(ApplyError::Conflicts(rest))
            };
        }
        let (mut merged, managers) = outcome?;
        if manager == last_applied::MANAGER {
            last_applied::refresh(&mut merged.object, applied);
        }
        set_managed_fields(&mut merged.object, managers.encode());
        Ok(merged)
    }

    /// An object before it is created.
    fn empty_object(&self) -> Value {
        self.versions.empty(self.version, self.kind)
    }

    /// The managers that an update starts from: those of the request if they are valid, else the live ones.
    fn managers_of_request<'v>(&self, live: &'v Value, requested: Option<&'v Value>) -> Managers<'v> {
        let of_live = || {
            let entries = managed_fields::read(live.at(&["metadata", "managedFields"])).unwrap_or_default();
            Managers::decode(&entries).unwrap_or_default()
        };
        // A subresource can't set managedFields.
        if !self.subresource.is_empty() {
            return of_live();
        }
        let entries = managed_fields::read(requested);
        if managed_fields::is_reset(entries.as_deref()) {
            return Managers::default();
        }
        match Managers::decode(&entries.unwrap_or_default()) {
            Ok(managers) if !managers.entries.is_empty() => managers,
            _ => of_live(),
        }
    }

    /// The entry of who creates `new`; `None` if that must be found by [`FieldManager::record_update`].
    fn creator(&self, empty: &Value, new: &Value, manager: &str, now: &str) -> Option<ManagerEntry<'static>> {
        let types = self.versions.types(self.version)?;
        // The zero value of a type may have fields that an older minor does not know.
        let is_bare = empty.as_object().is_some_and(|fields| fields.len() == 2);
        (is_bare || types.validate(empty, true).is_ok()).then_some(())?;
        let fields = types.text_of_created(new, empty, self.reset_fields.get(self.version))?;
        let fields = OwnedFields::Text(fields, None);
        let manager = self.manager_id(manager, Operation::Update);
        let entry = ManagerEntry { manager, api_version: self.version.to_owned(), fields, time: Time::parse(now) };
        (!entry.fields.is_empty()).then_some(entry)
    }

    fn managers_after_update<'v>(
        &self,
        live: &Value,
        new: &Value,
        managers: Managers<'v>,
        manager: &str,
        now: &str,
    ) -> Result<Managers<'v>, ApplyError> {
        // Nothing is recorded for an object whose ownership was reset, until the next apply.
        let is_create = live.str_at(&["metadata", "uid"]).is_empty();
        if managers.entries.is_empty() && !is_create {
            return Ok(managers);
        }
        self.record_update(live, new, managers, manager, now)
    }

    fn record_update<'v>(
        &self,
        live: &Value,
        new: &Value,
        mut managers: Managers<'v>,
        manager: &str,
        now: &str,
    ) -> Result<Managers<'v>, ApplyError> {
        let untyped = |which: &str, object: &Value, error: TypedError| {
            ApplyError::Failed(format!("failed to convert {which} object ({}) to smd typed: {error}", describe(object)))
        };
        let new = self.typed(new, true).map_err(|error| untyped("new", new, error))?;
        let types = new.types;
        let differences = types.compare_unchecked(live, &new.object);
        let (live, differences) = match differences {
            Some(differences) => (TypedObject { object: Cow::Borrowed(live), types }, differences),
            None => {
                let live = self.typed(live, true).map_err(|error| untyped("live", live, error))?;
                let differences = types.compare(&live.object, &new.object);
                (live, differences)
            }
        };
        let manager = self.manager_id(manager, Operation::Update);
        let updater = self.updater();
        let Changes { set: changed, removed } = updater.update((live, new), differences, &mut managers, &manager)?;
        let (fields, time) = match managers.take(&manager) {
            None => (OwnedFields::Set(without_identity(changed)), Time::parse(now)),
            Some(mut own) => {
                own.fields.subtract(&removed);
                let set = without_identity(changed.clone());
                if set != changed {
                    own.fields.subtract(&changed);
                }
                let time = if set.is_empty() { own.time } else { Time::parse(now) };
                (own.fields.united(set), time)
            }
        };
        if !fields.is_empty() {
            managers.put(ManagerEntry { manager, api_version: self.version.to_owned(), fields, time });
        }
        managers.cap();
        Ok(managers)
    }

    /// The merged object without its managedFields, and its managers.
    fn merge<'v>(
        &self,
        live: &Value,
        applied: &Value,
        mut managers: Managers<'v>,
        manager: &str,
        force: bool,
        now: &str,
    ) -> Result<(Applied, Managers<'v>), ApplyError> {
        if managers.entries.is_empty() {
            managers =
                self.record_update(&self.empty_object(), live, managers, BEFORE_FIRST_APPLY, now).map_err(|error| {
                    ApplyError::Failed(format!("failed to create manager for existing fields: {error}"))
                })?;
        }
        if managed_fields::read(applied.at(&["metadata", "managedFields"])).is_some() {
            return Err(ApplyError::BadRequest("metadata.managedFields must be nil".to_owned()));
        }
        let untyped = |which: &str, object: &Value, error: TypedError| {
            ApplyError::Failed(format!("failed to create typed {which} object ({}): {error}", describe(object)))
        };
        let types = self.versions.types(self.version);
        let written = types.and_then(|types| types.text_of_applied(applied, self.reset_fields.get(self.version)));
        let applied = match (&written, types) {
            // What it owns could be written, so it conforms.
            (Some(_), Some(types)) => TypedObject { object: Cow::Borrowed(applied), types },
            _ => self.typed(applied, false).map_err(|error| untyped("patch", applied, error))?,
        };
        let typed_live = self.typed(live, true).map_err(|error| untyped("live", live, error))?;
        let manager = self.manager_id(manager, Operation::Apply);
        let applied = AppliedObject { object: applied, written };
        let (object, is_changed) = self.updater().apply(typed_live, applied, &mut managers, &manager, force)?;
        // If only ownership changes, the time of the entry stays as it is, or unset.
        if is_changed && let Some(entry) = managers.get_mut(&manager) {
            entry.time = Time::parse(now);
        }
        Ok((Applied { object, is_changed }, managers))
    }

    fn updater(&self) -> Updater<'_> {
        Updater { versions: self.versions, version: self.version, reset_fields: self.reset_fields }
    }

    fn typed<'o>(&'o self, object: &'o Value, allow_duplicates: bool) -> Result<TypedObject<'o>, TypedError> {
        let types = self.versions.types(self.version).ok_or_else(|| TypedError::NoType(gvk_of(object)))?;
        types.validate(object, allow_duplicates)?;
        Ok(TypedObject { object: Cow::Borrowed(object), types })
    }

    fn manager_id(&self, name: &str, operation: Operation) -> ManagerId {
        ManagerId {
            name: if name.is_empty() { UNKNOWN_MANAGER.to_owned() } else { name.to_owned() },
            operation,
            api_version: match operation {
                Operation::Apply => String::new(),
                Operation::Update => self.version.to_owned(),
            },
            subresource: self.subresource.to_owned(),
        }
    }
}

/// Why an object can't be walked by the types of its version.
#[derive(Debug, thiserror::Error)]
enum TypedError {
    /// The version has no types; the kind as messages name it.
    #[error("no corresponding type for {0}")]
    NoType(String),
    /// Some values are of the wrong type.
    #[error(transparent)]
    Types(#[from] TypeErrors),
}

/// `namespace/name; group/version, Kind=kind`, as messages name an object.
fn describe(object: &Value) -> String {
    let namespace = object.str_at(&["metadata", "namespace"]);
    let name = object.str_at(&["metadata", "name"]);
    format!("{namespace}/{name}; {}", gvk_of(object))
}

/// `group/version, Kind=kind`, as messages name a type.
fn gvk_of(object: &Value) -> String {
    let (version, kind) = (object.str_at(&["apiVersion"]), object.str_at(&["kind"]));
    match version.matches('/').count() {
        // The core group, or a missing version.
        0 => format!("/{version}, Kind={kind}"),
        1 => format!("{version}, Kind={kind}"),
        _ => "/, Kind=".to_owned(),
    }
}

fn take_managed_fields(object: &mut Value) -> Option<Value> {
    object.get_mut("metadata")?.as_object_mut()?.remove("managedFields")
}

fn set_managed_fields(object: &mut Value, list: Option<Value>) {
    let Some(list) = list else {
        take_managed_fields(object);
        return;
    };
    let Some(fields) = object.as_object_mut() else { return };
    let metadata = fields.entry("metadata");
    if metadata.is_null() {
        *metadata = Value::Object(Map::new());
    }
    if let Some(metadata) = metadata.as_object_mut() {
        metadata.insert("managedFields", list);
    }
}

#[cfg(test)]
mod tests;
