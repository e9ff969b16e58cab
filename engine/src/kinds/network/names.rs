//! Names of ports, hosts and controllers.
//!
//! Source: `apimachinery/pkg/util/validation`, release 1.37.

use crate::meta::field::{Error, ErrorList, Path};
use crate::meta::names::{is_dns1123_label, is_dns1123_subdomain};

const SUBDOMAIN_PATTERN: &str = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*";
const SUBDOMAIN_BYTES_MAX: usize = 253;
const PORT_NAME_BYTES_MAX: usize = 15;

/// The errors of the name of a port, by IANA's rules.
pub fn is_port_name(name: &str) -> Vec<String> {
    let bytes = name.as_bytes();
    let is_fit = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || *byte == b'-';
    let faults = [
        (bytes.len() > PORT_NAME_BYTES_MAX, "must be no more than 15 characters"),
        (
            bytes.is_empty() || !bytes.iter().all(is_fit),
            "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
        ),
        (!bytes.iter().any(u8::is_ascii_lowercase), "must contain at least one letter (a-z)"),
        (name.contains("--"), "must not contain consecutive hyphens"),
        (name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen"),
    ];
    faults.into_iter().filter(|(holds, _)| *holds).map(|(_, fault)| fault.to_owned()).collect()
}

/// The errors of a host name with a wildcard: `*.example.com`.
pub fn is_wildcard_subdomain(name: &str) -> Vec<String> {
    let mut faults = Vec::new();
    if name.len() > SUBDOMAIN_BYTES_MAX {
        faults.push(format!("must be no more than {SUBDOMAIN_BYTES_MAX} characters"));
    }
    let is_subdomain = |rest: &str| rest.split('.').all(|label| is_label_of_any_length(label.as_bytes()));
    if !name.strip_prefix("*.").is_some_and(is_subdomain) {
        faults.push(format!(
            "a wildcard DNS-1123 subdomain must start with '*.', followed by a valid DNS subdomain, which must consist of \
             lower case alphanumeric characters, '-' or '.' and end with an alphanumeric character (e.g. '*.example.com', \
             regex used for validation is '\\*\\.{SUBDOMAIN_PATTERN}')"
        ));
    }
    faults
}

fn is_label_of_any_length(bytes: &[u8]) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    bytes.first().is_some_and(is_edge)
        && bytes.last().is_some_and(is_edge)
        && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
}

/// The errors of a host name of two labels or more, which may end in a dot.
pub fn check_fully_qualified(path: &Path<'_>, name: &str) -> ErrorList {
    if name.is_empty() {
        return Error::required(path, "").into();
    }
    let name = name.strip_suffix('.').unwrap_or(name);
    let faults = is_dns1123_subdomain(name);
    if !faults.is_empty() {
        return Error::invalid(path, name, faults.join(",")).into();
    }
    if !name.contains('.') {
        return Error::invalid(path, name, "should be a domain with at least two segments separated by dots").into();
    }
    let faulty = name.split('.').map(|label| (label, is_dns1123_label(label))).find(|(_, faults)| !faults.is_empty());
    faulty.map(|(label, faults)| Error::invalid(path, label, faults.join(","))).into_iter().collect()
}

/// The errors of a name such as `example.com/controller`.
pub fn check_domain_prefixed(path: &Path<'_>, name: &str) -> ErrorList {
    if name.is_empty() {
        return Error::required(path, "").into();
    }
    let Some((host, rest)) = name.split_once('/').filter(|(host, rest)| !host.is_empty() && !rest.is_empty()) else {
        return Error::invalid(path, name, "must be a domain-prefixed path (such as \"acme.io/foo\")").into();
    };
    let mut errors: ErrorList =
        is_dns1123_subdomain(host).into_iter().map(|fault| Error::invalid(path, host, fault)).collect();
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || b"/-._~%!$&'()*+,;=:".contains(&byte);
    if !rest.bytes().all(is_fit) {
        let fault = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')";
        errors.push(Error::invalid(path, rest, fault));
    }
    errors
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_ports_have_a_letter_and_no_double_hyphen() {
        assert!(is_port_name("http-2").is_empty());
        assert_eq!(is_port_name("80"), ["must contain at least one letter (a-z)"]);
        assert_eq!(
            is_port_name("a--b-"),
            ["must not contain consecutive hyphens", "must not begin or end with a hyphen"]
        );
        assert_eq!(is_port_name("").len(), 2);
    }

    #[test]
    fn a_wildcard_stands_alone_in_front() {
        assert!(is_wildcard_subdomain("*.example.com").is_empty());
        for name in ["*.*.com", "a*.com", "*", "*."] {
            assert_eq!(is_wildcard_subdomain(name).len(), 1, "{name}");
        }
    }

    #[test]
    fn controllers_have_a_domain() {
        let path = Path::new("controller");
        let details = |name| check_domain_prefixed(&path, name).iter().map(Error::to_string).collect::<Vec<_>>();
        assert!(details("example.com/a/b").is_empty());
        assert_eq!(
            details("other"),
            ["controller: Invalid value: \"other\": must be a domain-prefixed path (such as \"acme.io/foo\")"]
        );
        assert!(details("example.com/ü")[0].starts_with("controller: Invalid value: \"ü\": Invalid path (regex"));
        let name = check_fully_qualified(&path, "single").aggregate();
        assert!(name.ends_with("should be a domain with at least two segments separated by dots"), "{name}");
    }
}
