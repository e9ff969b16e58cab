//! Whether a policy or webhook applies to a request: by its rules, and by the labels of the object
//! and of its namespace.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/webhook/predicates`, release 1.37.

use std::sync::Arc;

use async_trait::async_trait;

use super::{Attributes, Operation};
use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::meta::selector::SelectorError;
use crate::policy::Criteria;
use crate::policy::matching::{self, MatchAttributes};
use crate::value::Value;

/// The source of the labels of namespaces.
#[async_trait]
pub trait NamespaceLabels: Send + Sync {
    /// The labels of a namespace; `None` if it does not exist.
    async fn namespace_labels(&self, name: &str) -> Result<Option<Value>, Status>;
}

/// Matches one request, whose versions are loaded once.
pub struct Matcher<'c> {
    attributes: &'c Attributes<'c>,
    versions: Vec<Arc<ServedVersion>>,
}

/// Why it can't be decided whether a policy or webhook applies to a request.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum MatchError {
    /// A selector is invalid.
    #[error(transparent)]
    Selector(SelectorError),
    /// The namespace does not exist, or can't be read.
    #[error("{}", .0.message)]
    Namespace(Status),
}

impl MatchError {
    pub fn into_status(self) -> Status {
        match self {
            MatchError::Selector(error) => Status::internal_error(&error.to_string()),
            MatchError::Namespace(status) => status,
        }
    }
}

impl<'c> Matcher<'c> {
    pub fn new(attributes: &'c Attributes<'c>) -> Self {
        Matcher { attributes, versions: attributes.forms.versions() }
    }

    /// The version in which a policy or webhook with these criteria sees the request; `None` if it
    /// does not apply.
    ///
    /// Invalid selectors matter only for requests that match the rules.
    pub async fn version(
        &self,
        criteria: &Criteria,
        object: &Value,
        namespaces: &dyn NamespaceLabels,
    ) -> Result<Option<Arc<ServedVersion>>, MatchError> {
        let attributes = self.attributes;
        let asked = MatchAttributes {
            operation: attributes.operation,
            version: attributes.version,
            versions: &self.versions,
            subresource: attributes.subresource,
            namespace: attributes.namespace_or_own(),
            name: attributes.name,
        };
        let Some(version) = criteria.version(&asked) else { return Ok(None) };
        let selected = criteria.selects_object(attributes.operation, object, attributes.old);
        if selected == Ok(false) || !self.selects_namespace(criteria, object, namespaces).await? {
            return Ok(None);
        }
        selected.map_err(|error| MatchError::Selector(error.clone()))?;
        Ok(Some(version))
    }

    async fn selects_namespace(
        &self,
        criteria: &Criteria,
        object: &Value,
        namespaces: &dyn NamespaceLabels,
    ) -> Result<bool, MatchError> {
        let attributes = self.attributes;
        let namespace = attributes.namespace_or_own();
        // Kubernetes compares only the plural.
        let is_namespaces = attributes.version.names.plural == "namespaces";
        if namespace.is_empty() && !is_namespaces {
            return Ok(true);
        }
        let selector = criteria.namespaces().map_err(|error| MatchError::Selector(error.clone()))?;
        if selector.is_empty() {
            return Ok(true);
        }
        // For a namespace, the labels that it will have count, not those that it has.
        if is_namespaces && attributes.subresource.is_empty() && attributes.operation != Operation::Delete {
            return Ok(matching::matches(selector, object.at(&["metadata", "labels"])));
        }
        match namespaces.namespace_labels(namespace).await.map_err(MatchError::Namespace)? {
            Some(labels) => Ok(matching::matches(selector, Some(&labels))),
            None => Err(MatchError::Namespace(Status::not_found("", "namespaces", namespace))),
        }
    }
}
