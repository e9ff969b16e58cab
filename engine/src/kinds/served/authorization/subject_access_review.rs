//! SubjectAccessReview, authorization.k8s.io/v1.

use crate::kinds::{Kind, Review};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "subjectaccessreviews",
    singular: "subjectaccessreview",
    example: "spec: {user: jane, resourceAttributes: {verb: get, resource: configmaps, namespace: default}}",
    ..Kind::question("authorization.k8s.io", Review::SubjectAccess, "SubjectAccessReview")
}];
