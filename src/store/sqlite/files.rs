//! The files of a database beside what SQLite does with them: who owns them, and who may read them.

use std::fs::{File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::super::StoreError;

/// What is open beside SQLite.
pub struct Files {
    pub database: Arc<File>,
    _lock: File,
}

impl Files {
    /// Opens or makes the file `path`, and keeps other processes from it.
    pub fn open(path: &Path) -> Result<Self, StoreError> {
        let failed = |source| StoreError::Open { path: path.to_owned(), source: Arc::new(source) };
        // A lock beside the database: SQLite's own locks let a second process in between two writes.
        let lock = open_private(&path.with_extension("lock")).map_err(failed)?;
        match lock.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(StoreError::InUse(path.to_owned())),
            Err(TryLockError::Error(source)) => return Err(failed(source)),
        }
        // Stays open for as long as SQLite has the file: on POSIX systems, closing it would take SQLite's locks away.
        let database = Arc::new(open_private(path).map_err(failed)?);
        Ok(Files { database, _lock: lock })
    }
}

/// Opens or makes a file that its owner alone may read: the keys that the server signs with are in the database. SQLite's
/// other files take over its mode.
pub fn open_private(path: &Path) -> io::Result<File> {
    let mut options = File::options();
    options.create(true).read(true).write(true).truncate(false);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options.open(path)
}

/// The file of the log that SQLite keeps beside the database.
pub fn log_of(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push("-wal");
    name.into()
}
