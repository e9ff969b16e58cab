//! The definitions and policies that the texts of an editor refer to.
//!
//! Input: files by their names, as they are on disk or in the editor. Output: kinds and policies, compiled from the
//! last text that could be read: while a definition is being edited and cannot be parsed, its kind stays what it was.
//!
//! A name is a path with `/`; no file is read.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use super::documents::{Head, Sort, TextPart, hash_of, parts};
use super::outline::{Outline, outline};
use super::text::Text;
use crate::author::lint::Severity;
use crate::author::policies::{Policies, RequestUser, case};
use crate::author::{Catalog, DefinedKind};
use crate::meta::minor::Minor;
use crate::value::Value;
use crate::value::yaml::decode_each_located;

/// Finds the user that a UserInfo describes, for policies that check what a user may do.
pub type UserLookup = Box<dyn Fn(Value) -> RequestUser + Send>;

/// The maximum size of an object to keep from a file with policies, in bytes: policies may look it up.
const LOOKED_UP_BYTES_MAX: usize = 64 << 10;

/// Which lints are reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LintChoice {
    /// The minimum severity.
    pub least: Severity,
    /// Ids that are reported whatever their severity.
    pub on: Vec<String>,
    /// Ids that are not reported.
    pub off: Vec<String>,
}

impl Default for LintChoice {
    fn default() -> Self {
        LintChoice { least: Severity::Warning, on: Vec::new(), off: Vec::new() }
    }
}

/// The known definitions and policies.
pub struct Workspace {
    pub(super) catalog: Catalog,
    /// The minor versions in which definitions must work, apart from that of the catalog.
    pub(super) older: Vec<Minor>,
    /// The stamp of each kind: the hash of its definition's text.
    stamps: HashMap<KindName, u64>,
    pub(super) files: BTreeMap<String, File>,
    pub(super) policies: Policies,
    /// The stamp of the policies.
    pub(super) policies_stamp: u64,
    pub(super) find_user: UserLookup,
    /// The kind that is assumed for objects without one; none unless set.
    pub assumed: Head,
    /// Which lints are reported.
    pub lints: LintChoice,
}

/// What a file defines.
#[derive(Default)]
pub(super) struct File {
    /// Its text, if anything here refers to positions in it.
    pub text: Option<Arc<Text>>,
    /// The kinds, each with the hash of its definition's text.
    pub kinds: Vec<(u64, KindName)>,
    /// Its policies and the objects that they look up.
    pub policies: Vec<Value>,
}

/// A part of a file, with its head and sort.
pub(super) struct FilePart {
    pub part: TextPart,
    pub head: Head,
    pub sort: Sort,
    /// The outline from which `head` was read, until it is taken.
    pub outline: Option<Outline>,
}

impl FilePart {
    /// Reads the head of a part of a file's text.
    pub fn new(name: &str, text: &str, part: TextPart) -> Self {
        let own = &text[part.range.clone()];
        let outline = outline(own);
        let head = Head::of(own, &outline);
        let sort = head.sort(name);
        FilePart { part, head, sort, outline: Some(outline) }
    }
}

/// The group and the name of a kind.
pub(super) type KindName = (String, String);

/// A kind that a definition defines.
pub(super) enum ManifestKind {
    New(Box<DefinedKind>),
    /// The definition has not changed except for its layout.
    Same(KindName),
}

impl Workspace {
    /// Makes an empty workspace; `find_user` returns the user that a UserInfo describes.
    pub fn new(find_user: UserLookup) -> Self {
        Workspace::of_minors(find_user, &[])
    }

    /// Makes an empty workspace for several minor versions of Kubernetes, in ascending order: the results of the newest
    /// are reported in full, and for the others what they refuse or ignore of a definition.
    pub fn of_minors(find_user: UserLookup, minors: &[Minor]) -> Self {
        let (newest, older) = minors.split_last().map_or((Minor::NEWEST, &[][..]), |(newest, older)| (*newest, older));
        Workspace {
            catalog: Catalog::of_minor(newest),
            older: older.to_vec(),
            stamps: HashMap::new(),
            files: BTreeMap::new(),
            policies: Policies::default(),
            policies_stamp: 0,
            find_user,
            assumed: Head::default(),
            lints: LintChoice::default(),
        }
    }

    /// The minor version of Kubernetes whose results are reported.
    pub(super) fn minor(&self) -> Minor {
        self.catalog.minor()
    }

    /// The kinds of the known definitions.
    pub fn catalog(&self) -> &Catalog {
        &self.catalog
    }

    /// Adds what a file on disk defines, in place of what it defined before.
    pub fn add(&mut self, name: &str, text: &str) {
        let read: Vec<FilePart> = parts(text).into_iter().map(|part| FilePart::new(name, text, part)).collect();
        let defines = |read: &&FilePart| read.sort == Sort::Definition;
        let mut made = Vec::new();
        for FilePart { part, .. } in read.iter().filter(defines) {
            let known = self.files.get(name).is_some_and(|file| file.kinds.iter().any(|(hash, _)| *hash == part.hash));
            if !known {
                let kinds = self.kinds_of(&text[part.range.clone()]).into_iter();
                made.extend(kinds.map(|kind| (part.hash, ManifestKind::New(Box::new(kind)))));
            }
        }
        self.take(name, &Text::from(text), &read, made);
    }

    /// Adds definitions that are in no file.
    pub fn add_values(&mut self, definitions: &[Value]) {
        for definition in definitions {
            let Ok(kind) = DefinedKind::new_in(self.minor(), definition) else { continue };
            self.stamps.insert(kind.key(), 1);
            self.catalog.insert(kind);
        }
    }

    /// Forgets what a file defines.
    pub fn remove(&mut self, name: &str) {
        let Some(file) = self.files.remove(name) else { return };
        for (_, (group, kind)) in &file.kinds {
            self.forget(group, kind);
        }
        if !file.policies.is_empty() {
            self.read_policies();
        }
    }

    /// Stores the kinds that were compiled from a file, and its policies. A kind whose definition no longer exists is
    /// removed, unless one of the file's definitions cannot be read.
    pub(super) fn take(&mut self, name: &str, text: &Text, read: &[FilePart], made: Vec<(u64, ManifestKind)>) {
        let before = self.files.remove(name).unwrap_or_default();
        let mut file = File::default();
        for (hash, made) in made {
            let key = match made {
                ManifestKind::New(kind) => {
                    let key = kind.key();
                    self.stamps.insert(key.clone(), hash);
                    self.catalog.insert(*kind);
                    key
                }
                ManifestKind::Same(key) => key,
            };
            file.kinds.push((hash, key));
        }
        let definitions: Vec<u64> =
            read.iter().filter(|read| read.sort == Sort::Definition).map(|read| read.part.hash).collect();
        let is_made = |file: &File, hash: u64| file.kinds.iter().any(|(made, _)| *made == hash);
        let mut is_whole = true;
        for hash in &definitions {
            if !is_made(&file, *hash) {
                let kept = before.kinds.iter().filter(|(made, _)| made == hash).cloned();
                file.kinds.extend(kept.collect::<Vec<_>>());
                is_whole &= is_made(&file, *hash);
            }
        }
        for (hash, (group, kind)) in before.kinds {
            let is_there = file.kinds.iter().any(|(_, known)| (&known.0, &known.1) == (&group, &kind));
            match (is_there, is_whole) {
                (true, _) => {}
                (false, true) => self.forget(&group, &kind),
                (false, false) => file.kinds.push((hash, (group, kind))),
            }
        }
        if read.iter().any(|read| read.sort == Sort::Policy) {
            let values = read.iter().filter(|read| read.sort != Sort::Definition);
            let values = values.filter(|read| read.part.range.len() <= LOOKED_UP_BYTES_MAX);
            file.policies = values.flat_map(|read| values_of(&text.as_str()[read.part.range.clone()])).collect();
        }
        if !file.kinds.is_empty() || !file.policies.is_empty() {
            file.text = Some(Arc::new(text.clone()));
        }
        let has_changed = file.policies != before.policies;
        self.files.insert(name.to_owned(), file);
        if has_changed {
            self.read_policies();
        }
    }

    fn kinds_of(&self, text: &str) -> Vec<DefinedKind> {
        values_of(text).iter().filter_map(|value| DefinedKind::new_in(self.minor(), value).ok()).collect()
    }

    fn forget(&mut self, group: &str, kind: &str) {
        self.catalog.remove(group, kind);
        self.stamps.remove(&(group.to_owned(), kind.to_owned()));
    }

    fn read_policies(&mut self) {
        self.policies = Policies::read(self.minor(), self.policy_values());
        let texts: Vec<String> = self.policy_values().map(crate::value::json::encode_to_string).collect();
        self.policies_stamp = hash_of(&texts.concat());
    }

    /// All policies, and the objects that they look up.
    pub(super) fn policy_values(&self) -> impl Iterator<Item = &Value> {
        self.files.values().flat_map(|file| &file.policies)
    }

    /// The stamp of a kind; 0 if it is unknown.
    pub(super) fn stamp_of(&self, head: &Head) -> u64 {
        self.stamp_of_kind(&(head.group().to_owned(), head.kind.clone()))
    }

    /// The stamp of a kind by its name.
    pub(super) fn stamp_of_kind(&self, kind: &KindName) -> u64 {
        self.stamps.get(kind).copied().unwrap_or_default()
    }

    /// The stamp of all kinds and policies.
    pub fn stamp_of_all(&self) -> u64 {
        self.stamps.values().fold(self.policies_stamp, |sum, stamp| sum.wrapping_add(*stamp))
    }

    /// A user with all permissions.
    pub(super) fn administrator(&self) -> RequestUser {
        (self.find_user)(case::administrator())
    }

    /// The name of the file that defines a kind.
    pub fn file_of(&self, group: &str, kind: &str) -> Option<&str> {
        self.definition_of(group, kind).map(|(name, _, _)| name)
    }

    /// Where a kind is defined: the name of the file, its text, and the part with the definition.
    pub(super) fn definition_of(&self, group: &str, kind: &str) -> Option<(&str, &Arc<Text>, TextPart)> {
        self.files.iter().find_map(|(name, file)| {
            let text = file.text.as_ref()?;
            let (hash, _) = file.kinds.iter().find(|(_, known)| known.0 == group && known.1 == kind)?;
            let part = parts(text.as_str()).into_iter().find(|part| part.hash == *hash)?;
            Some((name.as_str(), text, part))
        })
    }
}

fn values_of(text: &str) -> Vec<Value> {
    decode_each_located(text.as_bytes()).into_iter().flatten().map(|located| located.value).collect()
}
