//! SelfSubjectAccessReview, authorization.k8s.io/v1.

use crate::kinds::{Kind, Review};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "selfsubjectaccessreviews",
    singular: "selfsubjectaccessreview",
    example: "spec: {resourceAttributes: {verb: get, resource: configmaps, namespace: default}}",
    ..Kind::question("authorization.k8s.io", Review::SelfSubjectAccess, "SelfSubjectAccessReview")
}];
