//! Files and folders that their owner alone may read: keys, tokens, objects, what programs were answered.
//!
//! On Unix they are made with the modes 0600 and 0700; what is there already keeps its own. Windows has no modes: there
//! they may be read by those who may read the folder that they are in.

use std::fs::{DirBuilder, OpenOptions};

/// How to open a file that is private where it is made.
#[cfg(unix)]
#[must_use]
pub fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

/// How to make a folder that is private.
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
