//! Which objects have changed, for controllers that look at one after the other.

use std::collections::BTreeSet;

use futures_util::FutureExt as _;
use futures_util::future::select_all;
use tokio::time::timeout;

use super::RETRY_AFTER;
use crate::meta::Revision;
use crate::registry::Registry;
use crate::store::{Change, Collection, Watch};

/// Whether a change of a collection is one to act on.
type Matters = fn(&Change) -> bool;

/// The names that changes in some collections are about: the name of an object in cluster scope, the namespace of others.
pub(super) struct Keys {
    collections: Vec<(Collection, Matters)>,
    watches: Vec<(Watch, Matters)>,
}

impl Keys {
    pub fn new(collections: Vec<(Collection, Matters)>) -> Self {
        Keys { collections, watches: Vec::new() }
    }

    /// Follows the changes after a revision; false where they are gone, and everything must be looked at anew.
    pub async fn watch(&mut self, registry: &Registry, after: Revision) -> bool {
        self.watches.clear();
        for (collection, matters) in &self.collections {
            match registry.storage.watch(collection, after).await {
                Ok(watch) => self.watches.push((watch, *matters)),
                Err(_) => {
                    tokio::time::sleep(RETRY_AFTER).await;
                    return false;
                }
            }
        }
        true
    }

    /// Waits for changes and adds their names to `names`; while there are any in it already, not for long. False at the end
    /// of what can be followed.
    pub async fn next(&mut self, names: &mut BTreeSet<String>) -> bool {
        loop {
            let waiting = !names.is_empty();
            let mut nexts = Vec::with_capacity(self.watches.len());
            for (watch, matters) in &mut self.watches {
                nexts.push(next_name(watch, *matters).boxed());
            }
            let next = select_all(nexts);
            let found = match waiting {
                true => match timeout(RETRY_AFTER, next).await {
                    Ok((found, ..)) => found,
                    Err(_) => return true,
                },
                false => next.await.0,
            };
            match found {
                None => return false,
                Some(None) => {}
                Some(Some(name)) => {
                    names.insert(name);
                    return self.take_waiting(names);
                }
            }
        }
    }

    /// Adds what has come meanwhile.
    fn take_waiting(&mut self, names: &mut BTreeSet<String>) -> bool {
        for (watch, matters) in &mut self.watches {
            while let Some(next) = watch.next().now_or_never() {
                let Some(change) = next else { return false };
                names.extend(matters(&change).then(|| name_of(&change)));
            }
        }
        true
    }
}

/// The next change; without a name where it does not matter.
async fn next_name(watch: &mut Watch, matters: Matters) -> Option<Option<String>> {
    let change = watch.next().await?;
    Some(matters(&change).then(|| name_of(&change)))
}

fn name_of(change: &Change) -> String {
    let key = &change.object.key;
    key.split_once('/').map_or(&**key, |(namespace, _)| namespace).to_owned()
}
