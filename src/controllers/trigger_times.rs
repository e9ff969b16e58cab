//! The time of the change that caused the last write of endpoints: the annotation
//! `endpoints.kubernetes.io/last-change-trigger-time`.
//!
//! It is the earliest new time at which a pod became ready or unready; for a new service, its creation time. Endpoints
//! that are written for another reason have none.
//!
//! Source: `TriggerTimeTracker` of `k8s.io/endpointslice/util` 0.37.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use jiff::Timestamp;

use super::client::{key_of, time_at, written};
use super::services::Member;
use crate::value::Value;

const ANNOTATION: &str = "endpoints.kubernetes.io/last-change-trigger-time";

/// The times of each service that were seen.
#[derive(Default)]
pub(super) struct TriggerTimes(Mutex<HashMap<String, SeenTimes>>);

#[derive(Default)]
struct SeenTimes {
    service: Option<Timestamp>,
    pods: HashMap<String, Timestamp>,
}

impl TriggerTimes {
    fn seen(&self) -> MutexGuard<'_, HashMap<String, SeenTimes>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets a service that is gone.
    pub fn forget(&self, key: &str) {
        self.seen().remove(key);
    }

    pub fn forget_all(&self) {
        self.seen().clear();
    }

    /// The time of the first change since a service was last handled; its changes then count as seen.
    pub fn next(&self, service: &Value, members: &[Member]) -> Option<Timestamp> {
        let made = time_at(service, &["metadata", "creationTimestamp"]);
        let pods = members.iter().filter_map(|it| Some((it.target.str_at(&["name"]).to_owned(), it.turned?)));
        let now = SeenTimes { service: made, pods: pods.collect() };
        let mut seen = self.seen();
        let Some(before) = seen.get(&key_of(service)) else {
            seen.insert(key_of(service), now);
            return made;
        };
        let is_new = |(name, time): &(&String, &Timestamp)| before.pods.get(*name).is_none_or(|known| *time > known);
        let of_pods = now.pods.iter().filter(is_new).map(|(_, time)| *time);
        let earliest = of_pods.chain(made.filter(|made| before.service.is_none_or(|known| *made > known))).min();
        seen.insert(key_of(service), now);
        earliest
    }
}

/// Sets the annotation with the time.
pub(super) fn note(object: &mut Value, time: Option<Timestamp>) {
    let metadata = object.make_object().entry("metadata").make_object();
    if let Some(time) = time {
        metadata.entry("annotations").make_object().insert(ANNOTATION, written(time));
        return;
    }
    let Some(annotations) = metadata.get_mut("annotations").map(Value::make_object) else { return };
    annotations.remove(ANNOTATION);
    if annotations.is_empty() {
        metadata.remove("annotations");
    }
}

#[cfg(test)]
mod tests {
    use super::super::services::tests::{a_member, read};
    use super::*;

    #[test]
    fn a_change_has_the_time_of_what_it_was_made_for() {
        let service =
            read("metadata: {name: s, namespace: d, creationTimestamp: '2026-01-01T00:00:00Z'}\nspec: {ports: []}");
        let member = |name: &str, second: i64| {
            let mut member = a_member(&service, name, "10.0.0.1", true).expect("it has an address");
            member.turned = Timestamp::from_second(second).ok();
            member
        };
        let times = TriggerTimes::default();
        let next = |members: &[Member]| times.next(&service, members).map(Timestamp::as_second);
        // A service that is new.
        assert_eq!(next(&[member("a", 1)]), Some(1_767_225_600));
        assert_eq!(next(&[member("a", 1)]), None);
        assert_eq!(next(&[member("a", 9), member("b", 7)]), Some(7));
        assert_eq!(next(&[member("b", 7)]), None);
        times.forget("d/s");
        assert_eq!(next(&[]), Some(1_767_225_600));
    }

    #[test]
    fn what_was_written_for_another_reason_has_none() {
        let mut object = read("metadata: {name: s}");
        note(&mut object, Timestamp::from_second(0).ok());
        assert_eq!(object.str_at(&["metadata", "annotations", ANNOTATION]), "1970-01-01T00:00:00Z");
        note(&mut object, None);
        assert_eq!(object, read("metadata: {name: s}"));
    }
}
