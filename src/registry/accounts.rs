//! Whose token it is, as long as its account is there, and what it is bound to.
//!
//! Source: `pkg/serviceaccount/claims.go` of Kubernetes, release 1.36.

use std::sync::Arc;

use async_trait::async_trait;

use crate::auth::{Authenticated, Claims, LEEWAY_S, Named, OwnToken, TokenAuthenticator, TokenIssuer};
use crate::clock::Clock;
use crate::meta::Status;
use crate::store::{Collection, Storage, Stored};
use crate::value::json;

const INVALIDATED: &str = "service account token has been invalidated";

/// Knows the tokens of accounts that are stored.
pub struct StoredAccounts {
    pub storage: Storage,
    pub issuer: Arc<TokenIssuer>,
    pub clock: Clock,
}

#[async_trait]
impl TokenAuthenticator for StoredAccounts {
    async fn authenticate(&self, token: &str, audiences: &[String]) -> Result<Option<Authenticated>, String> {
        let Some(OwnToken { claims, audiences }) = self.issuer.read(token, audiences)? else { return Ok(None) };
        claims.check_time(self.clock.now().as_second())?;
        if let Err(refusal) = self.check(&claims).await {
            // Another process may have made what is not there yet, or has made it anew.
            if self.storage.catch_up().await.is_err() {
                return Err(refusal);
            }
            self.check(&claims).await?;
        }
        Ok(Some(Authenticated { user: claims.user(), audiences }))
    }
}

impl StoredAccounts {
    /// Whether the account and what the token is bound to are there, and are those that it was issued for.
    async fn check(&self, claims: &Claims) -> Result<(), String> {
        let about = &claims.about;
        let (namespace, account) = (&about.namespace, &about.serviceaccount);
        let Some(stored) = self.get("serviceaccounts", &format!("{namespace}/{}", account.name)).await? else {
            return Err(Status::not_found("", "serviceaccounts", &account.name).message);
        };
        if *stored.uid != *account.uid {
            return Err(format!("service account UID ({}) does not match claim ({})", stored.uid, account.uid));
        }
        if self.is_gone(&stored) {
            return Err(format!("service account {namespace}/{} has been deleted", account.name));
        }
        if let Some(secret) = &about.secret {
            let key = format!("{namespace}/{}", secret.name);
            self.check_bound("secrets", &key, secret, "secret", "service account secret ref").await?;
        }
        if let Some(node) = &about.node {
            self.check_bound("nodes", &node.name, node, "node", "service account node ref").await?;
        }
        Ok(())
    }

    async fn check_bound(&self, plural: &str, key: &str, bound: &Named, what: &str, of: &str) -> Result<(), String> {
        let stored = self.get(plural, key).await?.ok_or(INVALIDATED)?;
        if *stored.uid != *bound.uid {
            return Err(format!("{what} UID ({}) does not match {of} claim ({})", stored.uid, bound.uid));
        }
        if self.is_gone(&stored) { Err(INVALIDATED.to_owned()) } else { Ok(()) }
    }

    /// Whether an object has been waiting for its end for longer than clocks may be apart.
    fn is_gone(&self, stored: &Stored) -> bool {
        let deleted = stored.metadata_field("\"deletionTimestamp\"").and_then(|text| json::decode(text).ok());
        let deleted =
            deleted.as_ref().and_then(|text| text.as_str()).and_then(|text| text.parse::<jiff::Timestamp>().ok());
        deleted.is_some_and(|deleted| deleted.as_second() < self.clock.now().as_second().saturating_sub(LEEWAY_S))
    }

    async fn get(&self, plural: &str, key: &str) -> Result<Option<Arc<Stored>>, String> {
        self.storage.get(&Collection::new("", plural), key).await.map_err(|error| error.to_string())
    }
}
