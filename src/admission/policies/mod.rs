//! `ValidatingAdmissionPolicy`: policies that are stored, and what they say of a write.
//!
//! In: a write, and the policies and bindings as they are stored at that moment. Out: nothing, or the refusal of the first
//! policy that denies it, with the warnings and audit annotations of all. What policies decide is pure (`crate::policy`);
//! here parameters, namespaces and other versions of the objects are found for them.
//!
//! Policies are asked in the order of their names, and so are the bindings of each: the reference has no order.
//!
//! Source: `k8s.io/apiserver/pkg/admission/plugin/policy`, release 1.37.

mod mutating;
mod params;
mod round;
mod validating;

use std::sync::Arc;

use async_trait::async_trait;

use super::{Admission, Attributes, Figures};
use crate::auth::Authorizer;
use crate::crd::ServedVersion;
use crate::kinds::is_exempt_from_policies;
use crate::meta::Status;
use crate::policy::{self, PolicyBinding, Validating};
use crate::value::Value;

pub use mutating::MutatingPolicies;
pub use round::{MatchedObjects, PolicyRound};

/// A policy with what binds it.
pub struct Hook<P> {
    pub policy: Arc<P>,
    /// In the order of their names.
    pub bindings: Vec<Arc<PolicyBinding>>,
}

impl<P> Clone for Hook<P> {
    fn clone(&self) -> Self {
        Hook { policy: Arc::clone(&self.policy), bindings: self.bindings.clone() }
    }
}

/// Where the step learns of policies.
#[async_trait]
pub trait PolicySource<P>: NamespaceLookup {
    /// The policies that are bound, as they are now: those that stand in files, then those that are stored, in the order of
    /// their names.
    async fn hooks(&self) -> Result<Arc<[Hook<P>]>, Status>;

    /// Those that stand in files.
    fn in_files(&self) -> Arc<[Hook<P>]>;
}

/// The policies that may be asked about a resource. About policies no stored one is asked: it could not be removed any more.
async fn asked_about<P, S: PolicySource<P>>(source: &S, version: &ServedVersion) -> Result<Arc<[Hook<P>]>, Status> {
    if policy::is_exempt(version) {
        Ok(source.in_files())
    } else if is_exempt_from_policies(version) {
        Ok(Arc::default())
    } else {
        source.hooks().await
    }
}

/// Where namespaces are looked up.
#[async_trait]
pub trait NamespaceLookup: Send + Sync {
    /// A namespace as expressions see it; `None` where there is no such namespace.
    async fn namespace(&self, name: &str) -> Result<Option<Arc<Value>>, Status>;
}

/// The step of admission that asks validating policies.
pub struct ValidatingPolicies<S> {
    pub source: S,
    /// Whom the variable `authorizer` asks.
    pub authorizer: Arc<dyn Authorizer>,
    pub figures: Arc<Figures>,
}

#[async_trait]
impl<S: PolicySource<Validating>> Admission for ValidatingPolicies<S> {
    async fn mutate(&self, _: &Attributes<'_>, _: &mut Value) -> Result<(), Status> {
        Ok(())
    }

    async fn validate(&self, attributes: &Attributes<'_>, object: &Value) -> Result<(), Status> {
        let hooks = asked_about(&self.source, attributes.version).await?;
        if hooks.is_empty() { Ok(()) } else { self.ask(&hooks, attributes, object).await }
    }

    fn takes_connections(&self) -> bool {
        true
    }
}
