//! What a user may do.

use std::sync::Arc;

use async_trait::async_trait;

use super::UserInfo;
use super::figures::Figures;
use crate::meta::Status;
use crate::meta::selector::{FieldSelector, LabelSelector};
use crate::value::go_quote;

/// What a request wants, in the words of `authorization.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attributes<'a> {
    Resource(ResourceAttributes<'a>),
    /// A path that is not a resource, such as `/version`, with the method in lower case.
    Path {
        verb: &'a str,
        path: &'a str,
    },
}

/// A request for a resource. What is absent is `""`.
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
    /// What a list, a watch or a deletion of a collection selects by fields.
    pub fields: Option<&'a FieldSelector>,
    /// What it selects by labels.
    pub labels: Option<&'a LabelSelector>,
}

/// The verdict of an authorizer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    Allow,
    /// Refused, whatever other authorizers would say.
    Deny,
    /// Other authorizers may allow it; refused if none does.
    NoOpinion,
}

/// An authorizer's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub verdict: Verdict,
    /// Why it is allowed, or what to add to the message of a refusal; mostly empty.
    pub reason: String,
    /// Why it could not be decided as it should have been; mostly empty.
    pub error: String,
}

impl Decision {
    /// Allowed without a reason.
    pub const ALLOW: Self = Decision { verdict: Verdict::Allow, reason: String::new(), error: String::new() };
    /// No opinion, without a reason.
    pub const NO_OPINION: Self = Decision { verdict: Verdict::NoOpinion, reason: String::new(), error: String::new() };

    /// Allowed by what `reason` names.
    pub fn allow(reason: impl Into<String>) -> Self {
        Decision { reason: reason.into(), ..Decision::ALLOW }
    }

    /// Not allowed, for a reason.
    pub fn no_opinion(reason: impl Into<String>) -> Self {
        Decision { reason: reason.into(), ..Decision::NO_OPINION }
    }

    pub fn is_allowed(&self) -> bool {
        self.verdict == Verdict::Allow
    }

    /// Its label in the metrics of requests.
    pub fn result(&self) -> &'static str {
        match self.verdict {
            Verdict::Allow => "allowed",
            _ if !self.error.is_empty() => "error",
            Verdict::Deny => "denied",
            Verdict::NoOpinion => "no-opinion",
        }
    }
}

/// Decides whether a user may do what a request wants. Every request passes it: if possible, it answers from memory,
/// and is ready when it is first polled.
#[async_trait]
pub trait Authorizer: Send + Sync {
    async fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision;

    /// What a user may do in a namespace, as far as that is known.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules;

    /// Loads what is visible now; later decisions are based on it.
    ///
    /// Errors: what the decisions are based on can't be read.
    async fn refresh(&self) -> Result<(), Status> {
        Ok(())
    }

    /// The metrics of its decisions, if they are counted.
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
    /// Why something is missing; mostly empty.
    pub error: String,
}

/// What may be done with resources; `*` stands for everything.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceRule {
    pub verbs: Vec<String>,
    pub api_groups: Vec<String>,
    pub resources: Vec<String>,
    /// Empty for all names.
    pub resource_names: Vec<String>,
}

/// What may be done with paths that are not resources.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NonResourceRule {
    pub verbs: Vec<String>,
    pub urls: Vec<String>,
}

impl Rules {
    /// A user with these rules may do everything.
    pub fn everything() -> Self {
        let all = || vec!["*".to_owned()];
        let resource = ResourceRule { verbs: all(), api_groups: all(), resources: all(), resource_names: Vec::new() };
        let non_resource = NonResourceRule { verbs: all(), urls: all() };
        Rules { resource: vec![resource], non_resource: vec![non_resource], incomplete: false, error: String::new() }
    }
}

/// Every authenticated user may do everything.
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

/// Nobody may do anything, with a reason.
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

/// Members of `system:masters` may do everything. Their rules are listed by other authorizers.
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
    /// Why `user` is refused, as the message of a Forbidden Status continues after `KIND "NAME" is forbidden: `; for a
    /// path it is all there is after `forbidden: `. What could be HTML is escaped.
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
