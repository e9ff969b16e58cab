//! Ports of services, endpoints and policies.
//!
//! Source: `pkg/apis/core/validation`, release 1.37.

use crate::kinds::checks::{named, one_of, port_number};
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names::is_qualified_name;
use crate::value::Value;

use super::names::is_port_name;

/// As sets of them are printed.
pub const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// A protocol, which must be there.
pub fn check_protocol(protocol: &FieldRef<'_>) -> Option<Error> {
    match protocol.text() {
        "" => Some(protocol.required("")),
        _ => one_of(protocol, &PROTOCOLS),
    }
}

/// The number of a port, or its name in a pod. An absent port is the number 0.
pub fn check_port_or_name(port: &FieldRef<'_>) -> ErrorList {
    match port.value() {
        Some(Value::String(_)) => named(port, is_port_name),
        Some(_) => port_number(port).into_iter().collect(),
        None => Error::invalid(port.path(), 0, "must be between 1 and 65535, inclusive").into(),
    }
}

/// The application protocol of a port, if it is given.
pub fn check_app_protocol(protocol: &FieldRef<'_>) -> ErrorList {
    if protocol.is_set() { named(protocol, is_qualified_name) } else { ErrorList::new() }
}

/// A name that is a label, or must be there if `is_required`.
pub fn check_optional_label(name: &FieldRef<'_>, is_required: bool) -> ErrorList {
    match name.text() {
        "" if is_required => name.required("").into(),
        "" => ErrorList::new(),
        _ => named(name, crate::meta::names::is_dns1123_label),
    }
}
