//! The authority of the server's clients, as controllers need it.

use std::error::Error;
use std::sync::Arc;
use std::time::Duration;

use thiserror::Error;

use crate::auth::TokenIssuer;

/// The authority of the server's clients.
#[derive(Clone, Default)]
pub struct Authority {
    /// Its certificate.
    pub certificate_pem: String,
    /// The signer with its key; `None` if the key is not available.
    pub signer: Option<Arc<dyn Sign>>,
    /// The issuer of service accounts' tokens; `None` if none are issued.
    pub issuer: Option<Arc<TokenIssuer>>,
}

/// The signer of requests: the authority that issues the certificates of the server's clients.
pub trait Sign: Send + Sync {
    /// A certificate in PEM for a request in DER, with usages in Kubernetes' words.
    ///
    /// # Errors
    /// Why there can be none.
    fn sign(&self, request: &[u8], usages: &[&str], valid_for: Duration) -> Result<String, Unsigned>;
}

/// Why a request is not signed.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct Unsigned(#[from] pub Box<dyn Error + Send + Sync>);
