//! SelfSubjectReview, authentication.k8s.io/v1, and v1beta1 and v1alpha1 in older minor versions.

use crate::kinds::{Kind, Review};

pub static KINDS: [&Kind; 3] = [&V1, &V1BETA1, &V1ALPHA1];

static V1: Kind = form();
static V1BETA1: Kind = form().former("v1beta1");
static V1ALPHA1: Kind = form().former("v1alpha1");

const fn form() -> Kind {
    Kind {
        plural: "selfsubjectreviews",
        singular: "selfsubjectreview",
        example: "{}",
        forms: &KINDS,
        ..Kind::question("authentication.k8s.io", Review::SelfSubject, "SelfSubjectReview")
    }
}
