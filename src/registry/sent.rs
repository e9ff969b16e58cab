//! Objects that are sent to a part of another and not stored: a Binding, an Eviction.

use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use crate::kinds::Kind;

use super::{Resource, Target, built_in};

type Made = Vec<(&'static Kind, Arc<Resource>)>;

/// What was made of the kinds, each when it was first sent.
static MADE: LazyLock<Mutex<Made>> = LazyLock::new(Mutex::default);

/// The kind, as the verbs take it.
fn resource(kind: &'static Kind) -> Arc<Resource> {
    let mut made = MADE.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some((_, resource)) = made.iter().find(|(known, _)| std::ptr::eq(*known, kind)) {
        return Arc::clone(resource);
    }
    let resource = Arc::new(built_in::make(kind, &[kind]));
    made.push((kind, Arc::clone(&resource)));
    resource
}

/// The object of `target`, as a target of the kind that is sent.
pub(super) fn as_sent(target: &Target, kind: &'static Kind) -> Target {
    let resource = resource(kind);
    let version = Arc::clone(&resource.versions[0]);
    Target { resource, version, ..target.clone() }
}
