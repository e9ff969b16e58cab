//! Authorization: whether a user may do what a request asks for.

use std::sync::Arc;

use async_trait::async_trait;

use super::UserInfo;
use super::figures::Figures;
use crate::meta::Status;
use crate::meta::selector::{FieldSelector, LabelSelector};
use crate::value::go_quote;

/// What a request asks for, in the terms of `authorization.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attributes<'a> {
    Resource(ResourceAttributes<'a>),
    /// A non-resource path such as `/version`, with the HTTP method in lower case.
    Path {
        verb: &'a str,
        path: &'a str,
    },
}

/// A request for a resource. Absent fields are empty.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ResourceAttributes<'a> {
    /// `get`, `list`, `watch`, `create`, `update`, `patch`, `delete` or `deletecollection`.
    pub verb: &'a str,
    pub group: &'a str,
    pub version: &'a str,
    pub resource: &'a str,
    pub subresource: &'a str,
    pub namespace: &'a str,
    pub name: &'a str,
    /// The field selector of a list, a watch or a deletion of a collection.
    pub fields: Option<&'a FieldSelector>,
    /// Its label selector.
    pub labels: Option<&'a LabelSelector>,
}

/// The verdict of an authorizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// Denied, whatever other authorizers decide.
    Deny,
    /// Other authorizers may allow it; it is refused if none does.
    NoOpinion,
}

/// An authorizer's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// Why the request is allowed, or what to add to the message of a refusal; mostly empty.
    pub reason: String,
    /// An error that affected the decision; mostly empty.
    pub error: String,
}

impl Decision {
    /// Allowed without a reason.
    pub const ALLOW: Self = Decision { verdict: Verdict::Allow, reason: String::new(), error: String::new() };
    /// No opinion, without a reason.
    pub const NO_OPINION: Self = Decision { verdict: Verdict::NoOpinion, reason: String::new(), error: String::new() };

    /// Allowed, for a reason.
    pub fn allow(reason: impl Into<String>) -> Self {
        Decision { reason: reason.into(), ..Decision::ALLOW }
    }

    /// No opinion, for a reason.
    pub fn no_opinion(reason: impl Into<String>) -> Self {
        Decision { reason: reason.into(), ..Decision::NO_OPINION }
    }

    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }

    /// The value of the label `result` in the metrics of requests.
    pub fn result(&self) -> &'static str {
        match self.verdict {
            Verdict::Allow => "allowed",
            _ if !self.error.is_empty() => "error",
            Verdict::Deny => "denied",
            Verdict::NoOpinion => "no-opinion",
        }
    }
}

/// Decides whether a user may do what a request asks for. Every request passes through it: if
/// possible, it answers from memory, and its future is ready when it is first polled.
#[async_trait]
pub trait Authorizer: Send + Sync {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision;

    /// The rules for a user in a namespace, as far as they are known.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules;

    /// How many bytes these rules take in memory while they are listed, about.
    fn rules_bytes(&self, _user: &UserInfo, _namespace: &str) -> usize {
        0
    }

    /// Loads the current state; later decisions are based on it.
    ///
    /// # Errors
    ///
    /// The state can't be read.
    async fn refresh(&self) -> Result<(), Status> {
        Ok(())
    }

    /// The metrics of decisions, if they are counted.
    fn figures(&self) -> Option<&Arc<Figures>> {
        None
    }
}

/// What a user may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub resource: Vec<ResourceRule>,
    pub non_resource: Vec<NonResourceRule>,
    /// Whether more may be allowed than is listed.
    pub incomplete: bool,
    /// Why rules are missing; mostly empty.
    pub error: String,
}

/// What is allowed for resources; `*` stands for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    pub verbs: Vec<String>,
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    /// Empty for all names.
    pub resource_names: Vec<String>,
}

/// What is allowed for non-resource paths.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonResourceRule {
    pub verbs: Vec<String>,
    pub urls: Vec<String>,
}

impl Rules {
    /// The rules of a user who may do everything.
    pub fn everything() -> Self {
        let all = || vec!["*".to_owned()];
        let resource = ResourceRule { verbs: all(), api_groups: all(), resources: all(), resource_names: Vec::new() };
        let non_resource = NonResourceRule { verbs: all(), urls: all() };
        Rules { resource: vec![resource], non_resource: vec![non_resource], incomplete: false, error: String::new() }
    }
}

/// Allows everything to every user.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysAllow;

#[async_trait]
impl Authorizer for AlwaysAllow {
    async fn authorize(&self, _: &UserInfo, _: &Attributes<'_>) -> Decision {
        Decision::ALLOW
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> Rules {
        Rules::everything()
    }
}

/// Refuses everything, with a reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysDeny;

#[async_trait]
impl Authorizer for AlwaysDeny {
    async fn authorize(&self, _: &UserInfo, _: &Attributes<'_>) -> Decision {
        Decision::no_opinion("Everything is forbidden.")
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> Rules {
        Rules::default()
    }
}

/// Allows everything to members of `system:masters`. Their rules are listed by other authorizers.
#[derive(Clone, Copy, Debug, Default)]
pub struct Masters;

#[async_trait]
impl Authorizer for Masters {
    async fn authorize(&self, user: &UserInfo, _: &Attributes<'_>) -> Decision {
        if user.is_in(UserInfo::MASTERS) { Decision::ALLOW } else { Decision::NO_OPINION }
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> Rules {
        Rules::default()
    }
}

impl Attributes<'_> {
    /// Why `user` is refused: the part of a Forbidden Status's message that follows `KIND "NAME" is
    /// forbidden: `; for a path, all that follows `forbidden: `. HTML characters are escaped.
    ///
    /// Source: `ForbiddenStatusError` of apiserver 1.37.
    pub fn refusal(&self, user: &UserInfo, reason: &str) -> String {
        let user = go_quote(&user.name);
        let text = match self {
            Attributes::Path { verb, path } => format!("User {user} cannot {verb} path {}", go_quote(path)),
            Attributes::Resource(of) => {
                let resource = match of.subresource {
                    "" => of.resource.to_owned(),
                    subresource => format!("{}/{subresource}", of.resource),
                };
                let place = match of.namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {}", go_quote(namespace)),
                };
                let (verb, resource, group) = (of.verb, go_quote(&resource), go_quote(of.group));
                format!("User {user} cannot {verb} resource {resource} in API group {group} {place}")
            }
        };
        let mut text = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
        if !reason.is_empty() {
            text.push_str(": ");
            text.push_str(reason);
        }
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_who_cannot_do_what_where() {
        let jane = UserInfo::authenticated("jane", vec![]);
        let check = |attributes: Attributes<'_>, expected: &str| assert_eq!(attributes.refusal(&jane, ""), expected);
        let crontabs = ResourceAttributes {
            verb: "list",
            group: "stable.example.com",
            version: "v1",
            resource: "crontabs",
            namespace: "default",
            ..ResourceAttributes::default()
        };
        check(
            Attributes::Resource(crontabs),
            r#"User "jane" cannot list resource "crontabs" in API group "stable.example.com" in the namespace "default""#,
        );
        check(
            Attributes::Resource(ResourceAttributes { namespace: "", subresource: "status", verb: "get", ..crontabs }),
            r#"User "jane" cannot get resource "crontabs/status" in API group "stable.example.com" at the cluster scope"#,
        );
        check(Attributes::Path { verb: "get", path: "/x" }, r#"User "jane" cannot get path "/x""#);
        check(Attributes::Path { verb: "get", path: "/<b>&\"" }, r#"User "jane" cannot get path "/&lt;b&gt;&amp;\"""#);
    }
}
