//! TokenReview, authentication.k8s.io/v1.

use crate::types::metadata::METADATA;
use crate::types::user::USER_INFO;
use crate::types::{Message, boolean, message, string};

use super::super::{Kind, Review};

pub(super) static KINDS: [&Kind; 1] = [&Kind {
    plural: "tokenreviews",
    singular: "tokenreview",
    example: "spec: {token: abc}",
    ..Kind::question("authentication.k8s.io", Review::Token, &TOKEN_REVIEW)
}];

static TOKEN_REVIEW: Message = Message::object(
    "TokenReview",
    &[
        METADATA,
        message(2, "spec", &SPEC).required().describe("What is asked."),
        message(3, "status", &STATUS).describe("The answer."),
    ],
)
.describe("TokenReview asks whose token it is.");

static SPEC: Message = Message::new(
    "TokenReviewSpec",
    &[
        string(1, "token").describe("The token."),
        string(2, "audiences").list().atomic().describe("Whom the token must be for, one of them at least."),
    ],
);

static STATUS: Message = Message::new(
    "TokenReviewStatus",
    &[
        boolean(1, "authenticated").describe("Whether the token is somebody's."),
        message(2, "user", &USER_INFO).describe("Whose it is."),
        string(4, "audiences").list().atomic().describe("Whom it is for, of those asked about."),
        string(3, "error").describe("Why nobody was found."),
    ],
);

#[cfg(test)]
mod tests {
    use k8s_pb::api::authentication::v1;

    use super::*;
    use crate::kinds::wire_tests;

    #[test]
    fn the_wire_is_that_of_kubernetes() {
        wire_tests::agree_on_question::<v1::TokenReview>(KINDS[0]);
    }
}
