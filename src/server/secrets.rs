//! Where what must outlive the process is kept: the CA's key.

use std::error::Error;

use async_trait::async_trait;

/// What went wrong in the place where secrets are kept.
pub type SecretsError = Box<dyn Error + Send + Sync>;

/// Small named secrets, each written once and the same for every replica.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The secret `name`, or nothing when there is none yet.
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, SecretsError>;

    /// Keeps `candidate` as `name` unless there is one already; returns the one that is kept.
    async fn insert_if_absent(&self, name: &str, candidate: Vec<u8>) -> Result<Vec<u8>, SecretsError>;
}
