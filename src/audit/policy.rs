//! Which requests are logged, and how much of each: the rules of an `audit.k8s.io/v1` Policy.
//!
//! Source: `pkg/audit/policy/checker.go` and `pkg/apis/audit/validation` of apiserver, release
//! 1.36.

use std::path::Path;
use std::{fs, io};

use super::{AuditEvent, AuditStage};
use crate::value::{Value, yaml};

/// How much of a request is logged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum AuditLevel {
    #[default]
    None,
    /// The user, the request, and the status code of the response.
    Metadata,
    /// `Metadata`, and the object that was sent.
    Request,
    /// `Request`, and the object that was returned.
    RequestResponse,
}

impl AuditLevel {
    const ALL: [AuditLevel; 4] =
        [AuditLevel::None, AuditLevel::Metadata, AuditLevel::Request, AuditLevel::RequestResponse];

    /// The level's name in policies and events.
    pub const fn as_str(self) -> &'static str {
        match self {
            AuditLevel::None => "None",
            AuditLevel::Metadata => "Metadata",
            AuditLevel::Request => "Request",
            AuditLevel::RequestResponse => "RequestResponse",
        }
    }
}

/// How much of one request is logged, decided when it arrives.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    pub level: AuditLevel,
    /// The stages that are not logged.
    omitted: Vec<AuditStage>,
    pub omits_managed_fields: bool,
}

impl Extent {
    /// Every stage, at one level.
    pub fn of(level: AuditLevel) -> Self {
        Extent { level, ..Extent::default() }
    }

    /// Whether a line is logged for this stage.
    pub fn has(&self, stage: AuditStage) -> bool {
        self.level > AuditLevel::None && !self.omitted.contains(&stage)
    }
}

/// The rules of a policy; the first rule that matches a request decides.
#[derive(Clone, Debug, Default)]
pub struct Policy {
    rules: Vec<AuditRule>,
}

/// The conditions of a rule, and how much it logs. An empty list matches everything.
#[derive(Clone, Debug, Default)]
struct AuditRule {
    extent: Extent,
    users: Vec<String>,
    groups: Vec<String>,
    verbs: Vec<String>,
    namespaces: Vec<String>,
    /// A group with its resources and their names.
    resources: Vec<(String, Vec<String>, Vec<String>)>,
    paths: Vec<String>,
}

/// Why a policy file was rejected, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
pub enum PolicyFileError {
    #[error("loading audit policy file: failed to read file path {path:?}: {source}")]
    Read { path: String, source: io::Error },
    #[error("loading audit policy file: {source}: from file {path}")]
    Policy { path: String, source: PolicyError },
}

/// Why a policy is invalid, in kube-apiserver's words.
#[derive(Debug, thiserror::Error)]
pub enum PolicyError {
    #[error("failed decoding: {0}")]
    Yaml(#[from] yaml::YamlError),
    #[error("unknown group version field {api_version}, Kind={kind} in policy")]
    Type { api_version: String, kind: String },
    #[error("loaded illegal policy with 0 rules")]
    NoRules,
    #[error("rules[{index}].{source}")]
    Rule { index: usize, source: Box<PolicyError> },
    #[error("level: Required value")]
    NoLevel,
    #[error("level: Unsupported value: {0:?}: supported values: {levels}", levels = levels())]
    Level(String),
    #[error("{field}[{index}]: Invalid value: {name:?}: allowed stages are {stages}", stages = AuditStage::ALL.map(AuditStage::as_str).join(","))]
    Stage { field: String, index: usize, name: String },
}

fn levels() -> String {
    AuditLevel::ALL.map(|level| format!("{:?}", level.as_str())).join(", ")
}

impl Policy {
    /// Reads the policy file at `path`.
    ///
    /// # Errors
    ///
    /// The file can't be read, or it is not a valid policy.
    pub fn read(path: &Path) -> Result<Self, PolicyFileError> {
        let shown = || path.display().to_string();
        let text = fs::read(path).map_err(|source| PolicyFileError::Read { path: shown(), source })?;
        Policy::parse(&text).map_err(|source| PolicyFileError::Policy { path: shown(), source })
    }

    /// Decodes a policy from YAML or JSON.
    ///
    /// # Errors
    ///
    /// The document is not a policy, has no rules, or names an unknown level or stage.
    pub fn parse(text: &[u8]) -> Result<Self, PolicyError> {
        let policy = yaml::decode(text)?;
        let (api_version, kind) = (policy.str_at(&["apiVersion"]), policy.str_at(&["kind"]));
        if kind != "Policy" || api_version != "audit.k8s.io/v1" {
            return Err(PolicyError::Type { api_version: api_version.to_owned(), kind: kind.to_owned() });
        }
        let omitted = stages(&policy, "omitStages")?;
        let omits_managed_fields = flag(&policy, "omitManagedFields").unwrap_or_default();
        let default = Extent { level: AuditLevel::None, omitted, omits_managed_fields };
        let rules = policy.items_at(&["rules"]).iter().enumerate();
        let rules: Result<Vec<_>, _> = rules
            .map(|(index, rule)| {
                AuditRule::parse(rule, &default).map_err(|source| PolicyError::Rule { index, source: Box::new(source) })
            })
            .collect();
        match rules? {
            rules if rules.is_empty() => Err(PolicyError::NoRules),
            rules => Ok(Policy { rules }),
        }
    }

    /// How much of a request is logged; nothing if no rule matches.
    pub fn extent(&self, event: &AuditEvent) -> Extent {
        let rule = self.rules.iter().find(|rule| rule.matches(event));
        rule.map(|rule| rule.extent.clone()).unwrap_or_default()
    }
}

impl AuditRule {
    /// Decodes a rule; `default` holds what the policy sets for all its rules.
    fn parse(rule: &Value, default: &Extent) -> Result<Self, PolicyError> {
        let resource =
            |one: &Value| (one.str_at(&["group"]).to_owned(), texts(one, "resources"), texts(one, "resourceNames"));
        let mut omitted = stages(rule, "omitStages")?;
        omitted.extend_from_slice(&default.omitted);
        let omits_managed_fields = flag(rule, "omitManagedFields").unwrap_or(default.omits_managed_fields);
        Ok(AuditRule {
            extent: Extent { level: level(rule)?, omitted, omits_managed_fields },
            users: texts(rule, "users"),
            groups: texts(rule, "userGroups"),
            verbs: texts(rule, "verbs"),
            namespaces: texts(rule, "namespaces"),
            resources: rule.items_at(&["resources"]).iter().map(resource).collect(),
            paths: texts(rule, "nonResourceURLs"),
        })
    }

    fn matches(&self, event: &AuditEvent) -> bool {
        let has = |list: &[String], text: &str| list.is_empty() || list.iter().any(|one| one == text);
        let in_group = self.groups.is_empty() || self.groups.iter().any(|group| event.user.is_in(group));
        has(&self.users, &event.user.name) && in_group && has(&self.verbs, &event.verb) && self.matches_target(event)
    }

    fn matches_target(&self, event: &AuditEvent) -> bool {
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
                (*group == object.group || group == "*")
                    && (resources.is_empty() || resources.iter().any(is_one))
                    && (names.is_empty() || names.contains(&object.name))
            })
    }
}

fn level(rule: &Value) -> Result<AuditLevel, PolicyError> {
    let name = rule.str_at(&["level"]);
    let known = AuditLevel::ALL.into_iter().find(|level| level.as_str() == name);
    known.ok_or_else(|| match name {
        "" => PolicyError::NoLevel,
        name => PolicyError::Level(name.to_owned()),
    })
}

fn stages(value: &Value, field: &str) -> Result<Vec<AuditStage>, PolicyError> {
    let known = |(index, name): (usize, String)| {
        let found = AuditStage::ALL.into_iter().find(|stage| stage.as_str() == name);
        found.ok_or_else(|| PolicyError::Stage { field: field.to_owned(), index, name })
    };
    texts(value, field).into_iter().enumerate().map(known).collect()
}

fn flag(value: &Value, name: &str) -> Option<bool> {
    value.at(&[name]).and_then(Value::as_bool)
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
        let event = |user: &str, verb: &str, group: &str, resource: &str| AuditEvent {
            user: UserInfo { name: user.to_owned(), ..UserInfo::default() },
            verb: verb.to_owned(),
            object: Some(ObjectReference {
                group: group.to_owned(),
                resource: resource.to_owned(),
                namespace: "n".to_owned(),
                ..ObjectReference::default()
            }),
            ..AuditEvent::default()
        };
        let done = |event: &AuditEvent| policy.extent(event).has(AuditStage::ResponseComplete);
        assert!(done(&event("jane", "create", "", "pods")));
        assert!(!done(&event("jane", "get", "", "pods")));
        assert!(!done(&event("kubelet", "create", "", "pods")));
        assert!(done(&event("jane", "get", "g", "x")));
        assert!(!policy.extent(&event("jane", "get", "g", "x")).has(AuditStage::RequestReceived));
        assert_eq!(policy.extent(&event("jane", "create", "", "pods")).level, AuditLevel::Request);
        assert!(!done(&AuditEvent { uri: "/healthz/ping?x".into(), ..AuditEvent::default() }));
    }

    #[test]
    fn what_is_not_a_policy_is_refused() {
        let refusal =
            |text: &str| Policy::parse(text.as_bytes()).err().map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(refusal("{apiVersion: v1, kind: Pod}"), "unknown group version field v1, Kind=Pod in policy");
        let of = |fields: &str| refusal(&format!("{{apiVersion: audit.k8s.io/v1, kind: Policy, {fields}}}"));
        assert_eq!(of("rules: []"), "loaded illegal policy with 0 rules");
        assert_eq!(of("rules: [{users: [a]}]"), "rules[0].level: Required value");
        let levels = r#"supported values: "None", "Metadata", "Request", "RequestResponse""#;
        let unsupported = format!(r#"rules[0].level: Unsupported value: "Some": {levels}"#);
        assert_eq!(of("rules: [{level: Some}]"), unsupported);
        let stages = "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic";
        assert_eq!(of("omitStages: [End]"), format!(r#"omitStages[0]: Invalid value: "End": {stages}"#));
    }

    #[test]
    fn a_rule_says_for_itself_whether_managed_fields_are_left_out() {
        let policy = "{apiVersion: audit.k8s.io/v1, kind: Policy, omitManagedFields: true, rules: [\
                      {level: Request, verbs: [get], omitManagedFields: false}, \
                      {level: RequestResponse, resources: [{group: '*', resources: [widgets]}]}]}";
        let policy = Policy::parse(policy.as_bytes()).expect("it is a policy");
        let object = ObjectReference { group: "g".into(), resource: "widgets".into(), ..ObjectReference::default() };
        let event =
            |verb: &str| AuditEvent { verb: verb.into(), object: Some(object.clone()), ..AuditEvent::default() };
        let kept = Extent::of(AuditLevel::Request);
        let left_out = Extent { omits_managed_fields: true, ..Extent::of(AuditLevel::RequestResponse) };
        assert_eq!([policy.extent(&event("get")), policy.extent(&event("list"))], [kept, left_out]);
    }
}
