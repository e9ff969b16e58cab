//! The parameters of a policy: objects of its parameter kind, which its bindings name or select.
//!
//! Source: `CollectParams` in
//! `k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go`, release 1.37.

use std::sync::Arc;

use thiserror::Error;

use super::PolicyRound;
use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::policy::binding::ParamError;
use crate::policy::{Head, ParamKindError, ParamRef};
use crate::value::Value;

/// Why the parameters of a policy can't be looked up.
#[derive(Debug, Error)]
pub enum LookupError {
    /// They can't be read.
    #[error("{}", .0.message)]
    Unreadable(Status),
    /// The parameter kind does not exist.
    #[error(transparent)]
    Kind(#[from] ParamKindError),
    /// The binding finds no parameters.
    #[error(transparent)]
    Params(#[from] ParamError),
}

impl PolicyRound<'_> {
    /// The version in which the parameters of a policy are served; `None` if it has none.
    ///
    /// # Errors
    ///
    /// The parameter kind does not exist, or can't be read.
    pub async fn param_version(&self, head: &Head) -> Result<Option<Arc<ServedVersion>>, LookupError> {
        let Some(kind) = &head.param_kind else { return Ok(None) };
        let (group, version) = (kind.group(), kind.version());
        let found =
            self.attributes.forms.version_of(group, version, &kind.kind).await.map_err(LookupError::Unreadable)?;
        Ok(Some(found.ok_or_else(|| kind.not_found())?))
    }

    /// The values of `params` that a policy is evaluated with: each of its parameters, or null if
    /// it has none. A binding without parameters yields nothing if it allows that.
    ///
    /// # Errors
    ///
    /// There are no parameters, or they can't be read.
    pub async fn params(
        &self,
        version: Option<&Arc<ServedVersion>>,
        reference: Option<&ParamRef>,
    ) -> Result<Vec<Value>, LookupError> {
        let (Some(version), Some(reference)) = (version, reference) else { return Ok(vec![Value::Null]) };
        let namespace = reference.namespace_for(version.scope, self.attributes.namespace_or_own())?;
        let forms = self.attributes.forms;
        let found = match reference.selector()? {
            None => forms.find(version, namespace, &reference.name).await.map(|found| found.into_iter().collect()),
            Some(selector) => forms.select(version, namespace, selector).await,
        };
        Ok(reference.settle(found.map_err(LookupError::Unreadable)?)?)
    }
}
