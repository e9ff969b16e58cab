//! The credentials of a server: its certificate, the CAs that it trusts, and the administrator's
//! identity.
//!
//! Input: the kind of credentials, and the database that holds the server's own CA. Output: what TLS,
//! authentication and the kubeconfig need.

use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use async_trait::async_trait;

use super::serving_failure::ServingFailure;
use super::users::SIGNING_KEY;
use crate::auth::{RequestHeader, UserInfo};
use crate::controllers::Sign;
use crate::server::{
    AUTHORITY_SECRET, AllowedOrigins, Authority, CertificateError, Identity, Kubeconfig, NamedIdentity, Secrets,
    SecretsError, Tls, Trust,
};
use crate::store::Storage;

/// The user in the kubeconfig.
pub const ADMIN: &str = "skiff-admin";
/// The names of the secrets that each control plane has of its own.
pub const SECRET_NAMES: [&str; 2] = [AUTHORITY_SECRET, SIGNING_KEY];

/// The certificates of a server, and those that it trusts.
pub enum Credentials {
    /// Issued by the server's own CA, with a kubeconfig for its administrator, and optionally a
    /// context in another kubeconfig.
    Own { kubeconfig: PathBuf, merged: Option<MergedContext> },
    /// Given by files.
    Given(Box<GivenCredentials>),
}

/// A context in a kubeconfig that has others as well.
#[derive(Clone)]
pub struct MergedContext {
    pub file: PathBuf,
    pub name: String,
}

/// Certificates that were made elsewhere.
pub struct GivenCredentials {
    pub identity: Identity,
    /// Certificates for certain server names.
    pub named: Vec<NamedIdentity>,
    pub trust: Trust,
    pub request_header: RequestHeader,
    /// The origins of web pages that may read responses.
    pub allowed_origins: Arc<AllowedOrigins>,
}

/// Loaded or issued credentials.
pub struct LoadedCredentials {
    pub tls: Tls,
    pub request_header: RequestHeader,
    pub allowed_origins: Arc<AllowedOrigins>,
    /// Published in every namespace.
    pub authority_pem: String,
    /// Signs with the CA's key, if the CA is the server's own.
    pub signer: Option<Arc<dyn Sign>>,
    /// The path of the kubeconfig, and the administrator's certificate in it.
    pub administrator: Option<(PathBuf, Identity)>,
    pub merged: Option<MergedContext>,
}

/// What the server's own CA has issued.
pub struct IssuedCredentials {
    pub authority: Authority,
    pub tls: Tls,
    pub administrator: Identity,
}

impl IssuedCredentials {
    /// Issues the credentials of the server at `address`, with the CA that is stored in the
    /// database.
    ///
    /// # Errors
    ///
    /// The CA can't be read or made, or it can't sign.
    pub async fn load(storage: &Storage, address: SocketAddr) -> Result<Self, CertificateError> {
        let authority = Authority::load(&StoredSecrets(storage.clone())).await?;
        let identity = authority.issue_server(&server_names(address))?;
        let administrator = authority.issue_client(ADMIN, &[UserInfo::MASTERS])?;
        let tls = Tls::new(Trust::of(&authority)?, &identity)?;
        Ok(IssuedCredentials { authority, tls, administrator })
    }
}

impl Credentials {
    /// Loads the credentials, or issues them for the server at `address`.
    ///
    /// # Errors
    ///
    /// As for [`IssuedCredentials::load`], or a certificate does not match its key.
    pub async fn load(&self, storage: &Storage, address: SocketAddr) -> Result<LoadedCredentials, CertificateError> {
        match self {
            Credentials::Own { kubeconfig, merged } => {
                let issued = IssuedCredentials::load(storage, address).await?;
                Ok(LoadedCredentials {
                    tls: issued.tls,
                    request_header: RequestHeader::default(),
                    allowed_origins: Arc::default(),
                    authority_pem: issued.authority.certificate_pem().to_owned(),
                    signer: Some(Arc::new(issued.authority)),
                    administrator: Some((kubeconfig.clone(), issued.administrator)),
                    merged: merged.clone(),
                })
            }
            Credentials::Given(given) => Ok(LoadedCredentials {
                tls: Tls::new(given.trust.clone(), &given.identity)?.with_named(&given.identity, &given.named)?,
                request_header: given.request_header.clone(),
                allowed_origins: Arc::clone(&given.allowed_origins),
                authority_pem: given.identity.certificate_pem.clone(),
                signer: None,
                administrator: None,
                merged: None,
            }),
        }
    }
}

impl LoadedCredentials {
    /// Writes the kubeconfig of the administrator, if there is one.
    ///
    /// # Errors
    ///
    /// A file can't be written.
    pub fn write_kubeconfig(&self, url: &str) -> Result<(), ServingFailure> {
        let Some((path, identity)) = &self.administrator else { return Ok(()) };
        let kubeconfig = Kubeconfig { server: url, authority_pem: &self.authority_pem, user: ADMIN, identity };
        let failed = |path: &Path, why: String| ServingFailure(format!("can't write `{}`: {why}", path.display()));
        kubeconfig.write(path).map_err(|error| failed(path, error.to_string()))?;
        match &self.merged {
            Some(MergedContext { file, name }) => {
                kubeconfig.merge(file, name).map_err(|error| failed(file, error.to_string()))
            }
            None => Ok(()),
        }
    }
}

/// The names and addresses that the server's certificate is for.
pub fn server_names(address: SocketAddr) -> Vec<String> {
    let mut names: Vec<String> = [
        "localhost",
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        "kubernetes.default.svc.cluster.local",
        "127.0.0.1",
        "::1",
    ]
    .map(str::to_owned)
    .into();
    if !address.ip().is_unspecified() && !address.ip().is_loopback() {
        names.push(address.ip().to_string());
    }
    if let Ok(host) = fs::read_to_string("/etc/hostname") {
        names.extend(Some(host.trim().to_owned()).filter(|host| !host.is_empty()));
    }
    names
}

/// Secrets in the database, shared by all processes that use it.
pub struct StoredSecrets(pub Storage);

#[async_trait]
impl Secrets for StoredSecrets {
    async fn read(&self, name: &str) -> Result<Option<Vec<u8>>, SecretsError> {
        Ok(self.0.read_secret(name).await?)
    }

    async fn insert_if_absent(&self, name: &str, candidate: Vec<u8>) -> Result<Vec<u8>, SecretsError> {
        Ok(self.0.insert_secret(name, &candidate).await?)
    }
}
