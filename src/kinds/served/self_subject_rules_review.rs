//! SelfSubjectRulesReview, authorization.k8s.io/v1.

use crate::types::metadata::METADATA;
use crate::types::{Message, boolean, message, string};

use super::super::access::GROUP;
use super::super::{Kind, Review};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    plural: "selfsubjectrulesreviews",
    singular: "selfsubjectrulesreview",
    example: "spec: {namespace: default}",
    ..Kind::question(GROUP, Review::SelfSubjectRules, &SELF_SUBJECT_RULES_REVIEW)
}];

static SELF_SUBJECT_RULES_REVIEW: Message = Message::object(
    "SelfSubjectRulesReview",
    &[
        METADATA,
        message(2, "spec", &SPEC).required().describe("What is asked."),
        message(3, "status", &STATUS).describe("The answer."),
    ],
)
.describe("SelfSubjectRulesReview asks what who sends it may do in a namespace.");

static SPEC: Message = Message::new("SelfSubjectRulesReviewSpec", &[string(1, "namespace").describe("The namespace.")]);

static STATUS: Message = Message::new(
    "SubjectRulesReviewStatus",
    &[
        message(1, "resourceRules", &RESOURCE_RULE)
            .list()
            .always()
            .required()
            .atomic()
            .describe("What may be done with resources."),
        message(2, "nonResourceRules", &NON_RESOURCE_RULE)
            .list()
            .always()
            .required()
            .atomic()
            .describe("What may be done with paths that are no resources."),
        boolean(3, "incomplete").always().required().describe("Whether more may be allowed than is listed."),
        string(4, "evaluationError").describe("What went wrong while the rules were collected."),
    ],
);

static RESOURCE_RULE: Message = Message::new(
    "ResourceRule",
    &[
        string(1, "verbs").list().always().required().atomic(),
        string(2, "apiGroups").list().atomic().go("APIGroups"),
        string(3, "resources").list().atomic(),
        string(4, "resourceNames").list().atomic(),
    ],
);

static NON_RESOURCE_RULE: Message = Message::new(
    "NonResourceRule",
    &[string(1, "verbs").list().always().required().atomic(), string(2, "nonResourceURLs").list().atomic()],
);

#[cfg(test)]
mod tests {
    use k8s_pb::api::authorization::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree_on_question::<v1::SelfSubjectRulesReview>(KINDS[0]);
    }
}
