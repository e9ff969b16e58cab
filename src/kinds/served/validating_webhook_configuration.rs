//! ValidatingWebhookConfiguration, admissionregistration.k8s.io/v1.

use crate::crd::{Scope, ServedVersion};
use crate::meta::field::ErrorList;
use crate::types::metadata::{LIST_METADATA, METADATA, items};
use crate::types::selector::LABEL_SELECTOR;
use crate::types::{Message, int32, message, string};
use crate::value::Value;

use super::super::Kind;
use super::super::strategy::{Strategy, Subresource, Table};
use super::super::webhooks::{self, CLIENT_CONFIG, GROUP, MATCH_CONDITION, RULE_WITH_OPERATIONS};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    group: GROUP,
    plural: "validatingwebhookconfigurations",
    singular: "validatingwebhookconfiguration",
    categories: &["api-extensions"],
    scope: Scope::Cluster,
    yields: true,
    example: r"
metadata: {name: example}
webhooks:
- name: check.example.com
  clientConfig: {url: 'https://example.com/check'}
  rules: [{operations: [CREATE], apiGroups: [example.com], apiVersions: ['*'], resources: [widgets]}]
  sideEffects: None
  admissionReviewVersions: [v1]
  failurePolicy: Ignore
",
    ..Kind::new(&VALIDATING_WEBHOOK_CONFIGURATION, &LIST, &ValidatingWebhookConfiguration)
}];

static VALIDATING_WEBHOOK_CONFIGURATION: Message = Message::object(
    "ValidatingWebhookConfiguration",
    &[
        METADATA,
        message(2, "webhooks", &VALIDATING_WEBHOOK)
            .list()
            .map_by(&["name"])
            .merge_by("name")
            .describe("The webhooks, with what each is called for."),
    ],
)
.describe("ValidatingWebhookConfiguration names webhooks that may refuse objects before they are stored.");

static VALIDATING_WEBHOOK: Message = Message::new(
    "ValidatingWebhook",
    &[
        string(1, "name").always().required().describe("What the webhook is called: a domain of three parts or more."),
        message(2, "clientConfig", &CLIENT_CONFIG).required().describe("Where the webhook is."),
        message(3, "rules", &RULE_WITH_OPERATIONS).list().atomic().describe("What the webhook is called for."),
        string(4, "failurePolicy")
            .pointer()
            .go_type("v1.FailurePolicyType")
            .describe("What becomes of a request where the webhook fails: Fail or Ignore."),
        string(9, "matchPolicy")
            .pointer()
            .go_type("v1.MatchPolicyType")
            .describe("Whether rules also mean other versions of what they name: Equivalent or Exact."),
        message(5, "namespaceSelector", &LABEL_SELECTOR)
            .pointer()
            .describe("Only objects in namespaces with these labels are sent."),
        message(10, "objectSelector", &LABEL_SELECTOR).pointer().describe("Only objects with these labels are sent."),
        string(6, "sideEffects")
            .pointer()
            .required()
            .go_type("v1.SideEffectClass")
            .describe("Whether a call changes anything else: None or NoneOnDryRun."),
        int32(7, "timeoutSeconds").pointer().describe("How long a call may take, up to 30 s."),
        string(8, "admissionReviewVersions")
            .list()
            .always()
            .required()
            .atomic()
            .describe("Versions of AdmissionReview that the webhook takes, the best one first."),
        message(11, "matchConditions", &MATCH_CONDITION)
            .list()
            .map_by(&["name"])
            .merge_by("name")
            .describe("Expressions that must all be true for the webhook to be called."),
    ],
);

static LIST: Message =
    Message::object("ValidatingWebhookConfigurationList", &[LIST_METADATA, items(&VALIDATING_WEBHOOK_CONFIGURATION)]);

struct ValidatingWebhookConfiguration;

impl Strategy for ValidatingWebhookConfiguration {
    fn set_typed_defaults(&self, object: &mut Value) {
        webhooks::set_defaults(object, false);
    }

    fn prepare_create(&self, _: &ServedVersion, object: &mut Value) {
        object.make_object().entry("metadata").make_object().insert("generation", Value::Int(1));
    }

    fn validate_create(&self, _: &ServedVersion, object: &Value) -> ErrorList {
        webhooks::validate(object)
    }

    fn prepare_update(&self, _: &ServedVersion, _: Subresource, new: &mut Value, old: &Value) {
        webhooks::count_generation(new, old);
    }

    fn validate_update(&self, _: &ServedVersion, _: Subresource, new: &Value, old: &Value) -> ErrorList {
        webhooks::validate_update(new, old)
    }

    fn allows_unconditional_update(&self) -> bool {
        false
    }

    fn table(&self) -> Option<Table> {
        Some(webhooks::table())
    }
}

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
