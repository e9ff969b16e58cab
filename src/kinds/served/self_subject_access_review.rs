//! SelfSubjectAccessReview, authorization.k8s.io/v1.

use crate::types::metadata::METADATA;
use crate::types::{Message, message};

use super::super::access::{GROUP, SELF_SPEC, STATUS};
use super::super::{Kind, Review};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    plural: "selfsubjectaccessreviews",
    singular: "selfsubjectaccessreview",
    example: "spec: {resourceAttributes: {verb: get, resource: configmaps, namespace: default}}",
    ..Kind::question(GROUP, Review::SelfSubjectAccess, &SELF_SUBJECT_ACCESS_REVIEW)
}];

static SELF_SUBJECT_ACCESS_REVIEW: Message = Message::object(
    "SelfSubjectAccessReview",
    &[
        METADATA,
        message(2, "spec", &SELF_SPEC).required().describe("What is asked."),
        message(3, "status", &STATUS).describe("The answer."),
    ],
)
.describe("SelfSubjectAccessReview asks whether who sends it may do something.");

#[cfg(test)]
mod tests {
    use k8s_pb::api::authorization::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree_on_question::<v1::SelfSubjectAccessReview>(KINDS[0]);
    }
}
