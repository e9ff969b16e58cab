//! Manifests as of a commit, read with the program `git`.

use std::ffi::OsStr;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::documents::{ManifestText, is_manifest};
use super::parallel;

/// Why manifests can't be read from a commit.
#[derive(Debug, thiserror::Error)]
pub enum GitError {
    #[error("`{0}` is not a commit")]
    Reference(String),
    #[error("`{}` has no manifest at `{reference}`", path.display())]
    NoManifest { path: PathBuf, reference: String },
    #[error("`git` can't be run: {0}")]
    Start(#[from] io::Error),
    /// The message of `git`.
    #[error("{0}")]
    Refused(String),
}

/// Reads a file or folder as of `reference`: a commit, a branch or a tag.
///
/// # Errors
///
/// The message of git, or that git is not installed.
pub fn read(reference: &str, path: &Path) -> Result<Vec<ManifestText>, GitError> {
    if reference.starts_with('-') {
        return Err(GitError::Reference(reference.to_owned()));
    }
    // A path that was deleted since is still below an existing folder.
    let folder = path.ancestors().find(|folder| folder.is_dir()).unwrap_or(Path::new("."));
    let named = path.strip_prefix(folder).unwrap_or(path);
    let named = if named.as_os_str().is_empty() { Path::new(".") } else { named };
    let arguments = [
        "ls-tree".as_ref(),
        "-r".as_ref(),
        "-z".as_ref(),
        "--name-only".as_ref(),
        reference.as_ref(),
        "--".as_ref(),
        named.as_os_str(),
    ];
    let listed = git(folder, &arguments)?;
    let listed = String::from_utf8_lossy(&listed);
    let is_wanted = |name: &&str| !name.is_empty() && (path.is_file() || is_manifest(Path::new(name)));
    let names: Vec<&str> = listed.split('\0').filter(is_wanted).collect();
    if names.is_empty() {
        return Err(GitError::NoManifest { path: path.to_owned(), reference: reference.to_owned() });
    }
    let read = parallel::map("files", &names, |name| {
        let text = git(folder, &["show".as_ref(), format!("{reference}:./{name}").as_ref()])?;
        let shown = format!("{reference}:{}", folder.join(name).display());
        Ok(ManifestText::of_text(&shown, String::from_utf8_lossy(&text).into_owned().into()))
    });
    read.into_iter().collect()
}

/// Runs git, and returns its output.
fn git(folder: &Path, arguments: &[&OsStr]) -> Result<Vec<u8>, GitError> {
    let folder = if folder.as_os_str().is_empty() { Path::new(".") } else { folder };
    let output = Command::new("git").arg("-C").arg(folder).args(arguments).output()?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    Err(GitError::Refused(String::from_utf8_lossy(&output.stderr).trim().to_owned()))
}
