//! What a live server has: its definitions, and objects of them.
//!
//! In: a kubeconfig, as kubectl finds it. Out: lists, read page by page. A [`Cluster`] is never written to.

mod client;
mod kubeconfig;

use std::path::{Path, PathBuf};

use clap::Args;

pub use client::{ClientError, ClusterClient, Forwarded, Unanswered};
pub use kubeconfig::{Config, KubeconfigError};

use crate::author::DefinedKind;
use crate::crd::definition::{API_VERSION, KIND};
use crate::value::Value;

/// How many objects are asked for at once, as kubectl does.
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
    /// The server of a kubeconfig and a context, or those that kubectl would take.
    pub fn new(kubeconfig: Option<PathBuf>, context: Option<String>) -> Self {
        Access { kubeconfig, context }
    }
}

/// Why a live server tells nothing.
#[derive(Debug, thiserror::Error)]
pub enum ClusterError {
    #[error(transparent)]
    Kubeconfig(#[from] KubeconfigError),
    #[error(transparent)]
    Client(#[from] ClientError),
    #[error(transparent)]
    Unanswered(#[from] Unanswered),
}

/// What asks the server of a kubeconfig and a context, or of those that kubectl would take.
///
/// # Errors
/// A kubeconfig that is missing, faulty, or wants what skiff can't do.
pub fn connect(kubeconfig: Option<&Path>, context: Option<&str>) -> Result<ClusterClient, ClusterError> {
    Ok(ClusterClient::new(Config::read(kubeconfig, context)?)?)
}

/// A live server.
pub struct Cluster {
    client: ClusterClient,
}

impl Cluster {
    /// Finds the server; it is not asked anything yet.
    ///
    /// # Errors
    /// A kubeconfig that is missing, faulty, or wants what skiff can't do.
    pub fn new(access: &Access) -> Result<Self, ClusterError> {
        Ok(Cluster { client: connect(access.kubeconfig.as_deref(), access.context.as_deref())? })
    }

    /// Where the server is.
    pub fn url(&self) -> &str {
        self.client.url()
    }

    /// All definitions.
    ///
    /// # Errors
    /// Why there is no answer, or the server's own words.
    pub async fn definitions(&self) -> Result<Vec<Value>, Unanswered> {
        let path = format!("/apis/{API_VERSION}/customresourcedefinitions");
        let mut definitions = self.list(&path).await?;
        // Items of a list of a built-in kind don't say what they are.
        for definition in &mut definitions {
            let fields = definition.make_object();
            fields.insert("apiVersion", Value::from(API_VERSION));
            fields.insert("kind", Value::from(KIND));
        }
        Ok(definitions)
    }

    /// All objects of a kind, in the version that is stored or else in any that the server has. None if it has none of them.
    ///
    /// # Errors
    /// Why there is no answer, or the server's own words.
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
                // The rest of the pages is too old: all at once can't be.
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
