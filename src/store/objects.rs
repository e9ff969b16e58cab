//! The objects of a collection by key, each together with the signature of its labels once that is known.

use std::ops::Deref;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use imbl::OrdMap;

use super::{Signature, Stored};

/// The objects of a collection, by key.
pub(super) type Objects = OrdMap<Arc<str>, Held>;

/// Objects as a database returns them, by key.
pub(super) fn by_key(objects: Vec<impl Into<Arc<Stored>>>) -> Objects {
    let held = |stored: Arc<Stored>| (Arc::clone(&stored.key), Held::from(stored));
    objects.into_iter().map(|stored| held(stored.into())).collect()
}

/// An object in the map of its collection, with the signature of its labels once that is known.
#[derive(Debug)]
pub(super) struct Held {
    stored: Arc<Stored>,
    /// The highest bit is set if it is known.
    signature: AtomicU64,
}

impl Held {
    const KNOWN: u64 = 1 << 63;

    /// Whether the object may have all labels of `signature`.
    pub fn may_have(&self, signature: Signature) -> bool {
        signature == Signature::NONE || self.signature().may_hold(signature)
    }

    fn signature(&self) -> Signature {
        let bits = match self.signature.load(Ordering::Relaxed) {
            0 => {
                let Signature(bits) = Signature::of(self.stored.labels().map(|(name, value)| (name, Some(value))));
                self.signature.store(bits | Self::KNOWN, Ordering::Relaxed);
                bits
            }
            known => known & !Self::KNOWN,
        };
        Signature(bits)
    }
}

impl Clone for Held {
    fn clone(&self) -> Self {
        let signature = AtomicU64::new(self.signature.load(Ordering::Relaxed));
        Held { stored: Arc::clone(&self.stored), signature }
    }
}

impl From<Arc<Stored>> for Held {
    fn from(stored: Arc<Stored>) -> Self {
        Held { stored, signature: AtomicU64::default() }
    }
}

impl From<Held> for Arc<Stored> {
    fn from(held: Held) -> Self {
        held.stored
    }
}

impl Deref for Held {
    type Target = Arc<Stored>;

    fn deref(&self) -> &Arc<Stored> {
        &self.stored
    }
}

/// Compares only the objects.
impl PartialEq for Held {
    fn eq(&self, other: &Self) -> bool {
        self.stored == other.stored
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::meta::selector::LabelSelector;

    fn labels() -> impl Strategy<Value = Vec<(String, String)>> {
        let text = || prop::sample::select(vec!["a", "b", "c", "d"]).prop_map(str::to_owned);
        prop::collection::btree_map(text(), text(), 0..4).prop_map(|labels| labels.into_iter().collect())
    }

    fn held(labels: &[(String, String)]) -> Held {
        let labels: Vec<String> = labels.iter().map(|(name, value)| format!(r#""{name}":"{value}""#)).collect();
        let bytes = format!(r#"{{"metadata":{{"labels":{{{}}}}}}}"#, labels.join(","));
        Arc::new(Stored::fixture("key", "uid", bytes.into_bytes())).into()
    }

    proptest! {
        #[test]
        fn what_is_selected_may_have_what_is_required(labels in labels(), terms in prop::collection::vec("[a-d](=[a-d]|!=[a-d]| in \\([a-d],[a-d]\\)|)|![a-d]", 0..3)) {
            let selector = LabelSelector::parse(&terms.join(",")).expect("it is a selector");
            let held = held(&labels);
            if selector.matches(held.sorted_labels()) {
                prop_assert!(held.may_have(Signature::required(&selector)));
                prop_assert!(held.clone().may_have(Signature::required(&selector)), "it is known now");
            }
        }
    }

    #[test]
    fn few_others_are_looked_at() {
        let named = |at: usize| [("app".to_owned(), "bench".to_owned()), ("shard".to_owned(), at.to_string())];
        let selector = LabelSelector::parse("app=bench,shard=7").expect("it is a selector");
        let required = Signature::required(&selector);
        let looked_at = (0..1_000).filter(|at| held(&named(*at)).may_have(required)).count();
        assert!((1..20).contains(&looked_at), "{looked_at} of 1000");
    }
}
