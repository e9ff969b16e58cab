//! The variable `authorizer` of expressions: what the user of a request may do.
//!
//! Expressions can't await. Most authorizers answer at once, from memory; for one that calls a
//! service, the thread is blocked if the overseer of the work allows that ([`work::wait`]);
//! otherwise the check fails.

use std::sync::Arc;

use super::Attributes;
use crate::auth::{self, ResourceAttributes, UserInfo};
use crate::cel::library::authorizer::{self as cel, AuthorizerAnswer, AuthorizerCheck, CheckedResource};
use crate::webhook::patience::CROWDED;
use crate::work;
use futures_util::FutureExt as _;

/// The value of `authorizer.requestResource`.
pub fn request_resource(attributes: &Attributes<'_>) -> CheckedResource {
    CheckedResource {
        group: attributes.version.group.clone(),
        resource: attributes.version.names.plural.clone(),
        subresource: attributes.subresource.to_owned(),
        namespace: attributes.namespace_or_own().to_owned(),
        name: attributes.name.to_owned(),
    }
}

/// Answers checks of expressions for one user.
#[derive(Clone)]
pub struct ExpressionAuthorizer {
    authorizer: Arc<dyn auth::Authorizer>,
    user: UserInfo,
}

impl ExpressionAuthorizer {
    pub fn new(authorizer: &Arc<dyn auth::Authorizer>, user: &UserInfo) -> Self {
        ExpressionAuthorizer { authorizer: Arc::clone(authorizer), user: user.clone() }
    }

    /// Asks the authorizer, and blocks the thread until it has answered.
    fn ask(&self, attributes: &auth::Attributes<'_>) -> auth::Decision {
        let mut asked = self.authorizer.authorize(&self.user, attributes);
        if let Some(decision) = (&mut asked).now_or_never() {
            return decision;
        }
        let mut decision = None;
        let waited = work::wait(&mut |context| asked.as_mut().poll(context).map(|decided| decision = Some(decided)));
        match (waited, decision) {
            (Ok(()), Some(decision)) => decision,
            _ => auth::Decision { error: CROWDED.to_owned(), ..auth::Decision::NO_OPINION },
        }
    }
}

impl std::fmt::Debug for ExpressionAuthorizer {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "ExpressionAuthorizer({})", self.user.name)
    }
}

impl cel::RuleAuthorizer for ExpressionAuthorizer {
    fn decide(&self, check: &AuthorizerCheck) -> AuthorizerAnswer {
        let decision = match check {
            AuthorizerCheck::Path { verb, path } => self.ask(&auth::Attributes::Path { verb, path }),
            AuthorizerCheck::Resource { verb, resource } => {
                let attributes = ResourceAttributes {
                    verb,
                    group: &resource.group,
                    version: "*",
                    resource: &resource.resource,
                    subresource: &resource.subresource,
                    namespace: &resource.namespace,
                    name: &resource.name,
                    ..ResourceAttributes::default()
                };
                self.ask(&auth::Attributes::Resource(attributes))
            }
        };
        AuthorizerAnswer { allowed: decision.is_allowed(), reason: decision.reason, error: decision.error }
    }

    fn service_account(&self, namespace: &str, name: &str) -> Arc<dyn cel::RuleAuthorizer> {
        let groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        let name = format!("system:serviceaccount:{namespace}:{name}");
        let user = UserInfo { name, groups, ..UserInfo::default() };
        Arc::new(ExpressionAuthorizer { authorizer: Arc::clone(&self.authorizer), user })
    }
}
