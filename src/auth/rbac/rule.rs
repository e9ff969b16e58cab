//! A single rule, and what it allows.

use std::fmt;

use super::quote_list;
use super::rule_texts::{PackedTexts, TextLists, TextListsBuilder};
use crate::auth::{Attributes, NonResourceRule, ResourceRule};
use crate::object;
use crate::value::Value;
use crate::work;

/// The wildcard that matches everything.
pub(super) const ALL: &str = "*";

/// The lists of a rule, in the order in which rules are compared.
const LISTS: usize = 5;

/// A PolicyRule of `rbac.authorization.k8s.io/v1`. The rules of a role share the memory of their texts.
#[derive(Clone, Default)]
pub struct PolicyRule(TextLists<LISTS>);

/// What a new rule consists of.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleParts<'t> {
    pub verbs: &'t [&'t str],
    pub api_groups: &'t [&'t str],
    pub resources: &'t [&'t str],
    pub resource_names: &'t [&'t str],
    pub non_resource_urls: &'t [&'t str],
}

impl PolicyRule {
    /// A rule by itself.
    pub fn new(parts: &RuleParts<'_>) -> Self {
        let lists = [parts.verbs, parts.api_groups, parts.resources, parts.resource_names, parts.non_resource_urls];
        let mut builder = TextListsBuilder::default();
        let ends = lists.map(|list| {
            list.iter().for_each(|text| builder.push(text));
            builder.end()
        });
        builder.close(0, ends);
        builder.finish().next().map(PolicyRule).unwrap_or_default()
    }

    /// The rules of a role.
    pub fn all_of(role: &Value) -> Vec<Self> {
        let mut builder = TextListsBuilder::default();
        for rule in role.items_at(&["rules"]) {
            let first = builder.end();
            let ends = ["verbs", "apiGroups", "resources", "resourceNames", "nonResourceURLs"].map(|name| {
                for text in rule.items_at(&[name]).iter().filter_map(Value::as_str) {
                    work::bytes(text.len());
                    builder.push(text);
                }
                builder.end()
            });
            builder.close(first, ends);
        }
        builder.finish().map(PolicyRule).collect()
    }

    /// How many bytes the rules of a role take in memory, about.
    pub fn memory_bytes(rules: &[Self]) -> usize {
        let texts =
            |rule: &Self| rule.lists().iter().flat_map(PackedTexts::iter).map(|text| text.len() + 4).sum::<usize>();
        rules.iter().map(|rule| size_of::<Self>() + texts(rule)).sum()
    }

    pub fn verbs(&self) -> PackedTexts<'_> {
        self.0.list(0)
    }

    pub fn api_groups(&self) -> PackedTexts<'_> {
        self.0.list(1)
    }

    pub fn resources(&self) -> PackedTexts<'_> {
        self.0.list(2)
    }

    /// Empty for all names.
    pub fn resource_names(&self) -> PackedTexts<'_> {
        self.0.list(3)
    }

    pub fn non_resource_urls(&self) -> PackedTexts<'_> {
        self.0.list(4)
    }

    fn lists(&self) -> [PackedTexts<'_>; LISTS] {
        std::array::from_fn(|at| self.0.list(at))
    }

    /// Encodes the rule as a role contains it.
    pub fn encode(&self) -> Value {
        let parts = [
            ("apiGroups", self.api_groups()),
            ("nonResourceURLs", self.non_resource_urls()),
            ("resourceNames", self.resource_names()),
            ("resources", self.resources()),
        ];
        let texts = |texts: &PackedTexts<'_>| Value::Array(texts.iter().map(Value::from).collect());
        let mut rule = object! { "verbs" => texts(&self.verbs()) };
        for (name, values) in parts.iter().filter(|(_, values)| !values.is_empty()) {
            rule.make_object().insert(*name, texts(values));
        }
        rule
    }

    /// The two rules that allow everything.
    pub fn full_authority() -> [Self; 2] {
        let verbs: &[&str] = &[ALL];
        [
            PolicyRule::new(&RuleParts { verbs, api_groups: verbs, resources: verbs, ..RuleParts::default() }),
            PolicyRule::new(&RuleParts { verbs, non_resource_urls: verbs, ..RuleParts::default() }),
        ]
    }

    /// Whether the rule allows what a request asks for.
    pub fn allows(&self, attributes: &Attributes<'_>) -> bool {
        let verbs = self.verbs();
        work::steps(1 + verbs.len());
        match attributes {
            Attributes::Resource(wanted) => {
                let (groups, resources, names) = (self.api_groups(), self.resources(), self.resource_names());
                work::steps(groups.len() + resources.len() + names.len());
                has(&verbs, wanted.verb)
                    && has(&groups, wanted.group)
                    && resources.iter().any(|resource| is_named(resource, wanted.resource, wanted.subresource))
                    && (names.is_empty() || names.contains(wanted.name))
            }
            Attributes::Path { verb, path } => {
                let urls = self.non_resource_urls();
                work::steps(urls.len());
                has(&verbs, verb) && urls.iter().any(|url| covers_url(url, path))
            }
        }
    }

    /// The approximate size of the rule when it is encoded, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.lists().iter().flat_map(PackedTexts::iter).map(|text| text.len() + 3).sum()
    }

    /// How many bytes the rule takes in memory while it is listed for its user, about: each text is one of its own, in a
    /// value of its own.
    pub(super) fn listed_bytes(&self) -> usize {
        /// What a rule and a text take beside what is in them: the names of fields, and what allocators add.
        const RULE_BYTES: usize = 600;
        const TEXT_BYTES: usize = 120;
        let texts: usize = self.lists().iter().map(PackedTexts::len).sum();
        RULE_BYTES + texts * TEXT_BYTES + 3 * self.bytes()
    }

    /// The rule for resources and the rule for non-resource paths, if it has such parts.
    pub fn split(&self) -> (Option<ResourceRule>, Option<NonResourceRule>) {
        let [verbs, api_groups, resources, resource_names, urls] = self.lists();
        let resource = (!resources.is_empty()).then(|| ResourceRule {
            verbs: verbs.to_vec(),
            api_groups: api_groups.to_vec(),
            resources: resources.to_vec(),
            resource_names: resource_names.to_vec(),
        });
        let other = (!urls.is_empty()).then(|| NonResourceRule { verbs: verbs.to_vec(), urls: urls.to_vec() });
        (resource, other)
    }

    /// Formats the rule as Kubernetes does in messages, with these verbs.
    pub(super) fn describe(&self, verbs: &[&str]) -> String {
        let quoted = |texts: PackedTexts<'_>| quote_list(texts.iter());
        let parts = [
            ("APIGroups", self.api_groups()),
            ("Resources", self.resources()),
            ("NonResourceURLs", self.non_resource_urls()),
            ("ResourceNames", self.resource_names()),
        ];
        let parts = parts.into_iter().filter(|(_, texts)| !texts.is_empty());
        let mut parts: Vec<_> = parts.map(|(name, texts)| format!("{name}:{}", quoted(texts))).collect();
        parts.push(format!("Verbs:{}", quote_list(verbs.iter().copied())));
        format!("{{{}}}", parts.join(", "))
    }
}

impl PartialEq for PolicyRule {
    fn eq(&self, other: &Self) -> bool {
        self.lists() == other.lists()
    }
}

impl Eq for PolicyRule {}

impl fmt::Debug for PolicyRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.lists().fmt(f)
    }
}

fn has(set: &PackedTexts<'_>, wanted: &str) -> bool {
    set.iter().any(|own| own == ALL || own == wanted)
}

/// Whether `pattern` matches a resource or its subresource: `*`, `RESOURCE`,
/// `RESOURCE/SUBRESOURCE`, `*/SUBRESOURCE`.
fn is_named(pattern: &str, resource: &str, subresource: &str) -> bool {
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
