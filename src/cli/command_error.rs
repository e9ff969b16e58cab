//! Why a command has no result.
//!
//! The modules below have errors of their own; here they are combined for the message and the exit
//! code.

use std::ffi::OsString;
use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use super::cluster::{ClientError, ClusterError, Unanswered};
use super::definitions::DefinitionsError;
use super::documents::Unreadable;
use super::git::GitError;
use super::project::ProjectError;
use super::record::file::FileError;
use crate::meta::unmarshal::UnmarshalError;

/// Why a command has no result.
#[derive(Debug, thiserror::Error)]
pub enum CommandError {
    #[error(transparent)]
    Project(#[from] ProjectError),
    #[error(transparent)]
    Definitions(#[from] DefinitionsError),
    #[error(transparent)]
    Unreadable(#[from] Unreadable),
    #[error(transparent)]
    Git(#[from] GitError),
    #[error(transparent)]
    Cluster(#[from] ClusterError),
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error("`{url}` can't be asked: {source}")]
    Unasked { url: String, source: ClientError },
    #[error("`{}` can't be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("`{}` can't be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("`{file}`: {source}")]
    Definition { file: String, source: UnmarshalError },
    #[error(transparent)]
    Record(#[from] FileError),
    #[error("`{}`: {source}", file.display())]
    Replay { file: PathBuf, source: FileError },
    #[error("can't listen on {address}: {source}")]
    Listen { address: SocketAddr, source: io::Error },
    #[error("can't run `{}`: {source}", program.display())]
    Run { program: OsString, source: io::Error },
    #[error(transparent)]
    System(#[from] io::Error),
    #[error("no suite in `{}`", .0.display())]
    NoSuite(PathBuf),
    /// The command can't do what was asked; the text is its own, or the server's.
    #[error("{0}")]
    Said(String),
}

impl CommandError {
    /// Makes the error for a file that can't be read.
    pub fn read(path: &Path) -> impl Fn(io::Error) -> CommandError {
        move |source| CommandError::Read { path: path.to_owned(), source }
    }

    /// Makes the error for a file that can't be written.
    pub fn write(path: &Path) -> impl Fn(io::Error) -> CommandError {
        move |source| CommandError::Write { path: path.to_owned(), source }
    }

    /// Makes an error with the command's own text.
    pub fn said(text: impl Into<String>) -> CommandError {
        CommandError::Said(text.into())
    }
}
