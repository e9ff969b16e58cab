//! What the system says of memory: how much this process uses, and how much it may.

use std::fs;
use std::io::Read as _;

/// The divisor of the limit of address space that gives the memory that can be counted on.
#[cfg(unix)]
const ADDRESSES_SHARE: usize = 2;

/// The private memory of the process, in bytes: pages that are mapped from files can be dropped by
/// the system.
///
/// The fields of `statm` are counts of pages: the size, the resident pages, and those of them that
/// are mapped from files. (`status` has the same values, but takes several times as long to read.)
pub(super) fn own_bytes() -> Option<usize> {
    let mut told = [0; 128];
    let length = fs::File::open("/proc/self/statm").ok()?.read(&mut told).ok()?;
    let mut counts = str::from_utf8(told.get(..length)?).ok()?.split(' ').skip(1).map_while(|count| count.parse().ok());
    let (resident, of_files): (usize, usize) = (counts.next()?, counts.next()?);
    resident.saturating_sub(of_files).checked_mul(page_bytes())
}

#[cfg(unix)]
fn page_bytes() -> usize {
    rustix::param::page_size()
}

/// Other systems don't have the file that counts memory in pages.
#[cfg(not(unix))]
fn page_bytes() -> usize {
    1
}

/// The least of the limits of the process, its control group and the machine; `None` if the system
/// does not report them.
pub(super) fn system_limit_bytes() -> Option<usize> {
    let groups = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];
    let of_groups = groups.iter().filter_map(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    let of_own = own_group().and_then(|path| fs::read_to_string(path).ok()?.trim().parse().ok());
    of_groups.chain(of_own).chain(machine_bytes()).chain(address_bytes()).min()
}

/// The part of the address space limit that can be counted on as memory.
#[cfg(unix)]
fn address_bytes() -> Option<usize> {
    let limit = rustix::process::getrlimit(rustix::process::Resource::As).current?;
    usize::try_from(limit).ok().map(|limit| limit / ADDRESSES_SHARE)
}

/// Other systems have no such limit.
#[cfg(not(unix))]
fn address_bytes() -> Option<usize> {
    None
}

/// The path of the limit of the process's own control group (version 2).
fn own_group() -> Option<String> {
    let groups = fs::read_to_string("/proc/self/cgroup").ok()?;
    let path = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    Some(format!("/sys/fs/cgroup{path}/memory.max"))
}

fn machine_bytes() -> Option<usize> {
    let told = fs::read_to_string("/proc/meminfo").ok()?;
    let total = told.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    total.trim().strip_suffix(" kB")?.trim().parse::<usize>().ok()?.checked_mul(1 << 10)
}
