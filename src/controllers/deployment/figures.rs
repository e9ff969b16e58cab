//! The arithmetic of rolling updates: how many replicas each ReplicaSet of a Deployment must have.
//!
//! Source: `pkg/controller/deployment` and its `util`, release 1.37.

use crate::controllers::amounts::amount_of;
use crate::controllers::client::int_at;
use crate::value::Value;

/// The Deployment's replicas when the ReplicaSet was last scaled.
pub(super) const DESIRED: &str = "deployment.kubernetes.io/desired-replicas";
pub(super) const MAX: &str = "deployment.kubernetes.io/max-replicas";

/// The numbers that a Deployment asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Wanted {
    pub replicas: i64,
    /// How many more there may be.
    pub surge: i64,
    /// How many of them need not be available.
    pub unavailable: i64,
}

impl Wanted {
    pub fn of(deployment: &Value) -> Self {
        let replicas = int_at(deployment, &["spec", "replicas"]);
        if deployment.str_at(&["spec", "strategy", "type"]) != "RollingUpdate" {
            return Wanted { replicas, surge: 0, unavailable: 0 };
        }
        let rolling = |field| deployment.at(&["spec", "strategy", "rollingUpdate", field]);
        let surge = amount_of(rolling("maxSurge"), replicas, true);
        let unavailable = amount_of(rolling("maxUnavailable"), replicas, false);
        // If both were zero, nothing would ever change.
        let unavailable = if surge == 0 && unavailable == 0 { 1 } else { unavailable };
        Wanted { replicas, surge, unavailable: unavailable.min(replicas) }
    }

    pub fn max(self) -> i64 {
        self.replicas + self.surge
    }

    pub fn min_available(self) -> i64 {
        self.replicas - self.unavailable
    }
}

pub(super) fn replicas(set: &Value) -> i64 {
    int_at(set, &["spec", "replicas"])
}

pub(super) fn available(set: &Value) -> i64 {
    int_at(set, &["status", "availableReplicas"])
}

pub(super) fn sum<'s>(sets: impl IntoIterator<Item = &'s Value>, count: fn(&Value) -> i64) -> i64 {
    sets.into_iter().map(count).sum()
}

/// How many replicas the new ReplicaSet must have; `new` is how many it has, `all` how many all have.
pub(super) fn of_new(wanted: Wanted, is_rolling: bool, new: i64, all: i64) -> i64 {
    if !is_rolling {
        return wanted.replicas;
    }
    if new > wanted.replicas {
        return wanted.replicas;
    }
    let room = wanted.max() - all;
    if room <= 0 { new } else { new + room.min(wanted.replicas - new) }
}

/// How many replicas each of the old ReplicaSets must have; the oldest come first.
///
/// First the unavailable ones are removed, then as many as may be unavailable.
pub(super) fn of_old(wanted: Wanted, new: Option<&Value>, old: &[Value]) -> Vec<i64> {
    let mut sizes: Vec<i64> = old.iter().map(replicas).collect();
    let new_unavailable = new.map_or(0, |new| replicas(new) - available(new));
    let all = sizes.iter().sum::<i64>() + new.map_or(0, replicas);
    let spare = all - wanted.min_available() - new_unavailable;
    if spare <= 0 {
        return sizes;
    }
    let mut gone = 0;
    for (size, set) in sizes.iter_mut().zip(old) {
        let unhealthy = (*size - available(set)).max(0).min(spare - gone);
        *size -= unhealthy;
        gone += unhealthy;
    }
    let available = sum(old.iter().chain(new), available);
    let mut left = (available - wanted.min_available()).max(0);
    for size in &mut sizes {
        let taken = left.min(*size);
        *size -= taken;
        left -= taken;
    }
    sizes
}

/// How many replicas each of several active ReplicaSets must have after a Deployment was scaled: in proportion.
///
/// The rounding remainder goes to the largest.
pub(super) fn in_proportion(wanted: Wanted, total: i64, sets: &[Value]) -> Vec<i64> {
    let allowed = if wanted.replicas > 0 { wanted.max() } else { 0 };
    let to_add = allowed - sum(sets, replicas);
    let mut order: Vec<usize> = (0..sets.len()).collect();
    // Among those of the same size, newer ones grow first and older ones shrink first.
    order.sort_by_key(|at| {
        let created = sets[*at].str_at(&["metadata", "creationTimestamp"]).to_owned();
        (std::cmp::Reverse(replicas(&sets[*at])), created)
    });
    if to_add > 0 {
        order.sort_by(|one, other| {
            let created = |at: &usize| sets[*at].str_at(&["metadata", "creationTimestamp"]);
            replicas(&sets[*other]).cmp(&replicas(&sets[*one])).then(created(other).cmp(created(one)))
        });
    }
    let mut sizes: Vec<i64> = sets.iter().map(replicas).collect();
    let mut added = 0;
    for at in &order {
        if to_add == 0 || sizes[*at] == 0 || to_add == added {
            continue;
        }
        let fraction = fraction_of(wanted, total, &sets[*at]);
        let left = to_add - added;
        let share = if to_add > 0 { fraction.min(left) } else { fraction.max(left) };
        sizes[*at] += share;
        added += share;
    }
    if let Some(largest) = order.first().filter(|_| to_add != 0) {
        sizes[*largest] = (sizes[*largest] + to_add - added).max(0);
    }
    sizes
}

/// By how much a ReplicaSet grows or shrinks, to keep its share of the total.
fn fraction_of(wanted: Wanted, total: i64, set: &Value) -> i64 {
    let size = replicas(set);
    if wanted.replicas == 0 {
        return -size;
    }
    let before = annotated(set, MAX).filter(|before| *before > 0).unwrap_or(total);
    if before == 0 {
        return 0;
    }
    let exact = size as f64 * wanted.max() as f64 / before as f64;
    exact.round() as i64 - size
}

/// The number in an annotation.
pub(super) fn annotated(object: &Value, name: &str) -> Option<i64> {
    object.at(&["metadata", "annotations", name]).and_then(Value::as_str).and_then(|text| text.parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn read(text: &str) -> Value {
        yaml::decode(text.as_bytes()).expect("YAML")
    }

    fn wanted(replicas: i64, surge: &str, unavailable: &str) -> Wanted {
        Wanted::of(&read(&format!(
            "spec: {{replicas: {replicas}, strategy: {{type: RollingUpdate, rollingUpdate: {{maxSurge: {surge}, maxUnavailable: {unavailable}}}}}}}"
        )))
    }

    fn set(size: i64, available: i64) -> Value {
        read(&format!("spec: {{replicas: {size}}}\nstatus: {{availableReplicas: {available}}}"))
    }

    #[test]
    fn surge_is_rounded_up_and_what_may_be_missing_down() {
        let of = |replicas, surge: &str, unavailable: &str| {
            let Wanted { surge, unavailable, .. } = wanted(replicas, surge, unavailable);
            (surge, unavailable)
        };
        assert_eq!(of(3, "25%", "25%"), (1, 0));
        assert_eq!(of(10, "25%", "25%"), (3, 2));
        assert_eq!(of(3, "0", "10%"), (0, 1));
        assert_eq!(of(2, "5", "5"), (5, 2));
    }

    #[test]
    fn a_new_set_grows_as_far_as_there_is_room() {
        let three = wanted(3, "1", "0");
        let of_new = |new, all| of_new(three, true, new, all);
        assert_eq!([of_new(0, 3), of_new(1, 4), of_new(1, 3), of_new(5, 5), of_new(0, 0)], [1, 1, 2, 3, 3]);
        assert_eq!(super::of_new(three, false, 0, 9), 3);
    }

    #[test]
    fn old_sets_shrink_as_far_as_enough_are_available() {
        let check = |wanted: Wanted, new: Option<Value>, old: &[Value], expected: &[i64]| {
            assert_eq!(of_old(wanted, new.as_ref(), old), expected, "{new:?} {old:?}");
        };
        let three = wanted(3, "1", "0");
        check(three, Some(set(1, 0)), &[set(3, 3)], &[3]);
        check(three, Some(set(1, 1)), &[set(3, 3)], &[2]);
        // Replicas that never became available are removed first.
        check(three, Some(set(1, 0)), &[set(1, 0), set(3, 3)], &[0, 3]);
        check(wanted(10, "3", "2"), Some(set(3, 0)), &[set(10, 10)], &[8]);
        check(wanted(10, "3", "2"), Some(set(5, 5)), &[set(8, 8)], &[3]);
        check(three, None, &[set(3, 3)], &[3]);
    }

    #[test]
    fn scaling_keeps_the_proportions_of_a_rollout() {
        let set = |size: i64, max: i64, created: i64| {
            read(&format!(
                "metadata: {{creationTimestamp: '{created}', annotations: {{{MAX}: '{max}'}}}}\nspec: {{replicas: {size}}}"
            ))
        };
        let scale = |replicas, sets: &[Value]| in_proportion(wanted(replicas, "3", "2"), 13, sets);
        // The example of the documentation: 8 and 5 of 10, scaled to 15.
        assert_eq!(scale(15, &[set(8, 13, 1), set(5, 13, 2)]), [11, 7]);
        assert_eq!(scale(5, &[set(8, 13, 1), set(5, 13, 2)]), [5, 3]);
        assert_eq!(scale(0, &[set(8, 13, 1), set(5, 13, 2)]), [0, 0]);
        assert_eq!(scale(10, &[set(8, 13, 1), set(5, 13, 2)]), [8, 5]);
    }
}
