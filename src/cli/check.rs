//! `skiff check`: whether a database is whole.

use std::process::ExitCode;

use clap::Args;

use super::database::Database;
use super::print::tell;
use crate::store::copy;

/// Check that the database is whole: the file itself, the log without gaps, and the index of what is live
///
/// A server may go on using it. Each fault is a line.
#[derive(Args)]
pub struct Check {
    #[command(flatten)]
    database: Database,
}

impl Check {
    /// Exit codes: 0 whole, 1 faults, 2 it can't be read.
    pub async fn run(self) -> ExitCode {
        let mut code = ExitCode::SUCCESS;
        let config = self.database.config();
        for location in config.kept_locations() {
            match copy::check(location).await {
                Ok(faults) => {
                    for fault in faults {
                        tell(fault);
                        code = ExitCode::FAILURE;
                    }
                }
                Err(error) => {
                    tell(error);
                    return ExitCode::from(2);
                }
            }
        }
        code
    }
}
