//! The parameters of a policy: objects of the kind that it names, which its bindings name or select.
//!
//! Source: `CollectParams` in `k8s.io/apiserver/pkg/admission/plugin/policy/generic/policy_dispatcher.go`, release 1.37.

use std::sync::Arc;

use super::Round;
use crate::crd::ServedVersion;
use crate::meta::Status;
use crate::policy::{Head, ParamRef};
use crate::value::Value;

impl Round<'_> {
    /// How the parameters of a policy are served; `None` where it has none.
    ///
    /// # Errors
    /// That there is no such kind, or why it can't be read.
    pub async fn param_version(&self, head: &Head) -> Result<Option<Arc<ServedVersion>>, String> {
        let Some(kind) = &head.param_kind else { return Ok(None) };
        let (group, version) = (kind.group(), kind.version());
        let found = self.attributes.forms.version_of(group, version, &kind.kind).await.map_err(into_text)?;
        found.map(Some).ok_or_else(|| kind.not_found())
    }

    /// What a policy is asked with: each of its parameters, or null where it takes none. A binding that allows it to have
    /// none has no effect without.
    ///
    /// # Errors
    /// That there is none, or why they can't be read.
    pub async fn params(
        &self,
        version: Option<&Arc<ServedVersion>>,
        reference: Option<&ParamRef>,
    ) -> Result<Vec<Value>, String> {
        let (Some(version), Some(reference)) = (version, reference) else { return Ok(vec![Value::Null]) };
        let namespace = reference.namespace_for(version.scope, self.attributes.namespace_or_own())?;
        let forms = self.attributes.forms;
        let params = match &reference.selector {
            _ if !reference.name.is_empty() => {
                let found = forms.find(version, namespace, &reference.name).await.map_err(into_text)?;
                found.into_iter().collect()
            }
            Some(Ok(selector)) => forms.select(version, namespace, selector).await.map_err(into_text)?,
            Some(Err(why)) => return Err(why.clone()),
            None => return Err("one of name or selector must be provided".to_owned()),
        };
        reference.settle(params)
    }
}

fn into_text(status: Status) -> String {
    status.message
}
