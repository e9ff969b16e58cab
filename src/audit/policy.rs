//! Which requests are logged, and how much of each: the rules of an `audit.k8s.io/v1` Policy.
//!
//! Source: `pkg/audit/policy/checker.go` and `pkg/apis/audit/validation` of apiserver, release 1.37.

use std::path::Path;
use std::{fs, io};

use super::{AuditEvent, AuditStage};
use crate::meta::field::{self, Error, ErrorList};
use crate::meta::names::is_dns1123_subdomain;
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

    /// The level that policies call `name`.
    fn named(name: &str) -> Option<AuditLevel> {
        AuditLevel::ALL.into_iter().find(|level| level.as_str() == name)
    }

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
    #[error("{}", .0.aggregate())]
    Invalid(ErrorList),
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
    /// The document is not a policy, is not valid, or has no rules.
    pub fn parse(text: &[u8]) -> Result<Self, PolicyError> {
        let policy = yaml::decode(text)?;
        let (api_version, kind) = (policy.str_at(&["apiVersion"]), policy.str_at(&["kind"]));
        if kind != "Policy" || api_version != "audit.k8s.io/v1" {
            return Err(PolicyError::Type { api_version: api_version.to_owned(), kind: kind.to_owned() });
        }
        let errors = validate(&policy);
        if !errors.is_empty() {
            return Err(PolicyError::Invalid(errors));
        }
        let (omitted, omits_managed_fields) = (stages(&policy), flag(&policy, "omitManagedFields").unwrap_or_default());
        let default = Extent { level: AuditLevel::None, omitted, omits_managed_fields };
        match policy.items_at(&["rules"]) {
            [] => Err(PolicyError::NoRules),
            rules => Ok(Policy { rules: rules.iter().map(|rule| AuditRule::parse(rule, &default)).collect() }),
        }
    }

    /// How much of a request is logged; nothing if no rule matches.
    pub fn extent(&self, event: &AuditEvent) -> Extent {
        let rule = self.rules.iter().find(|rule| rule.matches(event));
        rule.map(|rule| rule.extent.clone()).unwrap_or_default()
    }
}

impl AuditRule {
    /// Decodes a valid rule; `default` holds what the policy sets for all its rules.
    fn parse(rule: &Value, default: &Extent) -> Self {
        let resource =
            |one: &Value| (one.str_at(&["group"]).to_owned(), texts(one, "resources"), texts(one, "resourceNames"));
        let mut omitted = stages(rule);
        omitted.extend_from_slice(&default.omitted);
        let omits_managed_fields = flag(rule, "omitManagedFields").unwrap_or(default.omits_managed_fields);
        let level = AuditLevel::named(rule.str_at(&["level"])).unwrap_or_default();
        AuditRule {
            extent: Extent { level, omitted, omits_managed_fields },
            users: texts(rule, "users"),
            groups: texts(rule, "userGroups"),
            verbs: texts(rule, "verbs"),
            namespaces: texts(rule, "namespaces"),
            resources: rule.items_at(&["resources"]).iter().map(resource).collect(),
            paths: texts(rule, "nonResourceURLs"),
        }
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

/// The stages that are left out.
fn stages(value: &Value) -> Vec<AuditStage> {
    texts(value, "omitStages").iter().filter_map(|name| AuditStage::named(name)).collect()
}

fn flag(value: &Value, name: &str) -> Option<bool> {
    value.at(&[name]).and_then(Value::as_bool)
}

fn texts(value: &Value, name: &str) -> Vec<String> {
    value.items_at(&[name]).iter().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// All errors of a policy.
fn validate(policy: &Value) -> ErrorList {
    let mut errors = validate_stages(policy, &field::Path::new("omitStages"));
    for (index, rule) in policy.items_at(&["rules"]).iter().enumerate() {
        let rules = field::Path::new("rules");
        errors.extend(validate_rule(rule, &rules.index(index)));
    }
    errors
}

fn validate_rule(rule: &Value, path: &field::Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let (level, at) = (rule.str_at(&["level"]), path.child("level"));
    if level.is_empty() {
        errors.push(Error::required(&at, ""));
    } else if AuditLevel::named(level).is_none() {
        errors.push(Error::not_supported(&at, level, &AuditLevel::ALL.map(AuditLevel::as_str)));
    }
    let (urls, at) = (texts(rule, "nonResourceURLs"), path.child("nonResourceURLs"));
    errors.extend(validate_urls(&urls, &at));
    let resources = rule.items_at(&["resources"]);
    errors.extend(validate_resources(resources, &path.child("resources")));
    errors.extend(validate_stages(rule, &path.child("omitStages")));
    let names_objects = !resources.is_empty() || !rule.items_at(&["namespaces"]).is_empty();
    if !urls.is_empty() && names_objects {
        let why = "rules cannot apply to both regular resources and non-resource URLs";
        errors.push(Error::invalid(&at, list(urls), why));
    }
    errors
}

fn validate_urls(urls: &[String], path: &field::Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for (index, url) in urls.iter().enumerate().filter(|(_, url)| *url != "*") {
        let at = path.index(index);
        if !url.starts_with('/') {
            errors.push(Error::invalid(&at, url.as_str(), "non-resource URL rules must begin with a '/' character"));
        }
        if url.as_bytes().split_last().is_some_and(|(_, before)| before.contains(&b'*')) {
            let why = "non-resource URL wildcards '*' must be the final character of the rule";
            errors.push(Error::invalid(&at, url.as_str(), why));
        }
    }
    errors
}

/// Kubernetes does not tell which of the resources is wrong.
fn validate_resources(resources: &[Value], path: &field::Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    for resource in resources {
        let group = resource.str_at(&["group"]);
        let faults = if matches!(group, "" | "*") { Vec::new() } else { is_dns1123_subdomain(group) };
        if !faults.is_empty() {
            errors.push(Error::invalid(&path.child("group"), group, faults.join(",")));
        }
        let names = texts(resource, "resourceNames");
        if !names.is_empty() && resource.items_at(&["resources"]).is_empty() {
            let why = "using resourceNames requires at least one resource";
            errors.push(Error::invalid(&path.child("resourceNames"), list(names), why));
        }
    }
    errors
}

fn validate_stages(value: &Value, path: &field::Path<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let stages = texts(value, "omitStages");
    for (index, name) in stages.iter().enumerate().filter(|(_, name)| AuditStage::named(name).is_none()) {
        let why = format!("allowed stages are {}", AuditStage::ALL.map(AuditStage::as_str).join(","));
        errors.push(Error::invalid(&path.index(index), name.as_str(), why));
    }
    errors
}

fn list(texts: Vec<String>) -> Value {
    Value::Array(texts.into_iter().map(Value::from).collect())
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

    #[track_caller]
    fn check_policy(policy: &str, expected: &str) {
        let policy = yaml::decode(policy.as_bytes()).expect("the test is YAML");
        assert_eq!(validate(&policy).aggregate(), expected, "{policy:?}");
    }

    #[track_caller]
    fn check_rule(fields: &str, expected: &str) {
        check_policy(&format!("rules: [{{level: None, {fields}}}]"), expected);
    }

    #[test]
    fn levels_and_stages_are_known_ones() {
        check_policy("rules: [{users: [a]}]", "rules[0].level: Required value");
        let levels = r#"supported values: "None", "Metadata", "Request", "RequestResponse""#;
        check_policy("rules: [{level: Some}]", &format!(r#"rules[0].level: Unsupported value: "Some": {levels}"#));
        let stages = "allowed stages are RequestReceived,ResponseStarted,ResponseComplete,Panic";
        check_policy("omitStages: [End]", &format!(r#"omitStages[0]: Invalid value: "End": {stages}"#));
        let both = format!(
            r#"[omitStages[1]: Invalid value: "End": {stages}, rules[0].omitStages[0]: Invalid value: "": {stages}]"#
        );
        check_policy("{omitStages: [Panic, End], rules: [{level: None, omitStages: ['']}]}", &both);
    }

    #[test]
    fn a_rule_is_about_resources_or_about_paths() {
        let both = "rules cannot apply to both regular resources and non-resource URLs";
        let error = format!(r#"rules[0].nonResourceURLs: Invalid value: ["/a","/b*"]: {both}"#);
        check_rule("nonResourceURLs: [/a, /b*], resources: [{}]", &error);
        check_rule("nonResourceURLs: [/a, /b*], namespaces: [n]", &error);
        check_rule("nonResourceURLs: [/a, /b*, '*'], resources: []", "");
    }

    #[test]
    fn paths_have_their_wildcard_at_the_end() {
        let [start, end] = [
            "non-resource URL rules must begin with a '/' character",
            "non-resource URL wildcards '*' must be the final character of the rule",
        ];
        let at = "rules[0].nonResourceURLs";
        check_rule("nonResourceURLs: [/a*b]", &format!(r#"{at}[0]: Invalid value: "/a*b": {end}"#));
        check_rule("nonResourceURLs: ['']", &format!(r#"{at}[0]: Invalid value: "": {start}"#));
        let both = format!(r#"[{at}[1]: Invalid value: "**": {start}, {at}[1]: Invalid value: "**": {end}]"#);
        check_rule("nonResourceURLs: [/, '**']", &both);
    }

    #[test]
    fn groups_have_no_version_and_names_have_a_resource() {
        let faults = is_dns1123_subdomain("a.b/v1").join(",");
        let group = format!(r#"rules[0].resources.group: Invalid value: "a.b/v1": {faults}"#);
        check_rule("resources: [{group: a.b/v1}, {group: '*'}, {group: ''}, {group: a.b}]", &group);
        let names = r#"rules[0].resources.resourceNames: Invalid value: ["x"]: "#;
        let names = format!("{names}using resourceNames requires at least one resource");
        check_rule("resources: [{group: a.b, resourceNames: [x]}]", &names);
    }
}
