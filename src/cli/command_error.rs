//! Why a command ends without what it was asked for.
//!
//! The parts below have errors of their own; here they come together, to be told and to decide on an exit code.

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
    /// What was asked can't be, in the words of the command, or of the server.
    #[error("{0}")]
    Said(String),
}

impl CommandError {
    /// That a file can't be read.
    pub fn read(path: &Path) -> impl Fn(io::Error) -> CommandError {
        move |source| CommandError::Read { path: path.to_owned(), source }
    }

    /// That a file can't be written.
    pub fn write(path: &Path) -> impl Fn(io::Error) -> CommandError {
        move |source| CommandError::Write { path: path.to_owned(), source }
    }

    /// What a command says itself.
    pub fn said(text: impl Into<String>) -> CommandError {
        CommandError::Said(text.into())
    }
}
