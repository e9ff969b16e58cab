//! Files and folders that only their owner may read: keys, tokens, objects, recorded answers of
//! servers.
//!
//! On Unix they are created with the modes 0600 and 0700; existing ones keep their modes. Windows
//! has no such modes: there, whoever may read the containing folder may read them.

use std::fs::{DirBuilder, OpenOptions};

/// Options to open a file, private if it is created.
#[cfg(unix)]
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// A builder of private folders.
#[cfg(unix)]
#[must_use]
pub fn folders() -> DirBuilder {
    let mut folders = DirBuilder::new();
    std::os::unix::fs::DirBuilderExt::mode(&mut folders, 0o700);
    folders
}

#[cfg(not(unix))]
pub fn options() -> OpenOptions {
    OpenOptions::new()
}

#[cfg(not(unix))]
pub fn folders() -> DirBuilder {
    DirBuilder::new()
}
