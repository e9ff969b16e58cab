//! The servers that the tests of a process share: one for each set of options, and what is prepared in it. They end with the
//! process.

use std::any::TypeId;
use std::collections::HashMap;
use std::hash::Hash;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock, Mutex, OnceLock, PoisonError};

use crate::{ControlPlane, Options};

/// Servers by what they were started with, and by the folder that paths are seen from.
static SERVERS: LazyLock<Shared<(Options, Option<PathBuf>)>> = LazyLock::new(Shared::default);
/// Prepared ones, by what prepared them in which server.
static PREPARED: LazyLock<Shared<(Options, TypeId)>> = LazyLock::new(Shared::default);

/// Control planes that are begun once.
struct Shared<K>(Mutex<HashMap<K, Arc<OnceLock<ControlPlane>>>>);

impl<K> Default for Shared<K> {
    fn default() -> Self {
        Shared(Mutex::default())
    }
}

impl<K: Eq + Hash> Shared<K> {
    /// What has this key, which is begun by whoever asks first. Where that panics, the next one tries again.
    fn get(&self, key: K, begin: impl FnOnce() -> ControlPlane) -> ControlPlane {
        let place = Arc::clone(self.0.lock().unwrap_or_else(PoisonError::into_inner).entry(key).or_default());
        place.get_or_init(begin).clone()
    }
}

/// The server with these options.
pub(crate) fn server(options: &Options, start: impl FnOnce() -> ControlPlane) -> ControlPlane {
    SERVERS.get((options.clone(), std::env::current_dir().ok()), start)
}

/// What `F` has prepared with these options.
pub(crate) fn prepared<F: 'static>(options: &Options, prepare: impl FnOnce() -> ControlPlane) -> ControlPlane {
    PREPARED.get((options.clone(), TypeId::of::<F>()), prepare)
}
