//! Validation of the Windows options of containers.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use super::container_lists;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

const CREDENTIAL_BYTES_MAX: usize = 64 << 10;
const DOMAIN_BYTES_MAX: usize = 256;
const USER_BYTES_MAX: usize = 104;
const NET_BIOS_CHARS_MAX: usize = 15;
const DNS_LABEL_BYTES_MAX: usize = 63;

/// `windowsOptions`, of a pod or a container.
pub fn validate_options(options: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let name = options.field("gmsaCredentialSpecName");
    if name.is_set() {
        let faults = names::is_dns1123_subdomain(name.text()).into_iter();
        errors.extend(faults.map(|fault| name.invalid_as_json(fault)));
    }
    let credential = options.field("gmsaCredentialSpec");
    if credential.is_set() && credential.text().is_empty() {
        errors.push(credential.invalid_as_json("gmsaCredentialSpec cannot be an empty string"));
    } else if credential.text().len() > CREDENTIAL_BYTES_MAX {
        errors.push(credential.invalid_as_json("gmsaCredentialSpec size must be under 64 KiB"));
    }
    let user = options.field("runAsUserName");
    if user.is_set() {
        let faults = user_faults(user.text()).into_iter();
        errors.extend(faults.map(|fault| user.invalid_as_json(format!("runAsUserName{fault}"))));
    }
    errors
}

/// The errors of `DOMAIN\user`, where the domain is optional.
fn user_faults(name: &str) -> Vec<&'static str> {
    if name.is_empty() {
        return vec![" cannot be an empty string"];
    }
    if name.chars().any(|char| char.is_ascii_control()) {
        return vec![" cannot contain control characters"];
    }
    let parts: Vec<&str> = name.splitn(3, '\\').collect();
    let (domain, user) = match parts.as_slice() {
        [user] => (None, *user),
        [domain, user] => (Some(*domain), *user),
        _ => return vec![" cannot contain more than one backslash"],
    };
    let mut faults = Vec::new();
    let mut check = |is_wrong: bool, fault: &'static str| {
        if is_wrong {
            faults.push(fault);
        }
    };
    check(
        domain.is_some_and(|domain| domain.len() >= DOMAIN_BYTES_MAX),
        "'s Domain length must be under 256 characters",
    );
    check(
        domain.is_some_and(|domain| !is_net_bios(domain) && !is_dns(domain)),
        "'s Domain doesn't match the NetBios nor the DNS format",
    );
    check(user.is_empty(), "'s User cannot be empty");
    check(user.len() > USER_BYTES_MAX, "'s User length must not be longer than 104 characters");
    check(
        !user.is_empty() && user.chars().all(|char| matches!(char, '.' | ' ')),
        "'s User cannot contain only periods or spaces",
    );
    check(
        user.contains(['"', '/', '\\', ':', ';', '|', '=', ',', '+', '*', '?', '<', '>', '@', '[', ']']),
        r#"'s User cannot contain the following characters: "/\:;|=,+*?<>@[]"#,
    );
    faults
}

/// A short name without the characters that separate names.
fn is_net_bios(domain: &str) -> bool {
    let is_fit = |char: char| !matches!(char, '\\' | '/' | ':' | '*' | '?' | '"' | '<' | '>' | '|');
    (1..=NET_BIOS_CHARS_MAX).contains(&domain.chars().count()) && !domain.starts_with('.') && domain.chars().all(is_fit)
}

fn is_dns(domain: &str) -> bool {
    domain.split('.').all(|label| {
        let bytes = label.as_bytes();
        bytes.len() <= DNS_LABEL_BYTES_MAX
            && bytes.first().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.last().is_some_and(u8::is_ascii_alphanumeric)
            && bytes.iter().all(|byte| byte.is_ascii_alphanumeric() || *byte == b'-')
    })
}

/// Containers that are processes of their host: all of a pod or none, and on the network of the host.
pub fn validate_host_process(spec: &FieldRef<'_>) -> ErrorList {
    let of_pod = host_process(spec);
    let mut errors = ErrorList::new();
    let (mut count, mut process_count) = (0, 0);
    container_lists::visit(spec, |container| {
        count += 1;
        let of_container = host_process(container);
        if let (Some(pod), Some(own)) = (of_pod, of_container)
            && pod != own
        {
            let why = format!("pod hostProcess value must be identical if both are specified, was {pod}");
            let context = container.path().child("securityContext");
            let options = context.child("windowsOptions");
            errors.push(Error::invalid(&options.child("hostProcess"), own, why));
        }
        if of_container.or(of_pod) == Some(true) {
            process_count += 1;
        }
    });
    if process_count == 0 {
        return errors;
    }
    if process_count != count {
        let why = "If pod contains any hostProcess containers then all containers must be HostProcess containers";
        errors.push(Error::invalid(spec.path(), "", why));
    }
    let network = spec.field("hostNetwork");
    if !network.is_true() {
        let why = "hostNetwork must be true if pod contains any hostProcess containers";
        errors.push(Error::invalid(network.path(), false, why));
    }
    errors
}

fn host_process(holder: &FieldRef<'_>) -> Option<bool> {
    let value = holder.value()?.at(&["securityContext", "windowsOptions", "hostProcess"]);
    value.and_then(Value::as_bool)
}
