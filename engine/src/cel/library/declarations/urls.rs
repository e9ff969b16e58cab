//! URLs.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, Bool, String};

pub fn functions() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new("getEscapedPath", [OverloadDecl::member("url_get_escaped_path", [url()], String)]),
        FunctionDecl::new("getHost", [OverloadDecl::member("url_get_host", [url()], String)]),
        FunctionDecl::new("getHostname", [OverloadDecl::member("url_get_hostname", [url()], String)]),
        FunctionDecl::new("getPort", [OverloadDecl::member("url_get_port", [url()], String)]),
        FunctionDecl::new(
            "getQuery",
            [OverloadDecl::member("url_get_query", [url()], Type::map(String, Type::list(String)))],
        ),
        FunctionDecl::new("getScheme", [OverloadDecl::member("url_get_scheme", [url()], String)]),
        FunctionDecl::new("isURL", [OverloadDecl::global("is_url_string", [String], Bool)]),
        FunctionDecl::new("url", [OverloadDecl::global("string_to_url", [String], url())]),
    ]
}

fn url() -> Type {
    Type::object("kubernetes.URL")
}
