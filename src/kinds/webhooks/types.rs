//! The fields of a webhook that both kinds have, under the numbers of their kind where these differ.

use crate::types::selector::LABEL_SELECTOR;
use crate::types::{Field, Message, bytes, inline, int32, message, string};

pub const NAME: Field =
    string(1, "name").always().required().describe("What the webhook is called: a domain of three parts or more.");

pub const CLIENT: Field = message(2, "clientConfig", &CLIENT_CONFIG).required().describe("Where the webhook is.");

pub const RULES: Field =
    message(3, "rules", &RULE_WITH_OPERATIONS).list().atomic().describe("What the webhook is called for.");

pub const FAILURE_POLICY: Field = string(4, "failurePolicy")
    .pointer()
    .go_type("v1.FailurePolicyType")
    .describe("What becomes of a request where the webhook fails: Fail or Ignore.");

pub const MATCH_POLICY: Field = string(9, "matchPolicy")
    .pointer()
    .go_type("v1.MatchPolicyType")
    .describe("Whether rules also mean other versions of what they name: Equivalent or Exact.");

pub const NAMESPACE_SELECTOR: Field = message(5, "namespaceSelector", &LABEL_SELECTOR)
    .pointer()
    .describe("Only objects in namespaces with these labels are sent.");

pub const SIDE_EFFECTS: Field = string(6, "sideEffects")
    .pointer()
    .required()
    .go_type("v1.SideEffectClass")
    .describe("Whether a call changes anything else: None or NoneOnDryRun.");

pub const TIMEOUT: Field = int32(7, "timeoutSeconds").pointer().describe("How long a call may take, up to 30 s.");

pub const REVIEW_VERSIONS: Field = string(8, "admissionReviewVersions")
    .list()
    .always()
    .required()
    .atomic()
    .describe("Versions of AdmissionReview that the webhook takes, the best one first.");

pub const fn object_selector(number: u32) -> Field {
    message(number, "objectSelector", &LABEL_SELECTOR).pointer().describe("Only objects with these labels are sent.")
}

pub const fn match_conditions(number: u32) -> Field {
    message(number, "matchConditions", &MATCH_CONDITION)
        .list()
        .map_by(&["name"])
        .merge_by("name")
        .describe("Expressions that must all be true for the webhook to be called.")
}

/// The field of a configuration that holds its webhooks.
pub const fn webhooks(webhook: &'static Message) -> Field {
    message(2, "webhooks", webhook)
        .list()
        .map_by(&["name"])
        .merge_by("name")
        .describe("The webhooks, with what each is called for.")
}

static CLIENT_CONFIG: Message = Message::new(
    "WebhookClientConfig",
    &[
        string(3, "url").pointer().go("URL").describe("Where the webhook is: https, a host, perhaps a path."),
        message(1, "service", &SERVICE_REFERENCE).pointer().describe("The service that the webhook is behind."),
        bytes(2, "caBundle")
            .go("CABundle")
            .describe("Authorities that the webhook's certificate is checked with, in PEM."),
    ],
);

static SERVICE_REFERENCE: Message = Message::new(
    "ServiceReference",
    &[
        string(1, "namespace").always().required().describe("The namespace of the service."),
        string(2, "name").always().required().describe("The service."),
        string(3, "path").pointer().describe("The path that requests are sent to."),
        int32(4, "port").pointer().describe("The port; 443 where none is given."),
    ],
);

static RULE_WITH_OPERATIONS: Message = Message::new(
    "RuleWithOperations",
    &[
        string(1, "operations")
            .list()
            .atomic()
            .go_type("v1.OperationType")
            .describe("CREATE, UPDATE, DELETE, CONNECT, or `*` for all."),
        inline(2, "Rule", &RULE),
    ],
);

static RULE: Message = Message::new(
    "Rule",
    &[
        string(1, "apiGroups").list().atomic().go("APIGroups").describe("Groups of the resources; `*` is all."),
        string(2, "apiVersions").list().atomic().go("APIVersions").describe("Versions of the resources; `*` is all."),
        string(3, "resources").list().atomic().describe("Resources, with a subresource behind a slash; `*` is all."),
        string(4, "scope").pointer().go_type("v1.ScopeType").describe("Cluster, Namespaced, or `*` for both."),
    ],
);

static MATCH_CONDITION: Message = Message::new(
    "MatchCondition",
    &[
        string(1, "name").always().required().describe("What the condition is called in messages."),
        string(2, "expression")
            .always()
            .required()
            .describe("CEL over `object`, `oldObject`, `request`, `authorizer`."),
    ],
);
