//! What policies look up for a request: whether they are about it, parameters, namespaces, other versions.

use std::sync::Arc;

use thiserror::Error;

use super::target::TargetError;
use super::{MatchedRequest, Policies, PolicyRequest, PolicyTarget};
use crate::crd::ServedVersion;
use crate::crd::write::ReadError;
use crate::kinds;
use crate::meta::api_version::group_of;
use crate::meta::selector::SelectorError;
use crate::object;
use crate::policy::binding::ParamError;
use crate::policy::environment::show_namespace;
use crate::policy::matching::{self, MatchAttributes as Subject};
use crate::policy::{Criteria, Head, Operation, ParamKindError, ParamRef};
use crate::value::Value;

/// Where an object is that names no namespace.
pub const DEFAULT_NAMESPACE: &str = "default";

/// Why a policy can't be asked about a request.
#[derive(Clone, Debug, PartialEq, Error)]
pub(super) enum LookupError {
    /// A selector of the policy or of its binding is not one.
    #[error(transparent)]
    Selector(#[from] SelectorError),
    /// The objects can't be had in the version that the policy is about.
    #[error("failed to convert object version: {0}")]
    Version(TargetError),
    /// There is no such kind of parameters.
    #[error(transparent)]
    ParamKind(#[from] ParamKindError),
    /// The binding finds no parameters.
    #[error(transparent)]
    Params(#[from] ParamError),
    /// A parameter can't be read.
    #[error(transparent)]
    Unreadable(#[from] ReadError),
    /// A parameter can't be converted.
    #[error(transparent)]
    Conversion(#[from] TargetError),
}

impl Policies {
    /// The version in which something with these criteria sees the request; `None` where it is not about it.
    pub(super) fn version(
        &self,
        criteria: &Criteria,
        asked: &PolicyRequest<'_>,
        object: &Value,
    ) -> Result<Option<Arc<ServedVersion>>, LookupError> {
        let subject = Subject {
            operation: asked.operation,
            version: &asked.target.version,
            versions: asked.target.versions(),
            subresource: &asked.target.subresource,
            namespace: asked.namespace_or_own(),
            name: asked.name,
        };
        let Some(version) = criteria.version(&subject) else { return Ok(None) };
        let old = Some(asked.old).filter(|old| !old.is_null());
        let selected = criteria.selects_object(asked.operation, object, old);
        if selected == Ok(false) || !self.selects_namespace(criteria, asked, object)? {
            return Ok(None);
        }
        selected.map_err(SelectorError::clone)?;
        Ok(Some(version))
    }

    fn selects_namespace(
        &self,
        criteria: &Criteria,
        asked: &PolicyRequest<'_>,
        object: &Value,
    ) -> Result<bool, LookupError> {
        let namespace = asked.namespace_or_own();
        if namespace.is_empty() && !asked.target.is_namespaces() {
            return Ok(true);
        }
        let selector = criteria.namespaces().map_err(SelectorError::clone)?;
        if selector.is_empty() {
            return Ok(true);
        }
        let is_new = asked.target.is_namespaces() && asked.operation != Operation::Delete;
        let found = if is_new { object.clone() } else { self.namespace(asked, namespace) };
        Ok(matching::matches(selector, found.at(&["metadata", "labels"])))
    }

    /// A namespace that is among the manifests, or as it would have been made.
    fn namespace(&self, asked: &PolicyRequest<'_>, name: &str) -> Value {
        let is_it = |object: &&Value| is_of(object, "", "Namespace") && object.str_at(&["metadata", "name"]) == name;
        let found = asked.beside.iter().chain(&self.others).find(is_it).cloned();
        let mut namespace = found.unwrap_or_else(|| {
            object! { "apiVersion" => "v1", "kind" => "Namespace", "metadata" => object! { "name" => name } }
        });
        if let Some(kind) = kinds::find("", "namespaces") {
            let decoded = kind.strategy.decode(namespace.clone(), &[]);
            namespace = decoded.map_or(namespace, |decoded| decoded.object);
            kind.strategy.prepare_create(&kind.served_version(), &mut namespace);
        }
        namespace
    }

    /// The namespace as expressions see it; null for cluster scope and for namespaces themselves.
    fn namespace_object(&self, asked: &PolicyRequest<'_>) -> Value {
        if asked.namespace.is_empty() || asked.target.is_namespaces() {
            return Value::Null;
        }
        let mut namespace = self.namespace(asked, asked.namespace);
        show_namespace(&mut namespace);
        namespace
    }

    /// What expressions see in `version`.
    ///
    /// # Errors
    /// The objects can't be converted.
    pub(super) fn seen(
        &self,
        asked: &PolicyRequest<'_>,
        version: &ServedVersion,
        object: &Value,
    ) -> Result<MatchedRequest, LookupError> {
        Ok(MatchedRequest {
            object: asked.target.convert(object, version).map_err(LookupError::Version)?,
            old: asked.target.convert(asked.old, version).map_err(LookupError::Version)?,
            request: asked.encode(version),
            namespace: self.namespace_object(asked),
            resource: asked.resource(),
        })
    }

    /// How the parameters of a policy are served; `None` where it has none.
    ///
    /// # Errors
    /// There is no such kind.
    pub(super) fn param_target(
        &self,
        asked: &PolicyRequest<'_>,
        head: &Head,
    ) -> Result<Option<PolicyTarget>, LookupError> {
        let Some(kind) = &head.param_kind else { return Ok(None) };
        let target = PolicyTarget::of_kind(&kind.api_version, &kind.kind, "", asked.catalog);
        Ok(Some(target.ok_or_else(|| kind.not_found())?))
    }

    /// What a policy is asked with: each of its parameters, or null where it takes none.
    ///
    /// # Errors
    /// There is none, or they can't be read.
    pub(super) fn params(
        &self,
        asked: &PolicyRequest<'_>,
        target: Option<&PolicyTarget>,
        reference: Option<&ParamRef>,
    ) -> Result<Vec<Value>, LookupError> {
        let (Some(target), Some(reference)) = (target, reference) else { return Ok(vec![Value::Null]) };
        let namespace = reference.namespace_for(target.version.scope, asked.namespace_or_own())?;
        let selector = reference.selector()?;
        let (group, kind) = (&target.version.group, &target.version.names.kind);
        let mut names = Vec::new();
        let mut found = Vec::new();
        for object in asked.beside.iter().chain(&self.others).filter(|object| is_of(object, group, kind)) {
            let name = object.str_at(&["metadata", "name"]);
            let is_asked = match selector {
                None => name == reference.name,
                Some(selector) => matching::matches(selector, object.at(&["metadata", "labels"])),
            };
            if is_asked && is_in(object, namespace, asked.home) && !names.contains(&name) {
                names.push(name);
                let decoded = target.decode(object)?;
                found.push(target.convert(&decoded, &target.version)?);
            }
        }
        found.sort_by_cached_key(|object| object.str_at(&["metadata", "name"]).to_owned());
        Ok(reference.settle(found)?)
    }
}

fn is_of(object: &Value, group: &str, kind: &str) -> bool {
    group_of(object.str_at(&["apiVersion"])) == group && object.str_at(&["kind"]) == kind
}

/// Whether an object is in a namespace, which is empty for cluster scope. One that names none may be applied at `home`, or
/// by itself, to `default`.
fn is_in(object: &Value, namespace: &str, home: &str) -> bool {
    let own = object.str_at(&["metadata", "namespace"]);
    let is_at_home = || own.is_empty() && (namespace == home || namespace == DEFAULT_NAMESPACE);
    namespace.is_empty() || own == namespace || is_at_home()
}
