//! Rules and selectors that can't let anything pass.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::crd::ServedVersion;
use crate::kinds::{self, Action};
use crate::types;
use crate::value::Value;

/// The parts of a `MatchResources` that nothing passes, each with its field and why so.
pub(super) fn dead_parts(resources: &Value, served: &[Arc<ServedVersion>], mutates: bool) -> Vec<(String, String)> {
    let mut dead = Vec::new();
    for (at, rule) in resources.items_at(&["resourceRules"]).iter().enumerate() {
        let why = Dead { served, mutates }.reason(rule);
        let excluded = resources.items_at(&["excludeResourceRules"]).iter();
        let why = why.or_else(|| excluded.into_iter().find_map(|other| covers(other, rule)));
        dead.extend(why.map(|why| (format!("resourceRules[{at}]"), why)));
    }
    for name in ["namespaceSelector", "objectSelector"] {
        dead.extend(resources.get(name).and_then(contradiction).map(|why| (name.to_owned(), why)));
    }
    dead
}

/// The rules of a binding that let nothing pass which `policy`, a `MatchResources`, matches, each with its field.
pub(super) fn foreign_rules(binding: &Value, policy: &Value) -> Vec<String> {
    const RULES: &str = "resourceRules";
    let meets = |rule: &Value| policy.items_at(&[RULES]).iter().any(|other| overlap(rule, other));
    let rules = binding.items_at(&[RULES]).iter().enumerate();
    rules.filter(|(_, rule)| !meets(rule)).map(|(at, _)| format!("{RULES}[{at}]")).collect()
}

/// Whether a request may be matched by both rules. Their versions are not looked at, nor the groups of events: what is sent in
/// one may be matched in another.
fn overlap(rule: &Value, other: &Value) -> bool {
    let share = |field: &str, is_one: fn(&str, &str) -> bool| {
        let others = texts(other, field);
        texts(rule, field).iter().any(|text| others.iter().any(|other| is_one(text, other)))
    };
    let names = [rule, other].map(|rule| texts(rule, "resourceNames"));
    let share_names = names.iter().any(Vec::is_empty) || share("resourceNames", |name, other| name == other);
    let are_events = [rule, other].iter().any(|rule| texts(rule, "resources").contains(&"events"));
    share("operations", may_be)
        && (are_events || share("apiGroups", may_be))
        && share("resources", may_be_one)
        && share_names
        && may_be(scope(rule), scope(other))
}

fn may_be(text: &str, other: &str) -> bool {
    text == other || text == "*" || other == "*"
}

fn scope(rule: &Value) -> &str {
    Some(rule.str_at(&["scope"])).filter(|scope| !scope.is_empty()).unwrap_or("*")
}

/// Whether two names of resources, with their parts, may stand for the same.
fn may_be_one(name: &str, other: &str) -> bool {
    let (plural, part) = name.split_once('/').unwrap_or((name, ""));
    let (other_plural, other_part) = other.split_once('/').unwrap_or((other, ""));
    may_be(plural, other_plural) && may_be(part, other_part)
}

fn texts<'r>(rule: &'r Value, field: &str) -> Vec<&'r str> {
    rule.items_at(&[field]).iter().filter_map(Value::as_str).collect()
}

struct Dead<'s> {
    served: &'s [Arc<ServedVersion>],
    mutates: bool,
}

impl Dead<'_> {
    /// Why a rule matches nothing; `None` where it may match something.
    fn reason(&self, rule: &Value) -> Option<String> {
        let operations = texts(rule, "operations");
        if self.mutates && !operations.is_empty() && operations.iter().all(|operation| *operation == "DELETE") {
            return Some("nothing is mutated that is deleted".to_owned());
        }
        let mut first = None;
        for group in texts(rule, "apiGroups") {
            for resource in texts(rule, "resources") {
                let why = self.resource(group, resource, rule, &operations)?;
                first.get_or_insert(why);
            }
        }
        first
    }

    /// Why a resource is never matched; `None` where it may be.
    fn resource(&self, group: &str, resource: &str, rule: &Value, operations: &[&str]) -> Option<String> {
        let (plural, subresource) = resource.split_once('/').unwrap_or((resource, ""));
        if group == "*" || plural == "*" {
            return None;
        }
        let known: Vec<&Arc<ServedVersion>> =
            self.served.iter().filter(|known| known.group == group && known.names.plural == plural).collect();
        let Some(any) = known.first() else {
            // Of other groups nobody knows all that there is.
            let is_closed = types::knows_group(group) && kinds::find(group, plural).is_none();
            return is_closed.then(|| format!("nothing is served as `{plural}` in `{group}`"));
        };
        if kinds::is_exempt_from_policies(any) {
            return Some(format!("no policy is asked about `{plural}`"));
        }
        let versions = texts(rule, "apiVersions");
        let is_version = |known: &&&Arc<ServedVersion>| versions.contains(&"*") || versions.contains(&&*known.version);
        let other_versions = kinds::of_all_minors()
            .any(|kind| kind.group == group && kind.plural == plural && versions.contains(&kind.version));
        if !known.iter().any(|known| is_version(&known)) && !other_versions {
            return Some(format!("`{plural}` in `{group}` is not served in {}", versions.join(", ")));
        }
        match (rule.str_at(&["scope"]), any.is_namespaced()) {
            ("Namespaced", false) => return Some(format!("`{plural}` is in no namespace")),
            ("Cluster", true) => return Some(format!("`{plural}` is in namespaces")),
            _ => {}
        }
        self.part(any, subresource, operations)
    }

    fn part(&self, version: &ServedVersion, subresource: &str, operations: &[&str]) -> Option<String> {
        let plural = &version.names.plural;
        let kind = kinds::find(&version.group, plural);
        let part = kind.and_then(|kind| kind.part(subresource));
        let is_there = match subresource {
            "" | "*" => true,
            "status" => version.status,
            "scale" => version.scale.is_some(),
            _ => part.is_some(),
        };
        if !is_there {
            return Some(format!("`{plural}` has no subresource `{subresource}`"));
        }
        let connects = |action: Action| {
            matches!(action, Action::Connect | Action::Proxy | Action::ConnectService | Action::ConnectNode)
        };
        let is_connected = match subresource {
            "*" => kind.is_some_and(|kind| kind.parts.iter().any(|part| connects(part.action))),
            _ => part.is_some_and(|part| connects(part.action)),
        };
        let only_connects = !operations.is_empty() && operations.iter().all(|operation| *operation == "CONNECT");
        (only_connects && !is_connected).then(|| format!("nobody connects to `{plural}`"))
    }
}

/// That a rule which is excluded covers all of `rule`.
fn covers(excluded: &Value, rule: &Value) -> Option<String> {
    let covers = |field: &str, is_in: fn(&str, &str) -> bool| {
        let wide = texts(excluded, field);
        texts(rule, field).iter().all(|narrow| wide.iter().any(|wide| is_in(narrow, wide)))
    };
    let is_same = |narrow: &str, wide: &str| wide == "*" || wide == narrow;
    let is_in = |narrow: &str, wide: &str| {
        let (plural, part) = narrow.split_once('/').unwrap_or((narrow, ""));
        let (wide_plural, wide_part) = wide.split_once('/').unwrap_or((wide, ""));
        (wide_plural == "*" || wide_plural == plural) && (wide_part == "*" || wide_part == part)
    };
    let is_covered = texts(excluded, "resourceNames").is_empty()
        && matches!(excluded.str_at(&["scope"]), "" | "*")
        && ["apiGroups", "apiVersions", "operations"].iter().all(|field| covers(field, is_same))
        && covers("resources", is_in);
    is_covered.then(|| "all of it is excluded".to_owned())
}

/// That a selector asks of a label what no value is.
fn contradiction(selector: &Value) -> Option<String> {
    let labels = selector.get("matchLabels").and_then(Value::as_object);
    let labels = labels.into_iter().flat_map(|labels| labels.iter());
    let equal = labels.filter_map(|(key, value)| Some((key, "In", vec![value.as_str()?])));
    let asked: Vec<(&str, &str, Vec<&str>)> = equal
        .chain(selector.items_at(&["matchExpressions"]).iter().map(|requirement| {
            let (key, operator) = (requirement.str_at(&["key"]), requirement.str_at(&["operator"]));
            (key, operator, texts(requirement, "values"))
        }))
        .collect();
    let keys: BTreeSet<&str> = asked.iter().map(|(key, ..)| *key).collect();
    let key = keys.into_iter().find(|key| is_impossible(&asked, key))?;
    Some(format!("no labels fit all that is asked of `{key}`"))
}

fn is_impossible(asked: &[(&str, &str, Vec<&str>)], key: &str) -> bool {
    let of = |operator: &str| -> Vec<&Vec<&str>> {
        asked
            .iter()
            .filter(|(own, own_operator, _)| *own == key && *own_operator == operator)
            .map(|all| &all.2)
            .collect()
    };
    let (allowed, forbidden) = (of("In"), of("NotIn"));
    let must_be = !allowed.is_empty() || !of("Exists").is_empty();
    let must_not_be = !of("DoesNotExist").is_empty();
    let fits = |value: &&&str| {
        allowed.iter().all(|values| values.contains(*value)) && !forbidden.iter().any(|values| values.contains(*value))
    };
    let has_value = allowed.first().is_none_or(|values| values.iter().any(|value| fits(&value)));
    (must_be && must_not_be) || !has_value
}
