//! LocalSubjectAccessReview, authorization.k8s.io/v1.

use crate::crd::Scope;
use crate::types::metadata::METADATA;
use crate::types::{Message, message};

use super::super::access::{GROUP, SPEC, STATUS};
use super::super::{Kind, Review};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    plural: "localsubjectaccessreviews",
    singular: "localsubjectaccessreview",
    scope: Scope::Namespaced,
    example: "spec: {user: jane, resourceAttributes: {verb: get, resource: configmaps, namespace: default}}",
    ..Kind::question(GROUP, Review::LocalSubjectAccess, &LOCAL_SUBJECT_ACCESS_REVIEW)
}];

static LOCAL_SUBJECT_ACCESS_REVIEW: Message = Message::object(
    "LocalSubjectAccessReview",
    &[
        METADATA,
        message(2, "spec", &SPEC).required().describe("What is asked."),
        message(3, "status", &STATUS).describe("The answer."),
    ],
)
.describe("LocalSubjectAccessReview asks whether somebody may do something in a namespace.");

#[cfg(test)]
mod tests {
    use k8s_pb::api::authorization::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree_on_question::<v1::LocalSubjectAccessReview>(KINDS[0]);
    }
}
