//! The processes that share a database file: how each learns that another has written, immediately and at almost no
//! cost.
//!
//! Next to the database `state.db`, `state.peers` has a slot for each process, in which it writes the newest revision
//! that it has committed, before it acknowledges it. So one read of a small file shows whether the state in memory is
//! the newest. A lock on `state.peer-N` shows that the process of slot `N` is alive, and on the socket
//! `state.peer-N.sock` it is notified that there is something to read: notifications may get lost, so each process also
//! checks now and then. If there are no such sockets, as on Windows, it checks more often.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::meta::Revision;

use super::super::StoreError;
use super::files::open_private;

/// How many processes may share a file.
const SLOTS: usize = 64;
/// A revision and its complement: a half-written value is not mistaken for a revision.
const SLOT_BYTES: usize = 16;
/// The value of a process that has committed nothing.
const NOTHING: i64 = 1;
/// How often a process checks for lost notifications.
const LOOK_EVERY: Duration = Duration::from_secs(1);
/// How often a process checks if it can't be notified, because the path is too long for a socket.
const LOOK_EVERY_UNTOLD: Duration = Duration::from_millis(20);

/// This process among those that share a file.
pub struct Peers {
    database: PathBuf,
    slots: File,
    own: usize,
    _alive: File,
    notices: Notices,
}

impl Peers {
    /// Takes a slot. Errors: none is free, or its files can't be created.
    pub fn join(database: &Path) -> Result<Self, StoreError> {
        let failed = |source: io::Error| StoreError::Open { path: database.to_owned(), source: Arc::new(source) };
        let slots = open_private(&database.with_extension("peers")).map_err(failed)?;
        if slots.metadata().map_err(failed)?.len() == 0 {
            slots.set_len((SLOTS * SLOT_BYTES) as u64).map_err(failed)?;
        }
        let free = (0..SLOTS).find_map(|slot| Some((slot, take(database, slot).ok()?)));
        let (own, alive) = free.ok_or_else(|| StoreError::InUse(database.to_owned()))?;
        let notices = Notices::open(&socket_of(database, own)).map_err(failed)?;
        let peers = Peers { database: database.to_owned(), slots, own, _alive: alive, notices };
        // The other processes may not have read what the last process of this slot committed.
        if peers.read().is_none_or(|committed| committed[own] == 0) {
            peers.leave(NOTHING).map_err(failed)?;
        }
        Ok(peers)
    }

    /// Whether another process may have acknowledged something after `revision`.
    pub fn are_ahead_of(&self, revision: Revision) -> bool {
        self.read().is_none_or(|committed| self.others(&committed).any(|(_, newest)| newest > revision.get()))
    }

    /// Publishes what was committed, before it is acknowledged.
    pub fn tell(&self, committed: Revision) {
        if let Err(error) = self.leave(committed.get()) {
            tracing::error!(%error, "other processes on the database are not told what is written");
        }
        let Some(all) = self.read() else { return };
        for (slot, _) in self.others(&all) {
            self.notices.send(&socket_of(&self.database, slot));
        }
    }

    /// Waits until another process announces a write.
    pub async fn told(&self) {
        self.notices.next().await;
    }

    /// How often to check for something new.
    pub fn look_every(&self) -> Duration {
        if self.notices.arrive() { LOOK_EVERY } else { LOOK_EVERY_UNTOLD }
    }

    /// The slot of this process.
    pub fn own_slot(&self) -> i64 {
        i64::try_from(self.own).unwrap_or_default()
    }

    /// Whether the process of a slot is alive.
    pub fn is_alive(&self, slot: i64) -> bool {
        usize::try_from(slot).is_ok_and(|slot| slot == self.own || take(&self.database, slot).is_err())
    }

    /// The slots of other processes that were ever taken.
    fn others(&self, committed: &[i64; SLOTS]) -> impl Iterator<Item = (usize, i64)> {
        let others = committed.iter().copied().enumerate();
        others.filter(|(slot, newest)| *slot != self.own && *newest > 0)
    }

    fn leave(&self, newest: i64) -> io::Result<()> {
        let mut bytes = [0; SLOT_BYTES];
        bytes[..8].copy_from_slice(&newest.to_le_bytes());
        bytes[8..].copy_from_slice(&(!newest).to_le_bytes());
        write_at(&self.slots, &bytes, (self.own * SLOT_BYTES) as u64)
    }

    /// The value of each slot; `None` if one can't be read.
    fn read(&self) -> Option<[i64; SLOTS]> {
        let mut bytes = [0; SLOTS * SLOT_BYTES];
        read_at_start(&self.slots, &mut bytes).ok()?;
        let mut committed = [0; SLOTS];
        let (slots, _) = bytes.as_chunks::<SLOT_BYTES>();
        for (newest, slot) in committed.iter_mut().zip(slots) {
            let (halves, _) = slot.as_chunks::<8>();
            let (value, check) = (i64::from_le_bytes(halves[0]), i64::from_le_bytes(halves[1]));
            match (value, check) {
                (0, 0) => {}
                (value, check) if value == !check => *newest = value,
                _ => return None,
            }
        }
        Some(committed)
    }
}

impl Drop for Peers {
    fn drop(&mut self) {
        _ = std::fs::remove_file(socket_of(&self.database, self.own));
    }
}

/// Takes a slot as long as the file is open.
fn take(database: &Path, slot: usize) -> io::Result<File> {
    let file = open_private(&database.with_extension(format!("peer-{slot}")))?;
    file.try_lock()?;
    Ok(file)
}

fn socket_of(database: &Path, slot: usize) -> PathBuf {
    database.with_extension(format!("peer-{slot}.sock"))
}

/// Writes all bytes at once, so that no reader sees only some of them.
#[cfg(unix)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    std::os::unix::fs::FileExt::write_all_at(file, bytes, offset)
}

#[cfg(windows)]
fn write_at(file: &File, bytes: &[u8], offset: u64) -> io::Result<()> {
    let written = std::os::windows::fs::FileExt::seek_write(file, bytes, offset)?;
    if written == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
}

/// Fills `bytes` from the start of the file.
#[cfg(unix)]
fn read_at_start(file: &File, bytes: &mut [u8]) -> io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, 0)
}

#[cfg(windows)]
fn read_at_start(file: &File, bytes: &mut [u8]) -> io::Result<()> {
    let read = std::os::windows::fs::FileExt::seek_read(file, bytes, 0)?;
    if read == bytes.len() { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
}

/// Notifications between processes, sent without waiting.
#[cfg(unix)]
struct Notices {
    /// `None` if the path is too long for a socket.
    own: Option<tokio::net::UnixDatagram>,
    others: std::os::unix::net::UnixDatagram,
}

#[cfg(unix)]
impl Notices {
    fn open(own: &Path) -> io::Result<Self> {
        let others = std::os::unix::net::UnixDatagram::unbound()?;
        others.set_nonblocking(true)?;
        Ok(Notices { own: listen(own).ok(), others })
    }

    /// Whether this process can receive any.
    fn arrive(&self) -> bool {
        self.own.is_some()
    }

    /// Waits for one, and takes all that have arrived.
    async fn next(&self) {
        let Some(own) = &self.own else { return std::future::pending().await };
        let mut buffer = [0];
        if own.recv(&mut buffer).await.is_err() {
            return std::future::pending().await;
        }
        while own.try_recv(&mut buffer).is_ok() {}
    }

    fn send(&self, socket: &Path) {
        // A peer that is gone, or has not read the last notification, needs no other.
        _ = self.others.send_to(&[0], socket);
    }
}

/// The socket of a slot; an old one that the slot's last process left behind is replaced.
#[cfg(unix)]
fn listen(path: &Path) -> io::Result<tokio::net::UnixDatagram> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    tokio::net::UnixDatagram::bind(path)
}

/// Windows has no such sockets.
#[cfg(windows)]
struct Notices;

#[cfg(windows)]
impl Notices {
    fn open(_own: &Path) -> io::Result<Self> {
        Ok(Notices)
    }

    fn arrive(&self) -> bool {
        false
    }

    async fn next(&self) {
        std::future::pending().await
    }

    fn send(&self, _socket: &Path) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn processes_that_share_a_file_learn_of_each_other() {
        let folder = std::env::temp_dir().join(format!("skiff-peers-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        let database = folder.join("state.db");
        let one = Peers::join(&database).expect("there is a slot");
        assert!(!one.are_ahead_of(Revision::new(1)));
        let other = Peers::join(&database).expect("there is another");
        assert_ne!(one.own_slot(), other.own_slot());
        one.tell(Revision::new(7));
        other.told().await;
        assert!(other.are_ahead_of(Revision::new(6)) && !other.are_ahead_of(Revision::new(7)));
        // What a peer has published stays true when it is gone.
        let slot = one.own_slot();
        assert!(other.is_alive(slot) && other.is_alive(other.own_slot()));
        drop(one);
        assert!(!other.is_alive(slot) && other.are_ahead_of(Revision::new(6)));
        let next = Peers::join(&database).expect("the slot is free");
        assert_eq!(next.own_slot(), slot);
        assert!(other.are_ahead_of(Revision::new(6)));
        drop((next, other));
        std::fs::remove_dir_all(folder).expect("it is ours");
    }
}
