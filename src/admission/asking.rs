//! The variable `authorizer` of expressions: what the user behind a request may do.

use std::sync::Arc;

use super::Attributes;
use crate::auth::{self, ResourceAttributes, UserInfo};
use crate::cel::library::authorizer::{self as cel, Check, Decision, Resource};

/// What `authorizer.requestResource` stands for.
pub fn request_resource(attributes: &Attributes<'_>) -> Resource {
    Resource {
        group: attributes.version.group.clone(),
        resource: attributes.version.names.plural.clone(),
        subresource: attributes.subresource.to_owned(),
        namespace: attributes.namespace_or_own().to_owned(),
        name: attributes.name.to_owned(),
    }
}

/// What a user may do.
#[derive(Clone)]
pub struct Asking {
    authorizer: Arc<dyn auth::Authorizer>,
    user: UserInfo,
}

impl Asking {
    pub fn new(authorizer: &Arc<dyn auth::Authorizer>, user: &UserInfo) -> Self {
        Asking { authorizer: Arc::clone(authorizer), user: user.clone() }
    }
}

impl std::fmt::Debug for Asking {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "Asking({})", self.user.name)
    }
}

impl cel::Authorizer for Asking {
    fn decide(&self, check: &Check) -> Decision {
        let decision = match check {
            Check::Path { verb, path } => self.authorizer.authorize(&self.user, &auth::Attributes::Path { verb, path }),
            Check::Resource { verb, resource } => {
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
                self.authorizer.authorize(&self.user, &auth::Attributes::Resource(attributes))
            }
        };
        match decision {
            auth::Decision::Allow { reason } => Decision { allowed: true, reason },
            auth::Decision::Deny { reason } => Decision { allowed: false, reason },
        }
    }

    fn service_account(&self, namespace: &str, name: &str) -> Arc<dyn cel::Authorizer> {
        let groups = vec!["system:serviceaccounts".to_owned(), format!("system:serviceaccounts:{namespace}")];
        let name = format!("system:serviceaccount:{namespace}:{name}");
        let user = UserInfo { name, groups, ..UserInfo::default() };
        Arc::new(Asking { authorizer: Arc::clone(&self.authorizer), user })
    }
}
