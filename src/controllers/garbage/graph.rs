//! References between objects: objects that have owners, by their owners' uids, and objects that wait for their
//! dependents.
//!
//! It holds digests of uids, keys and references of objects that own or are owned, and nothing else of them. All of it
//! follows from what is stored. A reference takes as many bytes however long its uid is, and references are counted as
//! memory ([`Memory::for_references`]).

use std::collections::{BTreeSet, HashMap, HashSet};
use std::sync::Arc;

use sha2::{Digest as _, Sha256};

use super::decide::Dependents;
use crate::controllers::metadata::{self, Going};
use crate::controllers::queue::{InNamespace, namespace_of};
use crate::memory::{Memory, Portion, REFERENCE_BYTES};
use crate::store::{Collection, Stored};
use crate::value::Value;

/// What an object with owners takes beside its references, in bytes.
const OWNED_BYTES: usize = 256;
/// Memory is given back once less than this part of it is used.
const SHRINK_DIVISOR: usize = 4;

/// The object under a key of a collection.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(in crate::controllers) struct Id {
    pub collection: Collection,
    /// `namespace/name`, or the name alone in cluster scope.
    pub key: Arc<str>,
}

impl InNamespace for Id {
    fn namespace(&self) -> &str {
        namespace_of(&self.key)
    }
}

/// What is known about the place of the object with a uid.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) enum Presence {
    /// It has not been looked for.
    #[default]
    Unknown,
    At(Arc<Id>),
    /// It was looked for, and is not among the objects of the kind that a reference names.
    NotFound,
    /// It was deleted: no other object will have its uid.
    Gone(Arc<Id>),
}

/// A digest of a uid: clients refer to uids of any length.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct UidDigest([u8; 16]);

impl UidDigest {
    fn of(uid: &str) -> Self {
        let digest: [u8; 32] = Sha256::digest(uid).into();
        UidDigest(std::array::from_fn(|at| digest[at]))
    }
}

/// A reference to an owner.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
struct Link {
    uid: UidDigest,
    blocks: bool,
}

/// An object that has owners.
struct Owned {
    id: Arc<Id>,
    uid: UidDigest,
    links: Box<[Link]>,
}

/// A uid in an owner reference of some object.
struct Owner {
    dependents: Numbers,
    place: Presence,
}

/// Numbers of objects, at least one.
enum Numbers {
    One(u32),
    Several(BTreeSet<u32>),
}

impl Numbers {
    fn len(&self) -> usize {
        match self {
            Numbers::One(_) => 1,
            Numbers::Several(numbers) => numbers.len(),
        }
    }

    fn contains(&self, number: u32) -> bool {
        match self {
            Numbers::One(only) => *only == number,
            Numbers::Several(numbers) => numbers.contains(&number),
        }
    }

    fn iter(&self) -> impl Iterator<Item = u32> {
        let (one, several) = match self {
            Numbers::One(only) => (Some(*only), None),
            Numbers::Several(numbers) => (None, Some(numbers.iter().copied())),
        };
        one.into_iter().chain(several.into_iter().flatten())
    }

    fn insert(&mut self, number: u32) {
        match self {
            Numbers::One(only) if *only == number => {}
            Numbers::One(only) => *self = Numbers::Several(BTreeSet::from([*only, number])),
            Numbers::Several(numbers) => _ = numbers.insert(number),
        }
    }

    /// Returns whether none is left.
    fn remove(&mut self, number: u32) -> bool {
        match self {
            Numbers::One(only) => *only == number,
            Numbers::Several(numbers) => {
                numbers.remove(&number);
                numbers.is_empty()
            }
        }
    }
}

/// The objects that have owners, by numbers that are used again.
#[derive(Default)]
struct OwnedObjects {
    numbers: HashMap<Arc<Id>, u32>,
    objects: Vec<Option<Owned>>,
    free: Vec<u32>,
}

impl OwnedObjects {
    fn number_of(&self, id: &Id) -> Option<u32> {
        self.numbers.get(id).copied()
    }

    fn get(&self, number: u32) -> Option<&Owned> {
        self.objects.get(number as usize)?.as_ref()
    }

    fn of(&self, id: &Id) -> Option<&Owned> {
        self.get(self.number_of(id)?)
    }

    /// Returns the number; `None` if there are more objects than numbers.
    fn insert(&mut self, owned: Owned) -> Option<u32> {
        let number = match self.free.pop() {
            Some(number) => number,
            None => {
                let number = u32::try_from(self.objects.len()).ok()?;
                self.objects.push(None);
                number
            }
        };
        self.numbers.insert(Arc::clone(&owned.id), number);
        *self.objects.get_mut(number as usize)? = Some(owned);
        Some(number)
    }

    fn remove(&mut self, id: &Id) -> Option<(u32, Owned)> {
        let number = self.numbers.remove(id)?;
        self.free.push(number);
        let owned = self.objects.get_mut(number as usize)?.take()?;
        if self.numbers.is_empty() {
            *self = OwnedObjects::default();
        }
        Some((number, owned))
    }
}

pub(super) struct Graph {
    owned: OwnedObjects,
    owners: HashMap<UidDigest, Owner>,
    /// The objects that are being deleted in the foreground or with orphaned dependents, by their uids.
    waiting: HashMap<UidDigest, (Arc<Id>, Going)>,
    /// What it takes, in bytes.
    bytes: usize,
    counted: Portion,
}

impl Graph {
    /// An empty one, which will be counted as memory.
    pub fn new(memory: &Memory) -> Self {
        let (owned, owners, waiting) = Default::default();
        Graph { owned, owners, waiting, bytes: 0, counted: memory.for_references() }
    }

    /// Records the state of an object, and adds to `open` the objects that may need an action now.
    pub fn put(&mut self, id: Id, stored: &Stored, open: &mut Vec<Id>) {
        let uid = UidDigest::of(&stored.uid);
        let id = Arc::new(id);
        self.set_going(&id, uid, metadata::going(stored), open);
        if let Some(owner) = self.owners.get_mut(&uid) {
            owner.place = Presence::At(Arc::clone(&id));
        }
        let links = links(stored);
        let is_known = |owned: &Owned| owned.uid == uid && owned.links == links;
        if self.owned.of(&id).map_or(links.is_empty(), is_known) {
            return;
        }
        if let Some(before) = self.unlink(&id) {
            self.wake_owners(&before.links, &links, open);
        }
        if links.is_empty() {
            return;
        }
        open.push(Id::clone(&id));
        self.link(Owned { id, uid, links });
    }

    /// Removes an object, and adds to `open` the objects that may need an action now.
    pub fn remove(&mut self, id: &Id, uid: &str, open: &mut Vec<Id>) {
        let uid = UidDigest::of(uid);
        if let Some(owned) = self.unlink(id) {
            self.wake_owners(&owned.links, &[], open);
        }
        self.waiting.remove(&uid);
        if let Some(owner) = self.owners.get_mut(&uid) {
            owner.place = Presence::Gone(Arc::new(id.clone()));
            self.open_dependents(uid, open);
        }
    }

    /// Every object that may need an action.
    pub fn all(&self) -> Vec<Id> {
        let waiting = self.waiting.values().map(|(id, _)| id);
        waiting.chain(self.owned.numbers.keys()).map(|id| Id::clone(id)).collect()
    }

    /// The dependents of an owner.
    pub fn dependents_of(&self, uid: &str) -> Vec<Id> {
        let mut dependents = Vec::new();
        self.open_dependents(UidDigest::of(uid), &mut dependents);
        dependents
    }

    fn open_dependents(&self, uid: UidDigest, open: &mut Vec<Id>) {
        let numbers = self.owners.get(&uid).into_iter().flat_map(|owner| owner.dependents.iter());
        open.extend(numbers.filter_map(|number| Some(Id::clone(&self.owned.get(number)?.id))));
    }

    /// The state of an owner's dependents.
    pub fn describe(&self, uid: &str) -> Dependents {
        let uid = UidDigest::of(uid);
        let Some(Owner { dependents, .. }) = self.owners.get(&uid) else { return Dependents::default() };
        let owned = || dependents.iter().filter_map(|number| self.owned.get(number));
        // Iterate over the smaller set: thousands of dependents are deleted one by one, and each deletion leads here.
        let waiting = if self.waiting.len() < dependents.len() {
            let mut waiting = self.waiting.values().filter(|(_, going)| *going == Going::Foreground);
            waiting.any(|(id, _)| self.owned.number_of(id).is_some_and(|number| dependents.contains(number)))
        } else {
            owned().any(|owned| self.is_waiting(owned.uid, Going::Foreground))
        };
        let blocking = owned().any(|owned| owned.links.iter().any(|link| link.uid == uid && link.blocks));
        Dependents { any: true, blocking, waiting }
    }

    /// Whether an owner is known to wait in this way.
    pub fn waits(&self, uid: &str, going: Going) -> bool {
        self.is_waiting(UidDigest::of(uid), going)
    }

    fn is_waiting(&self, uid: UidDigest, going: Going) -> bool {
        self.waiting.get(&uid).is_some_and(|(_, known)| *known == going)
    }

    /// The place of an owner, as far as it is known.
    pub fn place_of(&self, uid: &str) -> Presence {
        self.owners.get(&UidDigest::of(uid)).map(|owner| owner.place.clone()).unwrap_or_default()
    }

    /// Remembers where an owner was looked for and found, unless a change has shown it meanwhile.
    pub fn found(&mut self, uid: &str, place: Presence) {
        if let Some(owner) = self.owners.get_mut(&UidDigest::of(uid))
            && owner.place == Presence::Unknown
        {
            owner.place = place;
        }
    }

    /// Records what an object waits for. This affects its dependents.
    fn set_going(&mut self, id: &Arc<Id>, uid: UidDigest, going: Going, open: &mut Vec<Id>) {
        let before = match going {
            Going::Foreground | Going::Orphan => {
                open.push(Id::clone(id));
                self.waiting.insert(uid, (Arc::clone(id), going))
            }
            Going::No | Going::Otherwise => self.waiting.remove(&uid),
        };
        let before = before.map_or(Going::No, |(_, before)| before);
        let now = self.waiting.get(&uid).map_or(Going::No, |(_, now)| *now);
        if now != before {
            self.open_dependents(uid, open);
        }
    }

    /// Adds an object that has owners.
    fn link(&mut self, owned: Owned) {
        let links = owned.links.clone();
        let Some(number) = self.owned.insert(owned) else { return };
        for link in &links {
            let dependents = Numbers::One(number);
            let owner = self.owners.entry(link.uid).or_insert(Owner { dependents, place: Presence::Unknown });
            owner.dependents.insert(number);
        }
        self.count(self.bytes + OWNED_BYTES + links.len() * REFERENCE_BYTES);
    }

    /// Removes an object with its links to its owners.
    fn unlink(&mut self, id: &Id) -> Option<Owned> {
        let (number, owned) = self.owned.remove(id)?;
        for link in &owned.links {
            if let Some(owner) = self.owners.get_mut(&link.uid)
                && owner.dependents.remove(number)
            {
                self.owners.remove(&link.uid);
            }
        }
        self.count(self.bytes.saturating_sub(OWNED_BYTES + owned.links.len() * REFERENCE_BYTES));
        if self.owners.len() < self.owners.capacity() / SHRINK_DIVISOR {
            self.owners.shrink_to(2 * self.owners.len());
        }
        Some(owned)
    }

    fn count(&mut self, bytes: usize) {
        self.bytes = bytes;
        self.counted.resize(bytes);
    }

    /// Waiting owners are checked again when a dependent no longer blocks them.
    fn wake_owners(&self, before: &[Link], links: &[Link], open: &mut Vec<Id>) {
        let kept: HashSet<&Link> = links.iter().collect();
        for link in before.iter().filter(|link| !kept.contains(link)) {
            open.extend(self.waiting.get(&link.uid).map(|(id, _)| Id::clone(id)));
        }
    }
}

fn links(stored: &Stored) -> Box<[Link]> {
    let link = |reference: &Value| Link {
        uid: UidDigest::of(reference.str_at(&["uid"])),
        blocks: metadata::blocks(reference),
    };
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
        let mut graph = Graph::new(&Memory::of_system());
        assert_eq!(put(&mut graph, "a", &[], None), [""; 0]);
        assert_eq!(remove(&mut graph, "a"), [""; 0]);
        assert!(graph.all().is_empty() && graph.owners.is_empty());
    }

    #[test]
    fn what_it_takes_is_counted_and_does_not_grow_with_the_length_of_uids() {
        const COUNT: usize = 2_000;
        let memory = Memory::new(1 << 30);
        let mut graph = Graph::new(&memory);
        let owners: Vec<String> = (0..COUNT).map(|at| format!("{at}{}", "x".repeat(200))).collect();
        let owners: Vec<&str> = owners.iter().map(String::as_str).collect();
        let counted = allocation_counter::measure(|| _ = put(&mut graph, "a", &owners, None));
        let bytes = OWNED_BYTES + COUNT * REFERENCE_BYTES;
        assert_eq!(memory.reference_bytes(), bytes);
        assert!((counted.bytes_current as usize) < bytes, "{}", counted.bytes_current);
        put(&mut graph, "b", &owners[..10], None);
        assert_eq!(graph.dependents_of(&format!("u-{}", owners[0])).len(), 2);
        put(&mut graph, "a", &owners[..1], None);
        remove(&mut graph, "b");
        assert_eq!((memory.reference_bytes(), graph.owners.len()), (OWNED_BYTES + REFERENCE_BYTES, 1));
        assert!(graph.owners.capacity() < COUNT / SHRINK_DIVISOR);
        drop(graph);
        assert_eq!(memory.reference_bytes(), 0);
    }

    #[test]
    fn an_object_is_looked_at_when_its_owners_change_and_when_one_goes() {
        let mut graph = Graph::new(&Memory::of_system());
        assert_eq!(put(&mut graph, "a", &["o", "p"], None), ["a"]);
        assert_eq!(put(&mut graph, "a", &["o", "p"], None), [""; 0]);
        assert_eq!(put(&mut graph, "a", &["o"], None), ["a"]);
        assert_eq!(remove(&mut graph, "p"), [""; 0]);
        assert_eq!(remove(&mut graph, "o"), ["a"]);
        assert_eq!(graph.place_of("u-o"), Presence::Gone(Arc::new(id("o"))));
        assert_eq!(remove(&mut graph, "a"), [""; 0]);
        assert!(graph.all().is_empty() && graph.owners.is_empty());
    }

    #[test]
    fn an_owner_that_waits_is_looked_at_whenever_a_dependent_keeps_it_no_longer() {
        let mut graph = Graph::new(&Memory::of_system());
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
            let mut graph = Graph::new(&Memory::of_system());
            put(&mut graph, "a", &["!o"], Some("foregroundDeletion"));
            (0..others).for_each(|count| drop(put(&mut graph, &format!("a-{count}"), &["!o"], None)));
            assert_eq!(graph.describe("u-o"), waiting);
        }
    }
}
