//! Checks the tokens of service accounts: the account and the object that a token is bound to must still exist.
//!
//! Source: `pkg/serviceaccount/{claims,legacy}.go` of Kubernetes, release 1.36.

use std::sync::Arc;

use async_trait::async_trait;

use super::{FieldValidation, PatchRequest, PatchType, Registry, Subresource, Target, Warnings};
use crate::auth::{
    AccountError, Authenticated, Claims, LEEWAY_S, NamedObject, OwnToken, SecretClaims, TokenAuthenticator, TokenError,
    TokenIssuer, UserInfo,
};
use crate::meta::Status;
use crate::object;
use crate::store::{Collection, Stored};
use crate::value::{Value, base64, json};

/// The labels of a Secret that record when its token was last used, and since when it must not be used.
const LAST_USED: &str = "kubernetes.io/legacy-token-last-used";
const INVALID_SINCE: &str = "kubernetes.io/legacy-token-invalid-since";

/// Authenticates the tokens of stored service accounts.
pub struct StoredAccounts {
    pub registry: Arc<Registry>,
    pub issuer: Arc<TokenIssuer>,
}

#[async_trait]
impl TokenAuthenticator for StoredAccounts {
    async fn authenticate(&self, token: &str, audiences: &[String]) -> Result<Option<Authenticated>, TokenError> {
        let Some(OwnToken { claims, audiences }) = self.issuer.read(token, audiences)? else {
            return self.authenticate_from_secret(token, audiences).await;
        };
        claims.check_time(self.registry.clock.now().as_second())?;
        if let Err(refusal) = self.check(&claims).await {
            // Another process may have created or recreated the object in the meantime.
            if self.registry.storage.catch_up().await.is_err() {
                return Err(refusal.into());
            }
            self.check(&claims).await?;
        }
        Ok(Some(Authenticated { user: claims.user(), audiences }))
    }
}

impl StoredAccounts {
    async fn authenticate_from_secret(
        &self,
        token: &str,
        audiences: &[String],
    ) -> Result<Option<Authenticated>, TokenError> {
        let Some((claims, audiences)) = self.issuer.read_from_secret(token, audiences)? else { return Ok(None) };
        claims.check()?;
        if let Err(refusal) = self.check_secret(&claims, token).await {
            if self.registry.storage.catch_up().await.is_err() {
                return Err(refusal.into());
            }
            self.check_secret(&claims, token).await?;
        }
        Ok(Some(Authenticated { user: claims.user(), audiences }))
    }

    /// Whether the Secret holds the token, and the account that it was issued for still exists.
    async fn check_secret(&self, claims: &SecretClaims, token: &str) -> Result<(), AccountError> {
        let SecretClaims { namespace, secret: name, account, account_uid, .. } = claims;
        let stored = self.get("secrets", &format!("{namespace}/{name}")).await?.ok_or(AccountError::SecretGone)?;
        let secret = json::decode(&stored.bytes).map_err(unreadable)?;
        if secret.at(&["metadata", "deletionTimestamp"]).is_some() {
            return Err(AccountError::SecretGone);
        }
        if base64::decode(secret.str_at(&["data", "token"])).unwrap_or_default() != token.as_bytes() {
            return Err(AccountError::OtherToken);
        }
        let Some(stored) = self.get("serviceaccounts", &format!("{namespace}/{account}")).await? else {
            return Err(AccountError::NotFound(Status::not_found("", "serviceaccounts", account)));
        };
        if stored.metadata_field("\"deletionTimestamp\"").is_some() {
            let (namespace, name) = (namespace.clone(), account.clone());
            return Err(AccountError::DeletedOfSecret { namespace, name });
        }
        if *stored.uid != **account_uid {
            return Err(other_uid("ServiceAccount", "claim", &stored, account_uid));
        }
        self.note_use(&secret).await;
        if secret.str_at(&["metadata", "labels", INVALID_SINCE]).is_empty() {
            return Ok(());
        }
        let (namespace, secret, account) = (namespace.clone(), name.clone(), account.clone());
        Err(AccountError::MarkedInvalid { namespace, secret, account, label: INVALID_SINCE })
    }

    /// Labels a Secret with the day on which its token was last used, at most once a day.
    async fn note_use(&self, secret: &Value) {
        let day = |time: jiff::Timestamp| time.strftime("%Y-%m-%d").to_string();
        let now = self.registry.clock.now();
        let tomorrow = now.checked_add(jiff::SignedDuration::from_hours(24)).unwrap_or(now);
        let (known, today) = (secret.str_at(&["metadata", "labels", LAST_USED]), day(now));
        if known == today || known == day(tomorrow) {
            return;
        }
        let metadata =
            object! { "uid" => secret.str_at(&["metadata", "uid"]), "labels" => object! { LAST_USED => today } };
        let request = PatchRequest {
            patch_type: PatchType::Merge,
            bytes: json::encode(&object! { "metadata" => metadata }).into(),
            field_validation: FieldValidation::Ignore,
            manager: "kube-apiserver".to_owned(),
            force: false,
            dry_run: false,
            options: Value::Null,
        };
        if let Err(status) = self.patch_secret(secret, &request).await {
            tracing::warn!(status.message, "the use of a token could not be noted at its Secret");
        }
    }

    async fn patch_secret(&self, secret: &Value, request: &PatchRequest) -> Result<(), Status> {
        let resource = self.registry.resolve("", "secrets").await?.ok_or_else(Status::not_found_generic)?;
        let version = Arc::clone(resource.storage());
        let text = |field: &str| secret.str_at(&["metadata", field]).to_owned();
        let (namespace, name) = (text("namespace"), text("name"));
        let target = Target { resource, version, subresource: Subresource::Main, namespace, name };
        let user = UserInfo::authenticated("system:apiserver", vec![UserInfo::MASTERS.to_owned()]);
        self.registry.patch(&target, &user, request, &mut Warnings::default()).await.map(drop)
    }

    /// Whether the account and the bound object of a token exist, and are the ones that it was issued for.
    async fn check(&self, claims: &Claims) -> Result<(), AccountError> {
        let about = &claims.about;
        let (namespace, account) = (&about.namespace, &about.serviceaccount);
        let Some(stored) = self.get("serviceaccounts", &format!("{namespace}/{}", account.name)).await? else {
            return Err(AccountError::NotFound(Status::not_found("", "serviceaccounts", &account.name)));
        };
        if *stored.uid != *account.uid {
            return Err(other_uid("service account", "claim", &stored, &account.uid));
        }
        if self.is_gone(&stored) {
            return Err(AccountError::Deleted { namespace: namespace.clone(), name: account.name.clone() });
        }
        if let Some(secret) = &about.secret {
            let key = format!("{namespace}/{}", secret.name);
            self.check_bound("secrets", &key, secret, "secret", "service account secret ref claim").await?;
        }
        if let Some(pod) = &about.pod {
            let key = format!("{namespace}/{}", pod.name);
            // The node of a pod is only recorded, not checked.
            return self.check_bound("pods", &key, pod, "pod", "service account pod ref claim").await;
        }
        if let Some(node) = &about.node {
            self.check_bound("nodes", &node.name, node, "node", "service account node ref claim").await?;
        }
        Ok(())
    }

    async fn check_bound(
        &self,
        plural: &str,
        key: &str,
        bound: &NamedObject,
        what: &'static str,
        claim: &'static str,
    ) -> Result<(), AccountError> {
        let stored = self.get(plural, key).await?.ok_or(AccountError::Invalidated)?;
        if *stored.uid != *bound.uid {
            return Err(other_uid(what, claim, &stored, &bound.uid));
        }
        if self.is_gone(&stored) { Err(AccountError::Invalidated) } else { Ok(()) }
    }

    /// Whether the object's deletion time has passed by more than the allowed clock skew.
    fn is_gone(&self, stored: &Stored) -> bool {
        let deleted = stored.metadata_field("\"deletionTimestamp\"").and_then(|text| json::decode(text).ok());
        let deleted =
            deleted.as_ref().and_then(|text| text.as_str()).and_then(|text| text.parse::<jiff::Timestamp>().ok());
        deleted
            .is_some_and(|deleted| deleted.as_second() < self.registry.clock.now().as_second().saturating_sub(LEEWAY_S))
    }

    async fn get(&self, plural: &str, key: &str) -> Result<Option<Arc<Stored>>, AccountError> {
        self.registry.storage.get(&Collection::new("", plural), key).await.map_err(unreadable)
    }
}

fn unreadable(error: impl std::error::Error) -> AccountError {
    AccountError::Unreadable(error.to_string())
}

fn other_uid(what: &'static str, claim: &'static str, stored: &Stored, claimed: &str) -> AccountError {
    AccountError::Uid { what, claim, found: stored.uid.to_string(), claimed: claimed.to_owned() }
}
