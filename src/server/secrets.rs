//! Storage for secrets that must outlive the process: the CA's key.

use std::error::Error;

use async_trait::async_trait;

/// An error of the storage of secrets.
pub type SecretsError = Box<dyn Error + Send + Sync>;

/// Small named secrets, each written once and the same for every replica.
#[async_trait]
pub trait Secrets: Send + Sync {
    /// The secret `name`, or `None` if there is none yet.
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, SecretsError>;

    /// Stores `candidate` as `name` unless there already is one; returns the stored one.
    async fn insert_if_absent(&self, name: &str, candidate: Vec<u8>) -> Result<Vec<u8>, SecretsError>;
}
