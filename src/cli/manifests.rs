//! Manifests in files and folders.

use std::path::{Path, PathBuf};
use std::{fmt, fs, io};

use crate::value::{Value, yaml};

/// Why manifests can't be read.
#[derive(Debug)]
pub enum ManifestError {
    Read { path: PathBuf, source: io::Error },
    Decode { path: PathBuf, source: yaml::Error },
}

impl fmt::Display for ManifestError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ManifestError::Read { path, source } => write!(out, "`{}` can't be read: {source}", path.display()),
            ManifestError::Decode { path, source } => write!(out, "`{}` can't be understood: {source}", path.display()),
        }
    }
}

impl std::error::Error for ManifestError {}

/// Every document of a file, or of the `.yaml`, `.yml` and `.json` files of a folder and the folders in it, by their names.
pub fn read(path: &Path) -> Result<Vec<Value>, ManifestError> {
    let failed = |source| ManifestError::Read { path: path.to_owned(), source };
    if !fs::metadata(path).map_err(failed)?.is_dir() {
        let bytes = fs::read(path).map_err(failed)?;
        return yaml::decode_all(&bytes).map_err(|source| ManifestError::Decode { path: path.to_owned(), source });
    }
    let mut entries = fs::read_dir(path).map_err(failed)?.collect::<Result<Vec<_>, _>>().map_err(failed)?;
    entries.sort_by_key(fs::DirEntry::file_name);
    let mut documents = Vec::new();
    for entry in entries {
        let path = entry.path();
        let is_manifest = path
            .extension()
            .and_then(|extension| extension.to_str())
            .is_some_and(|extension| ["yaml", "yml", "json"].contains(&extension));
        if path.is_dir() || is_manifest {
            documents.extend(read(&path)?);
        }
    }
    Ok(documents)
}
