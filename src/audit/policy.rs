//! Which requests the audit log has: the rules of an `audit.k8s.io/v1` Policy.
//!
//! Bodies are never logged, so that of the levels `None` counts and all others are `Metadata`.
//! Source: `pkg/audit/policy/checker.go` of apiserver, release 1.36.

use super::{Event, Stage};
use crate::value::{Value, yaml};

/// The rules, of which the first that a request matches decides.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<Rule>,
    omitted: Vec<String>,
}

/// What a request must be for a rule to decide; an empty list is about all.
#[derive(Clone, Debug, Default)]
struct Rule {
    level: String,
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    namespaces: Vec<String>,
    /// A group with its resources and names.
    resources: Vec<(String, Vec<String>, Vec<String>)>,
    paths: Vec<String>,
    omitted: Vec<String>,
}

impl Policy {
    /// Reads a policy in YAML or JSON.
    ///
    /// # Errors
    ///
    /// What is not a policy, or a level that there is not.
    pub fn parse(text: &[u8]) -> Result<Self, String> {
        let policy = yaml::decode(text).map_err(|error| format!("failed decoding: {error}"))?;
        if policy.str_at(&["kind"]) != "Policy" || !policy.str_at(&["apiVersion"]).starts_with("audit.k8s.io/") {
            return Err("unknown group version field".to_owned());
        }
        let rules: Vec<_> = policy.items_at(&["rules"]).iter().map(Rule::parse).collect();
        if rules.is_empty() {
            return Err("loaded illegal policy with 0 rules".to_owned());
        }
        if let Some(rule) = rules.iter().find(|rule| !LEVELS.contains(&rule.level.as_str())) {
            return Err(format!("rules: level: Unsupported value: {:?}", rule.level));
        }
        Ok(Policy { rules, omitted: texts(&policy, "omitStages") })
    }

    /// Whether the log has a line of this stage.
    pub fn logs(&self, event: &Event, stage: Stage) -> bool {
        let Some(rule) = self.rules.iter().find(|rule| rule.matches(event)) else { return false };
        let is_omitted = |stages: &[String]| stages.iter().any(|omitted| omitted == stage.as_str());
        rule.level != "None" && !is_omitted(&self.omitted) && !is_omitted(&rule.omitted)
    }
}

const LEVELS: [&str; 4] = ["None", "Metadata", "Request", "RequestResponse"];

impl Rule {
    fn parse(rule: &Value) -> Self {
        let resource =
            |one: &Value| (one.str_at(&["group"]).to_owned(), texts(one, "resources"), texts(one, "resourceNames"));
        Rule {
            level: rule.str_at(&["level"]).to_owned(),
            users: texts(rule, "users"),
            groups: texts(rule, "userGroups"),
            verbs: texts(rule, "verbs"),
            namespaces: texts(rule, "namespaces"),
            resources: rule.items_at(&["resources"]).iter().map(resource).collect(),
            paths: texts(rule, "nonResourceURLs"),
            omitted: texts(rule, "omitStages"),
        }
    }

    fn matches(&self, event: &Event) -> bool {
        let has = |list: &[String], text: &str| list.is_empty() || list.iter().any(|one| one == text);
        let in_group = self.groups.is_empty() || self.groups.iter().any(|group| event.user.is_in(group));
        has(&self.users, &event.user.name) && in_group && has(&self.verbs, &event.verb) && self.matches_target(event)
    }

    fn matches_target(&self, event: &Event) -> bool {
        if self.namespaces.is_empty() && self.resources.is_empty() && self.paths.is_empty() {
            return true;
        }
        let Some(object) = &event.object else {
            let path = event.uri.split('?').next().unwrap_or_default();
            return self.paths.iter().any(|pattern| match pattern.strip_suffix('*') {
                Some(start) => path.starts_with(start),
                None => path == pattern,
            });
        };
        if !self.paths.is_empty() || !(self.namespaces.is_empty() || self.namespaces.contains(&object.namespace)) {
            return false;
        }
        let whole = match object.subresource.as_str() {
            "" => object.resource.clone(),
            subresource => format!("{}/{subresource}", object.resource),
        };
        let is_one = |pattern: &String| {
            let of_all = pattern.strip_prefix("*/").is_some_and(|subresource| subresource == object.subresource);
            let all_of = pattern.strip_suffix("/*").is_some_and(|resource| resource == object.resource);
            pattern == "*" || *pattern == whole || of_all || all_of
        };
        self.resources.is_empty()
            || self.resources.iter().any(|(group, resources, names)| {
                *group == object.group
                    && (resources.is_empty() || resources.iter().any(is_one))
                    && (names.is_empty() || names.contains(&object.name))
            })
    }
}

fn texts(value: &Value, name: &str) -> Vec<String> {
    value.items_at(&[name]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit::ObjectReference;
    use crate::auth::UserInfo;

    #[test]
    fn the_first_rule_that_matches_decides() {
        let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitStages: [RequestReceived], rules: [\
                      {level: None, users: [kubelet]}, {level: None, nonResourceURLs: ['/healthz*', /version]}, \
                      {level: Request, verbs: [create], resources: [{group: '', resources: [pods, pods/log]}]}, \
                      {level: Metadata, namespaces: [n], resources: [{group: g}]}]}";
        let policy = Policy::parse(policy.as_bytes()).expect("it is a policy");
        let event = |user: &str, verb: &str, group: &str, resource: &str| Event {
            user: UserInfo { name: user.to_owned(), ..UserInfo::default() },
            verb: verb.to_owned(),
            object: Some(ObjectReference {
                group: group.to_owned(),
                resource: resource.to_owned(),
                namespace: "n".to_owned(),
                ..ObjectReference::default()
            }),
            ..Event::default()
        };
        let done = |event: &Event| policy.logs(event, Stage::ResponseComplete);
        assert!(done(&event("jane", "create", "", "pods")));
        assert!(!done(&event("jane", "get", "", "pods")));
        assert!(!done(&event("kubelet", "create", "", "pods")));
        assert!(done(&event("jane", "get", "g", "x")));
        assert!(!policy.logs(&event("jane", "get", "g", "x"), Stage::RequestReceived));
        assert!(!done(&Event { uri: "/healthz/ping?x".into(), ..Event::default() }));
    }

    #[test]
    fn what_is_no_policy_is_refused() {
        assert!(Policy::parse(b"{}").is_err());
        let unknown = b"{apiVersion: audit.k8s.io/v1, kind: Policy, rules: [{level: Some}]}";
        assert_eq!(Policy::parse(unknown).err().as_deref(), Some("rules: level: Unsupported value: \"Some\""));
    }
}
