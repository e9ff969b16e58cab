//! What a user may do.

use async_trait::async_trait;

use super::UserInfo;
use crate::meta::Status;
use crate::meta::selector::FieldSelector;
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
}

/// An authoriser's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    /// Allowed, with what grants it; empty where there is nothing to tell.
    Allow { reason: String },
    /// Denied, with what to add to the message; mostly nothing.
    Deny { reason: String },
}

impl Decision {
    /// Allowed without a word.
    pub const ALLOW: Self = Decision::Allow { reason: String::new() };

    pub fn is_allowed(&self) -> bool {
        matches!(self, Decision::Allow { .. })
    }
}

/// Decides whether a user may do what a request wants. Answers from memory: it stands in every request's way.
#[async_trait]
pub trait Authorizer: Send + Sync {
    fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision;

    /// What a user may do in a namespace, as far as that can be told.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules;

    /// Takes in what has been visible until now, on which the decisions after it are then based.
    ///
    /// Errors: what the decisions are based on can't be read.
    async fn refresh(&self) -> Result<(), Status> {
        Ok(())
    }
}

/// What somebody may do.
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
    /// Whoever has these may do everything.
    pub fn everything() -> Self {
        let all = || vec!["*".to_owned()];
        let resource = ResourceRule { verbs: all(), api_groups: all(), resources: all(), resource_names: Vec::new() };
        let non_resource = NonResourceRule { verbs: all(), urls: all() };
        Rules { resource: vec![resource], non_resource: vec![non_resource], incomplete: false, error: String::new() }
    }
}

/// Everybody who is known may do everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysAllow;

impl Authorizer for AlwaysAllow {
    fn authorize(&self, _: &UserInfo, _: &Attributes<'_>) -> Decision {
        Decision::ALLOW
    }

    fn rules_for(&self, _: &UserInfo, _: &str) -> Rules {
        Rules::everything()
    }
}

/// Nobody may do anything but members of `system:masters`, whom no authoriser is asked about. No reason is told.
#[derive(Clone, Copy, Debug, Default)]
pub struct MastersOnly;

impl Authorizer for MastersOnly {
    fn authorize(&self, user: &UserInfo, _: &Attributes<'_>) -> Decision {
        if user.is_in(UserInfo::MASTERS) { Decision::ALLOW } else { Decision::Deny { reason: String::new() } }
    }

    fn rules_for(&self, user: &UserInfo, _: &str) -> Rules {
        if user.is_in(UserInfo::MASTERS) { Rules::everything() } else { Rules::default() }
    }
}

/// The same, with a reason.
#[derive(Clone, Copy, Debug, Default)]
pub struct AlwaysDeny;

impl Authorizer for AlwaysDeny {
    fn authorize(&self, user: &UserInfo, _: &Attributes<'_>) -> Decision {
        if user.is_in(UserInfo::MASTERS) {
            return Decision::ALLOW;
        }
        Decision::Deny { reason: "Everything is forbidden.".to_owned() }
    }

    fn rules_for(&self, user: &UserInfo, _: &str) -> Rules {
        MastersOnly.rules_for(user, "")
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
