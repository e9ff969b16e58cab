//! MutatingWebhookConfiguration, admissionregistration.k8s.io/v1.

use crate::crd::Scope;

use crate::kinds::Kind;
use crate::kinds::webhooks::{EXAMPLE, GROUP, WebhookConfiguration};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "mutatingwebhookconfigurations",
    singular: "mutatingwebhookconfiguration",
    categories: &["api-extensions"],
    scope: Scope::Cluster,
    example: EXAMPLE,
    ..Kind::new(GROUP, "v1", "MutatingWebhookConfiguration", &WebhookConfiguration { is_mutating: true })
}];
