//! Validation of the ports of containers.
//!
//! Source: `pkg/apis/core/validation`, release 1.36.

use std::collections::HashSet;

use crate::kinds::checks;
use crate::meta::field::{Error, ErrorList};
use crate::meta::field_ref::FieldRef;
use crate::meta::names;
use crate::value::Value;

const PROTOCOLS: [&str; 3] = ["SCTP", "TCP", "UDP"];

/// The ports of one container.
pub fn validate(ports: &FieldRef<'_>) -> ErrorList {
    let mut errors = ErrorList::new();
    let mut seen = HashSet::new();
    for port in ports.items() {
        let name = port.field("name");
        if !name.is_empty() {
            let faults = checks::named(&name, names::is_port_name);
            if faults.is_empty() && !seen.insert(port.text_of("name")) {
                errors.push(name.duplicate());
            }
            errors.extend(faults);
        }
        let number = port.field("containerPort");
        if number.int() == 0 {
            errors.push(number.required(""));
        } else {
            errors.extend(checks::port_number(&number));
        }
        let host = port.field("hostPort");
        if host.int() != 0 {
            errors.extend(checks::port_number(&host));
        }
        errors.extend(checks::required_one_of(&port.field("protocol"), &PROTOCOLS));
    }
    errors
}

/// No two containers that run at the same time have the same port of their host.
pub fn validate_host_ports(containers: &FieldRef<'_>) -> ErrorList {
    let mut taken = HashSet::new();
    let mut errors = ErrorList::new();
    for container in containers.items() {
        errors.extend(validate_host_ports_of(&container, &mut taken));
    }
    errors
}

/// The ports of one container are not `taken`.
pub fn validate_host_ports_of(container: &FieldRef<'_>, taken: &mut HashSet<String>) -> ErrorList {
    let mut errors = ErrorList::new();
    for port in container.field("ports").items() {
        let host = port.field("hostPort");
        if host.int() == 0 {
            continue;
        }
        let this = format!("{}/{}/{}", port.text_of("protocol"), port.text_of("hostIP"), host.int());
        if taken.contains(&this) {
            errors.push(Error::duplicate(host.path(), this));
        } else {
            taken.insert(this);
        }
    }
    errors
}

/// A port by its number, or by its name in a container.
pub fn validate_number_or_name(port: &FieldRef<'_>) -> ErrorList {
    match port.value() {
        Some(Value::String(_)) => checks::named(port, names::is_port_name),
        _ => validate_number(port).into_iter().collect(),
    }
}

/// A number that reads as 0 if it is absent.
pub fn validate_number(port: &FieldRef<'_>) -> Option<Error> {
    let is_fit = (1..=65535).contains(&port.int());
    (!is_fit).then(|| Error::invalid(port.path(), port.int(), "must be between 1 and 65535, inclusive"))
}
