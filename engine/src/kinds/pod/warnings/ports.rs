//! Ports that several containers have.

use std::collections::HashMap;

use crate::kinds::pod::container_lists;
use crate::meta::field_ref::FieldRef;
use crate::value::go_quote;

/// DIFFERS: how many pairs of ports are compared. Kubernetes compares all of them.
const PAIRS_MAX: usize = 100_000;

struct Port {
    path: String,
    host_ip: String,
    host_port: i64,
}

/// The warnings of the ports of a spec: of numbers, then of names.
pub fn of(spec: &FieldRef<'_>) -> Vec<String> {
    let mut warnings = of_numbers(spec);
    let mut names: HashMap<String, String> = HashMap::new();
    container_lists::visit(spec, |container| {
        for port in container.field("ports").items().filter(|port| !port.text_of("name").is_empty()) {
            let name = port.text_of("name");
            match names.get(name) {
                Some(other) => warnings.push(format!(
                    "{}: duplicate port name {} with {other}, services and probes that select ports by name will use {other}",
                    port.path(),
                    go_quote(name),
                )),
                None => _ = names.insert(name.to_owned(), port.path().to_string()),
            }
        }
    });
    warnings
}

fn of_numbers(spec: &FieldRef<'_>) -> Vec<String> {
    let mut warnings = Vec::new();
    let mut known: HashMap<(i64, String), Vec<Port>> = HashMap::new();
    let mut pairs = 0;
    container_lists::visit(spec, |container| {
        for port in container.field("ports").items() {
            let this = Port {
                path: port.path().to_string(),
                host_ip: port.text_of("hostIP").to_owned(),
                host_port: port.field("hostPort").int(),
            };
            if !this.host_ip.is_empty() && this.host_port == 0 {
                warnings.push(format!("{}: hostIP set without hostPort: {}", this.path, show(&port)));
            }
            let key = (port.field("containerPort").int(), port.text_of("protocol").to_owned());
            let others = known.entry(key).or_default();
            for other in others.iter().take(PAIRS_MAX.saturating_sub(pairs)) {
                crate::work::step();
                warnings.extend(
                    conflict(&this, other)
                        .map(|what| format!("{}: {what} port definition with {}", this.path, other.path)),
                );
            }
            pairs += others.len();
            others.push(this);
        }
    });
    warnings
}

/// How two ports of the same number and protocol are in each other's way.
fn conflict(this: &Port, other: &Port) -> Option<&'static str> {
    if this.host_ip == other.host_ip && this.host_port == other.host_port {
        Some("duplicate")
    } else if this.host_port == 0 || other.host_port == 0 {
        Some("overlapping")
    } else if this.host_port == other.host_port && this.host_ip.is_empty() != other.host_ip.is_empty() {
        Some("dangerously ambiguous")
    } else {
        None
    }
}

/// A port as Go's `%+v` prints it.
fn show(port: &FieldRef<'_>) -> String {
    format!(
        "{{Name:{} HostPort:{} ContainerPort:{} Protocol:{} HostIP:{}}}",
        port.text_of("name"),
        port.field("hostPort").int(),
        port.field("containerPort").int(),
        port.text_of("protocol"),
        port.text_of("hostIP"),
    )
}
