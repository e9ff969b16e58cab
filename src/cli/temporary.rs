//! A server that leaves nothing behind: it ends with the process that started it, and its data
//! folder is removed.
//!
//! The caller chooses the folder's name, so `tempfile`, which generates names, is of no use here.

use std::fs;
use std::io;
use std::num::NonZeroU32;
use std::path::{Path, PathBuf};

use super::parent::end_with_parent;
use crate::private;

/// The data folder of such a server, which is removed when this is dropped.
pub struct Temporary {
    folder: PathBuf,
}

impl Temporary {
    /// Creates the folder, private to this user, and makes this process end with its parent, whose
    /// id may be known.
    ///
    /// # Errors
    ///
    /// The folder already exists, and its contents may be somebody's; or it can't be created; or
    /// the system can't notify when the parent ends; or the parent has ended already.
    pub fn begin(folder: &Path, parent: Option<NonZeroU32>) -> io::Result<Self> {
        private::folders().create(folder)?;
        let temporary = Temporary { folder: folder.to_owned() };
        end_with_parent(parent)?;
        Ok(temporary)
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        // An error is ignored: there is nobody left to report it to.
        _ = fs::remove_dir_all(&self.folder);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_folder_that_was_there_is_left_alone() {
        let folder = std::env::temp_dir().join(format!("skiff-temporary-{}", std::process::id()));
        let first = Temporary::begin(&folder, None).expect("the folder is new");
        fs::write(folder.join("file"), "text").expect("the folder is there");
        assert_eq!(Temporary::begin(&folder, None).err().map(|error| error.kind()), Some(io::ErrorKind::AlreadyExists));
        assert!(folder.join("file").exists());
        drop(first);
        assert!(!folder.exists());
    }

    #[tokio::test]
    async fn a_parent_that_is_gone_leaves_nothing() {
        let folder = std::env::temp_dir().join(format!("skiff-temporary-orphan-{}", std::process::id()));
        // The process is not its own parent.
        let begun = Temporary::begin(&folder, NonZeroU32::new(std::process::id()));
        assert_eq!(
            begun.err().map(|error| error.to_string()).as_deref(),
            Some("the process that started this one is gone")
        );
        assert!(!folder.exists());
    }
}
