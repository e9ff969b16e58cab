//! What a new definition changes for those who use the old one.
//!
//! In: two definitions of a kind. Out: the changes, each breaking (an object or a client that was fine may no longer be) or
//! safe. Of two
//! rules it is told which is the tighter one where their form shows that; else one that is new may refuse what passed.
//! Objects can be replayed to see which are hit.

mod schema;
mod rules;
mod replay;

pub use replay::{Replayed, replay};

use super::Kind;
use crate::crd::definition::Definition;
use crate::crd::{ServedVersion, priority};
use schema::Walk;

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Change {
    /// `None` for what is no version's own.
    pub version: Option<String>,
    /// The field of objects, `spec.ports[*]`, or that of the definition.
    pub path: String,
    /// What kind of change: `property-removed`, …
    pub id: &'static str,
    /// Whether stored objects or clients may break by it.
    pub breaks: bool,
    /// What has changed, for people.
    pub detail: String,
}

/// What `new` changes.
pub fn diff(old: &Kind, new: &Kind) -> Vec<Change> {
    let mut changes = Vec::new();
    let (before, after) = (&old.definition.spec, &new.definition.spec);
    let names = [
        ("spec.scope", "scope-changed", &before.scope, &after.scope),
        ("spec.group", "group-changed", &before.group, &after.group),
        ("spec.names.kind", "kind-changed", &before.names.kind, &after.names.kind),
        ("spec.names.plural", "plural-changed", &before.names.plural, &after.names.plural),
        ("spec.names.singular", "singular-changed", &before.names.singular, &after.names.singular),
        ("spec.names.listKind", "list-kind-changed", &before.names.list_kind, &after.names.list_kind),
    ];
    for (path, id, before, after) in names {
        if before != after {
            changes.push(change(None, path, id, true, format!("`{before}` became `{after}`")));
        }
    }
    let names = [
        ("spec.names.shortNames", "short-name", &before.names.short_names, &after.names.short_names),
        ("spec.names.categories", "category", &before.names.categories, &after.names.categories),
    ];
    for (path, what, before, after) in names {
        let (removed, added) = match what {
            "category" => ("category-removed", "category-added"),
            _ => ("short-name-removed", "short-name-added"),
        };
        for name in before.iter().filter(|name| !after.contains(name)) {
            changes.push(change(None, path, removed, true, format!("`{name}` is gone")));
        }
        for name in after.iter().filter(|name| !before.contains(name)) {
            changes.push(change(None, path, added, false, format!("`{name}` is new")));
        }
    }
    let conversion = |definition: &Definition| {
        definition.spec.conversion.as_ref().map_or("None".to_owned(), |conversion| conversion.strategy.clone())
    };
    let (before, after) = (conversion(&old.definition), conversion(&new.definition));
    if before != after {
        let detail = format!("`{before}` became `{after}`");
        changes.push(change(None, "spec.conversion.strategy", "conversion-changed", after == "None", detail));
    }
    for before in &old.versions {
        let name = Some(before.version.clone());
        match new.versions.iter().find(|after| after.version == before.version) {
            None => {
                let detail = "objects can't be read nor written in this version".to_owned();
                changes.push(change(name, "spec.versions", "version-removed", before.served, detail));
            }
            Some(after) => diff_versions(before, after, &mut changes),
        }
    }
    for added in new.versions.iter().filter(|new| !old.versions.iter().any(|old| old.version == new.version)) {
        let name = Some(added.version.clone());
        changes.push(change(name, "spec.versions", "version-added", false, "a new version".to_owned()));
    }
    diff_across_versions(old, new, &mut changes);
    changes
}

/// What is told of two versions only now. Clients of both share the same objects: what one takes, the other must. A webhook
/// may make up for what differs, so nothing is told where there is one.
fn diff_across_versions(old: &Kind, new: &Kind, changes: &mut Vec<Change>) {
    let has_webhook =
        new.definition.spec.conversion.as_ref().is_some_and(|conversion| conversion.strategy == "Webhook");
    let mut served: Vec<&ServedVersion> =
        new.versions.iter().filter(|version| version.served).map(AsRef::as_ref).collect();
    served.sort_by_key(|version| priority(&version.version));
    if has_webhook {
        return;
    }
    for (at, earlier) in served.iter().enumerate() {
        for later in &served[at + 1..] {
            let label = format!("{} to {}", earlier.version, later.version);
            let before = |version: &ServedVersion| old.versions.iter().find(|old| old.version == version.version);
            let mut known = Vec::new();
            if let (Some(earlier), Some(later)) = (before(earlier), before(later)) {
                Walk { version: &label, changes: &mut known }.node("", &earlier.structural, &later.structural);
            }
            let mut found = Vec::new();
            Walk { version: &label, changes: &mut found }.node("", &earlier.structural, &later.structural);
            changes.extend(found.into_iter().filter(|change| !known.contains(change)));
        }
    }
}

fn change(version: Option<String>, path: &str, id: &'static str, breaks: bool, detail: String) -> Change {
    Change { version, path: path.to_owned(), id, breaks, detail }
}

fn diff_versions(old: &ServedVersion, new: &ServedVersion, changes: &mut Vec<Change>) {
    let mut tell = |path: &str, id, breaks, detail: &str| {
        changes.push(change(Some(old.version.clone()), path, id, breaks, detail.to_owned()));
    };
    match (old.served, new.served) {
        (true, false) => tell("served", "version-unserved", true, "the version is no longer served"),
        (false, true) => tell("served", "version-served", false, "the version is served"),
        _ => {}
    }
    if old.storage != new.storage {
        let detail = if new.storage {
            "objects are stored in this version now"
        } else {
            "objects are stored in another version now"
        };
        tell("storage", "storage-version-changed", false, detail);
    }
    match (old.status, new.status) {
        (true, false) => tell("subresources.status", "status-removed", true, "/status is gone"),
        (false, true) => {
            tell("subresources.status", "status-added", true, "writes to the object no longer change its status");
        }
        _ => {}
    }
    match (&old.scale, &new.scale) {
        (Some(_), None) => tell("subresources.scale", "scale-removed", true, "/scale is gone"),
        (None, Some(_)) => tell("subresources.scale", "scale-added", false, "/scale is new"),
        (Some(old), Some(new)) if old != new => {
            tell("subresources.scale", "scale-changed", true, "its paths are others");
        }
        _ => {}
    }
    for field in old.selectable_fields.iter().filter(|field| !new.selectable_fields.contains(field)) {
        tell("selectableFields", "selectable-field-removed", true, &format!("`{field}` can't be selected by any more"));
    }
    for field in new.selectable_fields.iter().filter(|field| !old.selectable_fields.contains(field)) {
        tell("selectableFields", "selectable-field-added", false, &format!("`{field}` can be selected by"));
    }
    if old.deprecation_warning.is_none() && new.deprecation_warning.is_some() {
        tell("deprecated", "version-deprecated", false, "its clients are warned");
    }
    if old.columns != new.columns {
        tell("additionalPrinterColumns", "columns-changed", false, "kubectl get prints other columns");
    }
    Walk { version: &old.version, changes }.node("", &old.structural, &new.structural);
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}
