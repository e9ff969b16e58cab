//! `skiff snapshot`: a database saved to a file, and restored from one.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand};

use super::database::Database;
use crate::store::copy;

/// Save the database to a file, or restore it from one
///
/// The file is a plain SQLite database, whichever database it was saved from: saved from SQLite it can be restored to
/// Postgres, and the other way round. It holds the server's keys.
#[derive(Args)]
pub struct Snapshot {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
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

impl Snapshot {
    /// Exit codes: 0 done, 1 for a failure.
    pub async fn run(self) -> ExitCode {
        let (done, file, revision) = match self.command {
            Command::Save(Save { file, database }) => {
                let revision = copy::save(&database.location(), &file).await;
                ("saved to", file, revision)
            }
            Command::Restore(Restore { file, database, raise_revision }) => {
                if let Err(error) = std::fs::create_dir_all(&database.data_dir) {
                    eprintln!("skiff: can't make the folder `{}`: {error}", database.data_dir.display());
                    return ExitCode::FAILURE;
                }
                let revision = copy::restore(&database.location(), &file, raise_revision).await;
                ("restored from", file, revision)
            }
        };
        match revision {
            Ok(revision) => {
                eprintln!("skiff: {done} `{}`, at revision {revision}", file.display());
                ExitCode::SUCCESS
            }
            Err(error) => {
                eprintln!("skiff: {error}");
                ExitCode::FAILURE
            }
        }
    }
}
