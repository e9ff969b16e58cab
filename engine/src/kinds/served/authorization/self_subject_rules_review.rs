//! SelfSubjectRulesReview, authorization.k8s.io/v1.

use crate::kinds::{Kind, Review};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "selfsubjectrulesreviews",
    singular: "selfsubjectrulesreview",
    example: "spec: {namespace: default}",
    ..Kind::question("authorization.k8s.io", Review::SelfSubjectRules, "SelfSubjectRulesReview")
}];
