//! References between objects: objects that have owners, by their owners' uids, and objects that wait for their
//! dependents.
//!
//! It holds uids, keys and references of objects that own or are owned, and nothing else of them. All of it follows from
//! what is stored.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use super::decide::Dependents;
use crate::controllers::metadata::{self, Going};
use crate::store::{Collection, Stored};
use crate::value::Value;

/// The object under a key of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::controllers) struct Id {
    pub collection: Collection,
    /// `namespace/name`, or the name alone in cluster scope.
    pub key: Arc<str>,
}

impl Id {
    /// Empty in cluster scope.
    pub fn namespace(&self) -> &str {
        self.key.split_once('/').map_or("", |(namespace, _)| namespace)
    }
}

/// What is known about the place of the object with a uid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Presence {
    /// It has not been looked for.
    #[default]
    Unknown,
    At(Id),
    /// It was looked for, and is not among the objects of the kind that a reference names.
    NotFound,
    /// It was deleted: no other object will have its uid.
    Gone(Id),
}

/// A reference to an owner.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Link {
    uid: Arc<str>,
    blocks: bool,
}

/// An object that has owners.
struct Owned {
    uid: Arc<str>,
    links: Vec<Link>,
}

/// A uid in an owner reference of some object.
#[derive(Default)]
struct Owner {
    dependents: HashSet<Id>,
    place: Presence,
}

#[derive(Default)]
pub(super) struct Graph {
    owned: HashMap<Id, Owned>,
    owners: HashMap<Arc<str>, Owner>,
    /// The objects that are being deleted in the foreground or with orphaned dependents, by their uids.
    waiting: HashMap<Arc<str>, (Id, Going)>,
}

impl Graph {
    /// Records the state of an object, and adds to `open` the objects that may need an action now.
    pub fn put(&mut self, id: Id, stored: &Stored, open: &mut Vec<Id>) {
        self.set_going(&id, &stored.uid, metadata::going(stored), open);
        if let Some(owner) = self.owners.get_mut(&stored.uid) {
            owner.place = Presence::At(id.clone());
        }
        let links = links(stored);
        let is_known = |owned: &Owned| owned.uid == stored.uid && owned.links == links;
        if self.owned.get(&id).map_or(links.is_empty(), is_known) {
            return;
        }
        if let Some(before) = self.unlink(&id) {
            self.wake_owners(&before.links, &links, open);
        }
        if links.is_empty() {
            return;
        }
        for link in &links {
            self.owners.entry(Arc::clone(&link.uid)).or_default().dependents.insert(id.clone());
        }
        open.push(id.clone());
        self.owned.insert(id, Owned { uid: Arc::clone(&stored.uid), links });
    }

    /// Removes an object, and adds to `open` the objects that may need an action now.
    pub fn remove(&mut self, id: &Id, uid: &str, open: &mut Vec<Id>) {
        if let Some(owned) = self.unlink(id) {
            self.wake_owners(&owned.links, &[], open);
        }
        self.waiting.remove(uid);
        if let Some(owner) = self.owners.get_mut(uid) {
            owner.place = Presence::Gone(id.clone());
            open.extend(owner.dependents.iter().cloned());
        }
    }

    /// Every object that may need an action.
    pub fn all(&self) -> Vec<Id> {
        let waiting = self.waiting.values().map(|(id, _)| id);
        waiting.chain(self.owned.keys()).cloned().collect()
    }

    /// The dependents of an owner.
    pub fn dependents_of(&self, uid: &str) -> Vec<Id> {
        self.owners.get(uid).into_iter().flat_map(|owner| &owner.dependents).cloned().collect()
    }

    /// The state of an owner's dependents.
    pub fn describe(&self, uid: &str) -> Dependents {
        let Some(Owner { dependents, .. }) = self.owners.get(uid) else { return Dependents::default() };
        let blocks = |owned: &Owned| owned.links.iter().any(|link| *link.uid == *uid && link.blocks);
        // Iterate over the smaller set: thousands of dependents are deleted one by one, and each deletion leads here.
        let waiting = if self.waiting.len() < dependents.len() {
            let mut waiting = self.waiting.values().filter(|(_, going)| *going == Going::Foreground);
            waiting.any(|(id, _)| dependents.contains(id))
        } else {
            let mut owned = dependents.iter().filter_map(|id| self.owned.get(id));
            owned.any(|owned| self.waits(&owned.uid, Going::Foreground))
        };
        Dependents {
            any: !dependents.is_empty(),
            blocking: dependents.iter().filter_map(|id| self.owned.get(id)).any(blocks),
            waiting,
        }
    }

    /// Whether an owner is known to wait in this way.
    pub fn waits(&self, uid: &str, going: Going) -> bool {
        self.waiting.get(uid).is_some_and(|(_, known)| *known == going)
    }

    /// The place of an owner, as far as it is known.
    pub fn place_of(&self, uid: &str) -> Presence {
        self.owners.get(uid).map(|owner| owner.place.clone()).unwrap_or_default()
    }

    /// Remembers where an owner was looked for and found, unless a change has shown it meanwhile.
    pub fn found(&mut self, uid: &str, place: Presence) {
        if let Some(owner) = self.owners.get_mut(uid)
            && owner.place == Presence::Unknown
        {
            owner.place = place;
        }
    }

    /// Records what an object waits for. This affects its dependents.
    fn set_going(&mut self, id: &Id, uid: &Arc<str>, going: Going, open: &mut Vec<Id>) {
        let before = match going {
            Going::Foreground | Going::Orphan => {
                open.push(id.clone());
                self.waiting.insert(Arc::clone(uid), (id.clone(), going))
            }
            Going::No | Going::Otherwise => self.waiting.remove(uid),
        };
        let before = before.map_or(Going::No, |(_, before)| before);
        let now = self.waiting.get(uid).map_or(Going::No, |(_, now)| *now);
        if now != before {
            open.extend(self.dependents_of(uid));
        }
    }

    /// Removes the links to the owners of an object.
    fn unlink(&mut self, id: &Id) -> Option<Owned> {
        let owned = self.owned.remove(id)?;
        for link in &owned.links {
            if let Some(owner) = self.owners.get_mut(&link.uid) {
                owner.dependents.remove(id);
                if owner.dependents.is_empty() {
                    self.owners.remove(&link.uid);
                }
            }
        }
        Some(owned)
    }

    /// Waiting owners are checked again when a dependent no longer blocks them.
    fn wake_owners(&self, before: &[Link], links: &[Link], open: &mut Vec<Id>) {
        let kept: HashSet<&Link> = links.iter().collect();
        for link in before.iter().filter(|link| !kept.contains(link)) {
            open.extend(self.waiting.get(&link.uid).map(|(id, _)| id.clone()));
        }
    }
}

fn links(stored: &Stored) -> Vec<Link> {
    let link = |reference: &Value| Link { uid: reference.str_at(&["uid"]).into(), blocks: metadata::blocks(reference) };
    metadata::references(stored).iter().map(link).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(name: &str) -> Id {
        Id { collection: Collection::new("", "things"), key: format!("default/{name}").into() }
    }

    /// An object `name` of the uid `u-name`; its owners are `name` or, if it blocks their deletion, `!name`.
    fn put(graph: &mut Graph, name: &str, owners: &[&str], finalizer: Option<&str>) -> Vec<String> {
        let links = owners.iter().map(|owner| {
            let blocks = owner.starts_with('!');
            let uid = owner.trim_start_matches('!');
            serde_json::json!({"uid": format!("u-{uid}"), "blockOwnerDeletion": blocks})
        });
        let mut metadata = serde_json::json!({"ownerReferences": links.collect::<Vec<_>>()});
        if let Some(finalizer) = finalizer {
            metadata["deletionTimestamp"] = "2026-01-01T00:00:00Z".into();
            metadata["finalizers"] = serde_json::json!([finalizer]);
        }
        let bytes = serde_json::json!({"metadata": metadata}).to_string();
        let stored = Stored::fixture(&id(name).key, &format!("u-{name}"), bytes);
        let mut open = Vec::new();
        graph.put(id(name), &stored, &mut open);
        names(open)
    }

    fn remove(graph: &mut Graph, name: &str) -> Vec<String> {
        let mut open = Vec::new();
        graph.remove(&id(name), &format!("u-{name}"), &mut open);
        names(open)
    }

    fn names(open: Vec<Id>) -> Vec<String> {
        let mut names: Vec<_> = open.iter().map(|id| id.key.trim_start_matches("default/").to_owned()).collect();
        names.sort();
        names.dedup();
        names
    }

    #[test]
    fn an_object_without_owners_and_dependents_leaves_nothing() {
        let mut graph = Graph::default();
        assert_eq!(put(&mut graph, "a", &[], None), [""; 0]);
        assert_eq!(remove(&mut graph, "a"), [""; 0]);
        assert!(graph.all().is_empty() && graph.owners.is_empty());
    }

    #[test]
    fn an_object_is_looked_at_when_its_owners_change_and_when_one_goes() {
        let mut graph = Graph::default();
        assert_eq!(put(&mut graph, "a", &["o", "p"], None), ["a"]);
        assert_eq!(put(&mut graph, "a", &["o", "p"], None), [""; 0]);
        assert_eq!(put(&mut graph, "a", &["o"], None), ["a"]);
        assert_eq!(remove(&mut graph, "p"), [""; 0]);
        assert_eq!(remove(&mut graph, "o"), ["a"]);
        assert_eq!(graph.place_of("u-o"), Presence::Gone(id("o")));
        assert_eq!(remove(&mut graph, "a"), [""; 0]);
        assert!(graph.all().is_empty() && graph.owners.is_empty());
    }

    #[test]
    fn an_owner_that_waits_is_looked_at_whenever_a_dependent_keeps_it_no_longer() {
        let mut graph = Graph::default();
        put(&mut graph, "a", &["!o"], None);
        put(&mut graph, "b", &["!o"], None);
        assert_eq!(put(&mut graph, "o", &[], Some("foregroundDeletion")), ["a", "b", "o"]);
        assert_eq!(graph.describe("u-o"), Dependents { any: true, blocking: true, waiting: false });
        assert_eq!(put(&mut graph, "a", &["o"], None), ["a", "o"]);
        assert_eq!(remove(&mut graph, "b"), ["o"]);
        assert_eq!(graph.describe("u-o"), Dependents { any: true, blocking: false, waiting: false });
        assert_eq!(remove(&mut graph, "o"), ["a"]);
    }

    #[test]
    fn a_dependent_that_waits_for_its_own_is_seen_from_its_owner() {
        let waiting = Dependents { any: true, blocking: true, waiting: true };
        for others in [0, 5] {
            let mut graph = Graph::default();
            put(&mut graph, "a", &["!o"], Some("foregroundDeletion"));
            (0..others).for_each(|count| drop(put(&mut graph, &format!("a-{count}"), &["!o"], None)));
            assert_eq!(graph.describe("u-o"), waiting);
        }
    }
}
