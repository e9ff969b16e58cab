//! The files of a database, as far as SQLite does not manage them: their owner and their mode.

use std::error::Error;
use std::fs::{File, TryLockError};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use super::super::StoreError;
use crate::private;

/// The files that are open besides SQLite's own.
pub struct Files {
    pub database: Arc<File>,
    _lock: File,
    /// A file that only reserves space, to be removed if a full disk leaves none for deletions.
    reserve: PathBuf,
}

/// The size of the reserve: enough for a few hundred deletions and what their compaction writes.
#[cfg(target_os = "linux")]
const RESERVE_BYTES: u64 = 2 << 20;

impl Files {
    /// Opens or creates the file `path`, and keeps other processes from opening it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        Files::locked(path, File::try_lock)
    }

    /// Opens or creates the file `path`, which processes that share it may open, too.
    pub fn open_shared(path: &Path) -> Result<Self, StoreError> {
        Files::locked(path, File::try_lock_shared)
    }

    fn locked(path: &Path, take: fn(&File) -> Result<(), TryLockError>) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Open { path: path.to_owned(), source: Arc::new(source) };
        // Closing a file that this process has open as a database, as `check` does, would release SQLite's locks on it.
        let lock = path.with_extension("lock");
        let _one_at_a_time = OPENING.lock().unwrap_or_else(PoisonError::into_inner);
        if !lock.exists() {
            check(path)?;
        }
        // A lock beside the database: SQLite's own locks would let a second process in between two writes.
        let lock = open_private(&lock).map_err(failed)?;
        match take(&lock) {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Stays open as long as SQLite has the file open: on POSIX systems, closing it would release SQLite's locks.
        let database = Arc::new(open_private(path).map_err(failed)?);
        let files = Files { database, _lock: lock, reserve: path.with_extension("reserve") };
        files.keep_reserve();
        Ok(files)
    }

    /// Creates the reserve if it is missing, unless there is no space for it.
    #[cfg(target_os = "linux")]
    pub fn keep_reserve(&self) {
        use rustix::fs::{FallocateFlags, fallocate};
        if self.reserve.metadata().is_ok_and(|reserve| reserve.len() >= RESERVE_BYTES) {
            return;
        }
        let made = open_private(&self.reserve).map(|file| fallocate(&file, FallocateFlags::empty(), 0, RESERVE_BYTES));
        if !matches!(made, Ok(Ok(()))) {
            // It will be tried again; a file that reserves no space is of no use.
            _ = std::fs::remove_file(&self.reserve);
        }
    }

    /// Other systems can't tell in one call whether there is space.
    #[cfg(not(target_os = "linux"))]
    pub fn keep_reserve(&self) {}

    /// Releases the reserve; false if there was none.
    pub fn release_reserve(&self) -> bool {
        std::fs::remove_file(&self.reserve).is_ok()
    }
}

/// Databases of this process are opened one at a time.
static OPENING: Mutex<()> = Mutex::new(());

/// Checks that a file, if there is one, is a database or empty, or that SQLite has begun to make one of it: nothing is
/// made beside others.
fn check(path: &Path) -> Result<(), StoreError> {
    /// Source: "Database File Format" of SQLite, 1.3.1.
    const MAGIC: &[u8; 16] = b"SQLite format 3\0";
    let failed = |source: Arc<dyn Error + Send + Sync>| StoreError::Open { path: path.to_owned(), source };
    let not_one = || failed(Arc::new(StoreError::Malformed));
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(Arc::new(error))),
        Ok(file) if !file.is_file() => return Err(not_one()),
        Ok(_) => {}
    }
    let mut begin = Vec::new();
    let read = File::open(path).and_then(|file| file.take(MAGIC.len() as u64).read_to_end(&mut begin));
    read.map_err(|error| failed(Arc::new(error)))?;
    let is_begun = || beside(path, "-journal").metadata().is_ok_and(|journal| journal.len() > 0);
    if begin.is_empty() || begin == MAGIC || is_begun() { Ok(()) } else { Err(not_one()) }
}

/// How long ago the database `path` or its log was last written; zero if it does not exist.
pub fn unchanged_for(path: &Path) -> Duration {
    let changed = |path: &Path| path.metadata().and_then(|file| file.modified()).ok();
    let newest = changed(path).max(changed(&log_of(path)));
    newest.and_then(|newest| newest.elapsed().ok()).unwrap_or_default()
}

/// Waits until no other process is setting up the database `path`; none does while the returned file is open.
pub async fn setting_up(path: &Path) -> Result<File, StoreError> {
    const TRIED_EVERY: Duration = Duration::from_millis(2);
    let failed = |source| StoreError::Open { path: path.to_owned(), source: Arc::new(source) };
    let lock = open_private(&path.with_extension("setup")).map_err(failed)?;
    loop {
        match lock.try_lock() {
            Ok(()) => return Ok(lock),
            Err(TryLockError::WouldBlock) => tokio::time::sleep(TRIED_EVERY).await,
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
    }
}

/// Opens or creates a file that only its owner may read: the keys that the server signs with are in the database.
/// SQLite's other files take over its mode.
pub fn open_private(path: &Path) -> io::Result<File> {
    private::options().create(true).read(true).write(true).truncate(false).open(path)
}

/// The log file that SQLite keeps next to the database.
pub fn log_of(path: &Path) -> PathBuf {
    beside(path, "-wal")
}

fn beside(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(ending);
    name.into()
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn the_reserve_takes_room_until_it_is_released() {
        use std::os::unix::fs::MetadataExt as _;
        let folder = std::env::temp_dir().join(format!("skiff-reserve-{}", std::process::id()));
        std::fs::create_dir_all(&folder).expect("the folder can be made");
        let files = Files::open(&folder.join("state.db")).expect("it opens");
        let reserve = folder.join("state.reserve");
        let blocks = || reserve.metadata().map(|reserve| reserve.blocks() * 512).ok();
        assert!(blocks().is_some_and(|bytes| bytes >= RESERVE_BYTES));
        assert!(files.release_reserve() && blocks().is_none() && !files.release_reserve());
        files.keep_reserve();
        assert!(blocks().is_some());
        std::fs::remove_dir_all(folder).expect("it is ours");
    }
}
