//! LocalSubjectAccessReview, authorization.k8s.io/v1.

use crate::crd::Scope;

use crate::kinds::{Kind, Review};

pub static KINDS: [&Kind; 1] = [&Kind {
    plural: "localsubjectaccessreviews",
    singular: "localsubjectaccessreview",
    scope: Scope::Namespaced,
    example: "spec: {user: jane, resourceAttributes: {verb: get, resource: configmaps, namespace: default}}",
    ..Kind::question("authorization.k8s.io", Review::LocalSubjectAccess, "LocalSubjectAccessReview")
}];
