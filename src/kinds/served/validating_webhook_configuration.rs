//! ValidatingWebhookConfiguration, admissionregistration.k8s.io/v1.

use crate::crd::Scope;
use crate::types::Message;
use crate::types::metadata::{LIST_METADATA, METADATA, items};

use super::super::Kind;
use super::super::webhooks::{EXAMPLE, GROUP, WebhookConfiguration, types};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    group: GROUP,
    plural: "validatingwebhookconfigurations",
    singular: "validatingwebhookconfiguration",
    categories: &["api-extensions"],
    scope: Scope::Cluster,
    example: EXAMPLE,
    ..Kind::new(&VALIDATING_WEBHOOK_CONFIGURATION, &LIST, &WebhookConfiguration { is_mutating: false })
}];

static VALIDATING_WEBHOOK_CONFIGURATION: Message =
    Message::object("ValidatingWebhookConfiguration", &[METADATA, types::webhooks(&VALIDATING_WEBHOOK)])
        .describe("ValidatingWebhookConfiguration names webhooks that may refuse objects before they are stored.");

static VALIDATING_WEBHOOK: Message = Message::new(
    "ValidatingWebhook",
    &[
        types::NAME,
        types::CLIENT,
        types::RULES,
        types::FAILURE_POLICY,
        types::MATCH_POLICY,
        types::NAMESPACE_SELECTOR,
        types::object_selector(10),
        types::SIDE_EFFECTS,
        types::TIMEOUT,
        types::REVIEW_VERSIONS,
        types::match_conditions(11),
    ],
);

static LIST: Message =
    Message::object("ValidatingWebhookConfigurationList", &[LIST_METADATA, items(&VALIDATING_WEBHOOK_CONFIGURATION)]);

#[cfg(test)]
mod tests {
    use k8s_pb::api::admissionregistration::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree::<v1::ValidatingWebhookConfiguration, v1::ValidatingWebhookConfigurationList>(KINDS[0]);
    }
}
