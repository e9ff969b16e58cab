//! The state of one request for all policies: what several of them need is looked up once.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Instant;

use async_trait::async_trait;
use tokio::sync::OnceCell;

use super::NamespaceLookup;
use crate::admission::expression_authorizer::{ExpressionAuthorizer, request_resource};
use crate::admission::matcher::{MatchError, Matcher, NamespaceLabels};
use crate::admission::{AdmissionRound as Step, Attributes, Evaluated, Figures, FormError};
use crate::auth::Authorizer;
use crate::cel::library::authorizer::CheckedResource;
use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::policy::conditions::ConditionsError;
use crate::policy::{Criteria, Head, PolicyInput};
use crate::value::Value;

/// A request, and what was looked up for it.
pub struct PolicyRound<'r> {
    pub attributes: &'r Attributes<'r>,
    matcher: Matcher<'r>,
    namespaces: &'r dyn NamespaceLookup,
    namespace: OnceCell<Option<Arc<Value>>>,
    expression_authorizer: Arc<ExpressionAuthorizer>,
    request_resource: CheckedResource,
}

/// The objects of a request in the version that the rules matched.
pub struct MatchedObjects<'s> {
    pub version: Arc<ServedVersion>,
    pub object: Cow<'s, Value>,
    pub old: Cow<'s, Value>,
    pub request: Value,
}

impl<'r> PolicyRound<'r> {
    pub fn new(
        attributes: &'r Attributes<'r>,
        namespaces: &'r dyn NamespaceLookup,
        authorizer: &Arc<dyn Authorizer>,
    ) -> Self {
        PolicyRound {
            attributes,
            matcher: Matcher::new(attributes),
            namespaces,
            namespace: OnceCell::new(),
            expression_authorizer: Arc::new(ExpressionAuthorizer::new(authorizer, attributes.user)),
            request_resource: request_resource(attributes),
        }
    }

    /// The version in which a policy or a binding sees the request; `None` if it does not apply.
    ///
    /// # Errors
    ///
    /// Why this can't be decided.
    pub async fn version(&self, criteria: &Criteria, object: &Value) -> Result<Option<Arc<ServedVersion>>, MatchError> {
        self.matcher.version(criteria, object, self).await
    }

    /// The objects of the request in `version`.
    ///
    /// # Errors
    ///
    /// Why they can't be converted.
    pub async fn seen<'o>(
        &self,
        version: Arc<ServedVersion>,
        object: &'o Value,
    ) -> Result<MatchedObjects<'o>, FormError>
    where
        'r: 'o,
    {
        const NONE: &Value = &Value::Null;
        let old = self.attributes.old.unwrap_or(NONE);
        let (object, old) = if !self.is_converted(&version) {
            (Cow::Borrowed(object), Cow::Borrowed(old))
        } else {
            (Cow::Owned(self.convert(object, &version).await?), Cow::Owned(self.convert(old, &version).await?))
        };
        Ok(MatchedObjects { request: self.attributes.request(&version), version, object, old })
    }

    fn is_converted(&self, version: &ServedVersion) -> bool {
        let own = self.attributes.version;
        self.attributes.subresource != "scale" && (&own.group, &own.version) != (&version.group, &version.version)
    }

    async fn convert(&self, object: &Value, version: &ServedVersion) -> Result<Value, FormError> {
        if object.is_null() { Ok(Value::Null) } else { self.attributes.forms.convert(object.clone(), version).await }
    }

    /// The namespace of the request as expressions see it; null for cluster scope and for
    /// namespaces themselves.
    ///
    /// # Errors
    ///
    /// 404 if the namespace does not exist.
    pub async fn namespace_object(&self) -> Result<Arc<Value>, Status> {
        let kind = self.attributes.kind_in(self.attributes.version);
        let name = self.attributes.namespace_or_own();
        if name.is_empty() || (kind.group, kind.version, kind.kind) == ("", "v1", "Namespace") {
            return Ok(Arc::default());
        }
        self.find_namespace(name).await?.ok_or_else(|| Status::not_found("", "namespaces", name))
    }

    async fn find_namespace(&self, name: &str) -> Result<Option<Arc<Value>>, Status> {
        self.namespace.get_or_try_init(|| self.namespaces.namespace(name)).await.cloned()
    }

    /// Whether the match conditions of a policy hold; the evaluation is counted.
    ///
    /// # Errors
    ///
    /// Why this can't be decided.
    pub fn match_conditions(
        &self,
        head: &Head,
        input: &PolicyInput<'_>,
        figures: &Figures,
    ) -> Result<bool, ConditionsError> {
        let began = Instant::now();
        let asked = head.match_conditions(input);
        figures.evaluated(&Evaluated {
            name: &head.name,
            kind: "policy",
            step: Step::Validate.as_str(),
            operation: self.attributes.operation,
            took: began.elapsed(),
            hold: asked.hold == Ok(true),
            errors: asked.errors,
        });
        asked.hold
    }

    /// The variables of a policy's expressions.
    pub fn input<'i>(
        &'i self,
        seen: &'i MatchedObjects<'_>,
        namespace: &'i Value,
        params: &'i Value,
    ) -> PolicyInput<'i> {
        PolicyInput {
            object: &seen.object,
            old_object: &seen.old,
            request: &seen.request,
            namespace,
            params,
            authorizer: Some(self.expression_authorizer.clone()),
            request_resource: &self.request_resource,
        }
    }
}

#[async_trait]
impl NamespaceLabels for PolicyRound<'_> {
    /// A request is in one namespace, so `name` is always the same.
    async fn namespace_labels(&self, name: &str) -> Result<Option<Value>, Status> {
        let namespace = self.find_namespace(name).await?;
        Ok(namespace.map(|namespace| namespace.at(&["metadata", "labels"]).cloned().unwrap_or_default()))
    }
}
