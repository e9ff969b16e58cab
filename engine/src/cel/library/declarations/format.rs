//! Named formats.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, String};

pub fn functions() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new("format.byte", [OverloadDecl::global("format.byte", [], named_format())]),
        FunctionDecl::new("format.date", [OverloadDecl::global("format.date", [], named_format())]),
        FunctionDecl::new("format.datetime", [OverloadDecl::global("format.datetime", [], named_format())]),
        FunctionDecl::new("format.dns1035Label", [OverloadDecl::global("format.dns1035Label", [], named_format())]),
        FunctionDecl::new(
            "format.dns1035LabelPrefix",
            [OverloadDecl::global("format.dns1035LabelPrefix", [], named_format())],
        ),
        FunctionDecl::new("format.dns1123Label", [OverloadDecl::global("format.dns1123Label", [], named_format())]),
        FunctionDecl::new(
            "format.dns1123LabelPrefix",
            [OverloadDecl::global("format.dns1123LabelPrefix", [], named_format())],
        ),
        FunctionDecl::new(
            "format.dns1123Subdomain",
            [OverloadDecl::global("format.dns1123Subdomain", [], named_format())],
        ),
        FunctionDecl::new(
            "format.dns1123SubdomainPrefix",
            [OverloadDecl::global("format.dns1123SubdomainPrefix", [], named_format())],
        ),
        FunctionDecl::new("format.labelValue", [OverloadDecl::global("format.labelValue", [], named_format())]),
        FunctionDecl::new(
            "format.named",
            [OverloadDecl::global("format-named", [String], Type::optional(named_format()))],
        ),
        FunctionDecl::new("format.qualifiedName", [OverloadDecl::global("format.qualifiedName", [], named_format())]),
        FunctionDecl::new("format.uri", [OverloadDecl::global("format.uri", [], named_format())]),
        FunctionDecl::new("format.uuid", [OverloadDecl::global("format.uuid", [], named_format())]),
        FunctionDecl::new(
            "validate",
            [OverloadDecl::member("format-validate", [named_format(), String], Type::optional(Type::list(String)))],
        ),
    ]
}

fn named_format() -> Type {
    Type::object("kubernetes.NamedFormat")
}
