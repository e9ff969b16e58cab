//! The effects of a new definition on users of the old one.
//!
//! Input: two definitions of a kind. Output: why the server would refuse the new one, and the changes, each breaking
//! (an object or a client that was fine no longer is), possibly breaking, or safe. For two rules, it decides which is
//! the tighter one if their form shows it. A new rule may refuse objects that passed, unless no object accepted by the
//! old definition can fail it (`before`). Objects can be replayed to see which are affected.

mod refused;
mod schema;
mod beyond;
mod watchers;
mod before;
mod rules;
mod replay;

pub use refused::{NewError, refused};
pub use replay::{Replayed, replay};

use std::collections::BTreeSet;
use std::sync::Arc;

use super::DefinedKind;
use crate::crd::definition::Definition;
use crate::crd::validate::expressions::SchemaCosts;
use crate::crd::{ServedVersion, priority, validate};
use crate::schema::structural::{Structural, StructuralOrBool};
use schema::SchemaComparison;

/// If more versions than this are served, each is only compared with the next one.
const ACROSS_MAX: usize = 16;

/// The effect of a change on users of the old definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Degree {
    /// There is something that was fine and no longer is.
    Breaking,
    /// It depends on the objects, or is unknown.
    MayBreak,
    /// Nothing that was fine is not fine any more.
    Safe,
}

use Degree::{Breaking, MayBreak, Safe};

/// A change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DefinitionChange {
    /// `None` if the change is not specific to a version.
    pub version: Option<String>,
    /// The field of objects, `spec.ports[*]`, or that of the definition.
    pub path: String,
    /// What kind of change: `property-removed`, …
    pub id: &'static str,
    /// How surely stored objects or clients break by it.
    pub degree: Degree,
    /// The change, described for people.
    pub detail: String,
}

/// The changes in `new`.
pub fn diff(old: &DefinedKind, new: &DefinedKind) -> Vec<DefinitionChange> {
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
            changes.push(change(None, path, id, Breaking, format!("`{before}` became `{after}`")));
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
            changes.push(change(None, path, removed, Breaking, format!("`{name}` is gone")));
        }
        for name in after.iter().filter(|name| !before.contains(name)) {
            changes.push(change(None, path, added, Safe, format!("`{name}` is new")));
        }
    }
    let costs = Costs::new(new);
    let conversion = |definition: &Definition| {
        definition.spec.conversion.as_ref().map_or("None".to_owned(), |conversion| conversion.strategy.clone())
    };
    let (before, after) = (conversion(&old.definition), conversion(&new.definition));
    if before != after {
        let detail = format!("`{before}` became `{after}`");
        let degree = if after == "None" { Breaking } else { Safe };
        changes.push(change(None, "spec.conversion.strategy", "conversion-changed", degree, detail));
    }
    for before in distinct(&old.versions) {
        let name = Some(before.version.clone());
        match new.versions.iter().find(|after| after.version == before.version) {
            None => {
                let detail = "objects can't be read nor written in this version".to_owned();
                let degree = if before.served { Breaking } else { Safe };
                changes.push(change(name, "spec.versions", "version-removed", degree, detail));
            }
            Some(after) => diff_versions(before, after, &costs, &mut changes),
        }
    }
    for added in new.versions.iter().filter(|new| !old.versions.iter().any(|old| old.version == new.version)) {
        let name = Some(added.version.clone());
        changes.push(change(name, "spec.versions", "version-added", Safe, "a new version".to_owned()));
    }
    diff_across_versions(old, new, &costs, &mut changes);
    changes
}

/// The first version of each name: a definition that has others of it is refused.
fn distinct(versions: &[Arc<ServedVersion>]) -> impl Iterator<Item = &ServedVersion> {
    let mut names = BTreeSet::new();
    versions.iter().map(AsRef::as_ref).filter(move |version| names.insert(version.version.as_str()))
}

/// Differences between two versions that are new. Clients of both share the same objects: what one accepts, the other
/// must accept. A webhook may make up for differences, so none are reported if there is one.
fn diff_across_versions(old: &DefinedKind, new: &DefinedKind, costs: &Costs, changes: &mut Vec<DefinitionChange>) {
    let has_webhook =
        new.definition.spec.conversion.as_ref().is_some_and(|conversion| conversion.strategy == "Webhook");
    let mut served: Vec<&ServedVersion> = distinct(&new.versions).filter(|version| version.served).collect();
    served.sort_by_key(|version| priority(&version.version));
    if has_webhook {
        return;
    }
    let compared = if served.len() > ACROSS_MAX { 1 } else { ACROSS_MAX };
    for (at, earlier) in served.iter().enumerate() {
        for later in served[at + 1..].iter().take(compared) {
            let label = format!("{} to {}", earlier.version, later.version);
            let before = |version: &ServedVersion| old.versions.iter().find(|old| old.version == version.version);
            let mut known = Vec::new();
            if let (Some(earlier), Some(later)) = (before(earlier), before(later)) {
                SchemaComparison::new(&label, &mut known, None).compare(&earlier.structural, &later.structural);
            }
            let mut found = Vec::new();
            let costs = costs.of(&later.version);
            SchemaComparison::new(&label, &mut found, costs).compare(&earlier.structural, &later.structural);
            let is_known = |change: &DefinitionChange| known.iter().any(|known| known.is_alike(change));
            changes.extend(found.into_iter().filter(|change| !is_known(change)));
        }
    }
}

impl DefinitionChange {
    /// Whether the same change was reported, whatever its degree.
    fn is_alike(&self, other: &DefinitionChange) -> bool {
        (self.id, &self.path, &self.detail) == (other.id, &other.path, &other.detail)
    }
}

fn change(version: Option<String>, path: &str, id: &'static str, degree: Degree, detail: String) -> DefinitionChange {
    DefinitionChange { version, path: path.to_owned(), id, degree, detail }
}

fn diff_versions(old: &ServedVersion, new: &ServedVersion, costs: &Costs, changes: &mut Vec<DefinitionChange>) {
    let mut tell = |path: &str, id, degree, detail: &str| {
        changes.push(change(Some(old.version.clone()), path, id, degree, detail.to_owned()));
    };
    match (old.served, new.served) {
        (true, false) => tell("served", "version-unserved", Breaking, "the version is no longer served"),
        (false, true) => tell("served", "version-served", Safe, "the version is served"),
        _ => {}
    }
    if old.storage != new.storage {
        let detail = if new.storage {
            "objects are stored in this version now"
        } else {
            "objects are stored in another version now"
        };
        tell("storage", "storage-version-changed", Safe, detail);
    }
    match (old.status, new.status) {
        (true, false) => tell("subresources.status", "status-removed", Breaking, "/status is gone"),
        (false, true) => {
            tell("subresources.status", "status-added", Breaking, "writes to the object no longer change its status");
        }
        _ => {}
    }
    match (&old.scale, &new.scale) {
        (Some(_), None) => tell("subresources.scale", "scale-removed", Breaking, "/scale is gone"),
        (None, Some(_)) => tell("subresources.scale", "scale-added", Safe, "/scale is new"),
        (Some(old), Some(new)) if old != new => {
            tell("subresources.scale", "scale-changed", MayBreak, "its paths are others");
        }
        _ => {}
    }
    for field in old.selectable_fields.iter().filter(|field| !new.selectable_fields.contains(field)) {
        tell(
            "selectableFields",
            "selectable-field-removed",
            Breaking,
            &format!("`{field}` can't be selected by any more"),
        );
    }
    for field in new.selectable_fields.iter().filter(|field| !old.selectable_fields.contains(field)) {
        tell("selectableFields", "selectable-field-added", Safe, &format!("`{field}` can be selected by"));
    }
    if old.deprecation_warning.is_none() && new.deprecation_warning.is_some() {
        tell("deprecated", "version-deprecated", Safe, "its clients are warned");
    }
    if old.columns != new.columns {
        tell("additionalPrinterColumns", "columns-changed", Safe, "kubectl get prints other columns");
    }
    SchemaComparison::new(&old.version, changes, costs.of(&new.version)).compare(&old.structural, &new.structural);
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// Whether a node of the schema has rules.
fn has_rules(schema: &Structural) -> bool {
    let values = schema.additional_properties.as_ref().and_then(StructuralOrBool::structural);
    let mut below = schema.properties.values().chain(schema.items.as_deref()).chain(values);
    !schema.validations.is_empty() || below.any(has_rules)
}

/// The rules of the new definition, compiled.
struct Costs {
    costs: Vec<SchemaCosts>,
    /// The names of its versions.
    versions: Vec<String>,
}

impl Costs {
    fn new(kind: &DefinedKind) -> Self {
        // Without rules there is nothing to compile, and the rest of the validation is not needed.
        let has_rules = kind.versions.iter().any(|version| has_rules(&version.structural));
        let costs = if has_rules { validate::create_with_costs(&kind.definition).1 } else { Vec::new() };
        Costs { costs, versions: kind.versions.iter().map(|version| version.version.clone()).collect() }
    }

    /// The costs of a version; `None` if its schema has faults.
    fn of(&self, version: &str) -> Option<&SchemaCosts> {
        let at = self.versions.iter().position(|known| known == version)?;
        let own = format!("spec.versions[{at}].schema.openAPIV3Schema");
        self.costs.iter().find(|costs| costs.path == own || costs.path == "spec.validation.openAPIV3Schema")
    }
}
