//! Which requests a webhook, a policy or a binding matches: by rules, and by labels of objects and namespaces.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy/matching`, release 1.37.

use std::sync::Arc;

use super::rule::{MatchRule, MatchedResource, Operation};
use crate::crd::ServedVersion;
use crate::meta::selector::{LabelSelector, SelectorError};
use crate::value::Value;

/// The criteria that a request must match.
#[derive(Clone, Debug)]
pub struct Criteria {
    /// The rules; `None` if everything matches.
    rules: Option<Vec<NamedRule>>,
    excluded: Vec<NamedRule>,
    /// Whether rules also match other versions of their resources.
    takes_equivalents: bool,
    namespaces: Result<LabelSelector, SelectorError>,
    objects: Result<LabelSelector, SelectorError>,
}

/// A rule for objects with these names, or for all objects if there are none.
#[derive(Clone, Debug)]
struct NamedRule {
    rule: MatchRule,
    names: Vec<String>,
}

/// The facts about a request that are known before its objects are read.
#[derive(Clone, Copy)]
pub struct MatchAttributes<'r> {
    /// The operation.
    pub operation: Operation,
    /// The version that the request names.
    pub version: &'r ServedVersion,
    /// Every version of the resource that has the subresource.
    pub versions: &'r [Arc<ServedVersion>],
    /// The subresource; empty for the object itself.
    pub subresource: &'r str,
    /// The object's namespace; for a namespace, its own name.
    pub namespace: &'r str,
    /// The object's name; empty if it is still to be generated.
    pub name: &'r str,
}

impl Criteria {
    /// Decodes the `MatchResources` of a policy or of a binding. Without rules, they match everything.
    pub fn decode(resources: &Value) -> Self {
        let rules = NamedRule::decode(resources.items_at(&["resourceRules"]));
        Criteria { rules: Some(rules).filter(|rules| !rules.is_empty()), ..Criteria::of(resources) }
    }

    /// Decodes the criteria of a webhook. One without rules is never called.
    pub fn of_webhook(webhook: &Value) -> Self {
        Criteria { rules: Some(NamedRule::decode(webhook.items_at(&["rules"]))), ..Criteria::of(webhook) }
    }

    fn of(resources: &Value) -> Self {
        let selector =
            |name: &str| resources.get(name).map_or_else(|| Ok(LabelSelector::default()), LabelSelector::decode);
        Criteria {
            rules: None,
            excluded: NamedRule::decode(resources.items_at(&["excludeResourceRules"])),
            takes_equivalents: resources.str_at(&["matchPolicy"]) == "Equivalent",
            namespaces: selector("namespaceSelector"),
            objects: selector("objectSelector"),
        }
    }

    /// The version in which the policy sees a request; `None` if the rules do not match it.
    pub fn version(&self, asked: &MatchAttributes<'_>) -> Option<Arc<ServedVersion>> {
        if self.find(&self.excluded, asked).is_some() {
            return None;
        }
        match &self.rules {
            None => asked.own(),
            Some(rules) => self.find(rules, asked),
        }
    }

    /// Returns the request's version if a rule names it; else the first other version that a rule names, rule by rule.
    fn find(&self, rules: &[NamedRule], asked: &MatchAttributes<'_>) -> Option<Arc<ServedVersion>> {
        if rules.iter().any(|rule| rule.matches(asked, asked.version)) {
            return asked.own();
        }
        if !self.takes_equivalents {
            return None;
        }
        let others = || asked.versions.iter().filter(|version| !asked.is_own(version));
        rules.iter().find_map(|rule| others().find(|version| rule.matches(asked, version))).cloned()
    }

    /// Whether the new or the old object matches the object selector. The options of a connection have no labels, so
    /// they match no selector but the empty one, not even one for absent labels.
    ///
    /// # Errors
    /// The selector is invalid.
    pub fn selects_object(
        &self,
        operation: Operation,
        object: &Value,
        old: Option<&Value>,
    ) -> Result<bool, &SelectorError> {
        let selector = self.objects.as_ref()?;
        let has_labels = |object: &Value| operation != Operation::Connect && !object.is_null();
        let selects = |object: &Value| has_labels(object) && matches(selector, object.at(&["metadata", "labels"]));
        Ok(selector.is_empty() || selects(object) || old.is_some_and(selects))
    }

    /// The namespace selector.
    ///
    /// # Errors
    /// The selector is invalid.
    pub fn namespaces(&self) -> Result<&LabelSelector, &SelectorError> {
        self.namespaces.as_ref()
    }
}

/// Whether `labels`, those of an object, match `selector`.
pub fn matches(selector: &LabelSelector, labels: Option<&Value>) -> bool {
    selector.matches(&labels)
}

impl NamedRule {
    fn decode(rules: &[Value]) -> Vec<Self> {
        let names = |rule: &Value| {
            rule.items_at(&["resourceNames"]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        rules.iter().map(|rule| NamedRule { rule: MatchRule::decode(rule), names: names(rule) }).collect()
    }

    fn matches(&self, asked: &MatchAttributes<'_>, version: &ServedVersion) -> bool {
        let subject = MatchedResource {
            operation: asked.operation,
            group: &version.group,
            version: &version.version,
            resource: &version.names.plural,
            subresource: asked.subresource,
            namespace: asked.namespace,
        };
        self.rule.matches(&subject) && (self.names.is_empty() || self.names.iter().any(|name| name == asked.name))
    }
}

impl MatchAttributes<'_> {
    fn is_own(&self, version: &ServedVersion) -> bool {
        (&version.group, &version.version) == (&self.version.group, &self.version.version)
    }

    fn own(&self) -> Option<Arc<ServedVersion>> {
        self.versions.iter().find(|version| self.is_own(version)).cloned()
    }
}
