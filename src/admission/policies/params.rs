//! The parameters of a policy: objects of the kind that it names, which its bindings name or select.
//!
//! Source: `CollectParams` in `k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go`, release 1.37.

use std::sync::Arc;

use thiserror::Error;

use super::PolicyRound;
use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::policy::binding::ParamError;
use crate::policy::{Head, ParamKindError, ParamRef};
use crate::value::Value;

/// Why the parameters of a policy can't be had.
#[derive(Debug, Error)]
pub enum LookupError {
    /// They can't be read.
    #[error("{}", .0.message)]
    Unreadable(Status),
    /// There is no such kind.
    #[error(transparent)]
    Kind(#[from] ParamKindError),
    /// The binding finds none.
    #[error(transparent)]
    Params(#[from] ParamError),
}

impl PolicyRound<'_> {
    /// How the parameters of a policy are served; `None` where it has none.
    ///
    /// # Errors
    /// There is no such kind, or it can't be read.
    pub async fn param_version(&self, head: &Head) -> Result<Option<Arc<ServedVersion>>, LookupError> {
        let Some(kind) = &head.param_kind else { return Ok(None) };
        let (group, version) = (kind.group(), kind.version());
        let found =
            self.attributes.forms.version_of(group, version, &kind.kind).await.map_err(LookupError::Unreadable)?;
        Ok(Some(found.ok_or_else(|| kind.not_found())?))
    }

    /// What a policy is asked with: each of its parameters, or null where it takes none. A binding that allows it to have
    /// none has no effect without.
    ///
    /// # Errors
    /// There is none, or they can't be read.
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
