//! How much of the log is read at a time.

/// How many changes.
const CHANGES: usize = 256;

/// How much of the log is read at a time: so many changes, or so many bytes of states. The last change may exceed the
/// bytes, so that there is at least one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PageMax {
    pub changes: usize,
    pub bytes: usize,
}

impl PageMax {
    /// As many changes as a transaction may make, and about as many bytes as a disk reads in a millisecond: others wait for
    /// the connection meanwhile.
    pub const USUAL: PageMax = PageMax { changes: CHANGES, bytes: 1 << 20 };

    /// The first of some changes, whose sizes in bytes `size_bytes` returns.
    pub fn first_of<T>(self, all: impl Iterator<Item = T>, size_bytes: impl Fn(&T) -> usize) -> Vec<T> {
        let mut bytes = 0_usize;
        let fits = |change: &T| {
            let has_room = bytes < self.bytes;
            bytes = bytes.saturating_add(size_bytes(change));
            has_room
        };
        all.take(self.changes).take_while(fits).collect()
    }
}
