//! Reinvocation of mutating plugins, if later ones have changed the object since.
//!
//! The whole chain runs at most twice. In the second round, plugins that call webhooks or policies only call those
//! again that request it and have not seen the latest changes.
//!
//! Source: `k8s.io/apiserver/pkg/admission/reinvocation.go`, release 1.37.

use std::collections::HashSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::value::Value;

/// The state that the first round of a request leaves for the second one.
#[derive(Default)]
pub struct Reinvocation {
    is_required: AtomicBool,
    is_second: AtomicBool,
    /// The calls of mutating webhooks.
    pub webhooks: Invocations,
    /// The calls of mutating policies.
    pub policies: Invocations,
}

impl Reinvocation {
    /// Requests a second round.
    pub fn require(&self) {
        self.is_required.store(true, Ordering::Relaxed);
    }

    /// Begins the second round, if one was requested.
    pub fn begin(&self) -> bool {
        let begins = self.is_required.load(Ordering::Relaxed);
        self.is_second.store(begins, Ordering::Relaxed);
        begins
    }

    /// Whether this is the second round.
    pub fn is_second(&self) -> bool {
        self.is_second.load(Ordering::Relaxed)
    }
}

/// The webhooks or policies that a plugin has called.
#[derive(Default)]
pub struct Invocations(Mutex<ReinvocationState>);

#[derive(Default)]
struct ReinvocationState {
    /// The names of those called since the last change, if they request to be called again.
    before: HashSet<String>,
    again: HashSet<String>,
    /// The object as the plugin left it.
    left: Option<Value>,
}

impl Invocations {
    fn with<T>(&self, act: impl FnOnce(&mut ReinvocationState) -> T) -> T {
        act(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Records that `name` was called and requests to be called again after changes.
    pub fn note(&self, name: &str) {
        self.with(|asked| _ = asked.before.insert(name.to_owned()));
    }

    /// Records that the object was changed: those called before must be called again.
    pub fn require(&self) {
        self.with(|asked| asked.again.extend(asked.before.drain()));
    }

    /// Does the same if `object` differs from how the plugin left it.
    pub fn require_if_changed(&self, object: &Value) {
        let is_changed = self.with(|asked| asked.left.as_ref() != Some(object));
        if is_changed {
            self.require();
        }
    }

    /// Whether `name` is called in this round.
    pub fn asks(&self, name: &str, round: &Reinvocation) -> bool {
        !round.is_second() || self.with(|asked| asked.again.contains(name))
    }

    /// Stores the object as the plugin leaves it, if that will be needed.
    pub fn leave(&self, object: &Value) {
        self.with(|asked| {
            if !asked.before.is_empty() {
                asked.left = Some(object.clone());
            }
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn object(number: i64) -> Value {
        crate::object! { "data" => number }
    }

    #[test]
    fn those_asked_before_a_change_are_asked_again() {
        let (round, asked) = (Reinvocation::default(), Invocations::default());
        asked.note("one");
        asked.require();
        asked.note("two");
        asked.leave(&object(1));
        round.require();
        assert!(round.begin());
        assert!(asked.asks("one", &round));
        assert!(!asked.asks("two", &round));
        asked.require_if_changed(&object(1));
        assert!(!asked.asks("two", &round));
        asked.require_if_changed(&object(2));
        assert!(asked.asks("two", &round));
    }

    #[test]
    fn without_a_change_there_is_no_second_round() {
        let (round, asked) = (Reinvocation::default(), Invocations::default());
        assert!(asked.asks("one", &round));
        asked.note("one");
        assert!(!round.begin());
    }
}
