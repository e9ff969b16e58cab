//! A binding of a policy: where it applies, with which parameters, and how its refusals are enforced.

use thiserror::Error;

use super::matching::Criteria;
use crate::crd::Scope;
use crate::meta::selector::{LabelSelector, SelectorError};
use crate::value::Value;

/// A binding as it is stored.
#[derive(Debug)]
pub struct PolicyBinding {
    /// The name of the binding.
    pub name: String,
    /// The name of the policy.
    pub policy: String,
    /// The parameters that it binds.
    pub params: Option<ParamRef>,
    /// The requests that it applies to; `None` if it applies wherever its policy does.
    pub criteria: Option<Criteria>,
    /// The actions on a refusal; a mutating policy has none.
    pub actions: Vec<BindingAction>,
}

/// Selects the objects that are the parameters.
#[derive(Debug)]
pub struct ParamRef {
    /// The name of the parameters; empty if they are selected by labels.
    pub name: String,
    /// The namespace of the parameters; empty for that of the request.
    pub namespace: String,
    /// Selects the parameters by their labels; an error if the selector is invalid.
    pub selector: Option<Result<LabelSelector, SelectorError>>,
    /// Whether a request is refused if there are no parameters.
    pub denies_missing: bool,
}

/// Why a binding finds no parameters.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum ParamError {
    /// It names a namespace for a cluster-scoped kind.
    #[error("paramRef.namespace must not be provided for a cluster-scoped `paramKind`")]
    NamespaceNotAllowed,
    /// It names no namespace, and the request has none.
    #[error("cannot use namespaced paramRef in policy binding that matches cluster-scoped resources")]
    NoNamespace,
    /// It has neither a name nor a selector.
    #[error("one of name or selector must be provided")]
    Nothing,
    /// Its selector is invalid.
    #[error(transparent)]
    Selector(#[from] SelectorError),
    /// There are none, and the binding requires some.
    #[error("no params found for policy binding with `Deny` parameterNotFoundAction")]
    NotFound,
}

/// An action on a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BindingAction {
    /// The request is refused.
    Deny,
    /// The client is warned.
    Warn,
    /// The refusal is added to the audit event.
    Audit,
}

impl BindingAction {
    /// The name of the action in the binding.
    pub const fn as_str(self) -> &'static str {
        match self {
            BindingAction::Deny => "Deny",
            BindingAction::Warn => "Warn",
            BindingAction::Audit => "Audit",
        }
    }

    /// The name of the action in metrics.
    pub const fn enforced(self) -> &'static str {
        match self {
            BindingAction::Deny => "deny",
            BindingAction::Warn => "warn",
            BindingAction::Audit => "audit",
        }
    }
}

impl PolicyBinding {
    /// Decodes a binding that has been validated.
    pub fn decode(binding: &Value) -> Self {
        let spec = binding.get("spec").unwrap_or(&Value::Null);
        let present = |name: &str| spec.get(name).filter(|value| !value.is_null());
        let action = |action: &Value| match action.as_str()? {
            "Deny" => Some(BindingAction::Deny),
            "Warn" => Some(BindingAction::Warn),
            "Audit" => Some(BindingAction::Audit),
            _ => None,
        };
        PolicyBinding {
            name: binding.str_at(&["metadata", "name"]).to_owned(),
            policy: spec.str_at(&["policyName"]).to_owned(),
            params: present("paramRef").map(ParamRef::decode),
            criteria: present("matchResources").map(Criteria::decode),
            actions: spec.items_at(&["validationActions"]).iter().filter_map(action).collect(),
        }
    }
}

impl ParamRef {
    /// The namespace of a request's parameters; empty for a cluster-scoped kind.
    ///
    /// # Errors
    /// The binding names a namespace for a cluster-scoped kind, or the request lacks a namespace that it needs.
    pub fn namespace_for<'n>(&'n self, scope: Scope, own: &'n str) -> Result<&'n str, ParamError> {
        match (scope, self.namespace.as_str(), own) {
            (Scope::Cluster, "", _) => Ok(""),
            (Scope::Cluster, ..) => Err(ParamError::NamespaceNotAllowed),
            (Scope::Namespaced, "", "") => Err(ParamError::NoNamespace),
            (Scope::Namespaced, "", own) => Ok(own),
            (Scope::Namespaced, named, _) => Ok(named),
        }
    }

    /// Returns the parameters that were found; there may be none if the binding allows that.
    ///
    /// # Errors
    /// There are none, and the binding does not allow that.
    pub fn settle(&self, found: Vec<Value>) -> Result<Vec<Value>, ParamError> {
        if found.is_empty() && self.denies_missing { Err(ParamError::NotFound) } else { Ok(found) }
    }

    /// The selector of the parameters; `None` if the binding names one.
    ///
    /// # Errors
    /// It has neither a name nor a selector, or the selector is invalid.
    pub fn selector(&self) -> Result<Option<&LabelSelector>, ParamError> {
        match &self.selector {
            _ if !self.name.is_empty() => Ok(None),
            Some(selector) => Ok(Some(selector.as_ref().map_err(SelectorError::clone)?)),
            None => Err(ParamError::Nothing),
        }
    }

    fn decode(reference: &Value) -> Self {
        let selector = reference.get("selector").filter(|selector| !selector.is_null());
        ParamRef {
            name: reference.str_at(&["name"]).to_owned(),
            namespace: reference.str_at(&["namespace"]).to_owned(),
            selector: selector.map(LabelSelector::decode),
            denies_missing: reference.str_at(&["parameterNotFoundAction"]) == "Deny",
        }
    }
}
