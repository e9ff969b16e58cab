//! A single rule, and what it allows.

use super::quote_list;
use crate::auth::{Attributes, NonResourceRule, ResourceRule};
use crate::object;
use crate::value::Value;
use crate::work;

/// The wildcard that matches everything.
pub(super) const ALL: &str = "*";

/// A PolicyRule of `rbac.authorization.k8s.io/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct PolicyRule {
    pub verbs: Vec<String>,
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    /// Empty for all names.
    pub resource_names: Vec<String>,
    pub non_resource_urls: Vec<String>,
}

impl PolicyRule {
    /// The rules of a role.
    pub fn all_of(role: &Value) -> Vec<Self> {
        role.items_at(&["rules"]).iter().map(Self::decode).collect()
    }

    fn decode(rule: &Value) -> Self {
        let texts = |name: &str| {
            let items = rule.items_at(&[name]).iter();
            items.filter_map(Value::as_str).inspect(|text| work::bytes(text.len())).map(str::to_owned).collect()
        };
        PolicyRule {
            verbs: texts("verbs"),
            api_groups: texts("apiGroups"),
            resources: texts("resources"),
            resource_names: texts("resourceNames"),
            non_resource_urls: texts("nonResourceURLs"),
        }
    }

    /// Encodes the rule as a role contains it.
    pub fn encode(&self) -> Value {
        let parts = [
            ("apiGroups", &self.api_groups),
            ("nonResourceURLs", &self.non_resource_urls),
            ("resourceNames", &self.resource_names),
            ("resources", &self.resources),
        ];
        let texts = |texts: &[String]| Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect());
        let mut rule = object! { "verbs" => texts(&self.verbs) };
        for (name, values) in parts.into_iter().filter(|(_, values)| !values.is_empty()) {
            rule.make_object().insert(name, texts(values));
        }
        rule
    }

    /// The two rules that allow everything.
    pub fn full_authority() -> [Self; 2] {
        let all = || vec![ALL.to_owned()];
        [
            PolicyRule { verbs: all(), api_groups: all(), resources: all(), ..PolicyRule::default() },
            PolicyRule { verbs: all(), non_resource_urls: all(), ..PolicyRule::default() },
        ]
    }

    /// Whether the rule allows what a request asks for.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        work::steps(1 + self.verbs.len());
        match attributes {
            Attributes::Resource(wanted) => {
                work::steps(self.api_groups.len() + self.resources.len() + self.resource_names.len());
                has(&self.verbs, wanted.verb)
                    && has(&self.api_groups, wanted.group)
                    && self.resources.iter().any(|resource| names(resource, wanted.resource, wanted.subresource))
                    && (self.resource_names.is_empty() || self.resource_names.iter().any(|name| name == wanted.name))
            }
            Attributes::Path { verb, path } => {
                work::steps(self.non_resource_urls.len());
                has(&self.verbs, verb) && self.non_resource_urls.iter().any(|url| covers_url(url, path))
            }
        }
    }

    /// The approximate size of the rule when it is encoded, in bytes.
    pub(super) fn bytes(&self) -> usize {
        let lists = [&self.verbs, &self.api_groups, &self.resources, &self.resource_names, &self.non_resource_urls];
        lists.into_iter().flatten().map(|text| text.len() + 3).sum()
    }

    /// The rule for resources and the rule for non-resource paths, if it has such parts.
    pub fn split(&self) -> (Option<ResourceRule>, Option<NonResourceRule>) {
        let resource = ResourceRule {
            verbs: self.verbs.clone(),
            api_groups: self.api_groups.clone(),
            resources: self.resources.clone(),
            resource_names: self.resource_names.clone(),
        };
        let other = NonResourceRule { verbs: self.verbs.clone(), urls: self.non_resource_urls.clone() };
        ((!self.resources.is_empty()).then_some(resource), (!self.non_resource_urls.is_empty()).then_some(other))
    }

    /// Formats the rule as Kubernetes does in messages.
    pub(super) fn describe(&self) -> String {
        let parts = [
            ("APIGroups", &self.api_groups),
            ("Resources", &self.resources),
            ("NonResourceURLs", &self.non_resource_urls),
            ("ResourceNames", &self.resource_names),
            ("Verbs", &self.verbs),
        ];
        let parts = parts.iter().filter(|(_, texts)| !texts.is_empty());
        let parts: Vec<_> = parts.map(|(name, texts)| format!("{name}:{}", quote_list(texts))).collect();
        format!("{{{}}}", parts.join(", "))
    }
}

fn has(set: &[String], wanted: &str) -> bool {
    set.iter().any(|own| own == ALL || own == wanted)
}

/// Whether `pattern` matches a resource or its subresource: `*`, `RESOURCE`,
/// `RESOURCE/SUBRESOURCE`, `*/SUBRESOURCE`.
fn names(pattern: &str, resource: &str, subresource: &str) -> bool {
    let is_part = |rest: &str| rest.strip_prefix('/') == Some(subresource);
    match pattern.strip_prefix(resource) {
        _ if pattern == ALL => true,
        Some(rest) if subresource.is_empty() => rest.is_empty(),
        Some(rest) if is_part(rest) => true,
        _ => !subresource.is_empty() && pattern.strip_prefix(ALL).is_some_and(is_part),
    }
}

/// Whether a pattern equals `path`, or is a prefix of it that ends in stars.
fn covers_url(pattern: &str, path: &str) -> bool {
    pattern == path || (pattern.ends_with('*') && path.starts_with(pattern.trim_end_matches('*')))
}

#[cfg(test)]
mod tests {
    use super::super::fixture::{rule, urls};
    use super::*;
    use crate::auth::ResourceAttributes;

    #[track_caller]
    fn check_resource(rule: &PolicyRule, resource: &str, subresource: &str, expected: bool) {
        let wanted = ResourceAttributes { verb: "get", resource, subresource, ..ResourceAttributes::default() };
        assert_eq!(rule.allows(&Attributes::Resource(wanted)), expected, "{rule:?} {resource} {subresource}");
    }

    #[test]
    fn resources_and_their_parts_are_told_apart() {
        check_resource(&rule("get", "''", "pods", ""), "pods", "", true);
        check_resource(&rule("get", "''", "pods", ""), "pods", "status", false);
        check_resource(&rule("get", "''", "pods/status", ""), "pods", "status", true);
        check_resource(&rule("get", "''", "pods/status", ""), "pods", "", false);
        check_resource(&rule("get", "''", "*/status", ""), "pods", "status", true);
        check_resource(&rule("get", "''", "*/status", ""), "pods", "", false);
        check_resource(&rule("get", "''", "*/", ""), "pods", "", false);
        check_resource(&rule("get", "''", "*", ""), "pods", "status", true);
        check_resource(&rule("get", "''", "pods*", ""), "pods", "", false);
        check_resource(&rule("get", "''", "pods/log", ""), "pods/log", "", true);
        check_resource(&rule("get", "apps", "pods", ""), "pods", "", false);
        check_resource(&rule("get", "*", "pods", ""), "pods", "", true);
    }

    #[test]
    fn a_rule_for_names_is_for_no_other() {
        let named = |name| ResourceAttributes { verb: "get", resource: "pods", name, ..ResourceAttributes::default() };
        let rule = rule("get", "''", "pods", "a *");
        assert!(rule.allows(&Attributes::Resource(named("a"))));
        assert!(!rule.allows(&Attributes::Resource(named("b"))));
        assert!(!rule.allows(&Attributes::Resource(named(""))));
    }

    #[test]
    fn paths_may_end_in_a_star() {
        let check = |rule: &PolicyRule, path, expected| {
            assert_eq!(rule.allows(&Attributes::Path { verb: "get", path }), expected, "{rule:?} {path}");
        };
        check(&urls("get", "/healthz"), "/healthz", true);
        check(&urls("get", "/healthz"), "/healthz/ping", false);
        check(&urls("get", "/healthz/*"), "/healthz", false);
        check(&urls("get", "/healthz*"), "/healthzz", true);
        check(&urls("*", "*"), "/", true);
        check(&urls("post", "*"), "/", false);
        check(&rule("*", "*", "*", ""), "/", false);
    }
}
