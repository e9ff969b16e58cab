//! How fast a target follows its metrics: what was recommended and done before, and what that allows now.
//!
//! Pure: the time is a parameter. Source: `pkg/controller/podautoscaler/horizontal.go`, release 1.37.

use jiff::{SignedDuration, Timestamp};

use super::super::client::int_at;
use crate::value::Value;

/// How long a lower recommendation waits, by default.
const STABLE_S: i64 = 300;
/// What a target may grow to at once, by default: this multiple of its size, and at least this number.
const GROWTH: (i64, i64) = (2, 4);

/// A number at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Sample {
    number: i64,
    at: Timestamp,
}

/// What was recommended, and by how much the target was changed.
#[derive(Debug, Default)]
pub(super) struct Memory {
    recommended: Vec<Sample>,
    added: Vec<Sample>,
    removed: Vec<Sample>,
}

/// What to do, and why.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct LimitedScale {
    pub replicas: i64,
    /// The reason and message of the condition `AbleToScale`.
    pub able: (&'static str, &'static str),
    /// Those of `ScalingLimited`, and whether it is true.
    pub limited: (bool, &'static str, &'static str),
}

const UNLIMITED: (&str, &str) = ("DesiredWithinRange", "the desired count is within the acceptable range");
const READY: (&str, &str) = ("ReadyForNewScale", "recommended size matches current size");
const STABLE_DOWN: (&str, &str) = (
    "ScaleDownStabilized",
    "recent recommendations were higher than current one, applying the highest recent recommendation",
);
const STABLE_UP: (&str, &str) = (
    "ScaleUpStabilized",
    "recent recommendations were lower than current one, applying the lowest recent recommendation",
);
const FAST_UP: (&str, &str) =
    ("ScaleUpLimit", "the desired replica count is increasing faster than the maximum scale rate");
const FAST_DOWN: (&str, &str) =
    ("ScaleDownLimit", "the desired replica count is decreasing faster than the maximum scale rate");
const TOO_MANY: (&str, &str) = ("TooManyReplicas", "the desired replica count is more than the maximum replica count");
const TOO_FEW: (&str, &str) = ("TooFewReplicas", "the desired replica count is less than the minimum replica count");

impl LimitedScale {
    /// Whether more may be allowed after some time, without any change.
    pub fn passes(&self) -> bool {
        let reasons = [self.able.0, self.limited.1];
        [STABLE_DOWN, STABLE_UP, FAST_UP, FAST_DOWN].iter().any(|(reason, _)| reasons.contains(reason))
    }
}

impl Memory {
    /// Records how many replicas there are when the target is first seen.
    pub fn begin(&mut self, current: i64, now: Timestamp) {
        if self.recommended.is_empty() {
            self.recommended.push(Sample { number: current, at: now });
        }
    }

    /// The result for `wanted` replicas, given the `spec` of the autoscaler.
    pub fn allow(&mut self, spec: &Value, current: i64, wanted: i64, now: Timestamp) -> LimitedScale {
        let (least, most) = bounds(spec);
        match spec.get("behavior").filter(|behavior| !behavior.is_null()) {
            None => {
                let stable = self.stable(wanted, now);
                let able = if stable == wanted { READY } else { STABLE_DOWN };
                settled(stable, able, by_default(current, stable, least, most))
            }
            Some(behavior) => {
                let stable = self.stable_by(behavior, current, wanted, now);
                let able = match (stable == wanted, wanted >= current) {
                    (true, _) => READY,
                    (false, true) => STABLE_UP,
                    (false, false) => STABLE_DOWN,
                };
                settled(stable, able, self.by_behavior(behavior, current, stable, (least, most), now))
            }
        }
    }

    /// Records a change of the target.
    pub fn note_change(&mut self, spec: &Value, before: i64, after: i64, now: Timestamp) {
        let Some(behavior) = spec.get("behavior").filter(|behavior| !behavior.is_null()) else { return };
        let (direction, samples) =
            if after > before { ("scaleUp", &mut self.added) } else { ("scaleDown", &mut self.removed) };
        let periods =
            behavior.items_at(&[direction, "policies"]).iter().map(|policy| int_at(policy, &["periodSeconds"]));
        let longest = periods.max().unwrap_or_default();
        samples.retain(|sample| sample.at >= before_by(now, longest));
        samples.push(Sample { number: (after - before).abs(), at: now });
    }

    /// The highest recommendation of the last minutes.
    fn stable(&mut self, wanted: i64, now: Timestamp) -> i64 {
        self.recommended.retain(|sample| sample.at >= before_by(now, STABLE_S));
        let stable = self.recommended.iter().map(|sample| sample.number).fold(wanted, i64::max);
        self.recommend(wanted, now);
        stable
    }

    /// The current number, unless all recommendations in one of the two windows are beyond it.
    fn stable_by(&mut self, behavior: &Value, current: i64, wanted: i64, now: Timestamp) -> i64 {
        let window = |direction: &str, default: i64| {
            let seconds = behavior.at(&[direction, "stabilizationWindowSeconds"]).and_then(Value::as_i64);
            before_by(now, seconds.unwrap_or(default))
        };
        let (up_from, down_from) = (window("scaleUp", 0), window("scaleDown", STABLE_S));
        let since = |from: Timestamp| self.recommended.iter().filter(move |sample| sample.at > from);
        let up = since(up_from).map(|sample| sample.number).fold(wanted, i64::min);
        let down = since(down_from).map(|sample| sample.number).fold(wanted, i64::max);
        self.recommended.retain(|sample| sample.at >= up_from.min(down_from));
        self.recommend(wanted, now);
        current.max(up).min(down)
    }

    /// A recommendation that equals the last one replaces it, and so counts for longer.
    fn recommend(&mut self, number: i64, now: Timestamp) {
        match self.recommended.last_mut() {
            Some(last) if last.number == number => last.at = now,
            _ => self.recommended.push(Sample { number, at: now }),
        }
    }

    fn by_behavior(
        &self,
        behavior: &Value,
        current: i64,
        wanted: i64,
        (least, most): (i64, i64),
        now: Timestamp,
    ) -> (i64, (&'static str, &'static str)) {
        let at_start = |policy: &Value| {
            let from = before_by(now, int_at(policy, &["periodSeconds"]));
            let sum = |samples: &[Sample]| -> i64 {
                samples.iter().filter(|sample| sample.at > from).map(|sample| sample.number).sum()
            };
            current - sum(&self.added) + sum(&self.removed)
        };
        if wanted > current {
            let up = rate(behavior.get("scaleUp"), current, i64::max, |policy| {
                let (start, value) = (at_start(policy), int_at(policy, &["value"]));
                let percent = (start as f64 * (1.0 + value as f64 / 100.0)).ceil() as i64;
                if policy.str_at(&["type"]) == "Pods" { start + value } else { percent }
            });
            let up = up.max(current);
            let (allowed, why) = if most > up { (up, FAST_UP) } else { (most, TOO_MANY) };
            if wanted > allowed {
                return (allowed, why);
            }
        } else if wanted < current {
            let down = rate(behavior.get("scaleDown"), current, i64::min, |policy| {
                let (start, value) = (at_start(policy), int_at(policy, &["value"]));
                let percent = (start as f64 * (1.0 - value as f64 / 100.0)) as i64;
                if policy.str_at(&["type"]) == "Pods" { start - value } else { percent }
            });
            let down = down.min(current);
            let (allowed, why) = if least < down { (down, FAST_DOWN) } else { (least, TOO_FEW) };
            if wanted < allowed {
                return (allowed, why);
            }
        }
        (wanted, UNLIMITED)
    }
}

/// The minimum and maximum number of replicas.
pub(super) fn bounds(spec: &Value) -> (i64, i64) {
    (spec.get("minReplicas").and_then(Value::as_i64).unwrap_or(1), int_at(spec, &["maxReplicas"]))
}

fn settled(
    stable: i64,
    able: (&'static str, &'static str),
    allowed: (i64, (&'static str, &'static str)),
) -> LimitedScale {
    let (replicas, (reason, message)) = allowed;
    LimitedScale { replicas, able, limited: (replicas != stable, reason, message) }
}

fn by_default(current: i64, wanted: i64, least: i64, most: i64) -> (i64, (&'static str, &'static str)) {
    let up = (GROWTH.0 * current).max(GROWTH.1);
    let (allowed, why) = if most > up { (up, FAST_UP) } else { (most, TOO_MANY) };
    match wanted {
        _ if wanted < least => (least, TOO_FEW),
        _ if wanted > allowed => (allowed, why),
        _ => (wanted, UNLIMITED),
    }
}

/// The limit from the policies of one direction: `further` picks the larger change of two, which counts unless the
/// policies select the smallest one.
fn rate(rules: Option<&Value>, current: i64, further: fn(i64, i64) -> i64, proposed: impl Fn(&Value) -> i64) -> i64 {
    let Some(rules) = rules else { return current };
    let proposals = rules.items_at(&["policies"]).iter().map(proposed);
    let nearer = |one: i64, other: i64| if further(one, other) == one { other } else { one };
    let found = match rules.str_at(&["selectPolicy"]) {
        "Disabled" => None,
        "Min" => proposals.reduce(nearer),
        _ => proposals.reduce(further),
    };
    found.unwrap_or(current)
}

fn before_by(now: Timestamp, seconds: i64) -> Timestamp {
    now.checked_sub(SignedDuration::from_secs(seconds)).unwrap_or(Timestamp::MIN)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    fn at(seconds: i64) -> Timestamp {
        Timestamp::from_second(1_767_225_600 + seconds).expect("a time")
    }

    /// What becomes of what is wanted at a time, in seconds; what is allowed is done.
    #[track_caller]
    fn check(spec: &str, current: i64, steps: &[(i64, i64, i64, &str)]) {
        let spec = yaml::decode(spec.as_bytes()).expect("YAML");
        let (mut memory, mut current) = (Memory::default(), current);
        memory.begin(current, at(0));
        for (seconds, wanted, expected, reason) in steps {
            let allowed = memory.allow(&spec, current, *wanted, at(*seconds));
            let reasons = if allowed.able.0 == READY.0 { allowed.limited.1 } else { allowed.able.0 };
            assert_eq!((allowed.replicas, reasons), (*expected, *reason), "at {seconds} s");
            assert_eq!(allowed.limited.0, allowed.limited.1 != UNLIMITED.0);
            if allowed.replicas != current {
                memory.note_change(&spec, current, allowed.replicas, at(*seconds));
                current = allowed.replicas;
            }
        }
    }

    #[test]
    fn without_a_behavior_a_target_doubles_and_shrinks_after_five_minutes() {
        check(
            "{minReplicas: 2, maxReplicas: 20}",
            2,
            &[
                (0, 2, 2, "DesiredWithinRange"),
                (15, 30, 4, "ScaleUpLimit"),
                (30, 30, 8, "ScaleUpLimit"),
                (45, 30, 16, "ScaleUpLimit"),
                (60, 30, 20, "TooManyReplicas"),
                (90, 3, 20, "ScaleDownStabilized"),
                (359, 3, 20, "ScaleDownStabilized"),
                (361, 3, 3, "DesiredWithinRange"),
                (700, 1, 2, "TooFewReplicas"),
            ],
        );
    }

    #[test]
    fn windows_hold_back_in_both_directions() {
        check(
            "{maxReplicas: 50, behavior: {scaleUp: {stabilizationWindowSeconds: 60, selectPolicy: Max, policies: [{type: Percent, value: 900, \
             periodSeconds: 15}]}, scaleDown: {stabilizationWindowSeconds: 30, selectPolicy: Max, policies: [{type: Percent, value: 100, periodSeconds: 15}]}}}",
            4,
            &[
                (10, 10, 4, "ScaleUpStabilized"),
                (59, 10, 4, "ScaleUpStabilized"),
                (61, 10, 10, "DesiredWithinRange"),
                (70, 2, 10, "ScaleDownStabilized"),
                (95, 2, 2, "DesiredWithinRange"),
            ],
        );
    }

    #[test]
    fn policies_bound_what_changes_in_a_period() {
        let policies =
            "policies: [{type: Pods, value: 2, periodSeconds: 60}, {type: Percent, value: 50, periodSeconds: 60}]";
        let up = |select: &str| {
            format!(
                "{{maxReplicas: 50, behavior: {{scaleUp: {{stabilizationWindowSeconds: 0, selectPolicy: {select}, {policies}}}}}}}"
            )
        };
        check(
            &up("Max"),
            10,
            &[(1, 40, 15, "ScaleUpLimit"), (20, 40, 15, "ScaleUpLimit"), (62, 40, 23, "ScaleUpLimit")],
        );
        check(&up("Min"), 10, &[(1, 40, 12, "ScaleUpLimit"), (20, 40, 12, "ScaleUpLimit")]);
        check(&up("Disabled"), 10, &[(1, 40, 10, "ScaleUpLimit")]);
        let down = format!(
            "{{maxReplicas: 50, behavior: {{scaleDown: {{stabilizationWindowSeconds: 0, selectPolicy: Max, {policies}}}}}}}"
        );
        check(&down, 20, &[(1, 1, 10, "ScaleDownLimit"), (30, 1, 10, "ScaleDownLimit"), (62, 1, 5, "ScaleDownLimit")]);
        let slow = "{maxReplicas: 9, behavior: {scaleDown: {stabilizationWindowSeconds: 0, selectPolicy: Min, policies: [{type: Pods, value: 1, periodSeconds: 60}]}}}";
        check(slow, 5, &[(1, 1, 4, "ScaleDownLimit"), (60, 1, 4, "ScaleDownLimit"), (62, 1, 3, "ScaleDownLimit")]);
    }
}
