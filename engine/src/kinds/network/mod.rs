//! Shared code of the network kinds: addresses, ports, names, and the state of load balancers.
//!
//! Input: objects by their types. Output: field errors, warnings and texts of columns, as kube-apiserver 1.37 gives
//! them.

pub(crate) mod addresses;
mod balancer;
mod columns;
pub(crate) mod names;
mod ports;

pub use balancer::{check_balancer, ingress_warnings, shown_addresses};
pub use columns::listed;
pub use ports::{PROTOCOLS, check_app_protocol, check_optional_label, check_port_or_name, check_protocol};
