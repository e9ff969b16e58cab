//! The counts that need no tool: steps, by the code itself, and bytes, by the allocator.

use allocation_counter::AllocationInfo;
use kubeskiff::work;

use crate::pass::Pass;

/// What the passes took with the input of one size.
#[derive(Clone, Copy, Debug)]
pub struct Taken {
    pub steps: u64,
    pub allocated_bytes: u64,
    pub peak_bytes: u64,
}

/// What a pass takes at each of its sizes.
pub fn steps_and_bytes(pass: &Pass) -> [Taken; 3] {
    // What is made once per process is made here.
    (pass.prepare)(pass.size)();
    pass.sizes().map(|size| {
        let work = (pass.prepare)(size);
        let mut steps = 0;
        let AllocationInfo { bytes_total, bytes_max, .. } =
            allocation_counter::measure(|| steps = work::counted(work).1);
        Taken { steps, allocated_bytes: bytes_total, peak_bytes: bytes_max }
    })
}
