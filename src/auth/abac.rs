//! Attribute-based access control: a file of policies, one for each line, which is read at startup.
//!
//! Input: the text of the file, and the attributes of a request. Output: whether a policy allows the
//! request. No policy denies anything.
//!
//! Source: `pkg/auth/authorizer/abac` and `pkg/apis/abac`, release 1.36.

use async_trait::async_trait;

use super::{Attributes, Authorizer, Decision, NonResourceRule, ResourceRule, Rules, UserInfo};
use crate::meta::scheme::SchemeError;
use crate::meta::type_meta::{Document, TypeMetaError};
use crate::meta::unmarshal::UnmarshalError;
use crate::value::{Value, json_type};
use crate::work;

const GROUP: &str = "abac.authorization.kubernetes.io";
const KIND: &str = "Policy";
const SCHEME: &str = "pkg/apis/abac/register.go:33";
/// The verbs of read-only policies.
const READING: [&str; 3] = ["get", "list", "watch"];
/// The maximum length of a line, in bytes. Source: `bufio.MaxScanTokenSize`.
const LINE_BYTES_MAX: usize = 64 << 10;

/// What one line allows. An empty field is absent; `*` matches everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct AbacPolicy {
    user: String,
    group: String,
    readonly: bool,
    api_group: String,
    resource: String,
    namespace: String,
    non_resource_path: String,
}

/// The policies of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PolicyList(Vec<AbacPolicy>);

/// Why a line is not a policy, in Go's words.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum LineError {
    #[error("bufio.Scanner: token too long")]
    TooLong,
    #[error(transparent)]
    TypeMeta(#[from] TypeMetaError),
    #[error(transparent)]
    Kind(#[from] SchemeError),
    #[error(transparent)]
    Field(#[from] UnmarshalError),
}

/// A line that is not a policy. `line` counts from 1; it is absent for a line that is too long.
#[derive(Clone, Debug, PartialEq)]
pub struct PolicyFault {
    pub line: Option<usize>,
    pub text: String,
    pub why: Box<LineError>,
}

impl PolicyFault {
    /// The error message of kube-apiserver for the file at `path`.
    pub fn of_file(&self, path: &str) -> String {
        let PolicyFault { line, text, why } = self;
        match line {
            Some(line) => format!("error reading policy file {path}, line {line}: {text}: {why}"),
            None => format!("error reading policy file {path}: {why}"),
        }
    }
}

impl PolicyList {
    /// Parses a file; empty lines and those that begin with `#` are ignored.
    ///
    /// # Errors
    ///
    /// The first line that is not a policy.
    pub fn parse(text: &[u8]) -> Result<Self, PolicyFault> {
        let mut policies = Vec::new();
        for (at, line) in text.split(|byte| *byte == b'\n').enumerate() {
            if line.len() >= LINE_BYTES_MAX {
                return Err(PolicyFault { line: None, text: String::new(), why: Box::new(LineError::TooLong) });
            }
            let line = line.strip_suffix(b"\r").unwrap_or(line);
            let trimmed = line.trim_ascii();
            if trimmed.is_empty() || trimmed.starts_with(b"#") {
                continue;
            }
            let text = || String::from_utf8_lossy(line).into_owned();
            let fault = |why| PolicyFault { line: Some(at + 1), text: text(), why: Box::new(why) };
            policies.push(parse(line).map_err(fault)?);
        }
        Ok(PolicyList(policies))
    }
}

/// Decodes one line of JSON or YAML. A line without `apiVersion` and `kind` has the older,
/// unversioned form.
fn parse(line: &[u8]) -> Result<AbacPolicy, LineError> {
    let Document { value, api_version, kind } = Document::read(line)?;
    let read = if api_version.is_empty() || kind.is_empty() {
        AbacPolicy::decode_v0(&value)
    } else {
        match api_version.strip_prefix(GROUP) {
            Some("/v1beta1") if kind == KIND => AbacPolicy::decode_v1beta1(&value),
            Some("/v0") if kind == KIND => AbacPolicy::decode_v0(&value),
            _ => return Err(SchemeError::not_registered(&kind, &api_version, SCHEME).into()),
        }
    };
    Ok(read?)
}

/// The text of an object's field; empty if the field is absent.
fn text_at(object: &Value, field: &str) -> Result<String, UnmarshalError> {
    match object.get(field) {
        None | Some(Value::Null) => Ok(String::new()),
        Some(value) => match value.as_str() {
            Some(text) => Ok(text.to_owned()),
            None => Err(UnmarshalError::of_type(json_type(value), "string")),
        },
    }
}

fn flag_at(object: &Value, field: &str) -> Result<bool, UnmarshalError> {
    match object.get(field) {
        None | Some(Value::Null) => Ok(false),
        Some(value) => value.as_bool().ok_or_else(|| UnmarshalError::of_type(json_type(value), "bool")),
    }
}

impl AbacPolicy {
    /// Decodes the versioned form. The user `*` or the group `*` stands for all authenticated
    /// users.
    fn decode_v1beta1(line: &Value) -> Result<Self, UnmarshalError> {
        let spec = match line.get("spec") {
            None | Some(Value::Null) => &Value::Null,
            Some(spec) if spec.as_object().is_some() => spec,
            Some(other) => {
                return Err(UnmarshalError::of_type(json_type(other), "v1beta1.PolicySpec").below(KIND, "spec"));
            }
        };
        let below =
            |field: &'static str| move |error: UnmarshalError| error.below("PolicySpec", field).below(KIND, "spec");
        let text = |field: &'static str| text_at(spec, field).map_err(below(field));
        let policy = AbacPolicy {
            user: text("user")?,
            group: text("group")?,
            readonly: flag_at(spec, "readonly").map_err(below("readonly"))?,
            api_group: text("apiGroup")?,
            resource: text("resource")?,
            namespace: text("namespace")?,
            non_resource_path: text("nonResourcePath")?,
        };
        Ok(policy.of_all_known())
    }

    /// Decodes the unversioned form, in which absent fields match everything.
    fn decode_v0(line: &Value) -> Result<Self, UnmarshalError> {
        let text = |field: &'static str| text_at(line, field).map_err(|error| error.below(KIND, field));
        let readonly = flag_at(line, "readonly").map_err(|error| error.below(KIND, "readonly"))?;
        let (user, group, resource, namespace) = (text("user")?, text("group")?, text("resource")?, text("namespace")?);
        let all = || "*".to_owned();
        let of = |text: String| if text.is_empty() { all() } else { text };
        let is_for_paths = namespace.is_empty() && resource.is_empty();
        let is_for_all = user.is_empty() && group.is_empty();
        let policy = AbacPolicy {
            user: if is_for_all { all() } else { user },
            group,
            readonly,
            api_group: all(),
            resource: of(resource),
            namespace: of(namespace),
            non_resource_path: if is_for_paths { all() } else { String::new() },
        };
        Ok(policy.of_all_known())
    }

    /// Replaces the user or group `*` by the group of all authenticated users.
    fn of_all_known(self) -> Self {
        if self.user == "*" || self.group == "*" {
            AbacPolicy { user: String::new(), group: UserInfo::AUTHENTICATED.to_owned(), ..self }
        } else {
            self
        }
    }

    /// Whether the policy applies to a user. A policy without a user and a group applies to none.
    fn is_about(&self, user: &UserInfo) -> bool {
        let has_user = self.user.is_empty() || self.user == user.name;
        let has_group = self.group.is_empty() || user.is_in(&self.group);
        let names_somebody = !self.user.is_empty() || !self.group.is_empty();
        names_somebody && has_user && has_group
    }

    fn allows(&self, user: &UserInfo, attributes: &Attributes<'_>) -> bool {
        let (Attributes::Path { verb, .. } | Attributes::Resource(super::ResourceAttributes { verb, .. })) = attributes;
        let is_verb = !self.readonly || READING.contains(verb);
        let is = |own: &str, wanted: &str| own == "*" || own == wanted;
        self.is_about(user)
            && is_verb
            && match attributes {
                Attributes::Resource(of) => {
                    is(&self.namespace, of.namespace)
                        && is(&self.resource, of.resource)
                        && is(&self.api_group, of.group)
                }
                Attributes::Path { path, .. } => self.has_path(path),
            }
    }

    /// Whether the policy's path matches. If it ends in `*`, it is a prefix.
    fn has_path(&self, path: &str) -> bool {
        let own = self.non_resource_path.as_str();
        own == path || (own.ends_with('*') && path.starts_with(own.trim_end_matches('*')))
    }

    fn verbs(&self) -> Vec<String> {
        let verbs: &[&str] = if self.readonly { &READING } else { &["*"] };
        verbs.iter().map(|verb| (*verb).to_owned()).collect()
    }
}

#[async_trait]
impl Authorizer for PolicyList {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision {
        work::steps(self.0.len());
        if self.0.iter().any(|policy| policy.allows(user, attributes)) {
            Decision::ALLOW
        } else {
            Decision::no_opinion("No policy matched.")
        }
    }

    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules {
        work::steps(self.0.len());
        let is_about =
            |policy: &&AbacPolicy| policy.is_about(user) && (policy.namespace == "*" || policy.namespace == namespace);
        let mut rules = Rules::default();
        for policy in self.0.iter().filter(is_about) {
            let verbs = policy.verbs();
            if !policy.resource.is_empty() {
                let (api_groups, resources) = (vec![policy.api_group.clone()], vec![policy.resource.clone()]);
                rules.resource.push(ResourceRule {
                    verbs: verbs.clone(),
                    api_groups,
                    resources,
                    resource_names: Vec::new(),
                });
            }
            if !policy.non_resource_path.is_empty() {
                rules.non_resource.push(NonResourceRule { verbs, urls: vec![policy.non_resource_path.clone()] });
            }
        }
        rules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::auth::ResourceAttributes;

    fn pods<'a>(verb: &'a str, namespace: &'a str) -> Attributes<'a> {
        Attributes::Resource(ResourceAttributes { verb, resource: "pods", namespace, ..ResourceAttributes::default() })
    }

    fn path(path: &str) -> Attributes<'_> {
        Attributes::Path { verb: "get", path }
    }

    #[track_caller]
    fn check(line: &str, user: &UserInfo, attributes: &Attributes<'_>, expected: bool) {
        let policies = PolicyList::parse(line.as_bytes()).expect("it is a policy");
        let allows = policies.0.iter().any(|policy| policy.allows(user, attributes));
        assert_eq!(allows, expected, "{line} {attributes:?}");
    }

    #[test]
    fn a_policy_with_a_version_allows_what_it_names() {
        let policy = |spec: &str| {
            format!(r#"{{"apiVersion":"abac.authorization.kubernetes.io/v1beta1","kind":"Policy","spec":{{{spec}}}}}"#)
        };
        let jane = UserInfo::authenticated("jane", vec!["dev".to_owned()]);
        let reads = policy(r#""user":"jane","namespace":"n","resource":"pods","readonly":true"#);
        check(&reads, &jane, &pods("list", "n"), true);
        check(&reads, &jane, &pods("create", "n"), false);
        check(&reads, &jane, &pods("list", "m"), false);
        check(&reads, &UserInfo::authenticated("joe", vec![]), &pods("list", "n"), false);
        let group = policy(r#""group":"dev","namespace":"*","resource":"*","apiGroup":"*""#);
        check(&group, &jane, &pods("delete", "m"), true);
        check(&group, &jane, &path("/version"), false);
        let both = policy(r#""user":"jane","group":"ops","namespace":"*","resource":"*""#);
        check(&both, &jane, &pods("get", "n"), false);
        let paths = policy(r#""group":"*","readonly":true,"nonResourcePath":"/openapi/*""#);
        check(&paths, &jane, &path("/openapi/v3"), true);
        check(&paths, &UserInfo::anonymous(), &path("/openapi/v3"), false);
        check(&policy(r#""namespace":"*","resource":"*""#), &jane, &pods("get", "n"), false);
    }

    #[test]
    fn a_policy_without_a_version_allows_what_it_does_not_limit() {
        let jane = UserInfo::authenticated("jane", vec![]);
        check(r#"{"user":"jane"}"#, &jane, &pods("create", "n"), true);
        check(r#"{"user":"jane"}"#, &jane, &path("/x"), true);
        check(r#"{"readonly":true}"#, &jane, &pods("create", "n"), false);
        check("{}", &jane, &pods("create", "n"), true);
        check("{}", &UserInfo::anonymous(), &pods("get", "n"), false);
        check(r#"{"user":"jane","namespace":"n"}"#, &jane, &path("/x"), false);
        check("user: jane", &jane, &pods("create", "n"), true);
        check("# nobody\n\n{\"group\":\"*\",\"resource\":\"pods\"}\n", &jane, &pods("get", ""), true);
    }

    #[test]
    fn a_line_that_is_not_a_policy_is_told_as_there() {
        let check = |text: &str, expected: &str| {
            let fault = PolicyList::parse(text.as_bytes()).expect_err("it is not a policy");
            assert_eq!(fault.of_file("p"), format!("error reading policy file p, line {expected}"));
        };
        let unreadable = "couldn't get version/kind; json parse error:";
        check("{}\n{\"user\":\"a\"", &format!("2: {{\"user\":\"a\": {unreadable} unexpected end of JSON input"));
        check(
            r#"{"user":1}"#,
            "1: {\"user\":1}: json: cannot unmarshal number into Go struct field Policy.user of type string",
        );
        let beta = |rest: &str| format!(r#"{{"apiVersion":"{GROUP}/v1beta1","kind":"Policy","spec":{rest}}}"#);
        for (spec, expected) in [
            (r#"{"readonly":"yes"}"#, "string into Go struct field PolicySpec.spec.readonly of type bool"),
            ("[]", "array into Go struct field Policy.spec of type v1beta1.PolicySpec"),
        ] {
            let line = beta(spec);
            check(&line, &format!("1: {line}: json: cannot unmarshal {expected}"));
        }
        check(
            r#"{"apiVersion":"v1","kind":"Pod"}"#,
            "1: {\"apiVersion\":\"v1\",\"kind\":\"Pod\"}: no kind \"Pod\" is registered for version \"v1\" in scheme \
             \"pkg/apis/abac/register.go:33\"",
        );
    }

    #[test]
    fn rules_are_those_of_a_user_in_a_namespace() {
        let policies = PolicyList::parse(
            br#"{"user":"jane","namespace":"n","resource":"pods","readonly":true}
{"user":"jane","namespace":"m","resource":"pods"}
{"user":"jane"}"#,
        );
        let rules = policies.expect("they are policies").rules_for(&UserInfo::authenticated("jane", vec![]), "n");
        let resources: Vec<_> = rules.resource.iter().map(|rule| (rule.verbs.join(","), &rule.resources[0])).collect();
        assert_eq!(resources, [("get,list,watch".to_owned(), &"pods".to_owned()), ("*".to_owned(), &"*".to_owned())]);
        assert_eq!(rules.non_resource, [NonResourceRule { verbs: vec!["*".to_owned()], urls: vec!["*".to_owned()] }]);
        assert!(!rules.incomplete);
    }
}
