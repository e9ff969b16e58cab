//! IP addresses and CIDR blocks.

use crate::cel::env::{FunctionDecl, OverloadDecl};
use crate::cel::types::Type::{self, Bool, Int, String};

pub fn functions() -> Vec<FunctionDecl> {
    vec![
        FunctionDecl::new("cidr", [OverloadDecl::global("string_to_cidr", [String], cidr())]),
        FunctionDecl::new(
            "containsCIDR",
            [
                OverloadDecl::member("cidr_contains_cidr_string", [cidr(), String], Bool),
                OverloadDecl::member("cidr_contains_cidr", [cidr(), cidr()], Bool),
            ],
        ),
        FunctionDecl::new(
            "containsIP",
            [
                OverloadDecl::member("cidr_contains_ip_string", [cidr(), String], Bool),
                OverloadDecl::member("cidr_contains_ip_ip", [cidr(), ip()], Bool),
            ],
        ),
        FunctionDecl::new("family", [OverloadDecl::member("ip_family", [ip()], Int)]),
        FunctionDecl::new(
            "ip",
            [OverloadDecl::global("string_to_ip", [String], ip()), OverloadDecl::member("cidr_ip", [cidr()], ip())],
        ),
        FunctionDecl::new("ip.isCanonical", [OverloadDecl::global("ip_is_canonical", [String], Bool)]),
        FunctionDecl::new("isCIDR", [OverloadDecl::global("is_cidr", [String], Bool)]),
        FunctionDecl::new("isGlobalUnicast", [OverloadDecl::member("ip_is_global_unicast", [ip()], Bool)]),
        FunctionDecl::new("isIP", [OverloadDecl::global("is_ip", [String], Bool)]),
        FunctionDecl::new("isLinkLocalMulticast", [OverloadDecl::member("ip_is_link_local_multicast", [ip()], Bool)]),
        FunctionDecl::new("isLinkLocalUnicast", [OverloadDecl::member("ip_is_link_local_unicast", [ip()], Bool)]),
        FunctionDecl::new("isLoopback", [OverloadDecl::member("ip_is_loopback", [ip()], Bool)]),
        FunctionDecl::new("isUnspecified", [OverloadDecl::member("ip_is_unspecified", [ip()], Bool)]),
        FunctionDecl::new("masked", [OverloadDecl::member("cidr_masked", [cidr()], cidr())]),
        FunctionDecl::new("prefixLength", [OverloadDecl::member("cidr_prefix_length", [cidr()], Int)]),
        FunctionDecl::new(
            "string",
            [
                OverloadDecl::global("ip_to_string", [ip()], String),
                OverloadDecl::global("cidr_to_string", [cidr()], String),
            ],
        ),
    ]
}

fn ip() -> Type {
    Type::opaque("net.IP", Vec::new())
}

fn cidr() -> Type {
    Type::opaque("net.CIDR", Vec::new())
}
