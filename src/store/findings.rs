//! What watches find out about a change, once for all of them.
//!
//! Input: the functions that find it out. Output: what they returned the first time. This module never reads an object
//! itself.

use std::sync::{Arc, Mutex, OnceLock, PoisonError, TryLockError};

use sha2::{Digest as _, Sha256};

use crate::crd::ServedVersion;
use crate::meta::Revision;
use crate::value::Value;
use crate::work;

/// For how many pairs of a version and a state of a change it is kept what selectors see.
const SELECTABLE_MAX: usize = 8;
/// Longer texts are kept as digests.
const TEXT_BYTES_MAX: usize = 256;

/// What selectors see of an object in one version.
#[derive(Debug)]
pub struct Selectable {
    /// The labels, if a webhook has converted them; null if they are those of the stored object.
    pub labels: Value,
    /// The texts of the selectable fields, in the order of the version.
    pub fields: Vec<SelectableText>,
}

/// A text that is only compared: a long one takes no more memory than its digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SelectableText {
    Whole(Box<str>),
    /// SHA-256.
    Digest(Box<[u8; 32]>),
}

impl SelectableText {
    pub fn of(text: &str) -> Self {
        work::bytes(text.len());
        if text.len() <= TEXT_BYTES_MAX {
            SelectableText::Whole(text.into())
        } else {
            SelectableText::Digest(Box::new(Sha256::digest(text).into()))
        }
    }

    /// Whether it is this text.
    pub fn is(&self, text: &str) -> bool {
        match self {
            SelectableText::Whole(whole) => **whole == *text,
            SelectableText::Digest(_) => text.len() > TEXT_BYTES_MAX && *self == SelectableText::of(text),
        }
    }
}

/// What selectors see in a version of the state with a revision.
#[derive(Debug)]
struct SeenState {
    version: Arc<ServedVersion>,
    revision: Revision,
    selectable: Arc<Selectable>,
}

/// What is known about one change.
#[derive(Debug, Default)]
pub struct ChangeFindings {
    selectable: Mutex<Vec<SeenState>>,
    redefines: OnceLock<bool>,
}

impl ChangeFindings {
    /// What selectors see in `version` of the state with this revision, if that is known.
    pub fn selectable(&self, version: &Arc<ServedVersion>, state: Revision) -> Option<Arc<Selectable>> {
        find(&self.selectable.lock().unwrap_or_else(PoisonError::into_inner), version, state)
    }

    /// [`ChangeFindings::selectable`], which `see` returns if it is not known. Callers that need it meanwhile wait for it.
    ///
    /// Errors: those of `see`, after which nothing is kept.
    pub fn selectable_or<E>(
        &self,
        version: &Arc<ServedVersion>,
        state: Revision,
        see: impl FnOnce() -> Result<Selectable, E>,
    ) -> Result<Arc<Selectable>, E> {
        let mut kept = self.selectable.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(known) = find(&kept, version, state) {
            return Ok(known);
        }
        let selectable = Arc::new(work::essential(see)?);
        if kept.len() == SELECTABLE_MAX {
            kept.remove(0);
        }
        kept.push(SeenState { version: Arc::clone(version), revision: state, selectable: Arc::clone(&selectable) });
        Ok(selectable)
    }

    /// Whether the change redefines a kind, which `compare` returns if it is not known. Callers that need it meanwhile
    /// wait for it.
    pub fn redefines(&self, compare: impl FnOnce() -> bool) -> bool {
        *self.redefines.get_or_init(|| work::essential(compare))
    }

    /// Drops what selectors have seen. Does not block.
    pub(super) fn forget(&self) {
        match self.selectable.try_lock() {
            Ok(mut kept) => *kept = Vec::new(),
            Err(TryLockError::Poisoned(poisoned)) => *poisoned.into_inner() = Vec::new(),
            Err(TryLockError::WouldBlock) => {}
        }
    }
}

fn find(kept: &[SeenState], version: &Arc<ServedVersion>, state: Revision) -> Option<Arc<Selectable>> {
    let found = kept.iter().find(|seen| Arc::ptr_eq(&seen.version, version) && seen.revision == state);
    found.map(|seen| Arc::clone(&seen.selectable))
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::*;
    use crate::author::DefinedKind;
    use crate::value::yaml;

    fn version() -> Arc<ServedVersion> {
        let definition = "
            apiVersion: apiextensions.k8s.io/v1
            kind: CustomResourceDefinition
            metadata: {name: ships.harbour.example.com}
            spec:
              group: harbour.example.com
              scope: Cluster
              names: {plural: ships, singular: ship, kind: Ship, listKind: ShipList}
              versions:
                - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
        ";
        let definition = yaml::decode(definition.as_bytes()).expect("it is YAML");
        Arc::clone(&DefinedKind::new(&definition).expect("it defines a kind").versions[0])
    }

    #[test]
    fn long_texts_are_compared_by_their_digests() {
        let [short, long] = [TEXT_BYTES_MAX, TEXT_BYTES_MAX + 1].map(|bytes| "x".repeat(bytes));
        let other = format!("{}y", &long[1..]);
        for text in ["", &short, &long, &other] {
            for compared in ["", &short, &long, &other] {
                assert_eq!(SelectableText::of(text).is(compared), text == compared);
                assert_eq!(SelectableText::of(text) == SelectableText::of(compared), text == compared);
            }
        }
        assert!(matches!(SelectableText::of(&short), SelectableText::Whole(_)));
        assert!(matches!(SelectableText::of(&long), SelectableText::Digest(_)));
    }
    #[test]
    fn a_state_is_looked_at_once_in_each_version_until_that_is_forgotten() {
        let versions = [version(), version()];
        let (findings, looks) = (ChangeFindings::default(), std::cell::Cell::new(0));
        let look = |at: usize, state: i64| {
            let see = || {
                looks.set(looks.get() + 1);
                Ok::<_, Infallible>(Selectable { labels: Value::Null, fields: vec![SelectableText::of("a")] })
            };
            let Ok(seen) = findings.selectable_or(&versions[at], Revision::new(state), see);
            assert_eq!(seen.fields, [SelectableText::of("a")]);
            looks.get()
        };
        assert_eq!([look(0, 1), look(0, 1), look(0, 2), look(1, 1), look(1, 1), look(0, 2)], [1, 1, 2, 3, 3, 3]);
        assert!(findings.selectable(&versions[0], Revision::new(2)).is_some());
        findings.forget();
        assert!(findings.selectable(&versions[0], Revision::new(2)).is_none());
        assert_eq!([look(0, 2), look(0, 2)], [4, 4], "what is old is kept again for those that are behind");
    }

    #[test]
    fn a_failure_is_not_kept() {
        let (findings, version, state) = (ChangeFindings::default(), version(), Revision::new(1));
        assert!(matches!(findings.selectable_or(&version, state, || Err("broken")), Err("broken")));
        assert!(findings.selectable(&version, state).is_none());
    }
}
