//! Authorization. Rules of definitions have no value of these types, but know the names; match conditions of webhooks do.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, Bool, String};

pub fn functions() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new("allowed", [OverloadDecl::member("decision_allowed", [authorization("Decision")], Bool)]),
        FunctionDecl::new(
            "check",
            [
                OverloadDecl::member(
                    "pathcheck_check",
                    [authorization("PathCheck"), String],
                    authorization("Decision"),
                ),
                OverloadDecl::member(
                    "resourcecheck_check",
                    [authorization("ResourceCheck"), String],
                    authorization("Decision"),
                ),
            ],
        ),
        FunctionDecl::new("error", [OverloadDecl::member("decision_error", [authorization("Decision")], String)]),
        FunctionDecl::new("errored", [OverloadDecl::member("decision_errored", [authorization("Decision")], Bool)]),
        FunctionDecl::new(
            "fieldSelector",
            [OverloadDecl::member(
                "authorizer_fieldselector",
                [authorization("ResourceCheck"), String],
                authorization("ResourceCheck"),
            )],
        ),
        FunctionDecl::new(
            "group",
            [OverloadDecl::member(
                "authorizer_group",
                [authorization("Authorizer"), String],
                authorization("GroupCheck"),
            )],
        ),
        FunctionDecl::new(
            "labelSelector",
            [OverloadDecl::member(
                "authorizer_labelselector",
                [authorization("ResourceCheck"), String],
                authorization("ResourceCheck"),
            )],
        ),
        FunctionDecl::new(
            "name",
            [OverloadDecl::member(
                "resourcecheck_name",
                [authorization("ResourceCheck"), String],
                authorization("ResourceCheck"),
            )],
        ),
        FunctionDecl::new(
            "namespace",
            [OverloadDecl::member(
                "resourcecheck_namespace",
                [authorization("ResourceCheck"), String],
                authorization("ResourceCheck"),
            )],
        ),
        FunctionDecl::new(
            "path",
            [OverloadDecl::member(
                "authorizer_path",
                [authorization("Authorizer"), String],
                authorization("PathCheck"),
            )],
        ),
        FunctionDecl::new("reason", [OverloadDecl::member("decision_reason", [authorization("Decision")], String)]),
        FunctionDecl::new(
            "resource",
            [OverloadDecl::member(
                "groupcheck_resource",
                [authorization("GroupCheck"), String],
                authorization("ResourceCheck"),
            )],
        ),
        FunctionDecl::new(
            "serviceAccount",
            [OverloadDecl::member(
                "authorizer_serviceaccount",
                [authorization("Authorizer"), String, String],
                authorization("Authorizer"),
            )],
        ),
        FunctionDecl::new(
            "subresource",
            [OverloadDecl::member(
                "resourcecheck_subresource",
                [authorization("ResourceCheck"), String],
                authorization("ResourceCheck"),
            )],
        ),
    ]
}

fn authorization(name: &str) -> Type {
    Type::object(&format!("kubernetes.authorization.{name}"))
}
