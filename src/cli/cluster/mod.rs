//! The definitions and objects of a live server.
//!
//! Input: a kubeconfig, as kubectl finds it. Output: lists, read page by page. A [`Cluster`] is never
//! written to.

mod client;
mod kubeconfig;

use std::path::{Path, PathBuf};

use clap::Args;

pub use client::{ClientError, ClusterClient, Forwarded, Unanswered};
pub use kubeconfig::{Config, KubeconfigError};

use crate::author::DefinedKind;
use crate::crd::definition::{API_VERSION, KIND};
use crate::value::Value;

/// How many objects are requested at once, as kubectl does.
const PAGE_ITEMS: usize = 500;

/// Which server is meant.
#[derive(Args)]
pub struct Access {
    /// The kubeconfig of the server, if not that of KUBECONFIG or of ~/.kube/config
    #[arg(long, value_name = "FILE", requires = "from_cluster")]
    kubeconfig: Option<PathBuf>,

    /// The context of the kubeconfig, if not the current one
    #[arg(long, value_name = "NAME", requires = "from_cluster")]
    context: Option<String>,
}

impl Access {
    /// The server of a kubeconfig and a context, or by default those that kubectl would use.
    pub fn new(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Access { kubeconfig, context }
    }
}

/// Why a live server can't be read.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// A client for the server of a kubeconfig and a context, or by default of those that kubectl would
/// use.
///
/// # Errors
///
/// The kubeconfig is missing, invalid, or needs something that is not supported.
pub fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<ClusterClient, ClusterError> {
    Ok(ClusterClient::new(Config::read(kubeconfig, context)?)?)
}

/// A live server.
pub struct Cluster {
    client: ClusterClient,
}

impl Cluster {
    /// Prepares a client for the server; no request is sent yet.
    ///
    /// # Errors
    ///
    /// The kubeconfig is missing, invalid, or needs something that is not supported.
    pub fn new(access: &Access) -> Result<Self, ClusterError> {
        Ok(Cluster { client: connect(access.kubeconfig.as_deref(), access.context.as_deref())? })
    }

    /// The server's URL.
    pub fn url(&self) -> &str {
        self.client.url()
    }

    /// All definitions.
    ///
    /// # Errors
    ///
    /// Why there is no response, or the server's message.
    pub async fn definitions(&self) -> Result<Vec<Value>, Unanswered> {
        let path = format!("/apis/{API_VERSION}/customresourcedefinitions");
        let mut definitions = self.list(&path).await?;
        // Items of a list of a built-in kind have no `apiVersion` and `kind`.
        for definition in &mut definitions {
            let fields = definition.make_object();
            fields.insert("apiVersion", Value::from(API_VERSION));
            fields.insert("kind", Value::from(KIND));
        }
        Ok(definitions)
    }

    /// All objects of a kind, in the storage version, or else in any served version that the server
    /// has; none if it has none of them.
    ///
    /// # Errors
    ///
    /// Why there is no response, or the server's message.
    pub async fn objects(&self, kind: &DefinedKind) -> Result<Vec<Value>, Unanswered> {
        let mut versions: Vec<_> = kind.versions.iter().filter(|version| version.served).collect();
        versions.sort_by_key(|version| !version.storage);
        for version in versions {
            let path = format!("/apis/{}/{}", version.api_version(), version.names.plural);
            match self.list(&path).await {
                Err(error) if error.status == Some(404) => {}
                answer => return answer,
            }
        }
        Ok(Vec::new())
    }

    async fn list(&self, path: &str) -> Result<Vec<Value>, Unanswered> {
        let mut items = Vec::new();
        let mut query = format!("?limit={PAGE_ITEMS}");
        loop {
            let answer = match self.client.get(&format!("{path}{query}")).await {
                // The continue token has expired: read everything again at once.
                Err(error) if error.status == Some(410) && query.contains("continue") => {
                    items.clear();
                    self.client.get(path).await?
                }
                answer => answer?,
            };
            let mut page = self.client.read(path, &answer)?;
            let token = page.str_at(&["metadata", "continue"]).to_owned();
            if let Some(Value::Array(found)) = page.get_mut("items").map(std::mem::take) {
                items.extend(found);
            }
            if token.is_empty() {
                return Ok(items);
            }
            query = format!("?limit={PAGE_ITEMS}&continue={token}");
        }
    }
}
