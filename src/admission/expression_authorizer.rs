//! The variable `authorizer` of expressions: what the user of a request may do.
//!
//! Expressions can't await. Most authorizers answer at once, from memory; for one that calls a
//! service, the thread is blocked if the overseer of the work allows that ([`work::wait`]);
//! otherwise the check fails.

use std::sync::Arc;

use super::Attributes;
use crate::auth::{self, ResourceAttributes, UserInfo};
use crate::cel::library::authorizer::{self as cel, AuthorizerAnswer, AuthorizerCheck, CheckedResource};
use crate::meta::selector::{FieldSelector, LabelSelector};
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
        ..CheckedResource::default()
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
                // A selector that can't be parsed is left out, as Kubernetes does.
                let (fields, labels) = (&resource.field_selector, &resource.label_selector);
                let fields = (!fields.is_empty()).then(|| FieldSelector::parse(fields).ok()).flatten();
                let labels = (!labels.is_empty()).then(|| LabelSelector::parse(labels).ok()).flatten();
                let attributes = ResourceAttributes {
                    verb,
                    group: &resource.group,
                    version: "*",
                    resource: &resource.resource,
                    subresource: &resource.subresource,
                    namespace: &resource.namespace,
                    name: &resource.name,
                    fields: fields.as_ref(),
                    labels: labels.as_ref(),
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

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use async_trait::async_trait;

    use super::*;
    use crate::cel::library::authorizer::RuleAuthorizer as _;
    use crate::value::json;

    /// Notes the selectors that it is asked about.
    #[derive(Default)]
    struct Notes(Mutex<Vec<String>>);

    #[async_trait]
    impl auth::Authorizer for Notes {
        async fn authorize(&self, _: &UserInfo, attributes: &auth::Attributes<'_>) -> auth::Decision {
            let auth::Attributes::Resource(of) = attributes else { return auth::Decision::ALLOW };
            let told = [of.fields.map(FieldSelector::requirements), of.labels.map(LabelSelector::requirements)];
            let told = told.map(|asked| asked.map_or("none".to_owned(), |asked| json::encode_to_string(&asked.into())));
            self.0.lock().expect("no thread panics").push(told.join(" "));
            auth::Decision::ALLOW
        }

        fn rules_for(&self, _: &UserInfo, _: &str) -> auth::Rules {
            auth::Rules::default()
        }
    }

    #[test]
    fn selectors_are_passed_on_as_far_as_they_can_be_read() {
        let notes = Arc::new(Notes::default());
        let authorizer: Arc<dyn auth::Authorizer> = notes.clone();
        let authorizer = ExpressionAuthorizer::new(&authorizer, &UserInfo::anonymous());
        for (fields, labels) in [("spec.nodeName=a", "app in (b)"), ("", ""), ("spec", "app in")] {
            let resource = CheckedResource {
                field_selector: fields.to_owned(),
                label_selector: labels.to_owned(),
                ..CheckedResource::default()
            };
            authorizer.decide(&AuthorizerCheck::Resource { verb: "list".to_owned(), resource });
        }
        let of = |key: &str, value: &str| format!(r#"[{{"key":"{key}","operator":"In","values":["{value}"]}}]"#);
        let read = format!("{} {}", of("spec.nodeName", "a"), of("app", "b"));
        assert_eq!(*notes.0.lock().expect("no thread panics"), [read.as_str(), "none none", "none none"]);
    }
}
