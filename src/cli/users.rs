//! The arguments of `skiff serve` about users: who they are, and what they may do.

use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use clap::{Args, ValueEnum};
use jiff::Timestamp;

use super::print::tell;
use crate::auth::{AlwaysAllow, Authorizer, NoSigningKey, SigningKey, TokenFile, TokenIssuer, Tokens};
use crate::registry::{StoredAccounts, StoredPolicy};
use crate::store::{Storage, StoreError};

/// Who issues tokens of service accounts, and whom they are for, unless that is said.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// The name under which the key is kept that these tokens are signed with.
const SIGNING_KEY: &str = "service-account-key";

#[derive(Args)]
pub struct Users {
    /// Who may do what: everybody who is known everything, or what roles and bindings say
    #[arg(long, value_enum, default_value_t = AuthorizationMode::AlwaysAllow)]
    authorization_mode: AuthorizationMode,

    /// Users and their bearer tokens, as CSV: TOKEN,USER,UID,"GROUP,GROUP"
    #[arg(long, value_name = "FILE")]
    token_auth_file: Option<PathBuf>,

    /// Who tokens of service accounts say has issued them: a URL, which need not be reached
    #[arg(long, value_name = "URL", default_value = ISSUER)]
    service_account_issuer: String,

    /// Whom tokens must be for that are used here [default: the issuer]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    api_audiences: Vec<String>,
}

/// By kube-apiserver's names.
#[derive(Clone, Copy, PartialEq, Eq, ValueEnum)]
enum AuthorizationMode {
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    #[value(name = "RBAC")]
    Rbac,
}

impl Users {
    /// Who decides, and the policy that is decided by, if there is one; that everybody may do everything is told.
    pub fn authorizer(&self, storage: &Storage) -> (Arc<dyn Authorizer>, Option<Arc<StoredPolicy>>) {
        match self.authorization_mode {
            AuthorizationMode::AlwaysAllow => {
                tell("every user who is known may do everything (--authorization-mode=AlwaysAllow)");
                (Arc::new(AlwaysAllow), None)
            }
            AuthorizationMode::Rbac => {
                let policy = Arc::new(StoredPolicy::new(storage.clone()));
                (Arc::clone(&policy) as _, Some(policy))
            }
        }
    }

    /// Who issues tokens of service accounts, with the key that all servers on the database share.
    pub async fn token_issuer(&self, storage: &Storage) -> Result<TokenIssuer, KeyError> {
        let key = match storage.read_secret(SIGNING_KEY).await? {
            Some(key) => key,
            None => storage.insert_secret(SIGNING_KEY, &SigningKey::generate()?).await?,
        };
        let issuer = self.service_account_issuer.clone();
        let audiences = match self.api_audiences.as_slice() {
            [] => vec![issuer.clone()],
            audiences => audiences.to_vec(),
        };
        Ok(TokenIssuer::new(issuer, audiences, SigningKey::from_pkcs8(&key)?))
    }

    /// Who knows bearer tokens: first the file, then the issuer of service accounts' tokens.
    ///
    /// Errors: what is wrong with the file.
    pub fn tokens(&self, storage: &Storage, issuer: &Arc<TokenIssuer>) -> Result<Tokens, String> {
        let mut tokens = Tokens { api_audiences: issuer.api_audiences().to_vec(), ..Tokens::default() };
        if let Some(path) = &self.token_auth_file {
            let shown = path.display();
            let text = fs::read_to_string(path).map_err(|error| format!("can't read token file '{shown}': {error}"))?;
            let file = TokenFile::parse(&text, &tokens.api_audiences);
            let file = file.map_err(|error| format!("token file '{shown}' {error}"))?;
            file.warnings.iter().for_each(|warning| tell(format_args!("token file '{shown}': {warning}")));
            tokens.authenticators.push(Box::new(file));
        }
        let (storage, issuer) = (storage.clone(), Arc::clone(issuer));
        tokens.authenticators.push(Box::new(StoredAccounts { storage, issuer, clock: Arc::new(Timestamp::now) }));
        Ok(tokens)
    }
}

/// Why there is no key to sign tokens with.
#[derive(Debug)]
pub enum KeyError {
    Store(StoreError),
    Key(NoSigningKey),
}

impl std::fmt::Display for KeyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KeyError::Store(error) => error.fmt(f),
            KeyError::Key(error) => error.fmt(f),
        }
    }
}

impl From<StoreError> for KeyError {
    fn from(error: StoreError) -> Self {
        KeyError::Store(error)
    }
}

impl From<NoSigningKey> for KeyError {
    fn from(error: NoSigningKey) -> Self {
        KeyError::Key(error)
    }
}
