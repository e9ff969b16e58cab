//! `ValidatingAdmissionPolicy` and `MutatingAdmissionPolicy`: stored policies, and how they are
//! applied to a write.
//!
//! Input: a write, and the policies and bindings as they are stored at that moment. Output: nothing, a
//! changed object, or the refusal by the first policy that denies the write, with the warnings and
//! audit annotations of all. The decisions of policies are pure (`crate::policy`); here their
//! parameters, namespaces and other versions of the objects are looked up.
//!
//! Policies are evaluated in the order of their names, and so are the bindings of each; Kubernetes
//! defines no order.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy`, release 1.37.

mod mutating;
mod params;
mod round;
mod validating;

use std::sync::Arc;

use async_trait::async_trait;

use super::{Admission, Attributes, Figures, Operation};
use crate::auth::Authorizer;
use crate::kinds::is_exempt_from_policies;
use crate::meta::Status;
use crate::policy::{self, PolicyBinding, Validating};
use crate::value::Value;

pub use mutating::MutatingPolicies;
pub use round::{MatchedObjects, PolicyRound};

/// A policy with its bindings.
pub struct Hook<P> {
    pub policy: Arc<P>,
    /// Sorted by name.
    pub bindings: Vec<Arc<PolicyBinding>>,
}

impl<P> Clone for Hook<P> {
    fn clone(&self) -> Self {
        Hook { policy: Arc::clone(&self.policy), bindings: self.bindings.clone() }
    }
}

/// The source of policies.
#[async_trait]
pub trait PolicySource<P>: NamespaceLookup {
    /// The bound policies as of now: those from files, then the stored ones, sorted by name.
    async fn hooks(&self) -> Result<Arc<[Hook<P>]>, Status>;

    /// The policies from files.
    fn in_files(&self) -> Arc<[Hook<P>]>;
}

/// Before a policy is written, finds out how much memory the others take. Nothing else depends on it.
async fn count<P, S: PolicySource<P>>(source: &S, attributes: &Attributes<'_>) {
    let is_written = matches!(attributes.operation, Operation::Create | Operation::Update);
    if is_written && policy::is_exempt(attributes.version) {
        _ = source.hooks().await;
    }
}

/// The policies that may apply to a resource. No stored policy applies to policies: it could make
/// itself irremovable.
async fn asked_about<P, S: PolicySource<P>>(source: &S, attributes: &Attributes<'_>) -> Result<Arc<[Hook<P>]>, Status> {
    let version = attributes.version;
    if policy::is_exempt(version) {
        Ok(source.in_files())
    } else if is_exempt_from_policies(version) {
        Ok(Arc::default())
    } else {
        source.hooks().await
    }
}

/// Looks up namespaces.
#[async_trait]
pub trait NamespaceLookup: Send + Sync {
    /// A namespace as expressions see it; `None` if it does not exist.
    async fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, Status>;
}

/// The admission step that evaluates validating policies.
pub struct ValidatingPolicies<S> {
    pub source: S,
    /// The authorizer behind the variable `authorizer`.
    pub authorizer: Arc<dyn Authorizer>,
    pub figures: Arc<Figures>,
}

#[async_trait]
impl<S: PolicySource<Validating>> Admission for ValidatingPolicies<S> {
    async fn mutate(&self, attributes: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        count(&self.source, attributes).await;
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let hooks = asked_about(&self.source, attributes).await?;
        if hooks.is_empty() { Ok(()) } else { self.ask(&hooks, attributes, object).await }
    }

    fn takes_connections(&self) -> bool {
        true
    }
}
