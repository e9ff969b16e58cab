//! An index of the children of one kind by their owners (controllers).
//!
//! Kept up to date from the feed; owners also add what they have just created, so that nothing is created twice.
//! Objects without a controller are kept separately: an owner whose selector matches them adopts them.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::client::{Client, Keeps, Kind, controller_of, is_going, read_to_keep};
use super::decoded;
use super::first_error::FirstError;
use super::kept_selector::KeptSelector;
use crate::meta::Status;
use crate::meta::api_version::group_of;
use crate::meta::selector::LabelSelector;
use crate::object;
use crate::store::{ChangeEvent, Stored};
use crate::value::{Value, json};

/// The owners of one kind, and their children of one kind.
pub(super) struct Family {
    owners: Kind,
    /// `apiVersion` and `kind` of the owners.
    owner_type: (&'static str, &'static str),
    children: Kind,
    /// What of the children is kept while an owner is reconciled.
    keeps: Keeps,
    index: Mutex<FamilyIndex>,
}

#[derive(Default)]
struct FamilyIndex {
    /// The selector of each owner, by its key.
    selectors: BTreeMap<Arc<str>, KeptSelector>,
    /// The children of each owner, by its uid.
    children: HashMap<Arc<str>, BTreeSet<Arc<str>>>,
    /// The uid and the key of the owner of each child.
    owners: HashMap<Arc<str>, (Arc<str>, String)>,
    /// Those without a controller.
    orphans: BTreeSet<Arc<str>>,
}

impl Family {
    pub fn new(owners: Kind, owner_type: (&'static str, &'static str), children: Kind, keeps: Keeps) -> Self {
        Family { owners, owner_type, children, keeps, index: Mutex::default() }
    }

    fn index(&self) -> MutexGuard<'_, FamilyIndex> {
        self.index.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub fn forget(&self) {
        *self.index() = FamilyIndex::default();
    }

    /// Records a change; returns the keys of the owners that it concerns.
    pub fn note(&self, change: &ChangeEvent) -> Vec<String> {
        if self.owners.is(&change.collection) {
            let mut index = self.index();
            match &change.stored {
                Some(stored) => _ = index.selectors.insert(Arc::clone(&change.key), selector_of(stored)),
                None => _ = index.selectors.remove(&change.key),
            }
            vec![change.key.to_string()]
        } else if self.children.is(&change.collection) {
            self.note_child(change)
        } else {
            Vec::new()
        }
    }

    fn note_child(&self, change: &ChangeEvent) -> Vec<String> {
        let namespace = change.key.split_once('/').map_or("", |(namespace, _)| namespace);
        let controller = change.stored.as_ref().map(|stored| self.controller_of(stored));
        let mut index = self.index();
        let mut about = BTreeSet::new();
        about.extend(index.remove_child(&change.key));
        match (controller, &change.stored) {
            (Some(ControllerRef::Ours { uid, name }), _) => {
                let owner = if namespace.is_empty() { name } else { format!("{namespace}/{name}") };
                about.insert(owner.clone());
                index.add_child(&uid, owner, &change.key);
            }
            (Some(ControllerRef::None), Some(stored)) => {
                index.orphans.insert(Arc::clone(&change.key));
                about.extend(index.selecting(namespace, stored));
            }
            _ => {}
        }
        about.into_iter().collect()
    }

    fn controller_of(&self, stored: &Stored) -> ControllerRef {
        let references = stored.metadata_field("\"ownerReferences\"").map(json::decode);
        let Some(Ok(Value::Array(references))) = references else { return ControllerRef::None };
        let is_controller = |reference: &&Value| reference.get("controller").and_then(Value::as_bool) == Some(true);
        let Some(reference) = references.iter().find(is_controller) else { return ControllerRef::None };
        if is_of(reference, self.owner_type) {
            ControllerRef::Ours { uid: reference.str_at(&["uid"]).into(), name: reference.str_at(&["name"]).to_owned() }
        } else {
            ControllerRef::Others
        }
    }

    /// Whether there is an owner under this key.
    pub fn has_owner(&self, key: &str) -> bool {
        self.index().selectors.contains_key(key)
    }

    /// The keys of the children of an owner, and of the objects in its namespace that have no controller.
    fn of(&self, owner: &Value) -> [Vec<Arc<str>>; 2] {
        let index = self.index();
        let own = index.children.get(owner.str_at(&["metadata", "uid"])).into_iter().flatten();
        let prefix = format!("{}/", owner.str_at(&["metadata", "namespace"]));
        let orphans = index.orphans.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        let orphans = orphans.take_while(|key| key.starts_with(&prefix));
        [own.cloned().collect(), orphans.cloned().collect()]
    }

    /// The current children of an owner, as far as changes were noted.
    pub async fn owned(&self, client: &Client, owner: &Value) -> Result<Vec<Value>, Status> {
        let [own, _] = self.of(owner);
        client.get_all(self.children, &own, self.keeps).await
    }

    /// Adds a child that its owner has just made.
    pub fn add(&self, owner: &Value, child: &Value) {
        let (namespace, name) = super::client::place(child);
        let key: Arc<str> = format!("{namespace}/{name}").into();
        self.index().add_child(owner.str_at(&["metadata", "uid"]), super::client::key_of(owner), &key);
    }

    /// The current children of an owner, after adopting and releasing objects according to its selector.
    pub async fn claimed(
        &self,
        client: &Client,
        owner: &Value,
        selector: &LabelSelector,
    ) -> Result<Vec<Value>, Status> {
        let (mut claimed, mut failed) = (Vec::new(), FirstError::default());
        let [own, orphans] = self.of(owner);
        let own = own.into_iter().map(|key| (key, false));
        for (key, is_orphan) in own.chain(orphans.into_iter().map(|key| (key, true))) {
            let Some(stored) = client.get_stored(self.children, &key).await? else { continue };
            if is_orphan && !selector.matches(stored.sorted_labels()) {
                continue;
            }
            let child = read_to_keep(&stored, self.keeps).await?;
            let mut references = child.items_at(&["metadata", "ownerReferences"]).to_vec();
            match claim(owner, selector, &child) {
                Claim::Owned => claimed.push(child),
                Claim::Adopt => {
                    references.push(self.reference(owner));
                    let adopted = failed.keep(self.set_references(client, &child, references).await).flatten();
                    claimed.extend(adopted.map(|mut adopted| {
                        (self.keeps)(&mut adopted);
                        adopted
                    }));
                }
                Claim::Release => {
                    let uid = owner.str_at(&["metadata", "uid"]);
                    references.retain(|reference| reference.str_at(&["uid"]) != uid);
                    failed.keep(self.set_references(client, &child, references).await);
                    decoded::drop_kept(&child);
                }
                Claim::Foreign => decoded::drop_kept(&child),
            }
        }
        failed.end().map(|()| claimed)
    }

    /// Replaces the owner references of a child that has not changed since it was read; `None` if it has.
    async fn set_references(
        &self,
        client: &Client,
        child: &Value,
        references: Vec<Value>,
    ) -> Result<Option<Value>, Status> {
        let metadata = |field: &str| child.str_at(&["metadata", field]).to_owned();
        let patch = object! { "metadata" => object! {
            "uid" => metadata("uid"),
            "resourceVersion" => metadata("resourceVersion"),
            "ownerReferences" => references,
        } };
        let (namespace, name) = super::client::place(child);
        match client.merge(self.children, namespace, name, &patch).await {
            Ok(changed) => Ok(Some(changed)),
            Err(status) if matches!(status.code, 404 | 409) => Ok(None),
            Err(status) => Err(status),
        }
    }

    /// The reference that makes `owner` the controller of a child.
    pub fn reference(&self, owner: &Value) -> Value {
        reference(self.owner_type, owner)
    }
}

/// The reference that makes `owner`, of this `apiVersion` and `kind`, the controller of an object.
pub(super) fn reference((api_version, kind): (&str, &str), owner: &Value) -> Value {
    object! {
        "apiVersion" => api_version,
        "kind" => kind,
        "name" => owner.str_at(&["metadata", "name"]),
        "uid" => owner.str_at(&["metadata", "uid"]),
        "controller" => true,
        "blockOwnerDeletion" => true,
    }
}

/// Whether a reference is to an object of this `apiVersion`'s group and `kind`.
fn is_of(reference: &Value, (api_version, kind): (&str, &str)) -> bool {
    reference.str_at(&["kind"]) == kind && group_of(reference.str_at(&["apiVersion"])) == group_of(api_version)
}

enum ControllerRef {
    None,
    Ours { uid: Arc<str>, name: String },
    Others,
}

impl FamilyIndex {
    /// Removes a child; returns the key of its owner.
    fn remove_child(&mut self, key: &Arc<str>) -> Option<String> {
        self.orphans.remove(key);
        let (uid, owner) = self.owners.remove(key)?;
        if let Some(children) = self.children.get_mut(&uid) {
            children.remove(key);
            if children.is_empty() {
                self.children.remove(&uid);
            }
        }
        Some(owner)
    }

    fn add_child(&mut self, uid: &str, owner: String, key: &Arc<str>) {
        let uid: Arc<str> = uid.into();
        self.children.entry(Arc::clone(&uid)).or_default().insert(Arc::clone(key));
        self.owners.insert(Arc::clone(key), (uid, owner));
    }

    /// The owners in a namespace that select an object.
    fn selecting(&self, namespace: &str, stored: &Stored) -> Vec<String> {
        let prefix = format!("{namespace}/");
        let owners = self.selectors.range::<str, _>((Bound::Included(prefix.as_str()), Bound::Unbounded));
        let owners = owners.take_while(|(key, _)| key.starts_with(&prefix));
        let is_of_all = |selector: &KeptSelector| selector.kept().is_some_and(LabelSelector::is_empty);
        let selecting =
            owners.filter(|(_, selector)| !is_of_all(selector) && selector.may_select(stored.sorted_labels()));
        selecting.map(|(key, _)| key.to_string()).collect()
    }
}

/// What an owner selects: `spec.selector`, which for replication controllers is a set of labels.
fn selector_of(stored: &Stored) -> KeptSelector {
    let owner = json::decode(&stored.bytes).unwrap_or_default();
    KeptSelector::of(owner.at(&["spec", "selector"]), || selector(&owner))
}

/// What an owner selects; `None` if it selects nothing.
pub(super) fn selector(owner: &Value) -> Option<LabelSelector> {
    let selector = owner.at(&["spec", "selector"])?;
    let labels_alone = owner.str_at(&["kind"]) == "ReplicationController";
    let selector = if labels_alone {
        object! { "matchLabels" => selector.clone() }
    } else {
        selector.clone()
    };
    LabelSelector::decode(&selector).ok()
}

/// The relation between an owner and an object.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Claim {
    /// It belongs to the owner.
    Owned,
    /// It has no controller, and the owner adopts it.
    Adopt,
    /// It belongs to the owner, but the owner no longer selects its labels.
    Release,
    /// The owner has nothing to do with it.
    Foreign,
}

/// Decides what an owner does with an object.
///
/// Source: `ControllerRefManager` of `pkg/controller`, release 1.37.
pub(super) fn claim(owner: &Value, selector: &LabelSelector, child: &Value) -> Claim {
    let uid = owner.str_at(&["metadata", "uid"]);
    let controller = controller_of(child);
    let matches = selector.matches(&child.at(&["metadata", "labels"]));
    let (owner_goes, child_goes) = (is_going(owner), is_going(child));
    match controller {
        Some(reference) if reference.str_at(&["uid"]) != uid => Claim::Foreign,
        Some(_) if matches => Claim::Owned,
        Some(_) if owner_goes => Claim::Foreign,
        Some(_) => Claim::Release,
        None if matches && !owner_goes && !child_goes => Claim::Adopt,
        None => Claim::Foreign,
    }
}

#[cfg(test)]
mod tests {
    use super::super::client::WHOLE;
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    #[test]
    fn what_is_selected_is_taken_and_what_is_not_let_go() {
        let owner = "metadata: {uid: u, namespace: d}";
        let check = |owner: &str, labels: &str, references: &str, expected| {
            let child = read(&format!("metadata: {{labels: {labels}, ownerReferences: {references}}}"));
            let selector = LabelSelector::parse("a=b").expect("a selector");
            assert_eq!(claim(&read(owner), &selector, &child), expected, "{labels} {references}");
        };
        let (ours, theirs) = ("[{uid: u, controller: true}]", "[{uid: v, controller: true}]");
        check(owner, "{a: b}", "[]", Claim::Adopt);
        check(owner, "{a: b}", "[{uid: v}]", Claim::Adopt);
        check(owner, "{a: b}", ours, Claim::Owned);
        check(owner, "{a: b}", theirs, Claim::Foreign);
        check(owner, "{a: c}", ours, Claim::Release);
        check(owner, "{a: c}", "[]", Claim::Foreign);
        let going = "metadata: {uid: u, deletionTimestamp: now}";
        check(going, "{a: b}", "[]", Claim::Foreign);
        check(going, "{a: c}", ours, Claim::Foreign);
    }

    #[test]
    fn children_are_found_by_their_owner() {
        let pods = super::super::client::PODS;
        let family = Family::new(Kind("apps", "replicasets"), ("apps/v1", "ReplicaSet"), pods, WHOLE);
        let entry = |collection: Kind, key: &str, text: Option<&str>| {
            let json = |text: &str| json::encode(&read(text));
            let stored = text.map(|text| Arc::new(Stored::fixture(key, "u", json(text))));
            let revision = crate::meta::Revision::new(1);
            ChangeEvent { collection: collection.collection(), key: key.into(), uid: "u".into(), revision, stored }
        };
        let owner =
            "kind: ReplicaSet\nmetadata: {uid: o, name: r, namespace: d}\nspec: {selector: {matchLabels: {a: b}}}";
        assert_eq!(family.note(&entry(Kind("apps", "replicasets"), "d/r", Some(owner))), ["d/r"]);
        let orphan = "metadata: {name: p, labels: {a: b}}";
        assert_eq!(family.note(&entry(pods, "d/p", Some(orphan))), ["d/r"]);
        assert!(family.note(&entry(pods, "m/p", Some(orphan))).is_empty());
        let child = "metadata: {name: q, ownerReferences: [{apiVersion: apps/v1, kind: ReplicaSet, name: r, uid: o, controller: true}]}";
        assert_eq!(family.note(&entry(pods, "d/q", Some(child))), ["d/r"]);
        let of = |owner: &str| family.of(&read(owner));
        assert_eq!(of(owner), [vec!["d/q".into()], vec!["d/p".into()]]);
        assert_eq!(family.note(&entry(pods, "d/q", None)), ["d/r"]);
        assert_eq!(of(owner), [vec![], vec!["d/p".into()]]);
    }
}
