//! Which database a command is about.

use std::path::PathBuf;
use std::str::FromStr;

use clap::Args;

use crate::store::{Location, PostgresUrl};

#[derive(Args)]
pub struct Database {
    /// Where the database and the kubeconfig are kept
    #[arg(long, value_name = "DIR", default_value = ".skiff")]
    pub data_dir: PathBuf,

    /// Where objects are stored: in a file of the data folder, in memory until the process ends, or in a Postgres that
    /// several servers may share
    #[arg(long, value_name = "sqlite|memory|postgres://…", default_value = "sqlite")]
    store: Store,
}

#[derive(Clone)]
enum Store {
    Sqlite,
    Memory,
    Postgres(PostgresUrl),
}

impl FromStr for Store {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text {
            "sqlite" => Ok(Store::Sqlite),
            "memory" => Ok(Store::Memory),
            url if PostgresUrl::is_one(url) => Ok(Store::Postgres(PostgresUrl::new(url))),
            _ => Err("expected sqlite, memory, or a URL that begins with postgres://"),
        }
    }
}

impl Database {
    pub fn location(&self) -> Location {
        match &self.store {
            Store::Memory => Location::Memory,
            Store::Sqlite => Location::File(self.data_dir.join("state.db")),
            Store::Postgres(url) => Location::Postgres(url.clone()),
        }
    }
}
