//! The URL of a Postgres, and the settings of its connections.

use std::fmt;
use std::str::FromStr as _;
use std::time::Duration;

use sqlx::ConnectOptions as _;
use sqlx::postgres::PgConnectOptions;

use super::super::StoreError;

/// How many connections read at a time, unless the URL says otherwise.
const POOL_MAX: u32 = 8;
/// How long it may take to connect, unless the URL says otherwise.
const CONNECT_MAX: Duration = Duration::from_secs(5);

/// The location of a Postgres database, the user, and the connection settings: the URL of libpq, with pgx's names for
/// the pool.
///
/// It is displayed without the parts that may be secret.
#[derive(Clone, PartialEq, Eq)]
pub struct PostgresUrl(String);

impl PostgresUrl {
    /// Whether a text is such a URL.
    pub fn is_one(text: &str) -> bool {
        text.starts_with("postgres://") || text.starts_with("postgresql://")
    }

    pub fn new(url: &str) -> Self {
        PostgresUrl(url.to_owned())
    }

    /// The options of a connection, and those of the pool.
    pub(super) fn options(&self) -> Result<(PgConnectOptions, PoolSettings), StoreError> {
        let mut pool = PoolSettings { max: POOL_MAX, connect_max: CONNECT_MAX };
        let (address, query) = self.0.split_once('?').unwrap_or((&self.0, ""));
        let mut rest = Vec::new();
        for parameter in query.split('&').filter(|parameter| !parameter.is_empty()) {
            let (name, value) = parameter.split_once('=').unwrap_or((parameter, ""));
            let number = || {
                let number = value.parse::<u32>().ok().filter(|number| *number > 0);
                number.ok_or_else(|| StoreError::Url(format!("`{name}` takes a number above 0, not `{value}`")))
            };
            match name {
                "pool_max_conns" => pool.max = number()?,
                "connect_timeout" => pool.connect_max = Duration::from_secs(number()?.into()),
                _ => rest.push(parameter),
            }
        }
        let options = PgConnectOptions::from_str(&format!("{address}?{}", rest.join("&")));
        let options = options.map_err(|error| StoreError::Url(error.to_string()))?;
        Ok((options.disable_statement_logging(), pool))
    }
}

impl fmt::Debug for PostgresUrl {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("PostgresUrl(..)")
    }
}

pub(super) struct PoolSettings {
    pub max: u32,
    pub connect_max: Duration,
}
