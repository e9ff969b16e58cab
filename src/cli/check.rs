//! `skiff check`: checks the integrity of a database.

use std::process::ExitCode;

use clap::Args;

use super::database::Database;
use super::print::{Stdout, UNUSABLE, tell};
use crate::store::{Location, StoreError, copy};

/// Check that the database is whole: the file itself, the log without gaps, and the index of what is live
///
/// A server may go on using it. Each fault is a line on stderr; stdout says what is whole.
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    database: Database,
}

impl Check {
    /// Runs the checks. Exit codes: 0 if all is intact, 1 if there are faults, 2 if a database
    /// can't be read.
    pub async fn run(self) -> ExitCode {
        let mut code = ExitCode::SUCCESS;
        let mut out = Stdout::default();
        let config = self.database.config();
        for location in config.kept_locations() {
            match look(location).await {
                Ok(Ok(whole)) => _ = out.write(whole),
                Ok(Err(faults)) => {
                    faults.iter().for_each(tell);
                    code = ExitCode::FAILURE;
                }
                Err(error) => {
                    tell(error);
                    return ExitCode::from(UNUSABLE);
                }
            }
        }
        out.finish(code)
    }
}

/// A line about the contents of an intact database, or its faults.
async fn look(location: &Location) -> Result<Result<String, Vec<String>>, StoreError> {
    let faults = copy::check(location).await?;
    if !faults.is_empty() {
        return Ok(Err(faults));
    }
    let (count, revision) = copy::holdings(location).await?;
    Ok(Ok(format!("whole: {count} {}, revision {revision}\n", if count == 1 { "object" } else { "objects" })))
}
