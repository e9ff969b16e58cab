//! The rules for names, with Kubernetes' errors.
//!
//! Every function returns its errors, one message per fault; none for a valid name.
//! Source: `k8s.io/apimachinery/pkg/api/validate/content`, release 1.37.

use std::borrow::Cow;

use crate::value::go_quote;
use crate::work;

const LABEL_BYTES_MAX: usize = 63;
const SUBDOMAIN_BYTES_MAX: usize = 253;
const PORT_NAME_BYTES_MAX: usize = 15;

const LABEL_PATTERN: &str = "[a-z0-9]([-a-z0-9]*[a-z0-9])?";
const QUALIFIED_PATTERN: &str = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]";
const QUALIFIED_WORDS: &str =
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character";

/// A label of a DNS name: RFC 1123, lower case.
pub fn is_dns1123_label(name: &str) -> Vec<String> {
    label(name, "characters")
}

/// The same in the words of declarative validation: `k8s-short-name`.
pub fn is_short_name(name: &str) -> Vec<String> {
    label(name, "bytes")
}

fn label(name: &str, unit: &str) -> Vec<String> {
    let mut faults = too_long(name, LABEL_BYTES_MAX, unit);
    if !is_label(name) {
        // A name that is a valid subdomain except for its length only has the fault that it contains dots.
        faults.push(if has_labels_only(name) { "must not contain dots".to_owned() } else { mismatch(
            "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and \
             end with an alphanumeric character",
            LABEL_PATTERN,
            &["my-name", "123-abc"],
        ) });
    }
    faults
}

/// A DNS name: RFC 1123, lower case.
pub fn is_dns1123_subdomain(name: &str) -> Vec<String> {
    subdomain(name, "characters")
}

/// The same in the words of declarative validation: `k8s-long-name`.
pub fn is_long_name(name: &str) -> Vec<String> {
    subdomain(name, "bytes")
}

/// The reference counts bytes everywhere, but calls them characters for names of objects.
fn subdomain(name: &str, unit: &str) -> Vec<String> {
    let mut faults = too_long(name, SUBDOMAIN_BYTES_MAX, unit);
    if !has_labels_only(name) {
        faults.push(mismatch(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start \
             and end with an alphanumeric character",
            &format!("{LABEL_PATTERN}(\\.{LABEL_PATTERN})*"),
            &["example.com"],
        ));
    }
    faults
}

/// A DNS name: RFC 1123, in any case.
pub fn is_dns1123_subdomain_caseless(name: &str) -> Vec<String> {
    let mut faults = too_long(name, SUBDOMAIN_BYTES_MAX, "bytes");
    if !has_labels_only(&name.to_ascii_lowercase()) {
        faults.push(mismatch(
            "an RFC 1123 subdomain must consist of alphanumeric characters, '-' or '.', and must start and end with an \
             alphanumeric character",
            &format!("{LABEL_PATTERN}(\\.{LABEL_PATTERN})*"),
            &["Example.com"],
        ));
    }
    faults
}

/// A DNS name whose labels may contain underscores, as names of services do: `_http._tcp.example.com`.
pub fn is_dns1123_subdomain_with_underscore(name: &str) -> Vec<String> {
    let mut faults = too_long(name, SUBDOMAIN_BYTES_MAX, "characters");
    let is_fit = |label: &str| {
        let rest = label.strip_prefix('_').unwrap_or(label);
        let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
        let bytes = rest.as_bytes();
        bytes.first().is_some_and(is_edge)
            && bytes.last().is_some_and(is_edge)
            && bytes.iter().all(|byte| is_edge(byte) || matches!(byte, b'-' | b'_'))
    };
    if !name.split('.').all(is_fit) {
        const PATTERN: &str = "_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?";
        faults.push(mismatch(
            "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must \
             start and end with an alphanumeric character",
            &format!("{PATTERN}(\\.{PATTERN})*"),
            &["example.com"],
        ));
    }
    faults
}

/// The name of a port.
pub fn is_port_name(name: &str) -> Vec<String> {
    let mut faults = too_long(name, PORT_NAME_BYTES_MAX, "characters");
    let is_fit = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
    let mut check = |is_wrong: bool, fault: &str| {
        if is_wrong {
            faults.push(fault.to_owned());
        }
    };
    check(
        name.is_empty() || !name.bytes().all(is_fit),
        "must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)",
    );
    check(!name.bytes().any(|byte| byte.is_ascii_lowercase()), "must contain at least one letter (a-z)");
    check(name.contains("--"), "must not contain consecutive hyphens");
    check(name.starts_with('-') || name.ends_with('-'), "must not begin or end with a hyphen");
    faults
}

/// The name of a header of HTTP.
pub fn is_http_header_name(name: &str) -> Vec<String> {
    if !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-') {
        return Vec::new();
    }
    let words = "a valid HTTP header must consist of alphanumeric characters or '-'";
    vec![mismatch(words, "[-A-Za-z0-9]+", &["X-Header-Name"])]
}

/// The original rule for the name of an environment variable: letters, digits, `_`, `-` and `.`.
pub fn is_plain_environment_variable(name: &str) -> Vec<String> {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-' | b'.');
    let mut faults = Vec::new();
    if name.is_empty() || !name.bytes().all(is_part) || name.starts_with(|first: char| first.is_ascii_digit()) {
        let words = "a valid environment variable name must consist of alphabetic characters, digits, '_', '-', or '.', \
                     and must not start with a digit";
        faults.push(mismatch(words, "[-._a-zA-Z][-._a-zA-Z0-9]*", &["my.env-name", "MY_ENV.NAME", "MyEnvName1"]));
    }
    match name {
        "." => faults.push("must not be '.'".to_owned()),
        ".." => faults.push("must not be '..'".to_owned()),
        name if name.starts_with("..") => faults.push("must not start with '..'".to_owned()),
        _ => {}
    }
    faults
}

/// The name of an environment variable: printable ASCII without `=`.
pub fn is_environment_variable(name: &str) -> Vec<String> {
    if name.is_empty() {
        return vec!["environment variable name must be non-empty".to_owned()];
    }
    if name.bytes().all(|byte| matches!(byte, b' '..=b'~') && byte != b'=') {
        return Vec::new();
    }
    vec!["a valid environment variable name must consist only of printable ASCII characters other than '='".to_owned()]
}

/// A label of a DNS name that begins with a letter: RFC 1035.
pub fn is_dns1035_label(name: &str) -> Vec<String> {
    let mut faults = too_long(name, LABEL_BYTES_MAX, "characters");
    if !is_label(name) || !name.starts_with(|first: char| first.is_ascii_lowercase()) {
        faults.push(mismatch(
            "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic \
             character, and end with an alphanumeric character",
            "[a-z]([-a-z0-9]*[a-z0-9])?",
            &["my-name", "abc-123"],
        ));
    }
    faults
}

/// The key of a label: a name, optionally with a DNS name and a slash before it.
pub fn is_qualified_name(name: &str) -> Vec<String> {
    let examples = ["MyName", "my.name", "123-abc"];
    let parts: Vec<&str> = name.split('/').collect();
    let (mut faults, name) = match parts.as_slice() {
        [name] => (Vec::new(), *name),
        ["", name] => (vec!["prefix part must be non-empty".to_owned()], *name),
        [prefix, name] => {
            (subdomain(prefix, "bytes").iter().map(|fault| format!("prefix part {fault}")).collect(), *name)
        }
        _ => {
            let fault = mismatch(QUALIFIED_WORDS, QUALIFIED_PATTERN, &examples);
            return vec![format!(
                "a valid label key {fault} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
            )];
        }
    };
    if name.is_empty() {
        faults.push("name part must be non-empty".to_owned());
    }
    faults.extend(too_long(name, LABEL_BYTES_MAX, "bytes").iter().map(|fault| format!("name part {fault}")));
    if !is_name_part(name) {
        faults.push(format!("name part {}", mismatch(QUALIFIED_WORDS, QUALIFIED_PATTERN, &examples)));
    }
    faults
}

/// An identifier of the language C.
pub fn is_c_identifier(name: &str) -> Vec<String> {
    let is_word = name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if !name.is_empty() && is_word && !name.starts_with(|first: char| first.is_ascii_digit()) {
        return Vec::new();
    }
    vec![mismatch(
        "a valid C identifier must start with alphabetic character or '_', followed by a string of alphanumeric characters or \
         '_'",
        "[A-Za-z_][A-Za-z0-9_]*",
        &["my_name", "MY_NAME", "MyName"],
    )]
}

/// The value of a label.
pub fn is_valid_label_value(value: &str) -> Vec<String> {
    let mut faults = too_long(value, LABEL_BYTES_MAX, "bytes");
    if !value.is_empty() && !is_name_part(value) {
        faults.push(mismatch(
            &format!("a valid label must be an empty string or {}", QUALIFIED_WORDS.trim_start_matches("must ")),
            &format!("({QUALIFIED_PATTERN})?"),
            &["MyValue", "my_value", "12345"],
        ));
    }
    faults
}

/// A key in the data of a ConfigMap or a Secret.
pub fn is_config_map_key(key: &str) -> Vec<String> {
    let mut faults = too_long(key, SUBDOMAIN_BYTES_MAX, "characters");
    let is_fit = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'.' | b'_');
    if key.is_empty() || !key.bytes().all(is_fit) {
        faults.push(mismatch(
            "a valid config key must consist of alphanumeric characters, '-', '_' or '.'",
            "[-._a-zA-Z0-9]+",
            &["key.name", "KEY_NAME", "key-name"],
        ));
    }
    match key {
        "." | ".." => faults.push(format!("must not be '{key}'")),
        key if key.starts_with("..") => faults.push("must not start with '..'".to_owned()),
        _ => {}
    }
    faults
}

/// A name that is valid as a path segment. A prefix may be anything that is not a complete name.
pub fn is_path_segment(name: &str, prefix: bool) -> Vec<String> {
    if !prefix && matches!(name, "." | "..") {
        return vec![format!("may not be '{name}'")];
    }
    ["/", "%"].into_iter().filter(|part| name.contains(part)).map(|part| format!("may not contain '{part}'")).collect()
}

/// Why a client of Kubernetes does not ask for an object of this name.
///
/// Source: `Request.Name` of `k8s.io/client-go/rest`.
pub fn unfit_for_request(name: &str) -> Option<String> {
    if name.is_empty() {
        return Some("resource name may not be empty".to_owned());
    }
    let faults = is_path_segment(name, false);
    (!faults.is_empty()).then(|| format!("invalid resource name {}: [{}]", go_quote(name), faults.join(" ")))
}

/// The name of an object: a DNS name.
pub fn name_is_dns1123_subdomain(name: &str, prefix: bool) -> Vec<String> {
    is_dns1123_subdomain(&masked(name, prefix))
}

/// The name of an object whose type declares its format (`k8s-long-name`): the prefix of a generated name is not
/// checked.
pub fn name_is_long(name: &str, prefix: bool) -> Vec<String> {
    if prefix { Vec::new() } else { subdomain(name, "bytes") }
}

/// The name of an object that is a label, such as a namespace.
pub fn name_is_dns1123_label(name: &str, prefix: bool) -> Vec<String> {
    is_dns1123_label(&masked(name, prefix))
}

/// The name of an object that is a label and begins with a letter, such as a service.
pub fn name_is_dns1035_label(name: &str, prefix: bool) -> Vec<String> {
    is_dns1035_label(&masked(name, prefix))
}

/// A prefix may end in a dash, since more characters follow it.
fn masked(name: &str, prefix: bool) -> Cow<'_, str> {
    match name.strip_suffix('-').filter(|rest| prefix && !rest.is_empty()) {
        None => Cow::Borrowed(name),
        // The reference also replaces the character before the dash, even if that is a dash or a dot.
        Some(rest) => match rest.strip_suffix(|last: char| last.is_ascii()) {
            Some(begin) => Cow::Owned(format!("{begin}a")),
            None => Cow::Borrowed(rest),
        },
    }
}

fn is_label(name: &str) -> bool {
    let is_edge = |byte: &u8| byte.is_ascii_lowercase() || byte.is_ascii_digit();
    let bytes = name.as_bytes();
    bytes.first().is_some_and(is_edge)
        && bytes.last().is_some_and(is_edge)
        && bytes.iter().all(|byte| is_edge(byte) || *byte == b'-')
}

/// Labels with dots between them, of any length.
fn has_labels_only(name: &str) -> bool {
    name.split('.').all(is_label)
}

fn is_name_part(name: &str) -> bool {
    let bytes = name.as_bytes();
    bytes.first().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
        && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

fn too_long(name: &str, bytes_max: usize, unit: &str) -> Vec<String> {
    work::bytes(name.len());
    if name.len() > bytes_max { vec![format!("must be no more than {bytes_max} {unit}")] } else { Vec::new() }
}

/// The reference shows its regular expression, and a comma before each further example.
fn mismatch(words: &str, pattern: &str, examples: &[&str]) -> String {
    let examples: Vec<String> = examples.iter().map(|example| format!("'{example}', ")).collect();
    format!("{words} (e.g. {}regex used for validation is '{pattern}')", examples.join(" or "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn good_names_have_no_faults() {
        for name in ["a", "a-b.c", "1.2"] {
            assert_eq!(is_dns1123_subdomain(name), Vec::<String>::new(), "{name}");
        }
        assert!(is_qualified_name("example.com/My_Name").is_empty());
        assert!(is_valid_label_value("").is_empty());
        assert!(name_is_dns1123_subdomain("prefix-", true).is_empty());
    }

    #[test]
    fn a_name_of_a_declared_format_has_bytes_and_no_prefix() {
        assert_eq!(name_is_long(&"a".repeat(SUBDOMAIN_BYTES_MAX + 1), false), ["must be no more than 253 bytes"]);
        assert_eq!(name_is_long("A_", true), Vec::<String>::new());
    }

    #[test]
    fn dots_are_what_is_wrong_with_a_label_of_any_length() {
        assert_eq!(is_dns1123_label("a.b"), ["must not contain dots"]);
        let long = format!("a.{}", "b".repeat(SUBDOMAIN_BYTES_MAX));
        assert_eq!(is_dns1123_label(&long), ["must be no more than 63 characters", "must not contain dots"]);
    }

    #[test]
    fn several_examples_are_joined_as_the_reference_joins_them() {
        let expected = "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an \
                        alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is \
                        '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
        assert_eq!(is_qualified_name("bad key"), [expected]);
    }
}
