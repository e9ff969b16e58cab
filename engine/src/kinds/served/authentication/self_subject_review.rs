//! SelfSubjectReview, authentication.k8s.io/v1.

use crate::kinds::{Kind, Review};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "selfsubjectreviews",
    singular: "selfsubjectreview",
    example: "{}",
    ..Kind::question("authentication.k8s.io", Review::SelfSubject, "SelfSubjectReview")
}];
