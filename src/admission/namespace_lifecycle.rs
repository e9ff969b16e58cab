//! `NamespaceLifecycle`: nothing is written into a namespace that does not exist, and nothing is
//! created in one that is being deleted.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/namespace/lifecycle`, release 1.37.

use async_trait::async_trait;

use super::{Admission, Attributes, Operation, forbidden};
use crate::meta::minor::Minor;
use crate::meta::{Cause, Status};
use crate::value::Value;

/// Namespaces that can't be deleted.
const IMMORTAL: [&str; 3] = ["default", "kube-public", "kube-system"];

/// The minor since which an object may be updated whose namespace is gone: its finalizers can be removed.
const UPDATES_PASS_SINCE: Minor = Minor::of(37);

/// Whether a namespace still accepts new objects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    Active,
    Terminating,
}

/// The plugin's source of namespaces.
#[async_trait]
pub trait Namespaces: Send + Sync {
    /// The phase of the namespace `name`; `None` if it does not exist.
    async fn phase(&self, name: &str) -> Result<Option<Phase>, Status>;
}

pub struct NamespaceLifecycle<N> {
    pub namespaces: N,
}

#[async_trait]
impl<N: Namespaces> Admission for NamespaceLifecycle<N> {
    async fn mutate(&self, attributes: &Attributes<'_>, object: &mut Value) -> Result<(), Status> {
        let version = attributes.version;
        if version.group.is_empty() && version.names.plural == "namespaces" {
            let refused = attributes.operation == Operation::Delete && IMMORTAL.contains(&attributes.name);
            return if refused {
                Err(forbidden(attributes, object, "this namespace may not be deleted"))
            } else {
                Ok(())
            };
        }
        let namespace = attributes.namespace;
        // A review of what a user may do in a namespace does not depend on the namespace's
        // existence.
        if version.group == "authorization.k8s.io" && version.names.plural == "localsubjectaccessreviews" {
            return Ok(());
        }
        if namespace.is_empty() || attributes.operation == Operation::Delete {
            return Ok(());
        }
        if attributes.operation == Operation::Update && version.minor >= UPDATES_PASS_SINCE {
            return Ok(());
        }
        match self.namespaces.phase(namespace).await? {
            None => Err(Status::not_found("", "namespaces", namespace)),
            Some(Phase::Terminating) if attributes.operation == Operation::Create => {
                let why =
                    format!("unable to create new content in namespace {namespace} because it is being terminated");
                let mut status = forbidden(attributes, object, &why);
                status.details.get_or_insert_default().causes.push(Cause {
                    reason: "NamespaceTerminating".into(),
                    message: format!("namespace {namespace} is being terminated"),
                    field: "metadata.namespace".into(),
                });
                Err(status)
            }
            Some(_) => Ok(()),
        }
    }

    async fn validate(&self, _attributes: &Attributes<'_>, _object: &Value) -> Result<(), Status> {
        Ok(())
    }
}
