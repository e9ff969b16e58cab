//! Ownership of the replicas, between a resource and its `/scale`.
//!
//! Source: apimachinery 1.37, `util/managedfields/scalehandler.go`.

use std::collections::BTreeMap;

use super::field_set::FieldSet;
use super::fields::OwnedFields;
use super::managed_fields::{self, DecodeError, ManagerEntry, Managers};
use super::path::PathElement;
use crate::value::Value;

const SCALE_VERSION: &str = "autoscaling/v1";

/// The managers of a resource, for use on its `/scale` and back.
pub struct ScaleFields<'a> {
    managers: Managers<'a>,
    replicas_paths: &'a [(String, Option<Vec<PathElement>>)],
}

impl<'a> ScaleFields<'a> {
    /// `object` is the resource. `replicas_paths` maps each of its versions (`group/version`) to the path of the
    /// replicas, `None` for a version without `/scale`.
    ///
    /// # Errors
    ///
    /// managedFields that can't be decoded; the answer is 500 with this text.
    pub fn of(
        object: &'a Value,
        replicas_paths: &'a [(String, Option<Vec<PathElement>>)],
    ) -> Result<ScaleFields<'a>, DecodeError> {
        let managers = decode(object)?;
        Ok(ScaleFields { managers, replicas_paths })
    }

    /// `metadata.managedFields` of the Scale: who owns its replicas.
    pub fn to_scale(&self) -> Option<Value> {
        let mut managers = Managers::default();
        for entry in self.managers.entries.values() {
            if let Some(Some(path)) = self.path_in(&entry.api_version)
                && entry.fields.set().contains(path)
            {
                managers.put(ManagerEntry {
                    api_version: SCALE_VERSION.to_owned(),
                    fields: OwnedFields::Set(replicas_of_scale()),
                    ..entry.clone()
                });
            }
        }
        managers.encode()
    }

    /// `metadata.managedFields` of the resource in `version`, after `scale` was written.
    ///
    /// # Errors
    ///
    /// managedFields of the Scale that can't be decoded.
    pub fn to_parent(self, scale: &Value, version: &str) -> Result<Option<Value>, DecodeError> {
        let mut of_scale = decode(scale)?;
        let replicas = [PathElement::field("spec"), PathElement::field("replicas")];
        let mut managers = Managers::default();
        let times: BTreeMap<_, _> =
            self.managers.entries.values().map(|entry| (entry.manager.clone(), entry.time.clone())).collect();
        let path_in =
            |version: &str| self.replicas_paths.iter().find(|(known, _)| known == version).map(|(_, path)| path);
        for mut entry in self.managers.entries.into_values() {
            let Some(path) = path_in(&entry.api_version) else { continue };
            if let Some(path) = path
                && entry.fields.set().contains(path)
                && of_scale.take(&entry.manager).is_none()
            {
                let mut taken = FieldSet::new();
                taken.insert(path);
                entry.fields = OwnedFields::Set(entry.fields.set().difference(&taken));
                if entry.fields.is_empty() {
                    continue;
                }
            }
            managers.put(entry);
        }
        for entry in of_scale.entries.into_values() {
            if !entry.fields.set().contains(&replicas) {
                continue;
            }
            let mut set = FieldSet::new();
            if let Some(Some(path)) = path_in(version) {
                set.insert(path);
            }
            let time = times.get(&entry.manager).cloned().flatten();
            managers.put(ManagerEntry {
                api_version: version.to_owned(),
                fields: OwnedFields::Set(set),
                time,
                ..entry
            });
        }
        Ok(managers.encode())
    }

    fn path_in(&self, version: &str) -> Option<Option<&[PathElement]>> {
        self.replicas_paths.iter().find(|(known, _)| known == version).map(|(_, path)| path.as_deref())
    }
}

fn decode(object: &Value) -> Result<Managers<'_>, DecodeError> {
    let entries = managed_fields::read(object.at(&["metadata", "managedFields"])).unwrap_or_default();
    Managers::decode(&entries)
}

fn replicas_of_scale() -> FieldSet {
    FieldSet::of_fields(&[&["spec", "replicas"]])
}
