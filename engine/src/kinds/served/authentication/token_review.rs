//! TokenReview, authentication.k8s.io/v1.

use crate::kinds::{Kind, Review};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "tokenreviews",
    singular: "tokenreview",
    example: "spec: {token: abc}",
    ..Kind::question("authentication.k8s.io", Review::Token, "TokenReview")
}];
