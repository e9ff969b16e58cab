//! The rounds and operations that each plugin handles, by name: the calls that are measured.
//!
//! Source: the plugins of kube-apiserver, release 1.36: their calls of `admission.NewHandler` and
//! the interfaces that they implement.

use super::Operation;
use super::Operation::{Connect, Create, Delete, Update};

/// A round of admission.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AdmissionRound {
    Admit,
    Validate,
}

impl AdmissionRound {
    pub const fn as_str(self) -> &'static str {
        match self {
            AdmissionRound::Admit => "admit",
            AdmissionRound::Validate => "validate",
        }
    }
}

/// The rounds and the operations of a plugin.
type Handled = (&'static [AdmissionRound], &'static [Operation]);

const ADMIT: &[AdmissionRound] = &[AdmissionRound::Admit];
const VALIDATE: &[AdmissionRound] = &[AdmissionRound::Validate];
const BOTH: &[AdmissionRound] = &[AdmissionRound::Admit, AdmissionRound::Validate];
const NEW: &[Operation] = &[Create];
const CHANGED: &[Operation] = &[Update];
const WRITTEN: &[Operation] = &[Create, Update];
const WRITTEN_OR_GONE: &[Operation] = &[Create, Update, Delete];
const ALL: &[Operation] = &[Connect, Create, Update, Delete];

/// Whether a plugin handles an operation in a round.
pub fn handles(plugin: &str, round: AdmissionRound, operation: Operation) -> bool {
    let (rounds, operations) = handled(plugin);
    rounds.contains(&round) && operations.contains(&operation)
}

fn handled(plugin: &str) -> Handled {
    match plugin {
        "NamespaceAutoProvision"
        | "TaintNodesByCondition"
        | "DefaultStorageClass"
        | "StorageObjectInUseProtection"
        | "DefaultIngressClass"
        | "PodTopologyLabels" => (ADMIT, NEW),
        "DefaultTolerationSeconds" | "ExtendedResourceToleration" => (ADMIT, WRITTEN),
        "NamespaceLifecycle" | "NodeRestriction" => (ADMIT, WRITTEN_OR_GONE),
        "MutatingAdmissionPolicy" => (ADMIT, &[Connect, Create, Update]),
        "MutatingAdmissionWebhook" => (ADMIT, ALL),
        "RuntimeClass" | "PodNodeSelector" => (BOTH, NEW),
        "LimitRanger" | "ServiceAccount" | "AlwaysPullImages" | "PodTolerationRestriction" => (BOTH, WRITTEN),
        "Priority" => (BOTH, WRITTEN_OR_GONE),
        "AlwaysDeny" => (BOTH, ALL),
        "CertificateSubjectRestriction" => (VALIDATE, NEW),
        "PersistentVolumeClaimResize"
        | "CertificateApproval"
        | "CertificateSigning"
        | "NodeDeclaredFeatureValidator"
        | "PodResizeValidator" => (VALIDATE, CHANGED),
        "NamespaceExists" => (VALIDATE, WRITTEN_OR_GONE),
        "ValidatingAdmissionPolicy" | "ValidatingAdmissionWebhook" => (VALIDATE, ALL),
        // The other plugins validate what is written.
        _ => (VALIDATE, WRITTEN),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_is_measured_where_it_acts() {
        assert!(handles("NamespaceLifecycle", AdmissionRound::Admit, Delete));
        assert!(!handles("NamespaceLifecycle", AdmissionRound::Validate, Delete));
        assert!(!handles("DefaultIngressClass", AdmissionRound::Admit, Update));
        assert!(handles("ResourceQuota", AdmissionRound::Validate, Create));
        assert!(!handles("ResourceQuota", AdmissionRound::Validate, Delete));
    }
}
