//! The rules of webhooks and policies.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/webhook/predicates/rules`, release 1.37.

use crate::value::Value;

/// The operation of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Operation {
    /// An object is created.
    Create,
    /// An object is changed.
    Update,
    /// An object is deleted.
    Delete,
    /// A client connects to an object.
    Connect,
}

impl Operation {
    /// The name of the operation in rules.
    pub const fn as_str(self) -> &'static str {
        match self {
            Operation::Create => "CREATE",
            Operation::Update => "UPDATE",
            Operation::Delete => "DELETE",
            Operation::Connect => "CONNECT",
        }
    }
}

/// One rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchRule {
    operations: Vec<String>,
    groups: Vec<String>,
    versions: Vec<String>,
    /// The resources, each with its subresource, which may be empty.
    resources: Vec<(String, String)>,
    scope: String,
}

/// The subject of a request, in one of the versions of its resource.
#[derive(Clone, Copy, Debug)]
pub struct MatchedResource<'s> {
    pub operation: Operation,
    pub group: &'s str,
    pub version: &'s str,
    pub resource: &'s str,
    pub subresource: &'s str,
    /// The object's namespace; for a namespace, its own name.
    pub namespace: &'s str,
}

impl MatchRule {
    /// Decodes a rule of a configuration.
    pub fn decode(rule: &Value) -> Self {
        let texts = |name: &str| -> Vec<String> {
            rule.items_at(&[name]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
        };
        let split = |resource: String| match resource.split_once('/') {
            Some((resource, subresource)) => (resource.to_owned(), subresource.to_owned()),
            None => (resource, String::new()),
        };
        MatchRule {
            operations: texts("operations"),
            groups: texts("apiGroups"),
            versions: texts("apiVersions"),
            resources: texts("resources").into_iter().map(split).collect(),
            scope: rule.str_at(&["scope"]).to_owned(),
        }
    }

    pub fn matches(&self, subject: &MatchedResource<'_>) -> bool {
        let has = |items: &[String], wanted: &str| items.iter().any(|item| item == "*" || item == wanted);
        let is = |pattern: &str, found: &str| pattern == "*" || pattern == found;
        self.is_in_scope(subject)
            && has(&self.operations, subject.operation.as_str())
            && has(&self.groups, subject.group)
            && has(&self.versions, subject.version)
            && self
                .resources
                .iter()
                .any(|(resource, subresource)| is(resource, subject.resource) && is(subresource, subject.subresource))
    }

    /// Whether the subject is in the rule's scope. Namespaces are cluster-scoped, although a request for one is in the
    /// namespace of its own name.
    fn is_in_scope(&self, subject: &MatchedResource<'_>) -> bool {
        let is_namespace = (subject.group, subject.version, subject.resource) == ("", "v1", "namespaces");
        let is_namespaced = !is_namespace && !subject.namespace.is_empty();
        match self.scope.as_str() {
            "" | "*" => true,
            "Namespaced" => is_namespaced,
            "Cluster" => !is_namespaced,
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::value::yaml;

    const WIDGET: MatchedResource<'static> = MatchedResource {
        operation: Operation::Create,
        group: "example.com",
        version: "v1",
        resource: "widgets",
        subresource: "",
        namespace: "n",
    };

    #[track_caller]
    fn check(rule: &str, subject: MatchedResource<'_>, expected: bool) {
        let text = format!("{{operations: [CREATE], apiGroups: ['*'], apiVersions: ['*'], {rule}}}");
        let rule = MatchRule::decode(&yaml::decode(text.as_bytes()).expect("the test is YAML"));
        assert_eq!(rule.matches(&subject), expected, "{rule:?}");
    }

    #[test]
    fn resources_and_their_subresources_are_named_apart() {
        let status = MatchedResource { subresource: "status", ..WIDGET };
        for (resource, main, sub) in [
            ("widgets", true, false),
            ("widgets/status", false, true),
            ("widgets/*", true, true),
            ("*", true, false),
            ("*/*", true, true),
            ("*/status", false, true),
            ("gadgets", false, false),
        ] {
            check(&format!("resources: ['{resource}']"), WIDGET, main);
            check(&format!("resources: ['{resource}']"), status, sub);
        }
    }

    #[test]
    fn operations_groups_and_versions_are_named_or_all() {
        let rule = |rest: &str| format!("resources: [widgets], {rest}");
        check(&rule("operations: [UPDATE, DELETE]"), WIDGET, false);
        check(&rule("operations: ['*']"), WIDGET, true);
        check(&rule("apiGroups: ['']"), WIDGET, false);
        check(&rule("apiVersions: [v1beta1, v1]"), WIDGET, true);
    }

    #[test]
    fn a_namespace_is_in_cluster_scope_though_it_is_its_own() {
        let namespace = MatchedResource { group: "", resource: "namespaces", ..WIDGET };
        let node = MatchedResource { group: "", resource: "nodes", namespace: "", ..WIDGET };
        for (scope, widget, cluster) in [("'*'", true, true), ("Namespaced", true, false), ("Cluster", false, true)] {
            check(&format!("resources: ['*'], scope: {scope}"), WIDGET, widget);
            check(&format!("resources: ['*'], scope: {scope}"), namespace, cluster);
            check(&format!("resources: ['*'], scope: {scope}"), node, cluster);
        }
    }
}
