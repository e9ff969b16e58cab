//! Waits for changes of files by polling their times.
//!
//! The notifications of the system, as the `notify` crate passes them on, are missing for folders
//! that are mounted from elsewhere, such as those of containers and virtual machines.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, SystemTime};

/// How often the files are polled; for a few hundred files that takes some milliseconds.
const INTERVAL: Duration = Duration::from_millis(300);

/// Files and folders, and the times of their files.
pub struct FileWatch {
    paths: Vec<PathBuf>,
    seen: FileStates,
}

type FileStates = BTreeMap<PathBuf, (Option<SystemTime>, u64)>;

impl FileWatch {
    /// Watches files, and folders with everything below; an empty path is the current folder.
    pub fn new(paths: Vec<PathBuf>) -> Self {
        let seen = look(&paths);
        FileWatch { paths, seen }
    }

    /// Watches `paths` from now on. Changes in paths that were watched before are not lost.
    pub fn follow(&mut self, paths: Vec<PathBuf>) {
        let new: Vec<PathBuf> = paths.iter().filter(|path| !self.paths.contains(path)).cloned().collect();
        self.seen.extend(look(&new));
        self.seen.retain(|path, _| paths.iter().any(|within| path.starts_with(within)));
        self.paths = paths;
    }

    /// Returns when a file was created, deleted or changed since the last call.
    pub fn wait(&mut self) {
        loop {
            let now = look(&self.paths);
            if now != self.seen {
                self.seen = now;
                return;
            }
            thread::sleep(INTERVAL);
        }
    }
}

fn look(paths: &[PathBuf]) -> FileStates {
    let mut seen = FileStates::new();
    for path in paths {
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        match fs::metadata(path) {
            Ok(metadata) if metadata.is_file() => {
                _ = seen.insert(path.to_owned(), (metadata.modified().ok(), metadata.len()));
            }
            _ => note(path, &mut seen),
        }
    }
    seen
}

/// Records the files of a folder. An unreadable one counts as deleted until it is readable again.
fn note(folder: &Path, seen: &mut FileStates) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        let is_ours =
            ["yaml", "yml", "json", "errors"].iter().any(|end| path.extension().is_some_and(|own| own == *end));
        match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => note(&path, seen),
            Ok(metadata) if is_ours => _ = seen.insert(path, (metadata.modified().ok(), metadata.len())),
            _ => {}
        }
    }
}
