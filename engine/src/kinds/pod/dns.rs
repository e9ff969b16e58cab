//! Validation of how a pod looks names up.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use super::PodValidationOptions;
use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;

const NAMESERVERS_MAX: usize = 3;
const SEARCHES_MAX: usize = 32;
const SEARCHES_BYTES_MAX: usize = 2048;

/// The DNS configuration that a pod adds to its policy; with the policy `None` it is the whole configuration.
pub fn validate_config(spec: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let config = spec.field("dnsConfig");
    let servers = config.field("nameservers");
    let mut errors = ErrorList::new();
    if spec.field("dnsPolicy").text() == "None" {
        if !config.is_set() {
            errors.push(config.required("must provide `dnsConfig` when `dnsPolicy` is None"));
            return errors;
        }
        if servers.is_empty() {
            errors.push(servers.required("must provide at least one DNS nameserver when `dnsPolicy` is None"));
            return errors;
        }
    }
    if servers.len() > NAMESERVERS_MAX {
        errors.push(servers.invalid(format!("must not have more than {NAMESERVERS_MAX} nameservers")));
    }
    for server in servers.items() {
        errors.extend(checks::legacy_ip(&server, options.allow_legacy_ips));
    }
    errors.extend(validate_searches(&config.field("searches"), options));
    for option in config.field("options").items() {
        if option.field("name").is_empty() {
            errors.push(option.required("must not be empty"));
        }
    }
    errors
}

/// Names that are tried as the end of others.
fn validate_searches(searches: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    if searches.len() > SEARCHES_MAX {
        errors.push(searches.invalid(format!("must not have more than {SEARCHES_MAX} search paths")));
    }
    let bytes: usize = searches.texts().map(|search| search.len() + 1).sum();
    if bytes > SEARCHES_BYTES_MAX + 1 {
        let why =
            format!("must not have more than {SEARCHES_BYTES_MAX} characters (including spaces) in the search list");
        errors.push(searches.invalid(why));
    }
    let is_relaxed = options.allow_relaxed_dns_search_validation;
    let check = if is_relaxed { names::is_dns1123_subdomain_with_underscore } else { names::is_dns1123_subdomain };
    for search in searches.items().filter(|search| !(is_relaxed && search.text() == ".")) {
        let name = search.text().strip_suffix('.').unwrap_or(search.text());
        let faults = check(name).into_iter();
        errors.extend(faults.map(|fault| Error::invalid(search.path(), name, fault)));
    }
    errors
}

/// Lines of a pod's file of hosts.
pub fn validate_host_aliases(aliases: &FieldRef<'_>, options: &PodValidationOptions) -> ErrorList {
    let mut errors = ErrorList::new();
    for alias in aliases.items() {
        errors.extend(checks::legacy_ip(&alias.field("ip"), options.allow_legacy_ips));
        for name in alias.field("hostnames").items() {
            errors.extend(checks::named(&name, names::is_dns1123_subdomain));
        }
    }
    errors
}
