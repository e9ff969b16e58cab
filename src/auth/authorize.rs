//! What a user may do.

use super::UserInfo;

/// What a request wants, in the words of `authorization.k8s.io`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Attributes<'a> {
    Resource(ResourceAttributes<'a>),
    /// A path that is no resource, such as `/version`, with the method in lower case.
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
}

/// An authoriser's answer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Decision {
    Allow,
    /// Denied, with what to add to the message; mostly nothing.
    Deny {
        reason: String,
    },
}

/// Decides whether a user may do what a request wants. Answers from memory: it stands in every request's way.
pub trait Authorizer: Send + Sync {
    fn authorize(&self, user: &UserInfo, attributes: &Attributes<'_>) -> Decision;

    /// What a user may do in a namespace, as far as that can be told.
    fn rules_for(&self, user: &UserInfo, namespace: &str) -> Rules;
}

/// What somebody may do.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Rules {
    pub resource: Vec<ResourceRule>,
    pub non_resource: Vec<NonResourceRule>,
    /// Whether more may be allowed than is listed.
    pub incomplete: bool,
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

/// What may be done with paths that are no resources.
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
        Rules { resource: vec![resource], non_resource: vec![non_resource], incomplete: false }
    }
}

/// Members of `system:masters` may do everything, nobody else anything.
#[derive(Clone, Copy, Debug, Default)]
pub struct MastersOnly;

impl Authorizer for MastersOnly {
    fn authorize(&self, user: &UserInfo, _: &Attributes<'_>) -> Decision {
        match user.is_in(UserInfo::MASTERS) {
            true => Decision::Allow,
            false => Decision::Deny { reason: String::new() },
        }
    }

    fn rules_for(&self, user: &UserInfo, _: &str) -> Rules {
        if user.is_in(UserInfo::MASTERS) { Rules::everything() } else { Rules::default() }
    }
}

impl Attributes<'_> {
    /// Why `user` is refused, as the message of a Forbidden Status continues after `KIND "NAME" is forbidden: `; for a
    /// path it is all there is after `forbidden: `.
    ///
    /// Source: answers of kube-apiserver 1.37 to users without a role.
    pub fn refusal(&self, user: &UserInfo, reason: &str) -> String {
        let user = &user.name;
        let mut text = match self {
            Attributes::Path { verb, path } => format!("User {user:?} cannot {verb} path {path:?}"),
            Attributes::Resource(of) => {
                let resource = match of.subresource {
                    "" => of.resource.to_owned(),
                    subresource => format!("{}/{subresource}", of.resource),
                };
                let place = match of.namespace {
                    "" => "at the cluster scope".to_owned(),
                    namespace => format!("in the namespace {namespace:?}"),
                };
                let (verb, group) = (of.verb, of.group);
                format!("User {user:?} cannot {verb} resource {resource:?} in API group {group:?} {place}")
            }
        };
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
    fn masters_may_do_everything_and_nobody_else_anything() {
        let wish = Attributes::Path { verb: "get", path: "/version" };
        assert_eq!(MastersOnly.authorize(&UserInfo::unsecured(), &wish), Decision::Allow);
        let jane = UserInfo::authenticated("jane", vec!["dev".to_owned()]);
        assert_eq!(MastersOnly.authorize(&jane, &wish), Decision::Deny { reason: String::new() });
    }

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
    }
}
