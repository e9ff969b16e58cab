//! What admission policies and webhook configurations take in memory while they are in force, and how reading many of
//! them goes on after a request that ended.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::admission::webhooks::{Configuration, WebhookKind};
use crate::meta::minor::Minor;
use crate::policy::{Mutating, Policy, Validating};
use crate::value::Value;

/// Where they are stored.
pub(super) const GROUP: &str = "admissionregistration.k8s.io";
/// What one takes beside its expressions, as a multiple of its text.
const TEXT_COPIES: usize = 4;
/// What it takes with its expressions, about.
const COMPILED_COPIES: usize = 40;

/// About how much memory a policy takes.
pub(super) fn bytes_of_policy<P: Policy>(object: &Value, policy: &P) -> usize {
    bytes_of_text(object, "spec") + policy.expression_bytes()
}

/// About how much memory a webhook configuration takes.
pub(super) fn bytes_of_webhooks(object: &Value, configuration: &Configuration) -> usize {
    bytes_of_text(object, "webhooks") + configuration.expression_bytes()
}

/// About how much memory a binding takes.
pub(super) fn bytes_of_binding(object: &Value) -> usize {
    bytes_of_text(object, "spec")
}

/// How much memory an object takes while it is in force, if it is an admission policy, a binding of one or a webhook
/// configuration; 0 for other objects. One whose text alone would take more than `bytes_max` is not compiled for it.
pub(super) fn bytes_in_force(
    (group, plural): (&str, &str),
    object: &Value,
    (minor, bytes_max): (Minor, usize),
) -> usize {
    const WEBHOOKS: [&str; 2] = [WebhookKind::Mutating.plural(), WebhookKind::Validating.plural()];
    match plural {
        _ if group != GROUP => 0,
        Validating::BINDINGS | Mutating::BINDINGS => bytes_of_binding(object),
        _ if (size_of(object, "spec") + size_of(object, "webhooks")) * COMPILED_COPIES > bytes_max => usize::MAX,
        Validating::POLICIES => bytes_of_policy(object, &Validating::decode(object, minor)),
        Mutating::POLICIES => bytes_of_policy(object, &Mutating::decode(object, minor)),
        _ if WEBHOOKS.contains(&plural) => bytes_of_webhooks(object, &Configuration::decode(object)),
        _ => 0,
    }
}

fn bytes_of_text(object: &Value, field: &str) -> usize {
    size_of(object, field) * TEXT_COPIES
}

fn size_of(object: &Value, field: &str) -> usize {
    object.get(field).map_or(0, Value::size_bytes)
}

/// What was read, by name, by requests that ended before all was: the next one goes on.
pub(super) struct Begun<T>(Mutex<HashMap<Arc<str>, T>>);

impl<T> Default for Begun<T> {
    fn default() -> Self {
        Begun(Mutex::default())
    }
}

impl<T: Clone> Begun<T> {
    /// What was read under a name, if it is `wanted`.
    pub fn get(&self, name: &str, wanted: impl FnOnce(&T) -> bool) -> Option<T> {
        self.lock().get(name).filter(|known| wanted(known)).cloned()
    }

    pub fn add(&self, name: &Arc<str>, read: &T) {
        self.lock().insert(Arc::clone(name), read.clone());
    }

    /// All was read.
    pub fn clear(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, HashMap<Arc<str>, T>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
