//! SubjectAccessReview, authorization.k8s.io/v1.

use crate::types::metadata::METADATA;
use crate::types::{Message, message};

use super::super::access::{GROUP, SPEC, STATUS};
use super::super::{Kind, Review};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    plural: "subjectaccessreviews",
    singular: "subjectaccessreview",
    example: "spec: {user: jane, resourceAttributes: {verb: get, resource: configmaps, namespace: default}}",
    ..Kind::question(GROUP, Review::SubjectAccess, &SUBJECT_ACCESS_REVIEW)
}];

static SUBJECT_ACCESS_REVIEW: Message = Message::object(
    "SubjectAccessReview",
    &[
        METADATA,
        message(2, "spec", &SPEC).required().describe("What is asked."),
        message(3, "status", &STATUS).describe("The answer."),
    ],
)
.describe("SubjectAccessReview asks whether somebody may do something.");

#[cfg(test)]
mod tests {
    use k8s_pb::api::authorization::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree_on_question::<v1::SubjectAccessReview>(KINDS[0]);
    }
}
