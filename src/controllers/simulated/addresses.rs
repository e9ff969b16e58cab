//! The addresses of a pod on a simulated node.

use std::net::Ipv4Addr;

/// Where a pod is reached.
#[derive(Clone, Copy, Debug)]
pub struct Addresses {
    pub host: Ipv4Addr,
    pub pod: Ipv4Addr,
}
