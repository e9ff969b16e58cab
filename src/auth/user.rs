//! The user who sent a request.

use std::collections::BTreeMap;

use crate::meta::names;
use crate::value::{Map, Value};

/// A user as determined by authentication, with the fields of UserInfo in
/// `authentication.k8s.io/v1`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UserInfo {
    pub name: String,
    pub uid: String,
    pub groups: Vec<String>,
    pub extra: BTreeMap<String, Vec<String>>,
}

impl UserInfo {
    /// The group whose members may do everything.
    pub const MASTERS: &str = "system:masters";
    /// The group of all authenticated users.
    pub const AUTHENTICATED: &str = "system:authenticated";
    /// The user without credentials, and the group of it.
    const ANONYMOUS: &str = "system:anonymous";
    const UNAUTHENTICATED: &str = "system:unauthenticated";
    /// The key of the extra value with the id of the user's credential.
    pub const CREDENTIAL_ID: &str = "authentication.kubernetes.io/credential-id";
    /// The keys of the extra values with the pod that a service account token is bound to.
    pub const POD_NAME: &str = "authentication.kubernetes.io/pod-name";
    pub const POD_UID: &str = "authentication.kubernetes.io/pod-uid";
    /// The keys of the extra values with the node that the token is bound to, or that its pod runs
    /// on.
    pub const NODE_NAME: &str = "authentication.kubernetes.io/node-name";
    pub const NODE_UID: &str = "authentication.kubernetes.io/node-uid";

    /// A user who has authenticated as `name`, in `groups` and in `system:authenticated`; one of whom it is told that
    /// nobody is authenticated is not in that group.
    ///
    /// Source: `AuthenticatedGroupAdder` of `k8s.io/apiserver/pkg/authentication/group`, release 1.37.
    pub fn authenticated(name: impl Into<String>, groups: Vec<String>) -> Self {
        let mut user = UserInfo { name: name.into(), groups, ..UserInfo::default() };
        if user.name != Self::ANONYMOUS && !user.is_in(Self::AUTHENTICATED) && !user.is_in(Self::UNAUTHENTICATED) {
            user.groups.push(Self::AUTHENTICATED.to_owned());
        }
        user
    }

    /// A user without credentials.
    pub fn anonymous() -> Self {
        let groups = vec![Self::UNAUTHENTICATED.to_owned()];
        UserInfo { name: Self::ANONYMOUS.to_owned(), groups, ..UserInfo::default() }
    }

    /// The user of a port without TLS: everyone who can reach it is an administrator.
    pub fn unsecured() -> Self {
        UserInfo::authenticated("system:unsecured", vec![Self::MASTERS.to_owned()])
    }

    /// The user name of a service account.
    pub fn account_name(namespace: &str, name: &str) -> String {
        format!("system:serviceaccount:{namespace}:{name}")
    }

    /// The namespace and the name in the user name of a service account, whether or not there may be such names.
    pub fn account_of(user: &str) -> Option<(&str, &str)> {
        user.strip_prefix("system:serviceaccount:")?.rsplit_once(':')
    }

    /// The namespace and the name of the service account that the user is, if it is one.
    pub fn account(&self) -> Option<(&str, &str)> {
        let (namespace, name) = self.name.strip_prefix("system:serviceaccount:")?.split_once(':')?;
        let is_account =
            names::is_dns1123_label(namespace).is_empty() && names::name_is_dns1123_subdomain(name, false).is_empty();
        is_account.then_some((namespace, name))
    }

    /// The user name of the server's own writes.
    pub const API_SERVER: &str = "system:apiserver";

    /// Whether it is the server itself, or a service account of the namespace of its controllers.
    pub fn is_of_the_server(&self) -> bool {
        self.name == Self::API_SERVER || self.account().is_some_and(|(namespace, _)| namespace == "kube-system")
    }

    /// Who shares what is scarce as one with the user: the service accounts of a namespace do, as anyone who may create
    /// one may create many.
    pub fn sharer(&self) -> &str {
        match (self.account(), self.name.rsplit_once(':')) {
            (Some(_), Some((of_namespace, _))) => of_namespace,
            _ => &self.name,
        }
    }

    /// The groups of a service account.
    pub fn account_groups(namespace: &str) -> Vec<String> {
        vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")]
    }

    pub fn is_in(&self, group: &str) -> bool {
        self.groups.iter().any(|own| own == group)
    }

    /// Encodes the UserInfo of `authentication.k8s.io/v1`; empty fields are omitted.
    pub fn encode(&self) -> Value {
        let texts = |texts: &[String]| Value::Array(texts.iter().map(|text| Value::from(text.as_str())).collect());
        let mut fields = Map::new();
        for (name, text) in [("username", &self.name), ("uid", &self.uid)] {
            if !text.is_empty() {
                fields.insert(name, Value::from(text.as_str()));
            }
        }
        if !self.groups.is_empty() {
            fields.insert("groups", texts(&self.groups));
        }
        if !self.extra.is_empty() {
            let extra = self.extra.iter().map(|(name, values)| (name.clone(), texts(values)));
            fields.insert("extra", Value::Object(extra.collect()));
        }
        Value::Object(fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_accounts_of_a_namespace_share_as_one() {
        for (name, sharer) in [
            ("system:serviceaccount:a:x", "system:serviceaccount:a"),
            ("system:serviceaccount:a:y.z", "system:serviceaccount:a"),
            ("system:serviceaccount:b:x", "system:serviceaccount:b"),
            ("system:serviceaccount:b", "system:serviceaccount:b"),
            ("jane:doe", "jane:doe"),
        ] {
            assert_eq!(UserInfo::authenticated(name, Vec::new()).sharer(), sharer);
        }
    }

    #[test]
    fn everyone_who_is_known_is_authenticated_once() {
        let user = UserInfo::authenticated("jane", vec![UserInfo::AUTHENTICATED.to_owned()]);
        assert_eq!(user.groups, ["system:authenticated"]);
        assert!(UserInfo::unsecured().is_in(UserInfo::MASTERS));
        let unknown = UserInfo::anonymous();
        assert_eq!(UserInfo::authenticated(unknown.name.as_str(), Vec::new()).groups, <[String; 0]>::default());
        assert_eq!(UserInfo::authenticated("jane", unknown.groups.clone()).groups, unknown.groups);
    }
}
