//! MutatingWebhookConfiguration, admissionregistration.k8s.io/v1.

use crate::crd::Scope;
use crate::types::metadata::{LIST_METADATA, METADATA, items};
use crate::types::{Message, string};

use super::super::Kind;
use super::super::webhooks::{EXAMPLE, GROUP, WebhookConfiguration, types};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    group: GROUP,
    plural: "mutatingwebhookconfigurations",
    singular: "mutatingwebhookconfiguration",
    categories: &["api-extensions"],
    scope: Scope::Cluster,
    example: EXAMPLE,
    ..Kind::new(&MUTATING_WEBHOOK_CONFIGURATION, &LIST, &WebhookConfiguration { is_mutating: true })
}];

static MUTATING_WEBHOOK_CONFIGURATION: Message =
    Message::object("MutatingWebhookConfiguration", &[METADATA, types::webhooks(&MUTATING_WEBHOOK)])
        .describe("MutatingWebhookConfiguration names webhooks that may change objects before they are stored.");

static MUTATING_WEBHOOK: Message = Message::new(
    "MutatingWebhook",
    &[
        types::NAME,
        types::CLIENT,
        types::RULES,
        types::FAILURE_POLICY,
        types::MATCH_POLICY,
        types::NAMESPACE_SELECTOR,
        types::object_selector(11),
        types::SIDE_EFFECTS,
        types::TIMEOUT,
        types::REVIEW_VERSIONS,
        string(10, "reinvocationPolicy")
            .pointer()
            .go_type("v1.ReinvocationPolicyType")
            .describe("IfNeeded: call it again where others have changed the object since. Never: call it once."),
        types::match_conditions(12),
    ],
);

static LIST: Message =
    Message::object("MutatingWebhookConfigurationList", &[LIST_METADATA, items(&MUTATING_WEBHOOK_CONFIGURATION)]);

#[cfg(test)]
mod tests {
    use k8s_pb::api::admissionregistration::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree::<v1::MutatingWebhookConfiguration, v1::MutatingWebhookConfigurationList>(KINDS[0]);
    }
}
