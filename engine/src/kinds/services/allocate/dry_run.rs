//! Allocation in a dry run: returns plausible addresses and ports without taking any.
//!
//! Source: `pkg/registry/core/service/ipallocator` and `portallocator`, release 1.37.

use std::collections::BTreeSet;
use std::net::IpAddr;

use crate::kinds::services::Family;

use super::{Addresses, IpRange, Ports, Refusal};

/// The number before the first port that a dry run returns.
const PORT_BEFORE: i64 = 32_768;

/// The addresses and ports of one dry run.
pub struct DryRun<'a> {
    ranges: &'a [IpRange],
    is_taken: &'a dyn Fn(i64) -> bool,
    ports: BTreeSet<i64>,
}

impl<'a> DryRun<'a> {
    /// Makes a dry run with the cluster's ranges and a test of whether a port is taken.
    pub fn new(ranges: &'a [IpRange], is_taken: &'a dyn Fn(i64) -> bool) -> Self {
        DryRun { ranges, is_taken, ports: BTreeSet::new() }
    }

    fn range(&self, family: Family) -> Result<&IpRange, Refusal> {
        self.ranges.iter().find(|range| range.family() == family).ok_or(Refusal::OtherNetwork)
    }
}

impl Addresses for DryRun<'_> {
    fn take(&mut self, ip: IpAddr) -> Result<(), Refusal> {
        let family = if ip.is_ipv4() { Family::V4 } else { Family::V6 };
        self.range(family)?.refuse(ip).map_or(Ok(()), Err)
    }

    fn take_any(&mut self, family: Family) -> Result<IpAddr, Refusal> {
        self.range(family).map(IpRange::network)
    }

    fn give_back(&mut self, _: IpAddr) {}
}

impl Ports for DryRun<'_> {
    fn take(&mut self, port: i64) -> Result<(), Refusal> {
        if (self.is_taken)(port) || !self.ports.insert(port) { Err(Refusal::PortTaken) } else { Ok(()) }
    }

    fn take_any(&mut self) -> Result<i64, Refusal> {
        // A number below 0 was never a port: the smallest is 1.
        let port = self.ports.last().map_or(PORT_BEFORE, |last| (*last).max(0)).saturating_add(1);
        self.ports.insert(port);
        Ok(port)
    }

    fn give_back(&mut self, _: i64) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_next_port_is_behind_the_last_and_no_less_than_one() {
        let is_taken = |_| false;
        let after = |given: &[i64]| {
            let mut dry = DryRun { ranges: &[], is_taken: &is_taken, ports: given.iter().copied().collect() };
            Ports::take_any(&mut dry)
        };
        assert_eq!(
            [after(&[]), after(&[30_000, 30_005]), after(&[-5])].map(Result::ok),
            [Some(32_769), Some(30_006), Some(1)]
        );
    }
}
