//! `skiff snapshot`: saves a database to a file, and restores it from one.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::database::Database;
use super::print::tell;
use crate::store::{StoreError, copy};

/// Save the database to a file, or restore it from one
///
/// The file is a plain SQLite database, whichever database it was saved from: saved from SQLite it can be restored to
/// Postgres, and the other way round. It holds the server's keys. A database of --store-override has a file of its own beside
/// it; give the same overrides to save and to restore.
#[derive(Args)]
pub struct Snapshot {
    #[command(subcommand)]
    command: SnapshotCommand,
}

#[derive(Subcommand)]
enum SnapshotCommand {
    /// Save the database as it is now; a server may go on using it
    Save(Save),
    /// Restore a saved database to where there is none
    ///
    /// The revision is raised, and everything before it is gone from the log: clients list anew instead of missing events.
    Restore(Restore),
}

#[derive(Args)]
struct Save {
    /// The file to write; it must not exist
    file: PathBuf,

    #[command(flatten)]
    database: Database,
}

#[derive(Args)]
struct Restore {
    /// The file to read
    file: PathBuf,

    #[command(flatten)]
    database: Database,

    /// By how much the restored revision is ahead of the saved one
    #[arg(long, value_name = "N", default_value_t = copy::RAISED_BY, value_parser = clap::value_parser!(i64).range(1..))]
    raise_revision: i64,
}

/// The message about a failure.
struct SnapshotFailure(String);

impl From<StoreError> for SnapshotFailure {
    fn from(error: StoreError) -> Self {
        SnapshotFailure(error.to_string())
    }
}

impl Snapshot {
    /// Runs the subcommand. Exit codes: 0 if done, 1 for a failure.
    pub async fn run(self) -> ExitCode {
        let done = match self.command {
            SnapshotCommand::Save(save) => save.run().await,
            SnapshotCommand::Restore(restore) => restore.run().await,
        };
        match done {
            Ok(()) => ExitCode::SUCCESS,
            Err(SnapshotFailure(message)) => {
                tell(message);
                ExitCode::FAILURE
            }
        }
    }
}

impl Save {
    async fn run(self) -> Result<(), SnapshotFailure> {
        for (location, file) in self.database.saved_in(&self.file) {
            let revision = copy::save(&location, &file).await?;
            tell(format_args!("saved to `{}`, at revision {revision}", file.display()));
        }
        Ok(())
    }
}

impl Restore {
    async fn run(self) -> Result<(), SnapshotFailure> {
        let folder = &self.database.data_dir;
        std::fs::create_dir_all(folder)
            .map_err(|error| SnapshotFailure(format!("can't make the folder `{}`: {error}", folder.display())))?;
        for (location, file) in self.database.saved_in(&self.file) {
            let revision = copy::restore(&location, &file, self.raise_revision).await?;
            tell(format_args!("restored from `{}`, at revision {revision}", file.display()));
        }
        Ok(())
    }
}
