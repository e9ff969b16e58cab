//! SelfSubjectReview, authentication.k8s.io/v1.

use crate::types::metadata::METADATA;
use crate::types::user::USER_INFO;
use crate::types::{Message, message};

use super::super::{Kind, Review};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    plural: "selfsubjectreviews",
    singular: "selfsubjectreview",
    example: "{}",
    ..Kind::question("authentication.k8s.io", Review::SelfSubject, &SELF_SUBJECT_REVIEW)
}];

static SELF_SUBJECT_REVIEW: Message =
    Message::object("SelfSubjectReview", &[METADATA, message(2, "status", &STATUS).describe("The answer.")])
        .describe("SelfSubjectReview asks who sends it.");

static STATUS: Message =
    Message::new("SelfSubjectReviewStatus", &[message(1, "userInfo", &USER_INFO).describe("Who sends the request.")]);

#[cfg(test)]
mod tests {
    use k8s_pb::api::authentication::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree_on_question::<v1::SelfSubjectReview>(KINDS[0]);
    }
}
