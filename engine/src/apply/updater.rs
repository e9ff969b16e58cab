//! Ownership after an update, and the object and ownership after an apply.
//!
//! Source: structured-merge-diff v6.4.2, `merge.Updater`.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use thiserror::Error;

use super::compare::Comparison;
use super::conflict::{ApplyError, Conflicts};
use super::field_set::FieldSet;
use super::fields::OwnedFields;
use super::fields_text::FieldsText;
use super::managed_fields::{ManagerEntry, ManagerId, Managers, without_identity};
use super::path::equal_values;
use super::type_schema::TypeSchema;
use super::{ConvertError, ResetFields, Versions};
use crate::value::{Map, Value};

/// Why the fields that a manager no longer applies can't be determined.
#[derive(Debug, Error)]
enum PruneError {
    /// The object that can't be converted, and why.
    #[error("failed to convert {what}: {error}")]
    Convert { what: String, error: String },
    /// The remaining object can't be converted back into the version of the request.
    #[error("{0}")]
    ConvertBack(String),
    #[error("no corresponding type for {0}")]
    NoType(String),
    #[error("failed add back owned items: {0}")]
    Owned(Box<PruneError>),
    #[error("failed add back dangling items: {0}")]
    Dangling(Box<PruneError>),
}

/// The context of the steps of one request.
pub(super) struct Updater<'a> {
    pub versions: &'a dyn Versions,
    /// The version of the request.
    pub version: &'a str,
    pub reset_fields: &'a ResetFields,
}

/// An object that conforms to the types of its version.
#[derive(Clone)]
pub(super) struct TypedObject<'a> {
    pub object: Cow<'a, Value>,
    pub types: &'a TypeSchema,
}

impl<'a> TypedObject<'a> {
    fn with(&self, object: Value) -> TypedObject<'a> {
        TypedObject { object: Cow::Owned(object), types: self.types }
    }

    fn without(&self, taken: &FieldSet) -> TypedObject<'a> {
        self.with(self.types.without(&self.object, taken))
    }

    /// Every leaf and item, with the declared fields above them.
    fn all_fields(&self) -> FieldSet {
        self.with_parents(&self.types.field_set(&self.object))
    }

    fn with_parents(&self, set: &FieldSet) -> FieldSet {
        set.with_declared_parents(self.types, Some(self.types.root()))
    }
}

/// What a manager applies.
pub(super) struct AppliedObject<'a> {
    pub object: TypedObject<'a>,
    /// What its applier owns, if that could be written without a set.
    pub written: Option<FieldsText<'static>>,
}

/// An object in the versions it was needed in so far.
struct InVersions<'a> {
    object: TypedObject<'a>,
    converted: Vec<(String, TypedObject<'a>)>,
}

impl<'a> InVersions<'a> {
    fn new(object: TypedObject<'a>) -> Self {
        InVersions { object, converted: Vec::new() }
    }

    fn get(&mut self, updater: &Updater<'a>, version: &str) -> Result<&TypedObject<'a>, ConvertError> {
        if self.object.object.str_at(&["apiVersion"]) == version {
            return Ok(&self.object);
        }
        let at = match self.converted.iter().position(|(known, _)| known == version) {
            Some(at) => at,
            None => {
                let typed = updater.convert_to_other(&self.object, version)?;
                self.converted.push((version.to_owned(), typed));
                self.converted.len() - 1
            }
        };
        Ok(&self.converted[at].1)
    }
}

impl<'a> Updater<'a> {
    /// Takes the fields that the update changes from all owners but `own`, and returns them. Both objects are in the
    /// version of the request; `differences` are those between them.
    ///
    /// # Errors
    ///
    /// A conversion that fails.
    pub fn update(
        &self,
        (live, new): (TypedObject<'a>, TypedObject<'a>),
        differences: Comparison,
        managers: &mut Managers<'_>,
        own: &ManagerId,
    ) -> Result<Changes, ApplyError> {
        let mut live = InVersions::new(live);
        self.reconcile(&mut live, managers)?;
        let mut new = InVersions::new(new);
        let changes = Changes::of(self.without_reset(differences, self.version));
        self.take_changed(&mut live, &mut new, changes, managers, own, true)
    }

    /// Merges `applied` into `live`. Returns the new object without its managedFields, and whether more than ownership
    /// changes.
    ///
    /// # Errors
    ///
    /// Conflicts, and a conversion that fails.
    pub fn apply(
        &self,
        live: TypedObject<'a>,
        applied: AppliedObject<'a>,
        managers: &mut Managers<'_>,
        manager: &ManagerId,
        force: bool,
    ) -> Result<(Value, bool), ApplyError> {
        let AppliedObject { object: applied, written } = applied;
        let mut live = InVersions::new(live);
        self.reconcile(&mut live, managers)?;
        let merged = live.object.with(live.object.types.merge(&live.object.object, &applied.object));
        let last = managers.take(manager);
        let written = written.filter(|written| match &last {
            Some(last) => last.fields.is_text(written.text()) && self.is_in_one_version(last, managers),
            None => true,
        });
        let is_written = written.is_some();
        let fields = match (written, &last) {
            (Some(_), Some(last)) => last.fields.clone(),
            (Some(written), None) => OwnedFields::Text(written, None),
            (None, _) => OwnedFields::Set(self.applied_fields(&applied)),
        };
        managers.put(ManagerEntry {
            manager: manager.clone(),
            api_version: self.version.to_owned(),
            fields,
            time: last.as_ref().and_then(|last| last.time.clone()),
        });
        let new = match &last {
            Some(last) if !is_written && !self.drops_nothing(last, managers, manager) => self
                .prune(merged, managers, last)
                .map_err(|error| ApplyError::Failed(format!("failed to prune fields: {error}")))?,
            _ => merged,
        };
        let same = equal_but_for_managed_fields(&live.object.object, &new.object);
        let mut new = InVersions::new(new);
        let comparison = if same { Comparison::default() } else { self.compare(&live.object, &new.object) };
        self.take_changed(&mut live, &mut new, Changes::of(comparison), managers, manager, force)?;
        if !is_written && let Some(entry) = managers.get_mut(manager) {
            let before = last.map_or(OwnedFields::NONE, |last| last.fields);
            entry.fields = before.or_set(without_identity(entry.fields.take()));
        }
        managers.entries.retain(|_, entry| !entry.fields.is_empty());
        Ok((new.object.object.into_owned(), !same))
    }

    /// What the manager owns that applies an object.
    fn applied_fields(&self, applied: &TypedObject<'_>) -> FieldSet {
        let mut set = applied.types.field_set(&applied.object);
        if let Some(reset) = self.reset_fields.get(self.version) {
            set.exclude(reset);
        }
        set
    }

    fn compare(&self, old: &TypedObject<'_>, new: &TypedObject<'_>) -> Comparison {
        self.without_reset(old.types.compare(&old.object, &new.object), self.version)
    }

    /// The differences in `version`; `None` if that is gone.
    fn compare_in(
        &self,
        version: &str,
        live: &mut InVersions<'a>,
        new: &mut InVersions<'a>,
    ) -> Result<Option<Comparison>, ApplyError> {
        let failed =
            |which: &str, error: &str| ApplyError::Failed(format!("failed to convert {which} object: {error}"));
        match (live.get(self, version), new.get(self, version)) {
            (Ok(live), Ok(new)) => {
                let comparison = live.types.compare(&live.object, &new.object);
                Ok(Some(self.without_reset(comparison, version)))
            }
            (Err(ConvertError::Failed(error)), _) => Err(failed("old", &error)),
            (_, Err(ConvertError::Failed(error))) => Err(failed("new", &error)),
            (Err(ConvertError::MissingVersion), _) | (_, Err(ConvertError::MissingVersion)) => Ok(None),
        }
    }

    fn without_reset(&self, comparison: Comparison, version: &str) -> Comparison {
        match self.reset_fields.get(version) {
            Some(reset) => comparison.excluding(reset),
            None => comparison,
        }
    }

    /// `object` in a version other than its own.
    fn convert_to_other(&self, object: &TypedObject<'_>, version: &str) -> Result<TypedObject<'a>, ConvertError> {
        if object.object.as_object().is_none() {
            let message = "failed to convert value to unstructured for type <nil>";
            return Err(ConvertError::Failed(message.to_owned()));
        }
        let converted = self.versions.convert(&object.object, version)?;
        let types = self.versions.types(version).ok_or(ConvertError::MissingVersion)?;
        types.validate(&converted, false).map_err(|errors| ConvertError::Failed(errors.to_string()))?;
        Ok(TypedObject { object: Cow::Owned(converted), types })
    }

    fn convert(&self, object: &TypedObject<'a>, version: &str) -> Result<TypedObject<'a>, ConvertError> {
        if object.object.str_at(&["apiVersion"]) == version {
            Ok(object.clone())
        } else {
            self.convert_to_other(object, version)
        }
    }

    /// Adapts ownership to the current schemas. Managers of versions that are gone are dropped.
    fn reconcile(&self, live: &mut InVersions<'a>, managers: &mut Managers<'_>) -> Result<(), ApplyError> {
        let mut reconciled = Managers::default();
        for mut entry in std::mem::take(&mut managers.entries).into_values() {
            match live.get(self, &entry.api_version) {
                Ok(live) => entry.fields.reconcile(live.types),
                Err(ConvertError::MissingVersion) => continue,
                Err(ConvertError::Failed(message)) => return Err(ApplyError::Failed(message)),
            }
            reconciled.put(entry);
        }
        managers.entries = reconciled.entries;
        Ok(())
    }

    /// Takes changed and removed fields from every manager but `own`, and returns the changes. Without `force`, a
    /// changed one is a conflict.
    fn take_changed(
        &self,
        live: &mut InVersions<'a>,
        new: &mut InVersions<'a>,
        changes: Changes,
        managers: &mut Managers<'_>,
        own: &ManagerId,
        force: bool,
    ) -> Result<Changes, ApplyError> {
        // By version; the version of the request comes first.
        let mut changes = vec![(self.version.to_owned(), changes)];
        let mut conflicts: Vec<(ManagerId, FieldSet)> = Vec::new();
        let mut taken: Vec<(ManagerId, FieldSet)> = Vec::new();
        let mut gone: BTreeSet<ManagerId> = BTreeSet::new();
        for entry in managers.entries.values_mut().filter(|entry| *own != entry.manager) {
            let version = &entry.api_version;
            let at = match changes.iter().position(|(known, _)| known == version) {
                Some(at) => at,
                None => {
                    let Some(comparison) = self.compare_in(version, live, new)? else {
                        gone.insert(entry.manager.clone());
                        continue;
                    };
                    changes.push((version.clone(), Changes::of(comparison)));
                    changes.len() - 1
                }
            };
            let changes = &changes[at].1;
            let changed = entry.fields.intersection(&changes.set);
            let lost = entry.fields.intersection(&changes.removed);
            if !changed.is_empty() {
                conflicts.push((entry.manager.clone(), changed));
            }
            if !lost.is_empty() {
                taken.push((entry.manager.clone(), lost));
            }
        }
        if !force && !conflicts.is_empty() {
            return Err(ApplyError::Conflicts(Conflicts::of(conflicts)));
        }
        for (manager, fields) in conflicts.iter().chain(&taken) {
            if let Some(entry) = managers.get_mut(manager) {
                entry.fields.subtract(fields);
            }
        }
        managers.entries.retain(|manager, entry| !entry.fields.is_empty() && !gone.contains(manager));
        Ok(changes.swap_remove(0).1)
    }

    /// Whether the manager applies all that it applied last time, so that nothing can be pruned.
    ///
    /// Ownership in other versions takes the long way, as a conversion may fail there.
    fn drops_nothing(&self, last: &ManagerEntry<'_>, managers: &Managers<'_>, manager: &ManagerId) -> bool {
        self.is_in_one_version(last, managers)
            && managers.get(manager).is_some_and(|now| last.fields.is_subset(&now.fields.set()))
    }

    /// Whether everything is owned in the version of the request.
    fn is_in_one_version(&self, last: &ManagerEntry<'_>, managers: &Managers<'_>) -> bool {
        managers.entries.values().chain([last]).all(|entry| entry.api_version == self.version)
    }

    /// Removes the fields that the manager applied last time, no longer applies, and nobody else owns.
    fn prune(
        &self,
        merged: TypedObject<'a>,
        managers: &Managers<'_>,
        last: &ManagerEntry<'_>,
    ) -> Result<TypedObject<'a>, PruneError> {
        let last_set = last.fields.set();
        if last_set.is_empty() {
            return Ok(merged);
        }
        let merged_at_last = match self.convert(&merged, &last.api_version) {
            Ok(converted) => converted,
            Err(ConvertError::MissingVersion) => return Ok(merged),
            Err(ConvertError::Failed(error)) => {
                return Err(PruneError::Convert { what: "merged object to last applied version".to_owned(), error });
            }
        };
        let pruned = merged_at_last.without(&merged_at_last.with_parents(&last_set));
        let pruned = self
            .add_back_owned(&merged_at_last, pruned, &last.api_version, managers)
            .map_err(|error| PruneError::Owned(Box::new(error)))?;
        let pruned = match self.add_back_dangling(&merged_at_last, &pruned, &last_set, &last.api_version) {
            Ok(rest) => rest.unwrap_or(merged_at_last),
            Err(error) => return Err(PruneError::Dangling(Box::new(error))),
        };
        match self.convert(&pruned, self.version) {
            Ok(converted) => Ok(converted),
            Err(ConvertError::Failed(error)) => Err(PruneError::ConvertBack(error)),
            Err(ConvertError::MissingVersion) => Err(PruneError::NoType(self.version.to_owned())),
        }
    }

    /// Restores the fields that any manager owns, in each version with owned fields.
    fn add_back_owned(
        &self,
        merged: &TypedObject<'a>,
        pruned: TypedObject<'a>,
        pruned_version: &str,
        managers: &Managers<'_>,
    ) -> Result<TypedObject<'a>, PruneError> {
        let mut sets: BTreeMap<&str, Vec<FieldSet>> = BTreeMap::new();
        for entry in managers.entries.values() {
            sets.entry(&entry.api_version).or_default().push(entry.fields.set().into_owned());
        }
        let owned = sets.into_iter().map(|(version, sets)| (version, FieldSet::union_of(sets)));
        // The version of the pruned object comes first, as a conversion may need fields that were pruned.
        let mut owned: Vec<(&str, FieldSet)> = owned.collect();
        owned.sort_by_key(|(version, _)| *version != pruned_version);
        let mut merged = merged.clone();
        let mut pruned = pruned;
        for (version, set) in owned {
            let converted = |object: &TypedObject<'a>, what: &str| match self.convert(object, version) {
                Ok(typed) => Ok(Some(typed)),
                Err(ConvertError::MissingVersion) => Ok(None),
                Err(ConvertError::Failed(error)) => {
                    Err(PruneError::Convert { what: format!("{what} object at version {version}"), error })
                }
            };
            let Some(merged_here) = converted(&merged, "merged")? else { continue };
            merged = merged_here;
            let Some(pruned_here) = converted(&pruned, "pruned")? else { continue };
            let kept = pruned_here.all_fields().union(&merged.with_parents(&set));
            pruned = merged.without(&merged.all_fields().difference(&kept));
        }
        Ok(pruned)
    }

    /// Restores the fields that the manager did not own last time. `None` if the version of last time is gone.
    fn add_back_dangling(
        &self,
        merged: &TypedObject<'a>,
        pruned: &TypedObject<'a>,
        last_set: &FieldSet,
        last_version: &str,
    ) -> Result<Option<TypedObject<'a>>, PruneError> {
        let pruned = match self.convert(pruned, last_version) {
            Ok(pruned) => pruned,
            Err(ConvertError::MissingVersion) => return Ok(None),
            Err(ConvertError::Failed(error)) => {
                return Err(PruneError::Convert { what: "pruned object to last applied version".to_owned(), error });
            }
        };
        let dropped = merged.all_fields().difference(&pruned.all_fields());
        Ok(Some(merged.without(&dropped.intersection(&merged.with_parents(last_set)))))
    }
}

/// Whether a merge left `live` unchanged. Either may have managedFields: those are skipped, or came along with metadata
/// that nobody applied.
fn equal_but_for_managed_fields(live: &Value, merged: &Value) -> bool {
    let (Some(live), Some(merged)) = (live.as_object(), merged.as_object()) else { return false };
    live.len() == merged.len()
        && live.iter().zip(merged.iter()).all(|(live, merged)| match (live, merged) {
            (("metadata", Value::Object(live)), ("metadata", Value::Object(merged))) => {
                let (mut live, mut merged) = (without_managed_fields(live), without_managed_fields(merged));
                merged.all(|field| live.next().is_some_and(|live| equal_fields((live, field)))) && live.next().is_none()
            }
            fields => equal_fields(fields),
        })
}

fn without_managed_fields(metadata: &Map) -> impl Iterator<Item = (&str, &Value)> {
    metadata.iter().filter(|(name, _)| *name != "managedFields")
}

fn equal_fields(((left_name, left), (right_name, right)): ((&str, &Value), (&str, &Value))) -> bool {
    left_name == right_name && equal_values(left, right)
}

/// The changes that an operation makes to the fields of one version.
pub(super) struct Changes {
    /// Changed or added.
    pub set: FieldSet,
    pub removed: FieldSet,
}

impl Changes {
    fn of(comparison: Comparison) -> Self {
        let Comparison { removed, modified, added } = comparison;
        Changes { set: modified.united(added), removed }
    }
}
