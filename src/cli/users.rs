//! The arguments of `skiff serve` about users: how they authenticate, and what they may do.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::{fs, io};

use clap::{ArgAction, Args, ValueEnum};
use thiserror::Error;

use super::print::tell;
use crate::auth::{
    AlwaysAllow, AlwaysDeny, Authorizer, Chain, ChainMember, Figures, Masters, NamedAuthorizer, NoSigningKey,
    SigningKey, TokenFile, TokenFileError, TokenIssuer, Tokens, VerifyingKey,
};
use crate::memory::Memory;
use crate::meta::minor::Minor;
use crate::registry::{Current, Registry, StoredAccounts, StoredNodes, StoredPolicy};
use crate::store::{Storage, StoreError};

/// The default issuer and audience of service account tokens.
const ISSUER: &str = "https://kubernetes.default.svc.cluster.local";
/// The name of the secret with the key that signs these tokens.
pub const SIGNING_KEY: &str = "service-account-key";

#[derive(Args)]
pub struct Users {
    /// What users may do: everything, what roles and bindings allow, or nothing; with several modes, a request that one of
    /// them allows is allowed
    #[arg(long, value_enum, value_name = "MODES", value_delimiter = ',', default_value = "AlwaysAllow")]
    pub authorization_mode: Vec<AuthorizationMode>,

    /// Accept requests without a certificate or a token as those of system:anonymous, which roles may allow something; not
    /// with AlwaysAllow
    #[arg(
        long, value_name = "true|false", num_args = 0..=1, require_equals = true, default_value_t = false,
        default_missing_value = "true", action = ArgAction::Set, hide_default_value = true
    )]
    pub anonymous_auth: bool,

    /// Users and their bearer tokens, as CSV: TOKEN,USER,UID,"GROUP,GROUP"
    #[arg(long, value_name = "FILE")]
    pub token_auth_file: Option<PathBuf>,

    /// Who tokens of service accounts say has issued them: a URL, which need not be reached; of several the first issues,
    /// and all are believed
    #[arg(long, value_name = "URL", default_value = ISSUER)]
    pub service_account_issuer: Vec<String>,

    /// The private key that tokens of service accounts are signed with, in PEM: RSA, or ECDSA on P-256 or P-384
    /// [default: one that is kept in the database]
    #[arg(long, value_name = "FILE")]
    pub service_account_signing_key_file: Option<PathBuf>,

    /// Keys or certificates in PEM: tokens that are signed with one of them are believed [default: the signing key]
    #[arg(long, value_name = "FILE")]
    pub service_account_key_file: Vec<PathBuf>,

    /// Whom tokens must be for that are used here [default: the issuer]
    #[arg(long, value_name = "NAMES", value_delimiter = ',')]
    pub api_audiences: Vec<String>,

    /// Where decisions are counted.
    #[arg(skip)]
    pub authorization_figures: Arc<Figures>,
}

/// By kube-apiserver's names.
#[derive(Clone, ValueEnum)]
pub enum AuthorizationMode {
    #[value(name = "AlwaysAllow")]
    AlwaysAllow,
    #[value(name = "AlwaysDeny")]
    AlwaysDeny,
    /// Nodes may do what is theirs, and read what their pods need
    #[value(name = "Node")]
    Node,
    #[value(name = "RBAC")]
    Rbac,
    /// What was made of files.
    #[value(skip)]
    Ready(NamedAuthorizer, Arc<dyn Authorizer>),
}

impl AuthorizationMode {
    /// The label by which its decisions are counted.
    fn named(&self) -> NamedAuthorizer {
        let of_mode = |mode: &'static str| NamedAuthorizer { r#type: mode, name: mode.to_lowercase() };
        match self {
            AuthorizationMode::AlwaysAllow => of_mode("AlwaysAllow"),
            AuthorizationMode::AlwaysDeny => of_mode("AlwaysDeny"),
            AuthorizationMode::Node => of_mode("Node"),
            AuthorizationMode::Rbac => of_mode("RBAC"),
            AuthorizationMode::Ready(name, _) => name.clone(),
        }
    }
}

impl Users {
    /// Prints a warning if everybody may do everything.
    pub fn tell_if_open(&self) {
        if self.lets_everybody() {
            tell(
                "Authorization is off: every authenticated client is an administrator (use --authorization-mode=RBAC)",
            );
        }
    }

    /// The authorizers in the order of the modes, and the policy of roles and bindings, if it is
    /// needed. For a copy, `known` is the state that its origin had loaded.
    pub fn authorizer(
        &self,
        (storage, memory): (&Storage, &Memory),
        minor: Minor,
        known: Option<Current>,
    ) -> (Arc<dyn Authorizer>, Option<Arc<StoredPolicy>>) {
        let policy = self.needs_roles().then(|| {
            Arc::new(match known {
                Some(known) => StoredPolicy::beginning_with(known, storage.clone(), memory),
                None => StoredPolicy::new(storage.clone(), memory),
            })
        });
        let decides = |mode: &AuthorizationMode| -> Option<Arc<dyn Authorizer>> {
            match mode {
                AuthorizationMode::AlwaysAllow => Some(Arc::new(AlwaysAllow)),
                AuthorizationMode::AlwaysDeny => Some(Arc::new(AlwaysDeny)),
                AuthorizationMode::Node => Some(Arc::new(StoredNodes::new(storage.clone(), minor, memory))),
                AuthorizationMode::Rbac => policy.clone().map(|policy| policy as Arc<dyn Authorizer>),
                AuthorizationMode::Ready(_, authorizer) => Some(Arc::clone(authorizer)),
            }
        };
        let members = self
            .authorization_mode
            .iter()
            .filter_map(|mode| Some(ChainMember { authorizer: decides(mode)?, counted_as: Some(mode.named()) }));
        // Members of system:masters are allowed before any other authorizer is asked.
        let masters = ChainMember { authorizer: Arc::new(Masters), counted_as: None };
        let members = std::iter::once(masters).chain(members).collect();
        (Arc::new(Chain::new(Arc::clone(&self.authorization_figures), members)), policy)
    }

    /// Whether everybody may do everything that no authorizer denies.
    fn lets_everybody(&self) -> bool {
        self.authorization_mode.iter().any(|mode| matches!(mode, AuthorizationMode::AlwaysAllow))
    }

    /// Whether roles and bindings are needed. Whatever the authorizers are, nobody may grant more
    /// by roles than they hold; only if everything is allowed anyway, this is not checked.
    fn needs_roles(&self) -> bool {
        self.authorization_mode.iter().any(|mode| !matches!(mode, AuthorizationMode::AlwaysAllow))
    }

    /// Whether requests without credentials are let in: not if that would give them every right, as
    /// in kube-apiserver.
    pub fn lets_anonymous_in(&self) -> bool {
        self.anonymous_auth && !self.lets_everybody()
    }

    /// The issuer of service account tokens, with the key that all servers on the database share.
    pub async fn token_issuer(&self, storage: &Storage) -> Result<TokenIssuer, KeyError> {
        let key = match &self.service_account_signing_key_file {
            Some(path) => read_key(path, SigningKey::from_pem)?,
            None => kept_key(storage).await?,
        };
        let issuers = self.service_account_issuer.clone();
        let issuer = TokenIssuer::new(issuers, self.audiences(), key);
        let mut known = Vec::new();
        for path in &self.service_account_key_file {
            known.extend(read_key(path, VerifyingKey::all_from_pem)?);
        }
        Ok(if known.is_empty() { issuer } else { issuer.knowing(known) })
    }

    /// The issuer of tokens in a control plane beside the main one, with a key of its own in its
    /// database; for a copy, one that accepts the tokens that `origin` has issued so far.
    pub async fn kept_token_issuer(
        &self,
        storage: &Storage,
        origin: Option<&TokenIssuer>,
    ) -> Result<TokenIssuer, KeyError> {
        let key = kept_key(storage).await?;
        Ok(match origin {
            Some(origin) => origin.heir(key),
            None => {
                let issuers = self.service_account_issuer.clone();
                TokenIssuer::new(issuers, self.audiences(), key)
            }
        })
    }

    /// The audiences of this server; a token needs one of them.
    fn audiences(&self) -> Vec<String> {
        match self.api_audiences.as_slice() {
            [] => self.service_account_issuer.clone(),
            audiences => audiences.to_vec(),
        }
    }

    /// The authenticators of bearer tokens: first the token file, then the issuer of service
    /// account tokens.
    ///
    /// # Errors
    ///
    /// The token file can't be read or is invalid.
    pub fn tokens(&self, registry: &Arc<Registry>, issuer: &Arc<TokenIssuer>) -> Result<Tokens, TokenFileFailure> {
        let mut tokens = Tokens { api_audiences: issuer.api_audiences().to_vec(), ..Tokens::default() };
        if let Some(path) = &self.token_auth_file {
            let shown = path.display();
            let text =
                fs::read_to_string(path).map_err(|error| TokenFileFailure::Read { path: path.clone(), error })?;
            let file = TokenFile::parse(&text, &tokens.api_audiences);
            let file = file.map_err(|error| TokenFileFailure::Content { path: path.clone(), error })?;
            file.warnings.iter().for_each(|warning| tell(format_args!("token file '{shown}': {warning}")));
            tokens.authenticators.push(Box::new(file));
        }
        let (registry, issuer) = (Arc::clone(registry), Arc::clone(issuer));
        tokens.authenticators.push(Box::new(StoredAccounts { registry, issuer }));
        Ok(tokens)
    }
}

/// Why a token file can't be used.
#[derive(Debug, Error)]
pub enum TokenFileFailure {
    #[error("can't read token file '{}': {error}", path.display())]
    Read { path: PathBuf, error: io::Error },
    #[error("token file '{}' {error}", path.display())]
    Content { path: PathBuf, error: TokenFileError },
}

/// The key in the database, which is generated if it is missing.
async fn kept_key(storage: &Storage) -> Result<SigningKey, KeyError> {
    let key = match storage.read_secret(SIGNING_KEY).await? {
        Some(key) => key,
        None => storage.insert_secret(SIGNING_KEY, &SigningKey::generate()?).await?,
    };
    Ok(SigningKey::from_der(&key)?)
}

fn read_key<K>(path: &Path, read: impl Fn(&[u8]) -> Result<K, NoSigningKey>) -> Result<K, KeyError> {
    let text = fs::read(path).map_err(|error| KeyError::File(path.to_owned(), error.to_string()))?;
    read(&text)
        .map_err(|_| KeyError::File(path.to_owned(), "data does not contain any valid RSA or ECDSA keys".to_owned()))
}

/// Why the key that signs tokens can't be loaded.
#[derive(Debug)]
pub enum KeyError {
    Store(StoreError),
    Key(NoSigningKey),
    File(PathBuf, String),
}

impl std::fmt::Display for KeyError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            KeyError::Store(error) => error.fmt(f),
            KeyError::Key(error) => error.fmt(f),
            KeyError::File(path, why) => write!(f, "can't read the key file {}: {why}", path.display()),
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

#[cfg(test)]
mod tests {
    use clap::{Args as _, Command, FromArgMatches as _};

    use super::*;
    use crate::registry::fixture;

    #[tokio::test]
    async fn roles_count_in_every_mode_but_where_everything_is_allowed() {
        let storage = fixture::registry().await.storage.clone();
        for (modes, expected) in [
            ("AlwaysAllow", false),
            ("AlwaysDeny", true),
            ("Node", true),
            ("RBAC", true),
            ("RBAC,AlwaysAllow", true),
            ("AlwaysDeny,AlwaysAllow", true),
        ] {
            let arguments = ["skiff", &format!("--authorization-mode={modes}")];
            let matches = Users::augment_args(Command::new("skiff")).get_matches_from(arguments);
            let users = Users::from_arg_matches(&matches).expect("they are arguments");
            let (_, policy) = users.authorizer((&storage, &Memory::of_system()), Minor::NEWEST, None);
            assert_eq!(policy.is_some(), expected, "{modes}");
        }
    }
}
