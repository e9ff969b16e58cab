//! The files of a workspace that may contain definitions and policies.

use std::fs;
use std::path::{Path, PathBuf};

use super::super::documents::is_manifest;
use super::super::project::Project;

/// How many folder entries are visited.
const ENTRIES_MAX: usize = 50_000;
/// How many bytes of files are read in total.
const BYTES_MAX: usize = 256 << 20;
/// The longest file that is read, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Folders without manifests of the project's own.
const PASSED_OVER: [&str; 3] = ["node_modules", "target", "vendor"];

/// The names and texts of the files that a project lists, or else of those below the root that
/// define something.
pub fn read(project: &Project, root: Option<&Path>) -> Vec<(String, String)> {
    let named: Vec<PathBuf> =
        project.definitions.iter().chain(&project.policies).flat_map(|path| expanded(path)).collect();
    let mut found = Vec::new();
    let mut left = (ENTRIES_MAX, BYTES_MAX);
    if named.is_empty() {
        if let Some(root) = root {
            walk(root, &|text| defines(text), &mut left, &mut found);
        }
        return found;
    }
    named.iter().for_each(|path| walk(path, &|_| true, &mut left, &mut found));
    found
}

/// Whether a text may contain definitions or policies.
pub fn defines(text: &str) -> bool {
    text.contains("CustomResourceDefinition") || text.contains("AdmissionPolicy")
}

/// The file or folder, or those that match a pattern.
fn expanded(path: &Path) -> Vec<PathBuf> {
    let pattern = path.to_string_lossy();
    if path.exists() || !pattern.contains(['*', '?', '[']) {
        return vec![path.to_owned()];
    }
    glob::glob(&pattern).into_iter().flatten().flatten().take(ENTRIES_MAX).collect()
}

fn walk(path: &Path, is_wanted: &dyn Fn(&str) -> bool, left: &mut (usize, usize), found: &mut Vec<(String, String)>) {
    let Some(entries) = left.0.checked_sub(1) else { return };
    left.0 = entries;
    if path.is_dir() {
        let Ok(listed) = fs::read_dir(path) else { return };
        let mut below: Vec<PathBuf> = listed.flatten().take(entries).map(|entry| entry.path()).collect();
        below.sort();
        for path in below {
            let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
            // A symbolic link to a folder may lead anywhere, even upwards.
            if !name.starts_with('.') && !PASSED_OVER.contains(&name) && (!path.is_symlink() || path.is_file()) {
                walk(&path, is_wanted, left, found);
            }
        }
        return;
    }
    let Some(text) = is_manifest(path).then(|| read_file(path)).flatten() else { return };
    let Some(bytes) = left.1.checked_sub(text.len()).filter(|_| is_wanted(&text)) else { return };
    left.1 = bytes;
    found.push((name_of(path), text));
}

/// The text of a file; `None` if it is too long or can't be read.
pub fn read_file(path: &Path) -> Option<String> {
    let length = fs::metadata(path).ok()?.len();
    if length > FILE_BYTES_MAX {
        return None;
    }
    fs::read_to_string(path).ok()
}

/// A path in the form that the editor's tools use.
pub fn name_of(path: &Path) -> String {
    path.to_string_lossy().replace('\\', "/")
}
