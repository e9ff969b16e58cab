//! Fields of features: they are dropped from what clients write while the feature's gate is disabled, unless the object
//! had one of them before.
//!
//! A field is named by its path: `*` stands for every item of a list or every value of a map, `CONTAINERS` for every
//! list of containers or of their statuses. The field before a `?` is dropped as well if it ends up empty.
//!
//! Source: the `dropDisabledFields` of Kubernetes' strategies.

use crate::meta::gate::Gate;
use crate::meta::minor::Minor;
use crate::value::Value;
use crate::work;

/// The fields of a feature. One of them in use keeps them all.
pub struct Feature {
    /// They are there while it is open.
    pub gate: Gate,
    /// Where they stand.
    pub paths: &'static [&'static str],
}

impl Feature {
    /// The fields of `gate`.
    pub const fn new(gate: Gate, paths: &'static [&'static str]) -> Feature {
        Feature { gate, paths }
    }

    /// Takes the fields out of `value`.
    pub fn drop_from(&self, value: &mut Value) {
        self.paths.iter().for_each(|path| _ = remove(value, path));
    }

    /// Whether one of the fields is set.
    pub fn is_used(&self, value: &Value) -> bool {
        self.paths.iter().any(|path| is_used(value, path))
    }
}

/// Drops the fields of features whose gates are disabled from `new`, except for features that `old` uses.
pub fn drop_fields(features: &[Feature], minor: Minor, new: &mut Value, old: Option<&Value>) {
    let shut = features.iter().filter(|feature| !minor.opens(feature.gate));
    for feature in shut.filter(|feature| !old.is_some_and(|old| feature.is_used(old))) {
        feature.drop_from(new);
    }
}

/// The first step of a path, whether it goes when it is empty, and the rest of the path.
fn first_step(path: &str) -> (&str, bool, &str) {
    let (step, rest) = path.split_once('.').unwrap_or((path, ""));
    match step.strip_suffix('?') {
        Some(step) => (step, true, rest),
        None => (step, false, rest),
    }
}

/// The lists of containers in a spec, and those of their statuses.
fn container_lists() -> impl Iterator<Item = &'static str> {
    super::pod::CONTAINER_LISTS.into_iter().chain(super::pod::STATUS_LISTS)
}

fn is_used(value: &Value, path: &str) -> bool {
    work::step();
    let (step, _, rest) = first_step(path);
    match step {
        "" => !value.is_null(),
        "*" => match value {
            Value::Object(fields) => fields.iter().any(|(_, field)| is_used(field, rest)),
            _ => value.as_array().unwrap_or_default().iter().any(|item| is_used(item, rest)),
        },
        "CONTAINERS" => {
            container_lists().any(|list| value.get(list).is_some_and(|containers| is_used(containers, rest)))
        }
        name => value.get(name).is_some_and(|field| is_used(field, rest)),
    }
}

/// Whether there was something to remove.
fn remove(value: &mut Value, path: &str) -> bool {
    work::step();
    let (step, goes_when_empty, rest) = first_step(path);
    match step {
        "*" => match value {
            Value::Object(fields) => {
                fields.iter_mut().fold(false, |was_there, (_, field)| remove(field, rest) | was_there)
            }
            _ => value.as_array_mut().into_iter().flatten().fold(false, |there, item| remove(item, rest) | there),
        },
        "CONTAINERS" => container_lists().fold(false, |was_there, list| {
            value.get_mut(list).is_some_and(|containers| remove(containers, rest)) | was_there
        }),
        name => {
            let Some(fields) = value.as_object_mut() else { return false };
            if rest.is_empty() {
                return fields.remove(name).is_some();
            }
            let was_there = fields.get_mut(name).is_some_and(|field| remove(field, rest));
            if was_there
                && goes_when_empty
                && fields.get(name).and_then(Value::as_object).is_some_and(|map| map.is_empty())
            {
                fields.remove(name);
            }
            was_there
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::meta::gate::Gates;
    use crate::value::yaml;

    const FEATURES: [Feature; 2] = [
        Feature::new(Gate::WatchList, &["a.*.b", "c"]),
        Feature::new(Gate::ContainerStopSignals, &["CONTAINERS.*.lifecycle?.stopSignal"]),
    ];

    #[track_caller]
    fn check(gates: &str, new: &str, old: &str, expect: &str) {
        let read = |text: &str| yaml::decode(text.as_bytes()).expect("the test is YAML");
        let mut new = read(new);
        let minor = Minor::NEWEST.with_gates(Gates::parse(gates, Minor::NEWEST).expect("the test is valid"));
        drop_fields(&FEATURES, minor, &mut new, Some(&read(old)));
        assert_eq!(new, read(expect));
    }

    #[test]
    fn fields_go_with_their_gate_unless_one_was_in_use() {
        let all = "{a: [{b: 1, d: 2}, {b: 3}], c: 4, e: 5}";
        check("WatchList=true", all, "{}", all);
        check("WatchList=false", all, "{}", "{a: [{d: 2}, {}], e: 5}");
        check("WatchList=false", "{a: {x: {b: 1}, y: {d: 2}}}", "{}", "{a: {x: {}, y: {d: 2}}}");
        check("WatchList=false", all, "{c: 1}", all);
        check("WatchList=false", all, "{a: [{d: 1}, {b: 1}]}", all);
    }

    #[test]
    fn what_is_left_empty_goes_where_the_path_says_so() {
        let stop = "{containers: [{name: a, lifecycle: {stopSignal: SIGINT}}]}";
        check("", stop, "{}", "{containers: [{name: a}]}");
        check("", stop, "{initContainers: [{lifecycle: {stopSignal: SIGINT}}]}", stop);
        let beside = "{containers: [{lifecycle: {stopSignal: SIGINT, preStop: {}}}, {lifecycle: {}}]}";
        check("", beside, "{}", "{containers: [{lifecycle: {preStop: {}}}, {lifecycle: {}}]}");
    }
}
